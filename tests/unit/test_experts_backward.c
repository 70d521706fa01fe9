/* SPDX-License-Identifier: Apache-2.0
 *
 * test_experts_backward.c: gradients of a mixture of experts, as the double references compute them, against central
 * differences of what it computes; and the loss that balances its experts against its formula.
 */
#include "gradients.h"

#include "base/route.h"
#include "base/step_state.h"

void nj_ref_expert_route_f64(int32_t *chosen, double *weight, const double *logits,
                             const double *bias, int32_t N, int32_t E, int32_t J, int32_t G,
                             int32_t groups_used, int32_t rule, int32_t renormalize, float scale);
void nj_ref_expert_sort_f64(int32_t *first, int32_t *row, int32_t *place, const int32_t *chosen,
                            int32_t N, int32_t E, int32_t J);
void nj_ref_expert_gemm_f64(double *y, const double *x, const int32_t *row, const double *w,
                            const double *bias, const int32_t *first, int32_t P, int32_t R,
                            int32_t E, int32_t M, int32_t C, int32_t ld, int32_t G);
void nj_ref_expert_combine_f64(double *y, const double *d, const double *weight,
                               const int32_t *place, const double *addend, int32_t N, int32_t J,
                               int32_t C, int32_t P);
void nj_ref_swiglu_fwd_f64(double *act, const double *gu, int32_t N, int32_t I);
void nj_ref_expert_glu_clamped_f64(double *act, const double *gu, int32_t N, int32_t I, float limit,
                                   float alpha);
void nj_ref_expert_gemm_dx_f64(double *dx, const double *dy, const int32_t *row, const double *w,
                               const int32_t *first, int32_t P, int32_t R, int32_t E, int32_t M,
                               int32_t C, int32_t Q, int32_t G);
void nj_ref_expert_gemm_dw_f64(double *dw, const double *dy, const int32_t *dy_row, const double *x,
                               const int32_t *x_row, const int32_t *first, int32_t P, int32_t Y,
                               int32_t X, int32_t E, int32_t M, int32_t C, int32_t Q, int32_t G,
                               int32_t add);
void nj_ref_expert_gemm_dx_tma_f64(double *dx, const double *dy, const int32_t *row,
                                   const double *w, const int32_t *first, int32_t P, int32_t R,
                                   int32_t E, int32_t M, int32_t C, int32_t Q, int32_t G);
void nj_ref_expert_gemm_dw_wgmma_f64(double *dw, const double *dy, const int32_t *dy_row,
                                     const double *x, const int32_t *x_row, const int32_t *first,
                                     int32_t P, int32_t Y, int32_t X, int32_t E, int32_t M,
                                     int32_t C, int32_t Q, int32_t G, int32_t add);
void nj_ref_expert_glu_bwd_f64(double *dgu, double *act, double *dweight, const double *d,
                               const double *gu, const double *weight, const int32_t *place,
                               const int32_t *chosen, const double *dy, const double *bias,
                               int32_t N, int32_t E, int32_t J, int32_t I, int32_t C, float limit,
                               float alpha);
void nj_ref_expert_route_bwd_f64(double *dlogits, const double *dweight, const double *logits,
                                 const int32_t *chosen, const double *dprob, const int32_t *keep,
                                 int32_t N, int32_t E, int32_t J, int32_t ld, int32_t rule,
                                 int32_t renormalize, float scale);
void nj_ref_expert_shares_f64(double *part, const double *logits, const int32_t *chosen,
                              const int32_t *keep, int32_t N, int32_t E, int32_t J, int32_t P);
void nj_ref_expert_balance_f64(double *dprob, double *loss, const double *sums, const double *state,
                               int32_t E, int32_t J, float factor);

enum { N = 9, E = 12, J = 4, P = N * J, C = 16, M = 8, I = 8 };

/* Pairs of rows and experts, sorted. */
struct pairs {
    int32_t chosen[P], first[E + 1], row[P], place[P];
};

static struct pairs sorted(struct pairs of)
{
    nj_ref_expert_sort_f64(of.first, of.row, of.place, of.chosen, N, E, J);
    return of;
}

/* Nobody chose expert 3, and one pair has no expert. */
static struct pairs some_pairs(void)
{
    struct pairs of;
    for (int p = 0; p < P; p++)
        of.chosen[p] = (p * 5 + p / J) % E == 3 ? 4 : (p * 5 + p / J) % E;
    of.chosen[17] = -1;
    return sorted(of);
}

