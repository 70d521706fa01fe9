/* SPDX-License-Identifier: Apache-2.0
 *
 * regular.c: see regular.h.
 */
#include "io/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/error.h"

static int check(const char *path, int fd, size_t most, const char *remedy, size_t *bytes)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return fail(NJ_E_IO, "%s: %s; %s", path, strerror(errno), remedy);
    if (!S_ISREG(info.st_mode))
        return fail(NJ_E_IO, "%s: not a regular file; %s", path, remedy);
    if (most > 0 && (uint64_t)info.st_size > most)
        return fail(NJ_E_FORMAT, "%s: %lld bytes; the limit for this file is %zu; %s", path,
                    (long long)info.st_size, most, remedy);
    *bytes = (size_t)info.st_size;
    return 0;
}

int regular_fd(const char *path, size_t most, const char *remedy, int *fd, size_t *bytes)
{
    /* The file is opened without blocking, so that a pipe is refused instead of waited for. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0) {
        const int error = errno;
        fail(NJ_E_IO, "%s: %s; %s", path, strerror(error), remedy);
        errno = error;
        return NJ_E_IO;
    }
    const int rc = check(path, *fd, most, remedy, bytes);
    if (rc != 0) {
        close(*fd);
        *fd = -1;
        errno = 0;
    }
    return rc;
}

int regular_open(const char *path, size_t most, const char *remedy, FILE **out)
{
    int fd;
    size_t bytes;
    *out = NULL;
    TRY(regular_fd(path, most, remedy, &fd, &bytes));
    *out = fdopen(fd, "rb");
    if (*out)
        return 0;
    close(fd);
    return fail(NJ_E_NOMEM, "%s: out of memory", path);
}

bool regular_is_pointer(const void *data, size_t bytes)
{
    static const char begin[] = "version https://git-lfs.github.com/spec/";
    return bytes >= sizeof begin - 1 && memcmp(data, begin, sizeof begin - 1) == 0;
}

int regular_refuse_pointer(const char *path)
{
    return fail(NJ_E_FORMAT,
                "%s: a Git LFS pointer, not the file that it stands for; run `git lfs pull` in the "
                "folder, or fetch the model by `hf download`",
                path);
}
