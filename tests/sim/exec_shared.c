/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_shared.c: shared memory, with a record of who wrote and read each word, and when. All forms
 * of the table access whole words, so a word is as fine as a race can be.
 *
 * What orders two threads: a barrier of the block (bar.sync, bar.red), and, within a warp,
 * bar.warp.sync. Nothing else does: not that lanes run in step, not shfl.sync, ldmatrix or mma,
 * which wait for lanes but order no memory. Two atomic accesses do not race. bar.warp.sync orders
 * the whole warp here, whichever lanes take part.
 *
 * Time is a counter that grows at every barrier. A stamp holds the time, what kind of access it
 * was, and the thread. Of several readers since the last barrier a stamp keeps that there were
 * several, of one warp or of more; of writers the last, since two are a fault.
 */
#include "exec.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { TIME_SHIFT = 12, KIND_SHIFT = 10, THREAD_MASK = 1023, TIME_MAX = (1 << 20) - 2 };
enum { READ_BY_ONE, READ_BY_WARP, READ_BY_MANY }; /* kinds of read[]; of wrote[]: sim_shared_use */

static inline uint32_t time_of(uint32_t stamp)
{
    return stamp >> TIME_SHIFT;
}
static inline uint32_t kind_of(uint32_t stamp)
{
    return stamp >> KIND_SHIFT & 3;
}
static inline uint32_t thread_of(uint32_t stamp)
{
    return stamp & THREAD_MASK;
}

/* True if the access of that stamp is ordered before one by thread, which runs in warp: or it is
 * the thread's own. */
static bool is_ordered(const struct warp *warp, uint32_t stamp, bool by_one, uint32_t thread)
{
    if (time_of(stamp) < warp->block->barrier_at || (by_one && thread_of(stamp) == thread))
        return true;
    return thread_of(stamp) / LANES == thread / LANES && time_of(stamp) < warp->synced_at;
}

static void report_race(struct warp *warp, const struct insn *insn, int lane, uint32_t word,
                        uint32_t other, const char *now, const char *before)
{
    sim_fault_at(warp, insn, lane, SIM_SHARED_RACE,
                 "%s byte %u of shared memory, which thread %u %s, without a barrier between", now,
                 4 * word, thread_of(other), before);
}

/* False after a fault: nothing wrote the word in this block, or what writes it is under way. */
static bool is_written_word(struct warp *warp, const struct insn *insn, int lane, uint32_t word)
{
    const uint32_t wrote = warp->block->wrote[word];
    const bool never = time_of(wrote) < warp->block->begin_at;
    if (!never && kind_of(wrote) != USE_IN_FLIGHT)
        return true;
    sim_fault_at(warp, insn, lane, SIM_UNWRITTEN, "reads byte %u of shared memory, %s", 4 * word,
                 never ? "which nothing wrote" : "which a cp.async that nothing waited for writes");
    return false;
}

/* A read of one word; false after a fault. */
static bool read_word(struct warp *warp, const struct insn *insn, int lane, uint32_t word)
{
    struct block *block = warp->block;
    const uint32_t thread = warp->first_thread + (uint32_t)lane, wrote = block->wrote[word];
    if (!is_written_word(warp, insn, lane, word))
        return false;
    if (!is_ordered(warp, wrote, true, thread)) {
        report_race(warp, insn, lane, word, wrote, "reads", "wrote");
        return false;
    }
    const uint32_t mine = block->now << TIME_SHIFT | thread, read = block->read[word];
    if (read == mine)
        return true;
    if (is_ordered(warp, read, kind_of(read) == READ_BY_ONE, thread) &&
        kind_of(read) != READ_BY_MANY)
        block->read[word] = mine;
    else if (time_of(read) < block->barrier_at)
        block->read[word] = mine;
    else if (kind_of(read) != READ_BY_MANY && thread_of(read) / LANES == thread / LANES)
        block->read[word] = mine | READ_BY_WARP << KIND_SHIFT;
    else
        block->read[word] = mine | READ_BY_MANY << KIND_SHIFT;
    return true;
}

static bool write_word(struct warp *warp, const struct insn *insn, int lane, uint32_t word,
                       enum sim_shared_use use)
{
    struct block *block = warp->block;
    const uint32_t thread = warp->first_thread + (uint32_t)lane;
    const uint32_t wrote = block->wrote[word], read = block->read[word];
    const bool both_atomic = use == USE_ATOMIC && kind_of(wrote) == USE_ATOMIC;
    const bool in_flight = time_of(wrote) >= block->begin_at && kind_of(wrote) == USE_IN_FLIGHT;
    if (in_flight && use != USE_ARRIVED) {
        report_race(warp, insn, lane, word, wrote, "writes", "still writes by cp.async");
        return false;
    }
    if (!both_atomic && !is_ordered(warp, wrote, true, thread)) {
        report_race(warp, insn, lane, word, wrote, "writes", "wrote");
        return false;
    }
    if (!is_ordered(warp, read, kind_of(read) == READ_BY_ONE, thread) ||
        (kind_of(read) == READ_BY_MANY && time_of(read) >= block->barrier_at)) {
        report_race(warp, insn, lane, word, read, "writes",
                    kind_of(read) == READ_BY_ONE ? "read" : "and others read");
        return false;
    }
    const uint32_t kind = use == USE_ARRIVED ? USE_PLAIN : use;
    block->wrote[word] = block->now << TIME_SHIFT | kind << KIND_SHIFT | thread;
    return true;
}

