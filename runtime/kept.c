/* SPDX-License-Identifier: Apache-2.0
 *
 * kept.c: small files that a start leaves for the next one in the cache folder.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#include "base/temp_name.h"

int nj_kept_path(const nj_context *ctx, const char *folder, const char *kind, char *out,
                 size_t bytes)
{
    return folder && ctx->info.cache_key[0] &&
           snprintf(out, bytes, "%s/%s-%s.%s", folder, ctx->info.backend, ctx->info.cache_key,
                    kind) < (int)bytes;
}

static void make_folder_of(const char *path)
{
    char folder[4096];
    char *last, *before;

    snprintf(folder, sizeof folder, "%s", path);
    last = strrchr(folder, '/');
    if (!last)
        return;
    *last = '\0';
    before = strrchr(folder, '/');
    if (before) {
        *before = '\0';
        mkdir(folder, 0777);
        *before = '/';
    }
    mkdir(folder, 0700);
}

static int write_all(int fd, const struct iovec *part, int count)
{
    for (int i = 0; i < count; i++)
        if (write(fd, part[i].iov_base, part[i].iov_len) != (ssize_t)part[i].iov_len)
            return -1;
    return fsync(fd);
}

void nj_kept_write(const char *path, const struct iovec *part, int count)
{
    char temp[4096];
    int fd, failed;

    make_folder_of(path);
    fd = temp_make(path, temp, sizeof temp, temp_new_private_file);
    if (fd < 0)
        return;
    failed = write_all(fd, part, count) != 0;
    failed |= close(fd) != 0;
    if (failed || rename(temp, path) != 0)
        unlink(temp);
}
