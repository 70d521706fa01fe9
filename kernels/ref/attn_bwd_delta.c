/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(attn_bwd_delta)(real *delta, const real *dout, const real *o, int32_t B, int32_t S,
                            int32_t H, int32_t D)
{
#pragma omp parallel for collapse(2)
    for (int32_t b = 0; b < B; b++) {
        for (int32_t i = 0; i < S; i++) {
            for (int32_t h = 0; h < H; h++) {
                const int64_t at = (((int64_t)b * S + i) * H + h) * D;
                real sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int32_t d = 0; d < D; d++)
                    sum += dout[at + d] * o[at + d];
                delta[((int64_t)b * H + h) * S + i] = sum;
            }
        }
    }
}