bool sim_shared_at(struct warp *warp, const struct insn *insn, int lane, uint64_t address,
                   uint32_t bytes)
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

bool sim_shared_write(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                      uint32_t bytes, enum sim_shared_use use)
{
    for (uint32_t word = at / 4; word < (at + bytes) / 4; word++)
        if (!write_word(warp, insn, lane, word, use))
            return false;
    return true;
}

bool sim_shared_read_together(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                              uint32_t bytes)
{
    struct block *block = warp->block;
    const uint32_t mine = block->now << TIME_SHIFT | READ_BY_WARP << KIND_SHIFT |
                          (warp->first_thread + (uint32_t)lane);
    for (uint32_t word = at / 4; word < (at + bytes) / 4; word++) {
        const uint32_t wrote = block->wrote[word], read = block->read[word];
        if (!is_written_word(warp, insn, lane, word))
            return false;
        if (!is_ordered(warp, wrote, false, thread_of(mine))) {
            report_race(warp, insn, lane, word, wrote, "reads", "wrote");
            return false;
        }
        const bool others =
            time_of(read) >= block->barrier_at &&
            (kind_of(read) == READ_BY_MANY || thread_of(read) / LANES != thread_of(mine) / LANES);
        block->read[word] = others ? mine ^ (READ_BY_WARP ^ READ_BY_MANY) << KIND_SHIFT : mine;
    }
    return true;
}

/* Stamps before begin_at say that nothing wrote in this block. Before time runs out all stamps are
 * brought to its beginning. */
static void restart_time(struct block *block)
{
    const uint32_t words = block->launch->shared_bytes / 4;
    for (uint32_t i = 0; i < words; i++) {
        const bool written = time_of(block->wrote[i]) >= block->begin_at;
        block->wrote[i] =
            written ? (block->wrote[i] & ((1 << TIME_SHIFT) - 1)) | 1 << TIME_SHIFT : 0;
        block->read[i] = 0;
    }
    block->begin_at = 1;
    block->now = 2;
    for (uint32_t i = 0; i < block->launch->warps; i++)
        block->warps[i].synced_at = 0;
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
    if (warp->block->now < TIME_MAX) /* until the next barrier: races in the warp may seem to be */
        warp->block->now++;
    warp->synced_at = warp->block->now;
}

/* Addresses of the lanes, all of them good; lanes that take no part repeat one that does. */
INLINE bool locate(struct warp *warp, const struct insn *insn, sim_place address, uint32_t bytes,
                   uint32_t *at)
{
    const uint32_t *base = sim_slot(warp, address);
    const uint32_t offset = (uint32_t)insn->integer[0], size = warp->block->launch->shared_bytes;
    const uint32_t first = base[__builtin_ctz(warp->mask)];
    uint32_t high = 0, any = 0;
    for (int lane = 0; lane < LANES; lane++) {
        at[lane] = (warp->lanes[lane] ? base[lane] : first) + offset;
        high = at[lane] > high ? at[lane] : high;
        any |= at[lane];
    }
    if (any % bytes == 0 && bytes <= size && high <= size - bytes)
        return true;
    for (uint32_t left = warp->mask; left; left &= left - 1)
        if (!sim_shared_at(warp, insn, __builtin_ctz(left), at[__builtin_ctz(left)], bytes))
            return false;
    return true;
}

/* What a stamp of reads becomes by a read of `mine`, where no bar.warp.sync came since the last
 * barrier. */
INLINE uint32_t stamp_after_read(uint32_t read, uint32_t mine, uint32_t limit)
{
    const bool same_warp = ((read ^ mine) & THREAD_MASK) < LANES;
    const uint32_t shared = mine | (same_warp ? READ_BY_WARP : READ_BY_MANY) << KIND_SHIFT;
    const bool kept = read == mine || kind_of(read) == READ_BY_MANY;
    return read < limit ? mine : kept ? read : shared;
}

/* Notes the reads of all active lanes if nothing is wrong with them, which is nearly always so.
 * Returns false, with at most some reads noted, if a lane must be looked at closely. */
