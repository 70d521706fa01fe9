/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

enum { BLOCK = 64 };

void NJ_REF(colsum)(real *dst, const real *part, int32_t P, int32_t C)
{
#pragma omp parallel for
    for (int32_t start = 0; start < C; start += BLOCK) {
        const int32_t width = C - start < BLOCK ? C - start : BLOCK;
        real sum[BLOCK] = {0};
        for (int32_t p = 0; p < P; p++) {
            const real *row = part + (int64_t)p * C + start;
            for (int32_t c = 0; c < width; c++)
                sum[c] += row[c];
        }
        for (int32_t c = 0; c < width; c++)
            dst[start + c] += sum[c];
    }
}
