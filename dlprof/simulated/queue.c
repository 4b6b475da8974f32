#define _GNU_SOURCE
#include "queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "device.h"

struct work {
    action *perform;
    void *argument;
    struct stream *stream;
    struct work *next;      /* in the stream's queue */
    struct work **waiting;  /* work of other streams that depends on this */
    size_t waiting_count, waiting_room;
    int missing;            /* work that must be done first */
    int references;         /* of the queue, the stream's last place, and events */
    bool is_done, is_behind; /* the gate, so that it is not done while the gate is closed */
    uint64_t number;        /* in the order of all work */
    uint64_t done_ns;
};

struct stream {
    struct device *device;
    unsigned flags;
    int priority;
    uint64_t id;
    struct work *head, *tail;
    struct work *last;      /* the newest work, performed or not */
    struct stream *next;    /* in the list of all */
    pthread_cond_t wake;
    bool is_started, is_destroyed, is_default;
    bool is_delayed;        /* its head could be performed, and waits to be overtaken */
};

/* One lock for all queues: each holds it for some assignments only, and never while it performs. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static struct stream *streams;
static struct event *destroyed_events;
static uint64_t next_id = 1, next_number;
static size_t event_count, waiting_hosts;

uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void sleep_ns(uint64_t duration_ns)
{
    struct timespec end;
    uint64_t end_ns = now_ns() + duration_ns;
    end.tv_sec = (time_t)(end_ns / 1000000000u);
    end.tv_nsec = (long)(end_ns % 1000000000u);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL)) {
    }
}

static void release(struct work *work)
{
    if (work && --work->references == 0) {
        free(work->waiting);
        free(work);
    }
}

static void depend(struct work *work, struct work *first)
{
    if (!first || first->is_done || first->stream == work->stream) {
        return; /* a stream performs its own work in order */
    }
    if (first->waiting_count == first->waiting_room) {
        first->waiting_room = first->waiting_room ? 2 * first->waiting_room : 4;
        first->waiting = realloc(first->waiting, first->waiting_room * sizeof *first->waiting);
    }
    first->waiting[first->waiting_count++] = work;
    work->missing++;
    work->is_behind |= first->is_behind;
}

/* The lock is held. */
static void wake_delayed(void)
{
    for (struct stream *stream = streams; stream; stream = stream->next) {
        if (stream->is_delayed) {
            pthread_cond_signal(&stream->wake);
        }
    }
}

/* Whether the head of another stream can be performed, and is older or newer than this one's. */
static bool has_ready(const struct stream *stream, bool is_older)
{
    for (struct stream *other = streams; other; other = other->next) {
        bool is_ready = other != stream && other->head && !other->head->missing && other->head->perform;
        if (is_ready && (other->head->number < stream->head->number) == is_older
            && (!is_older || other->is_delayed)) {
            return true;
        }
    }
    return false;
}

/* The lock is held. With delays, each piece of work waits so that later work, if nothing orders it,
   overtakes it. The delay ends when the host waits: it queues nothing then. Work that overtakes does
   not wait. So all that may race does, whatever the seed and the speed of the machine. */
static void delay(struct stream *stream, unsigned *state)
{
    uint64_t longest_ns = settings()->delay_ns;
    if (!longest_ns || has_ready(stream, true)) {
        return;
    }
    *state = *state * 1103515245u + 12345u + (unsigned)stream->id;
    uint64_t end_ns = now_ns() + longest_ns / 2 + longest_ns / 2 * (*state >> 16 & 0x7fff) / 0x8000;
    struct timespec end = {(time_t)(end_ns / 1000000000u), (long)(end_ns % 1000000000u)};
    stream->is_delayed = true;
    wake_delayed();
    while (now_ns() < end_ns && !has_ready(stream, true)
           && (!waiting_hosts || has_ready(stream, false))) {
        pthread_cond_timedwait(&stream->wake, &lock, &end);
    }
    stream->is_delayed = false;
}

static void *serve(void *argument)
{
    struct stream *stream = argument;
    unsigned state = settings()->seed;
    prctl(PR_SET_TIMERSLACK, 1000ul); /* else a sleep may take 50 us longer */
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!(stream->head && !stream->head->missing)) {
            if (!stream->head && stream->is_destroyed) {
                struct stream **place = &streams;
                while (*place != stream) {
                    place = &(*place)->next;
                }
                *place = stream->next;
                release(stream->last);
                pthread_mutex_unlock(&lock);
                pthread_cond_destroy(&stream->wake);
                free(stream);
                return NULL;
            }
            pthread_cond_wait(&stream->wake, &lock);
        }
        struct work *work = stream->head;
        if (work->perform) {
            delay(stream, &state);
            pthread_mutex_unlock(&lock);
            work->perform(work->argument);
            pthread_mutex_lock(&lock);
        }
        stream->head = work->next;
        if (!stream->head) {
            stream->tail = NULL;
        }
        work->done_ns = now_ns();
        work->is_done = true;
        for (size_t i = 0; i < work->waiting_count; i++) {
            struct work *other = work->waiting[i];
            if (--other->missing == 0) {
                pthread_cond_signal(&other->stream->wake);
            }
        }
        work->waiting_count = 0;
        release(work);
        wake_delayed();
        pthread_cond_broadcast(&finished);
    }
}

