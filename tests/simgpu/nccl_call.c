/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl_call.c: one call of the simulated NCCL, as work of a stream: each rank writes what it sends to
 * its part of the file, all see that they make the same call, then each reads what it is sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nccl.h"

enum { ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719, LARGE_BYTES = 1 << 20 };

uint64_t nccl_bytes(int type, uint64_t count)
{
    static const unsigned char bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && type < (int)sizeof bytes ? bytes[type] * count : 0;
}

static const char *describe(const struct nccl_call *call, char out[96])
{
    static const char *const names[] = {[NCCL_GROUP] = "a group",
                                        [NCCL_ALL_GATHER] = "an all-gather",
                                        [NCCL_BROADCAST] = "a broadcast"};
    const char *where = call->captured ? " of a graph" : "";
    if (call->kind == NCCL_GROUP)
        snprintf(out, 96, "%s of %d%s", names[call->kind], call->ops, where);
    else
        snprintf(out, 96, "%s of %llu of type %d, root %d%s", names[call->kind],
                 (unsigned long long)call->count, call->type, call->root, where);
    return out;
}

static off_t part_of(int rank)
{
    const uint64_t header = (sizeof(struct nccl_group) + 4095) & ~(uint64_t)4095;
    return (off_t)(header + (uint64_t)rank * NCCL_DATA_BYTES);
}

/* ---- bytes ---- */

static bool is_zero(const char *memory, uint64_t bytes)
{
    return memory[0] == 0 && memcmp(memory, memory + 1, bytes - 1) == 0;
}

/* Moves many zeros, as links are tried with, as a hole of the file. False if they are none, or it has no holes. */
static bool move_zeros(const struct nccl_comm *c, char *memory, uint64_t bytes, off_t at,
                       int writes)
{
    if (bytes < LARGE_BYTES)
        return false;
    if (!writes)
        return is_zero(memory, bytes) &&
               fallocate(c->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, (off_t)bytes) == 0;
    const off_t data = lseek(c->fd, at, SEEK_DATA);
    if (data < 0 ? errno != ENXIO : data < at + (off_t)bytes)
        return false;
    if (!is_zero(memory, bytes)) /* pages that are zero stay untouched */
        memset(memory, 0, bytes);
    return true;
}

static int move(struct nccl_comm *c, uint64_t address, uint64_t bytes, off_t at, int writes)
{
    char *memory = bytes ? c->hook->bytes(address, bytes, writes, "NCCL") : NULL;
    if (bytes == 0)
        return 0;
    if (!memory)
        return nccl_fault(
            c, "rank %d, call %llu: %llu bytes to %s are not of one allocation, or not written",
            c->rank, (unsigned long long)c->calls, (unsigned long long)bytes,
            writes ? "receive" : "send");
    if (move_zeros(c, memory, bytes, at, writes))
        return 0;
    while (bytes > 0) {
        const ssize_t n =
            writes ? pread(c->fd, memory, bytes, at) : pwrite(c->fd, memory, bytes, at);
        if (n <= 0)
            return nccl_fault(c, "rank %d: the file of the group cannot be used", c->rank);
        memory += n;
        at += n;
        bytes -= (uint64_t)n;
    }
    return 0;
}

static int send_all(const struct nccl_call *call)
{
    struct nccl_comm *c = call->comm;
    const uint64_t bytes = nccl_bytes(call->type, call->count);
    off_t at = part_of(c->rank);
    if (call->kind != NCCL_GROUP)
        return call->kind == NCCL_ALL_GATHER || call->root == c->rank
                   ? move(c, call->from, bytes, at, 0)
                   : 0;
    for (int i = 0; i < call->ops; i++) {
        const struct nccl_op *op = &call->op[i];
        const uint64_t n = nccl_bytes(op->type, op->count);
        if (!op->sends)
            continue;
        if (move(c, op->address, n, at, 0))
            return NCCL_REMOTE_ERROR;
        at += (off_t)n;
    }
    return 0;
}

/* The n-th operation of a call that sends to the peer or receives from it; *at: what is sent before. */
static const struct nccl_op *find_op(const struct nccl_call *call, int sends, int peer, int n,
                                     off_t *at)
{
    for (int i = 0; i < call->ops; i++) {
        const struct nccl_op *op = &call->op[i];
        if (op->sends == sends && op->peer == peer && n-- == 0)
            return op;
        if (op->sends)
            *at += (off_t)nccl_bytes(op->type, op->count);
    }
    return NULL;
}

static int receive_from(const struct nccl_call *call, int peer)
{
    struct nccl_comm *c = call->comm;
    const struct nccl_op *op;
    off_t unused = 0;
    for (int n = 0; (op = find_op(call, 0, peer, n, &unused)) != NULL; n++) {
        off_t at = part_of(peer);
        find_op(&c->group->place[peer].call, 1, c->rank, n, &at);
        if (move(c, op->address, nccl_bytes(op->type, op->count), at, 1))
            return NCCL_REMOTE_ERROR;
    }
    return 0;
}

/* The n-th rank whose part arrives: NCCL promises no order. */
static int arrives(const struct nccl_comm *c, int n)
{
    const char *told = getenv("NOJIT_SIM_NCCL_ORDER");
    const int shift = told ? (int)strtol(told, NULL, 10) : 0, ranks = c->ranks;
    return shift < 0 ? (2 * ranks - 1 - n + shift % ranks) % ranks : (n + shift) % ranks;
}

