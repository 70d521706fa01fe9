/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl.c: a libnccl.so.2 for simulated GPUs, each of a process of its own on this host. It refuses
 * what the real one would hang or be slow with: a communicator that blocks, a call before the
 * communicator is ready, one that ends while a graph holds calls of it. It has no function that adds: nojit's own
 * kernel does. Set by environment variables:
 *
 *   NOJIT_SIM_NCCL_FAIL     a function that answers with result 3
 *   NOJIT_SIM_NCCL_MEMORY   bytes of device memory that the first call takes
 *   NOJIT_SIM_NCCL_VERSION  such as 22602
 *   NOJIT_SIM_NCCL_FAULT    RANK:CALL:WHAT: the CALL-th call of a rank (from 1; 0: it comes to the
 *                           group) fails; WHAT: die, hang or error
 *   NOJIT_SIM_NCCL_ORDER    N: parts of other ranks arrive from rank N on; -N: the other way round
 *   NOJIT_SIM_NCCL_LATE     RANK:MS: a rank that is late in each call
 *   NOJIT_SIM_NCCL_WAIT     seconds that a rank waits for another, 120 if it is not set
 */
#include "nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct nccl_call group; /* the open group of this process */
static void *group_stream;
static int group_depth;

int nccl_version(void)
{
    const char *told = getenv("NOJIT_SIM_NCCL_VERSION");
    return told != NULL ? (int)strtol(told, NULL, 10) : 22803;
}

NCCL_CALL(ncclGetVersion, (int *out), (out))
{
    *out = nccl_version();
    return 0;
}

NCCL_EXPORT const char *ncclGetErrorString(int result);
const char *ncclGetErrorString(int result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return result >= 0 && result <= NCCL_IN_PROGRESS ? texts[result] : "unknown result code";
}

NCCL_EXPORT const char *ncclGetLastError(const struct nccl_comm *comm);
const char *ncclGetLastError(const struct nccl_comm *comm)
{
    (void)comm;
    return nccl_last_error;
}

/* The file where ranks meet. */
NCCL_CALL(ncclGetUniqueId, (struct nj_nccl_id * out), (out))
{
    const char *folder = getenv("TMPDIR");
    memset(out, 0, sizeof *out);
    snprintf(out->bytes, sizeof out->bytes, "%s/nojit-nccl-XXXXXX", folder ? folder : "/tmp");
    const int fd = mkstemp(out->bytes);
    if (fd < 0)
        return nccl_say(NULL, NCCL_INTERNAL_ERROR, "no file can be made: %s", out->bytes);
    const int rc = ftruncate(fd, sizeof(struct nccl_group));
    close(fd);
    return rc ? NCCL_INTERNAL_ERROR : 0;
}

const struct sim_hook *nccl_hook(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const struct sim_hook *hook = driver ? dlsym(driver, SIM_HOOK) : NULL;
    return hook && hook->arch() != 0 ? hook : NULL;
}

static int is_off(const char *name)
{
    const char *value = getenv(name);
    return value && strcmp(value, "0") == 0;
}

static int check_config(const struct sim_hook *hook, int ranks, int rank,
                        const struct nj_nccl_config *config)
{
    if (ranks < 1 || ranks > NCCL_RANKS_MOST || rank < 0 || rank >= ranks)
        return nccl_say(hook, NCCL_INVALID_ARGUMENT, "rank %d of %d", rank, ranks);
    if (config->bytes != sizeof *config || config->magic != NJ_NCCL_CONFIG_MAGIC ||
        config->version != NJ_NCCL_CONFIG_VERSION)
        return nccl_say(hook, NCCL_INVALID_ARGUMENT, "the configuration is not that of 2.27");
    if (config->cta_policy == NJ_NCCL_CTA_POLICY_ZERO && nccl_version() < 22800)
        return nccl_say(hook, NCCL_INVALID_ARGUMENT, "no copy engines before 2.28");
    if (config->blocking)
        return nccl_say(hook, NCCL_INVALID_USAGE, "a communicator that blocks");
    if (!is_off("NCCL_NVLS_ENABLE") || !is_off("NCCL_RUNTIME_CONNECT"))
        return nccl_say(hook, NCCL_INVALID_USAGE,
                        "NCCL_NVLS_ENABLE and NCCL_RUNTIME_CONNECT must be 0");
    return 0;
}

