/* SPDX-License-Identifier: Apache-2.0
 *
 * blocks.h: blocks of ggml's quantised types as floats. Every product is exact in float32, so that one
 * rounding is left, in the last subtraction, whether or not it is fused with a product: the value is the
 * same on every machine, and in the oracle, too. The trainer reads weights on the host with these.
 */
#ifndef NOJIT_REF_BLOCKS_H
#define NOJIT_REF_BLOCKS_H

#include "ref.h"
#include "tensor_type.h"

/* A float16, of any alignment. */
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

/* The low nibbles of 16 bytes, then the high ones. */
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

/* The quarter of byte l, of 32 for each 128 elements, that element e has. */
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

/* Six bits: four of the first eight bytes, two of the last four. */
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

/* Six bits each, of 12 bytes: the scale of group g and what is subtracted. */
static inline void scales_q4_k(const uint8_t *s, int g, int *scale, int *least)
{
    *scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | s[g - 4] >> 6 << 4;
    *least = g < 4 ? s[g + 4] & 63 : s[g + 4] >> 4 | s[g] >> 6 << 4;
}

/* high: bytes of a fifth bit, or NULL. */
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

/* By type: the elements of a block. */
enum { BLOCK_ELEMENTS_MOST = 256 };
static void (*const block_of[NJ_TYPES])(const uint8_t *b, float *x) = {
    [NJ_TYPE_Q8_0] = block_q8_0, [NJ_TYPE_Q4_0] = block_q4_0,     [NJ_TYPE_Q4_1] = block_q4_1,
    [NJ_TYPE_Q5_0] = block_q5_0, [NJ_TYPE_Q5_1] = block_q5_1,     [NJ_TYPE_Q2_K] = block_q2_k,
    [NJ_TYPE_Q3_K] = block_q3_k, [NJ_TYPE_Q4_K] = block_q4_k,     [NJ_TYPE_Q5_K] = block_q5_k,
    [NJ_TYPE_Q6_K] = block_q6_k, [NJ_TYPE_IQ4_NL] = block_iq4_nl, [NJ_TYPE_IQ4_XS] = block_iq4_xs,
};

#endif
