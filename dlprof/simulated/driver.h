/* What all functions of the driver API need. */

#ifndef DLPROF_DRIVER_H
#define DLPROF_DRIVER_H

#include <stdint.h>

#define API __attribute__((visibility("default"))) int
/* A second name of a function, which may get further arguments. */
#define SAME(name, of) \
    extern __typeof__(of) name __attribute__((alias(#of), visibility("default")));

typedef uintptr_t address_t; /* CUdeviceptr */

struct device;
struct stream;

/* SUCCESS if the thread has a context whose device has not failed. */
int usable(void);
/* The device of the thread's context, null without one. */
struct device *current_device(void);
struct stream *stream_of(void *handle);
/* In a call by a name of per_thread.c. */
extern _Thread_local int null_is_of_thread;

#define NEED_CONTEXT                 \
    do {                             \
        int status_ = usable();      \
        if (status_) return status_; \
    } while (0)

#define NEED_STREAM(stream, handle)            \
    NEED_CONTEXT;                              \
    struct stream *stream = stream_of(handle); \
    if (!stream) return INVALID_HANDLE

#endif
