/* SPDX-License-Identifier: Apache-2.0
 *
 * test_adamw_bf16.c: AdamW on bfloat16 weights and moments, on the CPU backend: the update, and the properties of
 * stochastic rounding: it is unbiased, drawn anew for each number and update, and a function of seed, update and
 * element only. Rounding to nearest must fail the tests that it should.
 */
#include "base/float16.h"
#include "base/step_state.h"
#include "formats/safetensors.h"
#include "nojit_ops.h"
#include "unit.h"

#include <math.h>
#include <omp.h>
#include <stdbool.h>

static nj_context *ctx;
static nj_stream *s;

enum { N = 4096 };

/* Weights, moments and gradients; bfloat16 numbers are given as float. */
struct arrays {
    float w[N], g[N];
    uint16_t m[N], v[N];
};
static _Alignas(16) struct arrays a, b;

struct numbers {
    float lr, beta1, beta2, eps, decay, updates;
    int64_t n, n_decay, first;
    uint64_t seed;
};
static const struct numbers plain = {
    .lr = 1e-4f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .updates = 1, .n = N, .seed = 11};

static void fill(struct arrays *x, float w, float m, float v, float g)
{
    for (int i = 0; i < N; i++) {
        x->w[i] = w;
        x->g[i] = g;
        x->m[i] = bf16_from_f32(m);
        x->v[i] = bf16_from_f32(v);
    }
}

static void update(struct arrays *x, const struct numbers *o, float bias1, float bias2)
{
    const float state[NJ_STEP_SLOTS] = {[NJ_STEP_LR] = o->lr,
                                        [NJ_STEP_GRAD_SCALE] = 1,
                                        [NJ_STEP_BIAS1] = bias1,
                                        [NJ_STEP_BIAS2] = bias2,
                                        [NJ_STEP_UPDATES] = o->updates};
    assert_int_equal(nj_adamw_bf16(s, NJ_F32,
                                   &(struct nj_adamw_bf16){.w = x->w,
                                                           .m = x->m,
                                                           .v = x->v,
                                                           .g = x->g,
                                                           .state = state,
                                                           .n = o->n,
                                                           .n_decay = o->n_decay,
                                                           .first = o->first,
                                                           .beta1 = o->beta1,
                                                           .beta2 = o->beta2,
                                                           .eps = o->eps,
                                                           .weight_decay = o->decay,
                                                           .seed_low = (int32_t)o->seed,
                                                           .seed_high = (int32_t)(o->seed >> 32)}),
                     0);
}

/* Return the distance between bfloat16 numbers of x's size. */
static double unit_of(double x)
{
    return ldexp(1, ilogb(x) - 7);
}

static void check_near(double got, double want, const char *what, int i)
{
    const double unit = unit_of(want);
    if (!(fabs(got - want) < 1.001 * unit) ||
        (double)f32_from_bf16(bf16_from_f32((float)got)) != got)
        fail_msg("%s[%d]: got %.9g, expected a bfloat16 number next to %.9g", what, i, got, want);
}

static double noise(void)
{
    static uint32_t seed = 1;
    seed = seed * 1664525u + 1013904223u;
    return (double)(seed >> 8) * 0x1p-23 - 1;
}

static void bf16_updates_are_those_of_adamw(void **state)
{
    (void)state;
    struct numbers o = plain;
    o.lr = 0.01f;
    o.decay = 25; /* a quarter of the weight, large beside the rounding */
    o.n = 1003;
    o.n_decay = 501;
    for (int i = 0; i < N; i++) {
        a.w[i] = f32_from_bf16(bf16_from_f32((float)noise()));
        a.g[i] = (float)noise();
        a.m[i] = bf16_from_f32((float)noise());
        a.v[i] = bf16_from_f32((float)fabs(noise()));
    }
    b = a;
    update(&a, &o, 0.19f, 0.75f);
    for (int i = 0; i < o.n; i++) {
        const double h = (double)b.g[i], b1 = (double)o.beta1, b2 = (double)o.beta2;
        const double m = b1 * (double)f32_from_bf16(b.m[i]) + (1 - b1) * h;
        const double v = b2 * (double)f32_from_bf16(b.v[i]) + (1 - b2) * h * h;
        const double decay = i < o.n_decay ? 25 * (double)b.w[i] : 0;
        const double w = (double)b.w[i] - 0.01 * (m / 0.19 / sqrt(v / 0.75) + decay);
        check_near((double)a.w[i], w, "w", i);
        check_near((double)f32_from_bf16(a.m[i]), m, "m", i);
        check_near((double)f32_from_bf16(a.v[i]), v, "v", i);
    }
    for (int64_t i = o.n; i < N; i++)
        assert_true(a.w[i] == b.w[i] && a.m[i] == b.m[i] && a.v[i] == b.v[i] && a.g[i] == b.g[i]);
}

