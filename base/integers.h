/* SPDX-License-Identifier: Apache-2.0
 *
 * integers.h: minimum, maximum and rounding up of integers that are known not to overflow. Sizes that come from files
 * and options use checked.h.
 */
#ifndef NOJIT_INTEGERS_H
#define NOJIT_INTEGERS_H

#include <stdint.h>

static inline int int_min(int a, int b)
{
    return a < b ? a : b;
}

static inline int int_max(int a, int b)
{
    return a > b ? a : b;
}

/* Return a / b, rounded up; a >= 0, b > 0. */
static inline int int_ceil_div(int a, int b)
{
    return a / b + (a % b != 0);
}

/* Return a, rounded up to a multiple; a >= 0, multiple > 0. */
static inline int int_round_up(int a, int multiple)
{
    return int_ceil_div(a, multiple) * multiple;
}

static inline int64_t i64_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t i64_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Return a / b, rounded up; a >= 0, b > 0. */
static inline int64_t i64_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

#endif
