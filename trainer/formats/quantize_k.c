/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize_k.c: blocks of 256, whose parts of 32 or 16 have scales of their own, which are
 * integers times a scale of the block. Each part is fitted by least squares, from several
 * spacings. Sums are in the order of the elements, as ggml's are, so that bytes are equal; four
 * parts are fitted in parallel, one per lane of a vector.
 */
#include "base/float16.h"
#include "formats/quantize_block.h"
#include "formats/tensors.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 256, LANES = 4 };

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));

static const float shift = 0x1.8p23f; /* x + shift has the nearest integer in its low bits */

static ints pick_int(ints mask, ints yes, ints no)
{
    return (mask & yes) | (~mask & no);
}

static lanes pick(ints mask, lanes yes, lanes no)
{
    return (lanes)pick_int(mask, (ints)yes, (ints)no);
}

/* Round to the nearest integer, halves to even, and clamp to [least, most]. From 2^22 on bits
 * are lost as ggml loses them: infinities and NaN become some integer, too. */
static ints nearest_lanes(lanes x, int least, int most)
{
    const ints n = ((ints)(x + shift) & 0x7fffff) - 0x400000;
    const ints low = pick_int(n < least, (ints){0} + least, n);
    return pick_int(low > most, (ints){0} + most, low);
}

static int nearest(float x)
{
    const float shifted = x + shift;
    int32_t n;
    memcpy(&n, &shifted, sizeof n);
    return (n & 0x7fffff) - 0x400000;
}

static int clamp(int x, int least, int most)
{
    return x < least ? least : x > most ? most : x;
}

/* Interleave LANES parts of this many elements each: element i of all parts, then the next. */
static void side_by_side(const float *x, int elements, lanes *out)
{
    for (int i = 0; i < elements; i++)
        out[i] = (lanes){x[i], x[elements + i], x[2 * elements + i], x[3 * elements + i]};
}

/* ---- Q4_K and Q5_K: x = scale * level - least ---- */

enum { PART = 32, PARTS = BLOCK / PART };

struct spacings { /* levels from 0 to top over the range of a part, and (first + i / 10) more */
    int top, count;
    float first;
};

struct affine {
    float scale[PARTS], least[PARTS];
    float inverse[PARTS], from[PARTS]; /* level = nearest(inverse * (x - from)) */
};

struct part {
    lanes x[PART], weight[PART], sum_w, sum_wx;
};

static void weigh(struct part *p)
{
    lanes squares = {0}, mean;
    for (int i = 0; i < PART; i++)
        squares += p->x[i] * p->x[i];
    for (int l = 0; l < LANES; l++)
        mean[l] = sqrtf(squares[l] / PART);
    p->sum_w = p->sum_wx = (lanes){0};
    for (int i = 0; i < PART; i++) {
        p->weight[i] = mean + (lanes)((ints)p->x[i] & 0x7fffffff);
        p->sum_w += p->weight[i];
        p->sum_wx += p->weight[i] * p->x[i];
    }
}

static lanes weighted_error(const struct part *p, const lanes *level, lanes scale, lanes lo)
{
    lanes sum = {0};
    for (int i = 0; i < PART; i++) {
        const lanes off = scale * level[i] + lo - p->x[i];
        sum += p->weight[i] * (off * off);
    }
    return sum;
}

/* Fit scale and lo by least squares over the levels that `inverse` gives; scale alone if lo
 * would be positive. Return for which lanes there is a solution. */
static ints solve(const struct part *p, int top, lanes inverse, lanes from, lanes *level,
                  lanes *scale, lanes *lo)
{
    lanes sum_l = {0}, sum_ll = {0}, sum_lx = {0};
    for (int i = 0; i < PART; i++) {
        level[i] =
            __builtin_convertvector(nearest_lanes(inverse * (p->x[i] - from), 0, top), lanes);
        const lanes wl = p->weight[i] * level[i];
        sum_l += wl;
        sum_ll += wl * level[i];
        sum_lx += wl * p->x[i];
    }
    const lanes det = p->sum_w * sum_ll - sum_l * sum_l;
    *scale = (p->sum_w * sum_lx - p->sum_wx * sum_l) / det;
    *lo = (sum_ll * p->sum_wx - sum_l * sum_lx) / det;
    const ints positive = *lo > 0;
    *scale = pick(positive, sum_lx / sum_ll, *scale);
    *lo = pick(positive, (lanes){0}, *lo);
    return det > 0;
}

