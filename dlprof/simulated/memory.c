#define _GNU_SOURCE
#include "device.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "errors.h"
#include "queue.h"

/* More addresses than memory: they may be reserved long before there is memory behind them. */
enum { ALIGNMENT = 512, PAGE = 4096, ADDRESSES = 4, MAPPED = 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *table; /* sorted by address */
static size_t count, room;
static uint64_t next_id = 1;

static struct device devices[MOST_DEVICES];
static uintptr_t visible[MOST_DEVICES]; /* addresses that frameworks see */
static char *bytes_of[MOST_DEVICES];    /* the same bytes for the device's threads */

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static struct settings asked;

static void read_settings(void)
{
    asked.devices = (int)number("DLPROF_SIMULATED_DEVICES", 1);
    asked.devices = asked.devices > MOST_DEVICES ? MOST_DEVICES : asked.devices;
    asked.memory_bytes = number("DLPROF_SIMULATED_MEMORY", 8ull << 30) / PAGE * PAGE;
    asked.seed = (unsigned)number("DLPROF_SIMULATED_SEED", 1);
    asked.delay_ns = number("DLPROF_SIMULATED_DELAY_NS", 0);
    asked.kernel_ns = getenv("DLPROF_SIMULATED_KERNEL_NS");
    asked.report = getenv("DLPROF_SIMULATED_REPORT");
    for (int i = 0; i < asked.devices; i++) {
        devices[i].ordinal = i;
    }
}

const struct settings *settings(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_settings);
    return &asked;
}

uint64_t kernel_ns(const char *name)
{
    const char *text = settings()->kernel_ns;
    uint64_t duration_ns = text && *text ? strtoull(text, NULL, 10) : 200000;
    while (text && (text = strchr(text, ','))) {
        const char *value = strchr(++text, '=');
        size_t length = value ? (size_t)(value - text) : 0;
        if (length && memmem(name, strlen(name), text, length)) {
            return strtoull(value + 1, NULL, 10);
        }
    }
    return duration_ns;
}

struct device *device_at(int ordinal)
{
    return ordinal >= 0 && ordinal < settings()->devices ? &devices[ordinal] : NULL;
}

/* The place of the first allocation that ends behind an address. */
static size_t place_of(uintptr_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].address + table[middle].size_bytes <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct allocation *found(uintptr_t address)
{
    size_t place = place_of(address);
    return place < count && table[place].address <= address ? &table[place] : NULL;
}

static void insert(struct allocation allocation)
{
    if (count == room) {
        room = room ? 2 * room : 256;
        table = realloc(table, room * sizeof *table);
    }
    size_t place = place_of(allocation.address);
    memmove(table + place + 1, table + place, (count - place) * sizeof *table);
    allocation.id = next_id++;
    table[place] = allocation;
    count++;
}

static void take_out(struct allocation *allocation)
{
    size_t place = (size_t)(allocation - table);
    memmove(table + place, table + place + 1, (count - place - 1) * sizeof *table);
    count--;
}

/* --- Poison: ranges that are apart, sorted by address ----------------------------------------- */

static struct range { uintptr_t start, end; } *ranges;
static size_t range_count, range_room;

/* The place of the first range that ends behind an address. */
static size_t range_at(uintptr_t address)
{
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void put_range(size_t place, struct range range)
{
    if (range_count == range_room) {
        range_room = range_room ? 2 * range_room : 64;
        ranges = realloc(ranges, range_room * sizeof *ranges);
    }
    memmove(ranges + place + 1, ranges + place, (range_count++ - place) * sizeof *ranges);
    ranges[place] = range;
}

static void cut(uintptr_t start, uintptr_t end)
{
    size_t first = range_at(start), last = first;
    while (last < range_count && ranges[last].start < end) {
        last++;
    }
    if (first == last) {
        return;
    }
    struct range before = {ranges[first].start, start}, behind = {end, ranges[last - 1].end};
    memmove(ranges + first, ranges + last, (range_count - last) * sizeof *ranges);
    range_count -= last - first;
    if (behind.start < behind.end) {
        put_range(first, behind);
    }
    if (before.start < before.end) {
        put_range(first, before);
    }
}

static void mark(uintptr_t start, uintptr_t end)
{
    cut(start, end);
    put_range(range_at(start), (struct range){start, end});
}

void poison(uintptr_t address, size_t size_bytes)
{
    pthread_mutex_lock(&lock);
    mark(address, address + size_bytes);
    pthread_mutex_unlock(&lock);
}

/* How much a kernel writes behind a place is not known. More than an element is marked: a write to
   the first element alone leaves a mark. No allocator has two arrays in one block of 256 bytes. */
void poison_place(uintptr_t address)
{
    uintptr_t end = address + 64, block_end = (address / 256 + 1) * 256;
    poison(address, (end < block_end ? end : block_end) - address);
}

void poison_all(struct device *device)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        if (table[i].kind == MANAGED || (table[i].kind == DEVICE && table[i].device == device->ordinal)) {
            mark(table[i].address, table[i].address + table[i].size_bytes);
        }
    }
    pthread_mutex_unlock(&lock);
}