/* All rows chose the same experts, the last ones. */
static struct pairs same_pairs(void)
{
    struct pairs of;
    for (int p = 0; p < P; p++)
        of.chosen[p] = E - 1 - p % J;
    return sorted(of);
}

/* ---- products ---- */

/* Two products of the same rows, as gate and up are. */
struct products {
    const struct pairs *of;
    double *x, *w; /* [N, C], [2, E, M, C] */
    const double *d;
};

static double loss_of_products(void *args)
{
    const struct products *s = args;
    double *y = zeros(P * 2 * M);
    for (int q = 0; q < 2; q++)
        nj_ref_expert_gemm_f64(y + q * M, s->x, s->of->row, s->w + q * E * M * C, NULL,
                               s->of->first, P, N, E, M, C, 2 * M, 1);
    return dot(y, s->d, P * 2 * M);
}

static void products_of_experts_have_their_gradients(void **state)
{
    (void)state;
    for (int same = 0; same < 2; same++) {
        const struct pairs of = same ? same_pairs() : some_pairs();
        struct products s = {&of, random_values(N * C), random_values(2 * E * M * C),
                             random_values(P * 2 * M)};
        double *by_place = zeros(P * C), *dx = zeros(N * C), *dw = random_values(2 * E * M * C);
        nj_ref_expert_gemm_dx_f64(by_place, s.d, NULL, s.w, of.first, P, P, E, M, C, 2, 1);
        nj_ref_expert_combine_f64(dx, by_place, NULL, of.place, NULL, N, J, C, P);
        check_gradient(loss_of_products, &s, s.x, dx, N * C);
        nj_ref_expert_gemm_dw_f64(dw, s.d, NULL, s.x, of.row, of.first, P, P, N, E, M, C, 2, 1, 0);
        check_gradient(loss_of_products, &s, s.w, dw, 2 * E * M * C);
    }
}

static void experts_without_rows_have_gradients_of_0(void **state)
{
    (void)state;
    const struct pairs of = some_pairs();
    const double *dy = random_values(N * M), *x = random_values(P * C);
    double *dw = random_values(E * M * C);
    nj_ref_expert_gemm_dw_f64(dw, dy, of.row, x, NULL, of.first, P, N, P, E, M, C, 1, 1, 0);
    for (int i = 0; i < M * C; i++)
        assert_true(dw[3 * M * C + i] == 0);
    assert_true(dw[4 * M * C] != 0);
}

static void gradients_of_matrices_are_added(void **state)
{
    (void)state;
    const struct pairs of = some_pairs();
    const double *dy = random_values(N * M), *x = random_values(P * C);
    double *before = random_values(E * M * C), *dw = copy(before, E * M * C), *alone;
    alone = zeros(E * M * C);
    nj_ref_expert_gemm_dw_f64(alone, dy, of.row, x, NULL, of.first, P, N, P, E, M, C, 1, 1, 0);
    nj_ref_expert_gemm_dw_f64(dw, dy, of.row, x, NULL, of.first, P, N, P, E, M, C, 1, 1, 1);
    for (int i = 0; i < E * M * C; i++)
        assert_close(dw[i], before[i] + alone[i], 1e-13);
}

static void gradients_of_sm_90a_equal_the_others(void **state)
{
    (void)state;
    const struct pairs of = some_pairs();
    const double *dy = random_values(P * 2 * M), *x = random_values(P * C);
    const double *w = random_values(2 * E * M * C);
    for (int named = 0; named < 2; named++) {
        const int32_t *row = named ? of.row : NULL, *other = named ? NULL : of.row;
        double *want = random_values(2 * E * M * C), *got = copy(want, 2 * E * M * C);
        double *dx = zeros(P * C), *want_dx = zeros(P * C);
        nj_ref_expert_gemm_dx_f64(want_dx, dy, row, w, of.first, P, P, E, M, C, 2, 1);
        nj_ref_expert_gemm_dx_tma_f64(dx, dy, row, w, of.first, P, P, E, M, C, 2, 1);
        assert_all_close(dx, want_dx, P * C, 1e-13);
        nj_ref_expert_gemm_dw_f64(want, dy, row, x, other, of.first, P, P, P, E, M, C, 2, 1, named);
        nj_ref_expert_gemm_dw_wgmma_f64(got, dy, row, x, other, of.first, P, P, P, E, M, C, 2, 1,
                                        named);
        assert_all_close(got, want, 2 * E * M * C, 1e-13);
    }
}

