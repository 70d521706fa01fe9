/* SPDX-License-Identifier: Apache-2.0 */
#include "rope.h"

enum { HALF_MAX = 128 }; /* D <= 256 */

/* Compute one head: d holds the gradient of y on entry, and of x on return. Its share is added to dw. */
static void back_norm_rotate(real *d, real *dw, const real *x, const real *w, real r,
                             const real *co, const real *si, int32_t D)
{
    const int32_t half = D / 2;
    real dot = 0;
#pragma omp simd
    for (int32_t i = 0; i < half; i++) {
        const real a = d[i], b = d[i + half];
        d[i] = a * co[i] + b * si[i];
        d[i + half] = b * co[i] - a * si[i];
    }
#pragma omp simd reduction(+ : dot)
    for (int32_t i = 0; i < D; i++)
        dot += d[i] * w[i] * x[i] * r;
    const real mean = dot / (real)D;
#pragma omp simd
    for (int32_t i = 0; i < D; i++) {
        const real h = x[i] * r, g = d[i];
        dw[i] += g * h;
        d[i] = r * (g * w[i] - h * mean);
    }
}

void NJ_REF(qknorm_rope_bwd)(real *dqkv, real *dwq_part, real *dwk_part, const real *x,
                             const real *rstd, const real *wq, const real *wk, const real *inv_freq,
                             const int32_t *pos, int32_t N, int32_t H, int32_t K, int32_t D,
                             int32_t P, float amplitude)
{
    const int32_t width = (H + 2 * K) * D;
#pragma omp parallel for
    for (int32_t p = 0; p < P; p++) {
        real *dwq = dwq_part + (int64_t)p * D, *dwk = dwk_part + (int64_t)p * D;
        for (int32_t i = 0; i < D; i++)
            dwq[i] = dwk[i] = 0;
        for (int64_t n = p; n < N; n += P) {
            real co[HALF_MAX], si[HALF_MAX];
            rope_turns(co, si, pos[n], inv_freq, D / 2, amplitude);
            for (int32_t h = 0; h < H + K; h++)
                back_norm_rotate(dqkv + n * width + h * D, h < H ? dwq : dwk, x + n * width + h * D,
                                 h < H ? wq : wk, rstd[n * (H + K) + h], co, si, D);
        }
    }
}
