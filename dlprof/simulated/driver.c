/* libcuda.so.1 without a GPU: the driver API on threads of the host.

   What CUDA's documentation promises, and what happens here:

   | semantic                       | CUDA promises                          | here                                  |
   |--------------------------------|----------------------------------------|---------------------------------------|
   | a stream                       | performs its work in order             | a thread for each stream that is used |
   | legacy default stream          | ordered with all blocking streams      | the same, by dependencies             |
   | non-blocking stream            | ordered with no other                  | the same                              |
   | per-thread default stream      | a blocking stream of the thread        | the same, through handle 2            |
   | event                          | marks a place; recording again moves   | the same                              |
   | cuStreamWaitEvent              | waits for what the event marks now     | the same                              |
   | elapsed time                   | of two events that have been reached   | of the host's clock: no speed         |
   | copy from pageable memory      | returns after staging                  | copies at once to memory of its own   |
   | copy to pageable memory        | returns when it is done                | the same                              |
   | copy from or to pinned memory  | asynchronous                           | the same                              |
   | copy on the device             | asynchronous                           | the same                              |
   | cuMemFree                      | waits for the device                   | the same                              |
   | virtual memory                 | memory is mapped to addresses          | the same, once and as a whole         |
   | stream-ordered allocation      | a capability                           | not offered                           |
   | graphs                         | work is captured and replayed          | not offered                           |
   | host function                  | runs in the stream's order             | the same, on the stream's thread      |
   | a failed device                | every later call fails                 | the same                              |
   | a stream that was destroyed    | nothing, or an invalid handle          | an invalid handle, and reported       |
   | a stream of another device     | no kernel, no record; a wait is right  | the same                              |
   | access to a peer               | is switched on once; copies need none  | the same                              |
   | kernel                         | computes                               | takes time; kernels.c lists which     |
   |                                |                                        | compute. Others poison memory         |
   | device memory                  | the host cannot touch it               | the same: reported, and the process   |
   |                                |                                        | dies                                  |
   | order that nothing demands     | any                                    | with delays, the last comes first     |

   Poison marks memory that a kernel without effect should have written: each place that its
   arguments point to, or the whole device if these cannot be read. Copies carry the marks on. dlprofSimulatedPoisoned(address, bytes) asks for them, dlprofSimulatedPoisonReads() says
   how often they have reached the host.

   Structures and numbers are those of the public header. What has no meaning here returns
   CUDA_ERROR_NOT_SUPPORTED: the stubs of those functions are made when the library is built. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "driver.h"
#include "errors.h"
#include "queue.h"

enum { DRIVER_VERSION = 13000, MOST_CONTEXTS = 64 };

struct context {
    struct device *device;
    unsigned flags;
    int retained;
};

/* --- Contexts: a stack for each thread ------------------------------------------------------- */

static struct context primary[MOST_DEVICES];
static __thread struct context *stack[MOST_CONTEXTS];
static __thread int depth;
static bool is_initialized;

static struct context *current(void) { return depth ? stack[depth - 1] : NULL; }

int usable(void)
{
    if (!is_initialized) {
        return NOT_INITIALIZED;
    }
    return current() ? current()->device->sticky_error : INVALID_CONTEXT;
}

struct device *current_device(void) { return current()->device; }

/* Handles 0 and 1 are the legacy default stream, 2 is that of the thread. Null if there is none. */
struct stream *stream_of(void *handle)
{
    if ((uintptr_t)handle <= 1) {
        return legacy_stream(current()->device);
    }
    if ((uintptr_t)handle == 2) {
        return thread_stream(current()->device);
    }
    if (!stream_exists(handle)) {
        report("a use of a stream that does not exist", (uintptr_t)handle);
        return NULL;
    }
    return handle;
}

API cuInit(unsigned flags)
{
    if (flags) {
        return INVALID_VALUE;
    }
    if (!settings()->devices) {
        return NO_DEVICE;
    }
    for (int i = 0; i < settings()->devices; i++) {
        primary[i].device = device_at(i);
    }
    if (!is_initialized) {
        watch_host();
    }
    is_initialized = true;
    return SUCCESS;
}

API cuDriverGetVersion(int *version)
{
    *version = DRIVER_VERSION;
    return SUCCESS;
}

