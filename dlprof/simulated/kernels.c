/* Modules and kernels. A kernel takes time on its stream. Only these are performed, on the host:

   | kernel                     | of             | known by                          | performed as      |
   |----------------------------|----------------|-----------------------------------|-------------------|
   | spin                       | dlprof         | its name                          | a sleep           |
   | s (one integer)            | dlprof's CuPy  | its name and parameter            | a sleep           |
   | increase (… work)          | dlprof's Numba | its name, the last parameter      | a sleep           |
   | spin_kernel (cycles)       | torch._sleep   | its name                          | a sleep, at 2 GHz |
   | cupy_copy__T_T             | CuPy           | its name, sizes of the parameters | a strided copy    |

   Every other kernel leaves the memory as it is, and marks the places that its arguments point to. */

#define _GNU_SOURCE
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device.h"
#include "driver.h"
#include "errors.h"
#include "queue.h"

enum { MOST_PARAMETERS = 256, MOST_POINTERS = 1024, MOST_DIMENSIONS = 32, MOST_PLACES = 64 };

struct variable {
    char *name;
    address_t address;
    size_t size;
    struct variable *next;
};

struct module {
    char *image; /* a copy of the code, a cubin or PTX; null if there is none that can be read */
    size_t size;
    struct variable *variables; /* the ones that were looked up */
};

struct kernel {
    const char *name;
    int count; /* of parameters; -1 if the code does not tell */
    struct { uint32_t offset, size; } parameters[MOST_PARAMETERS];
};

/* --- Code: what it says of a kernel's parameters ---------------------------------------------- */

static size_t elf_size(const char *image)
{
    const Elf64_Ehdr *header = (const void *)image;
    size_t end = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    size_t programs = header->e_phoff + (size_t)header->e_phnum * header->e_phentsize;
    const Elf64_Shdr *sections = (const void *)(image + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        size_t last = sections[i].sh_offset + (sections[i].sh_type == SHT_NOBITS ? 0 : sections[i].sh_size);
        end = last > end ? last : end;
    }
    return programs > end ? programs : end;
}

static void set_parameter(struct kernel *kernel, size_t ordinal, uint32_t offset, uint32_t size)
{
    if (ordinal < MOST_PARAMETERS) {
        kernel->parameters[ordinal].offset = offset;
        kernel->parameters[ordinal].size = size;
        kernel->count = (int)ordinal >= kernel->count ? (int)ordinal + 1 : kernel->count;
    }
}

/* A section .nv.info.NAME lists attributes: a byte for the format, one for the attribute, two for
   the size of what follows in format 4. Attribute 0x17 describes a parameter. */
static void read_elf(struct kernel *kernel, const char *image)
{
    const Elf64_Ehdr *header = (const void *)image;
    const Elf64_Shdr *sections = (const void *)(image + header->e_shoff);
    const char *names = image + sections[header->e_shstrndx].sh_offset;
    for (int i = 0; i < header->e_shnum; i++) {
        const char *name = names + sections[i].sh_name;
        if (strncmp(name, ".nv.info.", 9) || strcmp(name + 9, kernel->name)) {
            continue;
        }
        const unsigned char *at = (const void *)(image + sections[i].sh_offset);
        const unsigned char *end = at + sections[i].sh_size;
        kernel->count = 0;
        while (at + 4 <= end) {
            uint16_t size = at[0] == 4 ? (uint16_t)(at[2] | at[3] << 8) : 0;
            if (at[0] == 4 && at[1] == 0x17 && size >= 12) {
                uint16_t places[2];
                uint32_t packed;
                memcpy(places, at + 8, sizeof places); /* ordinal and offset, behind an index */
                memcpy(&packed, at + 12, sizeof packed);
                set_parameter(kernel, places[0], places[1], packed >> 18);
            }
            at += 4 + size;
        }
    }
}

