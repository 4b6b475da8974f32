/* Streams, work and events of the simulated device. All functions may be called from any thread.

   A stream is a queue of work and a host thread that performs it in order. Work may also depend on
   work of other streams: events, and the legacy default stream, make such dependencies. */

#ifndef DLPROF_QUEUE_H
#define DLPROF_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;
struct stream;
struct work;

enum { BLOCKING = 0, NON_BLOCKING = 1 };

/* What a stream performs. It gets the argument, and frees it. */
typedef void action(void *argument);

struct event {
    struct work *recorded; /* null until it is recorded */
    struct device *device;
    bool has_timing, is_there; /* its memory is kept: a handle can be asked after the end */
    struct event *next;        /* of those that were destroyed */
};

uint64_t now_ns(void);
void sleep_ns(uint64_t duration_ns);

struct stream *stream_new(struct device *device, unsigned flags, int priority);
/* Work that is queued goes on; the stream's thread ends after it. */
void stream_destroy(struct stream *stream);
/* Whether it was made and not destroyed. */
bool stream_exists(const struct stream *stream);
struct device *stream_device(const struct stream *stream);
unsigned stream_flags(const struct stream *stream);
int stream_priority(const struct stream *stream);
uint64_t stream_id(const struct stream *stream);
bool stream_is_done(struct stream *stream);
void stream_wait(struct stream *stream);
void device_wait(struct device *device);
/* The same, as a wait that the program asks for. */
void context_wait(struct device *device);
/* Streams that were made by the user and not destroyed. */
size_t streams_left(void);

/* Queues an action; a null action is a mark that only has a place in the order. */
void submit(struct stream *stream, action *perform, void *argument);
/* The same, behind the gate if that is armed, a copy only if copies count. */
void submit_kernel(struct stream *stream, action *perform, void *argument);
void submit_copy(struct stream *stream, action *perform, void *argument);
/* The same as submit, and waits on the host until it is performed. */
void submit_and_wait(struct stream *stream, action *perform, void *argument);

/* Work of these devices, up to a null, that is queued from now on runs after all that is queued now. */
void order_all(struct device *const *devices);

struct event *event_new(struct device *device, bool has_timing);
void event_destroy(struct event *event);
void event_record(struct event *event, struct stream *stream);
/* Work that is queued on the stream from now on runs after what the event marks now. */
void event_order(struct event *event, struct stream *stream);
bool event_is_done(struct event *event);
void event_wait(struct event *event);
/* The time when the marked place was reached; 0 before that. */
uint64_t event_ns(struct event *event);
size_t events_left(void);

/* The default streams of a device: handle 0 or 1, and handle 2 of the calling thread. */
struct stream *legacy_stream(struct device *device);
struct stream *thread_stream(struct device *device);

#endif
