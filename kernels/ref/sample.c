/* SPDX-License-Identifier: Apache-2.0 */
#include "philox.h"

enum { STREAM = 0x73616d70, TOKENS_OF_A_CALL = 4, PART_MULTIPLE = 8 };

/* Scores are double also in float: noise of a likely token is -log of a small number. */
static double score_of(real x, float tau, uint32_t word)
{
    if (tau == 0)
        return (double)x;
    const double noise = -log(-log(1 - ((double)word + 0.5) * 0x1p-32));
    return (double)x / (double)tau + noise;
}

void NJ_REF(sample)(real *score, int32_t *best, const real *x_of, const real *cut,
                    const int32_t *slot, const int32_t *number, const int32_t *pos, int32_t R,
                    int32_t V, int32_t ld, int32_t PARTS, float tau, int32_t seed_low,
                    int32_t seed_high)
{
    const int64_t whole = ((int64_t)V + PARTS - 1) / PARTS;
    const int64_t length = (whole + PART_MULTIPLE - 1) / PART_MULTIPLE * PART_MULTIPLE;
#pragma omp parallel for collapse(2)
    for (int32_t m = 0; m < R; m++) {
        for (int32_t p = 0; p < PARTS; p++) {
            const int64_t end = (p + 1) * length < V ? (p + 1) * length : V;
            const real least = cut ? cut[m] : -INFINITY;
            double top = -INFINITY;
            int32_t id = -1;
            uint32_t w[TOKENS_OF_A_CALL];
            for (int64_t v = p * length; v < end && slot[m] >= 0; v++) {
                const real x = x_of[(int64_t)m * ld + v];
                if (v % TOKENS_OF_A_CALL == 0)
                    philox((uint64_t)v / TOKENS_OF_A_CALL | (uint64_t)(uint32_t)pos[m] << 32,
                           (uint32_t)number[m], STREAM, (uint32_t)seed_low, (uint32_t)seed_high, w);
                if (!(x >= least))
                    continue;
                const double s = score_of(x, tau, w[v % TOKENS_OF_A_CALL]);
                if (s > top) {
                    top = s;
                    id = (int32_t)v;
                }
            }
            score[(int64_t)m * PARTS + p] = (real)top;
            best[(int64_t)m * PARTS + p] = id;
        }
    }
}
