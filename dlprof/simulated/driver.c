/* libcuda.so.1 without a GPU: the driver API on threads of the host.

   What CUDA's documentation promises, and what happens here:

   | semantic                       | CUDA promises                          | here                                  |
   |--------------------------------|----------------------------------------|---------------------------------------|
   | a stream                       | performs its work in order             | a thread for each stream that is used |
   | legacy default stream          | ordered with all blocking streams      | the same, by dependencies             |
   | non-blocking stream            | ordered with no other                  | the same                              |
   | per-thread default stream      | a blocking stream of the thread        | the same, through handle 2, and by    |
   |                                |                                        | the names of per_thread.c             |
   | event                          | marks a place; recording again moves   | the same                              |
   | cuStreamWaitEvent              | waits for what the event marks now     | the same                              |
   | elapsed time                   | of two events that have been reached   | of the host's clock: no speed         |
   | copy from pageable memory      | may wait for the stream, and returns   | waits for the stream if it has more   |
   |                                | after staging                          | than 64 KiB                           |
   | copy to pageable memory        | returns when it is done                | the same                              |
   | copy from or to pinned memory  | asynchronous                           | the same                              |
   | copy on the device             | asynchronous                           | the same                              |
   | copy between two devices in    | ordered with all work of both devices  | the same, whatever the call           |
   | the legacy default stream      |                                        |                                       |
   | the same in another stream     | asynchronous, in its stream's order    | the same                              |
   | cuMemcpyPeer                   | asynchronous; ordered with all work of | the same                              |
   |                                | the current and both named contexts    |                                       |
   | cuMemFree                      | waits for the device                   | the same                              |
   | cuMemFreeHost and              | not said                               | both wait for the device, which may   |
   | cuMemHostUnregister            |                                        | use the memory still                  |
   | virtual memory                 | memory is mapped to addresses          | the same, once and as a whole         |
   | stream-ordered allocation      | a capability                           | not offered                           |
   | graphs                         | work is captured and replayed          | not offered                           |
   | host function                  | runs in the stream's order             | the same, on the stream's thread      |
   | a failed device                | every later call fails                 | the same                              |
   | a stream that was destroyed    | nothing, or an invalid handle          | an invalid handle, and reported       |
   | an event that was destroyed    | nothing, or an invalid handle          | an invalid handle, and reported       |
   | a stream of another device     | no kernel, no record; a wait is right  | the same                              |
   | access to a peer               | is switched on once; copies need none  | the same                              |
   | kernel                         | computes                               | takes time; kernels.c lists which     |
   |                                |                                        | compute. Others poison memory         |
   | device memory                  | the host cannot touch it               | the same: reported, and the process   |
   |                                |                                        | dies                                  |
   | order that nothing demands     | any                                    | with delays, the last comes first     |

   Poison marks memory that a kernel without effect should have written: from each place that its
   arguments point to up to contents that are known, or the whole device if the arguments cannot be
   read. Copies carry the marks on. dlprofSimulatedPoisoned(address, bytes) asks for them,
   dlprofSimulatedPoisonReads() says how often they have reached the host. dlprofSimulatedReport() says
   what was misused last: a stream, an event, or memory that does not exist.

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

/* --- Contexts: a stack for each thread. A device has one context, which is the device here ------- */

static __thread struct device *stack[MOST_CONTEXTS];
static __thread int depth;
static bool is_initialized;

struct device *current_device(void) { return depth ? stack[depth - 1] : NULL; }

int usable(void)
{
    if (!is_initialized) {
        return NOT_INITIALIZED;
    }
    return current_device() ? current_device()->sticky_error : INVALID_CONTEXT;
}

/* Handle 1 is the legacy default stream, and so is 0 as a rule; 2 is that of the thread. Null if there
   is none. */
