/* SPDX-License-Identifier: Apache-2.0
 *
 * resume.c: the decision whether OUT takes a new run, or one that continues, and from which checkpoint; see
 * checkpoint.h.
 */
#include "record/checkpoint.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/error.h"
#include "io/json_text.h"
#include "io/model_folder.h"
#include "io/regular.h"
#include "record/run_files.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static bool holds(const char *dir, const char *name)
{
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* Check whether OUT holds a model; resume: auto was asked for, but there is no checkpoint, so that a new run starts. */
static int check_model(const char *out, bool resume)
{
    const bool model = holds(out, "config.json"), adapters = holds(out, "adapter_config.json");
    if (resume && (model || adapters) && holds(out, "receipt.json"))
        return fail(
            NJ_E_ARG,
            "--resume auto: the run in %s is finished and has no checkpoint to continue from; "
            "name another --out, and to train its %s further --%s %s",
            out, model ? "model" : "adapters", model ? "student" : "adapter", out);
    if (model || adapters)
        return fail(NJ_E_ARG, "--out %s holds a model already; name another folder", out);
    const int64_t newest = own_newest(out, INT64_MAX);
    char state[64];
    snprintf(state, sizeof state, "checkpoint-%lld/state.bin", (long long)newest);
    if (newest > 0 && !holds(out, state))
        return fail(NJ_E_ARG,
                    "--out %s holds checkpoint-%lld of another trainer; name another folder", out,
                    (long long)newest);
    if (newest > 0)
        return fail(
            NJ_E_ARG,
            "--out %s holds checkpoints of an unfinished run; continue with --resume auto or name "
            "another folder",
            out);
    return 0;
}

static int check_resume(const char *dir)
{
    const int64_t inside = own_newest(dir, INT64_MAX);
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

/* Find the value of a line "NAME VALUE"; an incomplete line has none. */
static bool value_of(const char *text, const char *name, char *out, size_t bytes)
{
    const size_t length = strlen(name);
    for (; *text != '\0'; text += strcspn(text, "\n"), text += *text == '\n') {
        if (strncmp(text, name, length) != 0 || text[length] != ' ' || strchr(text, '\n') == NULL)
            continue;
        text += length + 1;
        snprintf(out, bytes, "%.*s", (int)strcspn(text, "\n"), text);
        return true;
    }
    return false;
}

/* Read all of DIR/NAME; "" if it is absent. */
static int read_text(const char *dir, const char *name, char *out, size_t bytes)
{
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    *out = '\0';
    if (access(path, F_OK) != 0)
        return 0;
    FILE *f;
    TRY(regular_open(path, bytes - 1, "take another checkpoint", &f));
    const size_t n = fread(out, 1, bytes - 1, f);
    const bool bad = ferror(f) || n == bytes - 1;
    out[n] = '\0';
    fclose(f);
    return bad ? fail(NJ_E_FORMAT, "%s: cannot be read; take another checkpoint", path) : 0;
}

/* Return the meaning of a setting that is a hash or a sum of several options. */
static const char *meaning(const char *name)
{
    static const char *const text[][2] = {
        {"teacher", " (--teacher names other weights)"},
        {"data", " (the tokens of --data differ, or their weights)"},
        {"prompts", " (the tokens of --prompts or --teacher-prompt differ)"},
        {"vocab", " (the vocabularies of the models differ)"},
    };
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        if (strcmp(name, text[i][0]) == 0)
            return text[i][1];
    return "";
}

/* Find the value that runs of an earlier nojit had, whose settings lack it; false: there is no such value. */
static bool value_before(const char *name, char *out, size_t bytes)
{
    static const char *const value[][2] = {
        {"objective", "kl"},           {"student-dtype", "auto"},
        {"overlong", "auto"},          {"fields", ""},
        {"train-on-prompts", "false"}, {"template-date", "2024-07-26"},
        {"router-aux-loss-coef", "-1"}};
    for (size_t i = 0; i < sizeof value / sizeof *value; i++)
        if (strcmp(name, value[i][0]) == 0) {
            snprintf(out, bytes, "%s", value[i][1]);
            return true;
        }
    return false;
}

/* Compare one line "NAME VALUE" of this run, in `wanted`, with the one of a checkpoint's settings. */
static int check_setting(const char *dir, const char *text, const char *wanted,
                         const char *otherwise)
{
    char name[64], was[SETTINGS_BYTES];
    const int length = (int)strcspn(wanted, "\n");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(wanted, " "), wanted);
    if (!value_of(text, name, was, sizeof was) && !value_before(name, was, sizeof was))
        return fail(NJ_E_FORMAT, "%s/settings.txt: lacks '%s'; take another checkpoint", dir, name);
    const char *now = wanted + strlen(name) + 1;
    const int rest = length - (int)strlen(name) - 1;
    if ((int)strlen(was) == rest && strncmp(was, now, (size_t)rest) == 0)
        return 0;
    return fail(NJ_E_ARG,
                "%s was made with %s %s, this run has %.*s%s; repeat the options of the run, or %s",
                dir, name, was, length, wanted, meaning(name), otherwise);
}

/* Check each line of this run's settings; their order does not count. */
static int check_settings(const char *dir, const char *wanted, const char *otherwise)
{
    char text[SETTINGS_BYTES];
    int rc = read_text(dir, "settings.txt", text, sizeof text);
    while (rc == 0 && *wanted != '\0') {
        rc = check_setting(dir, text, wanted, otherwise);
        wanted += strcspn(wanted, "\n") + 1;
    }
    return rc;
}

/* Check the progress, whose last line is the hash of those before it. */
static int check_progress(const char *dir, char *text)
{
    char hash[32];
    char *last = strstr(text, "hash ");
    if (*text == '\0') /* a checkpoint of an earlier nojit has none */
        return 0;
    if (last != NULL)
        snprintf(hash, sizeof hash, "hash %016llx\n",
                 (unsigned long long)XXH3_64bits(text, (size_t)(last - text)));
    if (last == NULL || strcmp(last, hash) != 0)
        return fail(NJ_E_FORMAT, "%s/progress.txt: is damaged; take another checkpoint", dir);
    return 0;
}

/* Return whether dir is a folder in out, whatever the names of both. */
static bool lies_in(const char *dir, const char *out)
{
    char copy[4200], path[8400];
    struct stat a, b;
    snprintf(copy, sizeof copy, "%s", dir);
    snprintf(path, sizeof path, "%s/%s", out, basename(copy));
    return stat(dir, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static int look(struct checkpoints *c, const char *resume)
{
    const char *out = c->out;
    const bool automatic = resume != NULL && strcmp(resume, "auto") == 0;
    int rc = 0;
    c->resume[0] = '\0';
    c->last = resume != NULL ? own_newest(out, INT64_MAX) : 0;
    if (resume == NULL || (automatic && c->last == 0)) { /* nothing to resume yet: auto starts */
        c->again = automatic && own_is_begun(out);
        rc = check_model(out, automatic);
    } else if (automatic) {
        snprintf(c->resume, sizeof c->resume, "%s/checkpoint-%lld", out, (long long)c->last);
        c->again = true;
    } else {
        if (snprintf(c->resume, sizeof c->resume, "%s", resume) >= (int)sizeof c->resume)
            return fail(NJ_E_ARG, "--resume: the path is too long; use a shorter one");
        rc = check_resume(c->resume);
        c->again = rc == 0 && lies_in(c->resume, out);
        if (rc == 0 && !c->again)
            rc = check_model(out, false);
    }
    if (rc != 0)
        return rc;
    return c->again ? own_check_again(out) : own_check_new(out);
}

int checkpoints_open(struct checkpoints *c, const char *out, const char *resume)
{
    if (snprintf(c->out, sizeof c->out, "%s", out) >= (int)sizeof c->out - 64)
        return fail(NJ_E_ARG, "--out: the path is too long; use a shorter one");
    const int rc = lock_check(out);
    return rc != 0 ? fail(rc, "--out %s", fail_text()) : look(c, resume);
}

int checkpoints_begin(struct checkpoints *c, const char *resume)
{
    int rc = folder_make(c->out, c->before, sizeof c->before);
    if (rc == 0 && access(c->out, W_OK | X_OK) != 0)
        rc = fail(NJ_E_IO, "%s: cannot be written: %s", c->out, strerror(errno));
    if (rc == 0)
        rc = lock_take(&c->lock, c->out);
    if (rc != 0)
        return fail(rc, "--out %s", fail_text());
    TRY(look(c, resume));
    checkpoints_settle(c);
    return 0;
}

bool checkpoints_setting(const struct checkpoints *c, const char *name, char *out, size_t bytes)
{
    char text[SETTINGS_BYTES];
    return c->resume[0] != '\0' && read_text(c->resume, "settings.txt", text, sizeof text) == 0 &&
           (value_of(text, name, out, bytes) || value_before(name, out, bytes));
}

bool checkpoints_progress(const struct checkpoints *c, const char *name, char *out, size_t bytes)
{
    return value_of(c->found, name, out, bytes);
}

int checkpoints_check(struct checkpoints *c)
{
    if (c->resume[0] == '\0')
        return 0;
    TRY(check_settings(c->resume, c->settings,
                       c->again ? "name another --out" : "leave --resume out"));
    TRY(read_text(c->resume, "progress.txt", c->found, sizeof c->found));
    return check_progress(c->resume, c->found);
}

/* Return whether dir holds the final model, whole: its weights may be one file, several, or adapters. */
static bool holds_model(const char *dir)
{
    return (holds(dir, "config.json") &&
            (holds(dir, "model.safetensors") || holds(dir, "model.safetensors.index.json"))) ||
           (holds(dir, "adapter_config.json") && holds(dir, "adapter_model.safetensors"));
}

/* Return an option as the receipt has it: a number in a text; -1: absent. */
static int64_t option_of(const json_t *receipt, const char *name)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(receipt, "options"), name));
    return text != NULL ? strtoll(text, NULL, 10) : -1;
}

