/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_flow.c: the way of a warp through its code: branches, groups of lanes that part and meet,
 * barriers, the end. Barriers count every thread of the block, as the `aligned` forms ask: a warp
 * arrives whole, and threads that have ended are missed.
 */
#include "exec.h"

void sim_set_mask(struct warp *warp, uint32_t mask)
{
    warp->mask = mask;
    warp->full = mask == UINT32_MAX;
    for (int lane = 0; lane < LANES; lane++)
        warp->lanes[lane] = 0 - (mask >> lane & 1);
}

/* Lanes whose predicate is set, active or not. */
static uint32_t lanes_set(const struct warp *warp, sim_place predicate)
{
    const uint32_t *set = sim_slot(warp, predicate);
    uint32_t mask = 0;
    for (int lane = 0; lane < LANES; lane++)
        mask |= set[lane] & UINT32_C(1) << lane;
    return mask;
}

static uint32_t guard_mask(const struct warp *warp, const struct insn *insn)
{
    if (!insn->guarded)
        return warp->mask;
    const uint32_t set = lanes_set(warp, insn->guard);
    return warp->mask & (insn->guard_inverted ? ~set : set);
}

void sim_run_guarded(struct warp *warp, const struct insn *insn)
{
    const uint32_t mask = warp->mask, kept = guard_mask(warp, insn);
    if (!kept)
        return;
    sim_set_mask(warp, kept);
    insn->opcode->run(warp, insn);
    sim_set_mask(warp, mask);
}

/* The next group to run: the one furthest back that need not wait, merged with all that stand at
 * the same instruction. Returns false if none can run. */
static bool pick_group(struct warp *warp)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < warp->group_count; i++)
        if (!warp->groups[i].waits && (best == UINT32_MAX || warp->groups[i].pc < best))
            best = warp->groups[i].pc;
    if (best == UINT32_MAX)
        return false;
    uint32_t mask = 0, kept = 0;
    warp->leave_at = UINT32_MAX;
    for (uint32_t i = 0; i < warp->group_count; i++) {
        const struct group group = warp->groups[i];
        if (group.pc == best) {
            mask |= group.mask;
            continue;
        }
        if (group.pc > best && group.pc < warp->leave_at)
            warp->leave_at = group.pc;
        warp->groups[kept++] = group;
    }
    warp->group_count = kept;
    warp->pc = best;
    warp->waits = false;
    sim_set_mask(warp, mask);
    return true;
}

static void push_group(struct warp *warp, uint32_t pc, uint32_t mask, bool waits)
{
    if (mask)
        warp->groups[warp->group_count++] = (struct group){pc, mask, waits};
}

/* Lanes that wait for others look again. */
static void wake_groups(struct warp *warp)
{
    for (uint32_t i = 0; i < warp->group_count; i++)
        warp->groups[i].waits = false;
}

bool sim_gather(struct warp *warp, uint32_t lanes)
{
    if ((lanes & warp->live & ~warp->mask) == 0)
        return true;
    warp->pc--;
    warp->waits = true;
    warp->leave_at = 0;
    return false;
}

static void report_stuck(struct warp *warp)
{
    const struct group *group = &warp->groups[0];
    const struct insn *insn = &warp->block->launch->entry->code[group->pc];
    sim_fault_at(warp, insn, __builtin_ctz(group->mask), SIM_DIVERGENT_BARRIER,
                 "lanes %08x of the warp wait here for lanes that wait elsewhere or have ended "
                 "(%08x of %08x live)",
                 group->mask, warp->live, warp->exists);
}

static void run_warp(struct warp *warp)
{
    const struct insn *code = warp->block->launch->entry->code;
    while (warp->state == WARP_READY && !warp->block->stop) {
        uint64_t instructions = 0;
        while (warp->pc < warp->leave_at) {
            const struct insn *insn = &code[warp->pc++];
            instructions++;
            insn->run(warp, insn);
        }
        warp->instructions += instructions;
        if (warp->state != WARP_READY)
            return;
        push_group(warp, warp->pc, warp->mask, warp->waits);
        if (!pick_group(warp)) {
            if (warp->group_count)
                report_stuck(warp);
            else
                warp->state = WARP_DONE;
        }
    }
}

/* Loops are counted by their jumps: a long one may run for longer. */
static void run_branch(struct warp *warp, const struct insn *insn)
{
    const uint32_t taken = guard_mask(warp, insn);
    if (--warp->left == 0) {
        sim_fault_at(warp, insn, __builtin_ctz(warp->mask), SIM_TRAP,
                     "the warp has jumped %d times without an end", JUMPS_MAX);
        return;
    }
    if (taken == warp->mask) {
        warp->pc = insn->target;
    } else if (taken) {
        push_group(warp, warp->pc, warp->mask & ~taken, false);
        warp->pc = insn->target;
        sim_set_mask(warp, taken);
        warp->leave_at = 0;
    }
    if (warp->group_count)
        warp->leave_at = 0;
}

