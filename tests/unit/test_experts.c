/* SPDX-License-Identifier: Apache-2.0
 *
 * test_experts.c: the double references of a mixture of experts: routes, the order of pairs, products by expert, and
 * their sums equal formulas that are written in another way.
 */
#include "gradients.h"

#include "base/float16.h"
#include "base/route.h"
#include "base/tensor_type.h"

#include <stdbool.h>

void nj_ref_expert_route_f64(int32_t *chosen, double *weight, const double *logits,
                             const double *bias, int32_t N, int32_t E, int32_t J, int32_t G,
                             int32_t groups_used, int32_t rule, int32_t renormalize, float scale,
                             float eps);
void nj_ref_expert_route_f32(int32_t *chosen, float *weight, const float *logits, const float *bias,
                             int32_t N, int32_t E, int32_t J, int32_t G, int32_t groups_used,
                             int32_t rule, int32_t renormalize, float scale, float eps);
void nj_ref_expert_sort_f64(int32_t *first, int32_t *row, int32_t *place, const int32_t *chosen,
                            int32_t N, int32_t E, int32_t J);
void nj_ref_expert_gemm_f64(double *y, const double *x, const int32_t *row, const double *w,
                            const double *bias, const int32_t *first, int32_t P, int32_t R,
                            int32_t E, int32_t M, int32_t C, int32_t ld, int32_t G);
void nj_ref_expert_combine_f64(double *y, const double *d, const double *weight,
                               const int32_t *place, const double *addend, int32_t N, int32_t J,
                               int32_t C, int32_t P);
void nj_ref_expert_gemm_tma_f64(double *y, const double *x, const int32_t *row, const double *w,
                                const double *bias, const int32_t *first, int32_t P, int32_t R,
                                int32_t E, int32_t M, int32_t C, int32_t ld, int32_t G);
void nj_ref_expert_gemm_swiglu_f64(double *act, double *gu, const double *x, const int32_t *row,
                                   const double *w, const int32_t *first, int32_t P, int32_t R,
                                   int32_t E, int32_t I, int32_t C, int32_t G);
void nj_ref_swiglu_fwd_f64(double *act, const double *gu, int32_t N, int32_t I);
void nj_ref_expert_glu_clamped_f64(double *act, const double *gu, int32_t N, int32_t I, float limit,
                                   float alpha);
void nj_ref_expert_gemv_swiglu_f64(double *act, const double *x, const double *w,
                                   const double *bias, const int32_t *chosen, int32_t N, int32_t J,
                                   int32_t E, int32_t I, int32_t C, float limit, float alpha);
void nj_ref_expert_gemv_down_f64(double *y, const double *act, const double *w, const double *bias,
                                 const int32_t *chosen, const double *weight, int32_t N, int32_t J,
                                 int32_t E, int32_t I, int32_t C);
void nj_ref_dequantize_f64(int TYPE, double *dst, const int32_t *data, const int32_t *index,
                           int32_t M, int32_t R, int32_t C);
void nj_ref_expert_gemv_swiglu_blocks_f64(int TYPE, double *act, const double *x,
                                          const int32_t *gate, const int32_t *up,
                                          const double *bias, const int32_t *chosen, int32_t N,
                                          int32_t J, int32_t E, int32_t I, int32_t C, float limit,
                                          float alpha);
void nj_ref_expert_gemv_down_blocks_f64(int TYPE, double *y, const double *act, const int32_t *w,
                                        const double *bias, const int32_t *chosen,
                                        const double *weight, int32_t N, int32_t J, int32_t E,
                                        int32_t I, int32_t C);

#define TINY 1e-20f
enum { N = 9, E = 12, J = 4, P = N * J, C = 16, M = 8, LD = 24 };

/* ---- routes ---- */

struct route {
    int32_t G, groups_used, rule, renormalize;
    float scale;
    const double *bias;
    float eps;
};

static void route(const struct route *r, const double *logits, int32_t rows, int32_t *chosen,
                  double *weight)
{
    nj_ref_expert_route_f64(chosen, weight, logits, r->bias, rows, E, J, r->G, r->groups_used,
                            r->rule, r->renormalize, r->scale, r->eps);
}

/* Return the share of an expert in the sum of the exponentials of those that `among` marks. */
static double share(const double *logits, int32_t e, const char *among)
{
    double sum = 0;
    for (int k = 0; k < E; k++)
        sum += among[k] ? exp(logits[k] - logits[e]) : 0;
    return 1 / sum;
}

