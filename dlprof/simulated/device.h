/* The devices, their memory, and what the environment asks of the simulation. */

#ifndef DLPROF_DEVICE_H
#define DLPROF_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_DEVICES = 8 };

enum memory_kind { NOT_KNOWN, DEVICE, PINNED, REGISTERED, MANAGED, RESERVED, FREED };

enum { PAGE = 4096, GRANULE = 2 << 20 }; /* the second of memory that is mapped */

#define EXPORTED __attribute__((visibility("default")))

/* Holds a lock to the end of the block. */
static inline pthread_mutex_t *locked(pthread_mutex_t *lock) { return pthread_mutex_lock(lock), lock; }
static inline void unlock(pthread_mutex_t **held) { pthread_mutex_unlock(*held); }
#define LOCK(lock) __attribute__((cleanup(unlock), unused)) pthread_mutex_t *held_ = locked(&lock)

struct device {
    int ordinal;
    struct stream *legacy; /* made when it is first used */
    struct work *barrier;  /* work of any stream runs after it */
    int sticky_error;      /* once the device has failed, every call says so */
    unsigned context_flags;
    int retained;          /* how often its context was asked for */
};

/* Read once from the environment. */
struct settings {
    int devices;            /* DLPROF_SIMULATED_DEVICES: 1 */
    size_t memory_bytes;    /* DLPROF_SIMULATED_MEMORY: 8 GiB for each device */
    unsigned seed;          /* DLPROF_SIMULATED_SEED: 1 */
    uint64_t delay_ns;      /* DLPROF_SIMULATED_DELAY_NS: 0, the longest delay before work */
    const char *kernel_ns;  /* DLPROF_SIMULATED_KERNEL_NS: "200000", or "200000,gemm=5000000,…" */
    const char *report;     /* DLPROF_SIMULATED_REPORT: a file for leaks and misuse, else none */
};

struct allocation {
    uintptr_t address;
    size_t size_bytes;
    enum memory_kind kind;
    int device;
    unsigned flags;
    uint64_t id;
    struct physical *physical; /* what is mapped there */
};

const struct settings *settings(void);
struct device *device_at(int ordinal); /* null beyond the last */

/* Device memory. The address that a framework sees cannot be read or written by the host, as on a
   real device. Another mapping of the same bytes is for the device's own threads. */
int memory_allocate(struct device *device, size_t size_bytes, uintptr_t *address);
int memory_free(uintptr_t address);
size_t memory_in_use(int device);
/* Addresses without memory, physical memory, and one mapped to the other, once and as a whole. */
int address_reserve(struct device *device, size_t size_bytes, size_t alignment, uintptr_t *address);
int address_map(uintptr_t address, size_t size_bytes, struct physical *made);
int address_unmap(uintptr_t address, size_t size_bytes);
int address_free(uintptr_t address, size_t size_bytes);
int physical_new(int device, size_t size_bytes, struct physical **made);
int physical_at(uintptr_t address, struct physical **made); /* a further handle */
int physical_release(struct physical *one);
/* Where the bytes are for the device's threads; null for device memory that is not allocated. Host
   memory is returned as it is. */
void *memory_bytes(uintptr_t address, size_t size_bytes);

/* Memory of the host that the device can reach. */
int host_allocate(size_t size_bytes, enum memory_kind kind, int device, unsigned flags, void **address);
int host_register(void *address, size_t size_bytes, unsigned flags);
int host_forget(void *address, enum memory_kind kind);

/* What an address belongs to; NOT_KNOWN for pageable memory, FREED for device memory without owner. */
struct allocation memory_at(uintptr_t address);

/* How long a kernel takes whose duration is not known: by the first part that is in its name. */
uint64_t kernel_ns(const char *name);

/* Poisoned memory holds what a kernel that was not performed should have written, or copies of it. */
void poison(uintptr_t address, size_t size_bytes);
void poison_place(uintptr_t address);
void poison_all(struct device *device);
void unpoison(uintptr_t address, size_t size_bytes, uintptr_t from);
EXPORTED int dlprofSimulatedPoisoned(uintptr_t address, size_t size_bytes);
void poison_reached_host(void);

/* A line for the report. */
void report(const char *what, uint64_t value);
/* The same, and the device fails from now on. */
void misuse(struct device *device, const char *what, uintptr_t address);
/* Reports an access of the host to device memory, before the process dies of it. */
void watch_host(void);

#endif