static void skipped_updates_change_nothing(void **state)
{
    (void)state;
    const float slots[NJ_STEP_SLOTS] = {[NJ_STEP_LR] = 1, [NJ_STEP_SKIP] = 1};
    fill(&a, 1.001f, 2, 3, NAN);
    b = a;
    assert_int_equal(nj_adamw_bf16(s, NJ_F32,
                                   &(struct nj_adamw_bf16){.w = a.w,
                                                           .m = a.m,
                                                           .v = a.v,
                                                           .g = a.g,
                                                           .state = slots,
                                                           .n = N,
                                                           .n_decay = N,
                                                           .first = 0,
                                                           .beta1 = 0.5f,
                                                           .beta2 = 0.5f,
                                                           .eps = 1,
                                                           .weight_decay = 1,
                                                           .seed_low = 1,
                                                           .seed_high = 0}),
                     0);
    for (int i = 0; i < N; i++)
        assert_true(a.w[i] == b.w[i] && a.m[i] == b.m[i] && a.v[i] == b.v[i]);
}

/* ---- rounding ------------------------------------------------------------------------------- */

enum { UPDATES = 16 };

/* Compute the means of what is stored. All numbers are equal before rounding: a weight of `sign` less `part` of a unit,
 * by decay, and 1 less `part` in both moments. */
static void means(double part, float sign, double mean[3])
{
    struct numbers o = plain;
    const double unit = 0x1p-8; /* the unit below 1 */
    mean[0] = mean[1] = mean[2] = 0;
    o.lr = 1;
    o.decay = (float)(part * unit);
    o.beta1 = o.beta2 = (float)(1 - part * unit);
    o.n_decay = N;
    o.eps = INFINITY; /* keeps the moments out of the weight */
    for (int k = 1; k <= UPDATES; k++) {
        o.updates = (float)k;
        fill(&a, sign, sign, 1, 0);
        update(&a, &o, 1, 1);
        for (int i = 0; i < N; i++) {
            mean[0] += (double)a.w[i] / (N * UPDATES);
            mean[1] += (double)f32_from_bf16(a.m[i]) / (N * UPDATES);
            mean[2] += (double)f32_from_bf16(a.v[i]) / (N * UPDATES);
        }
    }
}

/* A draw is up with probability p, so the mean of n draws has a deviation of sqrt(p (1 - p) / n) units. The bound is
 * five deviations (6 in 10 million fail by chance). Rounding to nearest would move all in the same direction. */
static void rounding_to_bf16_is_unbiased(void **state)
{
    (void)state;
    static const double parts[] = {1.0 / 64, 0.25, 0.5, 0.7, 63.0 / 64};
    for (int k = 0; k < 10; k++) {
        const double part = parts[k / 2], unit = 0x1p-8;
        const float sign = k % 2 ? -1.0f : 1.0f;
        const double bound = 5 * sqrt(part * (1 - part) / (N * UPDATES)) * unit;
        const double want = (double)(float)(1 - part * unit);
        double mean[3];
        means(part, sign, mean);
        mean[0] *= (double)sign;
        mean[1] *= (double)sign;
        for (int x = 0; x < 3; x++)
            if (!(fabs(mean[x] - want) <= bound))
                fail_msg("%c at %g of a unit: mean %.9g, expected %.9g within %.2g", "wmv"[x], part,
                         mean[x], want, bound);
        assert_true(fabs((double)f32_from_bf16(bf16_from_f32((float)want)) - want) > 2 * bound);
    }
}

/* Record which of three numbers, half-way between their neighbours, were rounded up, as bits. */
static void coins(const struct numbers *like, uint8_t up[3][N])
{
    struct numbers o = *like;
    o.beta1 = o.beta2 = 1 - 0x1p-9f;
    o.lr = 0x1p-9f; /* times m / sqrt(v), which is about 1 */
    fill(&a, 1, 1, 1, 0);
    update(&a, &o, 1, 1);
    for (int i = 0; i < N; i++) {
        up[0][i] = a.w[i] == 1;
        up[1][i] = f32_from_bf16(a.m[i]) == 1;
        up[2][i] = f32_from_bf16(a.v[i]) == 1;
    }
}

