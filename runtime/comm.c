/* SPDX-License-Identifier: Apache-2.0
 *
 * comm.c: the public side of communicators: checks arguments, then asks the backend.
 */
#include <stdlib.h>

#include "internal.h"

enum { ALIGN = 16 };

int nj_comm_id(nj_context *ctx, unsigned char id[NJ_COMM_ID_BYTES])
{
    if (!ctx || !id)
        return NJ_E_ARG;
    if (!ctx->backend)
        return nj_fail(ctx, NJ_E_ARG, "nj_comm_id: the context is not open");
    return ctx->backend->comm_id(ctx, id);
}

int nj_comm_create(nj_context *ctx, const unsigned char id[NJ_COMM_ID_BYTES], int rank, int ranks,
                   nj_comm **out)
{
    nj_comm *c;
    int rc;

    if (!ctx || !id || !out)
        return NJ_E_ARG;
    *out = NULL;
    if (!ctx->backend)
        return nj_fail(ctx, NJ_E_ARG, "nj_comm_create: the context is not open");
    if (ranks < 1 || ranks > NJ_COMM_RANKS_MOST || rank < 0 || rank >= ranks)
        return nj_fail(ctx, NJ_E_ARG,
                       "nj_comm_create: rank %d of %d; ranks count from 0, at most %d", rank, ranks,
                       (int)NJ_COMM_RANKS_MOST);
    c = calloc(1, sizeof *c);
    if (!c)
        return nj_fail(ctx, NJ_E_NOMEM, "nj_comm_create: out of host memory");
    *c = (nj_comm){.ctx = ctx, .rank = rank, .ranks = ranks};
    rc = ctx->backend->comm_create(c, id);
    if (rc != 0) {
        nj_comm_destroy(c);
        return rc;
    }
    *out = c;
    return 0;
}

int nj_comm_alloc(nj_comm *c, size_t bytes, void **out)
{
    if (!c || !out)
        return NJ_E_ARG;
    if (!c->ctx->backend->comm_alloc)
        return nj_alloc(c->ctx, NJ_MEM_DEVICE, bytes, out);
    *out = NULL;
    TRY(nj_budget_check(c->ctx, NJ_MEM_DEVICE, bytes));
    return c->ctx->backend->comm_alloc(c, bytes ? bytes : 1, out);
}

void nj_comm_free(nj_comm *c, void *ptr)
{
    if (!c || !ptr)
        return;
    if (c->ctx->backend->comm_free)
        c->ctx->backend->comm_free(c, ptr);
    else
        nj_free(c->ctx, NJ_MEM_DEVICE, ptr);
}

int nj_comm_check(nj_comm *c)
{
    if (!c)
        return NJ_E_ARG;
    return c->ctx->backend->comm_check ? c->ctx->backend->comm_check(c) : 0;
}

void nj_comm_destroy(nj_comm *c)
{
    if (!c)
        return;
    c->ctx->backend->comm_destroy(c);
    free(c);
}

static uint64_t of_others(const nj_comm *c, const struct nj_transfer *t)
{
    if (t->kind == NJ_BROADCAST)
        return c->rank == t->root ? 0 : t->bytes;
    return (uint64_t)(c->ranks - 1) * t->bytes;
}

static int transfer(nj_comm *c, nj_stream *s, const struct nj_transfer *t, const char *name)
{
    const uintptr_t places = (uintptr_t)t->recv | (uintptr_t)t->send;

    if (!c || !s)
        return NJ_E_ARG;
    if (s->ctx != c->ctx)
        return nj_fail(c->ctx, NJ_E_ARG, "%s: the stream is of another context", name);
    if (t->bytes == 0)
        return 0;
    if (!t->recv || !t->send)
        return nj_fail(c->ctx, NJ_E_ARG, "%s: NULL array of %zu bytes", name, t->bytes);
    if ((places | t->bytes) % ALIGN != 0)
        return nj_fail(c->ctx, NJ_E_ARG, "%s: arrays and their %zu bytes must be multiples of %d",
                       name, t->bytes, (int)ALIGN);
    TRY(c->ctx->backend->transfer(c, s, t));
    c->received += of_others(c, t);
    return 0;
}

uint64_t nj_comm_received(const nj_comm *c)
{
    return c ? c->received : 0;
}

int nj_all_to_all(nj_comm *c, nj_stream *s, void *recv, const void *send, size_t bytes)
{
    const struct nj_transfer t = {
        .kind = NJ_ALL_TO_ALL, .recv = recv, .send = send, .bytes = bytes};
    return transfer(c, s, &t, "nj_all_to_all");
}

int nj_all_gather(nj_comm *c, nj_stream *s, void *recv, const void *send, size_t bytes)
{
    const struct nj_transfer t = {
        .kind = NJ_ALL_GATHER, .recv = recv, .send = send, .bytes = bytes};
    return transfer(c, s, &t, "nj_all_gather");
}

int nj_comm_aside(nj_comm *c, nj_stream *s, nj_stream **out)
{
    if (!c || !s || !out || s->ctx != c->ctx)
        return NJ_E_ARG;
    *out = s;
    if (s->captured)
        return nj_fail(c->ctx, NJ_E_ARG, "nj_comm_aside: not allowed while a graph is captured");
    return c->ctx->backend->comm_aside ? c->ctx->backend->comm_aside(c, s, out) : 0;
}

int nj_comm_join(nj_comm *c, nj_stream *s)
{
    if (!c || !s || s->ctx != c->ctx)
        return NJ_E_ARG;
    return c->ctx->backend->comm_join ? c->ctx->backend->comm_join(c, s) : 0;
}

int nj_all_gather_aside(nj_comm *c, nj_stream *s, void *recv, const void *send, size_t bytes)
{
    nj_stream *aside;
    TRY(nj_comm_aside(c, s, &aside));

    return nj_all_gather(c, aside, recv, send, bytes);
}

int nj_broadcast(nj_comm *c, nj_stream *s, void *buffer, size_t bytes, int root)
{
    const struct nj_transfer t = {
        .kind = NJ_BROADCAST, .recv = buffer, .send = buffer, .bytes = bytes, .root = root};

    if (c && (root < 0 || root >= c->ranks))
        return nj_fail(c->ctx, NJ_E_ARG, "nj_broadcast: root %d of %d ranks", root, c->ranks);
    return transfer(c, s, &t, "nj_broadcast");
}
