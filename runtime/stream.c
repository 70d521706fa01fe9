/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.c: the public side of memory, streams, events and graphs: checks arguments, then asks the
 * backend.
 */
#include <stdlib.h>

#include "internal.h"

/* Check the budget: asking for more than there is freezes a machine whose GPU shares memory with the host. */
int nj_budget_check(nj_context *ctx, enum nj_memory kind, size_t bytes)
{
    const size_t budget = ctx->backend->budget(ctx, kind);

    if (bytes <= budget)
        return 0;
    return nj_fail(ctx, NJ_E_NOMEM,
                   "%zu bytes of %s memory wanted, %zu are available now; use a smaller batch or "
                   "sequence, or free memory",
                   bytes, kind == NJ_MEM_HOST ? "host" : "device", budget);
}

int nj_alloc(nj_context *ctx, enum nj_memory kind, size_t bytes, void **out)
{
    if (!ctx || !out)
        return NJ_E_ARG;
    *out = NULL;
    if (!ctx->backend)
        return nj_fail(ctx, NJ_E_ARG, "nj_alloc: the context is not open");
    if (kind != NJ_MEM_DEVICE && kind != NJ_MEM_HOST)
        return nj_fail(ctx, NJ_E_ARG, "nj_alloc: memory kind %d is not known", (int)kind);
    TRY(nj_budget_check(ctx, kind, bytes));
    return ctx->backend->alloc(ctx, kind, bytes ? bytes : 1, out);
}

void nj_free(nj_context *ctx, enum nj_memory kind, void *ptr)
{
    if (ctx && ctx->backend && ptr)
        ctx->backend->free(ctx, kind, ptr);
}

int nj_copy(nj_stream *s, void *dst, const void *src, size_t bytes)
{
    if (!s)
        return NJ_E_ARG;
    if (bytes == 0)
        return 0;
    if (!dst || !src)
        return nj_fail(s->ctx, NJ_E_ARG, "nj_copy: NULL %s of %zu bytes",
                       dst ? "source" : "destination", bytes);
    return s->ctx->backend->copy(s, dst, src, bytes);
}

int nj_zero(nj_stream *s, void *dst, size_t bytes)
{
    if (!s)
        return NJ_E_ARG;
    if (bytes == 0)
        return 0;
    if (!dst)
        return nj_fail(s->ctx, NJ_E_ARG, "nj_zero: NULL destination of %zu bytes", bytes);
    return s->ctx->backend->zero(s, dst, bytes);
}

int nj_stream_create(nj_context *ctx, nj_stream **out)
{
    nj_stream *s;
    int rc;

    if (!ctx || !out)
        return NJ_E_ARG;
    *out = NULL;
    if (!ctx->backend)
        return nj_fail(ctx, NJ_E_ARG, "nj_stream_create: the context is not open");
    s = calloc(1, sizeof *s);
    if (!s)
        return nj_fail(ctx, NJ_E_NOMEM, "nj_stream_create: out of host memory");
    s->ctx = ctx;
    rc = ctx->backend->stream_create(s);
    if (rc != 0) {
        nj_stream_destroy(s);
        return rc;
    }
    *out = s;
    return 0;
}

void nj_stream_destroy(nj_stream *s)
{
    if (!s)
        return;
    s->ctx->backend->stream_destroy(s);
    free(s);
}

void nj_stream_dependent_launches(nj_stream *s, int on)
{
    s->dependent_launches = on;
}

int nj_stream_sync(nj_stream *s)
{
    return s ? s->ctx->backend->stream_sync(s) : NJ_E_ARG;
}

nj_context *nj_stream_context(nj_stream *s)
{
    return s->ctx;
}

int nj_event_create(nj_context *ctx, nj_event **out)
{
    nj_event *e;
    int rc;

    if (!ctx || !out)
        return NJ_E_ARG;
    *out = NULL;
    if (!ctx->backend)
        return nj_fail(ctx, NJ_E_ARG, "nj_event_create: the context is not open");
    e = calloc(1, sizeof *e);
    if (!e)
        return nj_fail(ctx, NJ_E_NOMEM, "nj_event_create: out of host memory");
    e->ctx = ctx;
    rc = ctx->backend->event_create(e);
    if (rc != 0) {
        free(e);
        return rc;
    }
    *out = e;
    return 0;
}

void nj_event_destroy(nj_event *e)
{
    if (!e)
        return;
    e->ctx->backend->event_destroy(e);
    free(e);
}

int nj_event_record(nj_event *e, nj_stream *s)
{
    if (!e || !s)
        return NJ_E_ARG;
    if (e->ctx != s->ctx)
        return nj_fail(s->ctx, NJ_E_ARG, "nj_event_record: the event is of another context");
    return s->ctx->backend->event_record(e, s);
}

int nj_stream_wait(nj_stream *s, nj_event *e)
{
    if (!s || !e)
        return NJ_E_ARG;
    if (e->ctx != s->ctx)
        return nj_fail(s->ctx, NJ_E_ARG, "nj_stream_wait: the event is of another context");
    if (s->captured)
        return nj_fail(s->ctx, NJ_E_ARG, "nj_stream_wait: the stream is captured");
    return s->ctx->backend->stream_wait(s, e);
}

int nj_event_sync(nj_event *e)
{
    return e ? e->ctx->backend->event_sync(e) : NJ_E_ARG;
}

int nj_event_elapsed_ms(nj_event *from, nj_event *to, float *ms)
{
    if (!from || !to || !ms)
        return NJ_E_ARG;
    *ms = 0;
    if (from->ctx != to->ctx)
        return nj_fail(to->ctx, NJ_E_ARG, "nj_event_elapsed_ms: events of two contexts");
    return to->ctx->backend->event_elapsed_ms(from, to, ms);
}

int nj_graph_begin(nj_stream *s)
{
    if (!s)
        return NJ_E_ARG;
    if (s->ctx->graphs_off)
        return nj_fail(s->ctx, NJ_E_UNSUPPORTED, "graphs are switched off by NOJIT_GRAPH=0");
    TRY(s->ctx->backend->graph_begin(s));
    s->captured = 1;
    return 0;
}

int nj_graph_end(nj_stream *s, nj_graph **out)
{
    nj_graph *g;
    int rc;

    if (!s || !out)
        return NJ_E_ARG;
    *out = NULL;
    g = calloc(1, sizeof *g);
    if (!g)
        return nj_fail(s->ctx, NJ_E_NOMEM, "nj_graph_end: out of host memory");
    g->ctx = s->ctx;
    rc = s->ctx->backend->graph_end(s, g);
    s->captured = 0;
    if (rc != 0) {
        free(g);
        return rc;
    }
    *out = g;
    return 0;
}

int nj_graph_launch(nj_graph *g, nj_stream *s)
{
    if (!g || !s)
        return NJ_E_ARG;
    if (g->ctx != s->ctx)
        return nj_fail(s->ctx, NJ_E_ARG, "nj_graph_launch: the graph is of another context");
    return s->ctx->backend->graph_launch(g, s);
}

void nj_graph_destroy(nj_graph *g)
{
    if (!g)
        return;
    g->ctx->backend->graph_destroy(g);
    free(g);
}