static void routes_equal_their_formulas(void **state)
{
    (void)state;
    const double *logits = random_values(N * E);
    for (int32_t variant = 0; variant < 6; variant++) {
        const struct route r = {1, 1, variant / 2, variant % 2, 1.5f, NULL, TINY};
        int32_t chosen[P];
        double *weight = zeros(P);
        route(&r, logits, N, chosen, weight);
        for (int n = 0; n < N; n++) {
            const double *row = logits + n * E;
            char all[E], ours[E] = {0};
            double want[J], sum = 0;
            memset(all, 1, sizeof all);
            for (int j = 0; j < J; j++)
                ours[chosen[n * J + j]] = 1;
            for (int j = 0; j < J; j++) {
                const int32_t e = chosen[n * J + j];
                for (int k = 0; k < E; k++)
                    assert_true(ours[k] || row[k] < row[e]);
                assert_true(j == 0 || row[e] < row[chosen[n * J + j - 1]]);
                want[j] = r.rule == NJ_ROUTE_SIGMOID       ? (1 + tanh(row[e] / 2)) / 2
                          : r.rule == NJ_ROUTE_TOP_SOFTMAX ? share(row, e, ours)
                                                           : share(row, e, all);
                sum += want[j];
            }
            for (int j = 0; j < J; j++)
                assert_close(weight[n * J + j], 1.5 * want[j] / (r.renormalize ? sum : 1), 1e-14);
        }
    }
}

static void the_lower_of_equal_experts_is_chosen_first(void **state)
{
    (void)state;
    double logits[E] = {1, 3, 1, 3, 2, 3, 0, 2, 2, 2, NAN, -1}, weight[J];
    const int32_t want[J] = {1, 3, 5, 4}, of_equals[J] = {0, 1, 2, 3};
    int32_t chosen[J];
    for (int32_t rule = 0; rule < 3; rule++) {
        route(&(struct route){1, 1, rule, 1, 1, NULL, TINY}, logits, 1, chosen, weight);
        assert_memory_equal(chosen, want, sizeof want);
    }
    for (int e = 0; e < E; e++)
        logits[e] = NAN;
    route(&(struct route){1, 1, NJ_ROUTE_SIGMOID, 1, 1, NULL, TINY}, logits, 1, chosen, weight);
    assert_memory_equal(chosen, of_equals, sizeof of_equals);
}

static void a_bias_changes_the_choice_alone(void **state)
{
    (void)state;
    const double logits[E] = {0.5, 0.25, -0.25, -0.5, -1, -2, -3, -4, -5, -6, -7, -8};
    const double bias[E] = {[1] = -1, [11] = 2};
    const int32_t want[J] = {11, 0, 2, 3};
    for (int32_t rule = 0; rule < 3; rule += 2) {
        double weight[J], sum = 0;
        int32_t chosen[J];
        route(&(struct route){1, 1, rule, 0, 1, bias, TINY}, logits, 1, chosen, weight);
        assert_memory_equal(chosen, want, sizeof want);
        for (int e = 0; e < E; e++)
            sum += exp(logits[e]);
        for (int j = 0; j < J; j++) {
            const double x = logits[want[j]];
            assert_close(weight[j], rule == 0 ? exp(x) / sum : 1 / (1 + exp(-x)), 1e-15);
        }
    }
}

static void weights_of_sigmoids_that_are_0_are_0(void **state)
{
    (void)state;
    double logits[E], weight[J];
    int32_t chosen[J];
    for (int e = 0; e < E; e++)
        logits[e] = -800 - e % 3;
    route(&(struct route){1, 1, NJ_ROUTE_SIGMOID, 1, 1, NULL, TINY}, logits, 1, chosen, weight);
    for (int j = 0; j < J; j++)
        assert_true(weight[j] == 0 && chosen[j] == 3 * j);
}

static void eps_is_added_to_the_sum_of_weights(void **state)
{
    (void)state;
    double weight[J];
    int32_t chosen[J];
    const double logits[E] = {0};
    route(&(struct route){1, 1, NJ_ROUTE_SIGMOID, 1, 3, NULL, 0.5f}, logits, 1, chosen, weight);
    for (int j = 0; j < J; j++)
        assert_close(weight[j], 3 * 0.5 / (0.5 * J + 0.5), 1e-15);
}