/* ".entry NAME(.param .u64 a, .param .align 8 .b8 b[24])" */
static void read_ptx(struct kernel *kernel, const char *text)
{
    size_t length = strlen(kernel->name);
    for (const char *at = text; (at = strstr(at, ".entry ")); at++) {
        if (strncmp(at + 7, kernel->name, length) || !strchr("( \n\t", at[7 + length])) {
            continue;
        }
        const char *end = strchr(at, ')');
        uint32_t offset = 0;
        size_t ordinal = 0;
        kernel->count = 0;
        while (end && (at = strstr(at, ".param")) && at < end) {
            unsigned bits = 8, aligned = 0, elements = 1;
            const char *next = at + 6 + strcspn(at + 6, ",)"), *type = at + 6;
            for (; (type = strchr(type, '.')) && type < next; type++) {
                sscanf(type, ".align %u", &aligned);
                if (sscanf(type, ".%*1[busf]%u", &bits) == 1) {
                    const char *bracket = memchr(type, '[', (size_t)(next - type));
                    elements = bracket ? (unsigned)strtoul(bracket + 1, NULL, 10) : 1;
                }
            }
            uint32_t size = bits / 8 * elements, step = aligned ? aligned : bits / 8;
            offset = (offset + step - 1) / step * step;
            set_parameter(kernel, ordinal++, offset, size);
            offset += size;
            at = next;
        }
        return;
    }
}

/* A length of LZ4 goes on in further bytes while they are 255. */
static size_t lz4_length(const unsigned char **at, size_t length)
{
    unsigned char more = length == 15 ? 255 : 0;
    while (more == 255) {
        more = *(*at)++;
        length += more;
    }
    return length;
}

/* A block of LZ4: bytes as they are, then a part of what came before, and again. */
static void lz4(const unsigned char *at, size_t size, char *to)
{
    const unsigned char *end = at + size;
    while (at < end) {
        unsigned char token = *at++;
        size_t literal = lz4_length(&at, token >> 4);
        memcpy(to, at, literal);
        to += literal, at += literal;
        if (at < end) {
            size_t back = (size_t)(at[0] | at[1] << 8);
            at += 2;
            for (size_t left = lz4_length(&at, token & 15) + 4; left; left--, to++) {
                *to = to[-(ptrdiff_t)back];
            }
        }
    }
}

/* What the runtime registers holds code for several devices, which have the same parameters. */
struct fat_header { uint32_t magic; uint16_t version, header_bytes; uint64_t size; };
struct fat_entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t size;
    uint32_t compressed_bytes, unknown, numbers, device, name[2];
    uint64_t flags, zero, whole_bytes;
};
enum { FAT_WRAPPER = 0x466243b1, FAT_LZ4 = 0x2000, FAT_ZSTD = 0x8000 };
static const uint32_t FAT = 0xba55ed50;

static void load_fat(struct module *module, const char *at)
{
    const struct fat_header *header = (const void *)at;
    const char *end = at + header->header_bytes + header->size;
    for (at += header->header_bytes; at < end;) {
        const struct fat_entry *entry = (const void *)at;
        if (!(entry->flags & FAT_ZSTD)) {
            bool is_lz4 = entry->flags & FAT_LZ4;
            module->size = is_lz4 ? entry->whole_bytes : entry->size;
            module->image = calloc(1, module->size + 1); /* PTX is a text */
            at += entry->header_bytes;
            if (is_lz4) {
                lz4((const void *)at, entry->compressed_bytes, module->image);
            } else {
                memcpy(module->image, at, module->size);
            }
            return;
        }
        at += entry->header_bytes + entry->size;
    }
}

static int loaded(struct module **module, const void *image)
{
    *module = calloc(1, sizeof **module);
    uint32_t magic = 0;
    memcpy(&magic, image ? image : &magic, sizeof magic);
    if (magic == FAT_WRAPPER || magic == FAT) {
        load_fat(*module, magic == FAT ? image : ((char *const *)image)[1]);
    } else if (image) {
        bool is_elf = !memcmp(image, ELFMAG, SELFMAG);
        (*module)->size = is_elf ? elf_size(image) : strlen(image) + 1;
        (*module)->image = malloc((*module)->size);
        memcpy((*module)->image, image, (*module)->size);
    }
    return SUCCESS;
}