struct stream *stream_of(void *handle)
{
    if ((uintptr_t)handle == 2 || (!handle && null_is_of_thread)) {
        return thread_stream(current_device());
    }
    if ((uintptr_t)handle <= 1) {
        return legacy_stream(current_device());
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
    if (!is_initialized) {
        watch_host();
    }
    is_initialized = true;
    return SUCCESS;
}

API cuDriverGetVersion(int *version) { return *version = DRIVER_VERSION, SUCCESS; }

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

static int known(int device) { return device_at(device) ? SUCCESS : INVALID_DEVICE; }

API cuDeviceGet(int *device, int ordinal) { return *device = ordinal, known(ordinal); }

API cuDeviceGetName(char *name, int length, int device)
{
    return snprintf(name, (size_t)length, "dlprof simulated device"), known(device);
}

API cuDeviceGetUuid(unsigned char *uuid, int device)
{
    memcpy(uuid, "dlprof-simulate", 15);
    uuid[15] = (unsigned char)device;
    return known(device);
}

API cuDeviceTotalMem(size_t *size_bytes, int device)
{
    return *size_bytes = settings()->memory_bytes, known(device);
}

API cuDeviceGetPCIBusId(char *id, int length, int device)
{
    return snprintf(id, (size_t)length, "0000:%02x:00.0", device + 1), known(device);
}

/* CUdevice_attribute: numbers of the public header. All others are 0: not offered. */
static const struct { int attribute, value; } attributes[] = {
    {1, 1024}, /* threads in a block */                 {2, 1024}, /* x of a block */
    {3, 1024}, /* y of a block */                       {4, 64}, /* z of a block */
    {5, 2147483647}, /* x of a grid */                  {6, 65535}, /* y of a grid */
    {7, 65535}, /* z of a grid */                       {8, 49152}, /* shared memory of a block */
    {9, 65536}, /* constant memory */                   {10, 32}, /* threads in a warp */
    {11, 2147483647}, /* pitch */                       {12, 65536}, /* registers of a block */
    {13, 1755000}, /* clock in kHz */                   {14, 512}, /* alignment of textures */
    {15, 1}, /* copies while it computes */             {16, 132}, /* multiprocessors */
    {19, 1}, /* maps memory of the host */              {31, 1}, /* kernels at the same time */
    {36, 2619000}, /* clock of the memory in kHz */     {37, 5120}, /* width of the memory bus */
    {38, 52428800}, /* L2 cache */                      {39, 2048}, /* threads of a multiprocessor */
    {40, 3}, /* copy engines */                         {41, 1}, /* unified addresses */
    {75, 9}, /* compute capability, major */            {76, 0}, /* and minor */
    {78, 1}, /* priorities of streams */                {81, 233472}, /* shared memory of a multiprocessor */
    {82, 65536}, /* registers of a multiprocessor */    {83, 1}, /* managed memory */
    {97, 232448}, /* shared memory of a block if it is asked for */{102, 1}, /* virtual memory */
    {106, 32}, /* blocks of a multiprocessor */
};

API cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 33 ? device + 1 : 0; /* the number on the PCI bus */
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (attributes[i].attribute == attribute) {
            *value = attributes[i].value;
        }
    }
    return known(device);
}

API cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = device != peer && device_at(device) && device_at(peer);
    return known(device) ? INVALID_DEVICE : known(peer);
}

API cuDevicePrimaryCtxRetain(struct device **context, int device)
{
    if (!is_initialized) {
        return NOT_INITIALIZED;
    }
    *context = device_at(device);
    return *context ? (*context)->retained++, SUCCESS : INVALID_DEVICE;
}

API cuDevicePrimaryCtxRelease(int device) { return device_at(device)->retained--, SUCCESS; }

API cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active)
{
    *flags = device_at(device)->context_flags;
    *is_active = device_at(device)->retained > 0;
    return SUCCESS;
}

API cuDevicePrimaryCtxSetFlags(int device, unsigned flags)
{
    return device_at(device)->context_flags = flags, SUCCESS;
}

API cuCtxPushCurrent(struct device *context)
{
    if (depth == MOST_CONTEXTS) {
        return INVALID_VALUE;
    }
    stack[depth++] = context;
    return SUCCESS;
}