/* Half of n pairs of coins agree, give or take sqrt(n) / 2. */
static void check_apart(const uint8_t *x, const uint8_t *y, int n, const char *what)
{
    int same = 0;
    for (int i = 0; i < n; i++)
        same += x[i] == y[i];
    if (fabs(same - n / 2.0) > 5 * sqrt(n) / 2)
        fail_msg("%s: %d of %d draws agree", what, same, n);
}

static void draws_of_neighbours_are_apart(void **state)
{
    (void)state;
    static uint8_t up[3][N], other[3][N];
    struct numbers o = plain;
    coins(&o, up);
    check_apart(up[0], up[1], N, "w and m");
    check_apart(up[0], up[2], N, "w and v");
    check_apart(up[1], up[2], N, "m and v");
    for (int x = 0; x < 3; x++)
        for (int apart = 1; apart <= 4; apart++)
            check_apart(up[x], up[x] + apart, N - apart, "neighbours");
    o.updates++;
    coins(&o, other);
    for (int x = 0; x < 3; x++)
        check_apart(up[x], other[x], N, "two updates");
    for (int bit = 0; bit < 64; bit += 21) {
        o = plain;
        o.seed ^= UINT64_C(1) << bit;
        coins(&o, other);
        for (int x = 0; x < 3; x++)
            check_apart(up[x], other[x], N, "two seeds");
    }
}

static void draws_depend_on_seed_step_and_place_alone(void **state)
{
    (void)state;
    static uint8_t up[3][N], other[3][N];
    struct numbers o = plain;
    const int threads = omp_get_max_threads();
    coins(&o, up);
    for (int k = 1; k <= 5; k += 2) {
        omp_set_num_threads(k);
        coins(&o, other);
        assert_memory_equal(up, other, sizeof up);
    }
    omp_set_num_threads(threads);
    o.n = 1001; /* a shorter array */
    coins(&o, other);
    for (int x = 0; x < 3; x++)
        assert_memory_equal(up[x], other[x], (size_t)o.n);
    o.first = 500; /* a part of the array */
    coins(&o, other);
    for (int x = 0; x < 3; x++)
        assert_memory_equal(up[x] + o.first, other[x], (size_t)o.n);
}

static void exact_bf16_values_stay(void **state)
{
    (void)state;
    static const uint16_t bits[] = {0,      0x3f80, 0xc000, 0x0001, 0x807f,
                                    0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x4049};
    enum { COUNT = sizeof bits / sizeof *bits };
    struct numbers o = plain;
    o.beta1 = o.beta2 = 1;
    o.lr = 0;
    fill(&a, 1, 0, 0, 0);
    for (int i = 0; i < N; i++) {
        a.m[i] = a.v[i] = bits[i % COUNT];
        a.w[i] = isinf(f32_from_bf16(bits[i % COUNT])) ? 0 : f32_from_bf16(bits[i % COUNT]);
    }
    b = a;
    o.eps = INFINITY; /* keeps the moments, some of which have no root, out of the weight */
    update(&a, &o, 1, 1);
    for (int i = 0; i < N; i++) {
        assert_int_equal(a.m[i], b.m[i]);
        assert_int_equal(a.v[i], b.v[i]);
        if (!signbit(f32_from_bf16(b.v[i])) && !isinf(f32_from_bf16(b.m[i])))
            assert_memory_equal(&a.w[i], &b.w[i], sizeof a.w[i]);
    }
    const uint32_t all_digits = 0x7fffffff;
    for (int i = 0; i < N; i++) {
        memcpy(&a.w[i], &all_digits, sizeof a.w[i]);
        a.m[i] = a.v[i] = 0x7fc0;
    }
    update(&a, &o, 1, 1);
    for (int i = 0; i < N; i++)
        assert_true(isnan(a.w[i]) && isnan(f32_from_bf16(a.m[i])) && isnan(f32_from_bf16(a.v[i])));
}

/* ---- why ------------------------------------------------------------------------------------ */

/* Round the result of a float32 AdamW to nearest. */
static void round_to_nearest(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = f32_from_bf16(bf16_from_f32(x[i]));
}

/* Minimize w^2 / 2 from 1, in steps of a thousandth, far less than half of the 2^-8 between 1 and the number before it.
 * There is one parameter in float32, which is rounded to nearest after each update or not at all. */