API cuModuleLoadData(struct module **module, const void *image)
{
    NEED_CONTEXT;
    return loaded(module, image);
}

SAME(cuModuleLoadDataEx, cuModuleLoadData)
SAME(cuModuleLoadFatBinary, cuModuleLoadData)

API cuModuleUnload(struct module *module)
{
    for (struct variable *one = module->variables, *next; one; one = next) {
        next = one->next; /* its memory stays: cuMemFree would wait */
        free(one->name);
        free(one);
    }
    free(module->image);
    return free(module), SUCCESS;
}

API cuModuleGetFunction(struct kernel **kernel, struct module *module, const char *name)
{
    *kernel = calloc(1, sizeof **kernel);
    (*kernel)->name = strdup(name);
    (*kernel)->count = -1;
    if (module && module->image) {
        bool is_elf = !memcmp(module->image, ELFMAG, SELFMAG);
        (is_elf ? read_elf : read_ptx)(*kernel, module->image);
    }
    return SUCCESS;
}

API cuMemAlloc(address_t *address, size_t size_bytes);

/* The bytes of a variable: a symbol of an ELF file, or ".global .align 8 .b8 NAME[24]" in PTX. */
static size_t variable_size(const struct module *module, const char *name)
{
    const char *image = module->image;
    if (image && !memcmp(image, ELFMAG, SELFMAG)) {
        const Elf64_Ehdr *header = (const void *)image;
        const Elf64_Shdr *sections = (const void *)(image + header->e_shoff);
        for (int i = 0; i < header->e_shnum; i++) {
            if (sections[i].sh_type != SHT_SYMTAB) {
                continue;
            }
            const char *names = image + sections[sections[i].sh_link].sh_offset;
            const Elf64_Sym *symbol = (const void *)(image + sections[i].sh_offset);
            for (size_t left = sections[i].sh_size / sizeof *symbol; left; left--, symbol++) {
                if (ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && !strcmp(names + symbol->st_name, name)) {
                    return symbol->st_size;
                }
            }
        }
        return 0;
    }
    for (const char *at = image; at && (at = strstr(at, name)); at++) {
        if (at[strlen(name)] == '[') {
            return strtoul(at + strlen(name) + 1, NULL, 10);
        }
    }
    return 0;
}

/* A variable has memory of its own. Its first values are not read from the code. */
API cuModuleGetGlobal(address_t *address, size_t *size, struct module *module, const char *name)
{
    struct variable *found = module->variables;
    while (found && strcmp(found->name, name)) {
        found = found->next;
    }
    if (!found) {
        struct variable made = {.size = variable_size(module, name), .next = module->variables};
        if (!made.size) {
            return NOT_FOUND;
        }
        int status = cuMemAlloc(&made.address, made.size);
        if (status) {
            return status;
        }
        made.name = strdup(name);
        module->variables = found = malloc(sizeof made);
        *found = made;
    }
    if (address) {
        *address = found->address;
    }
    if (size) {
        *size = found->size;
    }
    return SUCCESS;
}

SAME(cuLibraryGetGlobal, cuModuleGetGlobal)

API cuModuleGetLoadingMode(int *mode) { return *mode = 2, SUCCESS; } /* lazy */

API cuLibraryLoadData(struct module **library, const void *code, int *jit, void **jit_values,
                      unsigned jit_count, int *options, void **values, unsigned count)
{
    return loaded(library, code);
}

SAME(cuLibraryUnload, cuModuleUnload)
SAME(cuLibraryGetKernel, cuModuleGetFunction)

/* A library is a module here, and a kernel is a function. */
API cuLibraryGetModule(void **module, void *library) { return *module = library, SUCCESS; }
SAME(cuKernelGetFunction, cuLibraryGetModule)

API cuKernelGetName(const char **name, struct kernel *kernel) { return *name = kernel->name, SUCCESS; }
SAME(cuFuncGetName, cuKernelGetName)