/* The lock is held. The thread starts with the first work: most streams of a framework stay idle. */
static struct work *enqueue(struct stream *stream, action *perform, void *argument)
{
    struct work *work = calloc(1, sizeof *work);
    work->perform = perform;
    work->argument = argument;
    work->stream = stream;
    work->references = 2;
    work->number = next_number++;
    struct stream *legacy = stream->device->legacy;
    if (stream == legacy) {
        for (struct stream *other = streams; other; other = other->next) {
            if (other->device == stream->device && other->flags != NON_BLOCKING) {
                depend(work, other->last);
            }
        }
    } else if (stream->flags != NON_BLOCKING && legacy) {
        depend(work, legacy->last);
    }
    depend(work, stream->device->barrier);
    work->is_behind |= stream->last && !stream->last->is_done && stream->last->is_behind;
    release(stream->last);
    stream->last = work;
    if (stream->tail) {
        stream->tail->next = work;
    } else {
        stream->head = work;
    }
    stream->tail = work;
    if (!stream->is_started) {
        pthread_t thread;
        stream->is_started = true;
        pthread_create(&thread, NULL, serve, stream);
        pthread_detach(thread);
    }
    pthread_cond_signal(&stream->wake);
    return work;
}

/* --- The gate: a kernel that is done when the host waits for it, or after a time limit ------- */

enum gate_state { OPEN, ARMED, CLOSED, OPENED_BY_WAIT, OPENED_BY_LIMIT };

static struct {
    enum gate_state state;
    pthread_t thread;
    uint64_t limit_ns;
    bool is_for_copies; /* too */
} gate;

