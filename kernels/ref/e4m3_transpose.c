/* SPDX-License-Identifier: Apache-2.0 */
#include "e4m3.h"

void NJ_REF(e4m3_transpose)(e4m3 *q, real *q_scale, const e4m3 *x, const real *scale,
                            const real *top, int32_t R, int32_t C)
{
#pragma omp parallel for
    for (int32_t c = 0; c < C; c++) {
        q_scale[c] = *top;
        for (int32_t r = 0; r < R; r++)
            q[(int64_t)c * R + r] = to_e4m3(from_e4m3(x[(int64_t)r * C + c]) * (scale[r] / *top));
    }
}
