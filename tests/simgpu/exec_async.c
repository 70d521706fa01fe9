/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_async.c: cp.async. The bytes are fetched at once, and reach shared memory when their thread
 * waits for them; in between, the words count as written by that thread and not yet readable.
 */
#include "exec.h"

#include <string.h>

/* [shared], [global], bytes, bytes to fetch: the rest becomes zero. */
static void copy_async(struct warp *warp, const struct insn *insn)
{
    const uint32_t *to = sim_slot(warp, insn->o[0]), *fetch = sim_slot(warp, insn->o[2]);
    const uint64_t *from = sim_slot(warp, insn->o[1]);
    const uint32_t bytes = (uint32_t)insn->integer[2];
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        uint32_t at = to[lane] + (uint32_t)insn->integer[0];
        const uint64_t source = from[lane] + (uint64_t)(int64_t)insn->integer[1];
        unsigned char data[16] = {0};
        if (bytes > sizeof data || fetch[lane] > bytes) {
            sim_fault_at(warp, insn, lane, SIM_ILLEGAL_ADDRESS, "fetches %u bytes of %u",
                         fetch[lane], bytes);
            return;
        }
        if (!sim_shared_at(warp, insn, lane, at, bytes, &at) ||
            (fetch[lane] && !sim_global_read(warp, insn, lane, source, fetch[lane], bytes, data)) ||
            !sim_shared_write(warp, insn, lane, at, bytes, USE_IN_FLIGHT) ||
            !sim_grow(warp, insn, lane, &warp->transfers, warp->transfer_count,
                      &warp->transfer_room, sizeof *warp->transfers))
            return;
        struct transfer *transfer = &warp->transfers[warp->transfer_count++];
        *transfer = (struct transfer){at, bytes, (uint32_t)lane, warp->batches[lane], {0}};
        memcpy(transfer->data, data, sizeof data);
    }
}

/* Ends the transfers of the active lanes, but for those of their latest `kept` batches. */
static void finish(struct warp *warp, const struct insn *insn, bool all, uint32_t kept)
{
    uint32_t still = 0;
    for (uint32_t i = 0; i < warp->transfer_count; i++) {
        const struct transfer transfer = warp->transfers[i];
        const bool done = all || transfer.batch + kept < warp->batches[transfer.lane];
        if (!(warp->mask >> transfer.lane & 1) || !done) {
            warp->transfers[still++] = transfer;
            continue;
        }
        if (!sim_shared_write(warp, insn, (int)transfer.lane, transfer.to, transfer.bytes,
                              USE_ARRIVED))
            return;
        memcpy(warp->block->shared + transfer.to, transfer.data, transfer.bytes);
    }
    warp->transfer_count = still;
}

static void wait_all(struct warp *warp, const struct insn *insn)
{
    finish(warp, insn, true, 0);
}

static void wait_group(struct warp *warp, const struct insn *insn)
{
    finish(warp, insn, false, (uint32_t)insn->integer[0]);
}

static void commit_group(struct warp *warp, const struct insn *insn)
{
    (void)insn;
    for (int lane = 0; lane < LANES; lane++)
        warp->batches[lane] += warp->lanes[lane] & 1;
}

static const struct sim_opcode rows[] = {
    {"cp.async.ca.shared.global", "=SGir", copy_async, GUARD_LANES},
    {"cp.async.cg.shared.global", "=SGir", copy_async, GUARD_LANES},
    {"cp.async.wait_all", "=", wait_all, GUARD_LANES},
    {"cp.async.wait_group", "=i", wait_group, GUARD_LANES},
    {"cp.async.commit_group", "=", commit_group, GUARD_LANES},
};
SIM_TABLE(sim_async_opcodes, rows);