static void run_exit(struct warp *warp, const struct insn *insn)
{
    const uint32_t ended = guard_mask(warp, insn);
    warp->live &= ~ended;
    sim_set_mask(warp, warp->mask & ~ended);
    wake_groups(warp);
    warp->leave_at = 0;
}

static void run_trap(struct warp *warp, const struct insn *insn)
{
    const uint32_t trapped = guard_mask(warp, insn);
    if (trapped)
        sim_fault_at(warp, insn, __builtin_ctz(trapped), SIM_TRAP, "the thread traps");
}

/* True if the warp stands whole at barrier 0. */
static bool arrive(struct warp *warp, const struct insn *insn)
{
    if (insn->integer[0] != 0) {
        sim_fault_at(warp, insn, 0, SIM_BAD_PTX, "barrier %d is not known to the machine: only 0",
                     insn->integer[0]);
        return false;
    }
    if (!sim_gather(warp, warp->exists))
        return false;
    if (warp->mask != warp->exists) {
        sim_fault_at(warp, insn, __builtin_ctz(warp->exists & ~warp->mask), SIM_DIVERGENT_BARRIER,
                     "the thread has ended, others of its warp wait at a barrier");
        return false;
    }
    warp->state = WARP_AT_BARRIER;
    warp->barrier = insn;
    warp->leave_at = 0;
    return true;
}

static void run_barrier(struct warp *warp, const struct insn *insn)
{
    arrive(warp, insn);
}

static void run_barrier_count(struct warp *warp, const struct insn *insn)
{
    if (arrive(warp, insn))
        warp->block->barrier_sum +=
            (uint32_t)__builtin_popcount(warp->mask & lanes_set(warp, insn->o[1]));
}

static void run_warp_barrier(struct warp *warp, const struct insn *insn)
{
    const uint32_t *member = sim_slot(warp, insn->o[0]);
    if (sim_gather(warp, member[__builtin_ctz(warp->mask)]))
        sim_shared_warp_barrier(warp);
}

/* Lets the warps go on from the barrier at which all of them stand. */
static void release(struct block *block)
{
    for (uint32_t i = 0; i < block->launch->warps; i++) {
        struct warp *warp = &block->warps[i];
        if (warp->barrier->opcode->run == run_barrier_count) {
            uint32_t *result = sim_slot(warp, warp->barrier->o[0]);
            for (int lane = 0; lane < LANES; lane++)
                result[lane] = warp->lanes[lane] ? block->barrier_sum : result[lane];
        }
        warp->state = WARP_READY;
        warp->leave_at = UINT32_MAX;
    }
    block->barrier_sum = 0;
    sim_shared_barrier(block);
}

/* True once every warp has ended; a fault if some wait for those that have. */
static bool block_ended(struct block *block)
{
    struct warp *waiting = NULL, *ended = NULL;
    for (uint32_t i = 0; i < block->launch->warps; i++) {
        if (block->warps[i].state == WARP_DONE)
            ended = &block->warps[i];
        else
            waiting = &block->warps[i];
    }
    if (ended && waiting)
        sim_fault_at(waiting, waiting->barrier, 0, SIM_DIVERGENT_BARRIER,
                     "the warp waits at a barrier, threads from %u on have ended",
                     ended->first_thread);
    return ended;
}

void sim_run_block(struct block *block)
{
    while (!block->stop) {
        for (uint32_t i = 0; i < block->launch->warps && !block->stop; i++)
            run_warp(&block->warps[i]);
        if (block->stop || block_ended(block))
            return;
        release(block);
    }
}

static const struct sim_opcode rows[] = {
    {"bra", "=L", run_branch, GUARD_OWN},
    {"bra.uni", "=L", run_branch, GUARD_OWN},
    {"ret", "=", run_exit, GUARD_OWN},
    {"exit", "=", run_exit, GUARD_OWN},
    {"trap", "=", run_trap, GUARD_OWN},
    {"bar.sync", "=i", run_barrier, GUARD_REFUSED},
    {"bar.red.popc.u32", "r=ip", run_barrier_count, GUARD_REFUSED},
    {"bar.warp.sync", "=r", run_warp_barrier, GUARD_REFUSED},
};
SIM_TABLE(sim_flow_opcodes, rows);
