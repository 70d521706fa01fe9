/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_convert.c: conversions. Narrow floats are made from the bits of a float, rounded to the
 * nearest, ties to even; a NaN becomes the format's own.
 */
#include "exec.h"
#include "narrow.h"

#include <math.h>

static inline uint32_t unsigned_of(float x)
{
    return x >= 4294967296.0f ? UINT32_MAX : x > 0 ? (uint32_t)x : 0; /* NaN: 0 */
}

static inline int32_t signed_of(float x)
{
    return x >= 2147483648.0f    ? INT32_MAX
           : x >= -2147483648.0f ? (int32_t)x
           : x < 0               ? INT32_MIN
                                 : 0;
}

/* clang-format off */
#define CONVERSIONS(OP) \
    OP(s64_s32, "cvt.s64.s32", "l=r", int64_t, int32_t, int32_t, int32_t, x) \
    OP(u64_u32, "cvt.u64.u32", "l=r", uint64_t, uint32_t, uint32_t, uint32_t, x) \
    OP(u32_u64, "cvt.u32.u64", "r=l", uint32_t, uint64_t, uint64_t, uint64_t, x) \
    OP(u32_u16, "cvt.u32.u16", "r=h", uint32_t, uint16_t, uint16_t, uint16_t, x) \
    OP(u16_u32, "cvt.u16.u32", "h=r", uint16_t, uint32_t, uint32_t, uint32_t, x) \
    OP(f64_f32, "cvt.f64.f32", "l=r", double, float, float, float, x) \
    OP(f32_f64, "cvt.rn.f32.f64", "r=l", float, double, double, double, x) \
    OP(f32_s16, "cvt.rn.f32.s16", "r=h", float, int16_t, int16_t, int16_t, x) \
    OP(f32_s32, "cvt.rn.f32.s32", "r=r", float, int32_t, int32_t, int32_t, x) \
    OP(f32_u32, "cvt.rn.f32.u32", "r=r", float, uint32_t, uint32_t, uint32_t, x) \
    OP(rni_f32, "cvt.rni.f32.f32", "r=r", float, float, float, float, rintf(x)) \
    OP(rni_s32, "cvt.rni.s32.f32", "r=r", int32_t, float, float, float, signed_of(rintf(x))) \
    OP(s32_s8, "cvt.s32.s8", "r=r", int32_t, int32_t, int32_t, int32_t, (int8_t)x) \
    OP(u32_f32, "cvt.rzi.u32.f32", "r=r", uint32_t, float, float, float, unsigned_of(x)) \
    OP(f32_bf16, "cvt.f32.bf16", "r=h", float, uint16_t, uint16_t, uint16_t, float_of_bf16(x)) \
    OP(f32_f16, "cvt.f32.f16", "r=h", float, uint16_t, uint16_t, uint16_t, float_of_f16(x)) \
    OP(bf16_f32, "cvt.rn.bf16.f32", "h=r", uint16_t, float, float, float, bf16_of_float(x)) \
    OP(f16_f32, "cvt.rn.f16.f32", "h=r", uint16_t, float, float, float, f16_of_float(x)) \
    OP(bf16x2_f32, "cvt.rn.bf16x2.f32", "r=rr", uint32_t, float, float, float, \
       bf16_of_float(x) << 16 | bf16_of_float(y)) \
    OP(f16x2_f32, "cvt.rn.f16x2.f32", "r=rr", uint32_t, float, float, float, \
       f16_of_float(x) << 16 | f16_of_float(y)) \
    OP(e4m3x2_f32, "cvt.rn.satfinite.e4m3x2.f32", "h=rr", uint16_t, float, float, float, \
       e4m3_of_float(x) << 8 | e4m3_of_float(y))
/* clang-format on */

CONVERSIONS(SIM_FUNCTION)

static const struct sim_opcode rows[] = {CONVERSIONS(SIM_ROW)};
SIM_TABLE(sim_convert_opcodes, rows);
