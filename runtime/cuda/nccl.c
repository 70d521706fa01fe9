/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl.c: communicators, on NCCL. It is told not to block, so that every wait is one of ours, with an
 * end. A communicator on which something has failed is left alone: to end it could wait forever.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend.h"

#include "base/clock.h"

_Static_assert(sizeof(struct nj_nccl_id) == NJ_COMM_ID_BYTES, "ncclUniqueId");
_Static_assert(sizeof(struct nj_nccl_config) == 72, "ncclConfig_t of 2.27");

/* First version whose copy engines transfer memory in windows, if told to. */
enum { COPY_ENGINES_FROM = 22800 };
/* Size below which a kernel gathers faster: copy engines take 0.15 ms to agree on a transfer (H100). */
enum { SMALL_BYTES = 1 << 20 };
enum { CALL_SECONDS = 120, END_SECONDS = 10, POLL_NS = 20000 };

/* Settings that NCCL reads once: no multicast, which not every container may use; and connections made when a
 * communicator is created, not during the first collective. */
static const char *const settings[] = {"NCCL_NVLS_ENABLE", "NCCL_RUNTIME_CONNECT"};

static int open_nccl(nj_context *ctx)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    int version = 0;

    if (ctx->info.comm_version)
        return 0;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (setenv(settings[i], "0", 0) != 0)
            return nj_fail(ctx, NJ_E_NOMEM, "setting %s: out of host memory", settings[i]);
    TRY(nj_cuda_open_nccl(ctx, &cu->nccl));
    cu->nccl.ncclGetVersion(&version);
    ctx->info.comm_version = (size_t)version;
    return 0;
}

/* Fail with one sentence, made from the first line of the library's message. */
static int fail_result(nj_context *ctx, void *comm, int result, const char *what)
{
    const struct nj_nccl *nccl = &nj_cuda_of(ctx)->nccl;
    const char *text = nccl->ncclGetErrorString(result), *last = nccl->ncclGetLastError(comm);

    last = last && last[0] ? last : "NCCL_DEBUG=WARN says more";
    return nj_fail(ctx, NJ_E_DEVICE, "%s: NCCL %zu.%zu.%zu: %.100s (%d): %.*s", what,
                   ctx->info.comm_version / 10000, ctx->info.comm_version % 10000 / 100,
                   ctx->info.comm_version % 100, text, result, (int)strcspn(last, "\n"), last);
}

