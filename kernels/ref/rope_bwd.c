/* SPDX-License-Identifier: Apache-2.0 */
#include "rope.h"

static void turn_back(real *row, const real *inv_freq, int32_t pos, int32_t heads, int32_t D,
                      float amplitude)
{
    const int32_t half = D / 2;
    for (int32_t i = 0; i < half; i++) {
        real co, si;
        rope_turn(&co, &si, pos, inv_freq[i], amplitude);
        for (int32_t h = 0; h < heads; h++) {
            real *lo = row + h * D + i, *hi = lo + half;
            rope_pair_back(lo, hi, co, si);
        }
    }
}

void NJ_REF(rope_bwd)(real *dqkv, real *dbias_part, const real *inv_freq, const int32_t *pos,
                      int32_t N, int32_t H, int32_t K, int32_t D, int32_t P, float amplitude)
{
    const int32_t width = (H + 2 * K) * D;
#pragma omp parallel for
    for (int32_t p = 0; p < P; p++) {
        real *sum = dbias_part ? dbias_part + (int64_t)p * width : NULL;
        if (sum)
            memset(sum, 0, (size_t)width * sizeof(*sum));
        for (int64_t n = p; n < N; n += P) {
            real *row = dqkv + n * width;
            turn_back(row, inv_freq, pos[n], H + K, D, amplitude);
            if (sum) {
#pragma omp simd
                for (int32_t c = 0; c < width; c++)
                    sum[c] += row[c];
            }
        }
    }
}