/* Biases near 7 leave scores 2^-22 between them in float32, and 2^-5 in bfloat16. Choices are those of double where the
 * fourth and the fifth are further apart, and rounded biases choose other experts for most rows. */
static void biases_far_above_scores_choose_as_in_double(void **state)
{
    (void)state;
    enum { ROWS = 200 };
    const double *logits = random_values(ROWS * E);
    float narrow[ROWS * E], bias[E], rounded[E], weight[ROWS * J];
    double exact[E];
    int32_t got[ROWS * J], other[ROWS * J], equal = 0, moved = 0;
    for (int e = 0; e < E; e++) {
        bias[e] = (float)(7 + 0.2 * uniform());
        rounded[e] = f32_from_bf16(bf16_from_f32(bias[e]));
    }
    for (int i = 0; i < ROWS * E; i++)
        narrow[i] = (float)logits[i];
    nj_ref_expert_route_f32(got, weight, narrow, bias, ROWS, E, J, 1, 1, NJ_ROUTE_SIGMOID, 1, 1,
                            TINY);
    nj_ref_expert_route_f32(other, weight, narrow, rounded, ROWS, E, J, 1, 1, NJ_ROUTE_SIGMOID, 1,
                            1, TINY);
    for (int n = 0; n < ROWS; n++) {
        double least = INFINITY, next = -INFINITY;
        for (int e = 0; e < E; e++)
            exact[e] = (double)bias[e] + 1 / (1 + exp(-(double)narrow[n * E + e]));
        for (int j = 0; j < J; j++)
            least = fmin(least, exact[got[n * J + j]]);
        for (int e = 0; e < E; e++) {
            bool taken = false;
            for (int j = 0; j < J; j++)
                taken = taken || got[n * J + j] == e;
            next = taken ? next : fmax(next, exact[e]);
        }
        assert_true(least > next - 0x1p-21);
        equal += least > next;
        moved += memcmp(got + n * J, other + n * J, J * sizeof *got) != 0;
    }
    assert_true(equal >= ROWS - 1 && moved > ROWS / 4);
}

/* Scores that a bias makes equal are ties, too. */
static void the_lower_of_experts_with_equal_biased_scores_is_chosen(void **state)
{
    (void)state;
    const double logits[E] = {0}, bias[E] = {7, 7.25, 7, 7.25, 7, 7.25, 7};
    const int32_t want[J] = {1, 3, 5, 0};
    double weight[J];
    int32_t chosen[J];
    route(&(struct route){1, 1, NJ_ROUTE_SIGMOID, 1, 1, bias, TINY}, logits, 1, chosen, weight);
    assert_memory_equal(chosen, want, sizeof want);
}

/* The second of four groups has the best expert, the first and the last have the best pairs. */
static void experts_come_from_the_best_groups(void **state)
{
    (void)state;
    const double logits[E] = {2, -9, 1.5, 3, -9, -9, 1, 0, -1, -2, 2.5, 1};
    const int32_t want[J] = {10, 0, 2, 11};
    double weight[J];
    int32_t chosen[J];
    const double bias[E] = {0};
    for (int biased = 0; biased < 2; biased++) {
        route(&(struct route){4, 2, NJ_ROUTE_SIGMOID, 1, 1, biased ? bias : NULL, TINY}, logits, 1,
              chosen, weight);
        assert_memory_equal(chosen, want, sizeof want);
    }
}

/* ---- the order of pairs ---- */

static int32_t pair_key(const int32_t *chosen, int32_t p)
{
    return chosen[p] * P + p;
}

static void pairs_are_sorted_by_expert_row_and_slot(void **state)
{
    (void)state;
    int32_t chosen[P], first[E + 1], row[P], place[P];
    for (int p = 0; p < P; p++)
        chosen[p] =
            (int32_t)(uniform() * (E - 3)) + 1; /* none chooses the first, nor the last two */
    nj_ref_expert_sort_f64(first, row, place, chosen, N, E, J);
    for (int p = 0; p < P; p++) {
        int32_t before = 0;
        for (int q = 0; q < P; q++)
            before += pair_key(chosen, q) < pair_key(chosen, p);
        assert_int_equal(place[p], before);
        assert_int_equal(row[before], p / J);
        assert_true(first[chosen[p]] <= before && before < first[chosen[p] + 1]);
    }
    assert_true(first[0] == 0 && first[1] == 0 && first[E - 2] == P && first[E] == P);
}

