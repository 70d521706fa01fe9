/* SPDX-License-Identifier: Apache-2.0
 *
 * text_files.c: a file of text as one document: the token that begins texts, if the model has one,
 * the text, end of text.
 */
#include "data/token_files.h"

#include "io/error.h"
#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

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
    /* A model's end of text may be beyond its tokenizer's table. */
    s->id_bytes = t->vocab_size <= 65536 && t->end_of_text < 65536 ? 2 : 4;
    return 0;
}

/* Make room for bits, if there are any; the new ones have the value of `fill`. */
static bool grow_bits(uint8_t **bits, size_t had, size_t wanted, int fill)
{
    uint8_t *more = *bits ? realloc(*bits, wanted / 8) : NULL;
    if (more) {
        memset(more + had / 8, fill, (wanted - had) / 8);
        *bits = more;
    }
    return more || !*bits;
}

static int reserve(struct segment *s, size_t more)
{
    const size_t used = (size_t)s->count, want = used + more;
    if (want <= s->capacity)
        return 0;
    const size_t grown = (want + want / 2 + 64) & ~(size_t)7;
    void *ids = realloc(s->owned, grown * (size_t)s->id_bytes);
    if (ids)
        s->owned = ids;
    if (!ids || !grow_bits(&s->owned_mask, s->capacity, grown, 0xff) ||
        !grow_bits(&s->owned_ends, s->capacity, grown, 0))
        return fail(NJ_E_NOMEM, "%s: out of memory for %zu tokens", s->path, grown);
    s->capacity = grown;
    return 0;
}

/* Make bits, all alike, if there are none yet. */
static int make_bits(const struct segment *s, uint8_t **bits, int fill)
{
    if (*bits)
        return 0;
    *bits = malloc(s->capacity / 8);
    if (!*bits)
        return fail(NJ_E_NOMEM, "%s: out of memory for %zu tokens", s->path, s->capacity);
    memset(*bits, fill, s->capacity / 8);
    return 0;
}

/* Make the mask when the first id without a loss comes; until then all have one. */
static int clear_loss(struct segment *s, size_t count)
{
    TRY(make_bits(s, &s->owned_mask, 0xff));
    for (size_t i = (size_t)s->count; i < (size_t)s->count + count; i++)
        s->owned_mask[i / 8] &= (uint8_t) ~(1u << i % 8);
    return 0;
}

int segment_add(struct segment *s, const int32_t *ids, size_t count, bool loss)
{
    int rc = count > 0 ? reserve(s, count) : 0;
    if (rc == 0 && count > 0 && !loss)
        rc = clear_loss(s, count);
    if (rc != 0 || count == 0)
        return rc;
    if (s->id_bytes == 4) {
        memcpy((int32_t *)s->owned + s->count, ids, count * sizeof *ids);
    } else {
        uint16_t *to = (uint16_t *)s->owned + s->count;
        for (size_t i = 0; i < count; i++)
            to[i] = (uint16_t)ids[i];
    }
    s->count += (int64_t)count;
    return 0;
}

int segment_end_document(struct segment *s, int64_t at)
{
    TRY(make_bits(s, &s->owned_ends, 0));
    s->owned_ends[at / 8] |= (uint8_t)(1u << at % 8);
    return 0;
}

/* Return the length of a stretch of the text of about `piece` bytes that ends where it may be cut; 0: at the end. */
static int next_piece(struct data_file *f, const struct tokenizer *t, size_t *bytes)
{
    const size_t piece = (size_t)1 << 23;
    int rc = data_file_fill(f, piece + piece / 8);
    for (;;) {
        *bytes = tokenizer_cut(t, f->text, f->have, piece);
        if (rc != 0 || *bytes < f->have || data_file_ended(f))
            return rc;
        rc = data_file_fill(f, 2 * f->have);
    }
}

/* Add ids of a text; the first ones have no token that begins texts if it was added before. */
static int add_piece(struct segment *s, const int32_t *ids, size_t count, int32_t begin)
{
    const size_t twice = begin >= 0 && s->count == 1 && count > 0 && ids[0] == begin;
    return segment_add(s, ids + twice, count - twice, true);
}

int open_text(struct segment *s, const struct tokenizer *t)
{
    int32_t *ids = NULL;
    size_t capacity = 0, bytes = 0;
    int rc = segment_begin_text(s, t);
    if (rc != 0 || s->file.bytes == 0)
        return rc;
    const int32_t begin = tokenizer_begin_of_text(t), end = t->end_of_text;
    int32_t last = -1;
    rc = next_piece(&s->file, t, &bytes);
    if (rc != 0 || bytes == 0) /* nothing was packed */
        return rc;
    if (begin >= 0)
        rc = segment_add(s, &begin, 1, true);
    /* One piece at a time, so that a long text is never in memory as int32. */
    while (rc == 0 && bytes > 0) {
        size_t count = 0;
        rc = tokenizer_encode(t, s->file.text, bytes, &ids, &count, &capacity);
        if (rc != 0)
            rc = fail(rc, "%s: %s", s->path, fail_text());
        else
            rc = add_piece(s, ids, count, begin);
        last = count > 0 ? ids[count - 1] : last;
        const size_t before = data_file_told(&s->file);
        data_file_skip(&s->file, bytes);
        if (rc == 0 && t->encoded)
            t->encoded(t->user, data_file_told(&s->file) - before);
        if (rc == 0)
            rc = next_piece(&s->file, t, &bytes);
    }
    free(ids);
    return rc != 0 || last == end ? rc : segment_add(s, &end, 1, true);
}
