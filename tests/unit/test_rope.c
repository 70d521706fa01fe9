/* SPDX-License-Identifier: Apache-2.0
 *
 * test_rope.c: tables of rotations against figures that transformers 5.24 computes for the same configurations
 * (modeling_rope_utils.py; heads of 64 elements, 1,024 original positions).
 */
#include "model/rope.h"
#include "unit.h"

#include <math.h>

enum { HEAD_DIM = 64, SHORT = 1024, LONG = 1025, FIGURES = 5 };

static void check_near(double found, double wanted, const char *what, int i)
{
    if (!(fabs(found - wanted) <= 2e-6 * fabs(wanted)))
        fail_msg("%s, %d: %.9g, expected %.9g", what, i, found, wanted);
}

/* Set divisors first + i step of `count` pairs. */
static void set_divisors(float *out, double first, double step, int count)
{
    for (int i = 0; i < count; i++)
        out[i] = (float)(first + i * step);
}

static struct rope longrope(double theta, int pairs)
{
    struct rope r = {
        .theta = theta, .rule = ROPE_LONGROPE, .scaling = {.original_positions = SHORT}};
    set_divisors(r.short_factor, 1, 0.01, pairs);
    set_divisors(r.long_factor, 2, 1, pairs);
    return r;
}

static void frequencies_are_those_of_transformers(void **state)
{
    (void)state;
    static const struct rope yarn = {.theta = 1e4,
                                     .rule = ROPE_YARN,
                                     .scaling = {.factor = 8, .original_positions = SHORT},
                                     .beta_fast = 32,
                                     .beta_slow = 1,
                                     .truncate = true},
                             whole = {.theta = 1e4,
                                      .rule = ROPE_YARN,
                                      .scaling = {.factor = 8, .original_positions = SHORT},
                                      .beta_fast = 16,
                                      .beta_slow = 2};
    const struct rope four = longrope(1e4, 32);
    struct rope part = longrope(1e4, 24);
    part.rotary = 48;
    const struct {
        const char *name;
        struct rope r;
        int positions;
        struct {
            int pair;
            double frequency;
        } figure[FIGURES];
    } rows[] = {
        {"linear",
         {.theta = 5e5, .rule = ROPE_LINEAR, .scaling = {.factor = 4}},
         SHORT,
         {{0, 0.25}, {1, 0.16590032}, {31, 7.5346452e-07}}},
        {"yarn",
         yarn,
         SHORT,
         {{0, 1}, {8, 0.079807699}, {12, 0.016723584}, {16, 0.0025961539}, {31, 1.6669019e-05}}},
        {"yarn between whole pairs",
         whole,
         SHORT,
         {{0, 1}, {8, 0.1}, {12, 0.016548309}, {16, 0.00125}, {31, 1.6669019e-05}}},
        {"longrope, short", four, SHORT, {{0, 1}, {5, 0.22584513}, {31, 0.00010179554}}},
        {"longrope, long", four, LONG, {{0, 0.5}, {5, 0.033876766}, {31, 4.0409741e-06}}},
        {"longrope of a part", part, SHORT, {{0, 1}, {5, 0.13979042}, {23, 0.0001193333}}},
        {"longrope of a part, long", part, LONG, {{0, 0.5}, {5, 0.02096856}, {23, 5.871198e-06}}},
        {"a quarter", {.theta = 1e4, .rotary = 16}, SHORT, {{0, 1}, {7, 0.00031622779}}},
        {"ntk",
         {.theta = 1e4, .rule = ROPE_NTK, .alpha = 1000},
         SHORT,
         {{0, 1}, {1, 0.60010302}, {31, 1.3335215e-07}}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int f = 0; f < FIGURES && rows[k].figure[f].frequency > 0; f++) {
            const int i = rows[k].figure[f].pair;
            check_near(rope_frequency(&rows[k].r, HEAD_DIM, i) *
                           rope_slowing(&rows[k].r, HEAD_DIM, i, rows[k].positions),
                       rows[k].figure[f].frequency, rows[k].name, i);
        }
}

static void amplitudes_follow_from_the_factor(void **state)
{
    (void)state;
    struct rope r = {.rule = ROPE_YARN, .scaling = {.factor = 8, .original_positions = SHORT}};
    check_near((double)rope_natural_amplitude(&r), 1.20794415, "yarn", 8);
    r.rule = ROPE_LONGROPE;
    check_near((double)rope_natural_amplitude(&r), 1.14017543, "longrope", 8);
    r.scaling.factor = 3;
    check_near((double)rope_natural_amplitude(&r), 1.07633464, "longrope", 3);
    r.scaling.factor = 1;
    check_near((double)rope_natural_amplitude(&r), 1, "longrope", 1);
    r.rule = ROPE_YARN;
    check_near((double)rope_natural_amplitude(&r), 1, "yarn", 1);
    r.scaling.factor = 8;
    r.rule = ROPE_LINEAR;
    check_near((double)rope_natural_amplitude(&r), 1, "linear", 8);
    assert_true(rope_amplitude(&r) == 1);
    r.amplitude = 1.25f;
    assert_true(rope_amplitude(&r) == 1.25f);
}

static void nothing_rotates_without_a_rule(void **state)
{
    (void)state;
    const struct rope none = {.theta = 1e4, .rule = ROPE_NONE, .rotary = 16},
                      plain = {.theta = 1e4};
    assert_int_equal(rope_rotary(&none, HEAD_DIM), 0);
    assert_int_equal(rope_rotary(&plain, HEAD_DIM), HEAD_DIM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_are_those_of_transformers),
        cmocka_unit_test(amplitudes_follow_from_the_factor),
        cmocka_unit_test(nothing_rotates_without_a_rule),
    };
    return cmocka_run_group_tests_name("rope", tests, NULL, NULL);
}
