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
enum { ALIGNMENT = 512, ADDRESSES = 4 };

/* Sorted by address; no two overlap. */
struct table {
    struct allocation *at;
    size_t count, room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table all, marked, written; /* what is allocated, poisoned, and known */
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

static uintptr_t end_of(const struct allocation *one) { return one->address + one->size_bytes; }

/* The place of the first one that ends behind an address. */
static size_t place_of(const struct table *table, uintptr_t address)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (end_of(&table->at[middle]) <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void insert(struct table *table, struct allocation one)
{
    if (table->count == table->room) {
        table->room = table->room ? 2 * table->room : 256;
        table->at = realloc(table->at, table->room * sizeof *table->at);
    }
    struct allocation *place = table->at + place_of(table, one.address);
    memmove(place + 1, place, (size_t)(table->at + table->count++ - place) * sizeof *place);
    one.id = next_id++;
    *place = one;
}

static void take_out(struct table *table, struct allocation *one)
{
    memmove(one, one + 1, (size_t)(table->at + --table->count - one) * sizeof *one);
}

/* What begins before an end and ends behind an address, the first if there are several; or null. */
static struct allocation *first_in(const struct table *table, uintptr_t address, uintptr_t end)
{
    size_t place = place_of(table, address);
    return place < table->count && table->at[place].address < end ? &table->at[place] : NULL;
}

static struct allocation *found(uintptr_t address) { return first_in(&all, address, address + 1); }

static bool is_device(const struct allocation *one, int device)
{
    return one->kind == DEVICE && one->device == device;
}

/* --- Poison, and known contents: ranges that are apart ------------------------------------------ */

static void put_range(struct table *table, uintptr_t start, uintptr_t end)
{
    if (start < end) {
        insert(table, (struct allocation){.address = start, .size_bytes = end - start});
    }
}

static void cut(struct table *table, uintptr_t start, uintptr_t end)
{
    struct allocation *one;
    while ((one = first_in(table, start, end))) {
        uintptr_t one_start = one->address, one_end = end_of(one);
        take_out(table, one);
        put_range(table, one_start, start);
        put_range(table, end, one_end);
    }
}

/* Memory that is freed is neither. */
static void forget(uintptr_t start, uintptr_t end)
{
    cut(&marked, start, end);
    cut(&written, start, end);
}

static void mark(uintptr_t start, uintptr_t end)
{
    forget(start, end);
    struct allocation *block = found(start);
    if (!block || (block->kind != PINNED && block->kind != REGISTERED)) {
        put_range(&marked, start, end); /* the host may write its own memory without our knowing */
    }
}

void poison(uintptr_t address, size_t size_bytes)
{
    LOCK(lock);
    mark(address, address + size_bytes);
}

/* How much a kernel writes behind a place is not known. What was written there, as one array, is
   lost, and so is all behind it up to what is known again. */
void poison_place(uintptr_t address)
{
    LOCK(lock);
    struct allocation *block = found(address), *array = first_in(&written, address, address + 1);
    if (block) {
        uintptr_t end = array ? end_of(array) : address + 1, block_end = end_of(block);
        struct allocation *next = first_in(&written, end, block_end);
        mark(address, next ? next->address : block_end);
    }
}

void poison_all(struct device *device)
{
    LOCK(lock);
    for (size_t i = 0; i < all.count; i++) {
        if (all.at[i].kind == MANAGED || is_device(&all.at[i], device->ordinal)) {
            mark(all.at[i].address, end_of(&all.at[i]));
        }
    }
}

/* Bytes that come from the end of what is known before them are of the same array. */
void unpoison(uintptr_t address, size_t size_bytes, uintptr_t from)
{
    LOCK(lock);
    struct allocation *before = first_in(&written, address - 1, address);
    bool is_same = before && from >= before->address && from < end_of(before);
    uintptr_t start = is_same ? before->address : address;
    forget(start, address + size_bytes);
    if (found(address)) { /* memory of the host that is not pinned is used again without our knowing */
        put_range(&written, start, address + size_bytes);
    }
}

/* For dlprof: whether values in device memory may depend on a kernel that was not performed. */
EXPORTED int dlprofSimulatedPoisoned(uintptr_t address, size_t size_bytes)
{
    LOCK(lock);
    return first_in(&marked, address, address + size_bytes) != NULL;
}

static atomic_int reads;

void poison_reached_host(void) { reads++; }

/* For dlprof: how many copies to the host have read such memory. */
EXPORTED int dlprofSimulatedPoisonReads(void) { return reads; }

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

static size_t created[MOST_DEVICES]; /* bytes of physical memory */

/* The lock is held. */
static size_t in_use(int device)
{
    size_t size_bytes = created[device];
    for (size_t i = 0; i < all.count; i++) {
        bool is_own = is_device(&all.at[i], device) && !all.at[i].physical;
        size_bytes += is_own ? all.at[i].size_bytes : 0;
    }
    return size_bytes;
}

size_t memory_in_use(int device)
{
    LOCK(lock);
    return in_use(device);
}

/* The first gap that is large enough. */
static int take(struct device *device, size_t size_bytes, size_t alignment, enum memory_kind kind,
                uintptr_t *address)
{
    if (!size_bytes) {
        return INVALID_VALUE;
    }
    LOCK(lock);
    size_t limit = kind == DEVICE ? settings()->memory_bytes : SIZE_MAX;
    if (!reserve(device->ordinal) || (kind == DEVICE && in_use(device->ordinal) + size_bytes > limit)) {
        return OUT_OF_MEMORY;
    }
    uintptr_t first = visible[device->ordinal], end = first + ADDRESSES * settings()->memory_bytes;
    uintptr_t start = (first + alignment - 1) / alignment * alignment;
    for (size_t i = place_of(&all, first); i < all.count && all.at[i].address < start + size_bytes; i++) {
        start = (end_of(&all.at[i]) + alignment - 1) / alignment * alignment;
    }
    if (start >= end || end - start < size_bytes) {
        return OUT_OF_MEMORY;
    }
    insert(&all, (struct allocation){start, size_bytes, kind, device->ordinal});
    *address = start;
    return SUCCESS;
}

int memory_allocate(struct device *device, size_t size_bytes, uintptr_t *address)
{
    return take(device, size_bytes, ALIGNMENT, DEVICE, address);
}

int memory_free(uintptr_t address)
{
    LOCK(lock);
    struct allocation *one = found(address);
    if (!one || one->address != address || one->physical || (one->kind != DEVICE && one->kind != MANAGED)) {
        return INVALID_VALUE;
    }
    if (one->kind == MANAGED) {
        free((void *)address);
    } else if (one->size_bytes >= 16 * PAGE) { /* give whole pages back */
        uintptr_t first = (address + PAGE - 1) / PAGE * PAGE, last = end_of(one) / PAGE * PAGE;
        madvise(bytes_of[one->device] + (first - visible[one->device]), last - first, MADV_DONTNEED);
    }
    forget(address, end_of(one));
    take_out(&all, one);
    return SUCCESS;
}

void *memory_bytes(uintptr_t address, size_t size_bytes)
{
    LOCK(lock);
    int device = device_of(address);
    if (device < 0) {
        return (void *)address;
    }
    uintptr_t at = address;
    for (size_t i = place_of(&all, at); i < all.count && all.at[i].kind == DEVICE && all.at[i].address <= at; i++) {
        at = end_of(&all.at[i]); /* parts may be mapped side by side */
    }
    return at >= address + size_bytes && at > address ? bytes_of[device] + (address - visible[device]) : NULL;
}

/* --- Virtual memory ---------------------------------------------------------------------------- */

struct physical {
    int device;
    size_t size_bytes;
    int uses; /* handles, and the mapping */
    bool is_mapped;
};

int physical_new(int device, size_t size_bytes, struct physical **made)
{
    LOCK(lock);
    if (in_use(device) + size_bytes > settings()->memory_bytes) {
        return OUT_OF_MEMORY;
    }
    created[device] += size_bytes;
    *made = malloc(sizeof **made);
    **made = (struct physical){device, size_bytes, 1, false};
    return SUCCESS;
}

/* The lock is held. */
static void give_back(struct physical *one)
{
    if (--one->uses == 0) {
        created[one->device] -= one->size_bytes;
        free(one);
    }
}

int physical_release(struct physical *one)
{
    LOCK(lock);
    give_back(one);
    return SUCCESS;
}

int physical_at(uintptr_t address, struct physical **made)
{
    LOCK(lock);
    struct allocation *owner = found(address);
    *made = owner ? owner->physical : NULL;
    return *made ? (*made)->uses++, SUCCESS : INVALID_VALUE;
}

int address_reserve(struct device *device, size_t size_bytes, size_t alignment, uintptr_t *address)
{
    return take(device, size_bytes, alignment > GRANULE ? alignment : GRANULE, RESERVED, address);
}

/* Gives a part of what is reserved memory. */
int address_map(uintptr_t address, size_t size_bytes, struct physical *made)
{
    LOCK(lock);
    struct allocation *owner = found(address);
    uintptr_t end = address + size_bytes;
    if (size_bytes != made->size_bytes || made->is_mapped) {
        return NOT_SUPPORTED;
    }
    if (!owner || owner->kind != RESERVED || end > end_of(owner)) {
        return INVALID_VALUE;
    }
    struct allocation whole = *owner;
    take_out(&all, owner);
    insert(&all, (struct allocation){address, size_bytes, DEVICE, whole.device, .physical = made});
    if (address > whole.address) {
        insert(&all, (struct allocation){whole.address, address - whole.address, RESERVED, whole.device});
    }
    if (end < end_of(&whole)) {
        insert(&all, (struct allocation){end, end_of(&whole) - end, RESERVED, whole.device});
    }
    made->uses++, made->is_mapped = true;
    forget(address, end);
    return SUCCESS;
}

int address_unmap(uintptr_t address, size_t size_bytes)
{
    LOCK(lock);
    int status = INVALID_VALUE;
    for (size_t i = place_of(&all, address); i < all.count && all.at[i].address < address + size_bytes; i++) {
        if (all.at[i].physical) {
            all.at[i].physical->is_mapped = false;
            give_back(all.at[i].physical);
            all.at[i].physical = NULL, all.at[i].kind = RESERVED;
            status = SUCCESS;
        }
    }
    return status;
}

int address_free(uintptr_t address, size_t size_bytes)
{
    LOCK(lock);
    struct allocation *one;
    while ((one = first_in(&all, address, address + size_bytes))) {
        if (one->kind != RESERVED) {
            return INVALID_VALUE; /* it is still mapped */
        }
        take_out(&all, one);
    }
    return SUCCESS;
}

/* --- Memory of the host ------------------------------------------------------------------------ */

int host_allocate(size_t size_bytes, enum memory_kind kind, int device, unsigned flags, void **address)
{
    if (!size_bytes) {
        return INVALID_VALUE;
    }
    if (posix_memalign(address, PAGE, size_bytes)) {
        return OUT_OF_MEMORY;
    }
    LOCK(lock);
    insert(&all, (struct allocation){(uintptr_t)*address, size_bytes, kind, device, flags});
    return SUCCESS;
}

int host_register(void *address, size_t size_bytes, unsigned flags)
{
    LOCK(lock);
    if (found((uintptr_t)address)) {
        return ALREADY_REGISTERED;
    }
    insert(&all, (struct allocation){(uintptr_t)address, size_bytes, REGISTERED, 0, flags});
    return SUCCESS;
}

int host_forget(void *address, enum memory_kind kind)
{
    LOCK(lock);
    struct allocation *one = found((uintptr_t)address);
    if (!one || one->address != (uintptr_t)address || one->kind != kind) {
        return kind == REGISTERED ? NOT_REGISTERED : INVALID_VALUE;
    }
    forget(one->address, end_of(one));
    take_out(&all, one);
    if (kind == PINNED) {
        free(address);
    }
    return SUCCESS;
}

struct allocation memory_at(uintptr_t address)
{
    LOCK(lock);
    struct allocation *owner = found(address);
    int device = device_of(address);
    return owner && owner->kind != RESERVED
        ? *owner : (struct allocation){address, 0, device >= 0 ? FREED : NOT_KNOWN, device};
}

/* --- Report ------------------------------------------------------------------------------------ */

static _Atomic(const char *) last_report;

/* For dlprof: what was reported last, once; null if nothing was since. */
EXPORTED const char *dlprofSimulatedReport(void) { return atomic_exchange(&last_report, NULL); }

/* Written by one call, also from a signal's handler. */
void report(const char *what, uint64_t value)
{
    last_report = what;
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
    for (size_t i = 0; i < all.count; i++) {
        host_bytes += all.at[i].kind == PINNED || all.at[i].kind == MANAGED ? all.at[i].size_bytes : 0;
    }
    report("device memory that was not freed, in bytes", size_bytes);
    report("pinned and managed memory that was not freed, in bytes", host_bytes);
    report("streams that were not destroyed", streams_left());
    report("events that were not destroyed", events_left());
}
