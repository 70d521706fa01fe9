/* SPDX-License-Identifier: Apache-2.0
 *
 * passages.c: see passages.h.
 */
#include "teacher/passages.h"

#include "base/grow.h"
#include "io/error.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Return where the document of a position begins. */
static int start_of(const struct passage_rows *rows, int position)
{
    return position - position % rows->S + rows->doc_start[position];
}

static bool has_target(const struct passage_rows *rows, int i)
{
    return i < rows->targets && rows->valid[i] >= 0;
}

/* Hash the numbers of tokens and targets, the tokens, and the places of the targets in the passage. */
static struct passage_key key_of(const struct passage_rows *rows, const struct passage *p)
{
    const int32_t counts[] = {p->tokens, p->targets};
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, counts, sizeof counts);
    XXH3_128bits_update(&state, rows->ids + p->start, (size_t)p->tokens * sizeof *rows->ids);
    for (int i = 0; i < p->targets; i++) {
        const int32_t place = rows->valid[p->first + i] - p->start;
        XXH3_128bits_update(&state, &place, sizeof place);
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(&state);
    return (struct passage_key){hash.low64, hash.high64};
}

struct passage_rows passages_of(const struct batch *b, int32_t *at)
{
    int found = 0;
    for (int i = 0; i < b->B * b->S; i++)
        if (b->target[i] != IGNORED)
            at[found++] = i;
    return (struct passage_rows){
        .ids = b->ids, .doc_start = b->doc_start, .valid = at, .targets = found, .S = b->S};
}

bool passage_next(const struct passage_rows *rows, struct passage *p)
{
    const int first = p->first + p->targets;
    int end = first;
    if (!has_target(rows, first))
        return false;
    const int start = start_of(rows, rows->valid[first]);
    while (has_target(rows, end) && start_of(rows, rows->valid[end]) == start)
        end++;
    *p = (struct passage){.start = start,
                          .tokens = rows->valid[end - 1] + 1 - start,
                          .first = first,
                          .targets = end - first};
    p->key = key_of(rows, p);
    return true;
}

/* ---- sets ---- */

enum { SLOTS_LEAST = 1024 };

static bool same(struct passage_key a, struct passage_key b)
{
    return a.low == b.low && a.high == b.high;
}

/* Return the slot of a key, or the free one where it belongs. */
static size_t *slot_of(const struct passage_set *s, struct passage_key key)
{
    size_t at = (size_t)key.low & (s->slots - 1);
    while (s->table[at] > 0 && !same(s->key[s->table[at] - 1], key))
        at = (at + 1) & (s->slots - 1);
    return &s->table[at];
}

int64_t passage_set_find(const struct passage_set *s, struct passage_key key)
{
    return s->slots > 0 ? (int64_t)*slot_of(s, key) - 1 : -1;
}

static bool widen(struct passage_set *s)
{
    const size_t slots = s->slots > 0 ? 2 * s->slots : SLOTS_LEAST;
    size_t *table = calloc(slots, sizeof *table);
    if (!table)
        return false;
    free(s->table);
    s->table = table;
    s->slots = slots;
    for (size_t i = 0; i < s->count; i++)
        *slot_of(s, s->key[i]) = i + 1;
    return true;
}

int passage_set_add(struct passage_set *s, struct passage_key key)
{
    if (!GROW(s->key, s->room, s->count + 1) || (2 * (s->count + 1) > s->slots && !widen(s)))
        return fail(NJ_E_NOMEM, "no host memory for a list of %zu passages; free some", s->count);
    size_t *slot = slot_of(s, key);
    if (*slot > 0)
        return 0;
    s->key[s->count++] = key;
    *slot = s->count;
    return 1;
}

void passage_set_free(struct passage_set *s)
{
    free(s->key);
    free(s->table);
    *s = (struct passage_set){0};
}
