/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize.c: conversion of rows to blocks, and the blocks of 32, which have one scale, or a
 * scale and a minimum. The scale divides before it is rounded to float16.
 */
#include "formats/quantize.h"

#include "base/float16.h"
#include "formats/quantize_block.h"
#include "formats/tensors.h"
#include "nojit.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 32 };

/* Return the largest magnitude; those of finite values are ordered as their bits are, which
 * vectorizes. */
static float largest_magnitude(const float *x)
{
    uint32_t most = 0;
    for (int i = 0; i < BLOCK; i++) {
        const uint32_t bits = float_bits(x[i]) & 0x7fffffffu;
        most = bits > most ? bits : most;
    }
    float largest;
    memcpy(&largest, &most, sizeof largest);
    return largest;
}

static bool quantize_q8_0(const float *x, unsigned char *block)
{
    const float d = largest_magnitude(x) / 127, inverse = d > 0 ? 1 / d : 0;
    /* If 1 / d is infinite, d is 0 in float16. */
    const float scale = isfinite(inverse) ? inverse : 0;
    for (int i = 0; i < BLOCK; i++) {
        /* This is roundf() without the call: halves go away from zero, and 0.49999997 does not
         * reach 1. */
        const float q = x[i] * scale;
        block[2 + i] = (unsigned char)(int)(q + copysignf(0x1.fffffep-2f, q));
    }
    return put_half(d, block);
}

/* Pack nibbles: element i of the first half is the low nibble of byte i; of the second half, the
 * high one. */
static void put_nibbles(const unsigned char *q, unsigned char *dst)
{
    for (int i = 0; i < BLOCK / 2; i++)
        dst[i] = (unsigned char)((q[i] & 15) | q[i + BLOCK / 2] << 4);
}

static void put_fifth_bits(const unsigned char *q, unsigned char *dst)
{
    uint32_t bits = 0;
    for (int i = 0; i < BLOCK; i++)
        bits |= (uint32_t)(q[i] >> 4) << i;
    memcpy(dst, &bits, sizeof bits);
}

/* Quantize with a scale: q is from 0 to 2 * half - 1, half for zero. The value of the largest
 * magnitude, the first if there are several, becomes 0. */
static bool symmetric(const float *x, int half, unsigned char *q, unsigned char *dst)
{
    const float most = largest_magnitude(x);
    int at = 0;
    while (fabsf(x[at]) != most)
        at++;
    const float extreme = most > 0 ? x[at] : 0; /* never -0 */
    const float d = extreme / (float)-half, inverse = d != 0 ? 1 / d : 0;
    if (!isfinite(inverse)) { /* d is 0 in float16; ggml's results become zeros on x86 */
        memset(q, 0, BLOCK);
        return put_half(d, dst);
    }
    const int top = 2 * half - 1;
    for (int i = 0; i < BLOCK; i++) {
        const int n = (int)(x[i] * inverse + ((float)half + 0.5f));
        q[i] = (unsigned char)(n < top ? n : top);
    }
    return put_half(d, dst);
}

static bool quantize_q4_0(const float *x, unsigned char *block)
{
    unsigned char q[BLOCK];
    const bool fits = symmetric(x, 8, q, block);
    put_nibbles(q, block + 2);
    return fits;
}

static bool quantize_q5_0(const float *x, unsigned char *block)
{
    unsigned char q[BLOCK];
    const bool fits = symmetric(x, 16, q, block);
    put_fifth_bits(q, block + 2);
    put_nibbles(q, block + 6);
    return fits;
}

/* Return the first of the least values: the minima of 8 interleaved runs first, then the first
 * position: -0 and 0 differ once they are stored. */
static float first_least(const float *x, float sign)
{
    float least[8];
    for (int i = 0; i < 8; i++)
        least[i] = sign * x[i];
    for (int i = 8; i < BLOCK; i++)
        least[i % 8] = sign * x[i] < least[i % 8] ? sign * x[i] : least[i % 8];
    for (int i = 1; i < 8; i++)
        least[0] = least[i] < least[0] ? least[i] : least[0];
    int at = 0;
    while (sign * x[at] != least[0])
        at++;
    return x[at];
}

