/* SPDX-License-Identifier: Apache-2.0
 *
 * run_files.c: see run_files.h. Everything below OUT is reached from a descriptor of its folder, so that no other user
 * who may write there can redirect a path by a link.
 */
#include "record/run_files.h"

#include "base/temp_name.h"
#include "engine/engine.h"
#include "formats/side_files.h"
#include "io/error.h"
#include "io/model_folder.h"
#include "model/gguf_ftype.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names ---- */

enum form {
    NONE,
    FILES,
    FOLDER
}; /* the meaning of a name; NONE: only the base of temporary names */

static const struct {
    const char *name;
    enum form form;
} entries[] = {
    {"metrics.jsonl", FILES}, {"metrics.jsonl.old", FILES},
    {"samples.jsonl", FILES}, {"samples.jsonl.old", FILES},
    {"receipt.json", FILES},  {"lock", FILES},
    {"best", FOLDER},         {"best.new", FOLDER},
    {"best.old", FOLDER},     {"merged", FOLDER},
    {"runs", FOLDER},         {"final", NONE},
};

/* Files that a model folder or a checkpoint holds in addition to the tokenizer's. */
static const char *const model_files[] = {
    "config.json",         "model.safetensors",         "model.safetensors.index.json",
    "adapter_config.json", "adapter_model.safetensors",
};
static const char *const state_files[] = {"state.bin", "settings.txt", "progress.txt",
                                          "answers.bin", ENGINE_GEMM_TABLE};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_shard(const char *name)
{
    unsigned part, parts;
    char again[64];
    if (sscanf(name, "model-%5u-of-%5u", &part, &parts) != 2)
        return false;
    snprintf(again, sizeof again, "model-%05u-of-%05u.safetensors", part, parts);
    return strcmp(name, again) == 0;
}

static bool is_export(const char *name)
{
    char again[64];
    for (size_t i = 0; i < GGUF_FTYPES; i++) {
        snprintf(again, sizeof again, OWN_EXPORT, gguf_ftypes[i].name);
        if (strcmp(name, again) == 0)
            return true;
    }
    return false;
}

static bool is_model_file(const char *name)
{
    return is_one_of(name, model_files, COUNT(model_files)) || is_shard(name) ||
           side_file_name(name);
}

int64_t own_step(const char *name)
{
    long long step;
    char again[64];
    if (sscanf(name, "checkpoint-%lld", &step) != 1 || step <= 0)
        return 0;
    snprintf(again, sizeof again, "checkpoint-%lld", step);
    return strcmp(name, again) == 0 ? step : 0;
}

/* Return the form of a name that a run gives within OUT, or -1. */
static int form_of(const char *name)
{
    char plain[64];
    for (size_t i = 0; i < COUNT(entries); i++)
        if (strcmp(name, entries[i].name) == 0)
            return (int)entries[i].form;
    if (is_model_file(name) || is_export(name))
        return FILES;
    const size_t length = strlen(name), ending = strlen(".old");
    const bool old = length > ending && strcmp(name + length - ending, ".old") == 0;
    snprintf(plain, sizeof plain, "%.*s", (int)(old ? length - ending : length), name);
    return own_step(plain) > 0 ? FOLDER : -1;
}

/* Copy NAME of "NAME.tmp-N" (base/temp_name.h) into plain; return the process that wrote it, or 0. */
static long partial_of(const char *entry, char *plain, size_t bytes)
{
    const char *dot = strstr(entry, ".tmp-");
    if (dot == NULL || (size_t)(dot - entry) >= bytes)
        return 0;
    const char *digits = dot + strlen(".tmp-");
    if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return 0;
    snprintf(plain, bytes, "%.*s", (int)(dot - entry), entry);
    return temp_process(strtol(digits, NULL, 10));
}

/* Return whether a name is a temporary one that earlier builds gave the GEMM table: it ends with six letters and
 * digits of mkstemp(). */
