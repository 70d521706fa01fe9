/* SPDX-License-Identifier: Apache-2.0 */
#include "gemv.h"
#include "sigmoid.h"

void NJ_REF(gemv_norm_swiglu)(int M, real *a, const real *x, const real *g, const real *w,
                              int32_t I, int32_t C, float eps, float offset)
{
    real r[GEMV_ROWS];
    reciprocal_roots(r, x, M, C, eps);
#pragma omp parallel for
    for (int32_t i = 0; i < I; i++) {
        for (int64_t m = 0; m < M; m++) {
            const real *row = x + m * C;
            const real gate = normed_dot(row, r[m], g, w + (int64_t)i * C, C, offset);
            const real up = normed_dot(row, r[m], g, w + (int64_t)(I + i) * C, C, offset);
            a[m * I + i] = gate * up * sigmoid(gate);
        }
    }
}
