/* SPDX-License-Identifier: Apache-2.0
 *
 * driver_stream.c: streams hold work until somebody waits for it; captured work becomes a graph,
 * whose launch puts copies of it into a stream. Work of different streams has no order but the one
 * that waiting gives it.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver.h"

struct work {
    sim_work_fn *run;
    size_t bytes;
    _Alignas(16) unsigned char argument[];
};

struct queue {
    struct work **work;
    size_t done, count, capacity;
    struct queue *next; /* the next queue that is a graph */
};

struct sim_stream {
    struct sim_stream *next;
    struct sim_device *device;
    struct queue queue;
    bool capturing, spoilt;
    struct queue captured;
};

struct event {
    struct sim_stream *stream; /* stream of the last record */
    uint64_t asked, done;      /* records */
    bool recorded;
    int64_t ns;
};

static _Thread_local int captures; /* captures that this thread has open */
static struct queue *graphs;       /* made and not destroyed */

/* ---- queues ---- */

static int append(struct queue *q, sim_work_fn *run, const void *argument, size_t bytes)
{
    if (q->count == q->capacity) {
        const size_t capacity = q->capacity ? 2 * q->capacity : 64;
        struct work **grown = realloc(q->work, capacity * sizeof *grown);
        if (!grown)
            return CUDA_OUT_OF_MEMORY;
        q->work = grown;
        q->capacity = capacity;
    }
    struct work *w = malloc(sizeof *w + bytes);
    if (!w)
        return CUDA_OUT_OF_MEMORY;
    w->run = run;
    w->bytes = bytes;
    memcpy(w->argument, argument, bytes);
    q->work[q->count++] = w;
    return CUDA_SUCCESS;
}

static int append_all(struct queue *to, const struct queue *from)
{
    int result = CUDA_SUCCESS;
    for (size_t i = 0; i < from->count && !result; i++)
        result = append(to, from->work[i]->run, from->work[i]->argument, from->work[i]->bytes);
    return result;
}

static void clear(struct queue *q)
{
    for (size_t i = q->done; i < q->count; i++)
        free(q->work[i]);
    free(q->work);
    *q = (struct queue){0};
}

/* ---- streams ---- */

static struct sim_stream *add_stream(struct sim_device *d)
{
    struct sim_stream *s = calloc(1, sizeof *s);
    if (s) {
        s->device = d;
        struct sim_stream **end = &d->streams;
        while (*end)
            end = &(*end)->next;
        *end = s;
    }
    return s;
}

/* The stream of a handle, the default one for NULL; NULL: there is none. */
static struct sim_stream *stream_of(void *handle)
{
    struct sim_device *d = sim_current;
    if (!d->streams && !add_stream(d))
        return NULL;
    if (!handle)
        return d->streams;
    struct sim_stream *s = d->streams->next;
    while (s && s != handle)
        s = s->next;
    return s;
}

static bool is_eager(const struct sim_stream *s)
{
    long eager = strtol(sim_setting("NOJIT_SIM_EAGER", "0"), NULL, 10);
    const struct sim_stream *at = s->device->streams;
    while (at && eager-- > 0)
        at = at->next;
    return at == s && s != s->device->streams;
}

int sim_enqueue(void *stream, sim_work_fn *run, const void *argument, size_t bytes)
{
    struct sim_stream *s = sim_current ? stream_of(stream) : NULL;
    if (!s)
        return CUDA_INVALID_HANDLE;
    if (s->spoilt)
        return CUDA_CAPTURE_INVALIDATED;
    const int result = append(s->capturing ? &s->captured : &s->queue, run, argument, bytes);
    return result || s->capturing || !is_eager(s) ? result : sim_drain(s);
}

static void lose(struct sim_device *d, int error)
{
    d->lost = error;
    for (struct sim_stream *s = d->streams; s; s = s->next)
        clear(&s->queue);
}

/* The oldest work of a stream, which may make others do theirs. */
static void step(struct sim_stream *s)
{
    struct queue *q = &s->queue;
    struct work *w = q->work[q->done++];
    if (q->done == q->count)
        q->done = q->count = 0;
    const int error = w->run(w->argument);
    free(w);
    if (error)
        lose(s->device, error);
}

/* All of it, or until so many records of an event are done. */
static int drain(struct sim_stream *s, const struct event *e, uint64_t records)
{
    struct sim_device *before = sim_current, *d = sim_current = s->device;
    while (s->queue.done < s->queue.count && !d->lost && (!e || e->done < records))
        step(s);
    sim_current = before;
    return d->lost;
}

