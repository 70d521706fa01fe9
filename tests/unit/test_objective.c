/* SPDX-License-Identifier: Apache-2.0
 *
 * test_objective.c: the double references of the objective and the update: losses and gradient of kd_head and tv_head
 * against the printed loss, AdamW and clipping against their formulas.
 */
#include <stdbool.h>

#include "gradients.h"

#include "base/step_state.h"

void nj_ref_kd_head_f64(double *s, double *kd, double *ce, double *entropy, double *agree,
                        const double *t, const int32_t *target, const double *state, int32_t M,
                        int32_t V, int32_t Vs, int32_t Vt, float tau, float ratio, float beta,
                        float cap);
void nj_ref_tv_head_f64(double *s, double *tv, double *ce, double *entropy, double *agree,
                        const double *t, const int32_t *target, const double *state, int32_t M,
                        int32_t V, int32_t Vs, int32_t Vt, float tau, float ratio, int32_t gradient,
                        float cap);
void nj_ref_kl_rows_f64(double *forward, double *reverse, double *entropy, double *counted,
                        const double *s, const double *t, const int32_t *target, int32_t M,
                        int32_t V, int32_t Vs, int32_t Vt, float tau);
void nj_ref_adamw_f64(double *p, double *w, double *m, double *v, double *g, const double *state,
                      int64_t n, int64_t n_decay, float beta1, float beta2, float eps,
                      float weight_decay);
void nj_ref_grad_sumsq_f64(double *part, const double *g, int64_t n, int32_t P);
void nj_ref_clip_scale_f64(double *state, const double *part, int32_t P, float max_norm,
                           float beta1, float beta2, int32_t growth);

/* ---- objective ------------------------------------------------------------------------------ */

enum { ROWS = 4, V = 21, VS = 24, VT = 32 };
static const int32_t TARGET[ROWS] = {5, -100, 20, 0};
static const double HEAD_STATE[NJ_STEP_SLOTS] = {
    [NJ_STEP_INV_VALID] = 0.125, [NJ_STEP_LOSS_SCALE] = 8};

struct head_args {
    double *s, *t;
    float tau, ratio, beta;
    bool tv; /* kd is the total variation distance */
    double kd[ROWS], ce[ROWS], entropy[ROWS], agree[ROWS];
};

/* Run the op; grad gets the gradient that replaces s. */
static void run_head(struct head_args *a, double *grad)
{
    memcpy(grad, a->s, ROWS * VS * sizeof(*grad));
    if (a->tv)
        nj_ref_tv_head_f64(grad, a->kd, a->ce, a->entropy, a->agree, a->t, TARGET, HEAD_STATE, ROWS,
                           V, VS, VT, a->tau, a->ratio, true, 0);
    else
        nj_ref_kd_head_f64(grad, a->kd, a->ce, a->entropy, a->agree, a->t, TARGET, HEAD_STATE, ROWS,
                           V, VS, VT, a->tau, a->ratio, a->beta, 0);
}

/* Return the printed loss, summed over rows (inv_valid times loss_scale is 1). */
static double head_loss(void *args)
{
    struct head_args *a = args;
    const double r = a->t ? (double)a->ratio : 0;
    double sum = 0;
    run_head(a, zeros(ROWS * VS));
    for (int m = 0; m < ROWS; m++)
        sum += (1 - r) * a->ce[m] + r * (double)a->tau * (double)a->tau * a->kd[m];
    return sum;
}

static const float cases[][2] = {{2, 0.5f}, {1, 1}, {3, 0}, {0.5f, 0.25f}}; /* tau, ratio */

/* Check that grad is the gradient of the printed loss, 0 for rows without one, and that a shift of all logits changes
 * nothing. */
