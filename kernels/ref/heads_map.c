/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(heads_map)(real *y, real *part, const real *x, const real *bias, const int32_t *map,
                       const int32_t *map_v, int32_t N, int32_t H, int32_t K, int32_t D_in,
                       int32_t D_out, int32_t P)
{
    const int32_t heads = H + 2 * K, width = heads * D_out;
#pragma omp parallel for
    for (int32_t p = 0; p < P; p++) {
        real *sum = part ? part + (int64_t)p * width : NULL;
        for (int32_t c = 0; c < width && sum; c++)
            sum[c] = 0;
        for (int64_t n = p; n < N; n += P)
            for (int32_t c = 0; c < width; c++) {
                const int32_t h = c / D_out;
                const int32_t from = (h < H + K ? map : map_v)[c % D_out];
                const int64_t row = (n * heads + h) * D_in, to = n * width + c;
                y[to] = from < 0 ? 0 : x[row + from] + (bias ? bias[h * D_in + from] : 0);
                if (sum)
                    sum[c] += y[to];
            }
    }
}
