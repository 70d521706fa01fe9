/* SPDX-License-Identifier: Apache-2.0 */
#include "conv.h"

void NJ_REF(conv_fwd)(real *y, const real *x, const real *w, const real *bias, const real *gate_in,
                      const real *gate_out, const int32_t *doc_start, int32_t B, int32_t S,
                      int32_t X, int32_t L, int32_t ld, int32_t act)
{
    const struct conv a = {x, w, bias, gate_in, doc_start, S, X, L, ld};
#pragma omp parallel for collapse(2)
    for (int32_t b = 0; b < B; b++)
        for (int32_t s = 0; s < S; s++)
            for (int32_t c = 0; c < X; c++) {
                const int64_t row = (int64_t)b * S + s;
                const real h = conv_sum(&a, b, s, c);
                const real gate = gate_out ? gate_out[row * ld + c] : 1;
                y[row * X + c] = conv_act(h, act) * gate;
            }
}
