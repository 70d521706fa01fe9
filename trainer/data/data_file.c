/* SPDX-License-Identifier: Apache-2.0
 *
 * data_file.c: see data_file.h.
 */
#include "data/data_file.h"

#include "io/error.h"
#include "io/regular.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PACKED_BYTES = 1 << 18 };

/* Raise the limit of open files. Token files stay open, so that one that is replaced during a run is still the one that
 * was checked, and they may be more than a shell's usual limit, which any process may raise. */
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
    if (rc != 0 && errno == EMFILE && raise_limit())
        rc = regular_fd(path, 0, remedy, &f->fd, &f->bytes);
    if (rc != 0 && errno == EMFILE)
        return fail(rc, "%s: %s; raise `ulimit -n`, or write fewer and larger files", path,
                    strerror(EMFILE));
    if (rc == 0 && f->bytes == 0)
        close(f->fd);
    return rc;
}

void data_file_close(struct data_file *f)
{
    if (f->bytes > 0)
        close(f->fd);
    free(f->buffer);
    free(f->packed);
    unpacker_close(f->unpacker);
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
    return 0;
}

int data_file_unpack(struct data_file *f, enum packing_of_bytes packing)
{
    if (packing == BYTES_PLAIN || f->bytes == 0)
        return 0;
    f->unpacker = unpacker_open(packing);
    f->packed = malloc(PACKED_BYTES);
    return f->unpacker && f->packed ? 0 : fail(NJ_E_NOMEM, "%s: out of memory", f->path);
}

bool data_file_ended(const struct data_file *f)
{
    return f->unpacker ? f->ended : f->at == f->bytes;
}

size_t data_file_told(const struct data_file *f)
{
    return f->unpacker ? f->at - f->packed_have : f->at - f->have;
}

/* Make room for `more` bytes after the text. */
static int make_room(struct data_file *f, size_t more)
{
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
    return 0;
}

static int read_packed(struct data_file *f)
{
    const size_t left = f->bytes - f->at, bytes = left < PACKED_BYTES ? left : PACKED_BYTES;
    const int rc = data_file_read(f, f->at, f->packed, bytes);
    f->packed_from = 0;
    f->packed_have = rc != 0 ? 0 : bytes;
    f->at += f->packed_have;
    return rc;
}

/* Unpack up to `room` bytes after the text. */
static int unpack_more(struct data_file *f, size_t room)
{
    size_t used, made;
    if (f->packed_have == 0 && f->at < f->bytes)
        TRY(read_packed(f));
    const int rc = unpack(f->unpacker, f->packed + f->packed_from, f->packed_have, &used,
                          f->buffer + f->have, room, &made);
    if (rc != 0)
        return fail(rc, "%s: %s", f->path,
                    rc == NJ_E_NOMEM
                        ? "out of memory"
                        : "cannot be unpacked: it is damaged, or not what its name says");
    f->packed_from += used;
    f->packed_have -= used;
    f->have += made;
    f->made += made;
    f->ended = used == 0 && made == 0 && f->at == f->bytes;
    if (f->ended && (!unpacker_whole(f->unpacker) || f->packed_have > 0))
        return fail(NJ_E_FORMAT, "%s: its compressed data end too early; make it again", f->path);
    if (f->made > unpack_most(f->bytes))
        return fail(NJ_E_FORMAT,
                    "%s: unpacks to over %zu bytes, far more than text does; unpack it first if "
                    "that is right",
                    f->path, unpack_most(f->bytes));
    return 0;
}

int data_file_fill(struct data_file *f, size_t wanted)
{
    const size_t left = f->unpacker ? SIZE_MAX : f->bytes - f->at;
    if (f->have >= wanted || data_file_ended(f))
        return 0;
    const size_t more = wanted - f->have < left ? wanted - f->have : left;
    int rc = make_room(f, more);
    if (rc != 0)
        return rc;
    if (f->unpacker) {
        while (rc == 0 && f->have < wanted && !f->ended)
            rc = unpack_more(f, wanted - f->have);
        return rc;
    }
    rc = data_file_read(f, f->at, f->buffer + f->have, more);
    f->at += rc != 0 ? 0 : more;
    f->have += rc != 0 ? 0 : more;
    return rc;
}

void data_file_skip(struct data_file *f, size_t bytes)
{
    f->text += bytes;
    f->have -= bytes;
}