static void pairs_without_an_expert_have_no_place(void **state)
{
    (void)state;
    int32_t chosen[P], first[E + 1], row[P], place[P];
    for (int p = 0; p < P; p++)
        chosen[p] = p / J % 2 ? -1 : 5;
    nj_ref_expert_sort_f64(first, row, place, chosen, N, E, J);
    for (int p = 0; p < P; p++)
        assert_int_equal(place[p], p / J % 2 ? -1 : p / J / 2 * J + p % J);
    for (int p = 0; p < P; p++)
        assert_int_equal(row[p], p < 5 * J ? p / J * 2 : -1);
    for (int e = 0; e <= E; e++)
        assert_int_equal(first[e], e > 5 ? 5 * J : 0);
}

/* ---- products and sums ---- */

/* All rows on one expert, and experts that nobody chose, are among the cases. */
static void places_are_multiplied_by_their_experts(void **state)
{
    (void)state;
    const double *x = random_values(N * C), *by_place = random_values(P * C);
    const double *w = random_values(E * M * C), *bias = random_values(E * M);
    for (int variant = 0; variant < 3; variant++) {
        int32_t chosen[P], first[E + 1], row[P], place[P], *const rows = variant ? row : NULL;
        for (int p = 0; p < P; p++)
            chosen[p] = variant == 1 ? 7 : p % 5 == 4 ? -1 : (int32_t)(uniform() * E);
        nj_ref_expert_sort_f64(first, row, place, chosen, N, E, J);
        double *y = zeros(P * LD);
        for (int i = 0; i < P * LD; i++)
            y[i] = 99;
        nj_ref_expert_gemm_f64(y, rows ? x : by_place, rows, w, variant == 2 ? NULL : bias, first,
                               P, rows ? N : P, E, M, C, LD, 1);
        for (int p = 0; p < P; p++) {
            if (chosen[p] < 0)
                continue;
            const double *from = rows ? x + p / J * C : by_place + place[p] * C;
            for (int m = 0; m < LD; m++) {
                const int at = chosen[p] * M + m;
                const double plus = variant == 2 ? 0 : bias[m < M ? at : 0];
                assert_close(y[place[p] * LD + m], m < M ? dot(from, w + at * C, C) + plus : 99,
                             1e-14);
            }
        }
        for (int p = first[E]; p < P; p++)
            assert_true(y[p * LD] == 99);
    }
}

static void gemms_of_sm_90a_equal_the_others(void **state)
{
    (void)state;
    enum { I = M };
    const double *x = random_values(P * C), *w = random_values(2 * E * I * C);
    const double *ups = w + E * I * C, *bias = random_values(E * M);
    int32_t chosen[P], first[E + 1], row[P], place[P];
    for (int p = 0; p < P; p++)
        chosen[p] = (int32_t)(uniform() * E);
    nj_ref_expert_sort_f64(first, row, place, chosen, N, E, J);
    for (int named = 0; named < 2; named++) {
        const int32_t *rows = named ? row : NULL;
        const double *b = named ? bias : NULL;
        double *want = zeros(P * LD), *got = zeros(P * LD), *gu = zeros(P * 2 * I);
        double *want_act = zeros(P * I), *act = zeros(P * I), *alone = zeros(P * I);
        nj_ref_expert_gemm_f64(want, x, rows, w, b, first, P, P, E, M, C, LD, 1);
        nj_ref_expert_gemm_tma_f64(got, x, rows, w, b, first, P, P, E, M, C, LD, 1);
        assert_all_close(got, want, P * LD, 1e-14);

        want = zeros(P * 2 * I);
        nj_ref_expert_gemm_f64(want, x, rows, w, NULL, first, P, P, E, I, C, 2 * I, 1);
        nj_ref_expert_gemm_f64(want + I, x, rows, ups, NULL, first, P, P, E, I, C, 2 * I, 1);
        nj_ref_swiglu_fwd_f64(want_act, want, P, I);
        nj_ref_expert_gemm_swiglu_f64(act, gu, x, rows, w, first, P, P, E, I, C, 1);
        nj_ref_expert_gemm_swiglu_f64(alone, NULL, x, rows, w, first, P, P, E, I, C, 1);
        assert_all_close(gu, want, P * 2 * I, 1e-14);
        assert_all_close(act, want_act, P * I, 1e-14);
        assert_memory_equal(alone, act, P * I * sizeof *act);
    }
}

