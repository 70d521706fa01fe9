/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sample.c: the references of sample, sample_cut and sample_next, on the CPU backend, against softmax, a sort and
 * the rules of a decoding step.
 */
#include "nojit_ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { V = 61, LD = 64, GROUP = 8, STOPS = 8 };

static nj_context *ctx;
static nj_stream *stream;

static int open_stream(void **state)
{
    (void)state;
    const struct nj_options options = {.device = NJ_DEVICE_CPU};
    return nj_context_create(&ctx, &options) || nj_stream_create(ctx, &stream);
}

static int close_stream(void **state)
{
    (void)state;
    nj_stream_destroy(stream);
    nj_context_destroy(ctx);
    return 0;
}

static uint32_t seed_now = 1;
static float some(float scale)
{
    seed_now = seed_now * 1664525u + 1013904223u;
    return scale * ((float)(seed_now >> 8) * 0x1p-24f - 0.5f);
}

/* Sample a row in one part; return the token. */
static int32_t draw_scored(float *score, const float *x, const float *cut, int32_t number,
                           int32_t pos, float tau, int32_t seed)
{
    const int32_t slot = 0;
    int32_t id;
    assert_int_equal(nj_sample(stream, NJ_F32,
                               &(struct nj_sample){.score = score,
                                                   .best = &id,
                                                   .x = x,
                                                   .cut = cut,
                                                   .slot = &slot,
                                                   .number = &number,
                                                   .pos = &pos,
                                                   .R = 1,
                                                   .V = V,
                                                   .ld = LD,
                                                   .PARTS = 1,
                                                   .tau = tau,
                                                   .seed_low = seed,
                                                   .seed_high = 0}),
                     0);
    return id;
}

static int32_t draw(const float *x, const float *cut, int32_t number, int32_t pos, float tau,
                    int32_t seed)
{
    float score;
    return draw_scored(&score, x, cut, number, pos, tau, seed);
}

static void make_logits(float *x)
{
    for (int v = 0; v < LD; v++)
        x[v] = some(6);
}

/* Check frequencies. Pearson's statistic, over tokens that are expected at least 20 times, has mean k and deviation
 * sqrt(2k); five deviations are exceeded by less than one seed in a million. Tokens from `least` on take part; more
 * than `fewest` of them must count. */
static void check_frequencies(const float *x, float least, float tau, int fewest)
{
    enum { DRAWS = 200000 };
    int seen[V] = {0}, kept = 0;
    double p[V], sum = 0, statistic = 0;
    for (int i = 0; i < DRAWS; i++)
        seen[draw(x, &least, i / 1000, i % 1000, tau, 9)]++;
    for (int v = 0; v < V; v++)
        sum += p[v] = x[v] >= least ? exp((double)x[v] / (double)tau) : 0;
    for (int v = 0; v < V; v++) {
        const double expected = DRAWS * p[v] / sum, d = seen[v] - expected;
        statistic += expected >= 20 ? d * d / expected : 0;
        kept += expected >= 20;
        assert_true(expected > 0 || seen[v] == 0);
    }
    assert_true(kept > fewest);
    assert_true(statistic < kept + 5 * sqrt(2.0 * kept));
}

static void frequencies_match_softmax(void **state)
{
    (void)state;
    _Alignas(16) float x[LD];
    make_logits(x);
    check_frequencies(x, -INFINITY, 0.7f, V / 2);
}

/* Some groups keep all of their tokens, others some, one none. */
static void frequencies_with_a_cut_match_softmax(void **state)
{
    (void)state;
    _Alignas(16) float x[LD];
    make_logits(x);
    for (int v = 0; v < 2 * GROUP; v++)
        x[v] = v < GROUP ? 0.5f + 0.1f * (float)v : -1;
    check_frequencies(x, -0.5f, 1.3f, V / 3);
}

static void tokens_of_a_group_match_softmax(void **state)
{
    (void)state;
    _Alignas(16) float x[LD];
    for (int v = 0; v < LD; v++)
        x[v] = v / GROUP == 3 ? 0.4f * (float)(v * 5 % GROUP) : -INFINITY;
    check_frequencies(x, -INFINITY, 1, GROUP - 2);
}

