/* SPDX-License-Identifier: Apache-2.0
 *
 * stop_text.c: see stop_text.h.
 */
#include "record/stop_text.h"

#include <string.h>

const char *stop_find(const struct pool *text, size_t seen, const char *stop, size_t bytes)
{
    const char *at = text->at;
    const size_t from = seen >= bytes ? seen - bytes + 1 : 0;
    return text->count > from ? memmem(at + from, text->count - from, stop, bytes) : NULL;
}

bool stop_add(const struct stop_texts *s, struct stopped_text *t, const char *text, size_t bytes)
{
    const size_t seen = t->text.count;
    if (!pool_add(&t->text, text, bytes, 1))
        return false;
    const char *first = NULL;
    for (size_t i = 0; i < s->count; i++) {
        const char *found = stop_find(&t->text, seen, s->at[i], strlen(s->at[i]));
        if (found && (!first || found < first)) {
            first = found;
            t->by = s->at[i];
        }
    }
    if (first)
        t->text.count = (size_t)(first - (const char *)t->text.at);
    return true;
}

bool stop_add_tokens(const struct stop_texts *s, struct stopped_text *t, const struct tokenizer *k,
                     const int32_t *ids, int *count)
{
    for (int i = 0; i < *count && !t->by; i++) {
        size_t bytes;
        const char *text = tokenizer_decode(k, ids[i], &bytes);
        if (!stop_add(s, t, text, bytes))
            return false;
        if (t->by)
            *count = i + 1;
    }
    return true;
}

size_t stop_sure(const struct stop_texts *s, const struct stopped_text *t)
{
    const char *text = t->text.at;
    size_t held = 0;
    for (size_t i = 0; i < s->count && !t->by; i++) {
        /* number of bytes of its beginning that the text ends with */
        size_t n = strlen(s->at[i]) - 1;
        n = n < t->text.count ? n : t->text.count;
        while (n > held && memcmp(text + t->text.count - n, s->at[i], n) != 0)
            n--;
        held = n > held ? n : held;
    }
    return t->text.count - held;
}
