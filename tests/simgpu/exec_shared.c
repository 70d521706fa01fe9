/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_shared.c: loads and stores of shared memory, each noted in the record of exec_record.c.
 */
#include "stamp.h"

#include <string.h>

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
    if (any % bytes == 0 && bytes <= size && high <= size - bytes) {
        for (int lane = 0; lane < LANES; lane++)
            at[lane] += warp->shared_at;
        return true;
    }
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (!sim_shared_at(warp, insn, lane, at[lane], bytes, &at[lane]))
            return false;
    }
    return true;
}

typedef uint32_t four __attribute__((vector_size(4 * sizeof(uint32_t))));

/* Stamps of so many words, one, two or four: fewer repeat the first. */
INLINE four read_stamps(const uint32_t *stamps, int words)
{
    four all;
    if (words == 4)
        memcpy(&all, stamps, sizeof all);
    else
        for (int i = 0; i < 4; i++)
            all[i] = stamps[i < words ? i : 0];
    return all;
}

/* Update stamps of reads by reads of `mine`, where nothing orders some threads since the last
 * barrier of all. Returns bits for words that were not written before it, or are in flight. */
INLINE four note_reads(const uint32_t *wrote, uint32_t *read, int words, uint32_t mine,
                       const struct block *block)
{
    const uint32_t begin = block->begin_at << TIME_SHIFT, limit = block->barrier_at << TIME_SHIFT;
    const four by = read_stamps(wrote, words), before = read_stamps(read, words);
    const four kind = before >> KIND_SHIFT & 3;
    const four same_warp = (four)(((before ^ mine) & THREAD_MASK) < LANES);
    const four shared =
        mine | (same_warp & READ_BY_WARP << KIND_SHIFT) | (~same_warp & READ_BY_MANY << KIND_SHIFT);
    const four kept = (four)(before == mine) | (four)(kind == READ_BY_MANY);
    const four past = (four)(before < limit);
    const four after = (past & mine) | (~past & ((kept & before) | (~kept & shared)));
    if (words == 4)
        memcpy(read, &after, sizeof after);
    else
        for (int i = 0; i < words; i++)
            read[i] = after[i];
    return (four)(by < begin) | (four)(by >= limit) |
           (four)((by >> KIND_SHIFT & 3) == USE_IN_FLIGHT);
}

/* Return the first and the last of neighbours that access the same word: they leave the stamps that all of them
 * would. */
INLINE uint32_t ends_of_runs(const uint32_t *at)
{
    uint32_t ends = UINT32_C(1) | UINT32_C(1) << (LANES - 1);
    for (int lane = 1; lane < LANES; lane++)
        ends |= (at[lane] != at[lane - 1] ? UINT32_C(3) : 0) << (lane - 1);
    return ends;
}

/* Notes the reads of all active lanes if nothing is wrong with them, which is nearly always so.
 * Returns false, with at most some reads noted, if a lane must be looked at closely. */
