/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_integer.c: integers, bits, predicates, comparisons. Sums and products wrap; shifts stop at
 * the width; a division by zero gives all ones, as GPUs do where PTX leaves it open.
 */
#include "exec.h"

#define SAME(OP, name, text, operands, T, value) OP(name, text, operands, T, T, T, T, value)
#define COMPARE(OP, name, text, operands, T, value)                                                \
    OP(name, text, operands, uint32_t, T, T, T, (value) ? UINT32_MAX : 0)

/* Division that never traps; INT_MIN / -1 wraps. */
static inline int32_t divide(int32_t x, int32_t y)
{
    return y == 0 ? -1 : y == -1 ? (int32_t)(0 - (uint32_t)x) : x / y;
}
static inline int32_t modulo(int32_t x, int32_t y)
{
    return y == 0 ? x : y == -1 ? 0 : x % y;
}

static inline uint64_t joined(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

/* Four bytes of the eight of x and y, each by its number in the selector; with bit 3 its sign in all bits. */
static inline uint32_t permuted(uint32_t x, uint32_t y, uint32_t selector)
{
    const uint64_t both = joined(x, y);
    uint32_t value = 0;
    for (int i = 0; i < 32; i += 8) {
        const uint32_t which = selector >> i / 2, byte = both >> 8 * (which & 7) & 255;
        value |= (which & 8 ? (byte >> 7) * 255 : byte) << i;
    }
    return value;
}

static inline uint32_t shift_of(uint32_t by, uint32_t most)
{
    return by < most ? by : most;
}

/* clang-format off */
#define INTEGERS(OP) \
    SAME(OP, add_s32, "add.s32", "r=rr", uint32_t, x + y) \
    SAME(OP, add_s64, "add.s64", "l=ll", uint64_t, x + y) \
    SAME(OP, add_s16, "add.s16", "h=hh", uint16_t, x + y) \
    SAME(OP, sub_s16, "sub.s16", "h=hh", uint16_t, x - y) \
    SAME(OP, mul_lo_s16, "mul.lo.s16", "h=hh", uint16_t, (uint32_t)x * y) \
    SAME(OP, sub_s32, "sub.s32", "r=rr", uint32_t, x - y) \
    SAME(OP, sub_s64, "sub.s64", "l=ll", uint64_t, x - y) \
    SAME(OP, neg_s32, "neg.s32", "r=r", uint32_t, 0 - x) \
    SAME(OP, mul_lo_s32, "mul.lo.s32", "r=rr", uint32_t, x * y) \
    SAME(OP, mul_lo_s64, "mul.lo.s64", "l=ll", uint64_t, x * y) \
    SAME(OP, mul_hi_u32, "mul.hi.u32", "r=rr", uint32_t, (uint64_t)x * y >> 32) \
    OP(mul_wide_s32, "mul.wide.s32", "l=rr", int64_t, int32_t, int32_t, int32_t, (int64_t)x * y) \
    OP(mul_wide_u32, "mul.wide.u32", "l=rr", uint64_t, uint32_t, uint32_t, uint32_t, (uint64_t)x * y) \
    OP(mul_wide_u16, "mul.wide.u16", "r=hh", uint32_t, uint16_t, uint16_t, uint16_t, (uint32_t)x * y) \
    SAME(OP, mad_lo_s32, "mad.lo.s32", "r=rrr", uint32_t, x * y + z) \
    SAME(OP, mad_lo_s64, "mad.lo.s64", "l=lll", uint64_t, x * y + z) \
    SAME(OP, div_s32, "div.s32", "r=rr", int32_t, divide(x, y)) \
    SAME(OP, div_u32, "div.u32", "r=rr", uint32_t, y ? x / y : UINT32_MAX) \
    SAME(OP, div_u64, "div.u64", "l=ll", uint64_t, y ? x / y : UINT64_MAX) \
    SAME(OP, rem_s32, "rem.s32", "r=rr", int32_t, modulo(x, y)) \
    SAME(OP, prmt_b32, "prmt.b32", "r=rrr", uint32_t, permuted(x, y, z)) \
    SAME(OP, min_s32, "min.s32", "r=rr", int32_t, x < y ? x : y) \
    SAME(OP, min_u32, "min.u32", "r=rr", uint32_t, x < y ? x : y) \
    SAME(OP, max_s32, "max.s32", "r=rr", int32_t, x > y ? x : y) \
    SAME(OP, max_s64, "max.s64", "l=ll", int64_t, x > y ? x : y) \
    SAME(OP, max_u32, "max.u32", "r=rr", uint32_t, x > y ? x : y) \
    SAME(OP, max_u64, "max.u64", "l=ll", uint64_t, x > y ? x : y) \
    SAME(OP, and_b16, "and.b16", "h=hh", uint16_t, x & y) \
    SAME(OP, and_b32, "and.b32", "r=rr", uint32_t, x & y) \
    SAME(OP, and_b64, "and.b64", "l=ll", uint64_t, x & y) \
    SAME(OP, and_pred, "and.pred", "p=pp", uint32_t, x & y) \
    SAME(OP, or_b32, "or.b32", "r=rr", uint32_t, x | y) \
    SAME(OP, or_b64, "or.b64", "l=ll", uint64_t, x | y) \
    SAME(OP, or_pred, "or.pred", "p=pp", uint32_t, x | y) \
    SAME(OP, xor_pred, "xor.pred", "p=pp", uint32_t, x ^ y) \
    SAME(OP, xor_b16, "xor.b16", "h=hh", uint16_t, x ^ y) \
    SAME(OP, xor_b32, "xor.b32", "r=rr", uint32_t, x ^ y) \
    SAME(OP, not_b32, "not.b32", "r=r", uint32_t, ~x) \
    SAME(OP, popc_b32, "popc.b32", "r=r", uint32_t, (uint32_t)__builtin_popcount(x)) \
    SAME(OP, not_pred, "not.pred", "p=p", uint32_t, ~x) \
    SAME(OP, shl_b32, "shl.b32", "r=rr", uint32_t, y < 32 ? x << (y & 31) : 0) \
    OP(shl_b64, "shl.b64", "l=lr", uint64_t, uint64_t, uint32_t, uint32_t, y < 64 ? x << (y & 63) : 0) \
    SAME(OP, shr_u32, "shr.u32", "r=rr", uint32_t, y < 32 ? x >> (y & 31) : 0) \
    OP(shr_u16, "shr.u16", "h=hr", uint16_t, uint16_t, uint32_t, uint32_t, y < 16 ? x >> (y & 15) : 0) \
    OP(shr_u64, "shr.u64", "l=lr", uint64_t, uint64_t, uint32_t, uint32_t, y < 64 ? x >> (y & 63) : 0) \
    OP(shr_s32, "shr.s32", "r=rr", int32_t, int32_t, uint32_t, uint32_t, x >> shift_of(y, 31)) \
    OP(shr_s64, "shr.s64", "l=lr", int64_t, int64_t, uint32_t, uint32_t, x >> shift_of(y, 63)) \
    SAME(OP, shf_clamp, "shf.r.clamp.b32", "r=rrr", uint32_t, joined(x, y) >> shift_of(z, 32)) \
    COMPARE(OP, eq_b32, "setp.eq.b32", "p=rr", uint32_t, x == y) \
    COMPARE(OP, eq_b16, "setp.eq.b16", "p=hh", uint16_t, x == y) \
    COMPARE(OP, eq_s16, "setp.eq.s16", "p=hh", uint16_t, x == y) \
    COMPARE(OP, eq_s32, "setp.eq.s32", "p=rr", uint32_t, x == y) \
    COMPARE(OP, eq_b64, "setp.eq.b64", "p=ll", uint64_t, x == y) \
    COMPARE(OP, eq_s64, "setp.eq.s64", "p=ll", uint64_t, x == y) \
    COMPARE(OP, ne_b32, "setp.ne.b32", "p=rr", uint32_t, x != y) \
    COMPARE(OP, ne_s32, "setp.ne.s32", "p=rr", uint32_t, x != y) \
    COMPARE(OP, ne_u32, "setp.ne.u32", "p=rr", uint32_t, x != y) \
    COMPARE(OP, ne_s64, "setp.ne.s64", "p=ll", uint64_t, x != y) \
    COMPARE(OP, lt_s32, "setp.lt.s32", "p=rr", int32_t, x < y) \
    COMPARE(OP, lt_u32, "setp.lt.u32", "p=rr", uint32_t, x < y) \
    COMPARE(OP, lt_s64, "setp.lt.s64", "p=ll", int64_t, x < y) \
    COMPARE(OP, lt_u64, "setp.lt.u64", "p=ll", uint64_t, x < y) \
    COMPARE(OP, le_s32, "setp.le.s32", "p=rr", int32_t, x <= y) \
    COMPARE(OP, le_u32, "setp.le.u32", "p=rr", uint32_t, x <= y) \
    COMPARE(OP, gt_s32, "setp.gt.s32", "p=rr", int32_t, x > y) \
    COMPARE(OP, gt_u32, "setp.gt.u32", "p=rr", uint32_t, x > y) \
    COMPARE(OP, gt_s16, "setp.gt.s16", "p=hh", int16_t, x > y) \
    COMPARE(OP, gt_s64, "setp.gt.s64", "p=ll", int64_t, x > y) \
    COMPARE(OP, gt_u64, "setp.gt.u64", "p=ll", uint64_t, x > y) \
    COMPARE(OP, ge_s32, "setp.ge.s32", "p=rr", int32_t, x >= y) \
    COMPARE(OP, ge_u32, "setp.ge.u32", "p=rr", uint32_t, x >= y) \
    COMPARE(OP, ge_s64, "setp.ge.s64", "p=ll", int64_t, x >= y) \
    COMPARE(OP, ge_u64, "setp.ge.u64", "p=ll", uint64_t, x >= y)
/* clang-format on */

INTEGERS(SIM_FUNCTION)

/* The low `length` bits of x, put over those of y from bit `from` on. */
static inline uint64_t bit_field_insert(uint64_t x, uint64_t y, uint32_t from, uint32_t length)
{
    from &= 255;
    length &= 255;
    if (from >= 64 || length == 0)
        return y;
    const uint64_t field = (length >= 64 ? UINT64_MAX : (UINT64_C(1) << length) - 1) << from;
    return (x << from & field) | (y & ~field);
}

#define BIT_FIELD_INSERT(name, T)                                                                  \
    static void name(struct warp *warp, const struct insn *insn)                                   \
    {                                                                                              \
        T *result = sim_slot(warp, insn->o[0]);                                                    \
        const T *x = sim_slot(warp, insn->o[1]), *y = sim_slot(warp, insn->o[2]);                  \
        const uint32_t *from = sim_slot(warp, insn->o[3]), *length = sim_slot(warp, insn->o[4]);   \
        EACH_LANE                                                                                  \
        {                                                                                          \
            const T value = (T)bit_field_insert(x[lane], y[lane], from[lane], length[lane]);       \
            result[lane] = warp->lanes[lane] ? value : result[lane];                               \
        }                                                                                          \
    }

BIT_FIELD_INSERT(bfi_b32, uint32_t)
BIT_FIELD_INSERT(bfi_b64, uint64_t)

static const struct sim_opcode rows[] = {
    INTEGERS(SIM_ROW){"bfi.b32", "r=rrrr", bfi_b32, GUARD_LANES},
    {"bfi.b64", "l=llrr", bfi_b64, GUARD_LANES},
};
SIM_TABLE(sim_integer_opcodes, rows);
