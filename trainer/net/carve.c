/* SPDX-License-Identifier: Apache-2.0
 *
 * carve.c: see carve.h.
 */
#include "net/carve.h"

#include "base/check.h"
#include "base/checked.h"

#include <string.h>

void *carve_at(const struct carve *c, size_t offset)
{
    const struct carve_cells *p = c->cells;
    if (p == NULL)
        return c->base ? c->base + offset : NULL;
    const size_t cell = offset / p->limit;
    return cell < CARVE_CELLS && p->base[cell] ? p->base[cell] + offset % p->limit : NULL;
}

void carve_together(struct carve *c, size_t bytes)
{
    const struct carve_cells *p = c->cells;
    const size_t in = p ? c->used % p->limit : 0;
    if (in > 0 && bytes > p->limit - in)
        c->used = size_add(c->used, p->limit - in);
}

void carve_new_cell(struct carve *c)
{
    carve_together(c, SIZE_MAX);
}

/* Note the bytes used of each cell. Every cell but the last of an array larger than a cell is full. An array that
 * needs more cells than there are is too large. */
static void fill_cells(struct carve *c, size_t bytes)
{
    struct carve_cells *p = c->cells;
    size_t cell = c->used / p->limit, end = size_add(c->used % p->limit, bytes);
    if (bytes > p->most)
        p->most = bytes;
    for (; end > p->limit && cell + 1 < CARVE_CELLS; cell++, end -= p->limit) {
        p->used[cell] = p->limit;
        p->joined[cell + 1] = true;
    }
    if (end > p->limit || cell >= CARVE_CELLS)
        c->used = SIZE_MAX;
    else if (end > p->used[cell])
        p->used[cell] = end;
}

void *carve_take(struct carve *c, size_t bytes)
{
    const size_t whole = size_up(bytes, CARVE_ALIGN);
    carve_together(c, whole);
    void *at = carve_at(c, c->used);
    if (c->cells && whole > 0)
        fill_cells(c, whole);
    c->used = size_add(c->used, whole);
    return at;
}

void carve_take_series(struct carve *c, size_t count, size_t each, struct carve_series *out)
{
    const size_t room = c->cells && each > 0 ? c->cells->limit / each : count;
    *out = (struct carve_series){.each = each, .in_run = room > 0 ? room : 1};
    for (size_t left = count, run = 0; left > 0; run++) {
        const size_t taken = left < out->in_run ? left : out->in_run;
        if (run == CARVE_CELLS) { /* more runs than there are cells */
            c->used = SIZE_MAX;
            return;
        }
        out->run[run] = carve_take(c, size_mul(taken, each));
        left = size_sub(left, taken);
    }
}

void *carve_item(const struct carve_series *s, size_t i)
{
    CHECK(i / s->in_run < CARVE_CELLS);
    return s->run[i / s->in_run] + i % s->in_run * s->each;
}

size_t carve_bytes(const struct carve *c)
{
    size_t bytes = 0;
    if (c->cells == NULL || c->used == SIZE_MAX)
        return c->used;
    for (int i = 0; i < CARVE_CELLS; i++)
        bytes = size_add(bytes, c->cells->used[i]);
    return bytes;
}

size_t carve_begin(const struct carve *c, size_t offset)
{
    const struct carve_cells *p = c->cells;
    if (p == NULL || offset / p->limit >= CARVE_CELLS)
        return offset;
    const size_t in = offset % p->limit;
    return p->used[offset / p->limit] > in ? offset : offset - in + p->limit;
}

size_t carve_room(const struct carve *c, size_t offset)
{
    const struct carve_cells *p = c->cells;
    if (p == NULL)
        return size_sub(c->used, offset);
    const size_t cell = offset / p->limit, in = offset % p->limit;
    if (cell >= CARVE_CELLS || p->used[cell] < in)
        return 0;
    size_t room = size_sub(p->used[cell], in);
    for (size_t i = cell + 1; i < CARVE_CELLS && p->joined[i]; i++)
        room = size_add(room, p->used[i]);
    return room;
}

size_t carve_cell_bytes(const struct carve_cells *p, int cell)
{
    size_t bytes = p->joined[cell] ? 0 : p->used[cell];
    for (int i = cell + 1; !p->joined[cell] && i < CARVE_CELLS && p->joined[i]; i++)
        bytes = size_add(bytes, p->used[i]);
    return bytes;
}

void carve_place(struct carve_cells *p, int cell, char *base)
{
    for (int i = cell; i < CARVE_CELLS && (i == cell || p->joined[i]); i++)
        p->base[i] = base ? base + (size_t)(i - cell) * p->limit : NULL;
}

void carve_again(struct carve_cells *p)
{
    p->most = 0;
    memset(p->used, 0, sizeof p->used);
    memset(p->joined, 0, sizeof p->joined);
}
