/* SPDX-License-Identifier: Apache-2.0
 *
 * test_softcap.c: the double references of bounded logits: the bound equals its formula, and the gradient that the
 * heads write in place of bounded logits is the derivative of the loss by the logits before the bound.
 */
#include <stdbool.h>

#include "gradients.h"

#include "base/step_state.h"

void nj_ref_softcap_f64(double *y, int32_t M, int32_t V, int32_t Vs, float cap);
void nj_ref_kd_head_f64(double *s, double *kd, double *ce, double *entropy, double *agree,
                        const double *t, const int32_t *target, const double *state, int32_t M,
                        int32_t V, int32_t Vs, int32_t Vt, float tau, float ratio, float beta,
                        float cap);
void nj_ref_tv_head_f64(double *s, double *tv, double *ce, double *entropy, double *agree,
                        const double *t, const int32_t *target, const double *state, int32_t M,
                        int32_t V, int32_t Vs, int32_t Vt, float tau, float ratio, int32_t gradient,
                        float cap);

enum { ROWS = 4, V = 21, VS = 24 };
static const int32_t TARGET[ROWS] = {5, -100, 20, 0};
static const double STATE[NJ_STEP_SLOTS] = {[NJ_STEP_INV_VALID] = 0.125, [NJ_STEP_LOSS_SCALE] = 8};

static void logits_are_bounded_by_the_cap(void **state)
{
    (void)state;
    static const float caps[] = {1.5f, 30, 4096};
    for (int k = 0; k < 3; k++) {
        const double cap = (double)caps[k];
        double *x = random_values(ROWS * VS);
        for (int i = 0; i < ROWS * VS; i++)
            x[i] *= i % 3 ? 1 : 100;
        double *z = copy(x, ROWS * VS);
        nj_ref_softcap_f64(z, ROWS, V, VS, caps[k]);
        for (int i = 0; i < ROWS * VS; i++) {
            /* tanh(u) = 1 - 2 / (e^2u + 1) */
            const double want = cap * (1 - 2 / (exp(2 * x[i] / cap) + 1));
            assert_close(z[i], i % VS < V ? want : x[i], 1e-12);
            assert_true(i % VS >= V || fabs(z[i]) <= cap);
        }
    }
}

/* A head behind the bound. */
struct capped_args {
    double *y, *t;
    float tau, ratio, beta, cap;
    bool tv;
};

/* Compute the gradient by the logits before the bound; return the loss, summed over rows. */
static double run_head(const struct capped_args *a, double *grad)
{
    double kd[ROWS], ce[ROWS], entropy[ROWS], agree[ROWS], sum = 0;
    const double r = a->t ? (double)a->ratio : 0, tau = (double)a->tau;
    memcpy(grad, a->y, ROWS * VS * sizeof *grad);
    nj_ref_softcap_f64(grad, ROWS, V, VS, a->cap);
    if (a->tv)
        nj_ref_tv_head_f64(grad, kd, ce, entropy, agree, a->t, TARGET, STATE, ROWS, V, VS, VS,
                           a->tau, a->ratio, true, a->cap);
    else
        nj_ref_kd_head_f64(grad, kd, ce, entropy, agree, a->t, TARGET, STATE, ROWS, V, VS, VS,
                           a->tau, a->ratio, a->beta, a->cap);
    for (int m = 0; m < ROWS; m++)
        sum += (1 - r) * ce[m] + r * tau * tau * kd[m];
    return sum;
}

static double capped_loss(void *args)
{
    return run_head(args, zeros(ROWS * VS));
}

/* Check the gradient of a head; ratio 1 has no cross-entropy, ratio 0 no divergence. */
static void check_head(struct capped_args a, bool with_teacher)
{
    static const float ratios[] = {0.5f, 1, 0};
    static const float caps[] = {2, 0.75f, 30};
    for (int k = 0; k < 3; k++) {
        double *grad = zeros(ROWS * VS);
        a.y = random_values(ROWS * VS);
        a.t = with_teacher ? random_values(ROWS * VS) : NULL;
        a.ratio = ratios[k];
        a.cap = caps[k];
        run_head(&a, grad);
        check_gradient(capped_loss, &a, a.y, grad, ROWS * VS);
    }
}

static void head_gradient_passes_through_the_cap(void **state)
{
    (void)state;
    static const float betas[] = {0, 0.3f, 1};
    for (int k = 0; k < 3; k++)
        check_head((struct capped_args){.tau = 2, .beta = betas[k]}, true);
    check_head((struct capped_args){.tau = 1}, false);
}

static void distance_gradient_passes_through_the_cap(void **state)
{
    (void)state;
    check_head((struct capped_args){.tau = 2, .tv = true}, true);
}

/* A logit that rounding raised above the bound, and one that equals it, have no gradient. */
static void logits_beyond_the_cap_have_no_gradient(void **state)
{
    (void)state;
    double *s = random_values(ROWS * VS), kd[ROWS], ce[ROWS], entropy[ROWS], agree[ROWS];
    for (int m = 0; m < ROWS; m++) {
        s[m * VS + 1] = 4;
        s[m * VS + 2] = -4.01;
    }
    nj_ref_kd_head_f64(s, kd, ce, entropy, agree, NULL, TARGET, STATE, ROWS, V, VS, VS, 1, 0, 0, 4);
    for (int m = 0; m < ROWS; m++) {
        assert_true(s[m * VS + 1] == 0 && s[m * VS + 2] == 0);
        assert_true((s[m * VS + 3] > 0) == (TARGET[m] >= 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(logits_are_bounded_by_the_cap, reset),
        cmocka_unit_test_setup(head_gradient_passes_through_the_cap, reset),
        cmocka_unit_test_setup(distance_gradient_passes_through_the_cap, reset),
        cmocka_unit_test_setup(logits_beyond_the_cap_have_no_gradient, reset),
    };
    return cmocka_run_group_tests_name("softcap", tests, NULL, NULL);
}
