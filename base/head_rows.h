/* SPDX-License-Identifier: Apache-2.0
 *
 * head_rows.h: the order of the elements of heads. Kernels rotate element i of a head with element i + D/2; where only
 * the first R elements of a file's head rotate, as two halves of R/2, these become the first of each half.
 */
#ifndef NOJIT_HEAD_ROWS_H
#define NOJIT_HEAD_ROWS_H

#include <stdint.h>

/* Return the element of a file's head that becomes element i of a kernel's. */
static inline int head_element(int D, int rotary, int i)
{
    const int half = i >= D / 2, at = i - half * (D / 2), pairs = rotary / 2;
    return at < pairs ? at + half * pairs : 2 * pairs + half * (D / 2 - pairs) + at - pairs;
}

/* Return the element of a kernel's head that element e of a file's becomes, and in *count how many elements from there
 * on follow each other in both. */
static inline int head_place(int D, int rotary, int e, int *count)
{
    if (rotary == 0) {
        *count = D - e;
        return e;
    }
    const int pairs = rotary / 2, others = D / 2 - pairs, rotates = e < 2 * pairs;
    const int run = rotates ? pairs : others, at = rotates ? e : e - 2 * pairs;
    *count = run - at % run;
    return at / run * (D / 2) + (rotates ? 0 : pairs) + at % run;
}

/* How a file has the rows of `heads` heads: D rows of each, of which `rotary` rotate, `stride` rows from one head to
 * the next, from row `first` on. heads 0: as kernels have them. */
struct head_order {
    int heads, D, stride, first, rotary;
};

/* Return the row of a file that becomes a row for kernels. */
static inline int64_t head_order_row(const struct head_order *o, int64_t row)
{
    return row / o->D * o->stride + o->first + head_element(o->D, o->rotary, (int)(row % o->D));
}

/* How a file has the heads of several groups: those of a group stand `groups` apart from each other, where kernels have
 * them together. D elements of each head, behind `before` others. each: number of heads of a group; below 2: as kernels
 * have them. */
struct head_tiles {
    int groups, each, D;
    int64_t before;
};

/* Move an element to its place in an order of heads whose groups have `inner` heads, from one of groups of `outer`. */
static inline int64_t head_tiles_move(const struct head_tiles *t, int64_t i, int outer, int inner)
{
    const int64_t at = i - t->before;
    if (t->each < 2 || at < 0)
        return i;
    const int64_t head = at / t->D;
    return t->before + (head % outer * inner + head / outer) * t->D + at % t->D;
}
/* Return the element of a file that becomes element i for kernels, and the reverse. */
static inline int64_t head_tiles_element(const struct head_tiles *t, int64_t i)
{
    return head_tiles_move(t, i, t->each, t->groups);
}
static inline int64_t head_tiles_place(const struct head_tiles *t, int64_t i)
{
    return head_tiles_move(t, i, t->groups, t->each);
}

#endif
