/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(row_gather)(real *dst, const real *src, const int32_t *index, int32_t M, int32_t R,
                        int32_t C)
{
    (void)R;
#pragma omp parallel for
    for (int32_t m = 0; m < M; m++) {
        real *out = dst + (int64_t)m * C;
        if (index[m] < 0) {
            for (int32_t c = 0; c < C; c++)
                out[c] = 0;
        } else {
            memcpy(out, src + (int64_t)index[m] * C, (size_t)C * sizeof(real));
        }
    }
}
