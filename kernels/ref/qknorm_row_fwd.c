/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

/* Norm the C elements x. Return the reciprocal root. */
static real norm_part(real *y, const real *x, const real *w, int32_t C, real eps)
{
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t c = 0; c < C; c++)
        sum += x[c] * x[c];
    const real r = 1 / sqrt(sum / (real)C + eps);
#pragma omp simd
    for (int32_t c = 0; c < C; c++)
        y[c] = x[c] * r * w[c];
    return r;
}

void NJ_REF(qknorm_row_fwd)(real *y, real *rstd, const real *x, const real *wq, const real *wk,
                            int32_t N, int32_t H, int32_t K, int32_t D, float eps)
{
    const int32_t q = H * D, k = K * D;
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const int64_t row = (int64_t)n * (q + 2 * k);
        const real *in = x + row;
        real *out = y + row;
        rstd[2 * (int64_t)n] = norm_part(out, in, wq, q, (real)eps);
        rstd[2 * (int64_t)n + 1] = norm_part(out + q, in + q, wk, k, (real)eps);
        if (out != in)
            memcpy(out + q + k, in + q + k, (size_t)k * sizeof(real));
    }
}