static int receive_all(const struct nccl_call *call)
{
    struct nccl_comm *c = call->comm;
    const uint64_t bytes = nccl_bytes(call->type, call->count);
    int rc = 0;
    if (call->kind == NCCL_BROADCAST)
        return move(c, call->to, bytes, part_of(call->root), 1);
    for (int n = 0; n < c->ranks && !rc; n++) {
        const int rank = arrives(c, n);
        rc = call->kind == NCCL_GROUP
                 ? receive_from(call, rank)
                 : move(c, call->to + (uint64_t)rank * bytes, bytes, part_of(rank), 1);
    }
    return rc;
}

/* ---- whether all ranks make the same call ---- */

static int overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static int check_own(const struct nccl_call *call)
{
    struct nccl_comm *c = call->comm;
    const uint64_t bytes = nccl_bytes(call->type, call->count);
    int bad = call->kind == NCCL_ALL_GATHER && call->from != call->to + (uint64_t)c->rank * bytes &&
              overlap(call->from, bytes, call->to, (uint64_t)c->ranks * bytes);
    for (int i = 0; i < call->ops; i++)
        for (int k = 0; k < call->ops; k++)
            bad |= call->op[i].sends && !call->op[k].sends &&
                   overlap(call->op[i].address, nccl_bytes(call->op[i].type, call->op[i].count),
                           call->op[k].address, nccl_bytes(call->op[k].type, call->op[k].count));
    if (bad)
        return nccl_fault(c, "rank %d, call %llu: what is sent and what is received overlap",
                          c->rank, (unsigned long long)c->calls);
    if (call->number && call->number != c->last_run + 1)
        return nccl_fault(c, "rank %d, call %llu: runs before an earlier one of another stream",
                          c->rank, (unsigned long long)call->number);
    c->last_run += call->number ? 1 : 0;
    return 0;
}

/* Every send of one rank to another has its receive. */
static int check_pair(struct nccl_comm *c, int from, int to)
{
    const struct nccl_group *g = c->group;
    for (int n = 0;; n++) {
        off_t unused = 0;
        const struct nccl_op *send = find_op(&g->place[from].call, 1, to, n, &unused);
        const struct nccl_op *receive = find_op(&g->place[to].call, 0, from, n, &unused);
        if (!send && !receive)
            return 0;
        if (!send || !receive)
            return nccl_fault(c, "call %llu: rank %d %s rank %d, which does not %s",
                              (unsigned long long)c->calls, send ? from : to,
                              send ? "sends to" : "receives from", send ? to : from,
                              send ? "receive" : "send");
        if (send->count != receive->count || send->type != receive->type)
            return nccl_fault(
                c, "call %llu: rank %d sends %llu of type %d, rank %d receives %llu of type %d",
                (unsigned long long)c->calls, from, (unsigned long long)send->count, send->type, to,
                (unsigned long long)receive->count, receive->type);
    }
}

/* A copy engine writes to another rank's memory where its own arrays lie. */
static int check_places(const struct nccl_call *call)
{
    struct nccl_comm *c = call->comm;
    for (int rank = 0; rank < c->ranks; rank++) {
        const struct nccl_at *its = &c->group->place[rank].call.to_at, *own = &call->to_at;
        if (memcmp(its, own, sizeof *own) != 0)
            return nccl_fault(c,
                              "call %llu: rank %d receives at byte %llu of window %llu of %llu "
                              "bytes, rank %d at byte %llu of window %llu of %llu",
                              (unsigned long long)c->calls, rank, (unsigned long long)its->offset,
                              (unsigned long long)its->window, (unsigned long long)its->bytes,
                              c->rank, (unsigned long long)own->offset,
                              (unsigned long long)own->window, (unsigned long long)own->bytes);
    }
    return 0;
}

static int check_all(const struct nccl_call *call)
{
    struct nccl_comm *c = call->comm;
    char mine[96], other[96];
    int rc = check_places(call);
    for (int rank = 0; rank < c->ranks && !rc; rank++) {
        const struct nccl_call *its = &c->group->place[rank].call;
        if (its->kind == call->kind && its->type == call->type && its->root == call->root &&
            its->count == call->count && its->captured == call->captured)
            continue;
        return nccl_fault(c, "call %llu: rank %d makes %s, rank %d %s",
                          (unsigned long long)c->calls, rank, describe(its, other), c->rank,
                          describe(call, mine));
    }
    for (int from = 0; call->kind == NCCL_GROUP && from < c->ranks && !rc; from++)
        for (int to = 0; to < c->ranks && !rc; to++)
            rc = check_pair(c, from, to);
    return rc;
}

static void connect_peers(struct nccl_comm *c)
{
    const char *memory = getenv("NOJIT_SIM_NCCL_MEMORY");
    if (memory && !c->connected)
        c->hook->keep(strtoull(memory, NULL, 10));
    c->connected = 1;
}

int nccl_run(void *argument)
{
    const struct nccl_call *call = argument;
    struct nccl_comm *c = call->comm;
    char what[96];
    describe(call, what);
    c->calls++;
    connect_peers(c);
    nccl_be_late(c);
    int rc = nccl_is_faulty(c) || nccl_told(c, c->calls) || check_own(call) || send_all(call);
    if (rc)
        return LAUNCH_FAILED;
    c->group->place[c->rank].call = *call;
    rc = nccl_wait(c, 2 * c->calls - 1, what) || check_all(call) || receive_all(call) ||
         nccl_wait(c, 2 * c->calls, what);
    return rc ? LAUNCH_FAILED : 0;
}
