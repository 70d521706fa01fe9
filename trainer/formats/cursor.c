/* SPDX-License-Identifier: Apache-2.0
 *
 * cursor.c: see cursor.h.
 */
#include "formats/cursor.h"

#include "formats/mapped.h"
#include "io/error.h"
#include "io/regular.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define FETCH "fetch the file again"

int cursor_open(const char *path, const char *kind, size_t least, const char *remedy,
                struct tensors *w, struct cursor *c)
{
    size_t bytes;
    int fd;
    int rc = regular_fd(path, 0, remedy, &fd, &bytes);
    if (rc != 0)
        return rc;
    w->map = calloc(1, sizeof *w->map);
    if (!w->map)
        rc = fail(NJ_E_NOMEM, "%s: out of memory", path);
    else if (bytes < least)
        rc = fail(NJ_E_FORMAT, "%s: %zu bytes, too short for %s file; fetch it again", path, bytes,
                  kind);
    else {
        w->map_count = 1;
        w->map->bytes = bytes;
        rc = mapped_begin(path, fd, bytes, &w->map->base);
    }
    if (rc == 0) { /* only hints: if they are refused, only the speed changes */
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
        (void)madvise(w->map->base, bytes, MADV_WILLNEED);
        const unsigned char *base = w->map->base;
        *c = (struct cursor){path, base, base, base + bytes};
    }
    close(fd);
    return rc;
}

int cursor_short(const struct cursor *c, const char *what)
{
    return fail(NJ_E_FORMAT, "%s: %s goes beyond the end of the file, at byte %td of %td; " FETCH,
                c->path, what, c->at - c->base, c->end - c->base);
}

int cursor_number(struct cursor *c, size_t bytes, const char *what, uint64_t *out)
{
    *out = 0;
    if (cursor_left(c) < bytes)
        return cursor_short(c, what);
    for (size_t i = 0; i < bytes; i++)
        *out |= (uint64_t)c->at[i] << (8 * i);
    c->at += bytes;
    return 0;
}

static int compare_data(const void *a, const void *b)
{
    const char *x = ((const struct tensor *)a)->data, *y = ((const struct tensor *)b)->data;
    return (x > y) - (x < y);
}

int tensors_check_overlap(const char *path, struct tensor *t, size_t count)
{
    qsort(t, count, sizeof *t, compare_data);
    for (size_t i = 1; i < count; i++)
        if ((const char *)t[i].data < (const char *)t[i - 1].data + t[i - 1].bytes)
            return fail(NJ_E_FORMAT, "%s: tensors %s and %s overlap; " FETCH, path, t[i - 1].name,
                        t[i].name);
    return 0;
}
