/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(row_gather)(real *dst, const real *src, const int32_t *index, int32_t M, int32_t R,
                        int32_t C, float scale)
{
    (void)R;
#pragma omp parallel for
    for (int32_t m = 0; m < M; m++) {
        real *out = dst + (int64_t)m * C;
        const int64_t from = index ? index[m] : m;
        for (int32_t c = 0; c < C; c++)
            out[c] = from < 0 ? 0 : (real)scale * src[from * C + c];
    }
}
