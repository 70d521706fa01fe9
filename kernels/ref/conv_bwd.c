/* SPDX-License-Identifier: Apache-2.0 */
#include "conv.h"

/* Return the gradient of the argument of the activation. */
static real sum_gradient(const struct conv *a, const real *dy, const real *gate_out, int32_t b,
                         int32_t s, int32_t c, int32_t act)
{
    const int64_t row = (int64_t)b * a->S + s;
    const real gate = gate_out ? gate_out[row * a->ld + c] : 1;
    return dy[row * a->X + c] * gate * conv_slope(conv_sum(a, b, s, c), act);
}

void NJ_REF(conv_bwd)(real *dx, real *dgate_in, real *dgate_out, real *dw_part, real *dbias_part,
                      const real *dy, const real *x, const real *w, const real *bias,
                      const real *gate_in, const real *gate_out, const int32_t *doc_start,
                      int32_t B, int32_t S, int32_t X, int32_t L, int32_t ld, int32_t P,
                      int32_t act)
{
    const struct conv a = {x, w, bias, gate_in, doc_start, S, X, L, ld};
    const int64_t rows = (int64_t)B * S, each = (rows + P - 1) / P;
#pragma omp parallel for collapse(2)
    for (int32_t b = 0; b < B; b++)
        for (int32_t n = 0; n < S; n++)
            for (int32_t c = 0; c < X; c++) {
                const int64_t row = (int64_t)b * S + n, at = row * ld + c;
                real du = 0;
                for (int32_t s = n; s < n + L && s < S && start(&a, b, s) <= n; s++)
                    du += w[(int64_t)c * L + n - s + L - 1] *
                          sum_gradient(&a, dy, gate_out, b, s, c, act);
                dx[at] = du * (gate_in ? gate_in[at] : 1);
                if (gate_in)
                    dgate_in[at] = du * x[at];
                if (gate_out)
                    dgate_out[at] = dy[row * X + c] * conv_act(conv_sum(&a, b, n, c), act);
            }
#pragma omp parallel for collapse(2)
    for (int32_t p = 0; p < P; p++)
        for (int32_t c = 0; c < X; c++) {
            const int64_t first = p * each, end = first + each < rows ? first + each : rows;
            real dw[8] = {0}, dbias = 0;
            for (int64_t n = first; n < end; n++) {
                const int32_t b = (int32_t)(n / S), s = (int32_t)(n % S);
                const real dh = sum_gradient(&a, dy, gate_out, b, s, c, act);
                dbias += dh;
                for (int32_t t = 0; t < L; t++)
                    dw[t] += dh * conv_input(&a, b, s - L + 1 + t, start(&a, b, s), c);
            }
            memcpy(dw_part + ((int64_t)p * X + c) * L, dw, (size_t)L * sizeof *dw);
            if (dbias_part)
                dbias_part[(int64_t)p * X + c] = dbias;
        }
}
