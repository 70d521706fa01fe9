/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.c: see checkpoint.h.
 */
#include "checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "folder.h"
#include "merge.h"

/* Step of a folder named checkpoint-N, or 0. */
static int64_t step_of(const char *name)
{
    long long step = 0;
    char rest = '\0';
    return sscanf(name, "checkpoint-%lld%c", &step, &rest) == 1 && step > 0 ? step : 0;
}

/* Steps of all checkpoints in dir; returns how many were stored (at most `most`). */
static size_t list_steps(const char *dir, int64_t *steps, size_t most)
{
    size_t count = 0;
    DIR *d = opendir(dir);
    if (d == NULL)
        return 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL && count < most;) {
        steps[count] = step_of(e->d_name);
        count += steps[count] > 0;
    }
    closedir(d);
    return count;
}

/* Newest checkpoint of a step below `before`, or 0. */
static int64_t newest_before(const char *dir, int64_t before)
{
    int64_t steps[4096], last = 0;
    const size_t count = list_steps(dir, steps, 4096);
    for (size_t i = 0; i < count; i++)
        last = steps[i] > last && steps[i] < before ? steps[i] : last;
    return last;
}

static int64_t newest(const char *dir)
{
    return newest_before(dir, INT64_MAX);
}

/* A folder with its files, or a file. */
static int remove_files(const char *dir)
{
    char path[8192];
    int error = 0;
    DIR *d = opendir(dir);
    if (d == NULL)
        return errno == ENOTDIR ? unlink(dir) : -1;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && unlink(path) != 0)
            error = errno;
    }
    closedir(d);
    errno = error;
    return error == 0 ? rmdir(dir) : -1;
}

/* Removes the oldest checkpoints until `keep` are left. Each gives up its name first: what is half
 * removed is no checkpoint, and goes with the leftovers of a run that was killed. */
static int prune(const struct checkpoints *c)
{
    char path[4200], leaving[4300];
    int64_t steps[4096];
    size_t count = list_steps(c->out, steps, 4096);
    for (; (int64_t)count > c->keep; count--) {
        size_t oldest = 0;
        for (size_t i = 1; i < count; i++)
            oldest = steps[i] < steps[oldest] ? i : oldest;
        snprintf(path, sizeof path, "%s/checkpoint-%lld", c->out, (long long)steps[oldest]);
        snprintf(leaving, sizeof leaving, "%s.tmp-%d", path, (int)getpid());
        if (rename(path, leaving) != 0 || remove_files(leaving) != 0)
            return fail(NJ_E_IO, "%s: an old checkpoint cannot be removed: %s", path,
                        strerror(errno));
        steps[oldest] = steps[count - 1];
    }
    return 0;
}

/* With one of these a folder is a model, or adapters of one. */
static const char *const marks[] = {"config.json", "adapter_config.json"};

static bool is_mark(const char *name)
{
    return strcmp(name, marks[0]) == 0 || strcmp(name, marks[1]) == 0;
}