static void outputs_are_weighted_and_added(void **state)
{
    (void)state;
    const double *d = random_values(P * C), *weight = random_values(P);
    double *shared = random_values(N * C), *y = zeros(N * C), *want = zeros(N * C);
    int32_t place[P];
    for (int p = 0; p < P; p++)
        place[p] = p % 3 == 2 ? -1 : (p * 5) % P;
    for (int added = 0; added < 3; added++) {
        const double *its = added < 2 ? weight : NULL;
        for (int i = 0; i < N * C; i++) {
            want[i] = added ? shared[i] : 0;
            for (int j = 0; j < J; j++) {
                const int p = i / C * J + j;
                want[i] += p % 3 == 2 ? 0 : (its ? its[p] : 1) * d[(p * 5) % P * C + i % C];
            }
        }
        nj_ref_expert_combine_f64(added ? shared : y, d, its, place, added ? shared : NULL, N, J, C,
                                  P);
        assert_all_close(added ? shared : y, want, N * C, 1e-14);
    }
}

static void the_bounded_activation_equals_its_formula(void **state)
{
    (void)state;
    enum { I = 81 };
    double *gu = zeros(2 * I * I), *act = zeros(I * I);
    for (int p = 0; p < I; p++) /* gates and ups from -10 to 10 */
        for (int i = 0; i < I; i++) {
            gu[p * 2 * I + i] = (i - 40) / 4.0;
            gu[p * 2 * I + I + i] = (p - 40) / 4.0;
        }
    nj_ref_expert_glu_clamped_f64(act, gu, I, I, 7, 1.75f);
    for (int p = 0; p < I; p++)
        for (int i = 0; i < I; i++) {
            const double g = fmin((i - 40) / 4.0, 7), u = fmax(-7, fmin((p - 40) / 4.0, 7));
            assert_close(act[p * I + i], (u + 1) * g * (1 + tanh(1.75 * g / 2)) / 2, 1e-14);
        }
    gu[0] = NAN;
    nj_ref_expert_glu_clamped_f64(act, gu, 1, I, 7, 1.75f);
    assert_true(isnan(act[0]));
}

/* A block of experts of M channels each, by GEMMs of sorted pairs and by the kernels for a few rows. */
static void decoded_rows_equal_those_of_gemms(void **state)
{
    (void)state;
    enum { I = M };
    const double *x = random_values(N * C), *weight = random_values(P), *y = random_values(N * C);
    const double *w = random_values(2 * E * I * C), *down = random_values(E * C * I);
    const double *bias = random_values(2 * E * I), *down_bias = random_values(E * C);
    for (int biased = 0; biased < 3; biased++) {
        const float limit = biased == 2 ? 0.75f : 0;
        const double *b = biased ? bias : NULL, *up = biased ? bias + E * I : NULL;
        const double *plus = biased ? down_bias : NULL;
        int32_t chosen[P], first[E + 1], row[P], place[P];
        for (int p = 0; p < P; p++)
            chosen[p] = p % 7 == 3 ? -1 : (int32_t)(uniform() * E);
        nj_ref_expert_sort_f64(first, row, place, chosen, N, E, J);
        double *gu = zeros(P * 2 * I), *act = zeros(P * I), *d = zeros(P * C), *want = zeros(N * C);
        nj_ref_expert_gemm_f64(gu, x, row, w, b, first, P, N, E, I, C, 2 * I, 1);
        nj_ref_expert_gemm_f64(gu + I, x, row, w + E * I * C, up, first, P, N, E, I, C, 2 * I, 1);
        if (limit > 0)
            nj_ref_expert_glu_clamped_f64(act, gu, P, I, limit, 1.5f);
        else
            nj_ref_swiglu_fwd_f64(act, gu, P, I);
        nj_ref_expert_gemm_f64(d, act, NULL, down, plus, first, P, P, E, C, I, C, 1);
        nj_ref_expert_combine_f64(want, d, weight, place, y, N, J, C, P);

        double *few = zeros(P * I), *got = copy(y, N * C);
        nj_ref_expert_gemv_swiglu_f64(few, x, w, b, chosen, N, J, E, I, C, limit, 1.5f);
        for (int p = 0; p < P; p++)
            for (int i = 0; i < I; i++)
                assert_close(few[p * I + i], chosen[p] < 0 ? 0 : act[place[p] * I + i], 1e-13);
        nj_ref_expert_gemv_down_f64(got, few, down, plus, chosen, weight, N, J, E, I, C);
        assert_all_close(got, want, N * C, 1e-13);
    }
}

