/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_lane.c: values that go from lane to lane, or that lanes make together. Every lane that a
 * member mask names must come to the same instruction, but for those that have ended, from which
 * nothing may be taken.
 */
#include "exec.h"

/* How a lane finds the one that it takes from; past its segment's end it keeps its own value. */
enum shuffle { SHUFFLE_BFLY, SHUFFLE_IDX };

/* Return whether all lanes that the member masks name are here. */
static bool gather_members(struct warp *warp, const struct insn *insn, const uint32_t *members)
{
    uint32_t named = UINT32_MAX;
    for (int lane = 0; lane < LANES; lane++)
        named &= members[lane];
    if (warp->full && named == UINT32_MAX) /* nearly always so */
        return true;
    named = 0;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (!(members[lane] >> lane & 1)) {
            sim_fault_at(warp, insn, lane, SIM_DIVERGENT_BARRIER,
                         "lane %d is not in its own member mask %08x", lane, members[lane]);
            return false;
        }
        named |= members[lane];
    }
    return sim_gather(warp, named);
}

INLINE void shuffle(struct warp *warp, const struct insn *insn, enum shuffle how)
{
    uint32_t *result = sim_slot(warp, insn->o[0]), *in_range = sim_slot(warp, insn->o[1]);
    const uint32_t *source = sim_slot(warp, insn->o[2]), *by = sim_slot(warp, insn->o[3]);
    const uint32_t *clamp = sim_slot(warp, insn->o[4]);
    uint32_t from[LANES], good[LANES], taken[LANES];
    if (!gather_members(warp, insn, sim_slot(warp, insn->o[5])))
        return;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint32_t segment = clamp[lane] >> 8 & 31;
        const uint32_t last = (lane & segment) | (clamp[lane] & 31 & ~segment);
        const uint32_t other = how == SHUFFLE_BFLY ? lane ^ (by[lane] & 31)
                                                   : (lane & segment) | (by[lane] & 31 & ~segment);
        good[lane] = other <= last ? UINT32_MAX : 0;
        from[lane] = other <= last ? other : lane;
        taken[lane] = source[from[lane]];
    }
    for (int lane = 0; lane < LANES && !warp->full; lane++) {
        if (warp->lanes[lane] && !warp->lanes[from[lane]]) {
            sim_fault_at(warp, insn, lane, SIM_UNWRITTEN, "takes from lane %u, which is not here",
                         from[lane]);
            return;
        }
    }
    EACH_LANE
    {
        result[lane] = warp->lanes[lane] ? taken[lane] : result[lane];
        in_range[lane] = warp->lanes[lane] ? good[lane] : in_range[lane];
    }
}

static void shuffle_bfly(struct warp *warp, const struct insn *insn)
{
    shuffle(warp, insn, SHUFFLE_BFLY);
}

static void shuffle_idx(struct warp *warp, const struct insn *insn)
{
    shuffle(warp, insn, SHUFFLE_IDX);
}

/* Tell each lane which of the lanes that it names have the predicate (a ballot), or whether any has. */
INLINE void vote(struct warp *warp, const struct insn *insn, bool ballot)
{
    uint32_t *result = sim_slot(warp, insn->o[0]), set = 0;
    const uint32_t *source = sim_slot(warp, insn->o[1]), *members = sim_slot(warp, insn->o[2]);
    if (!gather_members(warp, insn, members))
        return;
    for (int lane = 0; lane < LANES; lane++)
        set |= warp->lanes[lane] & source[lane] & UINT32_C(1) << lane;
    EACH_LANE
    {
        const uint32_t its = set & members[lane], any = its ? UINT32_MAX : 0;
        result[lane] = warp->lanes[lane] ? (ballot ? its : any) : result[lane];
    }
}

static void vote_any(struct warp *warp, const struct insn *insn)
{
    vote(warp, insn, false);
}

static void vote_ballot(struct warp *warp, const struct insn *insn)
{
    vote(warp, insn, true);
}

static void reduce_max_s32(struct warp *warp, const struct insn *insn)
{
    int32_t *result = sim_slot(warp, insn->o[0]), most[LANES];
    const int32_t *source = sim_slot(warp, insn->o[1]);
    const uint32_t *members = sim_slot(warp, insn->o[2]);
    if (!gather_members(warp, insn, members))
        return;
    for (int lane = 0; lane < LANES; lane++) {
        most[lane] = INT32_MIN;
        for (uint32_t left = members[lane] & warp->mask; left; left &= left - 1) {
            const int32_t value = source[__builtin_ctz(left)];
            most[lane] = value > most[lane] ? value : most[lane];
        }
    }
    EACH_LANE
    result[lane] = warp->lanes[lane] ? most[lane] : result[lane];
}

static const struct sim_opcode rows[] = {
    {"redux.sync.max.s32", "r=rr", reduce_max_s32, GUARD_REFUSED},
    {"shfl.sync.bfly.b32", "r|p=rrrr", shuffle_bfly, GUARD_REFUSED},
    {"shfl.sync.idx.b32", "r|p=rrrr", shuffle_idx, GUARD_REFUSED},
    {"vote.sync.any.pred", "p=pr", vote_any, GUARD_REFUSED},
    {"vote.sync.ballot.b32", "r=pr", vote_ballot, GUARD_REFUSED},
};
SIM_TABLE(sim_lane_opcodes, rows);
