/* SPDX-License-Identifier: Apache-2.0
 *
 * gradients.h: code shared by the tests of the references: random inputs from a pool that each test resets, and
 * gradients checked against central differences.
 */
#ifndef NOJIT_TEST_GRADIENTS_H
#define NOJIT_TEST_GRADIENTS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { POOL = 1 << 20 };
static double pool[POOL];
static size_t pool_used;
static uint64_t rng;

static inline int reset(void **state)
{
    (void)state;
    pool_used = 0;
    rng = 20240607;
    return 0;
}

static inline double uniform(void)
{
    rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(rng >> 11) * 0x1p-53;
}

static inline double *zeros(size_t n)
{
    assert_true(pool_used + n <= POOL);
    double *x = pool + pool_used;
    pool_used += n;
    memset(x, 0, n * sizeof(*x));
    return x;
}

/* Return n random values with mean 0 and variance 1. */
static inline double *random_values(size_t n)
{
    double *x = zeros(n);
    for (size_t i = 0; i < n; i++)
        x[i] = sqrt(12.0) * (uniform() - 0.5);
    return x;
}

static inline double *copy(const double *from, size_t n)
{
    return memcpy(zeros(n), from, n * sizeof(*from));
}

static inline double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static inline void assert_close(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
        fail_msg("got %.17g, want %.17g", got, want);
}

static inline void assert_all_close(const double *got, const double *want, size_t n,
                                    double tolerance)
{
    for (size_t i = 0; i < n; i++)
        assert_close(got[i], want[i], tolerance);
}

/* Compare the change of loss(args) along random directions of x[n] with grad. */
static inline void check_gradient(double (*loss)(void *args), void *args, double *x,
                                  const double *grad, size_t n)
{
    const size_t mark = pool_used;
    double *at = copy(x, n);
    const double step = 1e-5;
    for (int trial = 0; trial < 3; trial++) {
        double *u = random_values(n), side[2];
        for (int k = 0; k < 2; k++) {
            const size_t inner = pool_used;
            for (size_t i = 0; i < n; i++)
                x[i] = at[i] + (k ? -step : step) * u[i];
            side[k] = loss(args);
            pool_used = inner;
        }
        memcpy(x, at, n * sizeof(*x));
        const double got = dot(grad, u, n), want = (side[0] - side[1]) / (2 * step);
        const double size = sqrt(dot(grad, grad, n));
        assert_true(size > 0);
        if (!(fabs(got - want) <= 1e-6 * size))
            fail_msg("trial %d: gradient %.12g, difference %.12g", trial, got, want);
    }
    pool_used = mark;
}

#endif