int sim_drain(struct sim_stream *stream)
{
    struct sim_stream *s = stream ? stream : stream_of(NULL);
    return s ? drain(s, NULL, 0) : CUDA_OUT_OF_MEMORY;
}

int sim_drain_all(struct sim_device *device)
{
    for (struct sim_stream *s = device->streams; s && !device->lost; s = s->next)
        sim_drain(s);
    return device->lost;
}

void sim_streams_free(struct sim_device *device)
{
    while (device->streams) {
        struct sim_stream *s = device->streams;
        device->streams = s->next;
        clear(&s->queue);
        clear(&s->captured);
        free(s);
    }
}

SIM_CALL(cuStreamCreate, SIM_CONTEXT, (void **out, unsigned flags), (out, flags))
{
    if (flags > 1)
        return CUDA_INVALID_VALUE;
    *out = stream_of(NULL) ? add_stream(sim_current) : NULL; /* the default one is the first */
    if (!*out)
        return CUDA_OUT_OF_MEMORY;
    sim_control_state.live++;
    return CUDA_SUCCESS;
}

SIM_CALL(cuStreamDestroy_v2, SIM_STARTED, (void *stream), (stream))
{
    struct sim_stream *s = sim_current && stream ? stream_of(stream) : NULL, **at;
    if (!s)
        return CUDA_INVALID_HANDLE;
    if (!s->device->lost)
        sim_drain(s);
    for (at = &s->device->streams; *at != s; at = &(*at)->next)
        ;
    *at = s->next;
    const int lost = s->device->lost;
    clear(&s->queue);
    clear(&s->captured);
    captures -= s->capturing;
    free(s);
    sim_control_state.live--;
    return lost;
}

SIM_CALL(cuStreamSynchronize, SIM_CONTEXT, (void *stream), (stream))
{
    struct sim_stream *s = stream_of(stream);
    if (!s)
        return CUDA_INVALID_HANDLE;
    if (s->capturing) {
        s->spoilt = true;
        return CUDA_CAPTURE_UNSUPPORTED;
    }
    return sim_drain(s);
}

/* ---- events ---- */

static bool is_pending(const struct event *e)
{
    return e->done < e->asked;
}

static int run_record(void *argument)
{
    struct event *e = *(struct event **)argument;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    e->ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    e->recorded = true;
    e->done += is_pending(e);
    return CUDA_SUCCESS;
}

SIM_CALL(cuEventCreate, SIM_CONTEXT, (void **out, unsigned flags), (out, flags))
{
    (void)flags;
    *out = calloc(1, sizeof(struct event));
    if (!*out)
        return CUDA_OUT_OF_MEMORY;
    sim_control_state.live++;
    return CUDA_SUCCESS;
}

SIM_CALL(cuEventRecord, SIM_CONTEXT, (void *event, void *stream), (event, stream))
{
    struct event *e = event;
    struct sim_stream *s = stream_of(stream);
    if (!e || !s)
        return CUDA_INVALID_HANDLE;
    if (!s->capturing) {
        e->stream = s;
        e->asked++;
    }
    return sim_enqueue(stream, run_record, &event, sizeof event);
}

SIM_CALL(cuEventSynchronize, SIM_CONTEXT, (void *event), (event))
{
    const struct event *e = event;
    return is_pending(e) ? sim_drain(e->stream) : CUDA_SUCCESS;
}

struct wait {
    const struct event *event;
    uint64_t records; /* at the time of the call */
};

static int run_wait(void *argument)
{
    const struct wait *w = argument;
    return w->event->done < w->records ? drain(w->event->stream, w->event, w->records) : 0;
}

SIM_CALL(cuStreamWaitEvent, SIM_CONTEXT, (void *stream, void *event, unsigned flags),
         (stream, event, flags))
{
    const struct sim_stream *s = stream_of(stream);
    const struct event *e = event;
    if (!s || !e || s->capturing)
        return CUDA_INVALID_HANDLE;
    const struct wait w = {e, e->asked};
    return flags ? CUDA_INVALID_VALUE : sim_enqueue(stream, run_wait, &w, sizeof w);
}

SIM_CALL(cuEventElapsedTime_v2, SIM_CONTEXT, (float *ms, void *from, void *to), (ms, from, to))
{
    const struct event *a = from, *b = to;
    if (is_pending(a) || is_pending(b))
        return CUDA_NOT_READY;
    if (!a->recorded || !b->recorded)
        return CUDA_INVALID_HANDLE;
    const char *told = sim_setting("NOJIT_SIM_ELAPSED", "");
    *ms = *told ? strtof(told, NULL) : (float)(b->ns - a->ns) * 1e-6f;
    return CUDA_SUCCESS;
}