static bool holds(const char *dir, const char *name)
{
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* resume: auto was asked for, but there is no checkpoint; then it starts a new run. */
static int check_new(const char *out, bool resume)
{
    const bool model = holds(out, marks[0]);
    if (resume && (model || holds(out, marks[1])) && holds(out, "receipt.json"))
        return fail(NJ_E_ARG,
                    "--resume auto: the run in %s is finished and has no checkpoint to go on from; "
                    "name another --out, and to train its %s further --%s %s",
                    out, model ? "model" : "adapters", model ? "student" : "adapter", out);
    if (model || holds(out, marks[1]))
        return fail(NJ_E_ARG, "--out %s holds a model already; name another folder", out);
    if (newest(out) > 0)
        return fail(
            NJ_E_ARG,
            "--out %s holds checkpoints of a run that was begun; go on with --resume auto or name "
            "another folder",
            out);
    return 0;
}

static int check_resume(const char *dir)
{
    const int64_t inside = newest(dir);
    if (access(dir, F_OK) != 0)
        return fail(NJ_E_ARG,
                    "--resume %s: no such folder; name a checkpoint (OUT/checkpoint-N, with its "
                    "state.bin), or auto for the newest one of --out",
                    dir);
    if (holds(dir, "state.bin"))
        return 0;
    if (inside > 0)
        return fail(NJ_E_ARG, "--resume %s: the folder of a run; name %s/checkpoint-%lld in it",
                    dir, dir, (long long)inside);
    return fail(NJ_E_ARG,
                "--resume %s: there is no state.bin in it; name a checkpoint that --save-every "
                "wrote (OUT/checkpoint-N), or auto for the newest one of --out",
                dir);
}

/* A checkpoint's settings against those of this run, line by line. A folder without them is left to
 * the reader of its state. */
static int check_settings(const char *dir, const char *wanted, const char *otherwise)
{
    char path[8192], line[SETTINGS_BYTES];
    snprintf(path, sizeof path, "%s/settings.txt", dir);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return 0;
    int err = 0;
    while (!err && fgets(line, sizeof line, f) != NULL) {
        const size_t length = strcspn(line, "\n"), now = strcspn(wanted, "\n");
        if (length != now || strncmp(line, wanted, length) != 0)
            err =
                fail(NJ_E_ARG,
                     "%s was made with %.*s, this run has %.*s; repeat the options of the run, or "
                     "%s",
                     dir, (int)length, line, (int)now, wanted, otherwise);
        wanted += now + (wanted[now] == '\n');
    }
    fclose(f);
    return err;
}

/* Whether dir is a folder in out, whatever both are called. */
static bool lies_in(const char *dir, const char *out)
{
    char copy[4200], path[8400];
    struct stat a, b;
    snprintf(copy, sizeof copy, "%s", dir);
    snprintf(path, sizeof path, "%s/%s", out, basename(copy));
    return stat(dir, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

int checkpoints_open(struct checkpoints *c, const char *out, const char *resume)
{
    const bool automatic = resume != NULL && strcmp(resume, "auto") == 0;
    c->resume[0] = '\0';
    if (snprintf(c->out, sizeof c->out, "%s", out) >= (int)sizeof c->out - 64)
        return fail(NJ_E_ARG, "--out: the path is too long; use a shorter one");
    if (resume != NULL)
        c->last = newest(out);
    if (resume == NULL || (automatic && c->last == 0)) /* nothing to resume yet: auto starts */
        return check_new(out, automatic);
    if (automatic)
        snprintf(c->resume, sizeof c->resume, "%s/checkpoint-%lld", out, (long long)c->last);
    else if (snprintf(c->resume, sizeof c->resume, "%s", resume) >= (int)sizeof c->resume)
        return fail(NJ_E_ARG, "--resume: the path is too long; use a shorter one");
    const int err = automatic ? 0 : check_resume(c->resume);
    return err || lies_in(c->resume, out) ? err : check_new(out, false);
}

bool checkpoints_setting(const struct checkpoints *c, const char *name, char *out, size_t bytes)
{
    char path[8192], line[SETTINGS_BYTES];
    const size_t length = strlen(name);
    bool found = false;
    if (c->resume[0] == '\0')
        return false;
    snprintf(path, sizeof path, "%s/settings.txt", c->resume);
    FILE *f = fopen(path, "r");
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        found = strncmp(line, name, length) == 0 && line[length] == ' ';
        if (found)
            snprintf(out, bytes, "%.*s", (int)strcspn(line + length + 1, "\n"), line + length + 1);
    }
    if (f != NULL)
        fclose(f);
    return found;
}

int checkpoints_check(const struct checkpoints *c)
{
    if (c->resume[0] == '\0')
        return 0;
    return check_settings(c->resume, c->settings,
                          lies_in(c->resume, c->out) ? "name another --out" : "leave --resume out");
}

/* The steps after it are done again, so their checkpoints would be in the way. */
int checkpoints_go_on(struct checkpoints *c, int64_t step, int64_t *aside)
{
    char path[4200], old[4300];
    *aside = 0;
    for (int64_t n; (n = newest(c->out)) > step; (*aside)++) {
        snprintf(path, sizeof path, "%s/checkpoint-%lld", c->out, (long long)n);
        snprintf(old, sizeof old, "%s.old", path);
        remove_files(old);
        if (rename(path, old) != 0)
            return fail(NJ_E_IO, "%s: cannot be renamed: %s", path, strerror(errno));
    }
    c->last = newest(c->out);
    return prune(c); /* a kill may have come before that */
}

int64_t checkpoints_other(const struct checkpoints *c)
{
    char copy[4200];
    snprintf(copy, sizeof copy, "%s", c->resume);
    const int64_t step = step_of(basename(copy));
    return newest_before(c->out, step > 0 ? step : INT64_MAX);
}

/* ---- what a killed run left ---- */

/* The number after "NAME.tmp-" if NAME is what a run publishes whole, else 0. */
static long writer_of(const char *entry)
{
    static const char *const names[] = {"best.new", "final", "merged", "receipt.json", "probe"};
    char name[256];
    const char *dot = strstr(entry, ".tmp-");
    if (dot == NULL || (size_t)(dot - entry) >= sizeof name)
        return 0;
    snprintf(name, sizeof name, "%.*s", (int)(dot - entry), entry);
    bool known = step_of(name) > 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        known = known || strcmp(name, names[i]) == 0;
    const char *digits = dot + strlen(".tmp-");
    if (!known || *digits == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return 0;
    return strtol(digits, NULL, 10);
}

/* This process has no such folders yet, but in a container an earlier one may have had its number. */
static bool is_running(long pid)
{
    return pid != (long)getpid() && (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

static int remove_leftovers(const char *out)
{
    char path[8192];
    int removed = 0;
    DIR *d = opendir(out);
    if (d == NULL)
        return 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        const long pid = writer_of(e->d_name);
        snprintf(path, sizeof path, "%s/%s", out, e->d_name);
        if (pid > 0 && !is_running(pid))
            removed += remove_files(path) == 0;
    }
    closedir(d);
    return removed;
}

/* Ended between two renames: best.new is whole and the newer one. */
static int settle_best(const char *out)
{
    char path[4200], fresh[4200], old[4200];
    snprintf(path, sizeof path, "%s/best", out);
    snprintf(fresh, sizeof fresh, "%s/best.new", out);
    snprintf(old, sizeof old, "%s/best.old", out);
    if (access(path, F_OK) != 0 && rename(fresh, path) != 0)
        (void)rename(old, path);
    return (remove_files(fresh) == 0) + (remove_files(old) == 0);
}

int checkpoints_begin(struct checkpoints *c, int *removed)
{
    *removed = 0;
    const int err = folder_make(c->out, c->before, sizeof c->before);
    if (err)
        return err;
    if (access(c->out, W_OK | X_OK) != 0)
        return fail(NJ_E_IO, "%s: cannot be written: %s", c->out, strerror(errno));
    *removed = remove_leftovers(c->out) + settle_best(c->out);
    return 0;
}

void checkpoints_close(struct checkpoints *c)
{
    if (c->before[0] != '\0')
        folder_unmake(c->out, c->before);
    c->before[0] = '\0';
}

static int write_settings(const char *dir, const char *settings)
{
    char path[8192];
    snprintf(path, sizeof path, "%s/settings.txt", dir);
    FILE *f = fopen(path, "w");
    const int failed = f == NULL || fputs(settings, f) < 0;
    if ((f != NULL && fclose(f) != 0) || failed)
        return fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    return 0;
}

static int save_folder(const struct checkpoints *c, const char *path, struct engine *e,
                       int64_t step, const struct data_state *data)
{
    struct folder f;
    int err = folder_begin(&f, path);
    if (err)
        return err;
    err = engine_save_model(e, f.temp);
    if (!err)
        err = engine_save_state(e, f.temp, step, data);
    if (!err)
        err = write_settings(f.temp, c->settings);
    if (err) {
        folder_abort(&f);
        return err;
    }
    return folder_commit(&f);
}

int checkpoints_save(struct checkpoints *c, struct engine *e, int64_t step,
                     const struct data_state *data)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/checkpoint-%lld", c->out, (long long)step);
    const int err = save_folder(c, path, e, step, data);
    if (err)
        return err;
    c->last = step;
    return prune(c);
}

/* At every moment the last best is there, as best or as best.old; leftovers of a run that was ended
 * in between go first. */
int checkpoints_save_best(const struct checkpoints *c, struct engine *e, int64_t step,
                          const struct data_state *data)
{
    char path[4200], fresh[4200], old[4200];
    snprintf(path, sizeof path, "%s/best", c->out);
    snprintf(fresh, sizeof fresh, "%s/best.new", c->out);
    snprintf(old, sizeof old, "%s/best.old", c->out);
    remove_files(fresh);
    const int err = save_folder(c, fresh, e, step, data);
    if (err)
        return err;
    if (access(path, F_OK) == 0) {
        remove_files(old);
        if (rename(path, old) != 0)
            return fail(NJ_E_IO, "%s: cannot be replaced: %s", path, strerror(errno));
    }
    if (rename(fresh, path) != 0)
        return fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    remove_files(old);
    return 0;
}

/* What marks a folder goes last. */
static int move_files(const char *from, const char *to)
{
    char source[8192], target[8192];
    for (int last = 0; last < 2; last++) {
        DIR *d = opendir(from);
        if (d == NULL)
            return fail(NJ_E_IO, "%s: %s", from, strerror(errno));
        for (const struct dirent *e; (e = readdir(d)) != NULL;) {
            if (e->d_name[0] == '.' || is_mark(e->d_name) != last)
                continue;
            snprintf(source, sizeof source, "%s/%s", from, e->d_name);
            snprintf(target, sizeof target, "%s/%s", to, e->d_name);
            if (rename(source, target) != 0) {
                closedir(d);
                return fail(NJ_E_IO, "%s: cannot be written: %s", target, strerror(errno));
            }
        }
        closedir(d);
    }
    return 0;
}

int checkpoints_finish(struct checkpoints *c, struct engine *e)
{
    char path[4200];
    struct folder f;
    snprintf(path, sizeof path, "%s/final", c->out);
    int err = folder_begin(&f, path);
    if (!err)
        err = engine_save_model(e, f.temp);
    if (!err)
        err = folder_flush(&f);
    if (!err)
        err = move_files(f.temp, c->out);
    if (!err)
        err = folder_flush_names(c->out);
    folder_abort(&f);
    return err;
}

int checkpoints_merge(const struct checkpoints *c, const char *base, size_t *merged)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/merged", c->out);
    remove_files(path);
    return merge_adapters(base, c->out, path, merged);
}
