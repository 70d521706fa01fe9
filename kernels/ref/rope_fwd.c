/* SPDX-License-Identifier: Apache-2.0 */
#include "rope.h"

void NJ_REF(rope_fwd)(real *qkv, const real *bias, const real *inv_freq, const int32_t *pos,
                      int32_t N, int32_t H, int32_t K, int32_t D, float amplitude)
{
    const int32_t width = (H + 2 * K) * D, half = D / 2;
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        real *row = qkv + (int64_t)n * width;
        if (bias) {
#pragma omp simd
            for (int32_t c = 0; c < width; c++)
                row[c] += bias[c];
        }
        for (int32_t i = 0; i < half; i++) {
            real co, si;
            rope_turn(&co, &si, pos[n], inv_freq[i], amplitude);
            for (int32_t h = 0; h < H + K; h++) {
                real *lo = row + h * D + i, *hi = lo + half;
                rope_pair(lo, hi, co, si);
            }
        }
    }
}
