/* SPDX-License-Identifier: Apache-2.0 */
#include "softmax.h"

/* Sums over V. */
struct row {
    double forward, reverse, entropy;
};

static struct row row_of(const real *s, const real *t, int32_t V, real tau)
{
    const struct softmax student = softmax_of(s, V, tau), teacher = softmax_of(t, V, tau);
    struct row r = {0};
    for (int32_t v = 0; v < V; v++) {
        const real log_p = log_prob(&teacher, t[v]), log_q = log_prob(&student, s[v]);
        const real p = exp(log_p), q = exp(log_q);
        r.forward += (double)(p * (log_p - log_q));
        r.reverse += (double)(q * (log_q - log_p));
        r.entropy -= (double)(q * log_q);
    }
    return r;
}

void NJ_REF(kl_rows)(real *forward, real *reverse, real *entropy, real *counted, const real *s,
                     const real *t, const int32_t *target, int32_t M, int32_t V, int32_t Vs,
                     int32_t Vt, float tau)
{
#pragma omp parallel for
    for (int32_t m = 0; m < M; m++) {
        struct row r = {0};
        if (target[m] >= 0)
            r = row_of(s + (int64_t)m * Vs, t + (int64_t)m * Vt, V, (real)tau);
        forward[m] = (real)r.forward;
        reverse[m] = (real)r.reverse;
        entropy[m] = (real)r.entropy;
        counted[m] = target[m] >= 0;
    }
}
