/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_report.c: `nojit report`: one page of HTML that needs nothing else.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/plural.h"
#include "cli/commands.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/whole_file.h"
#include "options/settings.h"
#include "record/lock.h"
#include "report/report.h"

enum { FOLLOW_SECONDS = 5 };

static int check_arguments(const struct settings *s)
{
    if (s->words.count == 0)
        return fail(NJ_E_ARG, "the folder of a run is needed; see `nojit report --help`");
    const char *dot = strrchr(s->out, '.');
    if (dot == NULL || (strcmp(dot, ".html") != 0 && strcmp(dot, ".htm") != 0))
        return fail(NJ_E_ARG, "--out %s: must end in .html", s->out);
    return 0;
}

/* Return the last sentence, which may contain a folder's name in any bytes. */
static json_t *fail_json(void)
{
    return json_text(fail_text(), strlen(fail_text()));
}

/* Read the runs. One that cannot be read is reported here and on the page, and does not affect the others. */
static int read_runs(const struct settings *s, bool going, json_t *runs, json_t *broken)
{
    int rc = 0;
    for (size_t i = 0; i < s->words.count && rc != NJ_E_NOMEM; i++) {
        json_t *run;
        rc = report_read(s->words.path[i], &run);
        const bool lost = rc != 0 ? json_array_append_new(broken, fail_json()) != 0
                                  : json_array_append_new(runs, run) != 0;
        if (lost)
            rc = fail(NJ_E_NOMEM, "out of memory while reading %s", s->words.path[i]);
        else if (rc != 0 && s->words.count > 1 && !going)
            fprintf(stderr, "nojit report: %s\n", fail_text());
    }
    if (rc == NJ_E_NOMEM || json_array_size(runs) > 0)
        return rc == NJ_E_NOMEM ? rc : 0;
    return s->words.count == 1 ? rc : fail(NJ_E_FORMAT, "no run can be read");
}

/* Name runs by their paths if their folders have the same name. */
static void name_apart(json_t *runs)
{
    const size_t n = json_array_size(runs);
    for (size_t i = 0; i < n; i++) {
        json_t *a = json_array_get(runs, i);
        for (size_t j = i + 1; j < n; j++) {
            json_t *b = json_array_get(runs, j);
            if (!json_equal(json_object_get(a, "name"), json_object_get(b, "name")))
                continue;
            json_object_set(a, "name", json_object_get(a, "path"));
            json_object_set(b, "name", json_object_get(b, "path"));
        }
    }
}

/* Write the page, which appears whole or not at all. */
static int write_page(const char *path, const json_t *data)
{
    struct whole_file file;
    int rc = whole_file_begin(&file, path);
    if (rc != 0)
        return rc;
    if (report_page(file.f, data) != 0)
        rc = fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    return whole_file_end(&file, rc);
}

static json_t *make_data(const struct settings *s, bool going, int *rc)
{
    json_t *runs = json_array(), *broken = json_array();
    json_t *data =
        json_pack("{s:s, s:o, s:o}", "version", NOJIT_VERSION, "runs", runs, "broken", broken);
    *rc = data == NULL ? fail(NJ_E_NOMEM, "out of memory") : read_runs(s, going, runs, broken);
    if (*rc && going && *rc != NJ_E_NOMEM) /* the run has not done its first step */
        *rc = 0;
    if (*rc == 0) {
        name_apart(runs);
        *rc = report_alike(data);
    }
    if (going)
        json_object_set_new(data, "refresh", json_integer(FOLLOW_SECONDS));
    return data;
}

/* Return whether a process is writing one of the folders. */
static bool is_going(const struct settings *s)
{
    size_t i = 0;
    while (i < s->words.count && lock_check(s->words.path[i]) == 0)
        i++;
    return i < s->words.count;
}

static void say_written(const struct settings *s, size_t count, bool first, bool going)
{
    if (going && first)
        printf("%s: %zu run%s; written again every %d s until all have ended, or Ctrl-C\n", s->out,
               count, plural((long long)count), FOLLOW_SECONDS);
    else if (!going)
        printf("%s: %zu run%s\n", s->out, count, plural((long long)count));
    fflush(stdout);
}

/* Read the runs and write the page. */
static int report(const struct settings *s, bool first, bool going)
{
    int rc;
    json_t *data = make_data(s, going, &rc);
    if (rc == 0)
        rc = write_page(s->out, data);
    const size_t lacks = json_array_size(json_object_get(data, "broken"));
    const size_t has = json_array_size(json_object_get(data, "runs"));
    json_decref(data);
    if (rc == 0)
        say_written(s, has, first, going);
    if (rc == 0 && lacks > 0 && !going)
        rc = fail(NJ_E_FORMAT, "%s lacks %zu run%s that cannot be read", s->out, lacks,
                  plural((long long)lacks));
    return rc;
}

int cmd_report(const struct settings *s)
{
    int rc = check_arguments(s);
    bool going = rc == 0 && s->follow && is_going(s);
    if (rc == 0)
        rc = report(s, true, going);
    while (rc == 0 && going) {
        sleep(FOLLOW_SECONDS);
        going = is_going(s);
        rc = report(s, false, going);
    }
    return rc;
}
