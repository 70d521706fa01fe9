/* SPDX-License-Identifier: Apache-2.0
 *
 * model_folder.c: checks and publishes output folders.
 */
#include "io/model_folder.h"

#include "io/error.h"
#include "io/path.h"
#include "io/temp.h"
#include "io/unfinished.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

bool folder_is(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* ---- output folders ---- */

/* Remove the last name from a path. */
static void go_up(char *place, size_t bytes)
{
    char *slash = strrchr(place, '/');
    if (!slash)
        snprintf(place, bytes, ".");
    else
        slash[slash == place] = '\0';
}

/* Find the nearest folder at or above path that exists. */
static int nearest(const char *path, char *place, size_t bytes)
{
    struct stat info;
    snprintf(place, bytes, "%s", path);
    while (stat(place, &info) != 0) {
        if ((errno != ENOENT && errno != ENOTDIR) || strcmp(place, ".") == 0)
            return fail(NJ_E_IO, "%s: cannot be looked up: %s", path, strerror(errno));
        go_up(place, bytes);
    }
    if (S_ISDIR(info.st_mode))
        return 0;
    if (strcmp(place, path) == 0)
        return fail(NJ_E_IO, "%s: is a file; name a folder", path);
    return fail(NJ_E_IO, "%s: %s is a file; name a folder", path, place);
}

/* Create the folders above path. */
static int make_parents(const char *path)
{
    char copy[PATH_BYTES];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const int error = mkdir(copy, 0777) != 0 ? errno : 0;
        if (error != 0 && error != EEXIST && !folder_is(copy))
            return fail(NJ_E_IO, "%s: cannot create it: %s; choose another output folder", copy,
                        strerror(error));
        *slash = '/';
    }
    return 0;
}

/* Return the number of entries of a folder, at most 1; -1 with errno if it cannot be read. */
static int has_entries(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    int found = 0;
    for (struct dirent *e; !found && (e = readdir(dir));)
        found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return found;
}

static int check_vacant(const char *path)
{
    int found = has_entries(path);
    if (found == 0 || (found < 0 && errno == ENOENT))
        return 0;
    if (found < 0)
        return fail(NJ_E_IO, "%s: cannot be an output folder: %s; choose another", path,
                    strerror(errno));
    return fail(NJ_E_IO, "%s: the folder is not empty; choose another or remove it", path);
}

void folder_unmake(const char *path, const char *before)
{
    char place[PATH_BYTES];
    snprintf(place, sizeof place, "%s", path);
    /* Names that do not exist, and the end of "a/.", are removed from the path, too. */
    while (strcmp(place, before) != 0 && (rmdir(place) == 0 || errno == ENOENT || errno == EINVAL))
        go_up(place, sizeof place);
}

static int refuse_name(const char *path)
{
    return fail(NJ_E_IO, "'%.80s': not usable as a folder name; choose another", path);
}

static int refuse_to_create(const char *path)
{
    return fail(NJ_E_IO, "%s: cannot create it: %s; choose another output folder", path,
                strerror(errno));
}

int folder_make(const char *path, char *before, size_t bytes)
{
    if (path[0] == '\0' || strlen(path) >= bytes)
        return refuse_name(path);
    int rc = nearest(path, before, bytes);
    if (rc != 0 || strcmp(before, path) == 0)
        return rc;
    rc = make_parents(path);
    if (rc == 0 && mkdir(path, 0777) != 0 && errno != EEXIST)
        rc = refuse_to_create(path);
    if (rc != 0)
        folder_unmake(path, before);
    return rc;
}

/* Create f->temp, and the missing folders above it. */
static int make_temp(struct folder *f)
{
    char above[PATH_BYTES];
    snprintf(above, sizeof above, "%s", f->path);
    go_up(above, sizeof above);
    TRY(nearest(above, f->before, sizeof f->before));
    int rc = make_parents(f->path);
    if (rc == 0 && temp_folder(f->path, f->temp, sizeof f->temp) != 0)
        rc = refuse_to_create(f->path);
    if (rc != 0)
        folder_unmake(above, f->before);
    return rc;
}