static void check_head(struct head_args *a)
{
    double *grad = zeros(ROWS * VS);
    run_head(a, grad);
    check_gradient(head_loss, a, a->s, grad, ROWS * VS);
    for (int m = 0; m < ROWS; m++) {
        double sum = 0;
        for (int v = TARGET[m] < 0 ? 0 : V; v < VS; v++)
            assert_true(grad[m * VS + v] == 0);
        for (int v = 0; v < V; v++)
            sum += grad[m * VS + v];
        assert_close(sum, 0, 1e-14);
    }
}

static void head_gradient_is_the_derivative(void **state)
{
    (void)state;
    static const float betas[] = {0, 0.3f, 0.5f, 1};
    for (int k = 0; k < 20; k++) {
        struct head_args a = {.s = random_values(ROWS * VS),
                              .t = k < 16 ? random_values(ROWS * VT) : NULL,
                              .tau = cases[k % 4][0],
                              .ratio = cases[k % 4][1],
                              .beta = betas[k / 4 % 4]};
        check_head(&a);
    }
}

static void head_results_equal_the_formulas(void **state)
{
    (void)state;
    struct head_args a = {
        random_values(ROWS * VS), random_values(ROWS * VT), 2, 0.5f, 0, 0, {0}, {0}, {0}, {0}};
    run_head(&a, zeros(ROWS * VS));
    for (int m = 0; m < ROWS; m++) {
        double zs = 0, zt = 0, z1 = 0, kd = 0, entropy = 0;
        const double *s = a.s + m * VS, *t = a.t + m * VT;
        int top_s = 0, top_t = 0;
        for (int v = 0; v < V; v++) {
            zs += exp(s[v] / 2);
            zt += exp(t[v] / 2);
            z1 += exp(s[v]);
            top_s = s[v] > s[top_s] ? v : top_s;
            top_t = t[v] > t[top_t] ? v : top_t;
        }
        for (int v = 0; v < V; v++) {
            const double p = exp(t[v] / 2) / zt, q = exp(s[v] / 2) / zs;
            kd += p * log(p / q);
            entropy -= p * log(p);
        }
        const int valid = TARGET[m] >= 0;
        assert_close(a.kd[m], valid ? kd : 0, 1e-13);
        assert_close(a.entropy[m], valid ? entropy : 0, 1e-13);
        assert_close(a.ce[m], valid ? log(z1) - s[TARGET[m]] : 0, 1e-13);
        assert_close(a.agree[m], valid && top_s == top_t, 0);
        assert_true(a.kd[m] >= 0);
    }
}

static double sum_p_log_p_over_q(const double *p, const double *q)
{
    double sum = 0;
    for (int v = 0; v < V; v++)
        sum += p[v] * log(p[v] / q[v]);
    return sum;
}

static void softmax_at(double tau, const double *x, double *p)
{
    double z = 0;
    for (int v = 0; v < V; v++)
        z += exp(x[v] / tau);
    for (int v = 0; v < V; v++)
        p[v] = exp(x[v] / tau) / z;
}

static void head_divergence_follows_beta(void **state)
{
    (void)state;
    static const float betas[] = {0, 0.1f, 0.3f, 0.5f, 0.9f, 1};
    struct head_args a = {.s = random_values(ROWS * VS), .t = random_values(ROWS * VT), .tau = 2};
    double p[V], q[V], mix[V];
    for (int k = 0; k < 6 * ROWS; k++) {
        const int m = k % ROWS;
        if (TARGET[m] < 0)
            continue;
        const double b = (double)(a.beta = betas[k / ROWS]);
        run_head(&a, zeros(ROWS * VS));
        softmax_at(2, a.t + m * VT, p);
        softmax_at(2, a.s + m * VS, q);
        for (int v = 0; v < V; v++)
            mix[v] = b * p[v] + (1 - b) * q[v];
        double want = b * sum_p_log_p_over_q(p, mix) + (1 - b) * sum_p_log_p_over_q(q, mix);
        if (b == 0)
            want = sum_p_log_p_over_q(p, q);
        if (b == 1)
            want = sum_p_log_p_over_q(q, p);
        assert_close(a.kd[m], want, 1e-13);
        assert_true(a.kd[m] > 1e-3);
    }
}

