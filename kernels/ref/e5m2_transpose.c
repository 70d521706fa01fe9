/* SPDX-License-Identifier: Apache-2.0 */
#include "e5m2.h"

void NJ_REF(e5m2_transpose)(e5m2 *q, const e5m2 *x, int32_t R, int32_t C, int32_t X)
{
#pragma omp parallel for
    for (int32_t c = 0; c < C; c++)
        for (int32_t r = 0; r < R; r++)
            q[(int64_t)c * R + r] = x[(int64_t)r * X + c];
}
