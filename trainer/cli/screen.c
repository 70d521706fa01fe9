/* SPDX-License-Identifier: Apache-2.0
 *
 * screen.c: see screen.h.
 */
#include "cli/screen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/utf8.h"

struct screen {
    FILE *to;
    unsigned char pending[4]; /* bytes of an incomplete character */
    size_t count;
};

/* Return whether the bytes may yet become a character. */
static bool is_begun(const struct screen *s)
{
    const unsigned char lead = s->pending[0];
    const size_t whole = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    bool begun = lead >= 0xc2 && lead <= 0xf4 && s->count < whole;
    for (size_t i = 1; i < s->count; i++)
        begun = begun && (s->pending[i] & 0xc0) == 0x80;
    return begun;
}

static void put_pending(struct screen *s, bool last)
{
    while (s->count > 0 && (last || !is_begun(s))) {
        uint32_t cp;
        const size_t n = utf8_next(s->pending, s->count, &cp);
        const bool shown = cp == '\n' || cp == '\t' || !is_control(cp);
        fwrite(shown ? (const char *)s->pending : "?", 1, shown ? n : 1, s->to);
        s->count -= n;
        memmove(s->pending, s->pending + n, s->count);
    }
}

static ssize_t put_text(void *screen, const char *text, size_t bytes)
{
    struct screen *s = screen;
    for (size_t i = 0; i < bytes; i++) {
        s->pending[s->count++] = (unsigned char)text[i];
        put_pending(s, false);
    }
    return fflush(s->to) == 0 ? (ssize_t)bytes : 0; /* 0 is the error of a cookie's write */
}

static int end_text(void *screen)
{
    struct screen *s = screen;
    put_pending(s, true);
    const int rc = fflush(s->to);
    free(s);
    return rc;
}

FILE *screen_open(FILE *to)
{
    const cookie_io_functions_t calls = {.write = put_text, .close = end_text};
    struct screen *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->to = to;
    FILE *f = fopencookie(s, "w", calls);
    if (f == NULL)
        free(s);
    return f;
}
