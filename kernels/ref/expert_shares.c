/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(expert_shares)(real *part, const real *logits, const int32_t *chosen,
                           const int32_t *keep, int32_t N, int32_t E, int32_t J, int32_t P)
{
#pragma omp parallel for
    for (int32_t p = 0; p < P; p++) {
        real *prob = part + (int64_t)p * 2 * E, *count = prob + E;
        for (int32_t e = 0; e < 2 * E; e++)
            prob[e] = 0;
        for (int64_t n = p; n < N; n += P) {
            const real *row = logits + n * E;
            real top = row[0], sum = 0;
            if (keep && keep[n] < 0)
                continue;
            for (int32_t e = 1; e < E; e++)
                top = row[e] > top ? row[e] : top;
            for (int32_t e = 0; e < E; e++)
                sum += exp(row[e] - top);
            for (int32_t e = 0; e < E; e++)
                prob[e] += exp(row[e] - top) / sum;
            for (int32_t j = 0; j < J; j++)
                if (chosen[n * J + j] >= 0)
                    count[chosen[n * J + j]] += 1;
        }
    }
}
