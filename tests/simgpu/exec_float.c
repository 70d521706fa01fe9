/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_float.c: float32 and float64. The exact operations round as IEEE says, to the nearest unless
 * they say otherwise; the approximations are libm's. Subnormal numbers count, but for .ftz.
 */
#include "exec.h"
#include "narrow.h"

#include <math.h>

#define SAME(OP, name, text, operands, T, value) OP(name, text, operands, T, T, T, T, value)
#define COMPARE(OP, name, text, operands, T, value)                                                \
    OP(name, text, operands, uint32_t, T, T, T, (value) ? UINT32_MAX : 0)

static inline float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* A NaN gives way to a number; -0 is below +0. */
static inline float least(float x, float y)
{
    const float equal = float_of_bits(bits_of_float(x) | bits_of_float(y));
    return x != x ? y : y != y ? x : x < y ? x : y < x ? y : x == 0 ? equal : x;
}
static inline float greatest(float x, float y)
{
    const float equal = float_of_bits(bits_of_float(x) & bits_of_float(y));
    return x != x ? y : y != y ? x : x > y ? x : y > x ? y : x == 0 ? equal : x;
}

/* Divide as the PTX manual says: a divisor above 2^126 has a subnormal inverse, which counts as zero. */
static inline float divide_approximately(float x, float y)
{
    return fabsf(y) > 0x1p126f && fabsf(y) <= 0x1.fffffep127f ? x * copysignf(0, y) : x / y;
}

/* A float holds what two roundings need to give what one gives. */
static inline uint32_t halves_difference(uint32_t x, uint32_t y)
{
    const float low = float_of_f16(x & 0xffff) - float_of_f16(y & 0xffff);
    const float high = float_of_f16(x >> 16) - float_of_f16(y >> 16);
    return f16_of_float(high) << 16 | f16_of_float(low);
}

/* clang-format off */
#define FLOATS(OP) \
    SAME(OP, add_f32, "add.f32", "r=rr", float, x + y) \
    SAME(OP, add_f64, "add.f64", "l=ll", double, x + y) \
    SAME(OP, sub_f32, "sub.f32", "r=rr", float, x - y) \
    SAME(OP, sub_f64, "sub.f64", "l=ll", double, x - y) \
    SAME(OP, sub_f16x2, "sub.f16x2", "r=rr", uint32_t, halves_difference(x, y)) \
    SAME(OP, mul_f32, "mul.f32", "r=rr", float, x * y) \
    SAME(OP, mul_rn_f32, "mul.rn.f32", "r=rr", float, x * y) \
    SAME(OP, mul_f64, "mul.f64", "l=ll", double, x * y) \
    SAME(OP, fma_rn_f32, "fma.rn.f32", "r=rrr", float, __builtin_fmaf(x, y, z)) \
    SAME(OP, div_rn_f32, "div.rn.f32", "r=rr", float, x / y) \
    SAME(OP, rcp_rn_f32, "rcp.rn.f32", "r=r", float, 1 / x) \
    SAME(OP, sqrt_rn_f64, "sqrt.rn.f64", "l=l", double, sqrt(x)) \
    SAME(OP, min_f32, "min.f32", "r=rr", float, least(x, y)) \
    SAME(OP, max_f32, "max.f32", "r=rr", float, greatest(x, y)) \
    SAME(OP, neg_f32, "neg.f32", "r=r", uint32_t, x ^ 0x80000000u) \
    SAME(OP, abs_f32, "abs.f32", "r=r", uint32_t, x & 0x7fffffffu) \
    SAME(OP, copysign_f32, "copysign.f32", "r=rr", uint32_t, (x & 0x80000000u) | (y & 0x7fffffffu)) \
    SAME(OP, div_approx, "div.approx.f32", "r=rr", float, divide_approximately(x, y)) \
    SAME(OP, rcp_approx_ftz, "rcp.approx.ftz.f32", "r=r", float, flushed(1 / flushed(x))) \
    SAME(OP, ex2_approx_ftz, "ex2.approx.ftz.f32", "r=r", float, flushed(exp2f(flushed(x)))) \
    SAME(OP, lg2_approx, "lg2.approx.f32", "r=r", float, log2f(x)) \
    SAME(OP, lg2_approx_ftz, "lg2.approx.ftz.f32", "r=r", float, log2f(flushed(x))) \
    SAME(OP, sin_approx, "sin.approx.f32", "r=r", float, sinf(x)) \
    SAME(OP, cos_approx, "cos.approx.f32", "r=r", float, cosf(x)) \
    SAME(OP, sqrt_approx, "sqrt.approx.f32", "r=r", float, sqrtf(x)) \
    SAME(OP, rsqrt_approx, "rsqrt.approx.f32", "r=r", float, (float)(1 / sqrt(x))) \
    COMPARE(OP, eq_f32, "setp.eq.f32", "p=rr", float, x == y) \
    COMPARE(OP, equ_f32, "setp.equ.f32", "p=rr", float, !(x < y || x > y)) \
    COMPARE(OP, ne_f32, "setp.ne.f32", "p=rr", float, x < y || x > y) \
    COMPARE(OP, neu_f32, "setp.neu.f32", "p=rr", float, x != y) \
    COMPARE(OP, num_f32, "setp.num.f32", "p=rr", float, x == x && y == y) \
    COMPARE(OP, lt_f32, "setp.lt.f32", "p=rr", float, x < y) \
    COMPARE(OP, ltu_f32, "setp.ltu.f32", "p=rr", float, !(x >= y)) \
    COMPARE(OP, leu_f32, "setp.leu.f32", "p=rr", float, !(x > y)) \
    COMPARE(OP, gtu_f32, "setp.gtu.f32", "p=rr", float, !(x <= y)) \
    COMPARE(OP, gt_f32, "setp.gt.f32", "p=rr", float, x > y) \
    COMPARE(OP, ge_f32, "setp.ge.f32", "p=rr", float, x >= y) \
    COMPARE(OP, geu_f32, "setp.geu.f32", "p=rr", float, !(x < y))
/* clang-format on */

FLOATS(SIM_FUNCTION)

static const struct sim_opcode rows[] = {FLOATS(SIM_ROW)};
SIM_TABLE(sim_float_opcodes, rows);
