/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(conv_store)(real *state, const real *x, const real *gate_in, const int32_t *doc_start,
                        const int32_t *slot, int32_t B, int32_t S, int32_t X, int32_t L, int32_t ld,
                        int32_t G)
{
    (void)G;
#pragma omp parallel for collapse(2)
    for (int32_t b = 0; b < B; b++)
        for (int32_t e = 0; e < S; e++) {
            const int64_t seq = (int64_t)b * S;
            const int32_t first = doc_start[seq + e], to = slot[seq + e];
            if (to < 0 || (e + 1 < S && doc_start[seq + e + 1] == first))
                continue;
            for (int32_t t = 0; t < L - 1; t++) {
                const int32_t n = e - L + 2 + t;
                real *row = state + ((int64_t)to * (L - 1) + t) * X;
                for (int32_t c = 0; c < X; c++) {
                    const int64_t at = (seq + n) * ld + c;
                    row[c] = n >= first ? x[at] * (gate_in ? gate_in[at] : 1) : 0;
                }
            }
        }
}
