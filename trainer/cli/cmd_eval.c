/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_eval.c: `nojit eval`: one pass over held-out text, or over the items of benchmarks, or prompts
 * continued by speculative decoding.
 */
#include <math.h>

#include "cli/commands.h"
#include "eval/speculation.h"
#include "eval/task_run.h"
#include "io/error.h"
#include "model/model_open.h"
#include "objective/objective.h"
#include "run/cached_teacher.h"
#include "run/day.h"
#include "run/run.h"
#include "run/run_engine.h"
#include "run/run_inputs.h"
#include "run/teacher_types.h"

/* Print a number, or null if JSON has none for it, as for the perplexity of a large loss. */
static void put_number(const char *before, const char *name, double value)
{
    char text[32] = "null";
    if (isfinite(value))
        snprintf(text, sizeof text, "%.9g", value);
    printf("%s\"%s\": %s", before, name, text);
}

enum { DRAFT_MOST = 8 };

static void print_json(const struct settings *s, const struct eval_result *e)
{
    const bool teacher = s->teacher != NULL;
    const struct {
        const char *name;
        double value;
    } compared[] = {
        {"kd_loss", e->kd_loss},
        {"kd_p50", e->kd_p50},
        {"kd_p90", e->kd_p90},
        {"kd_p99", e->kd_p99},
        {"kd_max", e->kd_max},
        {"teacher_ce_loss", e->teacher_ce_loss},
        {"teacher_perplexity", e->teacher_perplexity},
        {"teacher_entropy", e->teacher_entropy},
        {"agreement", e->agreement},
    };
    put_number("{", "ce_loss", e->ce_loss);
    put_number(", ", "perplexity", e->perplexity);
    printf(", \"tokens\": %lld", (long long)e->valid_tokens);
    for (size_t i = 0; teacher && i < sizeof compared / sizeof *compared; i++)
        put_number(", ", compared[i].name, compared[i].value);
    if (s->acceptance) {
        put_number(", ", "acceptance", e->acceptance);
        printf(", \"tokens_per_verification\": [");
        for (int k = 1; k <= DRAFT_MOST; k++)
            printf("%s%.9g", k > 1 ? ", " : "", tokens_per_verification(e->acceptance, k));
        printf("]");
    }
    puts("}");
}

static void print_acceptance(double acceptance)
{
    printf("acceptance       %.6f (speculative decoding at temperature 1, this model as draft)\n",
           acceptance);
    printf("  draft tokens   ");
    for (int k = 1; k <= DRAFT_MOST; k++)
        printf("%8d", k);
    printf("\n  tokens/verify  ");
    for (int k = 1; k <= DRAFT_MOST; k++)
        printf("%8.4f", tokens_per_verification(acceptance, k));
    puts("");
}

static void print_text(const struct settings *s, const struct eval_result *e)
{
    const struct objective_row *row = &objectives[OBJECTIVE_KL];
    const struct objective_terms terms = {.temperature = 1, .kd_ratio = 1, .beta = 0};
    char divergence[64];
    printf("ce_loss          %.6f nats\nperplexity       ", e->ce_loss);
    printf(e->perplexity < 1e6 ? "%.4f" : "%.3g", e->perplexity);
    printf("\ntokens           %lld\n", (long long)e->valid_tokens);
    if (s->teacher == NULL)
        return;
    printf("teacher          ce_loss %.6f nats, perplexity %.4f, entropy %.6f nats\n",
           e->teacher_ce_loss, e->teacher_perplexity, e->teacher_entropy);
    printf("kd_loss          %.6f %s: %s at temperature 1\n", e->kd_loss, row->unit,
           row->text(&terms, divergence, sizeof divergence));
    printf("  by token       p50 %.6f  p90 %.6f  p99 %.6f  max %.6f\n", e->kd_p50, e->kd_p90,
           e->kd_p99, e->kd_max);
    printf("agreement        %.4f (top-1)\n", e->agreement);
    if (s->acceptance)
        print_acceptance(e->acceptance);
}

