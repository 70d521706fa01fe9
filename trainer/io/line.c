/* SPDX-License-Identifier: Apache-2.0
 *
 * line.c: see line.h.
 */
#include "io/line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "io/error.h"

enum { BYTES_MOST = 1 << 24 };

/* Make room for one more character and the NUL. */
static int make_room(const char *path, struct line *l)
{
    if (l->bytes + 2 > BYTES_MOST)
        return fail(NJ_E_FORMAT,
                    "%s:%zu: longer than the limit of %d MiB for a line; move the file away", path,
                    l->number, BYTES_MOST >> 20);
    if (!GROW(l->text, l->capacity, l->bytes + 2))
        return fail(NJ_E_NOMEM, "out of memory while reading %s", path);
    return 0;
}

int line_read(FILE *f, const char *path, struct line *l)
{
    int c = 0;
    l->bytes = 0;
    l->number++;
    while (c != '\n' && (c = getc_unlocked(f)) != EOF) {
        TRY(make_room(path, l));
        l->text[l->bytes++] = (char)c;
        l->text[l->bytes] = '\0';
    }
    return ferror(f) ? fail(NJ_E_IO, "%s: %s", path, strerror(errno)) : 0;
}
