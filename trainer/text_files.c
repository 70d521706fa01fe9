/* SPDX-License-Identifier: Apache-2.0
 *
 * text_files.c: a file of text as one document: the token that begins texts, if the model has one,
 * the text, end of text.
 */
#include "token_files.h"

#include "bpe.h"
#include "error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int segment_begin_text(struct segment *s, const struct tokenizer *t)
{
    if (!t || t->vocab_size == 0)
        return fail(NJ_E_UNSUPPORTED, "%s: text needs a tokenizer: %s", s->path,
                    t ? t->refusal : "there is none");
    if (t->end_of_text < 0)
        return fail(NJ_E_FORMAT,
                    "%s: no token ends a text: eos_token_id is missing in the model's config.json; "
                    "add it",
                    s->path);
    /* A model's end of text may lie beyond its tokenizer's table. */
    s->id_bytes = t->vocab_size <= 65536 && t->end_of_text < 65536 ? 2 : 4;
    return NJ_OK;
}

static int reserve(struct segment *s, size_t more)
{
    const size_t used = (size_t)s->count, want = used + more;
    if (want <= s->capacity)
        return NJ_OK;
    const size_t grown = (want + want / 2 + 64) & ~(size_t)7;
    void *ids = realloc(s->owned, grown * (size_t)s->id_bytes);
    if (ids)
        s->owned = ids;
    uint8_t *mask = ids && s->owned_mask ? realloc(s->owned_mask, grown / 8) : NULL;
    if (mask) {
        s->owned_mask = mask;
        memset(mask + s->capacity / 8, 0xff, (grown - s->capacity) / 8);
    }
    if (!ids || (s->owned_mask && !mask))
        return fail(NJ_E_NOMEM, "%s: out of memory for %zu tokens", s->path, grown);
    s->capacity = grown;
    return NJ_OK;
}

/* The mask is made when the first id without a loss comes; until then all have one. */
static int clear_loss(struct segment *s, size_t count)
{
    if (!s->owned_mask) {
        s->owned_mask = malloc(s->capacity / 8);
        if (!s->owned_mask)
            return fail(NJ_E_NOMEM, "%s: out of memory for %zu tokens", s->path, s->capacity);
        memset(s->owned_mask, 0xff, s->capacity / 8);
    }
    for (size_t i = (size_t)s->count; i < (size_t)s->count + count; i++)
        s->owned_mask[i / 8] &= (uint8_t) ~(1u << i % 8);
    return NJ_OK;
}

int segment_add(struct segment *s, const int32_t *ids, size_t count, bool loss)
{
    int rc = count > 0 ? reserve(s, count) : NJ_OK;
    if (!rc && count > 0 && !loss)
        rc = clear_loss(s, count);
    if (rc || count == 0)
        return rc;
    if (s->id_bytes == 4) {
        memcpy((int32_t *)s->owned + s->count, ids, count * sizeof *ids);
    } else {
        uint16_t *to = (uint16_t *)s->owned + s->count;
        for (size_t i = 0; i < count; i++)
            to[i] = (uint16_t)ids[i];
    }
    s->count += (int64_t)count;
    return NJ_OK;
}

void segment_end_text(struct segment *s)
{
    s->ids = s->owned;
    s->mask = s->owned_mask;
    if (s->map)
        munmap(s->map, s->map_bytes);
    s->map = NULL;
}

int open_text(struct segment *s, const struct tokenizer *t)
{
    const size_t piece = (size_t)1 << 23;
    int32_t *ids = NULL;
    size_t capacity = 0;
    int rc = segment_begin_text(s, t);
    if (rc || s->map_bytes == 0)
        return rc;
    const int32_t begin = tokenizer_begin_of_text(t), end = t->end_of_text;
    if (begin >= 0)
        rc = segment_add(s, &begin, 1, true);
    /* A piece at a time, so that a long text never lies in memory as int32. */
    for (size_t at = 0; at < s->map_bytes && !rc;) {
        const char *text = (const char *)s->map + at;
        const size_t bytes = tokenizer_cut(t, text, s->map_bytes - at, piece);
        size_t count = 0;
        rc = tokenizer_encode(t, text, bytes, &ids, &count, &capacity);
        if (rc)
            rc = fail(rc, "%s: %s", s->path, fail_text());
        else
            rc = segment_add(s, ids, count, true);
        at += bytes;
        if (!rc && t->encoded)
            t->encoded(t->user, bytes);
    }
    free(ids);
    if (!rc)
        rc = segment_add(s, &end, 1, true);
    segment_end_text(s);
    return rc;
}
