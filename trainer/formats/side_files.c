/* SPDX-License-Identifier: Apache-2.0
 *
 * side_files.c: see side_files.h.
 */
#include "formats/side_files.h"

#include "io/error.h"
#include "io/model_folder.h"
#include "io/notes.h"
#include "io/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES_MOST = 64 << 20 };

static const char *const names[] = {
    "tokenizer.json",      "tokenizer_config.json",   "vocab.json",
    "merges.txt",          "special_tokens_map.json", "generation_config.json",
    "chat_template.jinja", "chat_template.json",      "added_tokens.json",
    "tokenizer.model"};
enum { NAMES = sizeof names / sizeof *names };

bool side_file_name(const char *name)
{
    for (int i = 0; i < NAMES; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Widen `real`, the folder that a file must lie in: from the model's folder to
 * CACHE/models--NAME, if it is CACHE/models--NAME/snapshots/REVISION of the Hugging Face cache. */
static void widen(char *real)
{
    static const char above[] = "/snapshots";
    const size_t length = strlen(above);
    const char *revision = strrchr(real, '/');
    if ((size_t)(revision - real) < length || memcmp(revision - length, above, length) != 0)
        return;
    char *snapshots = real + (size_t)(revision - real) - length;
    *snapshots = '\0';
    const char *model = strrchr(real, '/');
    if (model == NULL || strncmp(model, "/models--", strlen("/models--")) != 0)
        *snapshots = '/';
}

/* Check the location of the open file itself: its name could lead elsewhere by the time it is
 * opened. */
static int check_place(const char *from, const char *path, int fd)
{
    char link[64], real[PATH_BYTES], root[PATH_BYTES];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, real, sizeof real - 1);
    if (length < 0 || realpath(from, root) == NULL)
        return fail(NJ_E_IO, "%s: cannot tell where it lies: %s", path, strerror(errno));
    real[length] = '\0';
    widen(root);
    if (folder_holds(root, real))
        return 0;
    return fail(NJ_E_ARG,
                "%s: a link to %s, outside of the model's folder; put the file itself there", path,
                real);
}

static int check_file(const char *path, int fd, struct stat *info)
{
    if (fstat(fd, info) != 0)
        return fail(NJ_E_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info->st_mode))
        return fail(NJ_E_ARG, "%s: not a regular file; remove it or put the file itself there",
                    path);
    if (info->st_size > BYTES_MOST)
        return fail(NJ_E_UNSUPPORTED, "%s: %lld MiB, and a file beside a model has %d at most",
                    path, (long long)info->st_size >> 20, BYTES_MOST >> 20);
    return 0;
}

/* Open the source; fd: -1 if there is none. */
static int open_source(const char *from, const char *name, int *fd, struct stat *info)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", from, name);
    *fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*fd < 0)
        return errno == ENOENT ? 0 : fail(NJ_E_IO, "%s: %s", path, strerror(errno));
    int rc = check_place(from, path, *fd);
    if (rc == 0)
        rc = check_file(path, *fd, info);
    if (rc != 0) {
        close(*fd);
        *fd = -1;
    }
    return rc;
}

static int copy_bytes(int in, int out, const char *name, const char *to)
{
    char block[1 << 16];
    ssize_t got;
    off_t all = 0;
    while ((got = read(in, block, sizeof block)) > 0) {
        if ((all += got) > BYTES_MOST)
            return fail(NJ_E_UNSUPPORTED, "%s: grew while it was copied", name);
        for (ssize_t put, at = 0; at < got; at += put)
            if ((put = write(out, block + at, (size_t)(got - at))) < 0)
                return fail(NJ_E_IO, "%s: cannot write it: %s", to, strerror(errno));
    }
    return got == 0 ? 0 : fail(NJ_E_IO, "%s: cannot read it: %s", name, strerror(errno));
}

int side_file_copy(const char *from, const char *to, const char *name)
{
    char target[PATH_BYTES];
    struct stat info;
    int in;
    int rc = open_source(from, name, &in, &info);
    if (rc != 0 || in < 0)
        return rc;
    snprintf(target, sizeof target, "%s/%s", to, name);
    /* This user reads the file again, to flush it and later on. */
    const mode_t mode = (info.st_mode & 0666) | S_IRUSR;
    const int out = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (out < 0)
        rc = fail(NJ_E_IO, "%s: cannot write it: %s", target, strerror(errno));
    else
        rc = copy_bytes(in, out, name, target);
    if (out >= 0 && close(out) != 0 && rc == 0)
        rc = fail(NJ_E_IO, "%s: cannot write it: %s", target, strerror(errno));
    if (rc != 0 && out >= 0)
        unlink(target);
    close(in);
    return rc;
}

/* Note templates for more than plain conversations, which are in a folder of their own that is
 * not saved. */
static void note_templates(const char *from)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/additional_chat_templates", from);
    if (access(path, F_OK) == 0)
        note("%s is not copied; copy it into the saved folder if you need it", path);
}

int side_files_copy(const char *from, const char *to)
{
    int rc = 0;
    note_templates(from);
    for (int i = 0; i < NAMES && rc == 0; i++)
        rc = side_file_copy(from, to, names[i]);
    return rc;
}

int side_files_check(const char *from)
{
    int rc = 0;
    note_templates(from);
    for (int i = 0; i < NAMES && rc == 0; i++) {
        struct stat info;
        int fd;
        rc = open_source(from, names[i], &fd, &info);
        if (fd >= 0)
            close(fd);
    }
    return rc;
}