API cuKernelGetParamInfo(struct kernel *kernel, size_t index, size_t *offset, size_t *size)
{
    if (kernel->count < 0) {
        return NOT_SUPPORTED;
    }
    if (index >= (size_t)kernel->count) {
        return INVALID_VALUE;
    }
    *offset = kernel->parameters[index].offset;
    if (size) {
        *size = kernel->parameters[index].size;
    }
    return SUCCESS;
}

SAME(cuFuncGetParamInfo, cuKernelGetParamInfo)

/* The linker puts its inputs one behind the other: nothing is executed, only parameters are read. */

API cuLinkCreate(unsigned count, int *options, void **values, struct module **link)
{
    NEED_CONTEXT;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == 4 || options[i] == 6) {
            values[i] = NULL; /* the bytes that were written into a log */
        }
    }
    *link = calloc(1, sizeof **link);
    return SUCCESS;
}

API cuLinkAddData(struct module *link, int type, const void *data, size_t size, const char *name,
                  unsigned count, int *options, void **values)
{
    size_t length = strnlen(data, size);
    bool is_elf = size >= SELFMAG && !memcmp(data, ELFMAG, SELFMAG);
    if (is_elf && link->size) {
        return NOT_SUPPORTED;
    }
    length = is_elf ? size : length;
    link->image = realloc(link->image, link->size + length + 1);
    memcpy(link->image + link->size, data, length);
    link->size += length;
    link->image[link->size] = 0;
    return SUCCESS;
}

API cuLinkComplete(struct module *link, void **image, size_t *size)
{
    *image = link->image;
    *size = link->size + 1;
    return SUCCESS;
}

SAME(cuLinkDestroy, cuModuleUnload)

/* --- Attributes ------------------------------------------------------------------------------- */

API cuFuncGetAttribute(int *value, int attribute, void *function)
{
    return *value = attribute == 0 ? 1024 : 0, SUCCESS; /* threads in a block */
}
SAME(cuKernelGetAttribute, cuFuncGetAttribute)

API cuFuncSetAttribute(void *function, int attribute, int value) { return SUCCESS; }
SAME(cuFuncSetCacheConfig, cuFuncSetAttribute)

API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int size, size_t shared)
{
    return *blocks = 2, SUCCESS;
}
SAME(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, cuOccupancyMaxActiveBlocksPerMultiprocessor)

/* cublasCreate fails without it. */
API cuOccupancyMaxActiveClusters(int *clusters, void *function, const void *config)
{
    return *clusters = 2, SUCCESS;
}

API cuOccupancyAvailableDynamicSMemPerBlock(size_t *size, void *function, int blocks, int threads)
{
    return *size = 49152, SUCCESS;
}

/* --- Launches --------------------------------------------------------------------------------- */

/* CArray of CuPy's carray.cuh: where, elements, shape, strides in bytes. */
struct strided {
    address_t data;
    int64_t size, extents[2 * MOST_DIMENSIONS];
};

struct launch {
    uint64_t duration_ns;
    struct device *device;
    bool copies;           /* what a known kernel copies, */
    int dimensions;
    size_t element_bytes;
    struct strided from, to;
    bool is_opaque;        /* else what an unknown one may have written */
    size_t pointer_count;
    address_t pointers[];
};

/* The first byte and the size of what the elements of an array span. */
static address_t span(const struct launch *launch, const struct strided *array, size_t *size)
{
    const int64_t *shape = array->extents, *strides = shape + launch->dimensions;
    address_t low = array->data, high = array->data + launch->element_bytes;
    for (int d = 0; d < launch->dimensions; d++) {
        int64_t reach = (shape[d] - 1) * strides[d];
        *(reach < 0 ? &low : &high) += (address_t)reach;
    }
    *size = high - low;
    return low;
}