#define TEXTS(name, number, text, words) {number, text, words},
static const struct { int number; const char *name, *words; } results[] = {RESULTS(TEXTS)};
#undef TEXTS

static int text_of(int result, const char **text, bool is_name)
{
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (results[i].number == result) {
            *text = is_name ? results[i].name : results[i].words;
            return SUCCESS;
        }
    }
    *text = NULL;
    return INVALID_VALUE;
}

API cuGetErrorName(int result, const char **name) { return text_of(result, name, true); }
API cuGetErrorString(int result, const char **words) { return text_of(result, words, false); }

/* --- Devices --------------------------------------------------------------------------------- */

API cuDeviceGetCount(int *count)
{
    *count = settings()->devices;
    return is_initialized ? SUCCESS : NOT_INITIALIZED;
}

API cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return device_at(ordinal) ? SUCCESS : INVALID_DEVICE;
}

API cuDeviceGetName(char *name, int length, int device)
{
    snprintf(name, (size_t)length, "dlprof simulated device");
    return device_at(device) ? SUCCESS : INVALID_DEVICE;
}

API cuDeviceGetUuid(unsigned char *uuid, int device)
{
    memcpy(uuid, "dlprof-simulated", 16);
    uuid[15] = (unsigned char)device;
    return device_at(device) ? SUCCESS : INVALID_DEVICE;
}

API cuDeviceTotalMem(size_t *size_bytes, int device)
{
    *size_bytes = settings()->memory_bytes;
    return device_at(device) ? SUCCESS : INVALID_DEVICE;
}

API cuDeviceGetPCIBusId(char *id, int length, int device)
{
    snprintf(id, (size_t)length, "0000:%02x:00.0", device + 1);
    return device_at(device) ? SUCCESS : INVALID_DEVICE;
}

/* CUdevice_attribute: numbers of the public header. All others are 0: not offered. */
static const struct { int attribute, value; } attributes[] = {
    {1, 1024},      /* threads in a block */
    {2, 1024},      /* x of a block */
    {3, 1024},      /* y of a block */
    {4, 64},        /* z of a block */
    {5, 2147483647}, /* x of a grid */
    {6, 65535},     /* y of a grid */
    {7, 65535},     /* z of a grid */
    {8, 49152},     /* shared memory of a block */
    {9, 65536},     /* constant memory */
    {10, 32},       /* threads in a warp */
    {11, 2147483647}, /* pitch */
    {12, 65536},    /* registers of a block */
    {13, 1755000},  /* clock in kHz */
    {14, 512},      /* alignment of textures */
    {15, 1},        /* copies while it computes */
    {16, 132},      /* multiprocessors */
    {19, 1},        /* maps memory of the host */
    {31, 1},        /* kernels at the same time */
    {36, 2619000},  /* clock of the memory in kHz */
    {37, 5120},     /* width of the memory bus */
    {38, 52428800}, /* L2 cache */
    {39, 2048},     /* threads of a multiprocessor */
    {40, 3},        /* copy engines */
    {41, 1},        /* unified addresses */
    {75, 9},        /* compute capability, major */
    {76, 0},        /* and minor */
    {78, 1},        /* priorities of streams */
    {81, 233472},   /* shared memory of a multiprocessor */
    {82, 65536},    /* registers of a multiprocessor */
    {83, 1},        /* managed memory */
    {97, 232448},   /* shared memory of a block if it is asked for */
    {102, 1},       /* virtual memory */
    {106, 32},      /* blocks of a multiprocessor */
};

API cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 33 ? device + 1 : 0; /* the number on the PCI bus */
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (attributes[i].attribute == attribute) {
            *value = attributes[i].value;
        }
    }
    return device_at(device) ? SUCCESS : INVALID_DEVICE;
}

API cuDeviceComputeCapability(int *major, int *minor, int device)
{
    cuDeviceGetAttribute(major, 75, device);
    return cuDeviceGetAttribute(minor, 76, device);
}

API cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = device != peer && device_at(device) && device_at(peer);
    return SUCCESS;
}