API cuCtxPopCurrent(struct device **context)
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

API cuCtxSetCurrent(struct device *context)
{
    depth -= depth > 0;
    if (context) {
        stack[depth++] = context;
    }
    return SUCCESS;
}

API cuCtxGetCurrent(struct device **context)
{
    *context = current_device();
    return is_initialized ? SUCCESS : NOT_INITIALIZED;
}

API cuCtxGetDevice(int *device)
{
    *device = current_device() ? current_device()->ordinal : 0;
    return current_device() ? SUCCESS : INVALID_CONTEXT;
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

API cuCtxGetApiVersion(struct device *context, unsigned *version)
{
    return *version = 3020, SUCCESS; /* that of every context since CUDA 3.2 */
}

API cuCtxGetLimit(size_t *value, int limit) { return *value = 1024, SUCCESS; }
API cuCtxSetLimit(int limit, size_t value) { return SUCCESS; }

static bool has_peer[MOST_DEVICES][MOST_DEVICES];

static int peer_access(const struct device *peer, bool is_wanted)
{
    NEED_CONTEXT;
    int here = current_device()->ordinal, there = peer->ordinal;
    if (here == there) {
        return INVALID_DEVICE;
    }
    if (has_peer[here][there] == is_wanted) {
        return is_wanted ? PEER_ENABLED : PEER_NOT_ENABLED;
    }
    has_peer[here][there] = is_wanted;
    return SUCCESS;
}

API cuCtxEnablePeerAccess(struct device *peer, unsigned flags)
{
    return flags ? INVALID_VALUE : peer_access(peer, true);
}

API cuCtxDisablePeerAccess(struct device *peer) { return peer_access(peer, false); }

API cuCtxSynchronize(void)
{
    NEED_CONTEXT;
    context_wait(current_device());
    return usable();
}

/* --- Streams and events ---------------------------------------------------------------------- */

API cuStreamCreateWithPriority(struct stream **stream, unsigned flags, int priority)
{
    NEED_CONTEXT;
    *stream = stream_new(current_device(), flags, priority);
    return SUCCESS;
}

API cuStreamCreate(struct stream **stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

API cuStreamDestroy(struct stream *stream)
{
    if (!stream_exists(stream)) {
        report("a stream that does not exist was destroyed", (uintptr_t)stream);
        return INVALID_HANDLE;
    }
    return stream_destroy(stream), SUCCESS;
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

#define TELLS(name, type, value)               \
    API name(void *handle, type *told)         \
    {                                          \
        NEED_STREAM(stream, handle);           \
        return *told = (value), SUCCESS;       \
    }

TELLS(cuStreamGetFlags, unsigned, stream_flags(stream))
TELLS(cuStreamGetPriority, int, stream_priority(stream))
TELLS(cuStreamGetCtx, struct device *, stream_device(stream))
TELLS(cuStreamGetDevice, int, stream_device(stream)->ordinal)
TELLS(cuStreamGetId, unsigned long long, stream_id(stream))

API cuStreamIsCapturing(void *handle, int *status) { return *status = 0, SUCCESS; }
API cuThreadExchangeStreamCaptureMode(int *mode) { return *mode = 0, SUCCESS; }

API cuEventCreate(struct event **event, unsigned flags)
{
    NEED_CONTEXT;
    *event = event_new(current_device(), !(flags & 2)); /* CU_EVENT_DISABLE_TIMING */
    return SUCCESS;
}

static bool is_event(const struct event *event)
{
    if (!event || !event->is_there) {
        report("a use of an event that does not exist", (uintptr_t)event);
        return false;
    }
    return true;
}

#define NEED_EVENT(event)          \
    if (!is_event(event)) {        \
        return INVALID_HANDLE;     \
    }

API cuEventDestroy(struct event *event)
{
    NEED_EVENT(event);
    return event_destroy(event), SUCCESS;
}

API cuEventRecord(struct event *event, void *handle)
{
    NEED_STREAM(stream, handle);
    NEED_EVENT(event);
    if (stream_device(stream) != event->device) {
        return INVALID_HANDLE;
    }
    event_record(event, stream);
    return SUCCESS;
}

SAME(cuEventRecordWithFlags, cuEventRecord)

API cuStreamWaitEvent(void *handle, struct event *event, unsigned flags)
{
    NEED_STREAM(stream, handle);
    NEED_EVENT(event);
    event_order(event, stream);
    return SUCCESS;
}

API cuEventQuery(struct event *event)
{
    NEED_EVENT(event);
    return event_is_done(event) ? usable() : NOT_READY;
}

API cuEventSynchronize(struct event *event)
{
    NEED_EVENT(event);
    event_wait(event);
    return usable();
}

API cuEventElapsedTime(float *time_ms, struct event *start, struct event *end)
{
    NEED_EVENT(start);
    NEED_EVENT(end);
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
    return memory_allocate(current_device(), size_bytes, address);
}

API cuMemFree(address_t address)
{
    NEED_CONTEXT;
    if (!address) {
        return SUCCESS;
    }
    device_wait(current_device());
    return memory_free(address);
}

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
    return physical_new(properties->device, size_bytes, made);
}

API cuMemRelease(struct physical *made) { return physical_release(made); }

API cuMemRetainAllocationHandle(struct physical **made, address_t address)
{
    return physical_at(address, made);
}

API cuMemAddressReserve(address_t *address, size_t size_bytes, size_t alignment, address_t wanted,
                        unsigned long long flags)
{
    return address_reserve(current_device() ? current_device() : device_at(0), size_bytes, alignment, address);
}

API cuMemAddressFree(address_t address, size_t size_bytes) { return address_free(address, size_bytes); }

API cuMemMap(address_t address, size_t size_bytes, size_t offset, struct physical *made,
             unsigned long long flags)
{
    return offset ? NOT_SUPPORTED : address_map(address, size_bytes, made);
}

API cuMemUnmap(address_t address, size_t size_bytes) { return address_unmap(address, size_bytes); }

API cuMemSetAccess(address_t address, size_t size_bytes, const void *descriptions, size_t count)
{
    return memory_at(address).kind == DEVICE ? SUCCESS : INVALID_VALUE;
}

API cuMemGetInfo(size_t *left_bytes, size_t *total_bytes)
{
    NEED_CONTEXT;
    *total_bytes = settings()->memory_bytes;
    *left_bytes = *total_bytes - memory_in_use(current_device()->ordinal);
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
    return host_allocate(size_bytes, PINNED, current_device()->ordinal, flags, address);
}

API cuMemAllocHost(void **address, size_t size_bytes) { return cuMemHostAlloc(address, size_bytes, 0); }

API cuMemFreeHost(void *address)
{
    NEED_CONTEXT;
    device_wait(current_device());
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
    device_wait(current_device());
    return host_forget(address, REGISTERED);
}

API cuMemHostGetDevicePointer(address_t *address, void *host, unsigned flags)
{
    *address = (address_t)host;
    return memory_at(*address).kind == NOT_KNOWN ? INVALID_VALUE : SUCCESS;
}

API cuMemAllocManaged(address_t *address, size_t size_bytes, unsigned flags)
{
    NEED_CONTEXT;
    return host_allocate(size_bytes, MANAGED, current_device()->ordinal, flags, (void **)address);
}

/* CUpointer_attribute. Of an address that is not known all is zero, and an error. */
static int pointer_attribute(void *value, int attribute, address_t address)
{
    struct allocation owner = memory_at(address);
    bool is_known = owner.kind != NOT_KNOWN && owner.kind != FREED;
    bool is_host = owner.kind == PINNED || owner.kind == REGISTERED;
    bool is_readable = is_host || owner.kind == MANAGED;
    bool applies = is_known;
    switch (attribute) {
    case 1: *(struct device **)value = is_known ? device_at(owner.device) : NULL; break; /* context */
    case 2: *(unsigned *)value = !is_known ? 0 : is_host ? 1 : 2; break; /* memory of host, of device */
    case 3: *(address_t *)value = is_known ? address : 0; break;
    case 4: *(address_t *)value = is_readable ? address : 0; applies = is_readable; break;
    case 7: *(uint64_t *)value = owner.id; break;
    case 8: *(int *)value = owner.kind == MANAGED; break;
    case 9: *(int *)value = is_known ? owner.device : -2; break; /* CU_DEVICE_INVALID */
    case 11: *(address_t *)value = is_known ? owner.address : 0; break;
    case 12: *(size_t *)value = is_known ? owner.size_bytes : 0; break;
    case 13: *(int *)value = is_known; break; /* whether it is mapped */
    default: *(int *)value = 0;
    }
    return applies ? SUCCESS : INVALID_VALUE;
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
    size_t size_bytes;
    void *staged;
    struct device *device;
};

static void perform_copy(void *argument)
{
    struct copy *copy = argument;
    address_t to = copy->to, from = copy->from;
    size_t size_bytes = copy->size_bytes;
    void *target = memory_bytes(to, size_bytes);
    void *source = copy->staged ? copy->staged : memory_bytes(from, size_bytes);
    if (!target || !source) {
        misuse(copy->device, "a copy of memory that is not allocated", target ? from : to);
    } else {
        memmove(target, source, size_bytes);
        bool is_poisoned = !copy->staged && dlprofSimulatedPoisoned(from, size_bytes);
        enum memory_kind kind = memory_at(to).kind;
        if (is_poisoned && kind != DEVICE) {
            poison_reached_host();
        }
        if (is_poisoned && (kind == DEVICE || kind == MANAGED)) {
            poison(to, size_bytes);
        } else { /* memory of the host is written again without our knowing */
            unpoison(to, size_bytes, copy->staged ? 0 : from);
        }
    }
    free(copy->staged);
    free(copy);
}

static bool is_pageable(address_t address) { return memory_at(address).kind == NOT_KNOWN; }

static bool is_of_host(address_t address)
{
    enum memory_kind kind = memory_at(address).kind;
    return kind == PINNED || kind == REGISTERED;
}

/* For dlprof: the bytes that were copied to devices, and to the host. */
static _Atomic(uint64_t) crossed_bytes[2];

EXPORTED uint64_t dlprofSimulatedCrossed(int to_host) { return crossed_bytes[to_host]; }

/* "The driver may synchronize with the stream and stage the copy into pinned memory": it does so
   here for what is too large for the command itself. */
static const size_t LARGEST_INLINE = 65536;

/* Pageable memory is read before the call returns, and written before it returns. ``waits`` is of
   a call without a stream: it also waits for what crosses between host and device. */
static int queue_copy(address_t to, address_t from, size_t size_bytes, void *handle, bool waits)
{
    NEED_STREAM(stream, handle);
    if (!size_bytes) {
        return SUCCESS;
    }
    bool to_pageable = is_pageable(to), from_pageable = is_pageable(from);
    bool to_host = to_pageable || is_of_host(to), from_host = from_pageable || is_of_host(from);
    if (to_host != from_host) {
        crossed_bytes[to_host] += size_bytes;
    }
    struct copy *copy = malloc(sizeof *copy);
    *copy = (struct copy){to, from, size_bytes, NULL, current_device()};
    if (from_pageable && !to_pageable) {
        if (size_bytes > LARGEST_INLINE) {
            submit_and_wait(stream, NULL, NULL);
        }
        copy->staged = malloc(size_bytes);
        memcpy(copy->staged, (void *)from, size_bytes);
    }
    struct allocation target = memory_at(to), source = memory_at(from);
    struct device *peers[] = {current_device(), device_at(source.device), device_at(target.device), NULL};
    bool orders_peers = stream == legacy_stream(current_device()) && target.kind == DEVICE
        && source.kind == DEVICE && target.device != source.device;
    if (orders_peers) { /* CUDA Programming Guide, Peer-to-Peer Memory Copy */
        order_all(peers);
    }
    if (to_pageable || (waits && (to_host || from_host))) {
        submit_and_wait(stream, perform_copy, copy);
    } else {
        submit_copy(stream, perform_copy, copy);
    }
    if (orders_peers) {
        order_all(peers);
    }
    return usable();
}

#define COPIES(name, to_type, from_type)                                               \
    API name(to_type to, from_type from, size_t size_bytes)                            \
    {                                                                                  \
        return queue_copy((address_t)to, (address_t)from, size_bytes, NULL, true);     \
    }                                                                                  \
    API name##Async(to_type to, from_type from, size_t size_bytes, void *handle)       \
    {                                                                                  \
        return queue_copy((address_t)to, (address_t)from, size_bytes, handle, false);  \
    }

COPIES(cuMemcpy, address_t, address_t)
COPIES(cuMemcpyHtoD, address_t, const void *)
COPIES(cuMemcpyDtoH, void *, address_t)
COPIES(cuMemcpyDtoD, address_t, address_t)

API cuMemcpyPeer(address_t to, struct device *there, address_t from, struct device *here, size_t size_bytes)
{
    NEED_CONTEXT;
    struct device *concerned[] = {current_device(), here, there, NULL};
    order_all(concerned);
    int status = queue_copy(to, from, size_bytes, NULL, true);
    order_all(concerned);
    return status;
}

API cuMemcpyPeerAsync(address_t to, struct device *there, address_t from, struct device *here,
                      size_t size_bytes, void *handle)
{
    return queue_copy(to, from, size_bytes, handle, false);
}

struct fill {
    address_t to;
    size_t count, element_bytes;
    unsigned element; /* its first bytes count */
    struct device *device;
};

static void perform_fill(void *argument)
{
    struct fill *fill = argument;
    size_t size_bytes = fill->count * fill->element_bytes;
    char *bytes = memory_bytes(fill->to, size_bytes);
    if (bytes) {
        for (size_t at = 0; at < size_bytes; at += fill->element_bytes) {
            memcpy(bytes + at, &fill->element, fill->element_bytes);
        }
        unpoison(fill->to, size_bytes, 0);
    } else {
        misuse(fill->device, "a memset of memory that is not allocated", fill->to);
    }
    free(fill);
}

static int queue_fill(address_t to, unsigned element, size_t element_bytes, size_t count, void *handle)
{
    NEED_STREAM(stream, handle);
    struct fill *fill = malloc(sizeof *fill);
    *fill = (struct fill){to, count, element_bytes, element, current_device()};
    submit(stream, perform_fill, fill);
    return SUCCESS;
}

#define FILLS(bits, type)                                                                \
    API cuMemsetD##bits##Async(address_t to, type element, size_t count, void *handle)   \
    {                                                                                    \
        return queue_fill(to, element, bits / 8, count, handle);                         \
    }                                                                                    \
    API cuMemsetD##bits(address_t to, type element, size_t count)                        \
    {                                                                                    \
        return queue_fill(to, element, bits / 8, count, NULL);                           \
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
    if (!strcmp(name, "cuGetProcAddress") && version >= 12000) {
        name = "cuGetProcAddress_v2"; /* the version before CUDA 12 has one parameter less */
    }
    char of_thread[128]; /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
    snprintf(of_thread, sizeof of_thread, "%s_ptsz", name);
    *function = flags & 2 ? dlsym(own, of_thread) : NULL;
    if (flags & 2 && !*function) {
        of_thread[strlen(of_thread) - 2] = 'd', of_thread[strlen(of_thread) - 1] = 's';
        *function = dlsym(own, of_thread);
    }
    *function = *function ? *function : dlsym(own, name);
    if (status) {
        *status = *function ? 0 : 1; /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
    }
    return *function ? SUCCESS : NOT_FOUND;
}

API cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
