/* SPDX-License-Identifier: Apache-2.0
 *
 * shuffle.c: see shuffle.h.
 *
 * An epoch has as many rows as all sources together, and each source gives its share of them. The
 * positions of an epoch are permuted, then counted off source by source; a source serves its draws,
 * numbered through all epochs, from passes of its own over its rows.
 */
#include "batch/shuffle.h"

#include "io/random.h"

#include <math.h>

/* Permute [0, n): four Feistel rounds over the next even number of bits, repeated until the result is below n (Black
 * and Rogaway 2002). */
static uint64_t permute(uint64_t i, uint64_t n, uint64_t key)
{
    int half = 1;
    while (half < 31 && (uint64_t)1 << 2 * half < n)
        half++;
    const uint64_t low = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & low;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t next = left ^ (random_mix(key + round + (right << 8)) & low);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* Return the row of a source's draw, counted from the first epoch on. */
static uint64_t row_of(const struct order *o, size_t source, uint64_t draw)
{
    const struct share *s = &o->share[source];
    const uint64_t rows = (uint64_t)s->rows, pass = draw / rows;
    /* Whole passes in every epoch: all rows come, and the epoch's order has mixed them already. */
    if (o->seed == 0 || s->draws % s->rows == 0)
        return draw % rows;
    return permute(draw % rows, rows, random_mix(random_mix(random_mix(o->seed) + source) + pass));
}

struct row_place order_at(const struct order *o, uint64_t epoch, uint64_t position)
{
    size_t i = 0;
    if (o->seed != 0)
        position = permute(position, (uint64_t)o->total, random_mix(random_mix(o->seed) + epoch));
    for (; position >= (uint64_t)o->share[i].draws; i++)
        position -= (uint64_t)o->share[i].draws;
    const uint64_t draw = epoch * (uint64_t)o->share[i].draws + position;
    return (struct row_place){i, (int64_t)row_of(o, i, draw)};
}

/* Return the source whose draws are farthest below its share (step 1), or above it (step -1). */
static struct share *farthest(const struct order *o, int step)
{
    struct share *worst = NULL;
    double most = 0;
    for (struct share *s = o->share; s < o->share + o->count; s++) {
        const double apart = step * (s->weight * (double)o->total - (double)s->draws);
        if ((s->draws > 1 || step > 0) && (!worst || apart > most)) {
            worst = s;
            most = apart;
        }
    }
    return worst;
}

/* Round the draws down, but not to 0; then change those that are farthest from their share until the sum is right. */
void order_divide(struct order *o)
{
    int64_t left = 0;
    for (size_t i = 0; i < o->count; i++)
        left += o->share[i].rows;
    o->total = left;
    for (size_t i = 0; i < o->count; i++) {
        o->share[i].draws = (int64_t)fmax(1, floor(o->share[i].weight * (double)o->total));
        left -= o->share[i].draws;
    }
    for (const int step = left < 0 ? -1 : 1; left != 0; left -= step)
        farthest(o, step)->draws += step;
}
