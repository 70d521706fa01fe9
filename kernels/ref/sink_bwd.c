/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(sink_bwd)(real *dsink_part, const real *sink, const real *lse, const real *delta,
                      int32_t B, int32_t S, int32_t H, int32_t P)
{
    const int64_t rows = (int64_t)B * S, each = (rows + P - 1) / P;
#pragma omp parallel for
    for (int32_t p = 0; p < P; p++) {
        const int64_t first = p * each, end = first + each < rows ? first + each : rows;
        for (int32_t h = 0; h < H; h++) {
            real sum = 0;
            for (int64_t n = first; n < end; n++) {
                const int64_t at = (n / S * H + h) * S + n % S;
                sum -= exp(sink[h] - lse[at]) * delta[at];
            }
            dsink_part[(int64_t)p * H + h] = sum;
        }
    }
}