static float descend(int steps, float beta2, bool nearest)
{
    _Alignas(16) float w = 1, m = 0, v = 0, g;
    for (int k = 1; k <= steps; k++) {
        const float slots[NJ_STEP_SLOTS] = {[NJ_STEP_LR] = 1e-3f,
                                            [NJ_STEP_GRAD_SCALE] = 1,
                                            [NJ_STEP_BIAS1] = 1 - powf(0.9f, (float)k),
                                            [NJ_STEP_BIAS2] = 1 - powf(beta2, (float)k)};
        g = w;
        assert_int_equal(nj_adamw(s, NJ_F32,
                                  &(struct nj_adamw){.w = &w,
                                                     .m = &m,
                                                     .v = &v,
                                                     .g = &g,
                                                     .state = slots,
                                                     .n = 1,
                                                     .n_decay = 0,
                                                     .beta1 = 0.9f,
                                                     .beta2 = beta2,
                                                     .eps = 1e-8f,
                                                     .weight_decay = 0}),
                         0);
        if (nearest) {
            round_to_nearest(&w, 1);
            round_to_nearest(&m, 1);
            round_to_nearest(&v, 1);
        }
    }
    return w;
}

static double mean_of(const float *x)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += (double)x[i];
    return sum / N;
}

/* A step of size d is taken as a whole unit u with probability d / u, so k steps spread a parameter by at most sqrt(k d
 * u), and the mean of N parameters by that over sqrt(N). In addition, the noise of v lengthens steps by 3/8 of its
 * variance, below 1 % (docs/objective.md). */
static void small_bf16_steps_add_up(void **state)
{
    (void)state;
    enum { STEPS = 300 };
    struct numbers o = plain;
    o.lr = 1e-3f;
    fill(&a, 1, 0, 0, 0);
    for (int k = 1; k <= STEPS; k++) {
        memcpy(a.g, a.w, sizeof a.g);
        o.updates = (float)k;
        update(&a, &o, 1 - powf(o.beta1, (float)k), 1 - powf(o.beta2, (float)k));
    }
    const double want = (double)descend(STEPS, o.beta2, false);
    const double bound = 5 * sqrt(STEPS * 1e-3 * 0x1p-8 / N) + 0.01 * (1 - want);
    const double got = mean_of(a.w);
    if (!(fabs(got - want) <= bound))
        fail_msg("mean %.6g, in float32 %.6g, bound %.2g", got, want, bound);
    assert_true(want < 0.75 && descend(STEPS, o.beta2, true) == 1);
}

/* beta2 v lies within half a unit of v for beta2 = 0.999, so rounded to nearest it never falls. */
static void second_moments_fade(void **state)
{
    (void)state;
    enum { STEPS = 500 };
    struct numbers o = plain;
    float nearest = 1;
    double mean = 0;
    fill(&a, 1, 0, 1, 0);
    for (int k = 1; k <= STEPS; k++) {
        o.updates = (float)k;
        update(&a, &o, 1, 1);
        nearest *= o.beta2;
        round_to_nearest(&nearest, 1);
    }
    for (int i = 0; i < N; i++)
        mean += (double)f32_from_bf16(a.v[i]) / N;
    const double want = pow(0.999, STEPS);
    const double bound = 5 * sqrt(STEPS * 1e-3 * 0x1p-8 / N);
    if (!(fabs(mean - want) <= bound))
        fail_msg("mean %.6g, expected %.6g within %.2g", mean, want, bound);
    assert_true(nearest == 1);
}

static int setup(void **state)
{
    (void)state;
    const struct nj_options options = {.device = NJ_DEVICE_CPU};
    return nj_context_create(&ctx, &options) != 0 || nj_stream_create(ctx, &s) != 0;
}

static int teardown(void **state)
{
    (void)state;
    nj_stream_destroy(s);
    nj_context_destroy(ctx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_updates_are_those_of_adamw),
        cmocka_unit_test(skipped_updates_change_nothing),
        cmocka_unit_test(rounding_to_bf16_is_unbiased),
        cmocka_unit_test(draws_of_neighbours_are_apart),
        cmocka_unit_test(draws_depend_on_seed_step_and_place_alone),
        cmocka_unit_test(exact_bf16_values_stay),
        cmocka_unit_test(small_bf16_steps_add_up),
        cmocka_unit_test(second_moments_fade),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