/* The Jensen-Shannon divergence over beta (1 - beta) tends to the Kullback-Leibler divergences, and so do the
 * gradients. */
static void head_divergence_has_limits(void **state)
{
    (void)state;
    static const float betas[][2] = {{0x1p-20f, 0}, {1 - 0x1p-20f, 1}};
    struct head_args a = {.s = random_values(ROWS * VS), .t = random_values(ROWS * VT), .tau = 2};
    a.ratio = 1;
    for (int k = 0; k < 2; k++) {
        const double near = (double)betas[k][0], factor = near * (1 - near);
        struct head_args limit = a;
        double *grad = zeros(ROWS * VS), *want = zeros(ROWS * VS);
        a.beta = betas[k][0];
        limit.beta = betas[k][1];
        run_head(&a, grad);
        run_head(&limit, want);
        for (int m = 0; m < ROWS; m++)
            assert_close(a.kd[m] / factor, limit.kd[m], 1e-5);
        for (int i = 0; i < ROWS * VS; i++)
            assert_close(grad[i] / factor, want[i], 1e-5);
    }
}

/* Hot: tau^2 KL tends to beta (1 - beta) times half the variance of the differences of the logits, at every beta, and
 * its gradient to their deviations. Cold: tau KL tends to the distance by which the student's logit of the teacher's
 * top-1 token lies below its own. */
static void head_temperature_has_limits(void **state)
{
    (void)state;
    static const float betas[] = {0, 0.25f, 1};
    const float hot = 0x1p14f, cold = 0x1p-10f;
    struct head_args a = {.s = random_values(ROWS * VS), .t = random_values(ROWS * VT), .ratio = 1};
    for (int k = 0; k < 3 * ROWS; k++) {
        const int m = k % ROWS;
        const double *s = a.s + m * VS, *t = a.t + m * VT, b = (double)betas[k / ROWS];
        const double share = b > 0 && b < 1 ? b * (1 - b) : 1;
        double *grad = zeros(ROWS * VS), mean = 0, variance = 0;
        int top_s = 0, top_t = 0;
        if (TARGET[m] < 0)
            continue;
        for (int v = 0; v < V; v++) {
            mean += (s[v] - t[v]) / V;
            top_s = s[v] > s[top_s] ? v : top_s;
            top_t = t[v] > t[top_t] ? v : top_t;
        }
        for (int v = 0; v < V; v++)
            variance += pow(s[v] - t[v] - mean, 2) / V;
        a.beta = betas[k / ROWS];
        a.tau = hot;
        run_head(&a, grad);
        assert_close(a.kd[m] * (double)hot * (double)hot, share * variance / 2, 1e-3);
        for (int v = 0; v < V; v++)
            assert_close(grad[m * VS + v], share * (s[v] - t[v] - mean) / V, 1e-3);
        if (b > 0)
            continue; /* the others have other limits when cold */
        a.tau = cold;
        run_head(&a, grad);
        assert_close(a.kd[m] * (double)cold, s[top_s] - s[top_t], 1e-2);
    }
}

/* Logits are so far apart that one side's probabilities underflow to 0. */
static void head_survives_underflow(void **state)
{
    (void)state;
    static const float betas[] = {0, 0x1p-140f, 0.5f, 1 - 0x1p-24f, 1};
    for (int k = 0; k < 5; k++) {
        struct head_args a = {.s = zeros(ROWS * VS), .t = zeros(ROWS * VT), .tau = 1};
        double *grad = zeros(ROWS * VS);
        a.ratio = 0.5f;
        a.beta = betas[k];
        for (int m = 0; m < ROWS; m++) {
            a.s[m * VS + 1] = 2000;
            a.t[m * VT + 2] = 2000;
        }
        run_head(&a, grad);
        for (int m = 0; m < ROWS; m++)
            assert_true(isfinite(a.kd[m]) && a.kd[m] >= 0);
        for (int i = 0; i < ROWS * VS; i++)
            assert_true(isfinite(grad[i]));
        if (k == 2)
            assert_close(a.kd[0], log(2), 1e-13); /* nothing in common: the maximum */
    }
}

