/* SPDX-License-Identifier: Apache-2.0
 *
 * shuffle.h: inside of data.c: which row of which source comes when, as a function of (seed, epoch,
 * position) alone.
 */
#ifndef NOJIT_TRAINER_ORDER_H
#define NOJIT_TRAINER_ORDER_H

#include <stddef.h>
#include <stdint.h>

struct share {
    double weight; /* of all weights, which sum to 1 */
    int64_t rows;  /* that the source has */
    int64_t draws; /* rows that it gives to an epoch */
};
struct order {
    uint64_t seed; /* 0: rows come as they lie */
    struct share *share;
    size_t count;
    int64_t total; /* rows of an epoch */
};
struct row_place {
    size_t source;
    int64_t row;
};

/* Sets total and every source's draws from weights and rows. */
void order_divide(struct order *o);
struct row_place order_at(const struct order *o, uint64_t epoch, uint64_t position);

#endif
