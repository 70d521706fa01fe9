/* SPDX-License-Identifier: Apache-2.0 */
#include "sigmoid.h"

#include "base/route.h"

/* Compute the softmax of the logits of a row. */
static void softmax(real *out, const real *row, int32_t E)
{
    real top = row[0], sum = 0;
    for (int32_t e = 1; e < E; e++)
        top = row[e] > top ? row[e] : top;
    for (int32_t e = 0; e < E; e++) {
        out[e] = exp(row[e] - top);
        sum += out[e];
    }
    for (int32_t e = 0; e < E; e++)
        out[e] /= sum;
}

/* Set t[j] to the scores of the chosen experts, before they are divided by their sum. */
static void chosen_scores(real *t, const real *row, const real *prob, const int32_t *chosen,
                          int32_t J, int32_t rule)
{
    real top = -(real)INFINITY, sum = 0;
    for (int32_t j = 0; j < J; j++)
        if (chosen[j] >= 0 && row[chosen[j]] > top)
            top = row[chosen[j]];
    for (int32_t j = 0; j < J; j++) {
        t[j] = 0;
        if (chosen[j] >= 0)
            t[j] = rule == NJ_ROUTE_SOFTMAX       ? prob[chosen[j]]
                   : rule == NJ_ROUTE_TOP_SOFTMAX ? exp(row[chosen[j]] - top)
                                                  : sigmoid(row[chosen[j]]);
        sum += t[j];
    }
    for (int32_t j = 0; j < J && rule == NJ_ROUTE_TOP_SOFTMAX; j++)
        t[j] /= sum + (real)1e-20;
}

/* Compute the gradients h[j] of the scores t[j]. */
static void score_gradients(real *h, const real *t, const real *dweight, int32_t J, int divided,
                            real scale)
{
    real sum = (real)1e-20, product = 0;
    for (int32_t j = 0; j < J; j++) {
        h[j] = scale * dweight[j];
        sum += t[j];
        product += h[j] * t[j];
    }
    for (int32_t j = 0; j < J && divided; j++)
        h[j] = (h[j] - product / sum) / sum;
}

void NJ_REF(expert_route_bwd)(real *dlogits, const real *dweight, const real *logits,
                              const int32_t *chosen, const real *dprob, const int32_t *keep,
                              int32_t N, int32_t E, int32_t J, int32_t ld, int32_t rule,
                              int32_t renormalize, float scale)
{
    const int divided = renormalize && rule != NJ_ROUTE_TOP_SOFTMAX;
#pragma omp parallel for
    for (int64_t n = 0; n < N; n++) {
        const int32_t *its = chosen + n * J;
        real prob[NJ_EXPERTS_MAX] = {0}, t[NJ_CHOSEN_MAX], h[NJ_CHOSEN_MAX];
        real product = 0, balance = 0;
        real *out = dlogits + n * ld;
        const int balanced = dprob && (!keep || keep[n] >= 0);
        softmax(prob, logits + n * E, E);
        chosen_scores(t, logits + n * E, prob, its, J, rule);
        score_gradients(h, t, dweight + n * J, J, divided, (real)scale);
        for (int32_t j = 0; j < J; j++)
            product += t[j] * h[j];
        for (int32_t e = 0; e < E && balanced; e++)
            balance += prob[e] * dprob[e];
        for (int32_t e = E; e < ld; e++)
            out[e] = 0;
        for (int32_t e = 0; e < E; e++) {
            out[e] = balanced ? prob[e] * (dprob[e] - balance) : 0;
            out[e] -= rule == NJ_ROUTE_SOFTMAX ? prob[e] * product : 0;
        }
        for (int32_t j = 0; j < J; j++)
            if (its[j] >= 0)
                out[its[j]] += rule == NJ_ROUTE_SOFTMAX       ? h[j] * t[j]
                               : rule == NJ_ROUTE_TOP_SOFTMAX ? t[j] * (h[j] - product)
                                                              : h[j] * t[j] * (1 - t[j]);
    }
}