static void head_agrees_with_itself(void **state)
{
    (void)state;
    static const float betas[] = {0, 0.3f, 0.5f, 1};
    struct head_args a = {.s = random_values(ROWS * VS), .t = zeros(ROWS * VT), .tau = 2};
    a.ratio = 1;
    for (int m = 0; m < ROWS; m++)
        memcpy(a.t + m * VT, a.s + m * VS, V * sizeof(*a.s));
    for (int k = 0; k < 4; k++) {
        double *grad = zeros(ROWS * VS);
        a.beta = betas[k];
        run_head(&a, grad);
        for (int m = 0; m < ROWS; m++) {
            assert_true(a.kd[m] == 0);
            assert_true(a.agree[m] == (TARGET[m] >= 0));
        }
        for (int i = 0; i < ROWS * VS; i++)
            assert_true(grad[i] == 0);
    }
}

static void head_of_ratio_0_is_cross_entropy(void **state)
{
    (void)state;
    struct head_args alone = {.s = random_values(ROWS * VS), .tau = 1};
    struct head_args both = {.s = alone.s, .t = random_values(ROWS * VT), .tau = 3, .ratio = 0};
    double *want = zeros(ROWS * VS), *got = zeros(ROWS * VS);
    run_head(&alone, want);
    run_head(&both, got);
    assert_all_close(got, want, ROWS * VS, 1e-15);
    assert_all_close(both.ce, alone.ce, ROWS, 1e-15);
}

/* The further the student moves from the teacher along a line, the larger the divergence. */
static void head_divergence_grows(void **state)
{
    (void)state;
    static const float betas[] = {0, 0.5f, 1};
    struct head_args a = {.s = zeros(ROWS * VS), .t = random_values(ROWS * VT), .tau = 2};
    double *away = random_values(V), last[ROWS];
    for (int k = 0; k < 3; k++) {
        a.beta = betas[k];
        memset(last, 0, sizeof last);
        for (int step = 1; step <= 6; step++) {
            for (int i = 0; i < ROWS * V; i++)
                a.s[i / V * VS + i % V] = a.t[i / V * VT + i % V] + step * away[i % V];
            run_head(&a, zeros(ROWS * VS));
            for (int m = 0; m < ROWS; m++)
                assert_true(TARGET[m] < 0 ? a.kd[m] == 0 : a.kd[m] > last[m] + 1e-3);
            memcpy(last, a.kd, sizeof last);
        }
    }
}

static void head_breaks_ties_by_the_lowest_index(void **state)
{
    (void)state;
    struct head_args a = {.s = zeros(ROWS * VS), .t = zeros(ROWS * VT), .tau = 1, .ratio = 0.5f};
    a.s[3] = a.s[9] = 1; /* row 0: student 3, teacher 9 */
    a.t[9] = 1;
    a.t[3 * VT] = 0.5; /* row 3: all student logits are equal, so both choose 0 */
    run_head(&a, zeros(ROWS * VS));
    assert_true(a.agree[0] == 0 && a.agree[3] == 1);
}

/* ---- total variation distance ---------------------------------------------------------------- */

/* Check that no kink lies within a difference quotient: kinks are where p = q. */
static void assert_no_kink(const struct head_args *a)
{
    for (int m = 0; m < ROWS; m++) {
        double p[V], q[V];
        softmax_at((double)a->tau, a->t + m * VT, p);
        softmax_at((double)a->tau, a->s + m * VS, q);
        for (int v = 0; v < V; v++)
            assert_true(fabs(log(p[v] / q[v])) > 1e-3);
    }
}

static void distance_gradient_is_the_derivative(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct head_args a = {.s = random_values(ROWS * VS),
                              .t = random_values(ROWS * VT),
                              .tau = cases[k][0],
                              .ratio = cases[k][1],
                              .tv = true};
        assert_no_kink(&a);
        check_head(&a);
    }
}

