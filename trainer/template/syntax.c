/* SPDX-License-Identifier: Apache-2.0
 *
 * syntax.c: see syntax.h: errors, and the interned names of a template.
 */
#include "template/syntax.h"

#include "io/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

int syntax_fail(const struct template *t, int line, const char *format, ...)
{
    char what[512];
    va_list rest;
    va_start(rest, format);
    vsnprintf(what, sizeof what, format, rest);
    va_end(rest);
    return fail(NJ_E_FORMAT, "%s:%d: %s", t->name, line, what);
}

int syntax_no_memory(const struct template *t)
{
    if (t->arena.spent)
        return fail(NJ_E_FORMAT, "%s: the template needs more than the limit of %zu MiB of memory",
                    t->name, t->arena.most >> 20);
    return fail(NJ_E_NOMEM, "%s: out of memory for the template", t->name);
}

/* Return the slot of a name, or the free one in which it belongs. */
static size_t place_of(const struct template *t, const char *text, size_t bytes)
{
    const size_t mask = t->name_capacity - 1;
    size_t at = XXH3_64bits(text, bytes) & mask;
    while (t->names[at] &&
           (strlen(t->names[at]) != bytes || memcmp(t->names[at], text, bytes) != 0))
        at = (at + 1) & mask;
    return at;
}

static bool grow(struct template *t)
{
    const char **before = t->names;
    const size_t count = t->name_capacity;
    const size_t grown = count ? 2 * count : 256;
    const char **more = calloc(grown, sizeof *more);
    if (!more)
        return false;
    t->names = more;
    t->name_capacity = grown;
    for (size_t i = 0; i < count; i++)
        if (before[i])
            more[place_of(t, before[i], strlen(before[i]))] = before[i];
    free(before);
    return true;
}

const char *syntax_name(struct template *t, const char *text, size_t bytes)
{
    if (2 * t->name_count >= t->name_capacity && !grow(t))
        return NULL;
    const size_t at = place_of(t, text, bytes);
    if (!t->names[at]) {
        t->names[at] = arena_copy(&t->arena, text, bytes);
        t->name_count += t->names[at] != NULL;
    }
    return t->names[at];
}

const char *syntax_find_name(const struct template *t, const char *text, size_t bytes)
{
    return t->name_capacity ? t->names[place_of(t, text, bytes)] : NULL;
}
