/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_record.c: the record of who wrote and read each word of shared memory, and when. All forms
 * of the table access whole words, so a word is as fine as a race can be.
 *
 * What orders two threads: a barrier of the block or of some of its warps (bar.sync, bar.red), of the
 * cluster, an mbarrier, and, within a warp, bar.warp.sync. Nothing else does: not that lanes run in
 * step, not shfl.sync, ldmatrix or mma, which wait for lanes but order no memory. Two atomic accesses
 * do not race. bar.warp.sync orders the whole warp here, whichever lanes take part, and a thread that
 * arrives at or waits for an mbarrier stands for its warp.
 *
 * Time is a counter that grows whenever something orders. A stamp holds the time, what kind of access
 * it was, and the thread, or the mbarrier that a TMA copy arrives at. What comes before
 * a barrier of all warps comes before everything now; beyond that each warp keeps up to which time
 * those of each other warp come before its own (struct order). Of several readers since the last
 * barrier a stamp keeps that there were several, of one warp or of more; where some warps are ordered
 * without the others, each has stamps of its own. Of writers the last is kept, since two are a fault.
 *
 * What products (wgmma) read has no time: they read it from when they begin until their group is
 * waited for, so that their groups are counted. They read by the async proxy: what a thread wrote
 * has to pass its fence.proxy.async before the barrier that follows.
 */
#include "stamp.h"

#include <stdio.h>
#include <string.h>

/* Return whether the access of that stamp is ordered before one by thread, which runs in warp: or it is
 * the thread's own. That a copy has arrived is known to those only who waited for it. */
static bool is_ordered(const struct warp *warp, uint32_t stamp, bool by_one, uint32_t thread)
{
    const uint32_t time = time_of(stamp), actor = actor_of(stamp);
    if ((time < warp->block->barrier_at && actor < ACTOR_COPIES) || time < warp->block->begin_at ||
        (by_one && thread_of(stamp) == thread))
        return true;
    return time < warp->order.before[actor];
}

/* Return the byte of its block's shared memory, as messages give it. */
static uint32_t byte_of(const struct warp *warp, uint32_t word)
{
    return 4 * word % warp->block->launch->shared_stride;
}

static const char no_barrier[] = "barrier between", no_fence[] = "fence.proxy.async between",
                  no_init_fence[] = "fence.mbarrier_init between";

static void report_race(struct warp *warp, const struct insn *insn, int lane, uint32_t word,
                        uint32_t other, const char *now, const char *before, const char *lacks)
{
    const struct launch *launch = warp->block->launch;
    const uint32_t threads = launch->warps * LANES, thread = thread_of(other);
    char who[64] = "a TMA copy";
    if (lacks == no_barrier && warp->block->now >= TIME_MAX) {
        sim_fault_at(warp, insn, lane, SIM_NO_MEMORY,
                     "%s byte %u of shared memory: the record's time ran out, it holds %d barriers "
                     "of some threads between two of all",
                     now, byte_of(warp, word), TIME_MAX);
        return;
    }
    if (actor_of(other) < ACTOR_COPIES && launch->cluster == 1)
        snprintf(who, sizeof who, "thread %u", thread);
    else if (actor_of(other) < ACTOR_COPIES)
        snprintf(who, sizeof who, "thread %u of block %u of the cluster", thread % threads,
                 thread / threads);
    sim_fault_at(warp, insn, lane, SIM_SHARED_RACE,
                 "%s byte %u of shared memory, which %s %s, without a %s", now, byte_of(warp, word),
                 who, before, lacks);
}

bool sim_shared_is_written(struct warp *warp, const struct insn *insn, int lane, uint32_t word)
{
    const uint32_t wrote = warp->block->wrote[word];
    const bool never = time_of(wrote) < warp->block->begin_at;
    if (!never && kind_of(wrote) != USE_IN_FLIGHT)
        return true;
    sim_fault_at(warp, insn, lane, SIM_UNWRITTEN, "reads byte %u of shared memory, %s",
                 byte_of(warp, word),
                 never                             ? "which nothing wrote"
                 : actor_of(wrote) >= ACTOR_COPIES ? "which TMA still writes"
                                                   : "which a cp.async that nothing waited for "
                                                     "writes");
    return false;
}

