/* SPDX-License-Identifier: Apache-2.0 */
#include "softmax.h"

/* The parts of a row's losses and of its gradient. */
struct row {
    struct softmax hard, student, teacher;
    double tv, entropy;
    real mean; /* sum q h, h = -1 where p > q, else 0 */
};

static struct row row_of(const real *s, const real *t, int32_t V, real tau)
{
    struct row r = {.hard = softmax_of(s, V, 1),
                    .student = softmax_of(s, V, tau),
                    .teacher = softmax_of(t, V, tau)};
    /* the student's total probability of the tokens to which the teacher gives more */
    double behind = 0;
    for (int32_t v = 0; v < V; v++) {
        const real log_p = log_prob(&r.teacher, t[v]), p = exp(log_p);
        const real q = exp(log_prob(&r.student, s[v]));
        if (p > q) {
            r.tv += (double)(p - q);
            behind += (double)q;
        }
        r.entropy -= p > 0 ? (double)(p * log_p) : 0; /* 0 log 0 is 0 */
    }
    r.mean = (real)-behind;
    return r;
}

/* Replace s by its gradient, times scale. */
static void make_gradient(const struct row *r, real *s, const real *t, int32_t target, int32_t V,
                          real tau, real ratio, real cap, real scale)
{
    for (int32_t v = 0; v < V; v++) {
        const real p = exp(log_prob(&r->teacher, t[v])), q = exp(log_prob(&r->student, s[v]));
        const real h = p > q ? -1 : 0, hot = (real)(v == target);
        const real through = scale * cap_slope(s[v], cap);
        s[v] = through * ((1 - ratio) * (exp(log_prob(&r->hard, s[v])) - hot) +
                          ratio * tau * q * (h - r->mean));
    }
}

void NJ_REF(tv_head)(real *s, real *tv, real *ce, real *entropy, real *agree, const real *t,
                     const int32_t *target, const real *state, int32_t M, int32_t V, int32_t Vs,
                     int32_t Vt, float tau, float ratio, int32_t gradient, float cap)
{
    const real scale = state[NJ_STEP_INV_VALID] * state[NJ_STEP_LOSS_SCALE];
#pragma omp parallel for
    for (int32_t m = 0; m < M; m++) {
        real *row = s + (int64_t)m * Vs;
        const real *teacher = t + (int64_t)m * Vt;
        const int32_t used = target[m] < 0 ? 0 : V; /* columns that hold a gradient */
        tv[m] = ce[m] = entropy[m] = agree[m] = 0;
        if (used > 0) {
            const struct row r = row_of(row, teacher, V, (real)tau);
            tv[m] = (real)r.tv;
            ce[m] = -log_prob(&r.hard, row[target[m]]);
            entropy[m] = (real)r.entropy;
            agree[m] = r.student.argmax == r.teacher.argmax;
            if (gradient)
                make_gradient(&r, row, teacher, target[m], V, (real)tau, (real)ratio, (real)cap,
                              scale);
        }
        for (int32_t v = used; gradient && v < Vs; v++)
            row[v] = 0;
    }
}