API cuDevicePrimaryCtxRetain(struct context **context, int device)
{
    if (!is_initialized) {
        return NOT_INITIALIZED;
    }
    if (!device_at(device)) {
        return INVALID_DEVICE;
    }
    primary[device].retained++;
    *context = &primary[device];
    return SUCCESS;
}

API cuDevicePrimaryCtxRelease(int device)
{
    primary[device].retained--;
    return SUCCESS;
}

API cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active)
{
    *flags = primary[device].flags;
    *is_active = primary[device].retained > 0;
    return SUCCESS;
}

API cuDevicePrimaryCtxSetFlags(int device, unsigned flags)
{
    primary[device].flags = flags;
    return SUCCESS;
}

API cuCtxCreate_v2(struct context **context, unsigned flags, int device)
{
    if (!device_at(device)) {
        return INVALID_DEVICE;
    }
    *context = calloc(1, sizeof **context);
    (*context)->device = device_at(device);
    (*context)->flags = flags;
    stack[depth++] = *context;
    return SUCCESS;
}

API cuCtxCreate_v4(struct context **context, void *parameters, unsigned flags, int device)
{
    return cuCtxCreate_v2(context, flags, device);
}

API cuCtxDestroy(struct context *context)
{
    if (current() == context) {
        depth--;
    }
    free(context);
    return SUCCESS;
}

API cuCtxPushCurrent(struct context *context)
{
    if (depth == MOST_CONTEXTS) {
        return INVALID_VALUE;
    }
    stack[depth++] = context;
    return SUCCESS;
}

API cuCtxPopCurrent(struct context **context)
{
    if (!depth) {
        return INVALID_CONTEXT;
    }
    depth--;
    if (context) {
        *context = stack[depth];
    }
    return SUCCESS;
}

API cuCtxSetCurrent(struct context *context)
{
    depth -= depth > 0;
    if (context) {
        stack[depth++] = context;
    }
    return SUCCESS;
}

API cuCtxGetCurrent(struct context **context)
{
    *context = current();
    return is_initialized ? SUCCESS : NOT_INITIALIZED;
}

API cuCtxGetDevice(int *device)
{
    if (!current()) {
        return INVALID_CONTEXT;
    }
    *device = current()->device->ordinal;
    return SUCCESS;
}

API cuCtxGetFlags(unsigned *flags)
{
    NEED_CONTEXT;
    *flags = current()->flags;
    return SUCCESS;
}

API cuCtxGetId(struct context *context, unsigned long long *id)
{
    *id = (unsigned long long)(uintptr_t)(context ? context : current());
    return SUCCESS;
}

API cuCtxGetApiVersion(struct context *context, unsigned *version)
{
    *version = DRIVER_VERSION;
    return SUCCESS;
}

API cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (least) {
        *least = 0;
    }
    if (greatest) {
        *greatest = -5;
    }
    return SUCCESS;
}

API cuCtxGetLimit(size_t *value, int limit)
{
    *value = 1024;
    return SUCCESS;
}

API cuCtxSetLimit(int limit, size_t value) { return SUCCESS; }

static bool has_peer[MOST_DEVICES][MOST_DEVICES];

static int peer_access(const struct context *peer, bool is_wanted)
{
    NEED_CONTEXT;
    int here = current()->device->ordinal, there = peer->device->ordinal;
    if (here == there) {
        return INVALID_DEVICE;
    }
    if (has_peer[here][there] == is_wanted) {
        return is_wanted ? PEER_ENABLED : PEER_NOT_ENABLED;
    }
    has_peer[here][there] = is_wanted;
    return SUCCESS;
}

API cuCtxEnablePeerAccess(struct context *peer, unsigned flags)
{
    return flags ? INVALID_VALUE : peer_access(peer, true);
}

API cuCtxDisablePeerAccess(struct context *peer) { return peer_access(peer, false); }

API cuCtxSynchronize(void)
{
    NEED_CONTEXT;
    device_wait(current()->device);
    return usable();
}

/* --- Streams and events ---------------------------------------------------------------------- */

API cuStreamCreateWithPriority(struct stream **stream, unsigned flags, int priority)
{
    NEED_CONTEXT;
    *stream = stream_new(current()->device, flags, priority);
    return SUCCESS;
}

