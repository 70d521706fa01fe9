/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_flow.c: the way of a warp through its code: branches, groups of lanes that part and meet,
 * barriers, the end. Barriers count threads of the block, all of them or as many as they say, as the
 * `aligned` forms ask: a warp arrives whole, and threads that have ended are missed.
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

/* Return whether some group waits for another warp or a copy. */
static bool waits_for_others(const struct warp *warp)
{
    for (uint32_t i = 0; i < warp->group_count; i++)
        if (warp->groups[i].waits == WAITS_FOR_OTHERS)
            return true;
    return false;
}

/* The next group to run: the one furthest back that need not wait, merged with all that stand at
 * the same instruction. Returns false if none can run. */
static bool pick_group(struct warp *warp)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < warp->group_count; i++)
        if (warp->groups[i].waits == WAITS_NOT && (best == UINT32_MAX || warp->groups[i].pc < best))
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
    warp->waits = WAITS_NOT;
    if (!waits_for_others(warp))
        warp->stuck = NULL;
    sim_set_mask(warp, mask);
    return true;
}

static void push_group(struct warp *warp, uint32_t pc, uint32_t mask, enum group_waits waits)
{
    if (mask)
        warp->groups[warp->group_count++] = (struct group){pc, mask, waits};
}

/* Groups that wait look again. */
static void wake_groups(struct warp *warp)
{
    for (uint32_t i = 0; i < warp->group_count; i++)
        warp->groups[i].waits = WAITS_NOT;
    warp->stuck = NULL;
}

void sim_wait(struct warp *warp, const struct insn *insn, sim_stuck *stuck)
{
    warp->pc--;
    warp->waits = WAITS_FOR_OTHERS;
    warp->leave_at = 0;
    if (!warp->stuck) /* no other group waits, and nothing can have happened since */
        warp->seen = warp->block->events;
    else if (warp->barrier < insn) /* another group is further back */
        return;
    warp->barrier = insn;
    warp->stuck = stuck;
    warp->stuck_lane = __builtin_ctz(warp->mask);
}

bool sim_gather(struct warp *warp, uint32_t lanes)
{
    if ((lanes & warp->live & ~warp->mask) == 0)
        return true;
    warp->pc--;
    warp->waits = WAITS_FOR_LANES;
    warp->leave_at = 0;
    return false;
}