/* ---- activations ---- */

/* Outputs of experts, with biases and weights, of the activation of gate and up. */
struct outputs {
    const struct pairs *of;
    double *gu, *weight, *w, *bias; /* [P, 2 I], [N, J], [E, C, I], [E, C] */
    const double *dy;               /* [N, C] */
    float limit, alpha;
};

static double loss_of_outputs(void *args)
{
    const struct outputs *s = args;
    double *act = zeros(P * I), *out = zeros(P * C), *y = zeros(N * C);
    if (s->limit > 0)
        nj_ref_expert_glu_clamped_f64(act, s->gu, P, I, s->limit, s->alpha);
    else
        nj_ref_swiglu_fwd_f64(act, s->gu, P, I);
    nj_ref_expert_gemm_f64(out, act, NULL, s->w, s->bias, s->of->first, P, P, E, C, I, C, 1);
    nj_ref_expert_combine_f64(y, out, s->weight, s->of->place, NULL, N, J, C, P);
    return dot(y, s->dy, N * C);
}

static void activations_of_experts_have_their_gradients(void **state)
{
    (void)state;
    const struct pairs of = some_pairs();
    for (int bounded = 0; bounded < 2; bounded++) {
        struct outputs s = {.of = &of,
                            .gu = random_values(P * 2 * I),
                            .weight = random_values(P),
                            .w = random_values(E * C * I),
                            .bias = bounded ? random_values(E * C) : NULL,
                            .dy = random_values(N * C),
                            .limit = bounded ? 0.75f : 0,
                            .alpha = bounded ? 1.7f : 0};
        double *d = zeros(P * I), *dgu, *act, *dweight = zeros(P), *dw = zeros(E * C * I);
        dgu = copy(s.gu, P * 2 * I);
        nj_ref_expert_gemm_dx_f64(d, s.dy, of.row, s.w, of.first, P, N, E, C, I, 1, 1);
        act = d;
        memset(&dgu[of.first[E] * 2 * I], 0, (size_t)(P - of.first[E]) * 2 * I * sizeof *dgu);
        nj_ref_expert_glu_bwd_f64(dgu, act, dweight, d, s.gu, s.weight, of.place, of.chosen,
                                  bounded ? s.dy : NULL, s.bias, N, E, J, I, C, s.limit, s.alpha);
        check_gradient(loss_of_outputs, &s, s.gu, dgu, P * 2 * I);
        check_gradient(loss_of_outputs, &s, s.weight, dweight, P);
        nj_ref_expert_gemm_dw_f64(dw, s.dy, of.row, act, NULL, of.first, P, N, P, E, C, I, 1, 1, 0);
        check_gradient(loss_of_outputs, &s, s.w, dw, E * C * I);
    }
}

/* ---- routes ---- */

struct route {
    double *logits;
    const double *dweight;
    int32_t rule, renormalize;
    float scale;
};

/* The experts that the logits choose do not change by as little as logits do here. */
static double loss_of_route(void *args)
{
    const struct route *s = args;
    int32_t chosen[P];
    double *weight = zeros(P);
    nj_ref_expert_route_f64(chosen, weight, s->logits, NULL, N, E, J, 1, 1, s->rule, s->renormalize,
                            s->scale);
    return dot(weight, s->dweight, P);
}

static void routes_have_their_gradients(void **state)
{
    (void)state;
    for (int32_t variant = 0; variant < 6; variant++) {
        struct route s = {random_values(N * E), random_values(P), variant / 2, variant % 2, 1.5f};
        int32_t chosen[P];
        double *weight = zeros(P), *dlogits = zeros(N * E);
        nj_ref_expert_route_f64(chosen, weight, s.logits, NULL, N, E, J, 1, 1, s.rule,
                                s.renormalize, s.scale);
        nj_ref_expert_route_bwd_f64(dlogits, s.dweight, s.logits, chosen, NULL, NULL, N, E, J, E,
                                    s.rule, s.renormalize, s.scale);
        check_gradient(loss_of_route, &s, s.logits, dlogits, N * E);
    }
}

