/* SPDX-License-Identifier: Apache-2.0
 *
 * test_schedule.c: the curve of the learning rate, step by step.
 */
#include "engine/engine.h"
#include "unit.h"

#include <math.h>

static struct train_options hundred(enum schedule schedule)
{
    return (struct train_options){
        .steps = 100, .warmup_steps = 10, .lr = 1, .min_lr_ratio = 0.1f, .schedule = schedule};
}

static void near(double got, double want, int64_t step)
{
    if (!(fabs(got - want) < 1e-6))
        fail_msg("step %lld: rate %.9g, expected %.9g", (long long)step, got, want);
}

static void cosine_linear_and_constant_are_those_of_their_formulas(void **state)
{
    (void)state;
    for (int64_t step = 1; step <= 100; step++) {
        const double x = step > 10 ? (double)(step - 10) / 90.0 : 0.0;
        const double left[] = {[SCHEDULE_COSINE] = (1.0 + cos(x * acos(-1.0))) / 2.0,
                               [SCHEDULE_LINEAR] = 1.0 - x,
                               [SCHEDULE_CONSTANT] = 1.0};
        for (int s = SCHEDULE_COSINE; s <= SCHEDULE_CONSTANT; s++) {
            const struct train_options o = hundred((enum schedule)s);
            near((double)schedule_lr(&o, step),
                 step < 10 ? (double)step / 10.0 : 0.1 + 0.9 * left[s], step);
        }
    }
}

/* The peak from step 10 to step 90, then floor + 0.9 (1 - sqrt(x)) with x = (step - 90) / 10. */
static void the_wsd_curve_is_that_of_the_formula(void **state)
{
    (void)state;
    const struct train_options o = hundred(SCHEDULE_WSD);
    for (int64_t step = 1; step <= 100; step++) {
        const double x = step > 90 ? (double)(step - 90) / 10.0 : 0.0;
        const double want = step < 10 ? (double)step / 10.0 : 0.1 + 0.9 * (1.0 - sqrt(x));
        near((double)schedule_lr(&o, step), want, step);
    }
    near((double)schedule_lr(&o, 100), 0.1, 100);
}

/* A tenth of 15 steps is two of them; a tenth of 3 is one. */
static void the_decay_of_wsd_rounds_up(void **state)
{
    (void)state;
    struct train_options o = hundred(SCHEDULE_WSD);
    o.warmup_steps = 0;
    o.steps = 15;
    near((double)schedule_lr(&o, 13), 1, 13);
    near((double)schedule_lr(&o, 14), 0.1 + 0.9 * (1 - sqrt(0.5)), 14);
    o.steps = 3;
    near((double)schedule_lr(&o, 2), 1, 2);
    near((double)schedule_lr(&o, 3), 0.1, 3);
    o.steps = 1;
    near((double)schedule_lr(&o, 1), 0.1, 1);
}

/* If the warm-up reaches into the last tenth, the decay takes what is left, without a jump. */
static void wsd_after_a_long_warmup_decays(void **state)
{
    (void)state;
    struct train_options o = hundred(SCHEDULE_WSD);
    o.warmup_steps = 96;
    near((double)schedule_lr(&o, 96), 1, 96);
    near((double)schedule_lr(&o, 97), 0.1 + 0.9 * (1 - sqrt(0.25)), 97);
    near((double)schedule_lr(&o, 100), 0.1, 100);
}

/* After the warm-up no schedule rises, and none leaves [floor, peak]. */
static void no_schedule_rises_after_its_warmup(void **state)
{
    (void)state;
    for (int s = SCHEDULE_COSINE; s <= SCHEDULE_WSD; s++) {
        const struct train_options o = hundred((enum schedule)s);
        for (int64_t step = 10; step <= 100; step++) {
            const double rate = (double)schedule_lr(&o, step);
            assert_true(rate > 0.1 - 1e-6 && rate < 1 + 1e-6);
            assert_true(step == 10 || rate <= (double)schedule_lr(&o, step - 1) + 1e-7);
        }
    }
}

static void a_warmup_ratio_is_a_number_of_steps(void **state)
{
    (void)state;
    assert_int_equal(schedule_warmup(0, 100), 0);
    assert_int_equal(schedule_warmup(0.07, 100), 7);
    assert_int_equal(schedule_warmup(0.03, 1000), 30);
    assert_int_equal(schedule_warmup(0.1, 11), 2);
    assert_int_equal(schedule_warmup(0.5, 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cosine_linear_and_constant_are_those_of_their_formulas),
        cmocka_unit_test(the_wsd_curve_is_that_of_the_formula),
        cmocka_unit_test(the_decay_of_wsd_rounds_up),
        cmocka_unit_test(no_schedule_rises_after_its_warmup),
        cmocka_unit_test(wsd_after_a_long_warmup_decays),
        cmocka_unit_test(a_warmup_ratio_is_a_number_of_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
