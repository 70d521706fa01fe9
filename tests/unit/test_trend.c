/* SPDX-License-Identifier: Apache-2.0
 *
 * test_trend.c: which loss curves count as diverged: those that rise for good, not noisy ones.
 */
#include <math.h>

#include "run/trend.h"
#include "unit.h"

enum { VOCAB = 50000, STEPS = 400 };

/* Return a number in [-1, 1) that depends only on i. */
static double noise(int i)
{
    const unsigned long long z = ((unsigned long long)i + 1) * 0x9e3779b97f4a7c15ULL;
    return (double)((z ^ (z >> 31)) % 2000) / 1000 - 1;
}

static double falling(int i)
{
    return 2 + 8 * exp(-i / 40.0);
}
static double noisy(int i)
{
    return falling(i) + 1.2 * noise(i);
}
/* and stays at the loss of a model that knows only the frequencies of tokens */
static double blown_up(int i)
{
    return i < 150 ? falling(i) : 7.4 + 0.2 * noise(i);
}
static double from_a_good_model(int i)
{
    return i < 10 ? 1.9 + 0.1 * noise(i) : 6.8 + 0.3 * noise(i);
}
static double at_once(int i)
{
    return i == 0 ? 10.8 : 90 + 20 * noise(i);
}
static double one_bad_batch(int i)
{
    return i == STEPS - 1 ? 30 : noisy(i);
}
static double slow_rise(int i) /* by half a nat */
{
    return 2.4 + 0.5 * i / STEPS + 0.2 * noise(i);
}
static double small_and_noisy(int i)
{
    return 0.4 + 0.39 * noise(i);
}
static double recovered(int i)
{
    return i > 100 && i < 140 ? 9 : falling(i);
}
static double never(int i)
{
    (void)i;
    return (double)NAN;
}

static bool diverges(double (*loss)(int), int steps)
{
    struct trend t;
    trend_begin(&t, steps);
    for (int i = 0; i < steps; i++)
        trend_add(&t, loss(i));
    return trend_diverged(&t, VOCAB);
}

static void losses_that_rise_for_good_are_found(void **state)
{
    (void)state;
    assert_true(diverges(blown_up, STEPS));
    assert_true(diverges(from_a_good_model, STEPS));
    assert_true(diverges(at_once, STEPS));
    assert_true(diverges(at_once, 6));
    assert_true(diverges(blown_up, 361)); /* the last stretch is short */
}

static void noise_is_not(void **state)
{
    static double (*const curves[])(int) = {falling,         noisy,     one_bad_batch, slow_rise,
                                            small_and_noisy, recovered, never};
    (void)state;
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        for (int steps = 1; steps <= STEPS; steps += 7)
            if (curves[i] != recovered || steps < 100 || steps > 200)
                assert_false(diverges(curves[i], steps));
    assert_false(diverges(one_bad_batch, STEPS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_that_rise_for_good_are_found),
        cmocka_unit_test(noise_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
