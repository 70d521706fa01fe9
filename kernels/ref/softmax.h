/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax.h: softmax(x / tau) as log probabilities: (x - max) / tau - log_sum.
 */
#ifndef NOJIT_REF_SOFTMAX_H
#define NOJIT_REF_SOFTMAX_H

#include "ref.h"

struct softmax {
    real max, tau, log_sum;
    int32_t argmax; /* the lowest index among equals */
};

static inline struct softmax softmax_of(const real *x, int32_t V, real tau)
{
    struct softmax r = {.max = x[0], .tau = tau};
    for (int32_t v = 1; v < V; v++) {
        if (x[v] > r.max) {
            r.max = x[v];
            r.argmax = v;
        }
    }
    double sum = 0; /* double in both builds: V may be 150,000 */
    for (int32_t v = 0; v < V; v++)
        sum += (double)exp((x[v] - r.max) / tau);
    r.log_sum = (real)log(sum);
    return r;
}

/* Return the derivative of a logit z = cap tanh(y / cap) by y; 1 without a cap. Rounding may have raised z above the
 * cap. */
static inline real cap_slope(real z, real cap)
{
    if (!(cap > 0))
        return 1;
    const real r = z / cap, slope = 1 - r * r;
    return slope < 0 ? 0 : slope;
}

static inline real log_prob(const struct softmax *r, real x)
{
    return (x - r->max) / r->tau - r->log_sum;
}

#endif