static void affine_fit(const float *x, const struct spacings *s, struct affine *out, int at)
{
    struct part p;
    lanes level[PART];
    side_by_side(x, PART, p.x);
    weigh(&p);
    lanes lo = p.x[0], hi = p.x[0];
    for (int i = 1; i < PART; i++) {
        lo = pick(p.x[i] < lo, p.x[i], lo);
        hi = pick(p.x[i] > hi, p.x[i], hi);
    }
    lo = pick(lo > 0, (lanes){0}, lo);
    const ints flat = hi == lo;
    const float top = (float)s->top;
    lanes inverse = top / (hi - lo), from = lo, scale = 1 / inverse;
    for (int i = 0; i < PART; i++)
        level[i] =
            __builtin_convertvector(nearest_lanes(inverse * (p.x[i] - lo), 0, s->top), lanes);
    lanes error = weighted_error(&p, level, scale, lo);
    for (int i = 0; i < s->count; i++) {
        lanes scale_i, lo_i;
        const lanes inverse_i = (s->first + 0.1f * (float)i + top) / (hi - lo);
        const ints solved = solve(&p, s->top, inverse_i, lo, level, &scale_i, &lo_i);
        const lanes error_i = weighted_error(&p, level, scale_i, lo_i);
        const ints better = solved & (error_i < error) & ~flat;
        error = pick(better, error_i, error);
        inverse = pick(better, inverse_i, inverse);
        from = pick(better, lo, from);
        scale = pick(better, scale_i, scale);
        lo = pick(better, lo_i, lo); /* the later spacings start from it */
    }
    for (int l = 0; l < LANES; l++, at++) {
        out->scale[at] = flat[l] ? 0 : scale[l];
        out->inverse[at] = flat[l] ? 0 : inverse[l];
        out->from[at] = from[l];
        out->least[at] = -lo[l];
    }
}

/* Pack 6 bits of scale and 6 of least for each part; the upper 2 bits of the last four parts are
 * beside the first four parts' bits. */
static void put_scales(const uint8_t *scale, const uint8_t *least, unsigned char *dst)
{
    for (int j = 0; j < 4; j++) {
        dst[j] = (unsigned char)(scale[j] | scale[j + 4] >> 4 << 6);
        dst[j + 4] = (unsigned char)(least[j] | least[j + 4] >> 4 << 6);
        dst[j + 8] = (unsigned char)((scale[j + 4] & 15) | (least[j + 4] & 15) << 4);
    }
}

static float largest(const float *x, int count)
{
    float most = 0;
    for (int j = 0; j < count; j++)
        most = x[j] > most ? x[j] : most;
    return most;
}

/* Quantize x[PARTS], none above most, in units of most / 63. */
static void quantize_scales(const float *x, float most, uint8_t *q)
{
    const float inverse = most > 0 ? 63 / most : 0;
    for (int j = 0; j < PARTS; j++) {
        q[j] = (uint8_t)nearest(inverse * x[j]);
        q[j] = q[j] > 63 ? 63 : q[j];
    }
}

/* Compute levels from the scales as they are stored, or from the fit if that scale is zero.
 * Write the beginning of Q4_K and Q5_K blocks. */
static bool affine_block(const float *x, const struct spacings *s, unsigned char *block,
                         uint8_t *level)
{
    struct affine fit;
    for (int j = 0; j < PARTS; j += LANES)
        affine_fit(x + j * PART, s, &fit, j);
    const float most_scale = largest(fit.scale, PARTS), most_least = largest(fit.least, PARTS);
    uint8_t scale[PARTS], least[PARTS];
    quantize_scales(fit.scale, most_scale, scale);
    quantize_scales(fit.least, most_least, least);
    if (!put_half(most_scale / 63, block) || !put_half(most_least / 63, block + 2))
        return false;
    put_scales(scale, least, block + 4);
    const float d = f32_from_f16(f16_from_f32(most_scale / 63));
    const float dmin = f32_from_f16(f16_from_f32(most_least / 63));
    for (int j = 0; j < PARTS; j++, x += PART, level += PART) {
        const float step = d * (float)scale[j], add = dmin * (float)least[j];
        for (int i = 0; i < PART && step != 0; i++)
            level[i] = (uint8_t)clamp(nearest((x[i] + add) / step), 0, s->top);
        for (int i = 0; i < PART && step == 0; i++)
            level[i] = (uint8_t)clamp(nearest(fit.inverse[j] * (x[i] - fit.from[j])), 0, s->top);
    }
    return true;
}

/* Pack the 32 low nibbles of a part with those of the next. */
static void put_low_bits(const uint8_t *level, unsigned char *dst)
{
    for (int j = 0; j < BLOCK; j += 2 * PART)
        for (int i = 0; i < PART; i++)
            *dst++ = (unsigned char)((level[j + i] & 15) | level[j + PART + i] << 4);
}

bool quantize_q4_k(const float *x, unsigned char *block)
{
    uint8_t level[BLOCK];
    const bool fits = affine_block(x, &(struct spacings){15, 21, -1}, block, level);
    if (fits)
        put_low_bits(level, block + 16);
    return fits;
}

