/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include "tensor_type.h"

static void (*const block_of[NJ_TYPES])(const uint8_t *b, float *x) = {
    [NJ_TYPE_Q8_0] = block_q8_0, [NJ_TYPE_Q4_0] = block_q4_0,     [NJ_TYPE_Q4_1] = block_q4_1,
    [NJ_TYPE_Q5_0] = block_q5_0, [NJ_TYPE_Q5_1] = block_q5_1,     [NJ_TYPE_Q2_K] = block_q2_k,
    [NJ_TYPE_Q3_K] = block_q3_k, [NJ_TYPE_Q4_K] = block_q4_k,     [NJ_TYPE_Q5_K] = block_q5_k,
    [NJ_TYPE_Q6_K] = block_q6_k, [NJ_TYPE_IQ4_NL] = block_iq4_nl, [NJ_TYPE_IQ4_XS] = block_iq4_xs,
};

/* What a block can hold at most. */
enum { ELEMENTS_MOST = 256 };

void NJ_REF(dequantize)(int TYPE, real *dst, const int32_t *data, const int32_t *index, int32_t M,
                        int32_t R, int32_t C)
{
    const int64_t row_bytes = nj_row_bytes(TYPE, C);
    const int elements = nj_row_bytes(TYPE, 32) > 0 ? 32 : ELEMENTS_MOST;
    const int64_t bytes = nj_row_bytes(TYPE, elements);
    (void)R;
#pragma omp parallel for
    for (int32_t m = 0; m < M; m++) {
        const int64_t row = index ? index[m] : m;
        real *out = dst + (int64_t)m * C;
        float x[ELEMENTS_MOST] = {0};
        for (int32_t c = 0; c < C; c += elements) {
            if (row >= 0)
                block_of[TYPE]((const uint8_t *)data + row * row_bytes + c / elements * bytes, x);
            for (int e = 0; e < elements; e++)
                out[c + e] = x[e];
        }
    }
}