NCCL_CALL(ncclCommInitRankConfig,
          (struct nccl_comm * *out, int ranks, struct nj_nccl_id id, int rank,
           const struct nj_nccl_config *config),
          (out, ranks, id, rank, config))
{
    const struct sim_hook *hook = nccl_hook();
    *out = NULL;
    if (!hook)
        return nccl_say(hook, NCCL_CUDA_ERROR, "no context is current");
    int rc = check_config(hook, ranks, rank, config);
    if (rc)
        return rc;
    struct nccl_comm *c = calloc(1, sizeof *c);
    if (!c)
        return NCCL_INTERNAL_ERROR;
    *c = (struct nccl_comm){.hook = hook, .fd = -1, .rank = rank, .ranks = ranks};
    c->copies = config->cta_policy == NJ_NCCL_CTA_POLICY_ZERO;
    memcpy(c->path, id.bytes, sizeof c->path - 1);
    rc = nccl_join(c, nccl_version());
    if (rc) {
        nccl_close(c);
        return rc;
    }
    *out = c;
    return NCCL_IN_PROGRESS;
}

NCCL_CALL(ncclCommGetAsyncError, (struct nccl_comm * c, int *out), (c, out))
{
    *out = c->ended ? nccl_leave(c) : nccl_joined(c);
    nccl_windows_settle(c);
    return 0;
}

static int check_ready(const struct nccl_comm *c)
{
    return c->ready && !c->ended && !nccl_windows_pending(c)
               ? 0
               : nccl_say(c->hook, NCCL_INVALID_USAGE, "rank %d: the communicator is %s", c->rank,
                          c->ended ? "ended" : "not ready: ask ncclCommGetAsyncError");
}

NCCL_CALL(ncclCommFinalize, (struct nccl_comm * c), (c))
{
    const int graphs = c->hook->held(nccl_run, &c, sizeof c), rc = check_ready(c);
    if (rc)
        return rc;
    if (graphs)
        return nccl_say(c->hook, NCCL_INVALID_USAGE,
                        "rank %d: %d graphs hold calls of the communicator: it would not end",
                        c->rank, graphs);
    if (c->windows)
        return nccl_say(c->hook, NCCL_INVALID_USAGE, "rank %d: memory is still registered",
                        c->rank);
    c->ended = 1;
    return NCCL_IN_PROGRESS;
}

NCCL_CALL(ncclCommDestroy, (struct nccl_comm * c), (c))
{
    if (!c->ended)
        return nccl_say(c->hook, NCCL_INVALID_USAGE, "rank %d: destroyed, not finalized", c->rank);
    nccl_close(c);
    return 0;
}

/* ---- calls ---- */

/* If both arrays are registered: a group is an all-to-all, from and to its first parts. */
static void by_copy_engines(struct nccl_call *call)
{
    const struct nccl_comm *c = call->comm;
    const struct nccl_at from = nccl_find(c, call->from), to = nccl_find(c, call->to);
    const int can = c->copies && call->kind != NCCL_BROADCAST && from.window && to.window;
    call->to_at = can ? to : (struct nccl_at){0};
}

static int enqueue(struct nccl_call *call, void *stream)
{
    struct nccl_comm *c = call->comm;
    int rc = check_ready(c);
    if (rc)
        return rc;
    if (nccl_is_faulty(c))
        return NCCL_REMOTE_ERROR;
    by_copy_engines(call);
    call->captured = c->hook->capturing(stream) == 1;
    call->number = call->captured ? 0 : ++c->enqueued;
    rc = c->hook->enqueue(stream, nccl_run, call, sizeof *call);
    return rc ? nccl_say(c->hook, NCCL_CUDA_ERROR, "a call cannot be enqueued: CUDA error %d", rc)
              : 0;
}

NCCL_CALL(ncclGroupStart, (void), ())
{
    if (group_depth++ == 0)
        group = (struct nccl_call){0};
    return 0;
}

NCCL_CALL(ncclGroupEnd, (void), ())
{
    if (group_depth == 0)
        return NCCL_INVALID_USAGE;
    return --group_depth == 0 && group.ops > 0 ? enqueue(&group, group_stream) : 0;
}