bool quantize_q5_k(const float *x, unsigned char *block)
{
    uint8_t level[BLOCK];
    if (!affine_block(x, &(struct spacings){31, 16, -0.5f}, block, level))
        return false;
    memset(block + 16, 0, PART);
    for (int j = 0; j < PARTS; j++)
        for (int i = 0; i < PART; i++)
            block[16 + i] |= (unsigned char)(level[j * PART + i] >> 4 << j);
    put_low_bits(level, block + 48);
    return true;
}

/* ---- Q6_K: x = scale * level, levels from -32 to 31 ---- */

enum { PART6 = 16, PARTS6 = BLOCK / PART6, LOW = -32, HIGH = 31 };

static const float least_magnitude = 1e-15f; /* magnitude below which all values are zero */

struct symmetric {
    float scale[PARTS6];
    float inverse[PARTS6]; /* level = nearest(inverse * x) */
    bool zero[PARTS6];
};

/* Compute sums of x * level and level^2, weighted by x^2. */
static void correlate(const lanes *x, lanes inverse, lanes *sum_lx, lanes *sum_ll)
{
    *sum_lx = *sum_ll = (lanes){0};
    for (int i = 0; i < PART6; i++) {
        const lanes level =
            __builtin_convertvector(nearest_lanes(inverse * x[i], LOW, HIGH), lanes);
        const lanes weight = x[i] * x[i];
        *sum_lx += weight * x[i] * level;
        *sum_ll += weight * level * level;
    }
}

static void symmetric_fit(const float *from, struct symmetric *out, int at)
{
    lanes x[PART6], most = {0}, extreme = {0}, sum_lx, sum_ll;
    side_by_side(from, PART6, x);
    for (int i = 0; i < PART6; i++) {
        const lanes magnitude = (lanes)((ints)x[i] & 0x7fffffff);
        extreme = pick(magnitude > most, x[i], extreme);
        most = pick(magnitude > most, magnitude, most);
    }
    lanes inverse = (float)LOW / extreme;
    correlate(x, inverse, &sum_lx, &sum_ll);
    lanes scale = pick(sum_ll != 0, sum_lx / sum_ll, (lanes){0}), best = scale * sum_lx;
    for (int i = -9; i <= 9; i += i == -1 ? 2 : 1) {
        const lanes inverse_i = -(0.1f * (float)i - LOW) / extreme;
        correlate(x, inverse_i, &sum_lx, &sum_ll);
        const ints better = (sum_ll > 0) & (sum_lx * sum_lx > best * sum_ll);
        inverse = pick(better, inverse_i, inverse);
        scale = pick(better, sum_lx / sum_ll, scale);
        best = pick(better, scale * sum_lx, best);
    }
    for (int l = 0; l < LANES; l++, at++) {
        out->zero[at] = most[l] < least_magnitude;
        out->scale[at] = out->zero[at] ? 0 : scale[l];
        out->inverse[at] = inverse[l];
    }
}

/* Pack the 4 low bits of each level, two levels of a half to a byte, and then the 2 high bits,
 * four to a byte. */
static void put_q6_bits(const uint8_t *level, unsigned char *low, unsigned char *high)
{
    for (int half = 0; half < BLOCK; half += 128, level += 128, low += 64, high += 32) {
        for (int i = 0; i < 64; i++)
            low[i] = (unsigned char)((level[i] & 15) | level[i + 64] << 4);
        for (int i = 0; i < 32; i++)
            high[i] = (unsigned char)(level[i] >> 4 | level[i + 32] >> 4 << 2 |
                                      level[i + 64] >> 4 << 4 | level[i + 96] >> 4 << 6);
    }
}

bool quantize_q6_k(const float *x, unsigned char *block)
{
    struct symmetric fit;
    for (int j = 0; j < PARTS6; j += LANES)
        symmetric_fit(x + j * PART6, &fit, j);
    float most = 0;
    for (int j = 0; j < PARTS6; j++)
        most = fabsf(fit.scale[j]) > fabsf(most) ? fit.scale[j] : most;
    if (fabsf(most) < least_magnitude) {
        memset(block, 0, tensor_type_bytes(NJ_TYPE_Q6_K, BLOCK));
        return true;
    }
    const float inverse = -128 / most;
    if (!put_half(1 / inverse, block + 208))
        return false;
    const float d = f32_from_f16(f16_from_f32(1 / inverse));
    uint8_t level[BLOCK];
    for (int j = 0; j < PARTS6; j++) {
        const int scale = clamp(nearest(inverse * fit.scale[j]), -128, 127);
        const float step = d * (float)scale;
        block[192 + j] = (unsigned char)scale;
        for (int i = j * PART6; i < (j + 1) * PART6; i++) {
            const float n = step != 0 ? x[i] / step : fit.inverse[j] * x[i];
            level[i] = step == 0 && fit.zero[j] ? 0 : (uint8_t)(clamp(nearest(n), LOW, HIGH) - LOW);
        }
    }
    put_q6_bits(level, block, block + 128);
    return true;
}
