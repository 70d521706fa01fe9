/* SPDX-License-Identifier: Apache-2.0
 *
 * sim_forms.c: instruction forms with plain operands, over special and random values, for all lanes and with a
 * predicate for every other lane. A row gives the C expression of the result: a, b, c, e are the low 32 bits of the
 * sources, A, B, C all 64; f and d are their values as floats. Only the lowest bit of a predicate counts.
 */
#include "sim_kernel.h"

#include "sim_forms.h"
#include "simgpu/ptx.h"

enum { BLOCKS = 2048, SAMPLES = 32 * BLOCKS, SOURCES = 4 };

struct form {
    const char *text;
    char sources; /* i integers, f floats, d doubles, h all 16-bit values */
    char result;  /* b bits, f float, d double: any NaN equals any other; a float, approximately */
    uint64_t (*want)(const uint64_t *x);
};

/* Widen a narrow code. */
static uint64_t widened(uint64_t x, int mantissa, int bias, uint32_t infinity)
{
    const uint32_t code = x & 0x7fff;
    const double size = code > infinity    ? NAN
                        : code == infinity ? INFINITY
                                           : narrow_value(code, mantissa, bias);
    return of_float((float)(x & 0x8000 ? -size : size));
}

/* Return the smaller number; of a NaN and a number the number, and of two zeros the negative one. */
static float lesser(float x, float y)
{
    if (isnan(x) || isnan(y))
        return isnan(x) ? y : x;
    return x == y ? (signbit(x) ? x : y) : x < y ? x : y;
}