/* There is one group of equal tokens. Whether its score is above the median, log 8 - log(log 2), must not depend on the
 * half that its token lies in. The statistic of four equal counts has three degrees of freedom. */
static void tokens_do_not_depend_on_the_noise_of_their_group(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    _Alignas(16) float x[LD];
    int seen[2][2] = {{0}};
    double statistic = 0;
    for (int v = 0; v < LD; v++)
        x[v] = v < GROUP ? 0 : -INFINITY;
    for (int i = 0; i < DRAWS; i++) {
        float score;
        const int32_t id = draw_scored(&score, x, NULL, i / 100, i % 100, 1, 3);
        seen[(double)score > log(8) - log(log(2))][id >= GROUP / 2]++;
    }
    for (int k = 0; k < 4; k++) {
        const double d = seen[k / 2][k % 2] - DRAWS / 4.0;
        statistic += d * d / (DRAWS / 4.0);
    }
    assert_true(statistic < 30);
}

static void greedy_takes_the_lowest_of_equals(void **state)
{
    (void)state;
    _Alignas(16) float x[LD] = {0};
    x[17] = x[23] = x[60] = 2;
    assert_int_equal(draw(x, NULL, 1, 1, 0, 1), 17);
}

static void a_cut_of_probabilities_is_respected(void **state)
{
    (void)state;
    _Alignas(16) float x[LD] = {0};
    bool seen[V] = {false};
    const float cut = 1;
    x[5] = 1;
    x[40] = 1.5f;
    x[41] = 0.99f;
    for (int i = 0; i < 2000; i++)
        seen[draw(x, &cut, 0, i, 1, 1)] = true;
    for (int v = 0; v < V; v++)
        assert_int_equal(seen[v], v == 5 || v == 40);
}

static void what_is_not_a_number_takes_no_part(void **state)
{
    (void)state;
    _Alignas(16) float x[LD];
    for (int v = 0; v < LD; v++)
        x[v] = v % 3 ? NAN : -INFINITY;
    assert_int_equal(draw(x, NULL, 1, 1, 1, 1), -1);
    assert_int_equal(draw(x, NULL, 1, 1, 0, 1), -1);
    x[20] = -5;
    for (int i = 0; i < 100; i++)
        assert_int_equal(draw(x, NULL, 1, i, 1, 1), 20);
    assert_int_equal(draw(x, NULL, 1, 1, 0, 1), 20);
}

static void the_batch_does_not_matter_to_a_sample(void **state)
{
    (void)state;
    enum { R = 9, MOST = 20 };
    _Alignas(16) float x[R * LD];
    int32_t number[R], pos[R], slot[R];
    for (int m = 0; m < R; m++) {
        make_logits(x + m * LD);
        number[m] = 100 + 7 * m % 5;
        pos[m] = 3 * m % 4;
        slot[m] = m == 4 ? -1 : m;
    }
    for (int parts = 1; parts <= MOST; parts++) {
        float score[R * MOST];
        int32_t best[R * MOST];
        assert_int_equal(nj_sample(stream, NJ_F32,
                                   &(struct nj_sample){.score = score,
                                                       .best = best,
                                                       .x = x,
                                                       .slot = slot,
                                                       .number = number,
                                                       .pos = pos,
                                                       .R = R,
                                                       .V = V,
                                                       .ld = LD,
                                                       .PARTS = parts,
                                                       .tau = 0.9f,
                                                       .seed_low = 5,
                                                       .seed_high = 0}),
                         0);
        for (int m = 0; m < R; m++) {
            int at = m * parts;
            for (int p = 1; p < parts; p++)
                at = score[m * parts + p] > score[at] ? m * parts + p : at;
            assert_int_equal(best[at],
                             m == 4 ? -1 : draw(x + m * LD, NULL, number[m], pos[m], 0.9f, 5));
        }
    }
}

