/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.c: see checkpoint.h.
 */
#include "record/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/plural.h"
#include "io/error.h"
#include "io/model_folder.h"
#include "record/run_files.h"
#include "text/generation.h"
#include "weights/merge.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

void checkpoints_listen(struct checkpoints *c, void (*say)(void *user, const char *line),
                        void *user)
{
    char *line, *rest = c->notes;
    c->say = say;
    c->user = user;
    while ((line = strsep(&rest, "\n")) != NULL)
        if (*line != '\0')
            say(user, line);
    c->notes[0] = '\0';
}

/* Pass a line to the listener; before there is one, it is kept. */
static void note(struct checkpoints *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void note(struct checkpoints *c, const char *format, ...)
{
    char line[1200];
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    const size_t used = strlen(c->notes);
    if (c->say != NULL)
        c->say(c->user, line);
    else
        snprintf(c->notes + used, sizeof c->notes - used, "%s\n", line);
}

/* Remove the oldest checkpoints until `keep` are left. One that cannot be removed stays and does not count from then
 * on. */
static void prune(struct checkpoints *c)
{
    char name[64];
    int64_t oldest;
    while ((int64_t)own_steps(c->out, c->stuck, &oldest) > c->keep) {
        snprintf(name, sizeof name, "checkpoint-%lld", (long long)oldest);
        if (own_remove(c->out, name, NULL) == 0)
            continue;
        c->stuck = oldest;
        note(c, "%s", fail_text());
    }
}

/* Return whether OUT/NAME exists, even as a link to nothing. */
static bool is_there(const char *out, const char *name)
{
    char path[4300];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", out, name);
    return lstat(path, &info) == 0;
}

static int give_name(const char *out, const char *from, const char *to)
{
    char source[4300], target[4300];
    snprintf(source, sizeof source, "%s/%s", out, from);
    snprintf(target, sizeof target, "%s/%s", out, to);
    if (rename(source, target) == 0)
        return 0;
    return fail(NJ_E_IO, "%s: cannot be renamed to %s: %s", source, to, strerror(errno));
}

/* Make OUT/NAME free: a run's own file is removed, anything else gets another name. */
static int make_way(struct checkpoints *c, const char *name)
{
    char other[80];
    if (own_remove(c->out, name, NULL) == 0)
        return 0;
    int n = 1;
    do
        snprintf(other, sizeof other, "%s.kept%d", name, n);
    while (is_there(c->out, other) && ++n < 1000);
    note(c, "%s; it is now %s", fail_text(), other);
    return give_name(c->out, name, other);
}

/* Move later checkpoints away: their steps are done again, so they would be in the way. */
int checkpoints_go_on(struct checkpoints *c, int64_t step, int64_t *aside)
{
    char name[64], old[80];
    int rc = 0;
    *aside = 0;
    for (int64_t n; rc == 0 && (n = own_newest(c->out, INT64_MAX)) > step; *aside += rc == 0) {
        snprintf(name, sizeof name, "checkpoint-%lld", (long long)n);
        snprintf(old, sizeof old, "%s.old", name);
        rc = make_way(c, old);
        if (rc == 0)
            rc = give_name(c->out, name, old);
    }
    if (rc != 0)
        return rc;
    c->last = own_newest(c->out, INT64_MAX);
    prune(c); /* the run may have been killed before that */
    return 0;
}

/* ---- leftovers of a killed run ---- */

/* Return whether the process that made a temporary folder is running. A writer of a run's folder has its lock, but
 * another program may write beside it, as `nojit merge --out OUT/merged` does. This process has no such folders yet: in
 * a container an earlier one may have had its number. */
static bool is_running(long pid)
{
    return pid != (long)getpid() && (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

struct leftovers {
    struct checkpoints *c;
    int removed;
};

static void remove_leftover(void *user, const char *name, long pid)
{
    struct leftovers *l = user;
    if (!is_running(pid) && own_remove(l->c->out, name, &l->removed) != 0)
        note(l->c, "%s", fail_text());
}

static void remove_old(struct leftovers *l, const char *name)
{
    if (own_remove(l->c->out, name, &l->removed) != 0)
        note(l->c, "%s", fail_text());
}

/* Settle best of a run that ended between two renames: best.new is whole and the newer one. */
static void settle_best(struct leftovers *l)
{
    static const char *const whole[] = {"best.new", "best.old"};
    const char *out = l->c->out;
    for (int i = 0; i < 2 && !is_there(out, "best"); i++)
        if (own_is_checkpoint(out, whole[i]) && give_name(out, whole[i], "best") != 0) {
            note(l->c, "%s", fail_text());
            return;
        }
    for (int i = 0; i < 2; i++)
        remove_old(l, whole[i]);
}

void checkpoints_settle(struct checkpoints *c)
{
    struct leftovers l = {.c = c};
    if (c->lock.held)
        own_each_partial(c->out, remove_leftover, &l);
    else
        note(c,
             "%s/lock: file locking is not available (%s); make sure that no other run uses this "
             "--out",
             c->out, c->lock.why);
    settle_best(&l);
    if (l.removed > 0)
        note(c, "%s: removed %d leftover%s of a run that was killed", c->out, l.removed,
             plural(l.removed));
}

void checkpoints_close(struct checkpoints *c)
{
    lock_release(&c->lock);
    if (c->before[0] != '\0')
        folder_unmake(c->out, c->before);
    c->before[0] = '\0';
}

static int write_text(const char *dir, const char *name, const char *text)
{
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wx");
    const int failed = f == NULL || fputs(text, f) < 0;
    if ((f != NULL && fclose(f) != 0) || failed)
        return fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    return 0;
}

static int write_progress(const struct checkpoints *c, const char *dir)
{
    char text[sizeof c->progress + 32];
    const size_t length = strlen(c->progress);
    snprintf(text, sizeof text, "%shash %016llx\n", c->progress,
             (unsigned long long)XXH3_64bits(c->progress, length));
    return write_text(dir, "progress.txt", text);
}

/* Write the model; its texts then also end with the token that it has learned to end its turns with. */
static int save_model(const struct checkpoints *c, struct engine *e, const char *dir)
{
    const int rc = engine_save_model(e, dir);
    return rc != 0 || !c->learned_end ? rc : generation_add_stop(dir, c->student, c->turn_end);
}

static int save_folder(const struct checkpoints *c, const char *path, struct engine *e,
                       int64_t step, const struct data_state *data)
{
    struct folder f;
    TRY(folder_begin(&f, path));
    int rc = save_model(c, e, f.temp);
    if (rc == 0)
        rc = engine_save_state(e, f.temp, step, data);
    if (rc == 0 && c->add)
        rc = c->add(c->add_user, f.temp);
    if (rc == 0)
        rc = write_text(f.temp, "settings.txt", c->settings);
    if (rc == 0)
        rc = write_progress(c, f.temp);
    if (rc != 0) {
        folder_abort(&f);
        return rc;
    }
    return folder_commit(&f);
}

int checkpoints_save(struct checkpoints *c, struct engine *e, int64_t step,
                     const struct data_state *data)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/checkpoint-%lld", c->out, (long long)step);
    TRY(save_folder(c, path, e, step, data));
    c->last = step;
    prune(c);
    return 0;
}

/* Save the best. At every moment the previous best exists, as best or as best.old; leftovers of a run that ended in
 * between are removed first. */
int checkpoints_save_best(struct checkpoints *c, struct engine *e, int64_t step,
                          const struct data_state *data)
{
    char fresh[4200];
    snprintf(fresh, sizeof fresh, "%s/best.new", c->out);
    TRY(make_way(c, "best.new"));
    TRY(save_folder(c, fresh, e, step, data));
    if (is_there(c->out, "best")) {
        TRY(make_way(c, "best.old"));
        TRY(give_name(c->out, "best", "best.old"));
    }
    TRY(give_name(c->out, "best.new", "best"));
    if (own_remove(c->out, "best.old", NULL) != 0)
        note(c, "%s", fail_text());
    return 0;
}

/* Return whether a name marks a folder as a model, or as adapters of one. */
static bool is_mark(const char *name)
{
    return strcmp(name, "config.json") == 0 || strcmp(name, "adapter_config.json") == 0;
}

/* Move the files; the one that marks a folder goes last. */
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
    int rc = folder_begin(&f, path);
    if (rc == 0)
        rc = save_model(c, e, f.temp);
    if (rc == 0)
        rc = folder_flush(&f);
    if (rc == 0)
        rc = move_files(f.temp, c->out);
    if (rc == 0)
        rc = folder_flush_names(c->out);
    folder_abort(&f);
    return rc;
}

int checkpoints_merge(struct checkpoints *c, const char *base, size_t *merged)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/merged", c->out);
    TRY(make_way(c, "merged"));
    return merge_adapters(base, c->out, path, merged);
}
