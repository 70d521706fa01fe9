/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_tokenize.c: `nojit tokenize`: text to a token file, with a bar while it goes on, or to the screen.
 */
#include "base/clock.h"
#include "base/plural.h"
#include "batch/tokenize.h"
#include "cli/commands.h"
#include "cli/show_data.h"
#include "formats/model_path.h"
#include "io/error.h"
#include "run/day.h"
#include "run/run.h"
#include "run/run_inputs.h"

struct watch {
    struct progress *progress;
    double done, total;
};

static void advance(void *user, size_t bytes)
{
    struct watch *w = user;
    w->done += (double)bytes;
    progress_bytes(w->progress, w->done, w->total);
}

static int open_tokenizer(const struct settings *s, struct tokenizer *t)
{
    char dir[PATH_BYTES];
    TRY(model_resolve(s->student, dir, sizeof dir));
    return tokenizer_open_as(dir, (enum tokenizer_choice)s->tokenizer, t);
}

static int run(const struct settings *s, struct progress *p, struct tokenizer *t)
{
    char took[32], trained[48] = "all trained";
    struct tokenized done;
    struct watch watch = {p, 0, 0};
    const struct row_rules rules = run_row_rules(s);
    const struct split_choice split = {(enum data_split)s->split, SPLIT_AUTO};
    int rc = open_tokenizer(s, t);
    if (rc == 0)
        rc = tokenize_bytes(s->data.path, s->data.count, &split, &watch.total);
    t->encoded = advance;
    t->user = &watch;
    p->started = clock_seconds();
    if (rc == 0)
        rc = tokenize(s->data.path, s->data.count, &rules, &split, t, s->out, &done);
    if (rc != 0)
        return rc;
    const double seconds = clock_seconds() - p->started;
    if (seconds < 10)
        snprintf(took, sizeof took, "%.1f s", seconds);
    else
        duration_text(seconds, took, sizeof took);
    progress_data(p, &done.passed, &done.notes);
    if (done.without_loss > 0)
        snprintf(trained, sizeof trained, "%lld not trained", (long long)done.without_loss);
    progress_say(p, "%lld token%s (%s) of %zu file%s, %.1f MB in %s (%.1f MB/s): %s",
                 (long long)done.tokens, plural(done.tokens), trained, done.files,
                 plural((long long)done.files), 1e-6 * done.bytes, took,
                 seconds > 0 ? 1e-6 * done.bytes / seconds : 0, s->out);
    return 0;
}

/* Print documents instead of writing a file. */
static int show(const struct settings *s, struct progress *p, struct tokenizer *t)
{
    char text[512];
    struct data *d = NULL;
    const struct data_options options = {
        .paths = s->data.path,
        .path_count = s->data.count,
        .packing = (enum packing)s->packing,
        .overlong = (enum overlong)s->overlong,
        .seq_len = (int)s->seq_len,
        .batch_size = 1,
        .rules = run_row_rules(s),
        .split = {(enum data_split)s->split, SPLIT_AUTO},
        .vocab_size = INT32_MAX,
        .all_rows = true,
    };
    int rc = open_tokenizer(s, t);
    if (rc == 0)
        rc = data_open(&options, t, &d);
    if (rc == 0)
        rc = show_data(d, t, (int)s->seq_len, s->show, stdout);
    if (rc == 0)
        progress_data(p, data_passed_over(d), data_row_notes(d));
    if (rc == 0 && data_overlong_text(d, text, sizeof text) != NULL)
        progress_say(p, "%s", text);
    data_close(d);
    return rc;
}

/* Refuse options about filling sequences, which a token file does not have. */
static int check_options(const struct settings *s)
{
    static const char *const names[] = {"packing", "overlong", "seq-len"};
    if (s->show > 0 && s->out != NULL)
        return fail(NJ_E_ARG, "--show prints documents and --out writes them; give one of the two");
    for (size_t i = 0; i < sizeof names / sizeof *names && s->show == 0; i++)
        if (settings_given(s, names[i]))
            return fail(NJ_E_ARG, "--%s needs --show: a token file holds documents, not sequences",
                        names[i]);
    return 0;
}

int cmd_tokenize(const struct settings *s)
{
    struct progress p;
    struct tokenizer t = {.kind = ""};
    const struct needed needed[] = {{"model", s->student != NULL},
                                    {"data", s->data.count > 0},
                                    {"out or --show", s->out != NULL || s->show > 0},
                                    {NULL}};
    char day[DAY_BYTES];
    int rc = run_needs("tokenize", needed);
    if (rc == 0)
        rc = check_options(s);
    if (rc == 0)
        rc = day_use(s->template_date, day);
    if (rc == 0)
        rc = run_check_output(s);
    if (rc == 0)
        rc = progress_open(&p, NULL, s->show > 0);
    if (rc != 0)
        return rc;
    rc = s->show > 0 ? show(s, &p, &t) : run(s, &p, &t);
    tokenizer_close(&t);
    progress_close(&p);
    return rc;
}