INLINE bool read_quickly(struct warp *warp, const uint32_t *at, int words)
{
    struct block *block = warp->block;
    if (!block->plain || warp->order.before[warp->index] > block->barrier_at)
        return false;
    four odd = {0};
    for (uint32_t left = warp->full ? ends_of_runs(at) : warp->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        const uint32_t mine = block->now << TIME_SHIFT | (warp->first_thread + (uint32_t)lane);
        odd |=
            note_reads(block->wrote + at[lane] / 4, block->read + at[lane] / 4, words, mine, block);
    }
    return !(odd[0] | odd[1] | odd[2] | odd[3]);
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

/* R: what a T becomes in its register. */
#define LOAD(name, T, R, count)                                                                    \
    static void name(struct warp *warp, const struct insn *insn)                                   \
    {                                                                                              \
        const uint32_t bytes = count * sizeof(T);                                                  \
        uint32_t at[LANES];                                                                        \
        if (!locate(warp, insn, insn->o[count], bytes, at) || !read_lanes(warp, insn, at, bytes))  \
            return;                                                                                \
        for (int i = 0; i < count; i++) {                                                          \
            R *result = sim_slot(warp, insn->o[i]);                                                \
            EACH_LANE                                                                              \
            {                                                                                      \
                const R value = ((const T *)(warp->block->shared + at[lane]))[i];                  \
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

LOAD(load_32, uint32_t, uint32_t, 1)
LOAD(load_32_wide, uint32_t, uint64_t, 1)
LOAD(load_32_2, uint32_t, uint32_t, 2)
LOAD(load_32_4, uint32_t, uint32_t, 4)
LOAD(load_64, uint64_t, uint64_t, 1)
STORE(store_32, uint32_t, 1)
STORE(store_32_2, uint32_t, 2)
STORE(store_32_4, uint32_t, 4)
STORE(store_64, uint64_t, 1)

/* x is what the word held, y the lane's value. */
#define ATOM(name, T, value)                                                                       \
    static void name(struct warp *warp, const struct insn *insn)                                   \
    {                                                                                              \
        T *result = sim_slot(warp, insn->o[0]);                                                    \
        const T *source = sim_slot(warp, insn->o[2]);                                              \
        uint32_t at[LANES];                                                                        \
        if (!locate(warp, insn, insn->o[1], 4, at))                                                \
            return;                                                                                \
        for (uint32_t left = warp->mask; left; left &= left - 1) {                                 \
            const int lane = __builtin_ctz(left);                                                  \
            T *word = (T *)(warp->block->shared + at[lane]);                                       \
            const T y = source[lane];                                                              \
            if (!sim_shared_is_written(warp, insn, lane, at[lane] / 4) ||                          \
                !sim_shared_write(warp, insn, lane, at[lane], 4, USE_ATOMIC))                      \
                return;                                                                            \
            const T x = *word;                                                                     \
            result[lane] = x;                                                                      \
            *word = value;                                                                         \
        }                                                                                          \
    }

ATOM(atom_min_s32, int32_t, y < x ? y : x)
ATOM(atom_max_s32, int32_t, y > x ? y : x)
ATOM(atom_add_u32, uint32_t, x + y)

static const struct sim_opcode rows[] = {
    {"ld.shared.u32", "r=S", load_32, GUARD_LANES},
    {"ld.shared.u32", "l=S", load_32_wide, GUARD_LANES},
    {"ld.shared.f32", "r=S", load_32, GUARD_LANES},
    {"ld.shared.v2.u32", "{rr}=S", load_32_2, GUARD_LANES},
    {"ld.shared.v2.f32", "{rr}=S", load_32_2, GUARD_LANES},
    {"ld.shared.v4.u32", "{rrrr}=S", load_32_4, GUARD_LANES},
    {"ld.shared.v4.f32", "{rrrr}=S", load_32_4, GUARD_LANES},
    {"ld.shared.u64", "l=S", load_64, GUARD_LANES},
    {"ld.shared.f64", "l=S", load_64, GUARD_LANES},
    {"st.shared.u32", "=Sr", store_32, GUARD_LANES},
    {"st.shared.f32", "=Sr", store_32, GUARD_LANES},
    {"st.shared.v2.f32", "=S{rr}", store_32_2, GUARD_LANES},
    {"st.shared.v4.u32", "=S{rrrr}", store_32_4, GUARD_LANES},
    {"st.shared.v4.f32", "=S{rrrr}", store_32_4, GUARD_LANES},
    {"st.shared.u64", "=Sl", store_64, GUARD_LANES},
    {"st.shared.f64", "=Sl", store_64, GUARD_LANES},
    {"atom.shared.add.u32", "r=Sr", atom_add_u32, GUARD_LANES},
    {"atom.shared.min.s32", "r=Sr", atom_min_s32, GUARD_LANES},
    {"atom.shared.max.s32", "r=Sr", atom_max_s32, GUARD_LANES},
};
SIM_TABLE(sim_shared_opcodes, rows);