/* The other results equal those of kd_head. */
static void distance_equals_the_formula(void **state)
{
    (void)state;
    struct head_args kl = {.s = random_values(ROWS * VS), .t = random_values(ROWS * VT), .tau = 2};
    struct head_args a = kl;
    a.tv = true;
    run_head(&kl, zeros(ROWS * VS));
    run_head(&a, zeros(ROWS * VS));
    for (int m = 0; m < ROWS; m++) {
        double p[V], q[V], half = 0, accepted = 0;
        softmax_at(2, a.t + m * VT, p);
        softmax_at(2, a.s + m * VS, q);
        for (int v = 0; v < V; v++) {
            half += fabs(p[v] - q[v]) / 2;
            accepted += fmin(p[v], q[v]);
        }
        assert_close(a.kd[m], TARGET[m] < 0 ? 0 : half, 1e-14);
        assert_close(half, 1 - accepted, 1e-14);
        /* Pinsker's inequality */
        assert_true(a.kd[m] <= sqrt(kl.kd[m] / 2));
    }
    assert_all_close(a.ce, kl.ce, ROWS, 1e-14);
    assert_all_close(a.entropy, kl.entropy, ROWS, 1e-14);
    assert_all_close(a.agree, kl.agree, ROWS, 0);
}

static void distance_from_itself_is_0(void **state)
{
    (void)state;
    struct head_args a = {
        .s = random_values(ROWS * VS), .t = zeros(ROWS * VT), .tau = 2, .ratio = 1, .tv = true};
    double *grad = zeros(ROWS * VS);
    for (int m = 0; m < ROWS; m++)
        memcpy(a.t + m * VT, a.s + m * VS, V * sizeof(*a.s));
    run_head(&a, grad);
    for (int m = 0; m < ROWS; m++)
        assert_true(a.kd[m] == 0 && a.agree[m] == (TARGET[m] >= 0));
    for (int i = 0; i < ROWS * VS; i++)
        assert_true(grad[i] == 0);
}

/* The distributions have nothing in common: the distance is 1, the maximum, and has no gradient. */
static void distance_is_at_most_1(void **state)
{
    (void)state;
    struct head_args a = {
        .s = zeros(ROWS * VS), .t = zeros(ROWS * VT), .tau = 1, .ratio = 1, .tv = true};
    double *grad = zeros(ROWS * VS);
    for (int m = 0; m < ROWS; m++) {
        a.s[m * VS + 1] = 2000;
        a.t[m * VT + 2] = 2000;
    }
    run_head(&a, grad);
    for (int m = 0; m < ROWS; m++)
        assert_true(a.kd[m] == (TARGET[m] >= 0));
    for (int i = 0; i < ROWS * VS; i++)
        assert_true(grad[i] == 0);
}

static void distance_alone_leaves_the_logits(void **state)
{
    (void)state;
    struct head_args a = {.s = random_values(ROWS * VS), .t = random_values(ROWS * VT), .tau = 1};
    double *s = copy(a.s, ROWS * VS), tv[ROWS];
    a.tv = true;
    run_head(&a, zeros(ROWS * VS));
    nj_ref_tv_head_f64(s, tv, a.ce, a.entropy, a.agree, a.t, TARGET, HEAD_STATE, ROWS, V, VS, VT, 1,
                       0, false, 0);
    assert_memory_equal(s, a.s, ROWS * VS * sizeof(*s));
    assert_memory_equal(tv, a.kd, sizeof tv);
}

/* ---- rows of answers ------------------------------------------------------------------------- */