SIM_CALL(cuEventDestroy_v2, SIM_STARTED, (void *event), (event))
{
    struct event *e = event;
    const int lost = sim_current ? sim_current->lost : 0;
    if (!e)
        return CUDA_INVALID_HANDLE;
    if (is_pending(e) && !lost && sim_current && sim_current->retained)
        sim_drain(e->stream); /* its record must not outlive it */
    free(e);
    sim_control_state.live--;
    return lost;
}

/* ---- capture, graphs: a graph is a queue ---- */

bool sim_is_capturing(void *stream)
{
    const struct sim_stream *s = stream_of(stream);
    return s && s->capturing;
}

int sim_spoil_captures(void)
{
    if (captures == 0 || !sim_current)
        return CUDA_SUCCESS;
    for (struct sim_stream *s = sim_current->streams; s; s = s->next)
        s->spoilt = s->spoilt || s->capturing;
    return CUDA_CAPTURE_UNSUPPORTED;
}

static struct queue *keep_graph(struct queue *q)
{
    q->next = graphs;
    graphs = q;
    sim_control_state.live++;
    return q;
}

static bool holds(const struct queue *q, sim_work_fn *run, const void *argument, size_t bytes)
{
    for (size_t i = 0; i < q->count; i++)
        if (q->work[i]->run == run && memcmp(q->work[i]->argument, argument, bytes) == 0)
            return true;
    return false;
}

int sim_held(sim_work_fn *run, const void *argument, size_t bytes)
{
    int count = 0;
    for (const struct queue *q = graphs; q; q = q->next)
        count += holds(q, run, argument, bytes);
    return count;
}

SIM_CALL(cuStreamBeginCapture_v2, SIM_CONTEXT, (void *stream, int mode), (stream, mode))
{
    struct sim_stream *s = stream ? stream_of(stream) : NULL;
    if (!s || mode < 0 || mode > 2)
        return stream ? CUDA_INVALID_VALUE : CUDA_CAPTURE_UNSUPPORTED;
    if (s->capturing)
        return CUDA_ILLEGAL_STATE;
    s->capturing = true;
    captures++;
    return CUDA_SUCCESS;
}

SIM_CALL(cuStreamEndCapture, SIM_CONTEXT, (void *stream, void **graph), (stream, graph))
{
    struct sim_stream *s = stream_of(stream);
    *graph = NULL;
    if (!s || !s->capturing)
        return CUDA_ILLEGAL_STATE;
    struct queue *q = calloc(1, sizeof *q);
    if (!q)
        return CUDA_OUT_OF_MEMORY;
    const bool spoilt = s->spoilt;
    *q = s->captured;
    s->captured = (struct queue){0};
    s->capturing = s->spoilt = false;
    captures--;
    if (spoilt) {
        clear(q);
        free(q);
        return CUDA_CAPTURE_INVALIDATED;
    }
    *graph = keep_graph(q);
    return CUDA_SUCCESS;
}

SIM_CALL(cuGraphInstantiateWithFlags, SIM_CONTEXT,
         (void **exec, void *graph, unsigned long long flags), (exec, graph, flags))
{
    struct queue *q = flags == 0 ? calloc(1, sizeof *q) : NULL;
    if (!q)
        return flags ? CUDA_INVALID_VALUE : CUDA_OUT_OF_MEMORY;
    const int result = append_all(q, graph);
    if (result) {
        clear(q);
        free(q);
        return result;
    }
    *exec = keep_graph(q);
    return CUDA_SUCCESS;
}

SIM_CALL(cuGraphLaunch, SIM_CONTEXT, (void *exec, void *stream), (exec, stream))
{
    struct sim_stream *s = stream_of(stream);
    if (!s || !exec)
        return CUDA_INVALID_HANDLE;
    return append_all(s->capturing ? &s->captured : &s->queue, exec);
}

SIM_CALL(cuGraphUpload, SIM_CONTEXT, (void *exec, void *stream), (exec, stream))
{
    return stream_of(stream) && exec ? 0 : CUDA_INVALID_HANDLE;
}

static int destroy_graph(struct queue *q)
{
    struct queue **at = &graphs;
    while (*at && *at != q)
        at = &(*at)->next;
    if (!q || !*at)
        return CUDA_INVALID_HANDLE;
    *at = q->next;
    clear(q);
    free(q);
    sim_control_state.live--;
    return sim_current ? sim_current->lost : CUDA_SUCCESS;
}

SIM_CALL(cuGraphExecDestroy, SIM_STARTED, (void *exec), (exec))
{
    return destroy_graph(exec);
}

SIM_CALL(cuGraphDestroy, SIM_STARTED, (void *graph), (graph))
{
    return destroy_graph(graph);
}
