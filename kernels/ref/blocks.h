/* SPDX-License-Identifier: Apache-2.0
 *
 * blocks.h: blocks of the quantized types as floats. In ggml's types and I4 every product is exact in float32, so the
 * only rounding is in the last subtraction, whether or not it is fused with a product; NF4 and F8 round one product.
 * The value is therefore the same on every machine, and in the oracle. The trainer reads weights on the host with these
 * functions.
 */
#ifndef NOJIT_REF_BLOCKS_H
#define NOJIT_REF_BLOCKS_H

#include "base/tensor_type.h"
#include "ref.h"

/* Return the float16 at b, which need not be aligned. */
static inline float half_at(const uint8_t *b)
{
    const uint32_t bits = (uint32_t)(b[0] | b[1] << 8);
    const float sign = bits & 0x8000 ? -1.0f : 1.0f;
    const int exponent = (int)(bits >> 10 & 31), digits = (int)(bits & 1023);
    if (exponent == 31)
        return digits ? NAN : sign * INFINITY;
    return sign *
           ldexpf((float)(exponent ? 1024 + digits : digits), (exponent ? exponent : 1) - 25);
}

/* Return nibble e of 16 bytes: the low nibbles first, then the high ones. */
static inline int nibble(const uint8_t *b, int e)
{
    return b[e % 16] >> e / 16 * 4 & 15;
}

static inline int fifth_bit(const uint8_t *b, int e)
{
    return (b[e / 8] >> e % 8 & 1) << 4;
}

static inline void block_q8_0(const uint8_t *b, float *x)
{
    const float d = half_at(b);
    for (int e = 0; e < 32; e++)
        x[e] = d * (float)(int8_t)b[2 + e];
}

static inline void block_q4_0(const uint8_t *b, float *x)
{
    const float d = half_at(b);
    for (int e = 0; e < 32; e++)
        x[e] = d * (float)(nibble(b + 2, e) - 8);
}

static inline void block_q4_1(const uint8_t *b, float *x)
{
    const float d = half_at(b), m = half_at(b + 2);
    for (int e = 0; e < 32; e++)
        x[e] = d * (float)nibble(b + 4, e) + m;
}

static inline void block_q5_0(const uint8_t *b, float *x)
{
    const float d = half_at(b);
    for (int e = 0; e < 32; e++)
        x[e] = d * (float)((nibble(b + 6, e) | fifth_bit(b + 2, e)) - 16);
}

static inline void block_q5_1(const uint8_t *b, float *x)
{
    const float d = half_at(b), m = half_at(b + 2);
    for (int e = 0; e < 32; e++)
        x[e] = d * (float)(nibble(b + 8, e) | fifth_bit(b + 4, e)) + m;
}

/* Return the two bits of element e; each 32 bytes hold 128 elements. */
static inline int quarter(const uint8_t *b, int e)
{
    return b[32 * (e / 128) + e % 32] >> 2 * (e % 128 / 32) & 3;
}

static inline void block_q2_k(const uint8_t *b, float *x)
{
    const float d = half_at(b + 80), m = half_at(b + 82);
    for (int e = 0; e < 256; e++) {
        const int s = b[e / 16];
        x[e] = d * (float)(s & 15) * (float)quarter(b + 16, e) - m * (float)(s >> 4);
    }
}

/* Return the 6-bit scale of group j: four bits from the first eight bytes, two from the last four. */
static inline int scale_q3_k(const uint8_t *s, int j)
{
    const int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
    return low | (s[8 + j % 4] >> 2 * (j / 4) & 3) << 4;
}

static inline void block_q3_k(const uint8_t *b, float *x)
{
    const float d = half_at(b + 108);
    for (int e = 0; e < 256; e++) {
        const int high = b[e % 32] >> e / 32 & 1;
        const float scale = d * (float)(scale_q3_k(b + 96, e / 16) - 32);
        x[e] = scale * (float)(quarter(b + 32, e) - (high ? 0 : 4));
    }
}

/* Unpack the 6-bit scale of group g and its 6-bit minimum from 12 bytes. */
static inline void scales_q4_k(const uint8_t *s, int g, int *scale, int *least)
{
    *scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | s[g - 4] >> 6 << 4;
    *least = g < 4 ? s[g + 4] & 63 : s[g + 4] >> 4 | s[g] >> 6 << 4;
}

/* Expand a block of Q4_K, or of Q5_K if `high` points to the bytes of the fifth bits. */
static inline void block_q45_k(const uint8_t *b, const uint8_t *high, const uint8_t *low, float *x)
{
    const float d = half_at(b), m = half_at(b + 2);
    for (int g = 0; g < 8; g++) {
        int scale, least;
        scales_q4_k(b + 4, g, &scale, &least);
        for (int l = 0; l < 32; l++) {
            const int q = low[32 * (g / 2) + l] >> 4 * (g & 1) & 15;
            const int bit = high ? (high[l] >> g & 1) << 4 : 0;
            x[32 * g + l] = d * (float)scale * (float)(q | bit) - m * (float)least;
        }
    }
}

static inline void block_q4_k(const uint8_t *b, float *x)
{
    block_q45_k(b, NULL, b + 16, x);
}

static inline void block_q5_k(const uint8_t *b, float *x)
{
    block_q45_k(b, b + 16, b + 48, x);
}

