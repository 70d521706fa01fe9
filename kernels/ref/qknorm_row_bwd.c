/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

/* Turn d, the gradient of C normalized elements, into that of the elements x, and add their share to dw. */
static void norm_back(real *d, real *dw, const real *x, const real *w, real r, int32_t C)
{
    real dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int32_t c = 0; c < C; c++)
        dot += d[c] * w[c] * x[c] * r;
    const real mean = dot / (real)C;
#pragma omp simd
    for (int32_t c = 0; c < C; c++) {
        const real h = x[c] * r;
        dw[c] += d[c] * h;
        d[c] = r * (d[c] * w[c] - h * mean);
    }
}

void NJ_REF(qknorm_row_bwd)(real *dqkv, real *dwq_part, real *dwk_part, const real *x,
                            const real *rstd, const real *wq, const real *wk, int32_t N, int32_t H,
                            int32_t K, int32_t D, int32_t P)
{
    const int32_t q = H * D, k = K * D;
#pragma omp parallel for
    for (int32_t p = 0; p < P; p++) {
        real *dwq = dwq_part + (int64_t)p * q, *dwk = dwk_part + (int64_t)p * k;
        memset(dwq, 0, (size_t)q * sizeof(*dwq));
        memset(dwk, 0, (size_t)k * sizeof(*dwk));
        for (int64_t n = p; n < N; n += P) {
            const int64_t row = n * (q + 2 * k);
            norm_back(dqkv + row, dwq, x + row, wq, rstd[2 * n], q);
            norm_back(dqkv + row + q, dwk, x + row + q, wk, rstd[2 * n + 1], k);
        }
    }
}