void unpoison(uintptr_t address, size_t size_bytes)
{
    pthread_mutex_lock(&lock);
    cut(address, address + size_bytes);
    pthread_mutex_unlock(&lock);
}

bool poisoned(uintptr_t address, size_t size_bytes)
{
    pthread_mutex_lock(&lock);
    size_t place = range_at(address);
    bool is_poisoned = place < range_count && ranges[place].start < address + size_bytes;
    pthread_mutex_unlock(&lock);
    return is_poisoned;
}

/* For dlprof: whether values in device memory may depend on a kernel that was not performed. */
__attribute__((visibility("default"))) int dlprofSimulatedPoisoned(uintptr_t address, size_t size_bytes)
{
    return poisoned(address, size_bytes);
}

static atomic_int reads;

void poison_reached_host(void) { reads++; }

/* For dlprof: how many copies to the host have read such memory. */
__attribute__((visibility("default"))) int dlprofSimulatedPoisonReads(void) { return reads; }

/* --- Device memory ----------------------------------------------------------------------------- */

/* Reserved at once, and given memory by the system page by page. */
static bool reserve(int device)
{
    if (visible[device]) {
        return true;
    }
    size_t size_bytes = ADDRESSES * settings()->memory_bytes;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *seen = mmap(NULL, size_bytes, PROT_NONE, flags, -1, 0);
    void *bytes = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (seen == MAP_FAILED || bytes == MAP_FAILED) {
        return false;
    }
    visible[device] = (uintptr_t)seen;
    bytes_of[device] = bytes;
    return true;
}

static int device_of(uintptr_t address)
{
    for (int i = 0; i < settings()->devices; i++) {
        if (visible[i] && address >= visible[i] && address - visible[i] < ADDRESSES * settings()->memory_bytes) {
            return i;
        }
    }
    return -1;
}

static size_t created[MOST_DEVICES]; /* bytes that cuMemCreate made */

/* The lock is held. */
static size_t in_use(int device)
{
    size_t size_bytes = created[device];
    for (size_t i = 0; i < count; i++) {
        bool is_own = table[i].kind == DEVICE && table[i].device == device && table[i].flags != MAPPED;
        size_bytes += is_own ? table[i].size_bytes : 0;
    }
    return size_bytes;
}

size_t memory_in_use(int device)
{
    pthread_mutex_lock(&lock);
    size_t size_bytes = in_use(device);
    pthread_mutex_unlock(&lock);
    return size_bytes;
}