static inline void block_q6_k(const uint8_t *b, float *x)
{
    const float d = half_at(b + 208);
    for (int e = 0; e < 256; e++) {
        const int r = e % 128 / 32;
        const int low = b[64 * (e / 128) + 32 * (r & 1) + e % 32] >> 4 * (r >> 1) & 15;
        const int q = (low | quarter(b + 128, e) << 4) - 32;
        x[e] = d * (float)(int8_t)b[192 + e / 16] * (float)q;
    }
}

static const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};

static inline void block_iq4_nl(const uint8_t *b, float *x)
{
    const float d = half_at(b);
    for (int e = 0; e < 32; e++)
        x[e] = d * (float)iq4_values[nibble(b + 2, e)];
}

static inline void block_iq4_xs(const uint8_t *b, float *x)
{
    const float d = half_at(b);
    const int high = b[2] | b[3] << 8;
    for (int g = 0; g < 8; g++) {
        const int low = b[g / 2 + 4] >> 4 * (g & 1) & 15;
        const float scale = d * (float)((low | (high >> 2 * g & 3) << 4) - 32);
        for (int e = 0; e < 32; e++)
            x[32 * g + e] = scale * (float)iq4_values[nibble(b + 8 + 16 * g, e)];
    }
}

static inline float float_at(const uint8_t *b)
{
    float x;
    memcpy(&x, b, sizeof x);
    return x;
}

/* Return the 4-bit number of element e: two per byte, the first in the low bits. */
static inline int half_byte(const uint8_t *b, int e)
{
    return b[e / 2] >> e % 2 * 4 & 15;
}

static const float nf4_values[16] = {-1.0f,        -0.69619280f, -0.52507305f,  -0.39491749f,
                                     -0.28444138f, -0.18477343f, -0.091050036f, 0.0f,
                                     0.079580300f, 0.16093020f,  0.24611230f,   0.33791524f,
                                     0.44070983f,  0.56261700f,  0.72295684f,   1.0f};

static inline void block_nf4(const uint8_t *b, float *x)
{
    const float absmax = float_at(b);
    for (int e = 0; e < 64; e++)
        x[e] = nf4_values[half_byte(b + 4, e ^ 1)] * absmax;
}

static inline void block_i4(const uint8_t *b, float *x, int elements)
{
    const uint8_t bfloat[4] = {0, 0, b[0], b[1]};
    const float scale = b[3] ? float_at(bfloat) : half_at(b);
    for (int e = 0; e < elements; e++)
        x[e] = (float)(half_byte(b + 4, e) - b[2]) * scale;
}

static inline void block_i4_32(const uint8_t *b, float *x)
{
    block_i4(b, x, 32);
}

static inline void block_i4_64(const uint8_t *b, float *x)
{
    block_i4(b, x, 64);
}

static inline void block_i4_128(const uint8_t *b, float *x)
{
    block_i4(b, x, 128);
}

/* Return the value of an E4M3 byte; NaN bytes become 480 or -480, as base/tensor_type.h says. */
static inline float e4m3_of(uint8_t bits)
{
    const int exponent = bits >> 3 & 15, digits = bits & 7;
    const float x = ldexpf((float)(exponent ? 8 + digits : digits), (exponent ? exponent : 1) - 10);
    return bits & 0x80 ? -x : x;
}

static inline void block_f8(const uint8_t *b, float *x, int elements)
{
    const float scale = float_at(b);
    for (int e = 0; e < elements; e++)
        x[e] = e4m3_of(b[4 + e]) * scale;
}

static inline void block_f8_32(const uint8_t *b, float *x)
{
    block_f8(b, x, 32);
}

static inline void block_f8_128(const uint8_t *b, float *x)
{
    block_f8(b, x, 128);
}

/* Return 2^(e - 128), which is subnormal for e = 0 and 1. */
static inline float power_at(uint8_t e)
{
    return ldexpf(1, e - 128);
}

/* The numbers stand for twice the values of E2M1. */
static inline void block_mxfp4(const uint8_t *b, float *x)
{
    static const float twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    const float scale = power_at(b[0]);
    for (int e = 0; e < 32; e++)
        x[e] = scale * twice[nibble(b + 1, e)];
}

/* Functions that expand a block, by type. */
enum { BLOCK_ELEMENTS_MOST = 256 };
static void (*const block_of[NJ_TYPES])(const uint8_t *b, float *x) = {
    [NJ_TYPE_Q8_0] = block_q8_0,     [NJ_TYPE_Q4_0] = block_q4_0,
    [NJ_TYPE_Q4_1] = block_q4_1,     [NJ_TYPE_Q5_0] = block_q5_0,
    [NJ_TYPE_Q5_1] = block_q5_1,     [NJ_TYPE_Q2_K] = block_q2_k,
    [NJ_TYPE_Q3_K] = block_q3_k,     [NJ_TYPE_Q4_K] = block_q4_k,
    [NJ_TYPE_Q5_K] = block_q5_k,     [NJ_TYPE_Q6_K] = block_q6_k,
    [NJ_TYPE_IQ4_NL] = block_iq4_nl, [NJ_TYPE_IQ4_XS] = block_iq4_xs,
    [NJ_TYPE_NF4] = block_nf4,       [NJ_TYPE_I4_32] = block_i4_32,
    [NJ_TYPE_I4_64] = block_i4_64,   [NJ_TYPE_I4_128] = block_i4_128,
    [NJ_TYPE_F8_32] = block_f8_32,   [NJ_TYPE_F8_128] = block_f8_128,
    [NJ_TYPE_MXFP4] = block_mxfp4,
};

#endif