/* The divergences equal those of the objective at both ends of beta. */
static void rows_of_answers_equal_the_formulas(void **state)
{
    (void)state;
    struct head_args a = {.s = random_values(ROWS * VS), .t = random_values(ROWS * VT), .tau = 2};
    struct head_args back = a;
    double forward[ROWS], reverse[ROWS], entropy[ROWS], counted[ROWS];
    back.beta = 1;
    run_head(&a, zeros(ROWS * VS));
    run_head(&back, zeros(ROWS * VS));
    nj_ref_kl_rows_f64(forward, reverse, entropy, counted, a.s, a.t, TARGET, ROWS, V, VS, VT, 2);
    for (int m = 0; m < ROWS; m++) {
        double p[V], q[V], want = 0;
        softmax_at(2, a.t + m * VT, p);
        softmax_at(2, a.s + m * VS, q);
        for (int v = 0; v < V; v++)
            want -= q[v] * log(q[v]);
        const bool valid = TARGET[m] >= 0;
        assert_close(forward[m], valid ? sum_p_log_p_over_q(p, q) : 0, 1e-13);
        assert_close(reverse[m], valid ? sum_p_log_p_over_q(q, p) : 0, 1e-13);
        assert_close(entropy[m], valid ? want : 0, 1e-13);
        assert_true(counted[m] == valid);
    }
    assert_all_close(forward, a.kd, ROWS, 1e-13);
    assert_all_close(reverse, back.kd, ROWS, 1e-13);
}

/* ---- update --------------------------------------------------------------------------------- */

static void adamw_equals_the_formula(void **state)
{
    (void)state;
    enum { n = 10, n_decay = 6 };
    const double st[NJ_STEP_SLOTS] = {[NJ_STEP_LR] = 0.01,
                                      [NJ_STEP_BIAS1] = 0.19,
                                      [NJ_STEP_BIAS2] = 0.75,
                                      [NJ_STEP_GRAD_SCALE] = 0.5};
    double *w = random_values(n), *m = random_values(n), *v = zeros(n), *g = random_values(n);
    double *p = zeros(n), *w0 = copy(w, n), *m0 = copy(m, n), *g0 = copy(g, n);
    nj_ref_adamw_f64(p, w, m, v, g, st, n, n_decay, 0.75f, 0.5f, 0.125f, 0.25f);
    for (int i = 0; i < n; i++) {
        const double h = g0[i] / 2, m1 = 0.75 * m0[i] + 0.25 * h, v1 = 0.5 * h * h;
        const double update = m1 / 0.19 / (sqrt(v1 / 0.75) + 0.125);
        const double want = w0[i] - 0.01 * update - (i < n_decay ? 0.01 * 0.25 * w0[i] : 0);
        assert_close(w[i], want, 1e-15);
        assert_close(m[i], m1, 1e-15);
        assert_close(v[i], v1, 1e-15);
        assert_true(p[i] == w[i] && g[i] == g0[i]);
    }
}

static void adamw_skips_steps_that_are_not_finite(void **state)
{
    (void)state;
    const double st[NJ_STEP_SLOTS] = {[NJ_STEP_LR] = 1, [NJ_STEP_SKIP] = 1};
    double w = 1, m = 2, v = 3, g = NAN, p = 4;
    nj_ref_adamw_f64(&p, &w, &m, &v, &g, st, 1, 1, 0.5f, 0.5f, 1, 1);
    assert_true(p == 4 && w == 1 && m == 2 && v == 3);
    nj_ref_adamw_f64(NULL, &w, &m, &v, &g, st, 1, 1, 0.5f, 0.5f, 1, 1);
    assert_true(w == 1);
}