static void hold(void *argument)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    pthread_mutex_lock(&lock);
    uint64_t end_ns = (uint64_t)end.tv_nsec + gate.limit_ns;
    end.tv_sec += (time_t)(end_ns / 1000000000u), end.tv_nsec = (long)(end_ns % 1000000000u);
    while (gate.state == CLOSED) {
        if (pthread_cond_timedwait(&finished, &lock, &end) && gate.state == CLOSED) {
            gate.state = OPENED_BY_LIMIT;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* The next kernel of any thread, also a copy if they count, stands behind the gate. A wait of the calling
   thread opens it. */
EXPORTED void dlprofSimulatedArm(uint64_t limit_ns, int is_for_copies)
{
    LOCK(lock);
    gate.state = ARMED, gate.thread = pthread_self(), gate.limit_ns = limit_ns;
    gate.is_for_copies = is_for_copies;
}

EXPORTED int dlprofSimulatedGate(void)
{
    LOCK(lock);
    return gate.state;
}

EXPORTED void dlprofSimulatedOpen(void)
{
    LOCK(lock);
    gate.state = OPEN;
    pthread_cond_broadcast(&finished);
}

static void submit_behind(bool gate_counts, struct stream *stream, action *perform, void *argument)
{
    LOCK(lock);
    if (gate.state == ARMED && gate_counts) {
        gate.state = CLOSED;
        struct work *held = enqueue(stream, hold, NULL);
        held->is_behind = true;
    }
    enqueue(stream, perform, argument);
}

void submit_kernel(struct stream *stream, action *perform, void *argument)
{
    submit_behind(true, stream, perform, argument);
}

void submit_copy(struct stream *stream, action *perform, void *argument)
{
    submit_behind(gate.is_for_copies, stream, perform, argument);
}

/* The lock is held; it is released while the host waits. */
static void wait_for(struct work *work)
{
    if (!work || work->is_done) {
        return;
    }
    if (work->is_behind && gate.state == CLOSED && pthread_equal(gate.thread, pthread_self())) {
        gate.state = OPENED_BY_WAIT;
        pthread_cond_broadcast(&finished);
    }
    work->references++;
    waiting_hosts++;
    wake_delayed();
    while (!work->is_done) {
        pthread_cond_wait(&finished, &lock);
    }
    waiting_hosts--;
    release(work);
}

struct stream *stream_new(struct device *device, unsigned flags, int priority)
{
    struct stream *stream = calloc(1, sizeof *stream);
    stream->device = device;
    stream->flags = flags;
    stream->priority = priority;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&stream->wake, &attributes);
    LOCK(lock);
    stream->id = next_id++;
    stream->next = streams;
    streams = stream;
    return stream;
}

void stream_destroy(struct stream *stream)
{
    LOCK(lock);
    if (!stream->is_started) { /* only its own thread takes a stream out of the list */
        enqueue(stream, NULL, NULL);
    }
    stream->is_destroyed = true;
    pthread_cond_signal(&stream->wake);
}

bool stream_exists(const struct stream *stream)
{
    LOCK(lock);
    const struct stream *at = streams;
    while (at && at != stream) {
        at = at->next;
    }
    return at && !at->is_destroyed;
}

struct device *stream_device(const struct stream *stream) { return stream->device; }
unsigned stream_flags(const struct stream *stream) { return stream->flags; }
int stream_priority(const struct stream *stream) { return stream->priority; }
uint64_t stream_id(const struct stream *stream) { return stream->id; }

size_t streams_left(void)
{
    size_t count = 0;
    LOCK(lock);
    for (struct stream *stream = streams; stream; stream = stream->next) {
        count += !stream->is_default && !stream->is_destroyed;
    }
    return count;
}

/* The default stream is done, and waited for, with all that is ordered with it. */
static bool concerns(struct stream *stream, struct stream *other)
{
    struct stream *legacy = stream->device->legacy;
    bool both_block = stream->flags != NON_BLOCKING && other->flags != NON_BLOCKING;
    return other == stream
        || (other->device == stream->device && both_block && (stream == legacy || other == legacy));
}

bool stream_is_done(struct stream *stream)
{
    bool is_done = true;
    LOCK(lock);
    for (struct stream *other = streams; other; other = other->next) {
        is_done &= !(concerns(stream, other) && other->last && !other->last->is_done);
    }
    return is_done;
}

/* What was queued before the call; what others queue meanwhile is not waited for. */
static void wait_where(struct device *device, struct stream *stream)
{
    LOCK(lock);
    size_t count = 0, room = 0;
    struct work **work = NULL;
    for (struct stream *other = streams; other; other = other->next) {
        bool is_meant = stream ? concerns(stream, other) : other->device == device;
        if (is_meant && other->last && !other->last->is_done) {
            if (count == room) {
                room = room ? 2 * room : 16;
                work = realloc(work, room * sizeof *work);
            }
            other->last->references++;
            work[count++] = other->last;
        }
    }
    for (size_t i = 0; i < count; i++) {
        wait_for(work[i]);
        release(work[i]);
    }
    free(work);
}

/* How often this thread has waited on the host, also for nothing. Memory that is freed does not count:
   a framework frees when it likes. */
static __thread uint64_t host_waits;

EXPORTED uint64_t dlprofSimulatedWaits(void) { return host_waits; }

void stream_wait(struct stream *stream)
{
    host_waits++;
    wait_where(NULL, stream);
}

void device_wait(struct device *device) { wait_where(device, NULL); }

void submit(struct stream *stream, action *perform, void *argument)
{
    LOCK(lock);
    enqueue(stream, perform, argument);
}

void submit_and_wait(struct stream *stream, action *perform, void *argument)
{
    host_waits++;
    LOCK(lock);
    wait_for(enqueue(stream, perform, argument));
}

void order_all(struct device *const *devices)
{
    struct stream *place = legacy_stream(devices[0]);
    LOCK(lock);
    struct work *barrier = enqueue(place, NULL, NULL);
    for (; *devices; devices++) {
        for (struct stream *other = streams; other; other = other->next) {
            if (other->device == *devices) {
                depend(barrier, other->last);
            }
        }
        barrier->references++;
        release((*devices)->barrier);
        (*devices)->barrier = barrier;
    }
}

struct event *event_new(struct device *device, bool has_timing)
{
    LOCK(lock);
    struct event *event = destroyed_events;
    if (event) {
        destroyed_events = event->next;
    } else {
        event = malloc(sizeof *event);
    }
    *event = (struct event){.device = device, .has_timing = has_timing, .is_there = true};
    event_count++;
    return event;
}

void event_destroy(struct event *event)
{
    LOCK(lock);
    event_count--;
    release(event->recorded);
    *event = (struct event){.next = destroyed_events};
    destroyed_events = event;
}

size_t events_left(void)
{
    LOCK(lock);
    return event_count;
}

void event_record(struct event *event, struct stream *stream)
{
    LOCK(lock);
    struct work *mark = enqueue(stream, NULL, NULL);
    mark->references++;
    release(event->recorded);
    event->recorded = mark;
}

void event_order(struct event *event, struct stream *stream)
{
    LOCK(lock);
    if (event->recorded && !event->recorded->is_done) {
        depend(enqueue(stream, NULL, NULL), event->recorded);
    }
}

bool event_is_done(struct event *event)
{
    LOCK(lock);
    return !event->recorded || event->recorded->is_done;
}

void context_wait(struct device *device)
{
    host_waits++;
    device_wait(device);
}

void event_wait(struct event *event)
{
    host_waits++;
    LOCK(lock);
    wait_for(event->recorded);
}

uint64_t event_ns(struct event *event)
{
    LOCK(lock);
    return event->recorded ? event->recorded->done_ns : 0;
}

static struct stream *new_default(struct device *device)
{
    struct stream *stream = stream_new(device, BLOCKING, 0);
    stream->is_default = true;
    return stream;
}

struct stream *legacy_stream(struct device *device)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    LOCK(making);
    if (!device->legacy) {
        struct stream *stream = new_default(device);
        pthread_mutex_lock(&lock);
        device->legacy = stream;
        pthread_mutex_unlock(&lock);
    }
    return device->legacy;
}

struct stream *thread_stream(struct device *device)
{
    static __thread struct stream *own[MOST_DEVICES];
    if (!own[device->ordinal]) {
        own[device->ordinal] = new_default(device);
    }
    return own[device->ordinal];
}
