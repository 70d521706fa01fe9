/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(sink_fwd)(real *o, real *lse, const real *sink, int32_t B, int32_t S, int32_t H,
                      int32_t D)
{
#pragma omp parallel for collapse(3)
    for (int32_t b = 0; b < B; b++) {
        for (int32_t h = 0; h < H; h++) {
            for (int32_t s = 0; s < S; s++) {
                real *at = lse + ((int64_t)b * H + h) * S + s;
                real *row = o + (((int64_t)b * S + s) * H + h) * D;
                const real was = *at, bias = sink[h], top = was > bias ? was : bias;
                const real share =
                    1 / (1 + exp(bias - was)); /* the part of all weights that keys have */
                for (int32_t d = 0; d < D; d++)
                    row[d] *= share;
                *at = top + log1p(exp(-fabs(was - bias)));
            }
        }
    }
}