static bool is_partial_table(const char *name)
{
    static const char prefix[] = ENGINE_GEMM_TABLE ".tmp-",
                      letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t n = sizeof prefix - 1;
    return strncmp(name, prefix, n) == 0 && strlen(name + n) == 6 && strspn(name + n, letters) == 6;
}

static bool is_written_inside(const char *name)
{
    char plain[256];
    if (is_partial_table(name))
        return true;
    if (partial_of(name, plain, sizeof plain) > 0)
        name = plain;
    return is_model_file(name) || is_one_of(name, state_files, COUNT(state_files));
}

/* ---- folders of a run ---- */

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Open OUT, which may itself be a link: the user who named it wants its target. */
static int open_out(const char *out)
{
    return open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Return whether a file is this user's, or belongs to the owner of its folder, as when root continues a user's run, or
 * a file system gives all files one owner. */
static bool is_ours(const struct stat *file, const struct stat *folder)
{
    return file->st_uid == geteuid() || file->st_uid == folder->st_uid;
}

/* Call look(user, folder's descriptor, name) until it fails; *rc gets its code. False with errno if the folder cannot
 * be read. */
static bool each_entry(int at, int (*look)(void *user, int at, const char *name), void *user,
                       int *rc)
{
    *rc = 0;
    const int again = open_folder(at, ".");
    DIR *d = again >= 0 ? fdopendir(again) : NULL;
    if (d == NULL) {
        if (again >= 0)
            close(again);
        return false;
    }
    const struct dirent *e;
    do {
        errno = 0;
        e = readdir(d);
        if (e != NULL && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            *rc = look(user, dirfd(d), e->d_name);
    } while (e != NULL && *rc == 0);
    const int error = e == NULL ? errno : 0; /* a folder that is read in part counts as unread */
    closedir(d);
    errno = error;
    return error == 0;
}

static int walk(const char *out, int (*look)(void *user, int at, const char *name), void *user)
{
    int rc = 0;
    const int at = open_out(out);
    if (at < 0 && (errno == ENOENT || errno == ENOTDIR)) /* creating it will report the error */
        return 0;
    if (at < 0 || !each_entry(at, look, user, &rc))
        rc = fail(NJ_E_IO, "--out %s: cannot be read: %s", out, strerror(errno));
    if (at >= 0)
        close(at);
    return rc;
}

struct steps {
    int64_t after, before; /* range of steps that count */
    int64_t oldest, newest;
    size_t count;
};

static int see_step(void *user, int at, const char *name)
{
    struct steps *s = user;
    const int64_t step = own_step(name);
    (void)at;
    if (step > s->after && step < s->before) {
        s->oldest = s->count == 0 || step < s->oldest ? step : s->oldest;
        s->newest = step > s->newest ? step : s->newest;
        s->count++;
    }
    return 0;
}

size_t own_steps(const char *out, int64_t after, int64_t *oldest)
{
    struct steps s = {.after = after, .before = INT64_MAX};
    (void)walk(out, see_step, &s);
    *oldest = s.oldest;
    return s.count;
}

int64_t own_newest(const char *out, int64_t before)
{
    struct steps s = {.before = before};
    (void)walk(out, see_step, &s);
    return s.newest;
}

/* Read the start of a regular file; return the number of bytes, or -1 with errno, which is 0 for a file of another
 * kind. */
static ssize_t read_start(int at, const char *name, char *start, size_t bytes)
{
    struct stat info;
    const int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        errno = errno == ELOOP || errno == ENXIO ? 0 : errno; /* a link, a socket */
        return -1;
    }
    const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    errno = 0;
    const ssize_t n = regular ? read(fd, start, bytes) : -1;
    const int error = errno;
    close(fd);
    errno = error;
    return n;
}

/* Return whether a file starts with the text, as far as the file goes: a killed run may have only created it. */
static bool starts_with(int at, const char *name, const char *text)
{
    char start[16];
    const ssize_t n = read_start(at, name, start, strlen(text));
    return n >= 0 && memcmp(start, text, (size_t)n) == 0;
}

static int refuse_name(void *out, int at, const char *name)
{
    char plain[256];
    const bool lock = strcmp(name, "lock") == 0;
    errno = 0;
    if (lock && starts_with(at, name, OWN_LOCK_MARK))
        return 0; /* lock of this run, or of one that was killed before it wrote anything else */
    if (lock && errno != 0)
        return fail(NJ_E_IO, "--out %s: lock cannot be read: %s", (const char *)out,
                    strerror(errno));
    if (form_of(name) < 0 && (partial_of(name, plain, sizeof plain) == 0 || form_of(plain) < 0))
        return 0;
    return fail(NJ_E_ARG,
                "--out %s already contains %s, which a new run would write; choose another folder, "
                "move it away, or continue that run with --resume auto",
                (const char *)out, name);
}

int own_check_new(const char *out)
{
    char copy[4200];
    snprintf(copy, sizeof copy, "%s", out);
    return walk(out, refuse_name, copy);
}

static int refuse_form(void *out, int at, const char *name)
{
    const int form = form_of(name);
    struct stat info, folder;
    if (form != FILES && form != NONE)
        return 0;
    if (fstat(at, &folder) != 0 || fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return fail(NJ_E_IO, "--out %s: %s: %s", (const char *)out, name, strerror(errno));
    if (form == FILES && S_ISREG(info.st_mode) && is_ours(&info, &folder))
        return 0;
    return fail(NJ_E_ARG, "--out %s: %s was not written by nojit; move or rename it",
                (const char *)out, name);
}

int own_check_again(const char *out)
{
    char copy[4200];
    snprintf(copy, sizeof copy, "%s", out);
    return walk(out, refuse_form, copy);
}

/* ---- files ---- */

static int check_own_file(int fd, const char *path)
{
    char parent[4200];
    struct stat file, folder;
    snprintf(parent, sizeof parent, "%s", path);
    if (fstat(fd, &file) != 0 || stat(dirname(parent), &folder) != 0)
        return fail(NJ_E_IO, "%s: cannot be examined: %s", path, strerror(errno));
    if (!S_ISREG(file.st_mode))
        return fail(NJ_E_ARG, "%s: not a regular file; name another, or move it away", path);
    if (file.st_nlink > 1)
        return fail(NJ_E_ARG,
                    "%s: has %lu hard links; writing would change all of them; move it away", path,
                    (unsigned long)file.st_nlink);
    if (!is_ours(&file, &folder))
        return fail(NJ_E_ARG, "%s: belongs to another user; move it away", path);
    return 0;
}

int own_open(const char *path, int flags, int *fd)
{
    /* O_NONBLOCK: a pipe without a reader is refused, not waited for. */
    *fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (*fd < 0) {
        const int error = errno;
        const int rc =
            error == ELOOP
                ? fail(NJ_E_ARG, "%s is a symbolic link, which nojit does not follow; move it away",
                       path)
                : fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(error));
        errno = error;
        return rc;
    }
    const int rc = check_own_file(*fd, path);
    if (rc != 0) {
        close(*fd);
        *fd = -1;
        errno = EPERM;
    }
    return rc;
}

bool own_is_begun(const char *out)
{
    const int at = open_out(out);
    const bool begun = at >= 0 && starts_with(at, "metrics.jsonl", "{\"step\": ");
    if (at >= 0)
        close(at);
    return begun;
}

static bool holds_state(int at)
{
    char start[8];
    return read_start(at, "state.bin", start, sizeof start) == 8 &&
           memcmp(start, "NJSTATE", 8) == 0 && read_start(at, "settings.txt", start, 1) >= 0;
}

bool own_is_checkpoint(const char *out, const char *name)
{
    const int above = open_out(out), at = above >= 0 ? open_folder(above, name) : -1;
    const bool whole = at >= 0 && holds_state(at);
    if (at >= 0)
        close(at);
    if (above >= 0)
        close(above);
    return whole;
}

/* ---- removing ---- */

struct removal {
    const char *out, *name;
    struct stat folder;
};

static int refuse_removal(const struct removal *r)
{
    return fail(NJ_E_IO, "%s/%s cannot be removed: %s", r->out, r->name, strerror(errno));
}

static int refuse_other(void *user, int at, const char *name)
{
    const struct removal *r = user;
    struct stat info;
    if (fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && is_written_inside(name) &&
        S_ISREG(info.st_mode) && is_ours(&info, &r->folder))
        return 0;
    return fail(NJ_E_IO, "%s/%s is not removed: it holds %s, which no run writes", r->out, r->name,
                name);
}

static int remove_one(void *user, int at, const char *name)
{
    const struct removal *r = user;
    TRY(refuse_other(user, at, name)); /* it may have appeared since */
    return unlinkat(at, name, 0) == 0 ? 0
                                      : fail(NJ_E_IO, "%s/%s: %s cannot be removed: %s", r->out,
                                             r->name, name, strerror(errno));
}

/* Remove a folder, which is renamed first: half removed, it is a leftover of a killed run. */
static int remove_folder(struct removal *r, int above)
{
    char plain[256], leaving[300];
    const bool partial = partial_of(r->name, plain, sizeof plain) > 0;
    const int at = open_folder(above, r->name);
    int rc = 0;
    if (at < 0 || fstat(at, &r->folder) != 0 || !each_entry(at, refuse_other, r, &rc))
        rc = refuse_removal(r);
    (void)temp_name(r->name, 0, leaving, sizeof leaving); /* names have 255 bytes at most */
    const char *name = partial ? r->name : leaving;
    if (rc == 0 && !partial && strcmp(r->name, "merged") != 0 && !holds_state(at))
        rc = fail(NJ_E_IO, "%s/%s is not removed: it is not a checkpoint", r->out, r->name);
    if (rc == 0 && !partial && renameat(above, r->name, above, name) != 0)
        rc = refuse_removal(r);
    if (rc == 0 && !each_entry(at, remove_one, r, &rc))
        rc = refuse_removal(r);
    if (rc == 0 && unlinkat(above, name, AT_REMOVEDIR) != 0)
        rc = refuse_removal(r);
    if (at >= 0)
        close(at);
    return rc;
}

static int remove_entry(struct removal *r, int above)
{
    struct stat info, folder;
    if (fstatat(above, r->name, &info, AT_SYMLINK_NOFOLLOW) != 0 || fstat(above, &folder) != 0)
        return refuse_removal(r);
    const bool is_folder = S_ISDIR(info.st_mode);
    if ((!is_folder && !S_ISREG(info.st_mode)) || !is_ours(&info, &folder))
        return fail(NJ_E_IO, "%s/%s is not removed: no run wrote it", r->out, r->name);
    if (is_folder)
        return remove_folder(r, above);
    return unlinkat(above, r->name, 0) == 0 ? 0 : refuse_removal(r);
}

int own_remove(const char *out, const char *name, int *removed)
{
    struct removal r = {.out = out, .name = name};
    const int above = open_out(out);
    if (above < 0)
        return errno == ENOENT ? 0 : fail(NJ_E_IO, "%s: %s", out, strerror(errno));
    struct stat info;
    const bool there = fstatat(above, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    const int rc = there ? remove_entry(&r, above) : 0;
    close(above);
    if (rc == 0 && there && removed != NULL)
        ++*removed;
    return rc;
}

struct partials {
    void (*what)(void *user, const char *name, long pid);
    void *user;
};

static int see_partial(void *user, int at, const char *name)
{
    const struct partials *p = user;
    char plain[256];
    const long pid = partial_of(name, plain, sizeof plain);
    (void)at;
    if (pid > 0 && (form_of(plain) >= 0 || strcmp(plain, "probe") == 0))
        p->what(p->user, name, pid);
    return 0;
}

void own_each_partial(const char *out, void (*what)(void *user, const char *name, long pid),
                      void *user)
{
    struct partials p = {what, user};
    (void)walk(out, see_partial, &p);
}
