/* SPDX-License-Identifier: Apache-2.0
 *
 * carve.h: arrays carved from an arena.
 */
#ifndef NOJIT_TRAINER_CARVE_H
#define NOJIT_TRAINER_CARVE_H

#include <stdbool.h>
#include <stddef.h>

/* Cells of an arena. If a driver limits the size of an allocation, an arena consists of cells of that size, each of
 * which is an allocation. No array crosses from one cell to the next, unless it is larger than a cell: the cells of
 * such an array are one allocation. The part of a cell after its last array is not allocated. */
enum { CARVE_CELLS = 64 };
struct carve_cells {
    size_t limit;             /* bytes of a cell */
    size_t most;              /* bytes of the largest array */
    size_t used[CARVE_CELLS]; /* bytes used of each cell, from its beginning */
    bool joined[CARVE_CELLS]; /* whether the cell belongs to the allocation of the one before */
    char *base[CARVE_CELLS];  /* address of each cell; NULL while arrays are only counted */
};

/* An arena. If base is NULL, arrays are only counted, with saturating sums (checked.h): SIZE_MAX is more than can be
 * addressed. */
enum { CARVE_ALIGN = 256 };
struct carve {
    char *base;
    size_t used;
    struct carve_cells *cells; /* cells of the arena; NULL: it is one allocation */
};
void *carve_take(struct carve *c, size_t bytes);
/* Arrays of `each` bytes in runs of up to `in_run` arrays, as many as fit into a cell. */
struct carve_series {
    size_t each;
    size_t in_run;
    char *run[CARVE_CELLS];
};
void carve_take_series(struct carve *c, size_t count, size_t each, struct carve_series *out);
void *carve_item(const struct carve_series *s, size_t i);
/* Continue in a new cell if this one has less than `bytes` bytes left, so that the arrays carved next lie in one
 * allocation. */
void carve_together(struct carve *c, size_t bytes);
/* Continue in a new cell, if the arena has cells. */
void carve_new_cell(struct carve *c);
void *carve_at(const struct carve *c, size_t offset);
/* Return the bytes to allocate for the arrays carved so far. */
size_t carve_bytes(const struct carve *c);
/* Return the first offset, at or after this one, at which memory is allocated. */
size_t carve_begin(const struct carve *c, size_t offset);
/* Return the bytes of contiguous memory that follow an offset. */
size_t carve_room(const struct carve *c, size_t offset);

/* Return the bytes of the allocation that begins with a cell; 0 if the cell is empty or belongs to an earlier one. */
size_t carve_cell_bytes(const struct carve_cells *p, int cell);
/* Set the address of the allocation that begins with a cell. */
void carve_place(struct carve_cells *p, int cell, char *base);
/* Forget the carved arrays, but keep the addresses of the cells. */
void carve_again(struct carve_cells *p);

#endif