/* Quantize with a scale and a minimum: q is from 0, for the least value, to top. */
static bool affine(const float *x, int top, unsigned char *q, unsigned char *dst)
{
    const float lo = first_least(x, 1), hi = first_least(x, -1);
    const float d = (hi - lo) / (float)top, inverse = d != 0 ? 1 / d : 0;
    memset(q, 0, BLOCK);
    if (!put_half(d, dst) || !put_half(lo, dst + 2))
        return false;
    for (int i = 0; i < BLOCK && isfinite(inverse); i++) {
        const int n = (int)((x[i] - lo) * inverse + 0.5f);
        q[i] = (unsigned char)(n < top ? n : top);
    }
    return true;
}

static bool quantize_q4_1(const float *x, unsigned char *block)
{
    unsigned char q[BLOCK];
    const bool fits = affine(x, 15, q, block);
    put_nibbles(q, block + 4);
    return fits;
}

static bool quantize_q5_1(const float *x, unsigned char *block)
{
    unsigned char q[BLOCK];
    const bool fits = affine(x, 31, q, block);
    put_fifth_bits(q, block + 4);
    put_nibbles(q, block + 8);
    return fits;
}

static bool quantize_f32(const float *x, unsigned char *block)
{
    memcpy(block, x, sizeof *x);
    return true;
}

static bool quantize_bf16(const float *x, unsigned char *block)
{
    const uint16_t half = bf16_from_f32(*x);
    memcpy(block, &half, sizeof half);
    return (half & 0x7f80u) != 0x7f80u;
}

static bool quantize_f16(const float *x, unsigned char *block)
{
    return put_half(*x, block);
}

static bool (*const quantizers[NJ_TYPES])(const float *x, unsigned char *block) = {
    [NJ_TYPE_F32] = quantize_f32,   [NJ_TYPE_BF16] = quantize_bf16, [NJ_TYPE_F16] = quantize_f16,
    [NJ_TYPE_Q8_0] = quantize_q8_0, [NJ_TYPE_Q4_0] = quantize_q4_0, [NJ_TYPE_Q4_1] = quantize_q4_1,
    [NJ_TYPE_Q5_0] = quantize_q5_0, [NJ_TYPE_Q5_1] = quantize_q5_1, [NJ_TYPE_Q4_K] = quantize_q4_k,
    [NJ_TYPE_Q5_K] = quantize_q5_k, [NJ_TYPE_Q6_K] = quantize_q6_k,
};

bool quantize_supports(enum nj_tensor_type type)
{
    return quantizers[type] != NULL;
}

/* Return whether all magnitudes are below the limit; NaN counts as above. */
static bool all_below(float limit, const float *x, int64_t count)
{
    const uint32_t limit_bits = float_bits(limit);
    uint32_t above = 0;
    for (int64_t i = 0; i < count; i++)
        above |= (float_bits(x[i]) & 0x7fffffffu) >= limit_bits;
    return !above;
}

static bool quantize_row(enum nj_tensor_type type, const float *x, int64_t columns,
                         unsigned char *blocks)
{
    const int elements = tensor_type_block(type);
    const size_t bytes = tensor_type_bytes(type, elements);
    /* No block has a float16 scale for 2^32; where squares overflow, ggml writes zeros. */
    bool fits = all_below(elements > 1 ? 0x1p32f : INFINITY, x, columns);
    for (int64_t i = 0; fits && i < columns; i += elements, blocks += bytes)
        fits = quantizers[type](x + i, blocks);
    return fits;
}

int quantize_rows(enum nj_tensor_type type, const float *x, int64_t rows, int64_t columns,
                  void *blocks)
{
    if (!quantize_supports(type) || columns % tensor_type_block(type) != 0)
        return NJ_E_ARG;
    const size_t row_bytes = tensor_type_bytes(type, columns);
    bool fits = true;
#pragma omp parallel for reduction(&& : fits)
    for (int64_t r = 0; r < rows; r++)
        fits = quantize_row(type, x + r * columns, columns,
                            (unsigned char *)blocks + (size_t)r * row_bytes) &&
               fits;
    return fits ? 0 : NJ_E_FORMAT;
}
