/* SPDX-License-Identifier: Apache-2.0
 *
 * verified_file.c: see verified_file.h.
 */
#include "io/verified_file.h"

#include "io/error.h"
#include "io/temp.h"
#include "io/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static int refuse_write(const struct verified_file *f, int error)
{
    return fail(NJ_E_IO, "%s: cannot write it: %s; check the folder and its free space", f->path,
                strerror(error));
}

int verified_begin(struct verified_file *f, const char *path)
{
    memset(f, 0, sizeof *f);
    if (snprintf(f->path, sizeof f->path, "%s", path) >= (int)sizeof f->path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", path);
    const int fd = temp_file(f->path, f->temp, sizeof f->temp);
    if (fd < 0)
        return refuse_write(f, errno);
    f->file = fdopen(fd, "wb");
    f->hash = XXH3_createState();
    if (!f->file)
        close(fd);
    if (!f->file || !f->hash)
        return fail(NJ_E_NOMEM, "%s: out of memory", f->path);
    XXH3_64bits_reset(f->hash);
    return 0;
}

int verified_put(struct verified_file *f, const void *data, size_t bytes)
{
    errno = 0;
    if (fwrite(data, 1, bytes, f->file) != bytes) {
        f->error = errno ? errno : EIO;
        return refuse_write(f, f->error);
    }
    XXH3_64bits_update(f->hash, data, bytes);
    f->bytes += bytes;
    return 0;
}

/* Hash the whole file; return -1 with errno on failure. */
static int hash_file(int fd, uint64_t *hash)
{
    XXH3_state_t state;
    char block[1 << 16];
    ssize_t n;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset(&state);
    while ((n = read(fd, block, sizeof block)) > 0)
        XXH3_64bits_update(&state, block, (size_t)n);
    *hash = XXH3_64bits_digest(&state);
    return n < 0 ? -1 : 0;
}

/* Read the file back and compare it with the bytes written. */
static int compare(const struct verified_file *f)
{
    int fd = open(f->temp, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return refuse_write(f, errno);
    struct stat info;
    uint64_t hash;
    int rc = 0;
    if (fstat(fd, &info) != 0 || (uint64_t)info.st_size != f->bytes) {
        rc = fail(NJ_E_IO,
                  "%s: read back, it does not have the %" PRIu64 " bytes that were "
                  "written; check the disk",
                  f->path, f->bytes);
        goto done;
    }
    if (hash_file(fd, &hash) != 0)
        rc = fail(NJ_E_IO, "%s: cannot be read back: %s; check the disk", f->path, strerror(errno));
    else if (hash != XXH3_64bits_digest(f->hash))
        rc = fail(NJ_E_IO, "%s: read back, it differs from what was written; check the disk",
                  f->path);
done:
    close(fd);
    return rc;
}

int verified_check(struct verified_file *f)
{
    if (f->error)
        return refuse_write(f, f->error);
    if (fflush(f->file) != 0 || fsync(fileno(f->file)) != 0)
        return refuse_write(f, errno);
    const int closed = fclose(f->file);
    f->file = NULL;
    return closed != 0 ? refuse_write(f, errno) : compare(f);
}

int verified_publish(struct verified_file *f)
{
    if (rename(f->temp, f->path) != 0)
        return refuse_write(f, errno);
    unfinished_done(f->temp);
    f->temp[0] = '\0';
    return 0;
}

void verified_abort(struct verified_file *f)
{
    if (f->file)
        fclose(f->file);
    if (f->temp[0])
        unlink(f->temp);
    unfinished_done(f->temp);
    XXH3_freeState(f->hash);
    memset(f, 0, sizeof *f);
}
