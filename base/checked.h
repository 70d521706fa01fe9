/* SPDX-License-Identifier: Apache-2.0
 *
 * checked.h: sums and products of sizes that come from files and options. They saturate at SIZE_MAX instead of
 * wrapping, so code that adds up sizes reads as arithmetic, and one comparison at its end refuses a size that cannot be
 * addressed.
 */
#ifndef NOJIT_CHECKED_H
#define NOJIT_CHECKED_H

#include <stddef.h>
#include <stdint.h>

static inline size_t size_add(size_t a, size_t b)
{
    size_t sum;
    return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

static inline size_t size_mul(size_t a, size_t b)
{
    size_t product;
    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

/* Return a - b, where b <= a; SIZE_MAX stays SIZE_MAX. */
static inline size_t size_sub(size_t a, size_t b)
{
    return a == SIZE_MAX ? a : a - b;
}

/* Return a, rounded up to a multiple. */
static inline size_t size_up(size_t a, size_t multiple)
{
    const size_t rest = a % multiple;
    return rest == 0 ? a : size_add(a, multiple - rest);
}

static inline size_t size_product_of(const size_t *factor, size_t count)
{
    size_t product = 1;
    for (size_t i = 0; i < count; i++)
        product = size_mul(product, factor[i]);
    return product;
}

/* Return the product of any number of factors. */
#define size_product(...)                                                                          \
    size_product_of((const size_t[]){__VA_ARGS__},                                                 \
                    sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

#endif