int folder_begin(struct folder *f, const char *path)
{
    size_t length = strlen(path);
    memset(f, 0, sizeof *f);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length == 0 || length >= sizeof f->path)
        return refuse_name(path);
    memcpy(f->path, path, length);
    TRY(check_vacant(f->path));
    return make_temp(f);
}

/* Flush a file or folder; return 0, or -1 with errno. Some file systems cannot flush a folder
 * (EINVAL, ENOTSUP): then there is nothing to wait for. */
static int flush(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const int rc = fsync(fd), error = errno;
    close(fd);
    errno = error;
    return rc != 0 && (error == EINVAL || error == ENOTSUP) ? 0 : rc;
}

/* Flush one entry; called by nftw(). */
static int flush_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)walk;
    return type == FTW_F || type == FTW_DP ? flush(path) : 0;
}

/* Remove one entry; called by nftw(). */
static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

int folder_flush(const struct folder *f)
{
    if (nftw(f->temp, flush_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
        return fail(NJ_E_IO, "%s: cannot be written: %s", f->path, strerror(errno));
    return 0;
}

int folder_flush_names(const char *dir)
{
    /* A folder that may be written but not read cannot be opened to be flushed. */
    if (flush(dir) == 0 || errno == EACCES)
        return 0;
    return fail(NJ_E_IO,
                "%s: cannot fsync the folder: %s; new entries may be lost on power failure", dir,
                strerror(errno));
}

int folder_commit(struct folder *f)
{
    char parent[PATH_BYTES];
    int rc = folder_flush(f);
    /* rename() also replaces an empty folder, which --out may be. */
    if (rc == 0 && rename(f->temp, f->path) != 0)
        rc = fail(NJ_E_IO, "%s: cannot publish the folder: %s", f->path, strerror(errno));
    if (rc != 0) {
        folder_abort(f);
        return rc;
    }
    unfinished_done(f->temp);
    f->temp[0] = '\0';
    snprintf(parent, sizeof parent, "%s", f->path);
    return folder_flush_names(dirname(parent));
}

void folder_abort(struct folder *f)
{
    if (!f->temp[0])
        return;
    (void)nftw(f->temp, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    unfinished_done(f->temp);
    folder_unmake(f->temp, f->before);
    f->temp[0] = '\0';
}

bool folder_holds(const char *dir, const char *path)
{
    char place[PATH_BYTES], in[PATH_BYTES], above[PATH_BYTES];
    snprintf(place, sizeof place, "%s", path);
    while (!folder_is(place) && strcmp(place, ".") != 0 && strcmp(place, "/") != 0)
        go_up(place, sizeof place);
    if (!realpath(place, in) || !realpath(dir, above) || !folder_is(above))
        return false;
    size_t length = strlen(above);
    length -= length == 1; /* length of / */
    return strncmp(in, above, length) == 0 && (in[length] == '/' || in[length] == '\0');
}

int folder_check_place(const char *path)
{
    char place[PATH_BYTES], probe[PATH_BYTES + 8], temp[PATH_BYTES + 32];
    TRY(nearest(path, place, sizeof place));
    snprintf(probe, sizeof probe, "%s/probe", place);
    if (temp_folder(probe, temp, sizeof temp) != 0)
        return fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    rmdir(temp);
    unfinished_done(temp);
    return 0;
}

static int check_space(const char *path, uint64_t bytes)
{
    char place[PATH_BYTES];
    struct statvfs info;
    /* The folder's place is on the same file system. */
    TRY(nearest(path, place, sizeof place));
    if (statvfs(place, &info) != 0)
        return fail(NJ_E_IO, "%s: its file system cannot be asked for free space: %s", path,
                    strerror(errno));
    uint64_t free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    if (info.f_blocks > 0 && free_bytes < bytes) /* some file systems do not report a size */
        return fail(NJ_E_IO, "%s: %.0f MiB are needed, %.0f MiB are free; choose another folder",
                    path, ceil((double)bytes / 0x1p20), floor((double)free_bytes / 0x1p20));
    return 0;
}

int folder_check_model_space(const char *path, uint64_t weights)
{
    return check_space(path, weights + (weights >> 6)); /* the other files of the model take less */
}