/* Return false after a fault: the word is not there, or what wrote it comes not before this thread. */
static bool is_readable_word(struct warp *warp, const struct insn *insn, int lane, uint32_t word)
{
    const uint32_t thread = warp->first_thread + (uint32_t)lane, wrote = warp->block->wrote[word];
    if (!sim_shared_is_written(warp, insn, lane, word))
        return false;
    if (is_ordered(warp, wrote, true, thread))
        return true;
    report_race(warp, insn, lane, word, wrote, "reads", "wrote", no_barrier);
    return false;
}

/* A read of one word; false after a fault. */
static bool read_word(struct warp *warp, const struct insn *insn, int lane, uint32_t word)
{
    struct block *block = warp->block;
    const uint32_t thread = warp->first_thread + (uint32_t)lane;
    if (!is_readable_word(warp, insn, lane, word))
        return false;
    uint32_t *stamp = &block->read[warp->read_at + word];
    const uint32_t mine = block->now << TIME_SHIFT | thread, read = *stamp;
    if (read == mine)
        return true;
    if (is_ordered(warp, read, kind_of(read) == READ_BY_ONE, thread) &&
        kind_of(read) != READ_BY_MANY)
        *stamp = mine;
    else if (time_of(read) < block->barrier_at)
        *stamp = mine;
    else if (kind_of(read) != READ_BY_MANY && actor_of(read) == thread / LANES)
        *stamp = mine | READ_BY_WARP << KIND_SHIFT;
    else
        *stamp = mine | READ_BY_MANY << KIND_SHIFT;
    return true;
}

/* Return false after a fault: products read the word that nobody has waited for here. */
static bool no_product_reads(struct warp *warp, const struct insn *insn, int lane, uint32_t word)
{
    const struct block *block = warp->block;
    const uint32_t groups = block->launch->cluster_warps / WARPGROUP;
    for (uint32_t g = 0; g < groups; g++) {
        const uint32_t group = block->products_read[(size_t)g * block->words + word];
        bool waited = false;
        if (group <= warp->order.before[ACTOR_PRODUCTS + g])
            continue;
        for (uint32_t i = 0; i < WARPGROUP; i++)
            waited |= group <= block->warps[g * WARPGROUP + i].order.before[ACTOR_PRODUCTS + g];
        sim_fault_at(warp, insn, lane, SIM_SHARED_RACE,
                     waited ? "writes byte %u of shared memory, which a wgmma read, without a "
                              "barrier between"
                            : "writes byte %u of shared memory, which a wgmma that nothing waited "
                              "for reads",
                     byte_of(warp, word));
        return false;
    }
    return true;
}

/* Return false after a fault: what was read there comes not before a write by this thread. */
static bool no_reads(struct warp *warp, const struct insn *insn, int lane, uint32_t word)
{
    const struct block *block = warp->block;
    const uint32_t thread = warp->first_thread + (uint32_t)lane;
    const uint32_t words = block->launch->shared_stride / 4, rank = word / words;
    const uint32_t *stamp = &block->read[(size_t)rank * (block->readers - 1) * words + word];
    for (uint32_t i = 0; i < block->readers; i++, stamp += words) {
        const uint32_t read = *stamp;
        if (!is_ordered(warp, read, kind_of(read) == READ_BY_ONE, thread) ||
            (kind_of(read) == READ_BY_MANY && time_of(read) >= block->barrier_at)) {
            report_race(warp, insn, lane, word, read, "writes",
                        kind_of(read) == READ_BY_ONE ? "read" : "and others read", no_barrier);
            return false;
        }
    }
    return !block->products_read || no_product_reads(warp, insn, lane, word);
}