INLINE bool read_quickly(struct warp *warp, const uint32_t *at, int words)
{
    struct block *block = warp->block;
    const uint32_t begin = block->begin_at << TIME_SHIFT, limit = block->barrier_at << TIME_SHIFT;
    if (warp->synced_at > block->barrier_at)
        return false;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        const uint32_t mine = block->now << TIME_SHIFT | (warp->first_thread + (uint32_t)lane);
        const uint32_t *wrote = block->wrote + at[lane] / 4;
        uint32_t *read = block->read + at[lane] / 4, odd = 0;
        for (int i = 0; i < words; i++) {
            odd |= wrote[i] < begin || wrote[i] >= limit || kind_of(wrote[i]) == USE_IN_FLIGHT;
            read[i] = stamp_after_read(read[i], mine, limit);
        }
        if (odd)
            return false;
    }
    return true;
}

INLINE bool read_lanes(struct warp *warp, const struct insn *insn, const uint32_t *at,
                       uint32_t bytes)
{
    if (read_quickly(warp, at, (int)bytes / 4))
        return true;
    for (uint32_t left = warp->mask; left; left &= left - 1)
        if (!sim_shared_read(warp, insn, __builtin_ctz(left), at[__builtin_ctz(left)], bytes))
            return false;
    return true;
}

#define LOAD(name, T, count)                                                                       \
    static void name(struct warp *warp, const struct insn *insn)                                   \
    {                                                                                              \
        const uint32_t bytes = count * sizeof(T);                                                  \
        uint32_t at[LANES];                                                                        \
        if (!locate(warp, insn, insn->o[count], bytes, at) || !read_lanes(warp, insn, at, bytes))  \
            return;                                                                                \
        for (int i = 0; i < count; i++) {                                                          \
            T *result = sim_slot(warp, insn->o[i]);                                                \
            EACH_LANE                                                                              \
            {                                                                                      \
                const T value = ((const T *)(warp->block->shared + at[lane]))[i];                  \
                result[lane] = warp->lanes[lane] ? value : result[lane];                           \
            }                                                                                      \
        }                                                                                          \
    }

#define STORE(name, T, count)                                                                      \
    static void name(struct warp *warp, const struct insn *insn)                                   \
    {                                                                                              \
        const uint32_t bytes = count * sizeof(T);                                                  \
        uint32_t at[LANES];                                                                        \
        if (!locate(warp, insn, insn->o[0], bytes, at))                                            \
            return;                                                                                \
        for (uint32_t left = warp->mask; left; left &= left - 1) {                                 \
            const int lane = __builtin_ctz(left);                                                  \
            if (!sim_shared_write(warp, insn, lane, at[lane], bytes, USE_PLAIN))                   \
                return;                                                                            \
            for (int i = 0; i < count; i++)                                                        \
                ((T *)(warp->block->shared + at[lane]))[i] =                                       \
                    ((const T *)sim_slot(warp, insn->o[1 + i]))[lane];                             \
        }                                                                                          \
    }

LOAD(load_32, uint32_t, 1)
LOAD(load_32_4, uint32_t, 4)
LOAD(load_64, uint64_t, 1)
STORE(store_32, uint32_t, 1)
STORE(store_32_4, uint32_t, 4)
STORE(store_64, uint64_t, 1)

static void atom_min_s32(struct warp *warp, const struct insn *insn)
{
    int32_t *result = sim_slot(warp, insn->o[0]);
    const int32_t *source = sim_slot(warp, insn->o[2]);
    uint32_t at[LANES];
    if (!locate(warp, insn, insn->o[1], 4, at))
        return;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        int32_t *word = (int32_t *)(warp->block->shared + at[lane]);
        const int32_t value = source[lane];
        if (!is_written_word(warp, insn, lane, at[lane] / 4) ||
            !sim_shared_write(warp, insn, lane, at[lane], 4, USE_ATOMIC))
            return;
        result[lane] = *word;
        *word = value < *word ? value : *word;
    }
}

static const struct sim_opcode rows[] = {
    {"ld.shared.u32", "r=S", load_32, GUARD_LANES},
    {"ld.shared.f32", "r=S", load_32, GUARD_LANES},
    {"ld.shared.v4.u32", "{rrrr}=S", load_32_4, GUARD_LANES},
    {"ld.shared.v4.f32", "{rrrr}=S", load_32_4, GUARD_LANES},
    {"ld.shared.f64", "l=S", load_64, GUARD_LANES},
    {"st.shared.u32", "=Sr", store_32, GUARD_LANES},
    {"st.shared.f32", "=Sr", store_32, GUARD_LANES},
    {"st.shared.v4.u32", "=S{rrrr}", store_32_4, GUARD_LANES},
    {"st.shared.v4.f32", "=S{rrrr}", store_32_4, GUARD_LANES},
    {"st.shared.f64", "=Sl", store_64, GUARD_LANES},
    {"atom.shared.min.s32", "r=Sr", atom_min_s32, GUARD_LANES},
};
SIM_TABLE(sim_shared_opcodes, rows);