/* ---- balance ---- */

enum { LAYERS = 2, PARTS = 4 };

/* Logits and experts of all layers; every third row is padding. */
struct balance {
    double *logits; /* [LAYERS, N, E] */
    int32_t chosen[LAYERS * P], keep[N];
};

static struct balance some_balance(void)
{
    struct balance s = {.logits = random_values(LAYERS * N * E)};
    for (int n = 0; n < N; n++)
        s.keep[n] = n % 3 == 2 ? -1 : n;
    nj_ref_expert_route_f64(s.chosen, zeros(LAYERS * P), s.logits, NULL, LAYERS * N, E, J, 1, 1, 0,
                            0, 1);
    return s;
}

/* Compute the loss, and the gradient of each probability, as the kernels do. */
static double balance(const struct balance *s, float factor, double *dprob)
{
    const double step[NJ_STEP_SLOTS] = {[NJ_STEP_LOSS_SCALE] = 8};
    double *part = zeros(PARTS * 2 * E), *sums = zeros(2 * E), loss = 0.5;
    for (int l = 0; l < LAYERS; l++) {
        nj_ref_expert_shares_f64(part, s->logits + l * N * E, s->chosen + l * P, s->keep, N, E, J,
                                 PARTS);
        for (int i = 0; i < PARTS * 2 * E; i++)
            sums[i % (2 * E)] += part[i];
    }
    nj_ref_expert_balance_f64(dprob, &loss, sums, step, E, J, factor);
    return loss - 0.5;
}

/* Return the loss of load_balancing_loss_func of transformers: means over the rows of all layers but padding. */
static double formula(const struct balance *s)
{
    double f[E] = {0}, p[E] = {0}, loss = 0, rows = 0;
    for (int n = 0; n < LAYERS * N; n++) {
        const double *row = s->logits + n * E;
        double sum = 0;
        if (s->keep[n % N] < 0)
            continue;
        rows++;
        for (int e = 0; e < E; e++)
            sum += exp(row[e]);
        for (int e = 0; e < E; e++)
            p[e] += exp(row[e]) / sum;
        for (int j = 0; j < J; j++)
            f[s->chosen[n * J + j]]++;
    }
    for (int e = 0; e < E; e++)
        loss += E * (f[e] / rows) * (p[e] / rows);
    return loss;
}

static void balance_equals_its_formula(void **state)
{
    (void)state;
    struct balance s = some_balance();
    double *dprob = zeros(E);
    assert_close(balance(&s, 1, dprob), formula(&s), 1e-13);
    for (int n = 0; n < N; n++)
        s.keep[n] = -1;
    assert_true(balance(&s, 1, dprob) == 0);
    for (int e = 0; e < E; e++)
        assert_true(dprob[e] == 0);
}

static double loss_of_balance(void *args)
{
    return formula(args);
}

static void balance_has_its_gradient(void **state)
{
    (void)state;
    struct balance s = some_balance();
    double *dprob = zeros(E), *none = zeros(P), *dlogits = zeros(LAYERS * N * E);
    balance(&s, 0.125f, dprob); /* the loss scale is 8 */
    for (int l = 0; l < LAYERS; l++)
        nj_ref_expert_route_bwd_f64(dlogits + l * N * E, none, s.logits + l * N * E,
                                    s.chosen + l * P, dprob, s.keep, N, E, J, E, 0, 1, 1);
    check_gradient(loss_of_balance, &s, s.logits, dlogits, LAYERS * N * E);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(products_of_experts_have_their_gradients, reset),
        cmocka_unit_test_setup(experts_without_rows_have_gradients_of_0, reset),
        cmocka_unit_test_setup(gradients_of_matrices_are_added, reset),
        cmocka_unit_test_setup(gradients_of_sm_90a_equal_the_others, reset),
        cmocka_unit_test_setup(activations_of_experts_have_their_gradients, reset),
        cmocka_unit_test_setup(routes_have_their_gradients, reset),
        cmocka_unit_test_setup(balance_equals_its_formula, reset),
        cmocka_unit_test_setup(balance_has_its_gradient, reset),
    };
    return cmocka_run_group_tests_name("experts_backward", tests, NULL, NULL);
}