static void copy_strided(struct launch *launch)
{
    size_t from_bytes, to_bytes, bytes = launch->element_bytes;
    int64_t index[MOST_DIMENSIONS] = {0};
    address_t from = span(launch, &launch->from, &from_bytes), to = span(launch, &launch->to, &to_bytes);
    char *source = memory_bytes(from, from_bytes), *target = memory_bytes(to, to_bytes);
    if (!source || !target) {
        misuse(launch->device, "a kernel's access to memory that is not allocated", source ? to : from);
        return;
    }
    source += launch->from.data - from;
    target += launch->to.data - to;
    for (int64_t i = 0; i < launch->to.size; i++) {
        memmove(target, source, bytes);
        for (int d = launch->dimensions - 1; d >= 0; d--) {
            int64_t turn = ++index[d] == launch->to.extents[d] ? index[d] - 1 : -1;
            source -= turn * launch->from.extents[launch->dimensions + d];
            target -= turn * launch->to.extents[launch->dimensions + d];
            if (turn < 0) {
                break;
            }
            index[d] = 0;
        }
    }
    if (dlprofSimulatedPoisoned(from, from_bytes)) {
        poison(to, to_bytes);
    } else if (to_bytes == (size_t)launch->to.size * bytes) {
        unpoison(to, to_bytes, 0);
    }
}

static void perform_kernel(void *argument)
{
    struct launch *launch = argument;
    sleep_ns(launch->duration_ns);
    if (launch->copies) {
        copy_strided(launch);
    }
    if (launch->is_opaque) {
        poison_all(launch->device);
    }
    for (size_t i = 0; i < launch->pointer_count; i++) {
        poison_place(launch->pointers[i]);
    }
    free(launch);
}

static const struct { const char *name; size_t bytes; } elements[] = {
    {"bool", 1}, {"int8", 1}, {"uint8", 1}, {"int16", 2}, {"uint16", 2}, {"float16", 2},
    {"int32", 4}, {"uint32", 4}, {"float32", 4}, {"int64", 8}, {"uint64", 8}, {"float64", 8},
    {"complex64", 8}, {"complex128", 16},
};

/* Both arrays have a CArray of the same type and number of dimensions; a CIndexer follows. */
static bool is_copy_of_cupy(const struct kernel *kernel, struct launch *launch, void **values)
{
    uint32_t size = kernel->parameters[0].size;
    if (strncmp(kernel->name, "cupy_copy__", 11) || kernel->count != 3 || !values || size < 16
        || size % 16 || size > sizeof(struct strided) || kernel->parameters[1].size != size) {
        return false;
    }
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        char pair[64];
        snprintf(pair, sizeof pair, "%s_%s", elements[i].name, elements[i].name);
        if (!strcmp(kernel->name + 11, pair)) {
            launch->copies = true;
            launch->element_bytes = elements[i].bytes;
            launch->dimensions = (int)(size / 16) - 1;
            memcpy(&launch->from, values[0], size);
            memcpy(&launch->to, values[1], size);
            return true;
        }
    }
    return false;
}

static uint64_t integer(const void *value)
{
    uint64_t number;
    memcpy(&number, value, sizeof number);
    return number;
}

/* How long a kernel of known duration takes; false for any other. */
static bool is_sleep(const struct kernel *kernel, void **values, uint64_t *duration_ns)
{
    int last = kernel->count - 1;
    if (!values) {
        return false;
    }
    if (!strcmp(kernel->name, "spin")) {
        *duration_ns = integer(values[0]);
    } else if (strstr(kernel->name, "11spin_kernel")) {
        *duration_ns = integer(values[0]) / 2;
    } else if (!strcmp(kernel->name, "s") && last == 0 && kernel->parameters[0].size == 8) {
        *duration_ns = integer(values[0]) * 1000;
    } else if (strstr(kernel->name, "8increase") && last > 0 && kernel->parameters[last].size == 8) {
        *duration_ns = integer(values[last]) * 500000;
        return false; /* it also writes */
    } else {
        return false;
    }
    return true;
}

/* CIndexer of CuPy's carray.cuh: elements, shape, and an index that no launch sets. */
static bool is_indexer(const char *value, size_t size)
{
    uint64_t elements = size % 16 == 8 && size > 8;
    for (size_t at = 8; elements && at <= size / 2; at += 8) {
        elements *= integer(value + at);
    }
    return elements && elements == integer(value) && memory_at(elements).kind == NOT_KNOWN;
}