int checkpoints_done(const struct checkpoints *c, int64_t steps, int64_t patience,
                     struct ended_run *out)
{
    char path[4200];
    json_t *receipt;
    *out = (struct ended_run){0};
    if (!holds_model(c->out) || !holds(c->out, "receipt.json"))
        return 0;
    snprintf(path, sizeof path, "%s/receipt.json", c->out);
    TRY(json_read_file(path, "remove it, and the run continues from its newest checkpoint",
                       &receipt));
    const int64_t last = json_integer_value(json_object_get(receipt, "steps_done"));
    const json_t *applied = json_object_get(receipt, "applied");
    const bool early = steps > last && last >= c->last &&
                       json_is_true(json_object_get(receipt, "stopped_early")) &&
                       json_integer_value(json_object_get(applied, "steps")) == steps &&
                       option_of(receipt, "early-stop-patience") == patience;
    if (early || (last > c->last && last >= steps))
        *out = (struct ended_run){last, early, json_is_true(json_object_get(receipt, "diverged"))};
    json_decref(receipt);
    return 0;
}

int64_t checkpoints_other(const struct checkpoints *c)
{
    char copy[4200];
    snprintf(copy, sizeof copy, "%s", c->resume);
    const int64_t step = own_step(basename(copy));
    return own_newest(c->out, step > 0 ? step : INT64_MAX);
}
