/* SPDX-License-Identifier: Apache-2.0 */
#include "head_gain.h"

/* Compute one head: d holds the gradient of y on entry, and of x on return. Its share is added to dw, unless that is
 * NULL. With `last`, the gain is behind the rotation. */
static void back_norm_rotate(real *d, real *dw, const real *x, const struct head_gain *w,
                             int32_t last, real r, const real *co, const real *si, int32_t D)
{
    const int32_t half = D / 2;
    real dot = 0;
    for (int32_t i = 0; i < half && dw && last; i++) {
        real lo = x[i] * r, hi = x[i + half] * r;
        rope_pair(&lo, &hi, co[i], si[i]);
        dw[i] += d[i] * lo;
        dw[i + half] += d[i + half] * hi;
    }
#pragma omp simd
    for (int32_t i = 0; i < half; i++) {
        const real a = d[i] * w->after[i], b = d[i + half] * w->after[i + half];
        d[i] = a * co[i] + b * si[i];
        d[i + half] = b * co[i] - a * si[i];
    }
    for (int32_t i = 0; i < D && dw && !last; i++)
        dw[i] += d[i] * (x[i] * r);
#pragma omp simd reduction(+ : dot)
    for (int32_t i = 0; i < D; i++) {
        d[i] *= w->before[i];
        dot += d[i] * x[i] * r;
    }
    const real mean = dot / (real)D;
#pragma omp simd
    for (int32_t i = 0; i < D; i++)
        d[i] = r * (d[i] - x[i] * r * mean);
}

void NJ_REF(qknorm_rope_bwd)(real *dqkv, real *dwq_part, real *dwk_part, const real *x,
                             const real *rstd, const real *wq, const real *wk, const real *inv_freq,
                             const int32_t *pos, int32_t N, int32_t H, int32_t K, int32_t D,
                             int32_t P, float amplitude, float offset, int32_t gain_last)
{
    const int32_t width = (H + 2 * K) * D;
    const struct head_gain of_q = head_gain(wq, D, offset, gain_last);
    const struct head_gain of_k = head_gain(wk, D, offset, gain_last);
#pragma omp parallel for
    for (int32_t p = 0; p < P; p++) {
        real *dwq = dwq_part ? dwq_part + (int64_t)p * D : NULL;
        real *dwk = dwk_part ? dwk_part + (int64_t)p * D : NULL;
        for (int32_t i = 0; i < D && dwq; i++)
            dwq[i] = 0;
        for (int32_t i = 0; i < D && dwk; i++)
            dwk[i] = 0;
        for (int64_t n = p; n < N; n += P) {
            real co[HEAD_MAX / 2], si[HEAD_MAX / 2];
            rope_turns(co, si, pos[n], inv_freq, D / 2, amplitude);
            for (int32_t h = 0; h < H + K; h++)
                back_norm_rotate(dqkv + n * width + h * D, h < H ? dwq : dwk, x + n * width + h * D,
                                 h < H ? &of_q : &of_k, gain_last, rstd[n * (H + K) + h], co, si,
                                 D);
        }
    }
}
