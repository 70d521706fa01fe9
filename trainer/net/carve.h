/* SPDX-License-Identifier: Apache-2.0
 *
 * carve.h: memory carved from one arena.
 */
#ifndef NOJIT_TRAINER_CARVE_H
#define NOJIT_TRAINER_CARVE_H

#include <stdbool.h>
#include <stddef.h>

/* Cells of an arena. Where a driver limits an allocation, the arena is a row of cells of that size, each an
 * allocation. No array crosses a border, except one that is larger than a cell, whose cells are joined to one
 * allocation. The rest of a cell behind its last array is not allocated. */
enum { CARVE_CELLS = 64 };
struct carve_pieces {
    size_t limit;             /* bytes of a cell */
    size_t most;              /* bytes of the largest array */
    size_t used[CARVE_CELLS]; /* bytes used of each cell, from its beginning */
    bool joined[CARVE_CELLS]; /* flags: the cell is joined to the one before */
    char *base[CARVE_CELLS];  /* address of each cell; NULL while bytes are only counted */
};

/* An arena that memory is carved from. With base NULL bytes are only counted, by checked.h: SIZE_MAX is more than
 * can be addressed. */
enum { CARVE_ALIGN = 256 };
struct carve {
    char *base;
    size_t used;
    struct carve_pieces *pieces; /* cells of the arena; NULL: it is one piece */
};
void *carve_take(struct carve *c, size_t bytes);
/* Arrays of `each` bytes, laid out one after another in runs of `in_run`, as many as a piece has room for. */
struct carve_series {
    size_t each;
    size_t in_run;
    char *run[CARVE_CELLS];
};
void carve_take_series(struct carve *c, size_t count, size_t each, struct carve_series *out);
void *carve_item(const struct carve_series *s, size_t i);
/* Go on to a new piece if this one has no room for `bytes` bytes, so that the arrays carved from them lie
 * together. */
void carve_together(struct carve *c, size_t bytes);
/* Begin a new piece, if there are pieces. */
void carve_apart(struct carve *c);
void *carve_at(const struct carve *c, size_t offset);
/* Return the bytes to allocate for what was carved. */
size_t carve_bytes(const struct carve *c);
/* Return the first offset from this one on at which memory is allocated. */
size_t carve_begin(const struct carve *c, size_t offset);
/* Return the bytes that lie together from an offset on. */
size_t carve_room(const struct carve *c, size_t offset);

/* Return the bytes of the allocation that begins with a cell; 0: the cell is joined, or empty. */
size_t carve_piece_bytes(const struct carve_pieces *p, int cell);
/* Set the address of the allocation that begins with a cell. */
void carve_place(struct carve_pieces *p, int cell, char *base);
/* Forget what has been carved, but not the addresses of the cells. */
void carve_again(struct carve_pieces *p);

#endif