/* Return false after a fault. */
static bool may_write_word(struct warp *warp, const struct insn *insn, int lane, uint32_t word,
                           enum sim_shared_use use)
{
    const struct block *block = warp->block;
    const uint32_t wrote = block->wrote[word];
    const bool both_atomic = use == USE_ATOMIC && kind_of(wrote) == USE_ATOMIC;
    const bool in_flight = time_of(wrote) >= block->begin_at && kind_of(wrote) == USE_IN_FLIGHT;
    if (in_flight && use != USE_ARRIVED) {
        report_race(warp, insn, lane, word, wrote, "writes",
                    actor_of(wrote) >= ACTOR_COPIES ? "still writes" : "still writes by cp.async",
                    no_barrier);
        return false;
    }
    if (!both_atomic && !is_ordered(warp, wrote, true, warp->first_thread + (uint32_t)lane)) {
        report_race(warp, insn, lane, word, wrote, "writes", "wrote", no_barrier);
        return false;
    }
    return no_reads(warp, insn, lane, word);
}

/* Return whether a write finds nothing since the last barrier, or ends the thread's own cp.async, which is
 * nearly always so. */
INLINE bool is_untouched(const struct block *block, uint32_t word, enum sim_shared_use use,
                         uint32_t thread)
{
    const uint32_t limit = block->barrier_at << TIME_SHIFT, wrote = block->wrote[word];
    const bool in_flight = kind_of(wrote) == USE_IN_FLIGHT;
    const bool as_expected =
        use == USE_ARRIVED ? in_flight && thread_of(wrote) == thread : !in_flight && wrote < limit;
    return block->plain && as_expected && block->read[word] < limit;
}

/* as: the thread that the stamp names. */
INLINE bool write_word(struct warp *warp, const struct insn *insn, int lane, uint32_t word,
                       enum sim_shared_use use, uint32_t as)
{
    const uint32_t kind = use >= USE_ARRIVED ? USE_PLAIN : use;
    if (!is_untouched(warp->block, word, use, as) && !may_write_word(warp, insn, lane, word, use))
        return false;
    warp->block->wrote[word] = warp->block->now << TIME_SHIFT | kind << KIND_SHIFT | as;
    return true;
}

bool sim_shared_at(struct warp *warp, const struct insn *insn, int lane, uint64_t address,
                   uint32_t bytes, uint32_t *at)
{
    const uint32_t size = warp->block->launch->shared_bytes;
    if (address > size || bytes > size - address) {
        sim_fault_at(warp, insn, lane, SIM_ILLEGAL_ADDRESS,
                     "%u bytes at byte %lld of shared memory, of which the block has %u", bytes,
                     (long long)(int32_t)address, size);
        return false;
    }
    if (address % bytes) {
        sim_fault_at(warp, insn, lane, SIM_MISALIGNED,
                     "%u bytes at byte %u of shared memory, no multiple of %u", bytes,
                     (uint32_t)address, bytes);
        return false;
    }
    *at = warp->shared_at + (uint32_t)address;
    return true;
}

bool sim_shared_read(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                     uint32_t bytes)
{
    for (uint32_t word = at / 4; word < (at + bytes) / 4; word++)
        if (!read_word(warp, insn, lane, word))
            return false;
    return true;
}

/* Products may read these words once the lane has passed a fence. False without memory. */
static bool add_unfenced(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                         uint32_t bytes, bool init)
{
    if (!sim_grow(warp, insn, lane, &warp->unfenced, warp->unfenced_count, &warp->unfenced_room,
                  sizeof *warp->unfenced))
        return false;
    warp->unfenced[warp->unfenced_count++] =
        (struct unfenced){at / 4, bytes / 4, (uint32_t)lane, init};
    return true;
}

/* The active lanes pass a fence, for mbarriers alone or for all that they wrote, or let others go on
 * without one: what they wrote is as it is. */