bool sim_is_whole(struct warp *warp, const struct insn *insn)
{
    if (!sim_gather(warp, UINT32_MAX))
        return false;
    if (warp->full)
        return true;
    sim_fault_at(warp, insn, __builtin_ctz(warp->mask), SIM_DIVERGENT_BARRIER,
                 "needs all lanes of the warp, has %08x", warp->mask);
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
        if (pick_group(warp))
            continue;
        warp->state = warp->group_count ? WARP_WAITS : WARP_DONE;
        if (warp->group_count && !waits_for_others(warp))
            report_stuck(warp);
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
        push_group(warp, warp->pc, warp->mask & ~taken, WAITS_NOT);
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
    warp->block->events++;
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

/* The barrier at which the warp stands whole, or NULL: it waits for lanes, or a fault. */
static struct named *arrive(struct warp *warp, const struct insn *insn, uint32_t threads)
{
    struct block *block = warp->block;
    if (insn->integer[0] < 0 || insn->integer[0] >= NAMED_MAX) {
        sim_fault_at(warp, insn, 0, SIM_BAD_PTX, "barrier %d is not there: 0 to %d are",
                     insn->integer[0], NAMED_MAX - 1);
        return NULL;
    }
    if (!sim_gather(warp, warp->exists))
        return NULL;
    if (warp->mask != warp->exists) {
        sim_fault_at(warp, insn, __builtin_ctz(warp->exists & ~warp->mask), SIM_DIVERGENT_BARRIER,
                     "the thread has ended, others of its warp wait at a barrier");
        return NULL;
    }
    struct named *named = &block->named[warp->rank][insn->integer[0]];
    if (named->arrived && named->expected != threads) {
        sim_fault_at(warp, insn, 0, SIM_DIVERGENT_BARRIER,
                     "waits for %u threads at barrier %d, where others wait for %u", threads,
                     insn->integer[0], named->expected);
        return NULL;
    }
    named->expected = threads;
    named->arrived += (uint32_t)__builtin_popcount(warp->mask);
    sim_shared_let_go(warp);
    warp->state = WARP_AT_BARRIER;
    warp->barrier = insn;
    warp->leave_at = 0;
    return named;
}

static void run_barrier(struct warp *warp, const struct insn *insn)
{
    arrive(warp, insn, warp->block->launch->threads);
}

static void run_barrier_some(struct warp *warp, const struct insn *insn)
{
    arrive(warp, insn, (uint32_t)insn->integer[1]);
}

static void run_barrier_count(struct warp *warp, const struct insn *insn)
{
    struct named *named = arrive(warp, insn, warp->block->launch->threads);
    if (named)
        named->sum += (uint32_t)__builtin_popcount(warp->mask & lanes_set(warp, insn->o[1]));
}

static void run_warp_barrier(struct warp *warp, const struct insn *insn)
{
    const uint32_t *member = sim_slot(warp, insn->o[0]);
    if (sim_gather(warp, member[__builtin_ctz(warp->mask)]))
        sim_shared_warp_barrier(warp);
}

/* Order all accesses before the barrier in any of its warps before those that follow in all of them. */
static void order_barrier(struct block *block, struct warp *const *warps, uint32_t count)
{
    struct order order = {{0}};
    const uint32_t now = sim_tick(block);
    for (uint32_t i = 0; i < count; i++)
        sim_order_join(&order, &warps[i]->order);
    for (uint32_t i = 0; i < count; i++)
        order.before[warps[i]->index] = now;
    for (uint32_t i = 0; i < count; i++)
        warps[i]->order = order;
}

/* Lets the warps go on from a barrier that all of its threads have reached. */
static void release(struct block *block, uint32_t rank, int number)
{
    const struct launch *launch = block->launch;
    struct named *named = &block->named[rank][number];
    struct warp *warps[WARPS_MAX];
    uint32_t count = 0;
    for (uint32_t i = rank * launch->warps; i < (rank + 1) * launch->warps; i++) {
        struct warp *warp = &block->warps[i];
        if (warp->state != WARP_AT_BARRIER || warp->barrier->integer[0] != number)
            continue;
        if (warp->barrier->opcode->run == run_barrier_count) {
            uint32_t *result = sim_slot(warp, warp->barrier->o[0]);
            for (int lane = 0; lane < LANES; lane++)
                result[lane] = warp->lanes[lane] ? named->sum : result[lane];
        }
        warp->state = WARP_READY;
        warp->leave_at = UINT32_MAX;
        warps[count++] = warp;
    }
    *named = (struct named){0};
    if (count == launch->cluster_warps)
        sim_shared_barrier(block);
    if (launch->entry->needs)
        order_barrier(block, warps, count);
}

/* Barriers that all of their threads have reached let them go on; returns false if there is none. */
static bool release_barriers(struct block *block)
{
    bool any = false;
    for (uint32_t i = 0; i < block->launch->cluster_warps; i++) {
        const struct warp *warp = &block->warps[i];
        if (warp->state != WARP_AT_BARRIER)
            continue;
        const struct named *named = &block->named[warp->rank][warp->barrier->integer[0]];
        if (named->arrived != named->expected)
            continue;
        release(block, warp->rank, warp->barrier->integer[0]);
        any = true;
    }
    return any;
}

/* Nothing goes on: what the warp waits for that is furthest back. */
static void report_deadlock(struct block *block)
{
    const uint32_t warps = block->launch->warps;
    struct warp *waiting = NULL;
    for (uint32_t i = block->launch->cluster_warps; i-- > 0;) {
        struct warp *warp = &block->warps[i];
        if (warp->state != WARP_DONE && (!waiting || warp->barrier <= waiting->barrier))
            waiting = warp;
    }
    if (waiting->state == WARP_WAITS) {
        waiting->stuck(waiting, waiting->barrier, waiting->stuck_lane);
        return;
    }
    const struct insn *insn = waiting->barrier;
    const struct named *named = &block->named[waiting->rank][insn->integer[0]];
    const struct warp *of = &block->warps[waiting->rank * warps];
    uint32_t ended = 0;
    while (ended < warps && of[ended].state != WARP_DONE)
        ended++;
    if (ended < warps)
        sim_fault_at(waiting, insn, 0, SIM_DIVERGENT_BARRIER,
                     "the warp waits at a barrier, threads from %u on have ended", ended * LANES);
    else
        sim_fault_at(waiting, insn, 0, SIM_DIVERGENT_BARRIER,
                     "the warp waits at barrier %d, which %u of %u threads have reached",
                     insn->integer[0], named->arrived, named->expected);
}

/* Runs each warp that can go on until it has to wait; returns false if none could. */
static bool run_warps(struct block *block)
{
    bool any = false;
    for (uint32_t i = 0; i < block->launch->cluster_warps && !block->stop; i++) {
        struct warp *warp = &block->warps[i];
        if (warp->state == WARP_WAITS && warp->seen != block->events) {
            wake_groups(warp);
            warp->state = WARP_READY;
            pick_group(warp);
        }
        if (warp->state != WARP_READY)
            continue;
        run_warp(warp);
        any = true;
        if (block->copy_count)
            sim_copies_arrive(block);
    }
    return any;
}

static bool has_ended(const struct block *block)
{
    for (uint32_t i = 0; i < block->launch->cluster_warps; i++)
        if (block->warps[i].state != WARP_DONE)
            return false;
    return true;
}

void sim_run_block(struct block *block)
{
    while (!block->stop) {
        const bool ran = run_warps(block), released = !block->stop && release_barriers(block);
        if (block->stop || has_ended(block))
            break;
        if (!ran && !released)
            report_deadlock(block);
    }
    if (!block->stop && block->products_read)
        sim_products_end(block);
    if (!block->stop && block->launch->cluster > 1)
        sim_cluster_end(block);
}

/* A launch begins when the one ahead of it has ended: there is nothing to wait for, and nobody to let begin. */
static void run_dependent_launch(struct warp *warp, const struct insn *insn)
{
    (void)warp;
    (void)insn;
}

static const struct sim_opcode rows[] = {
    {"griddepcontrol.wait", "=", run_dependent_launch, GUARD_LANES},
    {"griddepcontrol.launch_dependents", "=", run_dependent_launch, GUARD_LANES},
    {"bra", "=L", run_branch, GUARD_OWN},
    {"bra.uni", "=L", run_branch, GUARD_OWN},
    {"ret", "=", run_exit, GUARD_OWN},
    {"exit", "=", run_exit, GUARD_OWN},
    {"trap", "=", run_trap, GUARD_OWN},
    {"bar.sync", "=i", run_barrier, GUARD_REFUSED},
    {"bar.sync", "=ii", run_barrier_some, GUARD_REFUSED | NEEDS_ORDER},
    {"bar.red.popc.u32", "r=ip", run_barrier_count, GUARD_REFUSED},
    {"bar.warp.sync", "=r", run_warp_barrier, GUARD_REFUSED},
};
SIM_TABLE(sim_flow_opcodes, rows);