/* The first gap that is large enough. */
static int take(struct device *device, size_t size_bytes, size_t alignment, enum memory_kind kind,
                uintptr_t *address)
{
    size_t limit = kind == DEVICE ? settings()->memory_bytes : SIZE_MAX;
    int status = OUT_OF_MEMORY;
    if (!size_bytes) {
        return INVALID_VALUE;
    }
    pthread_mutex_lock(&lock);
    if (reserve(device->ordinal) && (kind != DEVICE || in_use(device->ordinal) + size_bytes <= limit)) {
        uintptr_t first = visible[device->ordinal], end = first + ADDRESSES * settings()->memory_bytes;
        uintptr_t start = (first + alignment - 1) / alignment * alignment;
        for (size_t i = place_of(first); i < count && table[i].address < end; i++) {
            if (table[i].address >= start + size_bytes) {
                break;
            }
            uintptr_t behind = table[i].address + table[i].size_bytes;
            start = (behind + alignment - 1) / alignment * alignment;
        }
        if (start < end && end - start >= size_bytes) {
            insert((struct allocation){start, size_bytes, kind, device->ordinal, 0, 0});
            *address = start;
            status = SUCCESS;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int memory_allocate(struct device *device, size_t size_bytes, uintptr_t *address)
{
    return take(device, size_bytes, ALIGNMENT, DEVICE, address);
}

int address_reserve(struct device *device, size_t size_bytes, size_t alignment, uintptr_t *address)
{
    return take(device, size_bytes, alignment > GRANULE ? alignment : GRANULE, RESERVED, address);
}

int physical_change(int device, size_t size_bytes, bool is_new)
{
    pthread_mutex_lock(&lock);
    bool fits = !is_new || in_use(device) + size_bytes <= settings()->memory_bytes;
    created[device] += !fits ? 0 : is_new ? size_bytes : -size_bytes;
    pthread_mutex_unlock(&lock);
    return fits ? SUCCESS : OUT_OF_MEMORY;
}

/* Gives a part of what is reserved memory, or takes it away. */
int address_map(uintptr_t address, size_t size_bytes, bool is_mapped)
{
    pthread_mutex_lock(&lock);
    struct allocation *owner = found(address);
    enum memory_kind before = is_mapped ? RESERVED : DEVICE;
    bool is_inside = owner && owner->kind == before && (is_mapped || owner->flags == MAPPED)
        && address + size_bytes <= owner->address + owner->size_bytes;
    if (is_inside) {
        struct allocation whole = *owner;
        uintptr_t end = whole.address + whole.size_bytes;
        take_out(owner);
        struct allocation part = whole;
        part.address = address, part.size_bytes = size_bytes;
        part.kind = is_mapped ? DEVICE : RESERVED, part.flags = is_mapped ? MAPPED : 0;
        insert(part);
        if (address > whole.address) {
            part = whole;
            part.size_bytes = address - whole.address;
            insert(part);
        }
        if (address + size_bytes < end) {
            part = whole;
            part.address = address + size_bytes, part.size_bytes = end - part.address;
            insert(part);
        }
        cut(address, address + size_bytes);
    }
    pthread_mutex_unlock(&lock);
    return is_inside ? SUCCESS : INVALID_VALUE;
}

int address_free(uintptr_t address, size_t size_bytes)
{
    int status = SUCCESS;
    pthread_mutex_lock(&lock);
    for (size_t i = place_of(address); i < count && table[i].address < address + size_bytes; i++) {
        status = table[i].kind == RESERVED ? status : INVALID_VALUE; /* it is still mapped */
    }
    while (!status && place_of(address) < count && table[place_of(address)].address < address + size_bytes) {
        take_out(&table[place_of(address)]);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int memory_free(uintptr_t address)
{
    pthread_mutex_lock(&lock);
    struct allocation *allocation = found(address);
    bool is_known = allocation && allocation->address == address
        && ((allocation->kind == DEVICE && allocation->flags != MAPPED) || allocation->kind == MANAGED);
    void *managed = NULL;
    if (is_known) {
        int device = allocation->device;
        if (allocation->kind == MANAGED) {
            managed = (void *)address;
        } else if (allocation->size_bytes >= 16 * PAGE) { /* give whole pages back */
            uintptr_t first = (address + PAGE - 1) / PAGE * PAGE;
            uintptr_t last = (address + allocation->size_bytes) / PAGE * PAGE;
            madvise(bytes_of[device] + (first - visible[device]), last - first, MADV_DONTNEED);
        }
        cut(address, address + allocation->size_bytes);
        take_out(allocation);
    }
    pthread_mutex_unlock(&lock);
    free(managed);
    return is_known ? SUCCESS : INVALID_VALUE;
}

void *memory_bytes(uintptr_t address, size_t size_bytes)
{
    void *bytes = (void *)address;
    pthread_mutex_lock(&lock);
    int device = device_of(address);
    if (device >= 0) {
        uintptr_t at = address;
        for (size_t i = place_of(at); i < count && table[i].kind == DEVICE && table[i].address <= at; i++) {
            at = table[i].address + table[i].size_bytes; /* parts may be mapped side by side */
        }
        bytes = at >= address + size_bytes && at > address ? bytes_of[device] + (address - visible[device]) : NULL;
    }
    pthread_mutex_unlock(&lock);
    return bytes;
}

static void note(struct allocation allocation)
{
    pthread_mutex_lock(&lock);
    insert(allocation);
    pthread_mutex_unlock(&lock);
}

int host_allocate(size_t size_bytes, enum memory_kind kind, int device, unsigned flags, void **address)
{
    if (!size_bytes) {
        return INVALID_VALUE;
    }
    if (posix_memalign(address, PAGE, size_bytes)) {
        return OUT_OF_MEMORY;
    }
    note((struct allocation){(uintptr_t)*address, size_bytes, kind, device, flags, 0});
    return SUCCESS;
}

int host_register(void *address, size_t size_bytes, unsigned flags)
{
    pthread_mutex_lock(&lock);
    bool is_known = found((uintptr_t)address) != NULL;
    pthread_mutex_unlock(&lock);
    if (is_known) {
        return ALREADY_REGISTERED;
    }
    note((struct allocation){(uintptr_t)address, size_bytes, REGISTERED, 0, flags, 0});
    return SUCCESS;
}

int host_forget(void *address, enum memory_kind kind)
{
    pthread_mutex_lock(&lock);
    struct allocation *allocation = found((uintptr_t)address);
    bool is_known = allocation && allocation->address == (uintptr_t)address && allocation->kind == kind;
    if (is_known) {
        take_out(allocation);
    }
    pthread_mutex_unlock(&lock);
    if (!is_known) {
        return kind == REGISTERED ? NOT_REGISTERED : INVALID_VALUE;
    }
    if (kind == PINNED) {
        free(address);
    }
    return SUCCESS;
}

struct allocation memory_at(uintptr_t address)
{
    pthread_mutex_lock(&lock);
    struct allocation *owner = found(address);
    int device = device_of(address);
    struct allocation none = {address, 0, device >= 0 ? FREED : NOT_KNOWN, device, 0, 0};
    struct allocation result = owner && owner->kind != RESERVED ? *owner : none;
    pthread_mutex_unlock(&lock);
    return result;
}

/* Written by one call, also from a signal's handler. */
void report(const char *what, uint64_t value)
{
    int file = settings()->report ? open(settings()->report, O_WRONLY | O_APPEND | O_CREAT, 0666) : -1;
    if (file >= 0) {
        char line[256];
        int length = snprintf(line, sizeof line, "{\"what\": \"%s\", \"value\": %llu}\n", what,
                              (unsigned long long)value);
        if (write(file, line, (size_t)length) != length) {
            perror(settings()->report);
        }
        close(file);
    }
}

void misuse(struct device *device, const char *what, uintptr_t address)
{
    device->sticky_error = ILLEGAL_ADDRESS;
    report(what, address);
}

/* The host touched memory of the device. The process dies of it, as it would without us. */
static struct sigaction handler_before;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    if (device_of((uintptr_t)info->si_addr) >= 0) {
        report("an access of the host to device memory", (uintptr_t)info->si_addr);
    }
    sigaction(SIGSEGV, &handler_before, NULL); /* the access is done again, and faults again */
}

void watch_host(void)
{
    struct sigaction handler = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &handler, &handler_before);
}

__attribute__((destructor)) static void report_what_is_left(void)
{
    size_t size_bytes = 0;
    for (int i = 0; i < settings()->devices; i++) {
        size_bytes += memory_in_use(i);
    }
    size_t host_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        host_bytes += table[i].kind == PINNED || table[i].kind == MANAGED ? table[i].size_bytes : 0;
    }
    report("device memory that was not freed, in bytes", size_bytes);
    report("pinned and managed memory that was not freed, in bytes", host_bytes);
    report("streams that were not destroyed", streams_left());
    report("events that were not destroyed", events_left());
}