static void settle_unfenced(struct warp *warp, bool fenced, bool inits)
{
    uint32_t still = 0;
    for (uint32_t i = 0; i < warp->unfenced_count; i++) {
        const struct unfenced u = warp->unfenced[i];
        if (!(warp->mask >> u.lane & 1) || (inits && !u.init)) {
            warp->unfenced[still++] = u;
            continue;
        }
        for (uint32_t word = u.word; fenced && word < u.word + u.words; word++) {
            uint32_t *wrote = &warp->block->wrote[word];
            if (thread_of(*wrote) == warp->first_thread + u.lane && kind_of(*wrote) == USE_PLAIN)
                *wrote |= USE_FENCED << KIND_SHIFT;
        }
    }
    warp->unfenced_count = still;
}

void sim_shared_fence(struct warp *warp)
{
    settle_unfenced(warp, true, false);
}

void sim_shared_fence_inits(struct warp *warp)
{
    settle_unfenced(warp, true, true);
}

void sim_shared_let_go(struct warp *warp)
{
    settle_unfenced(warp, false, false);
}

bool sim_shared_write(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                      uint32_t bytes, enum sim_shared_use use)
{
    for (uint32_t word = at / 4; word < (at + bytes) / 4; word++)
        if (!write_word(warp, insn, lane, word, use, warp->first_thread + (uint32_t)lane))
            return false;
    return warp->block->plain || use == USE_IN_FLIGHT ||
           add_unfenced(warp, insn, lane, at, bytes, use == USE_INIT);
}

/* Return whether a word was written before the last barrier, which is nearly always so. */
INLINE bool is_settled(const struct block *block, uint32_t word)
{
    const uint32_t wrote = block->wrote[word];
    return block->plain && wrote >= block->begin_at << TIME_SHIFT &&
           wrote < block->barrier_at << TIME_SHIFT && kind_of(wrote) != USE_IN_FLIGHT;
}

/* Return false after a fault: as is_readable_word(), for other lanes than the one that asks. */
static bool may_read_together(struct warp *warp, const struct insn *insn, int lane, uint32_t word)
{
    const uint32_t wrote = warp->block->wrote[word];
    if (!sim_shared_is_written(warp, insn, lane, word))
        return false;
    if (is_ordered(warp, wrote, false, 0))
        return true;
    report_race(warp, insn, lane, word, wrote, "reads", "wrote", no_barrier);
    return false;
}

bool sim_shared_read_together(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                              uint32_t bytes)
{
    struct block *block = warp->block;
    const uint32_t mine = block->now << TIME_SHIFT | READ_BY_WARP << KIND_SHIFT |
                          (warp->first_thread + (uint32_t)lane);
    for (uint32_t word = at / 4; word < (at + bytes) / 4; word++) {
        uint32_t *read = &block->read[warp->read_at + word];
        if (!is_settled(block, word) && !may_read_together(warp, insn, lane, word))
            return false;
        const bool others = time_of(*read) >= block->barrier_at &&
                            (kind_of(*read) == READ_BY_MANY || actor_of(*read) != actor_of(mine));
        *read = others ? mine ^ (READ_BY_WARP ^ READ_BY_MANY) << KIND_SHIFT : mine;
    }
    return true;
}

bool sim_shared_touch(struct warp *warp, const struct insn *insn, int lane, uint32_t at)
{
    return is_readable_word(warp, insn, lane, at / 4) &&
           is_readable_word(warp, insn, lane, at / 4 + 1);
}

bool sim_shared_is_fenced(struct warp *warp, const struct insn *insn, int lane, uint32_t at)
{
    for (uint32_t word = at / 4; word < (at + 8) / 4; word++) {
        const uint32_t wrote = warp->block->wrote[word];
        if (kind_of(wrote) == USE_FENCED)
            continue;
        report_race(warp, insn, lane, word, wrote, "arrives at", "wrote", no_init_fence);
        return false;
    }
    return true;
}

