/* Names that a program gets which was built for default streams of its threads.

   CUDA's header renames functions there: with _ptsz, or _ptds if there is no stream, a null handle is
   the default stream of the calling thread. Each calls the function of the plain name. */

#include "driver.h"

#include <stddef.h>

_Thread_local int null_is_of_thread;

#define PER_THREAD(suffix, name, parameters, arguments)         \
    extern int name parameters;                                 \
    API name##_##suffix parameters                              \
    {                                                           \
        null_is_of_thread = 1;                                  \
        int status = name arguments;                            \
        null_is_of_thread = 0;                                  \
        return status;                                          \
    }

PER_THREAD(ptsz, cuStreamSynchronize, (void *stream), (stream))
PER_THREAD(ptsz, cuStreamQuery, (void *stream), (stream))
PER_THREAD(ptsz, cuStreamGetFlags, (void *stream, void *told), (stream, told))
PER_THREAD(ptsz, cuStreamGetPriority, (void *stream, void *told), (stream, told))
PER_THREAD(ptsz, cuStreamGetCtx, (void *stream, void *told), (stream, told))
PER_THREAD(ptsz, cuStreamGetDevice, (void *stream, void *told), (stream, told))
PER_THREAD(ptsz, cuStreamGetId, (void *stream, void *told), (stream, told))
PER_THREAD(ptsz, cuStreamIsCapturing, (void *stream, void *told), (stream, told))
PER_THREAD(ptsz, cuStreamWaitEvent, (void *stream, void *event, unsigned flags), (stream, event, flags))
PER_THREAD(ptsz, cuEventRecord, (void *event, void *stream), (event, stream))
PER_THREAD(ptsz, cuEventRecordWithFlags, (void *event, void *stream, unsigned flags),
           (event, stream, flags))
PER_THREAD(ptsz, cuLaunchHostFunc, (void *stream, void *function, void *data), (stream, function, data))
PER_THREAD(ptsz, cuLaunchKernel,
           (void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
            unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **values, void **extra),
           (kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, values, extra))
PER_THREAD(ptsz, cuLaunchKernelEx, (const void *config, void *kernel, void **values, void **extra),
           (config, kernel, values, extra))

#define COPY(name, to_type, from_type)                                                             \
    PER_THREAD(ptds, name, (to_type to, from_type from, size_t bytes), (to, from, bytes))          \
    PER_THREAD(ptsz, name##Async, (to_type to, from_type from, size_t bytes, void *stream),        \
               (to, from, bytes, stream))
#define FILL(name, type)                                                                           \
    PER_THREAD(ptds, name, (address_t to, type element, size_t count), (to, element, count))       \
    PER_THREAD(ptsz, name##Async, (address_t to, type element, size_t count, void *stream),        \
               (to, element, count, stream))

COPY(cuMemcpy, address_t, address_t)
COPY(cuMemcpyHtoD, address_t, const void *)
COPY(cuMemcpyDtoH, void *, address_t)
COPY(cuMemcpyDtoD, address_t, address_t)
FILL(cuMemsetD8, unsigned char)
FILL(cuMemsetD16, unsigned short)
FILL(cuMemsetD32, unsigned)
PER_THREAD(ptds, cuMemcpyPeer, (address_t to, void *there, address_t from, void *here, size_t bytes),
           (to, there, from, here, bytes))
PER_THREAD(ptsz, cuMemcpyPeerAsync,
           (address_t to, void *there, address_t from, void *here, size_t bytes, void *stream),
           (to, there, from, here, bytes, stream))
