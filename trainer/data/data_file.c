/* SPDX-License-Identifier: Apache-2.0
 *
 * data_file.c: see data_file.h.
 */
#include "data/data_file.h"

#include "io/error.h"
#include "io/regular.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Token files stay open, so that one that is replaced under a run is still the one that was checked. Many
 * are more than a shell's usual limit, which any process may raise. */
static bool raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int data_file_open(struct data_file *f, const char *path)
{
    static const char remedy[] = "give files, folders or globs";
    *f = (struct data_file){.path = path};
    int rc = regular_fd(path, 0, remedy, &f->fd, &f->bytes);
    if (rc && errno == EMFILE && raise_limit())
        rc = regular_fd(path, 0, remedy, &f->fd, &f->bytes);
    if (rc && errno == EMFILE)
        return fail(rc, "%s: %s; raise `ulimit -n`, or write fewer and larger files", path,
                    strerror(EMFILE));
    if (!rc && f->bytes == 0)
        close(f->fd);
    return rc;
}

void data_file_close(struct data_file *f)
{
    if (f->bytes > 0)
        close(f->fd);
    free(f->buffer);
    *f = (struct data_file){0};
}

int data_file_read(const struct data_file *f, size_t from, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = pread(f->fd, (char *)to + done, bytes - done, (off_t)(from + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(NJ_E_IO, "%s: cannot read byte %zu of %zu: %s", f->path, from + done,
                        f->bytes, n < 0 ? strerror(errno) : "the file was truncated");
        done += (size_t)n;
    }
    return NJ_OK;
}

int data_file_fill(struct data_file *f, size_t wanted)
{
    const size_t left = f->bytes - f->at;
    if (f->have >= wanted || left == 0)
        return NJ_OK;
    const size_t more = wanted - f->have < left ? wanted - f->have : left;
    if (f->have > 0)
        memmove(f->buffer, f->text, f->have);
    if (f->capacity < f->have + more) {
        char *grown = realloc(f->buffer, f->have + more);
        if (!grown)
            return fail(NJ_E_NOMEM, "%s: out of memory for %zu bytes", f->path, f->have + more);
        f->buffer = grown;
        f->capacity = f->have + more;
    }
    f->text = f->buffer;
    const int rc = data_file_read(f, f->at, f->buffer + f->have, more);
    f->at += rc ? 0 : more;
    f->have += rc ? 0 : more;
    return rc;
}

void data_file_skip(struct data_file *f, size_t bytes)
{
    f->text += bytes;
    f->have -= bytes;
}