static float flush(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static uint32_t set_bits(uint32_t x)
{
    uint32_t count = 0;
    for (; x; x >>= 1)
        count += x & 1;
    return count;
}

static uint64_t insert_bits(uint64_t from, uint64_t into, uint32_t at, uint32_t count,
                            uint32_t width)
{
    at &= 255, count &= 255;
    for (uint32_t i = 0; i < count && at + i < width; i++) {
        const uint64_t one = UINT64_C(1) << (at + i);
        into = from >> i & 1 ? into | one : into & ~one;
    }
    return into;
}

static uint32_t chosen_bytes(uint32_t a, uint32_t b, uint32_t selector)
{
    uint8_t bytes[8], out[4];
    uint32_t value;
    memcpy(bytes, &a, 4);
    memcpy(bytes + 4, &b, 4);
    for (int i = 0; i < 4; i++, selector /= 16) {
        out[i] = bytes[selector % 8];
        if (selector % 16 > 7)
            out[i] = out[i] > 127 ? 255 : 0;
    }
    memcpy(&value, out, 4);
    return value;
}

/* Return the difference of two float16 codes. */
static uint64_t half_difference(uint32_t a, uint32_t b)
{
    return f16_want(to_float(widened(a, 10, 15, 0x7c00)) - to_float(widened(b, 10, 15, 0x7c00)));
}

/* clang-format off */
#define FORMS(ROW) \
    ROW(add_s32, "add.s32", 'i', 'b', a + b) \
    ROW(add_s64, "add.s64", 'i', 'b', A + B) \
    ROW(add_s16, "add.s16", 'i', 'b', (uint16_t)(a + b)) \
    ROW(sub_s16, "sub.s16", 'i', 'b', (uint16_t)(a - b)) \
    ROW(mul_lo_s16, "mul.lo.s16", 'i', 'b', (uint16_t)(a * b)) \
    ROW(sub_s32, "sub.s32", 'i', 'b', a - b) \
    ROW(sub_s64, "sub.s64", 'i', 'b', A - B) \
    ROW(neg_s32, "neg.s32", 'i', 'b', ~a + 1) \
    ROW(mul_lo_s32, "mul.lo.s32", 'i', 'b', (uint32_t)(A * B)) \
    ROW(mul_lo_s64, "mul.lo.s64", 'i', 'b', A * B) \
    ROW(mul_hi_u32, "mul.hi.u32", 'i', 'b', ((uint64_t)a * b) >> 32) \
    ROW(mul_wide_s32, "mul.wide.s32", 'i', 'b', (int64_t)(int32_t)a * (int32_t)b) \
    ROW(mul_wide_u32, "mul.wide.u32", 'i', 'b', (uint64_t)a * b) \
    ROW(mul_wide_u16, "mul.wide.u16", 'i', 'b', (uint32_t)(uint16_t)a * (uint16_t)b) \
    ROW(mad_lo_s32, "mad.lo.s32", 'i', 'b', (uint32_t)(A * B + C)) \
    ROW(mad_lo_s64, "mad.lo.s64", 'i', 'b', A * B + C) \
    ROW(div_s32, "div.s32", 'i', 'b', b == 0 ? UINT32_MAX : (uint32_t)((int64_t)(int32_t)a / (int32_t)b)) \
    ROW(div_u32, "div.u32", 'i', 'b', b == 0 ? UINT32_MAX : a / b) \
    ROW(div_u64, "div.u64", 'i', 'b', B == 0 ? UINT64_MAX : A / B) \
    ROW(rem_s32, "rem.s32", 'i', 'b', b == 0 ? a : (uint32_t)((int64_t)(int32_t)a % (int32_t)b)) \
    ROW(prmt_b32, "prmt.b32", 'i', 'b', chosen_bytes(a, b, c)) \
    ROW(min_u32, "min.u32", 'i', 'b', a < b ? a : b) \
    ROW(min_s32, "min.s32", 'i', 'b', (int32_t)a < (int32_t)b ? a : b) \
    ROW(max_s32, "max.s32", 'i', 'b', (int32_t)a < (int32_t)b ? b : a) \
    ROW(max_s64, "max.s64", 'i', 'b', (int64_t)A < (int64_t)B ? B : A) \
    ROW(max_u32, "max.u32", 'i', 'b', a < b ? b : a) \
    ROW(max_u64, "max.u64", 'i', 'b', A < B ? B : A) \
    ROW(and_b16, "and.b16", 'i', 'b', (uint16_t)(a & b)) \
    ROW(xor_b16, "xor.b16", 'i', 'b', (uint16_t)(a ^ b)) \
    ROW(and_b32, "and.b32", 'i', 'b', a & b) \
    ROW(and_b64, "and.b64", 'i', 'b', A & B) \
    ROW(and_pred, "and.pred", 'i', 'b', a & b & 1) \
    ROW(or_b32, "or.b32", 'i', 'b', a | b) \
    ROW(or_b64, "or.b64", 'i', 'b', A | B) \
    ROW(or_pred, "or.pred", 'i', 'b', (a | b) & 1) \
    ROW(xor_pred, "xor.pred", 'i', 'b', (a ^ b) & 1) \
    ROW(xor_b32, "xor.b32", 'i', 'b', a ^ b) \
    ROW(not_b32, "not.b32", 'i', 'b', ~a) \
    ROW(popc_b32, "popc.b32", 'i', 'b', set_bits(a)) \
    ROW(not_pred, "not.pred", 'i', 'b', ~a & 1) \
    ROW(shl_b32, "shl.b32", 'i', 'b', b > 31 ? 0 : a << b) \
    ROW(shl_b64, "shl.b64", 'i', 'b', b > 63 ? 0 : A << b) \
    ROW(shr_u32, "shr.u32", 'i', 'b', b > 31 ? 0 : a >> b) \
    ROW(shr_u16, "shr.u16", 'i', 'b', b > 15 ? 0 : (uint16_t)a >> b) \
    ROW(shr_u64, "shr.u64", 'i', 'b', b > 63 ? 0 : A >> b) \
    ROW(shr_s32, "shr.s32", 'i', 'b', (uint32_t)((int32_t)a >> (b > 31 ? 31 : b))) \
    ROW(shr_s64, "shr.s64", 'i', 'b', (uint64_t)((int64_t)A >> (b > 63 ? 63 : b))) \
    ROW(bfi, "bfi.b32", 'i', 'b', insert_bits(a, b, c, e, 32)) \
    ROW(bfi_64, "bfi.b64", 'i', 'b', insert_bits(A, B, c, e, 64)) \
    ROW(shf_clamp, "shf.r.clamp.b32", 'i', 'b', c > 31 ? b : c ? a >> c | b << (32 - c) : a) \
    ROW(eq_b32, "setp.eq.b32", 'i', 'b', a == b) \
    ROW(eq_b16, "setp.eq.b16", 'i', 'b', (uint16_t)a == (uint16_t)b) \
    ROW(eq_s16, "setp.eq.s16", 'i', 'b', (uint16_t)a == (uint16_t)b) \
    ROW(eq_s32, "setp.eq.s32", 'i', 'b', a == b) \
    ROW(eq_b64, "setp.eq.b64", 'i', 'b', A == B) \
    ROW(eq_s64, "setp.eq.s64", 'i', 'b', A == B) \
    ROW(ne_b32, "setp.ne.b32", 'i', 'b', a != b) \
    ROW(ne_s32, "setp.ne.s32", 'i', 'b', a != b) \
    ROW(ne_u32, "setp.ne.u32", 'i', 'b', a != b) \
    ROW(ne_s64, "setp.ne.s64", 'i', 'b', A != B) \
    ROW(lt_s32, "setp.lt.s32", 'i', 'b', (int32_t)a < (int32_t)b) \
    ROW(lt_u32, "setp.lt.u32", 'i', 'b', a < b) \
    ROW(lt_s64, "setp.lt.s64", 'i', 'b', (int64_t)A < (int64_t)B) \
    ROW(lt_u64, "setp.lt.u64", 'i', 'b', A < B) \
    ROW(le_s32, "setp.le.s32", 'i', 'b', (int32_t)a <= (int32_t)b) \
    ROW(le_u32, "setp.le.u32", 'i', 'b', a <= b) \
    ROW(gt_s32, "setp.gt.s32", 'i', 'b', (int32_t)a > (int32_t)b) \
    ROW(gt_u32, "setp.gt.u32", 'i', 'b', a > b) \
    ROW(gt_s16, "setp.gt.s16", 'i', 'b', (int16_t)a > (int16_t)b) \
    ROW(gt_s64, "setp.gt.s64", 'i', 'b', (int64_t)A > (int64_t)B) \
    ROW(gt_u64, "setp.gt.u64", 'i', 'b', A > B) \
    ROW(ge_s32, "setp.ge.s32", 'i', 'b', (int32_t)a >= (int32_t)b) \
    ROW(ge_u32, "setp.ge.u32", 'i', 'b', a >= b) \
    ROW(ge_s64, "setp.ge.s64", 'i', 'b', (int64_t)A >= (int64_t)B) \
    ROW(ge_u64, "setp.ge.u64", 'i', 'b', A >= B) \
    ROW(mov_pred, "mov.pred", 'i', 'b', a & 1) \
    ROW(mov_b16, "mov.b16", 'i', 'b', (uint16_t)a) \
    ROW(mov_u16, "mov.u16", 'i', 'b', (uint16_t)a) \
    ROW(mov_b32, "mov.b32", 'i', 'b', a) \
    ROW(mov_u32, "mov.u32", 'i', 'b', a) \
    ROW(mov_f32, "mov.f32", 'i', 'b', a) \
    ROW(mov_b64, "mov.b64", 'i', 'b', A) \
    ROW(mov_u64, "mov.u64", 'i', 'b', A) \
    ROW(mov_f64, "mov.f64", 'i', 'b', A) \
    ROW(cvta, "cvta.to.global.u64", 'i', 'b', A) \
    ROW(cvta_param, "cvta.param.u64", 'i', 'b', A) \
    ROW(selp_b32, "selp.b32", 'i', 'b', c & 1 ? a : b) \
    ROW(selp_u32, "selp.u32", 'i', 'b', c & 1 ? a : b) \
    ROW(selp_f32, "selp.f32", 'i', 'b', c & 1 ? a : b) \
    ROW(selp_b16, "selp.b16", 'i', 'b', (uint16_t)(c & 1 ? a : b)) \
    ROW(selp_u16, "selp.u16", 'i', 'b', (uint16_t)(c & 1 ? a : b)) \
    ROW(selp_b64, "selp.b64", 'i', 'b', c & 1 ? A : B) \
    ROW(selp_u64, "selp.u64", 'i', 'b', c & 1 ? A : B) \
    ROW(selp_f64, "selp.f64", 'i', 'b', c & 1 ? A : B) \
    ROW(add_f32, "add.f32", 'f', 'f', of_float(f[0] + f[1])) \
    ROW(sub_f32, "sub.f32", 'f', 'f', of_float(f[0] - f[1])) \
    ROW(sub_f16x2, "sub.f16x2", 'i', 'b', half_difference(a >> 16, b >> 16) << 16 | half_difference(a, b)) \
    ROW(mul_f32, "mul.f32", 'f', 'f', of_float(f[0] * f[1])) \
    ROW(mul_rn_f32, "mul.rn.f32", 'f', 'f', of_float(f[0] * f[1])) \
    ROW(fma_rn_f32, "fma.rn.f32", 'f', 'f', of_float(fmaf(f[0], f[1], f[2]))) \
    ROW(div_rn_f32, "div.rn.f32", 'f', 'f', of_float(f[0] / f[1])) \
    ROW(rcp_rn_f32, "rcp.rn.f32", 'f', 'f', of_float(1 / f[0])) \
    ROW(add_f64, "add.f64", 'd', 'd', of_double(d[0] + d[1])) \
    ROW(sub_f64, "sub.f64", 'd', 'd', of_double(d[0] - d[1])) \
    ROW(mul_f64, "mul.f64", 'd', 'd', of_double(d[0] * d[1])) \
    ROW(sqrt_rn_f64, "sqrt.rn.f64", 'd', 'd', of_double(sqrt(d[0]))) \
    ROW(min_f32, "min.f32", 'f', 'f', of_float(lesser(f[0], f[1]))) \
    ROW(max_f32, "max.f32", 'f', 'f', of_float(-lesser(-f[0], -f[1]))) \
    ROW(neg_f32, "neg.f32", 'f', 'f', of_float(-f[0])) \
    ROW(abs_f32, "abs.f32", 'f', 'f', of_float(fabsf(f[0]))) \
    ROW(copysign_f32, "copysign.f32", 'f', 'f', of_float(copysignf(f[1], f[0]))) \
    ROW(div_approx, "div.approx.f32", 'f', 'a', of_float(isfinite(f[1]) && fabsf(f[1]) > 0x1p126f \
        ? (isinf(f[0]) ? NAN : copysignf(f[0], f[0] * f[1]) * 0) : f[0] / f[1])) \
    ROW(rcp_approx_ftz, "rcp.approx.ftz.f32", 'f', 'a', of_float(flush(1 / flush(f[0])))) \
    ROW(ex2_approx_ftz, "ex2.approx.ftz.f32", 'f', 'a', of_float(flush((float)exp2(flush(f[0]))))) \
    ROW(lg2_approx, "lg2.approx.f32", 'f', 'a', of_float((float)log2(f[0]))) \
    ROW(lg2_approx_ftz, "lg2.approx.ftz.f32", 'f', 'a', of_float((float)log2(flush(f[0])))) \
    ROW(sin_approx, "sin.approx.f32", 'f', 'a', of_float((float)sin(f[0]))) \
    ROW(cos_approx, "cos.approx.f32", 'f', 'a', of_float((float)cos(f[0]))) \
    ROW(sqrt_approx, "sqrt.approx.f32", 'f', 'a', of_float(sqrtf(f[0]))) \
    ROW(rsqrt_approx, "rsqrt.approx.f32", 'f', 'a', of_float((float)(1 / sqrt(f[0])))) \
    ROW(eq_f32, "setp.eq.f32", 'f', 'b', !isunordered(f[0], f[1]) && f[0] == f[1]) \
    ROW(equ_f32, "setp.equ.f32", 'f', 'b', isunordered(f[0], f[1]) || f[0] == f[1]) \
    ROW(ne_f32, "setp.ne.f32", 'f', 'b', islessgreater(f[0], f[1])) \
    ROW(neu_f32, "setp.neu.f32", 'f', 'b', isunordered(f[0], f[1]) || f[0] != f[1]) \
    ROW(gtu_f32, "setp.gtu.f32", 'f', 'b', isunordered(f[0], f[1]) || f[0] > f[1]) \
    ROW(num_f32, "setp.num.f32", 'f', 'b', !isnan(f[0]) && !isnan(f[1])) \
    ROW(lt_f32, "setp.lt.f32", 'f', 'b', isless(f[0], f[1])) \
    ROW(ltu_f32, "setp.ltu.f32", 'f', 'b', isunordered(f[0], f[1]) || f[0] < f[1]) \
    ROW(leu_f32, "setp.leu.f32", 'f', 'b', isunordered(f[0], f[1]) || f[0] <= f[1]) \
    ROW(gt_f32, "setp.gt.f32", 'f', 'b', isgreater(f[0], f[1])) \
    ROW(ge_f32, "setp.ge.f32", 'f', 'b', isgreaterequal(f[0], f[1])) \
    ROW(geu_f32, "setp.geu.f32", 'f', 'b', isunordered(f[0], f[1]) || f[0] >= f[1]) \
    ROW(cvt_s64_s32, "cvt.s64.s32", 'i', 'b', (int64_t)(int32_t)a) \
    ROW(cvt_u64_u32, "cvt.u64.u32", 'i', 'b', a) \
    ROW(cvt_u32_u64, "cvt.u32.u64", 'i', 'b', a) \
    ROW(cvt_u32_u16, "cvt.u32.u16", 'i', 'b', (uint16_t)a) \
    ROW(cvt_u16_u32, "cvt.u16.u32", 'i', 'b', (uint16_t)a) \
    ROW(cvt_f64_f32, "cvt.f64.f32", 'f', 'd', of_double(f[0])) \
    ROW(cvt_f32_f64, "cvt.rn.f32.f64", 'd', 'f', of_float((float)d[0])) \
    ROW(cvt_f32_s16, "cvt.rn.f32.s16", 'i', 'f', of_float((float)(int16_t)a)) \
    ROW(cvt_f32_s32, "cvt.rn.f32.s32", 'i', 'f', of_float((float)(int32_t)a)) \
    ROW(cvt_f32_u32, "cvt.rn.f32.u32", 'i', 'f', of_float((float)a)) \
    ROW(cvt_rni, "cvt.rni.f32.f32", 'f', 'f', of_float(nearbyintf(f[0]))) \
    ROW(cvt_rni_s32, "cvt.rni.s32.f32", 'f', 'b', isnan(f[0]) ? 0 : f[0] >= 0x1p31f ? INT32_MAX \
        : f[0] <= -0x1p31f ? (uint32_t)INT32_MIN : (uint32_t)(int32_t)nearbyintf(f[0])) \
    ROW(cvt_s32_s8, "cvt.s32.s8", 'i', 'b', (uint32_t)(int8_t)a) \
    ROW(cvt_rzi, "cvt.rzi.u32.f32", 'f', 'b', isnan(f[0]) || f[0] <= 0 ? 0 : f[0] >= 0x1p32f ? UINT32_MAX \
        : (uint32_t)(uint64_t)f[0]) \
    ROW(cvt_f32_bf16, "cvt.f32.bf16", 'h', 'f', widened(a, 7, 127, 0x7f80)) \
    ROW(cvt_f32_f16, "cvt.f32.f16", 'h', 'f', widened(a, 10, 15, 0x7c00)) \
    ROW(cvt_bf16, "cvt.rn.bf16.f32", 'f', 'b', bf16_want(f[0])) \
    ROW(cvt_f16, "cvt.rn.f16.f32", 'f', 'b', f16_want(f[0])) \
    ROW(cvt_bf16x2, "cvt.rn.bf16x2.f32", 'f', 'b', bf16_want(f[0]) << 16 | bf16_want(f[1])) \
    ROW(cvt_f16x2, "cvt.rn.f16x2.f32", 'f', 'b', f16_want(f[0]) << 16 | f16_want(f[1])) \
    ROW(cvt_e4m3x2, "cvt.rn.satfinite.e4m3x2.f32", 'f', 'b', e4m3_want(f[0]) << 8 | e4m3_want(f[1]))
/* clang-format on */

#define FORM_FUNCTION(name, text, sources, result, value)                                          \
    static uint64_t want_##name(const uint64_t *x)                                                 \
    {                                                                                              \
        const uint64_t A = x[0], B = x[1], C = x[2];                                               \
        const uint32_t a = (uint32_t)A, b = (uint32_t)B, c = (uint32_t)C, e = (uint32_t)x[3];      \
        const float f[3] = {to_float(A), to_float(B), to_float(C)};                                \
        const double d[2] = {to_double(A), to_double(B)};                                          \
        (void)a, (void)b, (void)c, (void)e, (void)f, (void)d;                                      \
        return (uint64_t)(value);                                                                  \
    }
#define FORM_ROW(name, text, sources, result, value) {text, sources, result, want_##name},

FORMS(FORM_FUNCTION)
static const struct form forms[] = {FORMS(FORM_ROW)};

uint64_t next_random(void)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

static const uint64_t special_integers[] = {
    0,
    1,
    2,
    3,
    31,
    32,
    33,
    63,
    64,
    65,
    255,
    256,
    0x7fff,
    0x8000,
    0xffff,
    0x10000,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x100000000,
    0x7fffffffffffffff,
    0x8000000000000000,
    0xffffffffffffffff,
};
static const float special_floats[] = {
    0,
    -0.0f,
    1,
    -1,
    0.5f,
    1.5f,
    2.5f,
    3.5f,
    -2.5f,
    INFINITY,
    -INFINITY,
    NAN,
    0x1p-149f,
    -0x1p-149f,
    0x1p-126f,
    0x1.fffffep-127f,
    0x1p126f,
    0x1.8p126f,
    0x1p127f,
    0x1.fffffep127f,
    65504,
    65519,
    65520,
    448,
    463,
    464,
    465,
    0x1p-24f,
    0x1p-25f,
    0x1.8p-25f,
    0x1p-9f,
    0x1p-10f,
    0x1.8p-10f,
    0x1.01p0f,
    0x1.018p0f,
    0x1.03p0f,
    4294967296.0f,
    0x1p31f,
    16777216,
};

static uint64_t make_source(char kind, size_t sample, int source)
{
    const uint64_t random = next_random();
    const bool special = random % 4 == 0;
    const size_t pick = (size_t)(random >> 8);
    if (kind == 'h')
        return source ? random : sample;
    if (kind == 'i')
        return special ? special_integers[pick % (sizeof special_integers / 8)]
                       : random >> (random % 3 ? 0 : 40); /* some of them small */
    const float small =
        ldexpf((float)(int32_t)(random >> 32) * 0x1p-31f, (int)(random >> 2 & 63) - 32);
    const float x = special           ? special_floats[pick % (sizeof special_floats / 4)]
                    : random % 4 == 1 ? to_float(random >> 32)
                                      : small;
    if (kind == 'f')
        return of_float(x);
    return random % 4 == 1 ? random
                           : of_double(special ? x : x + x * 0x1p-30 * (double)(pick & 1023));
}

static char register_letter(char class)
{
    return class == 'l' ? 'd' : class;
}

/* Write "add.s32 %r9, %r0, %r1;", optionally after a guard. Return the class of the result. */
static char write_statement(char *to, size_t bytes, const struct sim_opcode *row, const char *guard)
{
    const char result = row->operands[0];
    int used = snprintf(to, bytes, "%s%s %%%c9", guard, row->text, register_letter(result));
    for (int i = 0; row->operands[2 + i]; i++)
        used += snprintf(to + used, bytes - (size_t)used, ", %%%c%d",
                         register_letter(row->operands[2 + i]), i);
    snprintf(to + used, bytes - (size_t)used, ";\n");
    return result;
}

/* Registers: sources are in %d0 to %d3, %r0 to %r3, %h0 to %h3, %p0 to %p3; %d12 is the address of the result; %p8 is
 * set in odd lanes. The register of the result starts as source 3. */
static const char form_head[] =
    "mov.u32 %r20, %tid.x; mov.u32 %r21, %ctaid.x; shl.b32 %r22, %r21, 5; or.b32 %r22, %r22, %r20;"
    "ld.param.u64 %d10, [k_0]; mul.wide.u32 %d11, %r22, 32; add.s64 %d11, %d10, %d11;"
    "ld.global.v2.u32 {%r30, %r31}, [%d11]; ld.global.v2.u32 {%r32, %r33}, [%d11+8];"
    "ld.global.v2.u32 {%r34, %r35}, [%d11+16]; ld.global.v2.u32 {%r36, %r37}, [%d11+24];"
    "ld.param.u64 %d10, [k_1]; mul.wide.u32 %d12, %r22, 8; add.s64 %d12, %d10, %d12;"
    "and.b32 %r23, %r20, 1; setp.eq.s32 %p8, %r23, 1;\n";

static int write_sources(char *to, size_t bytes)
{
    int used = snprintf(to, bytes, "%s", form_head);
    for (int i = 0; i < SOURCES; i++)
        used += snprintf(
            to + used, bytes - (size_t)used,
            "cvt.u64.u32 %%d%d, %%r%d; cvt.u64.u32 %%d13, %%r%d; shl.b64 %%d13, %%d13, 32;"
            "or.b64 %%d%d, %%d%d, %%d13; mov.b32 %%r%d, %%r%d; mov.b32 {%%h%d, %%h10}, %%r%d;"
            "and.b32 %%r24, %%r%d, 1; setp.eq.s32 %%p%d, %%r24, 1;\n",
            i, 30 + 2 * i, 31 + 2 * i, i, i, i, 30 + 2 * i, i, 30 + 2 * i, 30 + 2 * i, i);
    return used + snprintf(to + used, bytes - (size_t)used,
                           "mov.b64 %%d9, %%d3; mov.b32 %%r9, %%r3; mov.b16 %%h9, %%h3;"
                           "mov.pred %%p9, %%p3;\n");
}

static const char *form_tail(char class)
{
    switch (class) {
    case 'p':
        return "selp.b64 %d9, 1, 0, %p9;";
    case 'h':
        return "cvt.u32.u16 %r9, %h9; cvt.u64.u32 %d9, %r9;";
    case 'r':
        return "cvt.u64.u32 %d9, %r9;";
    default:
        return "";
    }
}

/* Return the value of a register that starts as source 3 and is not written. */
static uint64_t untouched(uint64_t x, char class)
{
    return class == 'p' ? x & 1 : class == 'h' ? x & 0xffff : class == 'r' ? x & 0xffffffff : x;
}

static bool is_near(uint64_t got, uint64_t want)
{
    const double x = to_float(got), y = to_float(want);
    return x == y || fabs(x - y) <= fabs(y) * 0x1p-22 + 0x1p-149;
}

static bool is_right(char result, uint64_t got, uint64_t want)
{
    const bool narrow = result == 'f' || result == 'a';
    if (narrow && isnan(to_float(want)))
        return isnan(to_float(got));
    if (result == 'd' && isnan(to_double(want)))
        return isnan(to_double(got));
    return result == 'a' ? is_near(got, want) : got == want;
}

static void run_form(const struct form *form, bool guarded, const uint64_t *sources,
                     struct sim_memory *memory, uint64_t in, uint64_t out)
{
    char body[6000], statement[200];
    size_t from = 0;
    const struct sim_opcode *row = sim_opcode_find(form->text, strlen(form->text), &from);
    while (row && strpbrk(row->operands, "{}GSPQLi|"))
        row = sim_opcode_find(form->text, strlen(form->text), &from);
    if (!row)
        fail_msg("%s: no such row", form->text);
    const char class = write_statement(statement, sizeof statement, row, guarded ? "@%p8 " : "");
    const int used = write_sources(body, sizeof body);
    snprintf(body + used, sizeof body - (size_t)used,
             "%s%s cvt.u32.u64 %%r40, %%d9; shr.u64 %%d9, %%d9, 32; cvt.u32.u64 %%r41, %%d9;"
             "st.global.u32 [%%d12], %%r40; st.global.u32 [%%d12+4], %%r41;",
             statement, form_tail(class));
    const struct kernel_launch launch = {
        .body = body, .grid = BLOCKS, .params = {in, out}, .param_count = 2, .memory = memory};
    kernel_must_run(&launch);
    const uint64_t *got = look(memory, out);
    for (size_t i = 0; i < SAMPLES; i++) {
        const uint64_t *x = sources + SOURCES * i;
        const bool idle = guarded && i % 2 == 0;
        const uint64_t want = idle ? untouched(x[3], class) : form->want(x);
        if (idle ? got[i] != want : !is_right(form->result, got[i], want))
            fail_msg("%s of %llx, %llx, %llx, %llx gives %llx, not %llx", statement,
                     (unsigned long long)x[0], (unsigned long long)x[1], (unsigned long long)x[2],
                     (unsigned long long)x[3], (unsigned long long)got[i],
                     (unsigned long long)want);
    }
}

void run_plain_forms(void (*seen)(const struct sim_module *module))
{
    kernel_seen = seen;
    struct sim_memory *memory = sim_memory_create();
    assert_non_null(memory);
    const size_t bytes = SAMPLES * SOURCES * sizeof(uint64_t);
    uint64_t *sources = malloc(bytes);
    assert_non_null(sources);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (size_t s = 0; s < SAMPLES * SOURCES; s++)
            sources[s] = make_source(forms[i].sources, s / SOURCES, s % SOURCES);
        const uint64_t in = put(memory, sources, bytes);
        const uint64_t out = put(memory, NULL, SAMPLES * sizeof(uint64_t));
        run_form(&forms[i], false, sources, memory, in, out);
        run_form(&forms[i], true, sources, memory, in, out);
        sim_memory_remove(memory, in);
        sim_memory_remove(memory, out);
    }
    free(sources);
    sim_memory_destroy(memory);
    print_message("%zu forms\n", sizeof forms / sizeof *forms);
}