static void noise_depends_on_seed_number_and_position(void **state)
{
    (void)state;
    enum { DRAWS = 200 };
    _Alignas(16) float x[LD] = {0};
    int same[3] = {0};
    for (int i = 0; i < DRAWS; i++) {
        const int32_t id = draw(x, NULL, 2 * i, 2 * i, 1, 5);
        same[0] += id == draw(x, NULL, 2 * i, 2 * i, 1, 6);
        same[1] += id == draw(x, NULL, 2 * i + 1, 2 * i, 1, 5);
        same[2] += id == draw(x, NULL, 2 * i, 2 * i + 1, 1, 5);
    }
    for (int k = 0; k < 3; k++) /* one in V by chance */
        assert_true(same[k] < DRAWS / 10);
}

/* ---- sample_cut ---- */

static int descending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Compute the cut by sorting; `out`, if not NULL, gets the number of tokens that stay. */
static float sorted_cut(const float *x, float tau, int top_k, float top_p, float min_p)
{
    float s[V];
    double sum = 0, so_far = 0;
    int kept = V, last = 0;
    memcpy(s, x, sizeof s);
    qsort(s, V, sizeof *s, descending);
    if (top_k > 0 && top_k < V)
        for (kept = top_k; kept < V && s[kept] == s[kept - 1]; kept++)
            ;
    for (int i = 0; i < kept; i++)
        sum += exp((double)(s[i] - s[0]) / (double)tau);
    for (; last < kept; last++) {
        so_far += exp((double)(s[last] - s[0]) / (double)tau);
        if (so_far >= (double)top_p * sum)
            break;
    }
    float cut = s[last < kept ? last : kept - 1];
    const float least = s[0] + tau * logf(min_p);
    if (min_p > 0 && least > cut)
        cut = least;
    return cut > s[0] ? s[0] : cut;
}

static float cut_of(const float *x, float tau, int top_k, float top_p, float min_p)
{
    const int32_t slot = 0;
    float cut;
    assert_int_equal(nj_sample_cut(stream, NJ_F32,
                                   &(struct nj_sample_cut){.cut = &cut,
                                                           .x = x,
                                                           .slot = &slot,
                                                           .R = 1,
                                                           .V = V,
                                                           .ld = LD,
                                                           .tau = tau,
                                                           .top_k = top_k,
                                                           .top_p = top_p,
                                                           .min_p = min_p}),
                     0);
    return cut;
}

/* Check that the same tokens stay. */
static void check_cut(const float *x, float tau, int top_k, float top_p, float min_p)
{
    const float want = sorted_cut(x, tau, top_k, top_p, min_p);
    const float got = cut_of(x, tau, top_k, top_p, min_p);
    for (int v = 0; v < V; v++)
        assert_int_equal(x[v] >= got, x[v] >= want);
}

static void cuts_equal_those_of_a_sort(void **state)
{
    (void)state;
    static const int top_k[] = {0, 1, 7, 60, 61, 5000};
    static const float top_p[] = {1, 0.9f, 0.3f, 1e-6f}, min_p[] = {0, 0.05f, 0.5f};
    _Alignas(16) float x[LD];
    for (int round = 0; round < 20; round++) {
        make_logits(x);
        for (int v = 0; v < V && round % 2; v++)
            x[v] = roundf(x[v]);
        for (size_t k = 0; k < 6; k++)
            for (size_t p = 0; p < 4; p++)
                for (size_t m = 0; m < 3; m++)
                    check_cut(x, round % 3 ? 1.0f : 0.6f, top_k[k], top_p[p], min_p[m]);
    }
}

static void tokens_as_likely_as_the_last_stay(void **state)
{
    (void)state;
    _Alignas(16) float x[LD] = {0};
    x[3] = 2;
    x[9] = x[10] = x[11] = 1;
    assert_true(cut_of(x, 1, 2, 1, 0) == 1);
}

static void one_token_stays_of_any_cut(void **state)
{
    (void)state;
    _Alignas(16) float x[LD];
    make_logits(x);
    x[33] = 50;
    assert_true(cut_of(x, 1, 1, 0, 1) == 50);
    assert_true(cut_of(x, 1e-3f, 0, 1, 1) <= 50);
}

