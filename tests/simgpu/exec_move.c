/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_move.c: values moved, packed, unpacked and chosen. A parameter is a constant, so ld.param
 * is a move; a global address is a generic one, and so is a parameter's.
 */
#include "exec.h"

#define MOVE(OP, name, text, operands, T) OP(name, text, operands, T, T, T, T, x)

/* clang-format off */
#define MOVES(OP) \
    MOVE(OP, mov_pred, "mov.pred", "p=p", uint32_t) \
    MOVE(OP, mov_b16, "mov.b16", "h=h", uint16_t) \
    MOVE(OP, mov_u16, "mov.u16", "h=h", uint16_t) \
    MOVE(OP, mov_b32, "mov.b32", "r=r", uint32_t) \
    MOVE(OP, mov_u32, "mov.u32", "r=r", uint32_t) \
    MOVE(OP, mov_f32, "mov.f32", "r=r", uint32_t) \
    MOVE(OP, mov_b64, "mov.b64", "l=l", uint64_t) \
    MOVE(OP, mov_u64, "mov.u64", "l=l", uint64_t) \
    MOVE(OP, mov_f64, "mov.f64", "l=l", uint64_t) \
    MOVE(OP, ld_param_u32, "ld.param.u32", "r=P", uint32_t) \
    OP(ld_param_s32, "ld.param.s32", "l=P", int64_t, int32_t, int32_t, int32_t, x) \
    MOVE(OP, ld_param_f32, "ld.param.f32", "r=P", uint32_t) \
    MOVE(OP, ld_param_u64, "ld.param.u64", "l=Q", uint64_t) \
    MOVE(OP, cvta_to_global, "cvta.to.global.u64", "l=l", uint64_t) \
    MOVE(OP, cvta_param, "cvta.param.u64", "l=l", uint64_t) \
    OP(pack_b64, "mov.b64", "l={rr}", uint64_t, uint32_t, uint32_t, uint32_t, x | (uint64_t)y << 32) \
    OP(pack_b32, "mov.b32", "r={hh}", uint32_t, uint16_t, uint16_t, uint16_t, x | (uint32_t)y << 16) \
    OP(selp_b32, "selp.b32", "r=rrp", uint32_t, uint32_t, uint32_t, uint32_t, z ? x : y) \
    OP(selp_u32, "selp.u32", "r=rrp", uint32_t, uint32_t, uint32_t, uint32_t, z ? x : y) \
    OP(selp_f32, "selp.f32", "r=rrp", uint32_t, uint32_t, uint32_t, uint32_t, z ? x : y) \
    OP(selp_b16, "selp.b16", "h=hhp", uint16_t, uint16_t, uint16_t, uint32_t, z ? x : y) \
    OP(selp_u16, "selp.u16", "h=hhp", uint16_t, uint16_t, uint16_t, uint32_t, z ? x : y) \
    OP(selp_b64, "selp.b64", "l=llp", uint64_t, uint64_t, uint64_t, uint32_t, z ? x : y) \
    OP(selp_u64, "selp.u64", "l=llp", uint64_t, uint64_t, uint64_t, uint32_t, z ? x : y) \
    OP(selp_f64, "selp.f64", "l=llp", uint64_t, uint64_t, uint64_t, uint32_t, z ? x : y)
/* clang-format on */

MOVES(SIM_FUNCTION)

/* The results may lie where the source lies. */
#define UNPACK(name, WHOLE, HALF)                                                                  \
    static void name(struct warp *warp, const struct insn *insn)                                   \
    {                                                                                              \
        HALF *low = sim_slot(warp, insn->o[0]), *high = sim_slot(warp, insn->o[1]);                \
        const WHOLE *source = sim_slot(warp, insn->o[2]);                                          \
        EACH_LANE                                                                                  \
        {                                                                                          \
            const WHOLE value = source[lane];                                                      \
            low[lane] = warp->lanes[lane] ? (HALF)value : low[lane];                               \
            high[lane] = warp->lanes[lane] ? (HALF)(value >> 8 * sizeof(HALF)) : high[lane];       \
        }                                                                                          \
    }

UNPACK(unpack_b32, uint32_t, uint16_t)
UNPACK(unpack_b64, uint64_t, uint32_t)

static const struct sim_opcode rows[] = {
    MOVES(SIM_ROW){"mov.b32", "{hh}=r", unpack_b32, GUARD_LANES},
    {"mov.b64", "{rr}=l", unpack_b64, GUARD_LANES},
};
SIM_TABLE(sim_move_opcodes, rows);
