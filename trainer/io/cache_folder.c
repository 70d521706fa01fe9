/* SPDX-License-Identifier: Apache-2.0
 *
 * cache_folder.c: see cache_folder.h.
 */
#include "io/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void find(char *out, size_t bytes)
{
    static const char own[] = "/nojit";
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache != NULL && cache[0] == '/')
        n = snprintf(out, bytes, "%s", cache);
    else if (home != NULL && home[0] == '/')
        n = snprintf(out, bytes, "%s/.cache", home);
    if (n < 0 || (size_t)n + sizeof own > bytes) {
        *out = '\0';
        return;
    }
    snprintf(out + n, bytes - (size_t)n, "%s", own);
}

/* Return whether no other user owns the file or can write to it; root may own it. A group with
 * the number of its only user, as most systems give each user one, contains nobody else. */
static bool is_private(const struct stat *s, const char *path, char *why, size_t bytes)
{
    const bool group = (s->st_mode & S_IWGRP) && s->st_gid != 0 && s->st_gid != s->st_uid;
    if (s->st_uid != geteuid() && s->st_uid != 0)
        snprintf(why, bytes, "the cache is not used: %s belongs to user %ld", path,
                 (long)s->st_uid);
    else if (!S_ISLNK(s->st_mode) && (group || (s->st_mode & S_IWOTH)))
        snprintf(why, bytes, "the cache is not used: others can write to %s", path);
    return why[0] == '\0';
}

/* Return whether the folder and its files are private. The folder is checked first: once it is private, nobody else can
 * change its contents. */
static bool is_all_private(DIR *d, const char *folder, char *why, size_t bytes)
{
    struct stat info;
    char path[4096];
    const struct dirent *e;
    if (fstat(dirfd(d), &info) != 0 || !is_private(&info, folder, why, bytes))
        return false;
    while ((e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(d), e->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (!is_private(&info, path, why, bytes))
            return false;
    }
    return true;
}

void cache_folder(char *out, size_t bytes, char *why, size_t why_bytes)
{
    why[0] = '\0';
    find(out, bytes);
    DIR *d = out[0] != '\0' ? opendir(out) : NULL;
    if (d == NULL)
        return; /* the folder is created when something is stored */
    if (!is_all_private(d, out, why, why_bytes))
        out[0] = '\0';
    closedir(d);
}
