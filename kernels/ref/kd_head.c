/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

/* softmax(x / tau) as log probabilities (x - max) / tau - log_sum. */
struct softmax {
    real max, tau, log_sum;
    int32_t argmax; /* the lowest index of equals */
};

static struct softmax softmax_of(const real *x, int32_t V, real tau)
{
    struct softmax r = {.max = x[0], .tau = tau};
    for (int32_t v = 1; v < V; v++) {
        if (x[v] > r.max) {
            r.max = x[v];
            r.argmax = v;
        }
    }
    double sum = 0; /* also in float: V may be 150,000 */
    for (int32_t v = 0; v < V; v++)
        sum += (double)exp((x[v] - r.max) / tau);
    r.log_sum = (real)log(sum);
    return r;
}

static real log_prob(const struct softmax *r, real x)
{
    return (x - r->max) / r->tau - r->log_sum;
}

/* s becomes scale (softmax(s) - onehot(target)). Returns the cross-entropy. */
static real cross_entropy(real *s, int32_t target, int32_t V, real scale)
{
    const struct softmax q = softmax_of(s, V, 1);
    const real loss = -log_prob(&q, s[target]);
    for (int32_t v = 0; v < V; v++)
        s[v] = scale * (exp(log_prob(&q, s[v])) - (real)(v == target));
    return loss;
}

struct distilled {
    real ce, agree;
    double kd, entropy; /* sums over V */
};

/* s becomes its gradient, times scale. */
static struct distilled distil(real *s, const real *t, int32_t target, int32_t V, real tau,
                               real ratio, real scale)
{
    const struct softmax hard = softmax_of(s, V, 1), q = softmax_of(s, V, tau);
    const struct softmax p = softmax_of(t, V, tau);
    struct distilled r = {.ce = -log_prob(&hard, s[target]), .agree = q.argmax == p.argmax};
    for (int32_t v = 0; v < V; v++) {
        const real log_p = log_prob(&p, t[v]), log_q = log_prob(&q, s[v]);
        const real pv = exp(log_p);
        if (pv > 0) { /* 0 log 0 is 0 */
            r.kd += (double)(pv * (log_p - log_q));
            r.entropy -= (double)(pv * log_p);
        }
        const real hot = (real)(v == target);
        s[v] = scale *
               ((1 - ratio) * (exp(log_prob(&hard, s[v])) - hot) + ratio * tau * (exp(log_q) - pv));
    }
    return r;
}

void NJ_REF(kd_head)(real *s, real *kd, real *ce, real *entropy, real *agree, const real *t,
                     const int32_t *target, const real *state, int32_t M, int32_t V, int32_t Vs,
                     int32_t Vt, float tau, float ratio)
{
    const real scale = state[NJ_STEP_INV_VALID] * state[NJ_STEP_LOSS_SCALE];
#pragma omp parallel for
    for (int32_t m = 0; m < M; m++) {
        real *row = s + (int64_t)m * Vs;
        struct distilled r = {0};
        int32_t used = V; /* columns that hold a gradient */
        if (target[m] < 0)
            used = 0;
        else if (t)
            r = distil(row, t + (int64_t)m * Vt, target[m], V, (real)tau, (real)ratio, scale);
        else
            r.ce = cross_entropy(row, target[m], V, scale);
        for (int32_t v = used; v < Vs; v++)
            row[v] = 0;
        kd[m] = (real)r.kd;
        ce[m] = r.ce;
        entropy[m] = (real)r.entropy;
        agree[m] = r.agree;
    }
}
