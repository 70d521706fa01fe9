/* SPDX-License-Identifier: Apache-2.0 */
#include "head_gain.h"

/* Compute one head: u = x r, rotated into y, with the gain before or after. Return r. */
static real norm_rotate(real *y, const real *x, const struct head_gain *w, const real *co,
                        const real *si, int32_t D, real eps)
{
    const int32_t half = D / 2;
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t i = 0; i < D; i++)
        sum += x[i] * x[i];
    const real r = 1 / sqrt(sum / (real)D + eps);
#pragma omp simd
    for (int32_t i = 0; i < half; i++) {
        const real a = x[i] * r * w->before[i], b = x[i + half] * r * w->before[i + half];
        y[i] = (a * co[i] - b * si[i]) * w->after[i];
        y[i + half] = (b * co[i] + a * si[i]) * w->after[i + half];
    }
    return r;
}

void NJ_REF(qknorm_rope_fwd)(real *y, real *rstd, const real *x, const real *wq, const real *wk,
                             const real *inv_freq, const int32_t *pos, int32_t N, int32_t H,
                             int32_t K, int32_t D, float eps, float amplitude, float offset,
                             int32_t gain_last)
{
    const int32_t width = (H + 2 * K) * D, rotated = (H + K) * D;
    const struct head_gain of_q = head_gain(wq, D, offset, gain_last);
    const struct head_gain of_k = head_gain(wk, D, offset, gain_last);
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const real *in = x + (int64_t)n * width;
        real *out = y + (int64_t)n * width;
        real co[HEAD_MAX / 2], si[HEAD_MAX / 2];
        rope_turns(co, si, pos[n], inv_freq, D / 2, amplitude);
        for (int32_t h = 0; h < H + K; h++)
            rstd[(int64_t)n * (H + K) + h] =
                norm_rotate(out + h * D, in + h * D, h < H ? &of_q : &of_k, co, si, D, (real)eps);
        if (out != in)
            memcpy(out + rotated, in + rotated, (size_t)(width - rotated) * sizeof(real));
    }
}
