/* SPDX-License-Identifier: Apache-2.0
 *
 * kd_row.h: a row of kd_head: its losses, and its gradient in place of the logits.
 */
#ifndef NOJIT_REF_KD_ROW_H
#define NOJIT_REF_KD_ROW_H

#include "softmax.h"

/* Parameters of the objective; cap: 0 if the logits of the student have none. */
struct how {
    real tau, ratio, beta, cap, scale;
};

/* Replace s by scale (softmax(s) - onehot(target)), through the cap. Return the cross-entropy. */
static inline real cross_entropy(real *s, int32_t target, int32_t V, const struct how *how)
{
    const struct softmax q = softmax_of(s, V, 1);
    const real loss = -log_prob(&q, s[target]);
    for (int32_t v = 0; v < V; v++)
        s[v] = how->scale * cap_slope(s[v], how->cap) *
               (exp(log_prob(&q, s[v])) - (real)(v == target));
    return loss;
}

/* One token: the logarithms of its probabilities p (teacher) and q (student), and of m = beta p + (1 - beta) q, with
 * which both are compared. */
struct token {
    real log_p, log_q, log_m;
};

static inline struct token token_of(const struct softmax *teacher, const struct softmax *student,
                                    real t, real s, real beta)
{
    struct token r = {.log_p = log_prob(teacher, t), .log_q = log_prob(student, s)};
    const real d = r.log_p - r.log_q;
    if (beta == 0)
        r.log_m = r.log_q;
    else if (beta == 1)
        r.log_m = r.log_p;
    else if (d > 0) /* relative to the larger of p and q, so that nothing overflows */
        r.log_m = r.log_p + log(beta + (1 - beta) * exp(-d));
    else
        r.log_m = r.log_q + log1p(beta * expm1(d));
    return r;
}

/* Return p (log p - log m), where 0 log 0 is 0. */
static inline double kl_term(real p, real log_p, real log_m)
{
    return p > 0 ? (double)(p * (log_p - log_m)) : 0;
}

/* Losses of a row. */
struct distilled {
    real ce, agree;
    double kd, entropy; /* sums over V */
};

/* Compute the losses of a row, and replace s by its gradient, times scale. */
static inline struct distilled distil(real *s, const real *t, int32_t target, int32_t V,
                                      const struct how *how)
{
    const real tau = how->tau, ratio = how->ratio, beta = how->beta;
    const struct softmax hard = softmax_of(s, V, 1), student = softmax_of(s, V, tau);
    const struct softmax teacher = softmax_of(t, V, tau);
    struct distilled r = {.ce = -log_prob(&hard, s[target]),
                          .agree = student.argmax == teacher.argmax};
    double from_p = 0, from_q = 0; /* KL(p || m), KL(q || m) */
    for (int32_t v = 0; v < V; v++) {
        const struct token x = token_of(&teacher, &student, t[v], s[v], beta);
        const real p = exp(x.log_p);
        from_p += kl_term(p, x.log_p, x.log_m);
        if (beta > 0)
            from_q += kl_term(exp(x.log_q), x.log_q, x.log_m);
        r.entropy -= kl_term(p, x.log_p, 0);
    }
    /* Weights of the two divergences. At the ends of beta one divergence is 0, and the other has weight 1. */
    const real weight_p = beta == 0 ? 1 : beta, weight_q = beta == 1 ? 1 : 1 - beta;
    r.kd = (double)weight_p * from_p + (double)weight_q * from_q;
    for (int32_t v = 0; v < V; v++) {
        const struct token x = token_of(&teacher, &student, t[v], s[v], beta);
        const real hot = (real)(v == target), q = exp(x.log_q);
        const real slope =
            beta == 0 ? q - exp(x.log_p) : weight_q * q * (x.log_q - x.log_m - (real)from_q);
        s[v] = how->scale * cap_slope(s[v], how->cap) *
               ((1 - ratio) * (exp(log_prob(&hard, s[v])) - hot) + ratio * tau * slope);
    }
    return r;
}

/* Compute a row of Vs columns, of which the last Vs - V are not tokens. If t is NULL there is no teacher; if target < 0
 * there is no loss. */
static inline struct distilled distil_row(real *s, const real *t, int32_t target, int32_t V,
                                          int32_t Vs, const struct how *how)
{
    struct distilled r = {0};
    int32_t used = V; /* columns that hold a gradient */
    if (target < 0)
        used = 0;
    else if (t)
        r = distil(s, t, target, V, how);
    else
        r.ce = cross_entropy(s, target, V, how);
    for (int32_t v = used; v < Vs; v++)
        s[v] = 0;
    return r;
}

#endif
