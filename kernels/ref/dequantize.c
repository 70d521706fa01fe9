/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"

void NJ_REF(dequantize)(int TYPE, real *dst, const int32_t *data, const int32_t *index, int32_t M,
                        int32_t R, int32_t C)
{
    const int64_t row_bytes = nj_row_bytes(TYPE, C);
    int elements = 32;
    while (nj_row_bytes(TYPE, elements) == 0)
        elements *= 2;
    const int64_t bytes = nj_row_bytes(TYPE, elements);
    (void)R;
#pragma omp parallel for
    for (int32_t m = 0; m < M; m++) {
        const int64_t row = index ? index[m] : m;
        real *out = dst + (int64_t)m * C;
        float x[BLOCK_ELEMENTS_MOST] = {0};
        for (int32_t c = 0; c < C; c += elements) {
            if (row >= 0)
                block_of[TYPE]((const uint8_t *)data + row * row_bytes + c / elements * bytes, x);
            for (int e = 0; e < elements; e++)
                out[c + e] = x[e];
        }
    }
}
