#define _GNU_SOURCE
#include "device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "errors.h"
#include "queue.h"

enum { ALIGNMENT = 512, PAGE = 4096 };

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
    asked.kernel_ns = number("DLPROF_SIMULATED_KERNEL_NS", 200000);
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

/* Reserved at once, and given memory by the system page by page. */
static bool reserve(int device)
{
    if (visible[device]) {
        return true;
    }
    size_t size_bytes = settings()->memory_bytes;
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
        if (visible[i] && address >= visible[i] && address - visible[i] < settings()->memory_bytes) {
            return i;
        }
    }
    return -1;
}

int memory_allocate(struct device *device, size_t size_bytes, uintptr_t *address)
{
    if (!size_bytes) {
        return INVALID_VALUE;
    }
    size_t whole = (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    int status = OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    if (reserve(device->ordinal)) {
        uintptr_t start = visible[device->ordinal], end = start + settings()->memory_bytes;
        for (size_t i = place_of(start); i < count && table[i].address < end; i++) {
            if (table[i].address - start >= whole) {
                break; /* the first gap that is large enough */
            }
            start = table[i].address + (table[i].size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
        if (end - start >= whole) {
            insert((struct allocation){start, size_bytes, DEVICE, device->ordinal, 0, 0});
            *address = start;
            status = SUCCESS;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int memory_free(uintptr_t address)
{
    pthread_mutex_lock(&lock);
    struct allocation *allocation = found(address);
    bool is_known = allocation && allocation->address == address
        && (allocation->kind == DEVICE || allocation->kind == MANAGED);
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
        take_out(allocation);
    }
    pthread_mutex_unlock(&lock);
    free(managed);
    return is_known ? SUCCESS : INVALID_VALUE;
}

size_t memory_in_use(int device)
{
    size_t size_bytes = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        size_bytes += table[i].kind == DEVICE && table[i].device == device ? table[i].size_bytes : 0;
    }
    pthread_mutex_unlock(&lock);
    return size_bytes;
}

void *memory_bytes(uintptr_t address, size_t size_bytes)
{
    void *bytes = (void *)address;
    pthread_mutex_lock(&lock);
    int device = device_of(address);
    if (device >= 0) {
        struct allocation *owner = found(address);
        bool is_inside = owner && address + size_bytes <= owner->address + owner->size_bytes;
        bytes = is_inside ? bytes_of[device] + (address - visible[device]) : NULL;
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
    struct allocation result = owner ? *owner : none;
    pthread_mutex_unlock(&lock);
    return result;
}

static void report(const char *what, uint64_t number_of)
{
    if (settings()->report) {
        FILE *file = fopen(settings()->report, "a");
        if (file) {
            fprintf(file, "{\"what\": \"%s\", \"value\": %llu}\n", what, (unsigned long long)number_of);
            fclose(file);
        }
    }
}

void misuse(struct device *device, const char *what, uintptr_t address)
{
    device->sticky_error = ILLEGAL_ADDRESS;
    report(what, address);
}

__attribute__((destructor)) static void report_what_is_left(void)
{
    size_t size_bytes = 0;
    for (int i = 0; i < settings()->devices; i++) {
        size_bytes += memory_in_use(i);
    }
    report("device memory that was not freed, in bytes", size_bytes);
    report("streams that were not destroyed", streams_left());
    report("events that were not destroyed", events_left());
}
