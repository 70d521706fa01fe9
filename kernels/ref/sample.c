/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

static int32_t argmax(const real *x, int32_t V)
{
    int32_t best = 0;
    for (int32_t v = 1; v < V; v++)
        if (x[v] > x[best])
            best = v;
    return best;
}

/* Of a token whose logit lies x below the largest; less than min_p counts as nothing. */
static real weight(real x, float tau, float min_p)
{
    const real e = exp(x / (real)tau);
    return e < (real)min_p ? 0 : e;
}

void NJ_REF(sample)(int32_t *ids, const real *x, const real *u, int32_t M, int32_t V, int32_t ld,
                    float tau, float min_p)
{
#pragma omp parallel for
    for (int32_t m = 0; m < M; m++) {
        const real *row = x + (int64_t)m * ld;
        const int32_t best = argmax(row, V);
        ids[m] = best;
        if (tau == 0)
            continue;
        double total = 0, sum = 0; /* also in float: V may be 150,000 */
        for (int32_t v = 0; v < V; v++)
            total += (double)weight(row[v] - row[best], tau, min_p);
        /* Rounding may leave the sum at u total: then the last token that has a probability. */
        for (int32_t v = 0; v < V && sum <= (double)u[m] * total; v++) {
            const real e = weight(row[v] - row[best], tau, min_p);
            sum += (double)e;
            if (e > 0)
                ids[m] = v;
        }
    }
}