/* ---- sample_next ---- */

static void the_best_part_of_a_split_row_wins(void **state)
{
    (void)state;
    const float score[] = {1, 3, 3, 5, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    const int32_t best[] = {7, 9, 4, -1, -1, -1, -1, -1},
                  stop[STOPS] = {-1, -1, -1, -1, -1, -1, -1, -1};
    int32_t out[2], ids[] = {0, 0}, pos[] = {5, 5}, left[] = {3, 3}, slot[] = {0, 1}, counter = 0;
    assert_int_equal(nj_sample_next(stream, NJ_F32,
                                    &(struct nj_sample_next){.out = out,
                                                             .ids = ids,
                                                             .pos = pos,
                                                             .left = left,
                                                             .slot = slot,
                                                             .counter = &counter,
                                                             .score = score,
                                                             .best = best,
                                                             .stop = stop,
                                                             .R = 2,
                                                             .PARTS = 4,
                                                             .W = 1}),
                     0);
    assert_int_equal(out[0], 4);
    assert_int_equal(ids[0], 4);
    assert_int_equal(pos[0], 6);
    assert_int_equal(left[0], 2);
    assert_int_equal(out[1], -1);
    assert_int_equal(slot[1], -1);
    assert_int_equal(counter, 1);
}

static void rows_end_at_a_stop_token_or_their_length(void **state)
{
    (void)state;
    enum { R = 4, W = 3 };
    const float score[R] = {1, 1, 1, 1};
    const int32_t best[R] = {10, 11, 12, 13}, stop[STOPS] = {-1, -1, -1, -1, -1, -1, -1, 11};
    int32_t out[W * R], ids[R] = {1, 2, 3, 4}, pos[R] = {5, 5, 5, 5}, left[R] = {9, 9, 1, 9};
    int32_t slot[R] = {0, 1, 2, -1}, counter = 1;
    memset(out, 0x55, sizeof out);
    assert_int_equal(nj_sample_next(stream, NJ_F32,
                                    &(struct nj_sample_next){.out = out,
                                                             .ids = ids,
                                                             .pos = pos,
                                                             .left = left,
                                                             .slot = slot,
                                                             .counter = &counter,
                                                             .score = score,
                                                             .best = best,
                                                             .stop = stop,
                                                             .R = R,
                                                             .PARTS = 1,
                                                             .W = W}),
                     0);
    static const int32_t said[R] = {10, 11, 12, -1}, ends[R] = {0, -1, -1, -1};
    for (int m = 0; m < R; m++) {
        assert_int_equal(out[R + m], said[m]);
        assert_int_equal(slot[m], ends[m]);
        assert_int_equal(ids[m], m == 0 ? 10 : m + 1);
        assert_int_equal(pos[m], m == 0 ? 6 : 5);
        assert_int_equal(out[m], 0x55555555);
        assert_int_equal(out[2 * R + m], 0x55555555);
    }
    assert_int_equal(counter, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_match_softmax),
        cmocka_unit_test(frequencies_with_a_cut_match_softmax),
        cmocka_unit_test(tokens_of_a_group_match_softmax),
        cmocka_unit_test(tokens_do_not_depend_on_the_noise_of_their_group),
        cmocka_unit_test(greedy_takes_the_lowest_of_equals),
        cmocka_unit_test(a_cut_of_probabilities_is_respected),
        cmocka_unit_test(what_is_not_a_number_takes_no_part),
        cmocka_unit_test(the_batch_does_not_matter_to_a_sample),
        cmocka_unit_test(noise_depends_on_seed_number_and_position),
        cmocka_unit_test(cuts_equal_those_of_a_sort),
        cmocka_unit_test(tokens_as_likely_as_the_last_stay),
        cmocka_unit_test(one_token_stays_of_any_cut),
        cmocka_unit_test(the_best_part_of_a_split_row_wins),
        cmocka_unit_test(rows_end_at_a_stop_token_or_their_length),
    };
    return cmocka_run_group_tests(tests, open_stream, close_stream);
}