/* Fill blocks whose float16 numbers are below 2, and whose bytes are no exponents that overflow. */
static void fill_blocks(int32_t *data, size_t words)
{
    for (size_t i = 0; i < words; i++)
        data[i] = (int32_t)((uint32_t)(uniform() * 4294967296.0) & 0xbfbfbfbf);
}

static void quantized_experts_equal_expanded_ones(void **state)
{
    (void)state;
    static const int types[] = {NJ_TYPE_Q8_0, NJ_TYPE_Q4_K, NJ_TYPE_Q5_K, NJ_TYPE_Q6_K,
                                NJ_TYPE_MXFP4};
    enum { ROWS = 2, USED = 3, WIDE = 256, OF = 4, I = 256, WORDS = OF * I * WIDE / 128 * 34 };
    static int32_t gate[WORDS], up[WORDS], down[WORDS];
    const int32_t chosen[ROWS * USED] = {3, 0, 1, 2, -1, 3};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        reset(NULL);
        const double *x = random_values(ROWS * WIDE), *weight = random_values(ROWS * USED);
        const double *bias = random_values(2 * OF * I), *plus = random_values(OF * WIDE);
        double *w = zeros((size_t)2 * OF * I * WIDE), *act = zeros(ROWS * USED * I);
        double *got = zeros(ROWS * USED * I), *y = random_values(ROWS * WIDE);
        fill_blocks(gate, WORDS);
        fill_blocks(up, WORDS);
        fill_blocks(down, WORDS);
        nj_ref_dequantize_f64(types[k], w, gate, NULL, OF * I, OF * I, WIDE);
        nj_ref_dequantize_f64(types[k], w + OF * I * WIDE, up, NULL, OF * I, OF * I, WIDE);
        nj_ref_expert_gemv_swiglu_f64(act, x, w, bias, chosen, ROWS, USED, OF, I, WIDE, 7, 1.5f);
        nj_ref_expert_gemv_swiglu_blocks_f64(types[k], got, x, gate, up, bias, chosen, ROWS, USED,
                                             OF, I, WIDE, 7, 1.5f);
        assert_all_close(got, act, ROWS * USED * I, 1e-12);

        double *again = copy(y, ROWS * WIDE);
        nj_ref_dequantize_f64(types[k], w, down, NULL, OF * WIDE, OF * WIDE, I);
        nj_ref_expert_gemv_down_f64(y, act, w, plus, chosen, weight, ROWS, USED, OF, I, WIDE);
        nj_ref_expert_gemv_down_blocks_f64(types[k], again, act, down, plus, chosen, weight, ROWS,
                                           USED, OF, I, WIDE);
        assert_all_close(again, y, ROWS * WIDE, 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(routes_equal_their_formulas, reset),
        cmocka_unit_test_setup(the_lower_of_equal_experts_is_chosen_first, reset),
        cmocka_unit_test_setup(a_bias_changes_the_choice_alone, reset),
        cmocka_unit_test_setup(weights_of_sigmoids_that_are_0_are_0, reset),
        cmocka_unit_test_setup(biases_far_above_scores_choose_as_in_double, reset),
        cmocka_unit_test_setup(the_lower_of_experts_with_equal_biased_scores_is_chosen, reset),
        cmocka_unit_test_setup(eps_is_added_to_the_sum_of_weights, reset),
        cmocka_unit_test_setup(experts_come_from_the_best_groups, reset),
        cmocka_unit_test_setup(pairs_are_sorted_by_expert_row_and_slot, reset),
        cmocka_unit_test_setup(pairs_without_an_expert_have_no_place, reset),
        cmocka_unit_test_setup(places_are_multiplied_by_their_experts, reset),
        cmocka_unit_test_setup(gemms_of_sm_90a_equal_the_others, reset),
        cmocka_unit_test_setup(outputs_are_weighted_and_added, reset),
        cmocka_unit_test_setup(the_bounded_activation_equals_its_formula, reset),
        cmocka_unit_test_setup(decoded_rows_equal_those_of_gemms, reset),
        cmocka_unit_test_setup(quantized_experts_equal_expanded_ones, reset),
    };
    return cmocka_run_group_tests_name("experts", tests, NULL, NULL);
}