static void point(struct launch *launch, const char *value, size_t size, bool is_argument)
{
    size = is_argument && is_indexer(value, size) ? 0 : size;
    for (size_t at = 0; at + sizeof(address_t) <= size; at += sizeof(address_t)) {
        address_t address = integer(value + at);
        enum memory_kind kind = memory_at(address).kind;
        /* Further back in a structure may be what an earlier one has left on the stack. */
        if (kind == FREED && is_argument && !at) {
            report("a kernel's argument that points to freed memory", address);
        } else if (kind != NOT_KNOWN && launch->pointer_count < MOST_POINTERS) {
            launch->pointers[launch->pointer_count++] = address;
        }
    }
}

/* Copies what can be read of some bytes, page by page; returns how many. */
static size_t readable(const void *from, void *to, size_t size)
{
    size_t done = 0;
    while (done < size) {
        uintptr_t at = (uintptr_t)from + done;
        size_t length = PAGE - at % PAGE < size - done ? PAGE - at % PAGE : size - done;
        struct iovec there = {(void *)at, length}, here = {(char *)to + done, length};
        if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)length) {
            break;
        }
        done += length;
    }
    return done;
}

/* A kernel whose code does not tell its parameters: it may be compressed by zstd. ``values`` has the
   places of the arguments, and an end that is not marked. So places are taken until one cannot be
   read, and of each the bytes up to the next. These may be more than the arguments, and not less. */
static void point_where_readable(struct launch *launch, void **values)
{
    char *places[MOST_PLACES], bytes[PAGE]; /* an argument is not larger */
    size_t count = 0;
    while (count < MOST_PLACES && readable(values + count, &places[count], sizeof *places) == sizeof *places
           && readable(places[count], bytes, 1)) {
        count++;
    }
    launch->is_opaque = !count;
    for (size_t i = 0; i < count; i++) {
        size_t size = sizeof bytes;
        for (size_t j = 0; j < count; j++) {
            bool is_behind = places[j] > places[i] && (size_t)(places[j] - places[i]) < size;
            size = is_behind ? (size_t)(places[j] - places[i]) : size;
        }
        point(launch, bytes, readable(places[i], bytes, size), false);
    }
}

static int queue_kernel(struct kernel *kernel, void *handle, void **values, void **extra)
{
    NEED_STREAM(stream, handle);
    if (stream_device(stream) != current_device()) {
        return INVALID_HANDLE;
    }
    const char *packed = NULL;
    size_t packed_bytes = 0;
    for (int i = 0; extra && extra[i]; i += 2) {
        packed = (uintptr_t)extra[i] == 1 ? extra[i + 1] : packed;
        packed_bytes = (uintptr_t)extra[i] == 2 ? *(size_t *)extra[i + 1] : packed_bytes;
    }
    struct launch *launch = calloc(1, sizeof *launch + MOST_POINTERS * sizeof *launch->pointers);
    launch->device = current_device();
    launch->duration_ns = kernel_ns(kernel->name);
    bool is_known = is_sleep(kernel, values, &launch->duration_ns) || is_copy_of_cupy(kernel, launch, values);
    if (!is_known && packed) {
        point(launch, packed, packed_bytes, true);
    } else if (!is_known && kernel->count >= 0) {
        for (int i = 0; i < kernel->count; i++) {
            point(launch, values[i], kernel->parameters[i].size, true);
        }
    } else if (!is_known && values) {
        point_where_readable(launch, values);
    }
    size_t used = sizeof *launch + launch->pointer_count * sizeof *launch->pointers;
    launch = realloc(launch, used);
    submit_kernel(stream, perform_kernel, launch);
    return SUCCESS;
}

API cuLaunchKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void *handle, void **parameters, void **extra)
{
    return queue_kernel(kernel, handle, parameters, extra);
}

struct launch_config { /* CUlaunchConfig */
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void *handle;
    void *attributes;
    unsigned attribute_count;
};

API cuLaunchKernelEx(const struct launch_config *config, struct kernel *kernel, void **parameters, void **extra)
{
    return queue_kernel(kernel, config->handle, parameters, extra);
}