enum { SEQ_LEN = 1024 }; /* default of --seq-len */

/* Lower the default sequence length to the model's limit. */
static int limit_length(const char *model, int *seq_len)
{
    struct model_config c;
    TRY(source_config(model, &c));
    if (config_positions(&c) < *seq_len)
        *seq_len = config_positions(&c);
    return 0;
}

static int choose_length(struct run *r)
{
    int *seq_len = &r->options.seq_len;
    if (*seq_len > 0)
        return 0;
    *seq_len = SEQ_LEN;
    const int rc = limit_length(r->student, seq_len);
    return rc != 0 || r->teacher[0] == '\0' ? rc : limit_length(r->teacher, seq_len);
}

static int evaluate(struct run *r)
{
    struct eval_result e;
    int rc = run_open_tokenizer(r);
    if (rc == 0)
        rc = run_engine_options(r);
    if (rc == 0)
        rc = run_student_types(r);
    if (rc == 0)
        rc = choose_length(r);
    if (rc != 0)
        return rc;
    r->options.kd_ratio = r->teacher[0] != '\0' ? 0.5f : 0;
    rc = run_open_cache(r);
    if (rc == 0)
        rc = run_open_data(r, &r->s->data, true, &r->data, &r->batches);
    if (rc == 0)
        rc = run_check_cache(r, true);
    if (rc == 0)
        rc = run_open_engine(r);
    if (rc != 0)
        return rc;
    engine_watch(r->engine, progress_rows, &r->progress);
    rc = engine_eval(r->engine, r->batches, &e);
    progress_clear(&r->progress);
    if (rc == 0)
        rc = engine_check_eval(r->engine, &e);
    if (rc != 0)
        return rc;
    (r->s->json ? print_json : print_text)(r->s, &e);
    return 0;
}

/* Refuse options that do not go together. */
static int check(const struct settings *s)
{
    const bool tasks = s->tasks.count > 0, prompts = s->prompts.count > 0;
    const bool data = s->data.count > 0;
    if (tasks && data)
        return fail(NJ_E_ARG, "--data and --tasks: give one of them");
    if (prompts && (tasks || data))
        return fail(NJ_E_ARG, "--%s and --prompts: give one of them", tasks ? "tasks" : "data");
    if (prompts && !s->acceptance)
        return fail(NJ_E_ARG, "--prompts is for --acceptance; add it");
    if (!prompts && s->draft_tokens > 0)
        return fail(NJ_E_ARG, "--draft-tokens is for --acceptance with --prompts; add them");
    if (tasks && s->teacher != NULL)
        return fail(NJ_E_ARG, "--tasks measures one model; leave --teacher out");
    if (!tasks && s->task_log != NULL)
        return fail(NJ_E_ARG, "--task-log needs --tasks, whose items it lists");
    if (s->acceptance && s->teacher == NULL)
        return fail(NJ_E_ARG, "--acceptance needs --teacher%s", tasks ? " and --data" : "");
    return 0;
}

int cmd_eval(const struct settings *s)
{
    struct group alone = GROUP_ALONE;
    struct run r;
    const struct needed needed[] = {
        {"model", s->student != NULL},
        {"data, --tasks or --prompts", s->data.count + s->tasks.count + s->prompts.count > 0},
        {NULL}};
    int rc = run_needs("eval", needed);
    if (rc == 0)
        rc = check(s);
    if (rc != 0)
        return rc;
    rc = run_open(&r, s, &alone, true);
    if (rc == 0)
        rc = day_use(s->template_date, r.day);
    if (rc == 0)
        rc = s->tasks.count > 0     ? run_tasks(&r)
             : s->prompts.count > 0 ? run_speculation(&r)
                                    : evaluate(&r);
    run_close(&r);
    return rc;
}