bool sim_shared_copy(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                     uint32_t bytes, uint32_t mbarrier)
{
    const struct block *block = warp->block;
    for (uint32_t word = at / 4; word < (at + bytes) / 4; word++) {
        const uint32_t wrote = block->wrote[word];
        if (!write_word(warp, insn, lane, word, USE_IN_FLIGHT, (ACTOR_COPIES + mbarrier) * LANES))
            return false;
        if (time_of(wrote) >= block->begin_at && kind_of(wrote) != USE_FENCED) {
            report_race(warp, insn, lane, word, wrote, "writes", "wrote", no_fence);
            return false;
        }
    }
    return true;
}

void sim_shared_copied(struct block *block, uint32_t at, uint32_t bytes)
{
    for (uint32_t word = at / 4; word < (at + bytes) / 4; word++)
        block->wrote[word] =
            block->now << TIME_SHIFT | USE_FENCED << KIND_SHIFT | thread_of(block->wrote[word]);
}

bool sim_shared_product(struct warp *warp, const struct insn *insn, uint32_t at, uint32_t bytes)
{
    const struct block *block = warp->block;
    const uint32_t *wrote = block->wrote;
    uint32_t *read = block->products_read + (size_t)(warp->index / WARPGROUP) * block->words;
    uint32_t good = UINT32_MAX; /* the stamp that was found so last: neighbours have the same */
    for (uint32_t word = at / 4; word < (at + bytes) / 4; word++) {
        if (read[word] <= warp->product_groups) /* another warp may be further on */
            read[word] = warp->product_groups + 1;
        if (wrote[word] == good)
            continue;
        if (!may_read_together(warp, insn, 0, word))
            return false;
        if (kind_of(wrote[word]) != USE_FENCED) {
            report_race(warp, insn, 0, word, wrote[word], "reads", "wrote", no_fence);
            return false;
        }
        good = wrote[word];
    }
    return true;
}

/* ---- time ---- */

void sim_order_join(struct order *order, const struct order *other)
{
    for (int i = 0; i < ACTORS; i++)
        order->before[i] =
            other->before[i] > order->before[i] ? other->before[i] : order->before[i];
}

uint32_t sim_tick(struct block *block)
{
    if (block->now < TIME_MAX) /* until the next barrier of all: races may seem to be */
        block->now++;
    return block->now;
}

void sim_order_release(struct warp *warp, struct order *to)
{
    sim_shared_let_go(warp);
    sim_order_join(to, &warp->order);
    to->before[warp->index] = sim_tick(warp->block);
}

/* Groups of products are not counted by time. */
static void forget_times(struct order *order)
{
    memset(order->before, 0, ACTOR_PRODUCTS * sizeof *order->before);
}

/* Stamps before begin_at say that nothing wrote in this block. Before time runs out all stamps are
 * brought to its beginning; what TMA wrote counts as written by the first thread. */
static void restart_time(struct block *block)
{
    const uint32_t kinds = 3 << KIND_SHIFT;
    for (uint32_t i = 0; i < block->words; i++) {
        const uint32_t wrote = block->wrote[i];
        const bool written = time_of(wrote) >= block->begin_at;
        const uint32_t thread = actor_of(wrote) < ACTOR_COPIES ? thread_of(wrote) : 0;
        block->wrote[i] = written ? 1 << TIME_SHIFT | (wrote & kinds) | thread : 0;
    }
    memset(block->read, 0, (size_t)block->readers * block->words * sizeof *block->read);
    block->begin_at = 1;
    block->now = 2;
    for (uint32_t i = 0; i < block->launch->cluster_warps; i++)
        forget_times(&block->warps[i].order);
    for (uint32_t i = 0; i < block->mbarrier_count; i++) {
        forget_times(&block->mbarriers[i].running);
        forget_times(&block->mbarriers[i].done);
    }
    forget_times(&block->at_cluster.running);
    forget_times(&block->at_cluster.done);
}

void sim_shared_barrier(struct block *block)
{
    block->now++;
    if (block->now >= TIME_MAX)
        restart_time(block);
    block->barrier_at = block->now;
}

void sim_shared_warp_barrier(struct warp *warp)
{
    warp->order.before[warp->index] = sim_tick(warp->block);
}