static void clipping_limits_the_norm(void **state)
{
    (void)state;
    double st[NJ_STEP_SLOTS] = {[NJ_STEP_UPDATES] = 2, [NJ_STEP_LOSS_SCALE] = 4};
    double *g = random_values(100), part[7], norm = sqrt(dot(g, g, 100)) / 4;
    nj_ref_grad_sumsq_f64(part, g, 100, 7);
    nj_ref_clip_scale_f64(st, part, 7, 1, 0.5f, 0.25f, 0);
    assert_close(st[NJ_STEP_GRAD_NORM], norm, 1e-14);
    assert_close(st[NJ_STEP_GRAD_SCALE] * 4 * norm, 1, 1e-5); /* 1e-6 is added to the norm */
    assert_close(st[NJ_STEP_UPDATES], 3, 0);
    assert_close(st[NJ_STEP_BIAS1], 1 - 0.125, 1e-15);
    assert_close(st[NJ_STEP_BIAS2], 1 - 0.015625, 1e-15);
    nj_ref_clip_scale_f64(st, part, 7, 1000, 0.5f, 0.25f, 0);
    assert_close(st[NJ_STEP_GRAD_SCALE], 0.25, 1e-15);
    nj_ref_clip_scale_f64(st, part, 7, 0, 0.5f, 0.25f, 0);
    assert_close(st[NJ_STEP_GRAD_SCALE], 0.25, 1e-15);
    assert_true(st[NJ_STEP_SKIP] == 0 && st[NJ_STEP_LOSS_SCALE] == 4);
}

static void loss_scale_follows_the_gradient(void **state)
{
    (void)state;
    double st[NJ_STEP_SLOTS] = {[NJ_STEP_LOSS_SCALE] = 2};
    const double finite = 1, bad = INFINITY;
    nj_ref_clip_scale_f64(st, &finite, 1, 1, 0.5f, 0.5f, 2);
    assert_true(st[NJ_STEP_LOSS_SCALE] == 2 && st[NJ_STEP_GOOD_STEPS] == 1);
    nj_ref_clip_scale_f64(st, &finite, 1, 1, 0.5f, 0.5f, 2);
    assert_true(st[NJ_STEP_LOSS_SCALE] == 4 && st[NJ_STEP_GOOD_STEPS] == 0);
    for (int k = 0; k < 3; k++)
        nj_ref_clip_scale_f64(st, &bad, 1, 1, 0.5f, 0.5f, 2);
    assert_true(st[NJ_STEP_LOSS_SCALE] == 1 && st[NJ_STEP_SKIPPED] == 3);
    assert_true(st[NJ_STEP_SKIP] == 1 && st[NJ_STEP_UPDATES] == 2);
    st[NJ_STEP_LOSS_SCALE] = 65536;
    for (int k = 0; k < 2; k++)
        nj_ref_clip_scale_f64(st, &finite, 1, 1, 0.5f, 0.5f, 2);
    assert_true(st[NJ_STEP_LOSS_SCALE] == 65536 && st[NJ_STEP_SKIP] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(head_gradient_is_the_derivative, reset),
        cmocka_unit_test_setup(head_results_equal_the_formulas, reset),
        cmocka_unit_test_setup(head_divergence_follows_beta, reset),
        cmocka_unit_test_setup(head_divergence_has_limits, reset),
        cmocka_unit_test_setup(head_temperature_has_limits, reset),
        cmocka_unit_test_setup(head_survives_underflow, reset),
        cmocka_unit_test_setup(head_agrees_with_itself, reset),
        cmocka_unit_test_setup(head_of_ratio_0_is_cross_entropy, reset),
        cmocka_unit_test_setup(head_divergence_grows, reset),
        cmocka_unit_test_setup(head_breaks_ties_by_the_lowest_index, reset),
        cmocka_unit_test_setup(distance_gradient_is_the_derivative, reset),
        cmocka_unit_test_setup(distance_equals_the_formula, reset),
        cmocka_unit_test_setup(distance_from_itself_is_0, reset),
        cmocka_unit_test_setup(distance_is_at_most_1, reset),
        cmocka_unit_test_setup(distance_alone_leaves_the_logits, reset),
        cmocka_unit_test_setup(rows_of_answers_equal_the_formulas, reset),
        cmocka_unit_test_setup(adamw_equals_the_formula, reset),
        cmocka_unit_test_setup(adamw_skips_steps_that_are_not_finite, reset),
        cmocka_unit_test_setup(clipping_limits_the_norm, reset),
        cmocka_unit_test_setup(loss_scale_follows_the_gradient, reset),
    };
    return cmocka_run_group_tests_name("objective", tests, NULL, NULL);
}
