/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe_added.c: finds added tokens in a text: the leftmost, and of those the longest.
 */
#include "nojit.h"
#include "text/bpe.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const struct added_token *x = a, *y = b;
    const size_t n = x->bytes < y->bytes ? x->bytes : y->bytes;
    const int order = memcmp(x->text, y->text, n);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

void added_prepare(struct added_set *set)
{
    if (set->count > 0)
        qsort(set->token, set->count, sizeof *set->token, compare);
    for (size_t i = 0; i < set->count; i++)
        set->first[(unsigned char)set->token[i].text[0]] = true;
}

/* Return the first of the tokens [low, high), which share `depth` bytes, whose next byte is at
 * least c. */
static size_t lower(const struct added_set *set, size_t low, size_t high, size_t depth, int c)
{
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct added_token *t = &set->token[middle];
        if (t->bytes <= depth || (unsigned char)t->text[depth] < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Return the longest token that the text starts with, or NULL. */
static const struct added_token *longest(const struct added_set *set, const char *text,
                                         size_t bytes)
{
    const struct added_token *best = NULL;
    size_t low = 0, high = set->count;
    for (size_t depth = 0; depth < bytes && low < high; depth++) {
        const int c = (unsigned char)text[depth];
        low = lower(set, low, high, depth, c);
        high = lower(set, low, high, depth, c + 1);
        if (low < high && set->token[low].bytes == depth + 1)
            best = &set->token[low];
    }
    return best;
}

/* Return whether a word continues to the left or to the right of [start, end). */
static bool inside_word(const unsigned char *s, size_t bytes, size_t start, size_t end)
{
    uint32_t cp;
    if (start > 0) {
        utf8_before(s, start, &cp);
        if (unicode_class[cp] & UNICODE_WORD)
            return true;
    }
    if (end == bytes)
        return false;
    utf8_next(s + end, bytes - end, &cp);
    return unicode_class[cp] & UNICODE_WORD;
}

/* Return the start of the white space before `at`, not before `least`. */
static size_t spaces_before(const unsigned char *s, size_t least, size_t at)
{
    uint32_t cp;
    while (at > least) {
        const size_t n = utf8_before(s, at, &cp);
        if (!(unicode_class[cp] & UNICODE_SPACE))
            break;
        at -= n;
    }
    return at;
}

int added_split(const struct added_set *set, const char *text, size_t bytes,
                const struct added_visitor *v)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t done = 0;   /* end of the text that has been visited */
    size_t spaces = 0; /* end of the white space after the last token */
    int rc = 0;
    for (size_t at = 0; at < bytes && set->count > 0 && rc == 0;) {
        const struct added_token *t =
            set->first[s[at]] ? longest(set, text + at, bytes - at) : NULL;
        if (!t) {
            at++;
            continue;
        }
        size_t start = at, end = at + t->bytes;
        at = end;
        if (t->single_word && inside_word(s, bytes, start, end))
            continue;
        if (t->lstrip)
            start = spaces_before(s, done, start);
        if (t->rstrip)
            end = spaces = end < spaces ? spaces : unicode_run(s, bytes, end, UNICODE_SPACE);
        start = start > done ? start : done;
        if (start > done)
            rc = v->each(v->user, text + done, start - done);
        if (rc == 0)
            rc = v->token(v->user, t->id);
        done = end;
    }
    return rc != 0 || done >= bytes ? rc : v->each(v->user, text + done, bytes - done);
}
