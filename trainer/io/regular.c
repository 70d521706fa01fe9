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

static int check(const char *path, int fd, size_t most, const char *remedy)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return fail(NJ_E_IO, "%s: %s; %s", path, strerror(errno), remedy);
    if (!S_ISREG(info.st_mode))
        return fail(NJ_E_IO, "%s: not a regular file; %s", path, remedy);
    if (most > 0 && (uint64_t)info.st_size > most)
        return fail(NJ_E_FORMAT, "%s: %lld bytes, more than the %zu that such a file may have; %s",
                    path, (long long)info.st_size, most, remedy);
    return 0;
}

int regular_open(const char *path, size_t most, const char *remedy, FILE **out)
{
    *out = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail(NJ_E_IO, "%s: %s; %s", path, strerror(errno), remedy);
    int err = check(path, fd, most, remedy);
    if (!err)
        *out = fdopen(fd, "rb");
    if (!err && !*out)
        err = fail(NJ_E_NOMEM, "%s: out of memory", path);
    if (err)
        close(fd);
    return err;
}
