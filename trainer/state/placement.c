/* SPDX-License-Identifier: Apache-2.0
 *
 * placement.c: see placement.h. First fit: the offsets tried are the beginning and the end of each buffer that is
 * already placed, in ascending order.
 */
#include "state/placement.h"

#include "base/check.h"
#include "base/checked.h"

static void use(struct placement *p, size_t from, size_t to, unsigned phases)
{
    CHECK(from <= to); /* a buffer that is not listed would be given to others, too */
    if (from < to && p->count < PLACEMENT_SPANS)
        p->span[p->count++] = (struct span){from, to, phases};
    else if (from < to)
        p->arena.used = SIZE_MAX; /* a buffer that cannot be listed makes the arena too large */
}

static bool is_free(const struct placement *p, size_t from, size_t to, unsigned phases)
{
    for (int i = 0; i < p->count; i++) {
        const struct span *s = &p->span[i];
        if ((s->phases & phases) != 0 && from < s->to && s->from < to)
            return false;
    }
    return true;
}

/* Return where the next buffer ends behind an offset; SIZE_MAX: none does. */
static size_t next_end(const struct placement *p, size_t after)
{
    size_t end = SIZE_MAX;
    for (int i = 0; i < p->count; i++)
        if (p->span[i].to > after && p->span[i].to < end)
            end = p->span[i].to;
    return end;
}

/* Return the offset behind a buffer that begins at `at`, without taking the memory. */
static size_t end_at(const struct placement *p, size_t at, carve_buffer *carve, void *user)
{
    struct carve_cells cells;
    struct carve c = {.used = at};
    if (p->arena.cells) {
        cells = *p->arena.cells;
        c.cells = &cells;
    }
    carve(user, &c);
    return c.used;
}

void placement_add(struct placement *p, size_t from, unsigned phases, carve_buffer *carve,
                   void *user)
{
    struct carve c = p->arena;
    c.used = from;
    while (!is_free(p, c.used, end_at(p, c.used, carve, user), phases))
        c.used = next_end(p, c.used);
    const size_t at = c.used;
    carve(user, &c);
    if (c.used > p->arena.used)
        p->arena.used = c.used;
    use(p, at, c.used, phases);
}

bool placement_lend(struct placement *p, size_t from, size_t to, unsigned phases,
                    carve_buffer *carve, void *user)
{
    size_t at = carve_begin(&p->arena, from);
    for (; at < to; at = carve_begin(&p->arena, next_end(p, at))) {
        const size_t end = size_add(at, carve_room(&p->arena, at));
        struct carve c = {.base = carve_at(&p->arena, at)};
        carve(user, &c);
        const size_t behind = size_add(at, c.used);
        if (behind > end || behind > to || !is_free(p, at, behind, phases))
            continue;
        use(p, at, behind, phases);
        return true;
    }
    return false;
}

void placement_narrow(struct placement *p, size_t from, size_t to, unsigned phases)
{
    const struct span whole = p->count > 0 ? p->span[p->count - 1] : (struct span){0};
    if (from < whole.from || to > whole.to) /* it is larger than can be addressed */
        return;
    p->count--;
    use(p, whole.from, from, whole.phases);
    use(p, from, to, phases);
    use(p, to, whole.to, whole.phases);
}