API cuStreamCreate(struct stream **stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

API cuStreamDestroy(struct stream *stream)
{
    stream_destroy(stream);
    return SUCCESS;
}

API cuStreamSynchronize(void *handle)
{
    NEED_STREAM(stream, handle);
    stream_wait(stream);
    return usable();
}

API cuStreamQuery(void *handle)
{
    NEED_STREAM(stream, handle);
    return stream_is_done(stream) ? usable() : NOT_READY;
}

API cuStreamGetFlags(void *handle, unsigned *flags)
{
    NEED_STREAM(stream, handle);
    *flags = stream_flags(stream);
    return SUCCESS;
}

API cuStreamGetPriority(void *handle, int *priority)
{
    NEED_STREAM(stream, handle);
    *priority = stream_priority(stream);
    return SUCCESS;
}

API cuStreamGetCtx(void *handle, struct context **context)
{
    NEED_STREAM(stream, handle);
    *context = &primary[stream_device(stream)->ordinal];
    return SUCCESS;
}

API cuStreamGetDevice(void *handle, int *device)
{
    NEED_STREAM(stream, handle);
    *device = stream_device(stream)->ordinal;
    return SUCCESS;
}

API cuStreamGetId(void *handle, unsigned long long *id)
{
    NEED_STREAM(stream, handle);
    *id = stream_id(stream);
    return SUCCESS;
}

API cuStreamIsCapturing(void *handle, int *status)
{
    *status = 0;
    return SUCCESS;
}

API cuThreadExchangeStreamCaptureMode(int *mode)
{
    *mode = 0;
    return SUCCESS;
}

API cuEventCreate(struct event **event, unsigned flags)
{
    NEED_CONTEXT;
    *event = event_new(current_device(), !(flags & 2)); /* CU_EVENT_DISABLE_TIMING */
    return SUCCESS;
}

API cuEventDestroy(struct event *event)
{
    event_destroy(event);
    return SUCCESS;
}

API cuEventRecord(struct event *event, void *handle)
{
    NEED_STREAM(stream, handle);
    if (stream_device(stream) != event->device) {
        return INVALID_HANDLE;
    }
    event_record(event, stream);
    return SUCCESS;
}

API cuEventRecordWithFlags(struct event *event, void *handle, unsigned flags)
{
    return cuEventRecord(event, handle);
}

API cuStreamWaitEvent(void *handle, struct event *event, unsigned flags)
{
    NEED_STREAM(stream, handle);
    event_order(event, stream);
    return SUCCESS;
}

API cuEventQuery(struct event *event) { return event_is_done(event) ? SUCCESS : NOT_READY; }

API cuEventSynchronize(struct event *event)
{
    event_wait(event);
    return usable();
}

API cuEventElapsedTime(float *time_ms, struct event *start, struct event *end)
{
    if (!start->has_timing || !end->has_timing || !start->recorded || !end->recorded) {
        return INVALID_HANDLE;
    }
    if (!event_is_done(start) || !event_is_done(end)) {
        return NOT_READY;
    }
    *time_ms = (float)((double)(int64_t)(event_ns(end) - event_ns(start)) / 1e6);
    return SUCCESS;
}

struct host_function {
    void (*function)(void *);
    void *data;
};

static void call(void *argument)
{
    struct host_function *host = argument;
    host->function(host->data);
    free(host);
}

API cuLaunchHostFunc(void *handle, void (*function)(void *), void *data)
{
    NEED_STREAM(stream, handle);
    struct host_function *host = malloc(sizeof *host);
    *host = (struct host_function){function, data};
    submit(stream, call, host);
    return SUCCESS;
}

/* --- Memory ---------------------------------------------------------------------------------- */

API cuMemAlloc(address_t *address, size_t size_bytes)
{
    NEED_CONTEXT;
    return memory_allocate(current()->device, size_bytes, address);
}

API cuMemAllocPitch(address_t *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
    *pitch = (width + 511) / 512 * 512;
    return cuMemAlloc(address, *pitch * height);
}

API cuMemFree(address_t address)
{
    NEED_CONTEXT;
    if (!address) {
        return SUCCESS;
    }
    device_wait(current()->device);
    return memory_free(address);
}

/* Virtual memory: memory is made, addresses are reserved, and one is mapped to the other, once. */
struct physical {
    int device;
    size_t size_bytes;
    address_t mapped;
    bool is_released;
};

struct properties { /* the start of CUmemAllocationProp */
    int type, handle_types, location_type, device;
};

API cuMemGetAllocationGranularity(size_t *size_bytes, const struct properties *properties, int option)
{
    *size_bytes = GRANULE;
    return SUCCESS;
}

API cuMemCreate(struct physical **made, size_t size_bytes, const struct properties *properties,
                unsigned long long flags)
{
    if (flags || size_bytes % GRANULE || properties->location_type != 1 || !device_at(properties->device)) {
        return INVALID_VALUE;
    }
    int status = physical_change(properties->device, size_bytes, true);
    if (!status) {
        *made = calloc(1, sizeof **made);
        **made = (struct physical){properties->device, size_bytes, 0, false};
    }
    return status;
}

/* It is given back when it is released and no longer mapped. */
static int give_back(struct physical *made)
{
    if (made->is_released && !made->mapped) {
        physical_change(made->device, made->size_bytes, false);
        free(made);
    }
    return SUCCESS;
}

API cuMemRelease(struct physical *made)
{
    made->is_released = true;
    return give_back(made);
}

API cuMemAddressReserve(address_t *address, size_t size_bytes, size_t alignment, address_t wanted,
                        unsigned long long flags)
{
    struct device *device = current() ? current()->device : device_at(0);
    return address_reserve(device, size_bytes, alignment, address);
}

API cuMemAddressFree(address_t address, size_t size_bytes) { return address_free(address, size_bytes); }

static struct physical *mapped_at[4096];
static pthread_mutex_t mapping = PTHREAD_MUTEX_INITIALIZER;

API cuMemMap(address_t address, size_t size_bytes, size_t offset, struct physical *made,
             unsigned long long flags)
{
    if (offset || size_bytes != made->size_bytes || made->mapped) {
        return NOT_SUPPORTED;
    }
    int status = address_map(address, size_bytes, true);
    pthread_mutex_lock(&mapping);
    for (size_t i = 0; !status && i < sizeof mapped_at / sizeof *mapped_at; i++) {
        if (!mapped_at[i]) {
            mapped_at[i] = made;
            made->mapped = address;
            break;
        }
    }
    pthread_mutex_unlock(&mapping);
    return status;
}

API cuMemUnmap(address_t address, size_t size_bytes)
{
    int status = INVALID_VALUE;
    pthread_mutex_lock(&mapping);
    for (size_t i = 0; i < sizeof mapped_at / sizeof *mapped_at; i++) {
        struct physical *made = mapped_at[i];
        if (made && made->mapped >= address && made->mapped < address + size_bytes) {
            status = address_map(made->mapped, made->size_bytes, false);
            mapped_at[i] = NULL;
            made->mapped = 0;
            give_back(made);
        }
    }
    pthread_mutex_unlock(&mapping);
    return status;
}

API cuMemSetAccess(address_t address, size_t size_bytes, const void *descriptions, size_t count)
{
    return memory_at(address).kind == DEVICE ? SUCCESS : INVALID_VALUE;
}

API cuMemRetainAllocationHandle(struct physical **made, void *address)
{
    *made = NULL;
    pthread_mutex_lock(&mapping);
    for (size_t i = 0; i < sizeof mapped_at / sizeof *mapped_at; i++) {
        address_t start = mapped_at[i] ? mapped_at[i]->mapped : 0;
        if (start && (address_t)address - start < mapped_at[i]->size_bytes) {
            *made = mapped_at[i];
        }
    }
    pthread_mutex_unlock(&mapping);
    return *made ? SUCCESS : INVALID_VALUE;
}

API cuMemGetInfo(size_t *left_bytes, size_t *total_bytes)
{
    NEED_CONTEXT;
    *total_bytes = settings()->memory_bytes;
    *left_bytes = *total_bytes - memory_in_use(current()->device->ordinal);
    return SUCCESS;
}

API cuMemGetAddressRange(address_t *base, size_t *size_bytes, address_t address)
{
    struct allocation owner = memory_at(address);
    if (owner.kind == NOT_KNOWN || owner.kind == FREED) {
        return NOT_FOUND;
    }
    if (base) {
        *base = owner.address;
    }
    if (size_bytes) {
        *size_bytes = owner.size_bytes;
    }
    return SUCCESS;
}

API cuMemHostAlloc(void **address, size_t size_bytes, unsigned flags)
{
    NEED_CONTEXT;
    return host_allocate(size_bytes, PINNED, current()->device->ordinal, flags, address);
}

API cuMemAllocHost(void **address, size_t size_bytes) { return cuMemHostAlloc(address, size_bytes, 0); }

API cuMemFreeHost(void *address)
{
    NEED_CONTEXT;
    device_wait(current()->device);
    return host_forget(address, PINNED);
}

API cuMemHostRegister(void *address, size_t size_bytes, unsigned flags)
{
    NEED_CONTEXT;
    return host_register(address, size_bytes, flags);
}

API cuMemHostUnregister(void *address)
{
    NEED_CONTEXT;
    device_wait(current()->device);
    return host_forget(address, REGISTERED);
}

API cuMemHostGetDevicePointer(address_t *address, void *host, unsigned flags)
{
    *address = (address_t)host;
    return memory_at(*address).kind == NOT_KNOWN ? INVALID_VALUE : SUCCESS;
}

API cuMemHostGetFlags(unsigned *flags, void *host)
{
    struct allocation owner = memory_at((address_t)host);
    *flags = owner.flags;
    return owner.kind == NOT_KNOWN ? INVALID_VALUE : SUCCESS;
}

API cuMemAllocManaged(address_t *address, size_t size_bytes, unsigned flags)
{
    NEED_CONTEXT;
    return host_allocate(size_bytes, MANAGED, current()->device->ordinal, flags, (void **)address);
}

/* CUpointer_attribute: 1 context, 2 memory type, 3 device pointer, 4 host pointer, 7 id,
   8 is managed, 9 device, 11 start, 12 size, 13 is mapped */
static int pointer_attribute(void *value, int attribute, address_t address)
{
    struct allocation owner = memory_at(address);
    bool is_known = owner.kind != NOT_KNOWN && owner.kind != FREED;
    bool is_host = owner.kind == PINNED || owner.kind == REGISTERED;
    switch (attribute) {
    case 1:
        *(void **)value = is_known ? &primary[owner.device] : NULL;
        return is_known ? SUCCESS : INVALID_VALUE;
    case 2:
        *(unsigned *)value = is_known ? (is_host ? 1 : 2) : 0;
        return is_known ? SUCCESS : INVALID_VALUE;
    case 3:
        *(address_t *)value = is_known ? address : 0;
        return is_known ? SUCCESS : INVALID_VALUE;
    case 4:
        *(address_t *)value = is_host || owner.kind == MANAGED ? address : 0;
        return is_host || owner.kind == MANAGED ? SUCCESS : INVALID_VALUE;
    case 7:
        *(unsigned long long *)value = owner.id;
        return is_known ? SUCCESS : INVALID_VALUE;
    case 8:
        *(int *)value = owner.kind == MANAGED;
        return is_known ? SUCCESS : INVALID_VALUE;
    case 9:
        *(int *)value = is_known ? owner.device : -2; /* CU_DEVICE_INVALID */
        return is_known ? SUCCESS : INVALID_VALUE;
    case 11:
        *(address_t *)value = is_known ? owner.address : 0;
        return is_known ? SUCCESS : INVALID_VALUE;
    case 12:
        *(size_t *)value = is_known ? owner.size_bytes : 0;
        return is_known ? SUCCESS : INVALID_VALUE;
    case 13:
        *(int *)value = is_known;
        return is_known ? SUCCESS : INVALID_VALUE;
    default:
        *(int *)value = 0;
        return is_known ? SUCCESS : INVALID_VALUE;
    }
}

API cuPointerGetAttribute(void *value, int attribute, address_t address)
{
    return pointer_attribute(value, attribute, address);
}

/* Asks for several, and calls nothing an error: what does not apply is zero. */
API cuPointerGetAttributes(unsigned count, int *wanted, void **values, address_t address)
{
    for (unsigned i = 0; i < count; i++) {
        pointer_attribute(values[i], wanted[i], address);
    }
    return SUCCESS;
}

/* --- Copies ---------------------------------------------------------------------------------- */

struct copy {
    address_t to, from;
    void *staged;
    struct device *device;
    size_t width, height, to_pitch, from_pitch;
};

static void perform_copy(void *argument)
{
    struct copy *copy = argument;
    for (size_t row = 0; row < copy->height; row++) {
        address_t to = copy->to + row * copy->to_pitch, from = copy->from + row * copy->from_pitch;
        void *target = memory_bytes(to, copy->width);
        void *source = copy->staged ? (char *)copy->staged + row * copy->width
                                    : memory_bytes(from, copy->width);
        if (!target || !source) {
            misuse(copy->device, "a copy of memory that is not allocated", target ? from : to);
            break;
        }
        memmove(target, source, copy->width);
        enum memory_kind kind = memory_at(to).kind;
        if (copy->staged || !poisoned(from, copy->width)) {
            unpoison(to, copy->width);
            continue;
        }
        if (kind != DEVICE) {
            poison_reached_host();
        }
        if (kind != NOT_KNOWN) { /* pageable memory is given to others without our knowing */
            poison(to, copy->width);
        }
    }
    free(copy->staged);
    free(copy);
}

static bool is_pageable(address_t address) { return memory_at(address).kind == NOT_KNOWN; }

/* Pageable memory is read before the call returns, and written before it returns. ``waits`` is of
   a call without a stream: it also waits for what crosses between host and device. */
static int queue_copy(struct copy plan, void *handle, bool waits)
{
    NEED_STREAM(stream, handle);
    if (!plan.width || !plan.height) {
        return SUCCESS;
    }
    bool to_pageable = is_pageable(plan.to), from_pageable = is_pageable(plan.from);
    bool to_host = to_pageable || memory_at(plan.to).kind == PINNED;
    bool from_host = from_pageable || memory_at(plan.from).kind == PINNED;
    struct copy *copy = malloc(sizeof *copy);
    *copy = plan;
    copy->device = current()->device;
    copy->staged = NULL;
    if (from_pageable && !to_pageable) {
        copy->staged = malloc(plan.width * plan.height);
        for (size_t row = 0; row < plan.height; row++) {
            memcpy((char *)copy->staged + row * plan.width,
                   (void *)(plan.from + row * plan.from_pitch), plan.width);
        }
    }
    if (to_pageable || (waits && (to_host || from_host))) {
        submit_and_wait(stream, perform_copy, copy);
    } else {
        submit(stream, perform_copy, copy);
    }
    return usable();
}

static struct copy line(address_t to, address_t from, size_t size_bytes)
{
    return (struct copy){to, from, NULL, NULL, size_bytes, 1, size_bytes, size_bytes};
}

#define COPIES(name, to_type, from_type)                                                    \
    API name(to_type to, from_type from, size_t size_bytes)                                 \
    {                                                                                       \
        return queue_copy(line((address_t)to, (address_t)from, size_bytes), NULL, true);    \
    }                                                                                       \
    API name##Async(to_type to, from_type from, size_t size_bytes, void *handle)            \
    {                                                                                       \
        return queue_copy(line((address_t)to, (address_t)from, size_bytes), handle, false); \
    }

COPIES(cuMemcpy, address_t, address_t)
COPIES(cuMemcpyHtoD, address_t, const void *)
COPIES(cuMemcpyDtoH, void *, address_t)
COPIES(cuMemcpyDtoD, address_t, address_t)

API cuMemcpyPeer(address_t to, struct context *there, address_t from, struct context *here, size_t size_bytes)
{
    return queue_copy(line(to, from, size_bytes), NULL, true);
}

API cuMemcpyPeerAsync(address_t to, struct context *there, address_t from, struct context *here,
                      size_t size_bytes, void *handle)
{
    return queue_copy(line(to, from, size_bytes), handle, false);
}

/* CUDA_MEMCPY2D. Memory types: 1 host, 2 device, 4 unified. */
struct copy_2d {
    size_t from_x, from_y;
    unsigned from_type;
    const void *from_host;
    address_t from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    unsigned to_type;
    void *to_host;
    address_t to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
};

static int queue_2d(const struct copy_2d *given, void *handle, bool waits)
{
    if (given->from_type == 3 || given->to_type == 3) {
        return NOT_SUPPORTED; /* arrays of textures */
    }
    size_t from_pitch = given->from_pitch ? given->from_pitch : given->width;
    size_t to_pitch = given->to_pitch ? given->to_pitch : given->width;
    address_t from = given->from_type == 1 ? (address_t)given->from_host : given->from_device;
    address_t to = given->to_type == 1 ? (address_t)given->to_host : given->to_device;
    struct copy plan = {to + given->to_y * to_pitch + given->to_x,
                        from + given->from_y * from_pitch + given->from_x,
                        NULL, NULL, given->width, given->height, to_pitch, from_pitch};
    return queue_copy(plan, handle, waits);
}

API cuMemcpy2D(const struct copy_2d *given) { return queue_2d(given, NULL, true); }
API cuMemcpy2DUnaligned(const struct copy_2d *given) { return queue_2d(given, NULL, true); }
API cuMemcpy2DAsync(const struct copy_2d *given, void *handle) { return queue_2d(given, handle, false); }

struct fill {
    address_t to;
    struct device *device;
    unsigned char element[4];
    size_t element_bytes, width, height, pitch; /* the width is in elements */
};

static void perform_fill(void *argument)
{
    struct fill *fill = argument;
    for (size_t row = 0; row < fill->height; row++) {
        address_t to = fill->to + row * fill->pitch;
        char *bytes = memory_bytes(to, fill->width * fill->element_bytes);
        if (!bytes) {
            misuse(fill->device, "a memset of memory that is not allocated", to);
            break;
        }
        for (size_t i = 0; i < fill->width; i++) {
            memcpy(bytes + i * fill->element_bytes, fill->element, fill->element_bytes);
        }
        unpoison(to, fill->width * fill->element_bytes);
    }
    free(fill);
}

static int queue_fill(struct fill plan, unsigned value, void *handle)
{
    NEED_STREAM(stream, handle);
    struct fill *fill = malloc(sizeof *fill);
    *fill = plan;
    fill->device = current()->device;
    memcpy(fill->element, &value, sizeof value); /* little-endian: the first bytes count */
    submit(stream, perform_fill, fill);
    return SUCCESS;
}

#define FILLS(bits, type)                                                                         \
    API cuMemsetD##bits##Async(address_t to, type value, size_t count, void *handle)              \
    {                                                                                             \
        return queue_fill((struct fill){to, NULL, {0}, bits / 8, count, 1, 0}, value, handle);    \
    }                                                                                             \
    API cuMemsetD##bits(address_t to, type value, size_t count)                                   \
    {                                                                                             \
        return cuMemsetD##bits##Async(to, value, count, NULL);                                    \
    }                                                                                             \
    API cuMemsetD2D##bits##Async(address_t to, size_t pitch, type value, size_t width,            \
                                 size_t height, void *handle)                                     \
    {                                                                                             \
        struct fill plan = {to, NULL, {0}, bits / 8, width, height, pitch};                       \
        return queue_fill(plan, value, handle);                                                   \
    }                                                                                             \
    API cuMemsetD2D##bits(address_t to, size_t pitch, type value, size_t width, size_t height)    \
    {                                                                                             \
        return cuMemsetD2D##bits##Async(to, pitch, value, width, height, NULL);                   \
    }

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)

/* --- Names ----------------------------------------------------------------------------------- */

int dlprof_not_supported(const char *name)
{
    if (getenv("DLPROF_SIMULATED_LOG")) {
        fprintf(stderr, "dlprof simulated device: %s is not supported\n", name);
    }
    return NOT_SUPPORTED;
}

API cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    static void *own;
    if (!own) {
        Dl_info info;
        dladdr((void *)&cuInit, &info);
        own = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    }
    if (!strcmp(name, "cuGetProcAddress")) {
        name = "cuGetProcAddress_v2"; /* the first version has one parameter less */
    } else if (!strcmp(name, "cuCtxCreate")) {
        name = version >= 12050 ? "cuCtxCreate_v4" : "cuCtxCreate_v2";
    }
    *function = dlsym(own, name);
    if (status) {
        *status = *function ? 0 : 1; /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
    }
    return *function ? SUCCESS : NOT_FOUND;
}

API cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