/* One of a group; a group of its own if none is open. */
static int add_op(const struct nccl_op *op, struct nccl_comm *c, void *stream)
{
    const int alone = group_depth == 0;
    if (alone)
        group = (struct nccl_call){0};
    if (group.ops == NCCL_OPS_MOST || op->peer < 0 || op->peer >= c->ranks ||
        (op->count && !nccl_bytes(op->type, op->count)))
        return nccl_say(c->hook, NCCL_INVALID_ARGUMENT,
                        "rank %d: peer %d, type %d, operation %d of a group", c->rank, op->peer,
                        op->type, group.ops);
    if (group.ops > 0 && (group.comm != c || group_stream != stream))
        return nccl_say(c->hook, NCCL_INVALID_USAGE, "a group of two communicators or streams");
    group.comm = c;
    group.kind = NCCL_GROUP;
    group.op[group.ops++] = *op;
    group_stream = stream;
    return alone ? enqueue(&group, stream) : 0;
}

NCCL_CALL(ncclSend,
          (uint64_t from, size_t count, int type, int peer, struct nccl_comm *c, void *stream),
          (from, count, type, peer, c, stream))
{
    return add_op(&(struct nccl_op){1, peer, type, count, from}, c, stream);
}

NCCL_CALL(ncclRecv,
          (uint64_t to, size_t count, int type, int peer, struct nccl_comm *c, void *stream),
          (to, count, type, peer, c, stream))
{
    return add_op(&(struct nccl_op){0, peer, type, count, to}, c, stream);
}

/* Add to the group the broadcast in which the root sends and all ranks receive. */
static int add_broadcast(uint64_t from, uint64_t to, size_t count, int type, int root,
                         struct nccl_comm *c, void *stream)
{
    const int own = c->rank == root, moves = !own || from != to;
    int rc = moves ? add_op(&(struct nccl_op){0, root, type, count, to}, c, stream) : 0;
    for (int peer = 0; own && peer < c->ranks && !rc; peer++)
        if (peer != root || moves)
            rc = add_op(&(struct nccl_op){1, peer, type, count, from}, c, stream);
    return rc;
}

/* A call of all ranks. */
static int collect(struct nccl_call call, void *stream)
{
    if (group_depth > 0)
        return nccl_say(call.comm->hook, NCCL_INVALID_USAGE, "a collective call within a group");
    if (call.root < 0 || call.root >= call.comm->ranks ||
        (call.count && !nccl_bytes(call.type, call.count)))
        return nccl_say(call.comm->hook, NCCL_INVALID_ARGUMENT, "root %d, type %d", call.root,
                        call.type);
    return enqueue(&call, stream);
}

NCCL_CALL(ncclAllGather,
          (uint64_t from, uint64_t to, size_t count, int type, struct nccl_comm *c, void *stream),
          (from, to, count, type, c, stream))
{
    return collect((struct nccl_call){.comm = c,
                                      .kind = NCCL_ALL_GATHER,
                                      .type = type,
                                      .count = count,
                                      .from = from,
                                      .to = to},
                   stream);
}

NCCL_CALL(ncclBroadcast,
          (uint64_t from, uint64_t to, size_t count, int type, int root, struct nccl_comm *c,
           void *stream),
          (from, to, count, type, root, c, stream))
{
    if (group_depth > 0)
        return add_broadcast(from, to, count, type, root, c, stream);
    return collect((struct nccl_call){.comm = c,
                                      .kind = NCCL_BROADCAST,
                                      .type = type,
                                      .root = root,
                                      .count = count,
                                      .from = from,
                                      .to = to},
                   stream);
}

/* A group that sends each rank a part and receives one from it. */
NCCL_CALL(ncclAlltoAll,
          (uint64_t from, uint64_t to, size_t count, int type, struct nccl_comm *c, void *stream),
          (from, to, count, type, c, stream))
{
    const uint64_t bytes = nccl_bytes(type, count);
    struct nccl_call call = {.comm = c, .kind = NCCL_GROUP, .from = from, .to = to};
    if (nccl_version() < 22800 || group_depth > 0 || (count && !bytes))
        return nccl_say(c->hook, NCCL_INVALID_USAGE, "an all-to-all before 2.28, or in a group");
    for (int peer = 0; peer < c->ranks; peer++) {
        const uint64_t at = (uint64_t)peer * bytes;
        call.op[call.ops++] = (struct nccl_op){1, peer, type, count, from + at};
        call.op[call.ops++] = (struct nccl_op){0, peer, type, count, to + at};
    }
    return enqueue(&call, stream);
}
