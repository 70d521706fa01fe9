/* SPDX-License-Identifier: Apache-2.0 */
#include "e4m3.h"

void NJ_REF(e4m3_rescale)(e4m3 *q, real *scale, const real *top, int32_t R, int32_t C)
{
    if (!isfinite(*top))
        return;
#pragma omp parallel for
    for (int32_t r = 0; r < R; r++) {
        e4m3 *row = q + (int64_t)r * C;
        for (int32_t c = 0; c < C && scale[r] != *top; c++)
            row[c] = to_e4m3(from_e4m3(row[c]) * (scale[r] / *top));
        scale[r] = *top;
    }
}
