/* SPDX-License-Identifier: Apache-2.0 */
#include "e4m3.h"

enum { C_MAX = 10240 };

void NJ_REF(add_rmsnorm_quantize)(e4m3 *q, real *scale, real *s, const real *x, const real *b,
                                  const real *w, int32_t N, int32_t C, float eps)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const int64_t row = (int64_t)n * C;
        real sum = 0, y[C_MAX];
        for (int32_t c = 0; c < C; c++) {
            s[row + c] = x[row + c] + b[row + c];
            sum += s[row + c] * s[row + c];
        }
        const real r = 1 / sqrt(sum / (real)C + (real)eps);
        for (int32_t c = 0; c < C; c++)
            y[c] = s[row + c] * r * w[c];
        quantize_row(q + row, scale + n, y, C);
    }
}
