/* SPDX-License-Identifier: Apache-2.0
 *
 * shuffle.h: inside of data.c: the order of the rows of all sources, as a function of (seed, epoch, position) alone.
 */
#ifndef NOJIT_TRAINER_ORDER_H
#define NOJIT_TRAINER_ORDER_H

#include <stddef.h>
#include <stdint.h>

struct share {
    double weight; /* share of the sum of all weights */
    int64_t rows;  /* number of rows of the source */
    int64_t draws; /* number of rows that it gives to an epoch */
};
struct order {
    uint64_t seed; /* seed of the order; 0: rows keep their order */
    struct share *share;
    size_t count;
    int64_t total; /* number of rows of an epoch */
};
struct row_place {
    size_t source;
    int64_t row;
};

/* Set total and every source's draws from weights and rows. */
void order_divide(struct order *o);
struct row_place order_at(const struct order *o, uint64_t epoch, uint64_t position);

#endif
