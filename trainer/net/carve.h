/* SPDX-License-Identifier: Apache-2.0
 *
 * carve.h: memory carved from one arena.
 */
#ifndef NOJIT_TRAINER_CARVE_H
#define NOJIT_TRAINER_CARVE_H

#include <stdbool.h>
#include <stddef.h>

/* Where a driver limits an allocation, the arena is a row of cells of that size, of which each is an allocation: no
 * array lies across a border, but one that is larger than a cell, whose cells are joined to one allocation. What
 * follows the last array of a cell is not allocated. */
enum { CARVE_CELLS = 64 };
struct carve_pieces {
    size_t limit;             /* of a cell */
    size_t most;              /* bytes of the largest array */
    size_t used[CARVE_CELLS]; /* of each cell, from its beginning */
    bool joined[CARVE_CELLS]; /* with the cell before */
    char *base[CARVE_CELLS];  /* NULL while they are only counted */
};

/* Memory is carved from one arena. With base NULL it is only counted, by checked.h: SIZE_MAX is more than
 * can be addressed. */
enum { CARVE_ALIGN = 256 };
struct carve {
    char *base;
    size_t used;
    struct carve_pieces *pieces; /* NULL: all of it is one piece */
};
void *carve_take(struct carve *c, size_t bytes);
/* Arrays of as many bytes each, one behind the other as far as a piece has room for them: as many as `in_run`. */
struct carve_series {
    size_t each;
    size_t in_run;
    char *run[CARVE_CELLS];
};
void carve_take_series(struct carve *c, size_t count, size_t each, struct carve_series *out);
void *carve_item(const struct carve_series *s, size_t i);
/* The arrays of the next so many bytes lie together. */
void carve_together(struct carve *c, size_t bytes);
/* What follows begins with a piece of its own, if there are pieces. */
void carve_apart(struct carve *c);
void *carve_at(const struct carve *c, size_t offset);
/* What is to be allocated for what was carved. */
size_t carve_bytes(const struct carve *c);
/* Return the first offset from this one on at which memory is allocated. */
size_t carve_begin(const struct carve *c, size_t offset);
/* Return the bytes that lie together from an offset on. */
size_t carve_room(const struct carve *c, size_t offset);

/* Bytes of the allocation that begins with a cell; 0: the cell is joined, or nothing is in it. */
size_t carve_piece_bytes(const struct carve_pieces *p, int cell);
/* Says where the allocation that begins with a cell lies. */
void carve_place(struct carve_pieces *p, int cell, char *base);
/* Forget what has been carved, but not where the cells lie. */
void carve_again(struct carve_pieces *p);

#endif