/* Wait for the work that a call began; result is the call's return value. */
static int settle_in(nj_comm *c, int result, int seconds, const char *what)
{
    const struct nj_nccl *nccl = &nj_cuda_of(c->ctx)->nccl;
    const int64_t end = clock_ns() + (int64_t)seconds * 1000000000;

    while (result == NJ_ncclInProgress) {
        int rc = nccl->ncclCommGetAsyncError(c->handle, &result);

        if (rc != 0)
            result = rc;
        if (result != NJ_ncclInProgress)
            break;
        if (clock_ns() > end)
            return nj_fail(
                c->ctx, NJ_E_DEVICE,
                "%s: rank %d of %d waited %d seconds for the others; see whether all run "
                "and reach each other, with NCCL_DEBUG=INFO",
                what, c->rank, c->ranks, seconds);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    return result ? fail_result(c->ctx, c->handle, result, what) : 0;
}

static int settle(nj_comm *c, int result, const char *what)
{
    return settle_in(c, result, CALL_SECONDS, what);
}

int nj_cuda_comm_id(nj_context *ctx, unsigned char *id)
{
    const struct nj_nccl *nccl = &nj_cuda_of(ctx)->nccl;
    struct nj_nccl_id made;
    TRY(open_nccl(ctx));
    const int rc = nccl->ncclGetUniqueId(&made);
    if (rc != 0)
        return fail_result(ctx, NULL, rc, "nj_comm_id");
    memcpy(id, &made, sizeof made);
    return 0;
}

/* Open a side stream, without the workspace that GEMMs would need. */
static int open_aside(nj_comm *c)
{
    struct nj_driver *driver = &nj_cuda_of(c->ctx)->driver;
    int rc =
        nj_cuda_check(c->ctx, driver->cuStreamCreate(&c->aside.handle, NJ_CU_STREAM_NON_BLOCKING),
                      "nj_comm_create");

    c->aside.ctx = c->begun.ctx = c->ended.ctx = c->ctx;
    if (rc == 0)
        rc = nj_cuda_event_create(&c->begun);
    return rc != 0 ? rc : nj_cuda_event_create(&c->ended);
}

static void close_aside(nj_comm *c)
{
    nj_event *const events[] = {&c->begun, &c->ended};

    for (int i = 0; i < 2; i++)
        if (events[i]->handle)
            nj_cuda_event_destroy(events[i]);
    if (c->aside.handle)
        nj_cuda_of(c->ctx)->driver.cuStreamDestroy(c->aside.handle);
}

int nj_cuda_comm_create(nj_comm *c, const unsigned char *id)
{
    const int unset = NJ_NCCL_CONFIG_UNDEF_INT;
    struct nj_nccl_id of;
    int rc = open_nccl(c->ctx);
    struct nj_nccl_config config = {
        .bytes = sizeof config,
        .magic = NJ_NCCL_CONFIG_MAGIC,
        .version = NJ_NCCL_CONFIG_VERSION,
        .blocking = 0,
        .cga = unset,
        .least_ctas = unset,
        .most_ctas = unset,
        .split_share = unset,
        .traffic_class = unset,
        .collnet = unset,
        .cta_policy =
            c->ctx->info.comm_version >= COPY_ENGINES_FROM ? NJ_NCCL_CTA_POLICY_ZERO : unset,
        .shrink_share = unset,
        .nvls_ctas = unset,
    };

    if (rc == 0)
        rc = nj_cuda_enter(c->ctx);
    if (rc != 0)
        return rc;
    memcpy(&of, id, sizeof of);
    rc =
        nj_cuda_of(c->ctx)->nccl.ncclCommInitRankConfig(&c->handle, c->ranks, of, c->rank, &config);
    rc = settle(c, rc, "nj_comm_create");
    if (rc != 0)
        c->handle = NULL;
    return rc != 0 ? rc : open_aside(c);
}

int nj_cuda_comm_check(nj_comm *c)
{
    int result = NJ_ncclSuccess;
    int rc = nj_cuda_of(c->ctx)->nccl.ncclCommGetAsyncError(c->handle, &result);

    if (rc == 0 && result != NJ_ncclInProgress)
        rc = result;
    return rc != 0 ? fail_result(c->ctx, c->handle, rc, "nj_comm_check") : 0;
}

/* Destroy a communicator. Plain destruction would wait for the other ranks, and for graphs that hold its calls. */
void nj_cuda_comm_destroy(nj_comm *c)
{
    const struct nj_nccl *nccl = &nj_cuda_of(c->ctx)->nccl;

    if (!c->handle || nj_cuda_enter(c->ctx))
        return;
    close_aside(c);
    if (settle_in(c, nccl->ncclCommFinalize(c->handle), END_SECONDS, "nj_comm_destroy") == 0)
        nccl->ncclCommDestroy(c->handle);
}

/* ---- memory ---- */

/* Memory that is registered with NCCL as a window, to which other ranks can copy. If they cannot, kernels transfer
 * it. */
struct nj_comm_memory {
    struct nj_comm_memory *next;
    void *at, *window;
};

static int register_window(nj_comm *c, struct nj_comm_memory *m, size_t bytes)
{
    const int rc = nj_cuda_of(c->ctx)->nccl.ncclCommWindowRegister(
        c->handle, m->at, bytes, &m->window, NJ_NCCL_WIN_COLL_SYMMETRIC);

    /* 2.28 reports success while it is still working. */
    return settle(c, rc != 0 ? rc : NJ_ncclInProgress, "nj_comm_alloc");
}

int nj_cuda_comm_alloc(nj_comm *c, size_t bytes, void **out)
{
    const struct nj_nccl *nccl = &nj_cuda_of(c->ctx)->nccl;
    struct nj_comm_memory *m;
    int rc = nj_cuda_enter(c->ctx);

    if (rc != 0 || c->ctx->info.managed || c->ctx->info.comm_version < COPY_ENGINES_FROM)
        return rc != 0 ? rc : nj_cuda_alloc(c->ctx, NJ_MEM_DEVICE, bytes, out);
    m = calloc(1, sizeof *m);
    if (!m)
        return nj_fail(c->ctx, NJ_E_NOMEM, "nj_comm_alloc: out of host memory");
    rc = settle(c, nccl->ncclMemAlloc(&m->at, bytes), "nj_comm_alloc");
    if (rc != 0) {
        free(m);
        return rc;
    }
    m->next = c->memory;
    c->memory = m;
    TRY(nj_cuda_clear(c->ctx, (uint64_t)(uintptr_t)m->at, bytes, "nj_comm_alloc"));
    TRY(register_window(c, m, bytes));
    *out = m->at; /* else NCCL may still write to m: the process ends */
    return 0;
}

void nj_cuda_comm_free(nj_comm *c, void *memory)
{
    const struct nj_nccl *nccl = &nj_cuda_of(c->ctx)->nccl;
    struct nj_comm_memory **at = &c->memory, *m;

    while (*at && (*at)->at != memory)
        at = &(*at)->next;
    m = *at;
    if (!m) /* memory that is not NCCL's */
        nj_cuda_free(c->ctx, NJ_MEM_DEVICE, memory);
    if (!m || nj_cuda_enter(c->ctx))
        return;
    *at = m->next;
    if (m->window)
        nccl->ncclCommWindowDeregister(c->handle, m->window);
    nccl->ncclMemFree(m->at);
    free(m);
}

/* ---- transfers ---- */

/* Check the result of a call within a group; GroupEnd waits for it. */
static int begun(int result)
{
    return result == NJ_ncclInProgress ? 0 : result;
}

/* End a group. rc: the result of its calls. */
static int end_group(const nj_comm *c, int rc)
{
    const int ended = nj_cuda_of(c->ctx)->nccl.ncclGroupEnd();

    return rc != 0 ? rc : ended;
}

static int all_to_all_in_pairs(const nj_comm *c, nj_stream *s, const struct nj_transfer *t)
{
    const struct nj_nccl *nccl = &nj_cuda_of(c->ctx)->nccl;
    int rc = nccl->ncclGroupStart();

    if (rc != 0)
        return rc;
    for (int peer = 0; peer < c->ranks && rc == 0; peer++) {
        const size_t at = (size_t)peer * t->bytes;

        rc = begun(nccl->ncclSend((const char *)t->send + at, t->bytes, NJ_ncclUint8, peer,
                                  c->handle, s->handle));
        if (rc == 0)
            rc = begun(nccl->ncclRecv((char *)t->recv + at, t->bytes, NJ_ncclUint8, peer, c->handle,
                                      s->handle));
    }
    return end_group(c, rc);
}

static int all_to_all(const nj_comm *c, nj_stream *s, const struct nj_transfer *t)
{
    const struct nj_nccl *nccl = &nj_cuda_of(c->ctx)->nccl;

    if (c->ctx->info.comm_version < COPY_ENGINES_FROM)
        return all_to_all_in_pairs(c, s, t);
    return nccl->ncclAlltoAll(t->send, t->recv, t->bytes, NJ_ncclUint8, c->handle, s->handle);
}

/* Gather by a kernel, without copy engines. */
static int all_gather_by_kernel(const nj_comm *c, nj_stream *s, const struct nj_transfer *t)
{
    const struct nj_nccl *nccl = &nj_cuda_of(c->ctx)->nccl;
    int rc = nccl->ncclGroupStart();

    if (rc != 0)
        return rc;
    for (int root = 0; root < c->ranks && rc == 0; root++) {
        char *to = (char *)t->recv + (size_t)root * t->bytes;

        rc = begun(nccl->ncclBroadcast(root == c->rank ? t->send : to, to, t->bytes, NJ_ncclUint8,
                                       root, c->handle, s->handle));
    }
    return end_group(c, rc);
}

static int all_gather(const nj_comm *c, nj_stream *s, const struct nj_transfer *t)
{
    if (t->bytes < SMALL_BYTES && c->memory)
        return all_gather_by_kernel(c, s, t);
    return nj_cuda_of(c->ctx)->nccl.ncclAllGather(t->send, t->recv, t->bytes, NJ_ncclUint8,
                                                  c->handle, s->handle);
}

static int broadcast(const nj_comm *c, nj_stream *s, const struct nj_transfer *t)
{
    return nj_cuda_of(c->ctx)->nccl.ncclBroadcast(t->send, t->recv, t->bytes, NJ_ncclUint8, t->root,
                                                  c->handle, s->handle);
}

/* Make `later` continue after the work that `first` holds now. */
static int follow(nj_stream *later, nj_stream *first, nj_event *e)
{
    TRY(nj_cuda_event_record(e, first));

    return nj_cuda_stream_wait(later, e);
}

int nj_cuda_comm_join(nj_comm *c, nj_stream *s)
{
    int rc = c->under_way ? nj_cuda_enter(c->ctx) : 0;

    if (rc == 0 && c->under_way)
        rc = follow(s, &c->aside, &c->ended);
    c->under_way = 0;
    return rc;
}

int nj_cuda_comm_aside(nj_comm *c, nj_stream *s, nj_stream **out)
{
    int rc = nj_cuda_enter(c->ctx);

    if (rc == 0)
        rc = follow(&c->aside, s, &c->begun);
    c->under_way = 1;
    *out = &c->aside;
    return rc;
}

static int run(nj_comm *c, nj_stream *s, const struct nj_transfer *t)
{
    static const struct {
        const char *name;
        int (*run)(const nj_comm *c, nj_stream *s, const struct nj_transfer *t);
    } kinds[] = {
        [NJ_ALL_TO_ALL] = {"nj_all_to_all", all_to_all},
        [NJ_ALL_GATHER] = {"nj_all_gather", all_gather},
        [NJ_BROADCAST] = {"nj_broadcast", broadcast},
    };
    s->ctx->last_key = kinds[t->kind].name;
    return settle(c, kinds[t->kind].run(c, s, t), kinds[t->kind].name);
}

int nj_cuda_transfer(nj_comm *c, nj_stream *s, const struct nj_transfer *t)
{
    TRY(nj_cuda_enter(c->ctx));

    if (s != &c->aside)
        TRY(nj_cuda_comm_join(c, s));
    return run(c, s, t);
}
