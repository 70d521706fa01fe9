/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_eval.c: `nojit eval`: one pass over held-out text.
 */
#include "error.h"
#include "run.h"

static void print_json(const struct eval_result *e, bool teacher)
{
    printf("{\"class_loss\": %.9g, \"perplexity\": %.9g, \"tokens\": %lld", e->class_loss,
           e->perplexity, (long long)e->valid_tokens);
    if (teacher)
        printf(", \"kd_loss\": %.9g, \"kd_p50\": %.9g, \"kd_p90\": %.9g, \"kd_p99\": %.9g, "
               "\"kd_max\": %.9g, \"teacher_class_loss\": %.9g, \"teacher_perplexity\": %.9g, "
               "\"teacher_entropy\": %.9g, \"agreement\": %.9g",
               e->kd_loss, e->kd_p50, e->kd_p90, e->kd_p99, e->kd_max, e->teacher_class_loss,
               e->teacher_perplexity, e->teacher_entropy, e->agreement);
    puts("}");
}

static void print_text(const struct eval_result *e, bool teacher)
{
    printf("class_loss       %.6f nats\nperplexity       %.4f\ntokens           %lld\n",
           e->class_loss, e->perplexity, (long long)e->valid_tokens);
    if (!teacher)
        return;
    printf("teacher          class_loss %.6f nats, perplexity %.4f, entropy %.6f nats\n",
           e->teacher_class_loss, e->teacher_perplexity, e->teacher_entropy);
    printf("kd_loss          %.6f nats: KL(teacher || student) at temperature 1\n", e->kd_loss);
    printf("  by token       p50 %.6f  p90 %.6f  p99 %.6f  max %.6f\n", e->kd_p50, e->kd_p90,
           e->kd_p99, e->kd_max);
    printf("agreement        %.4f of first choices\n", e->agreement);
}

static int evaluate(struct run *r)
{
    struct eval_result e;
    int err = run_open_tokenizer(r);
    if (!err)
        err = run_engine_options(r);
    if (err)
        return err;
    r->options.kd_ratio = r->teacher[0] != '\0' ? 0.5f : 0;
    err = run_open_data(r, &r->s->data, true, &r->data);
    if (!err)
        err = run_open_engine(r);
    if (!err)
        err = engine_eval(r->engine, r->data, &e);
    if (err)
        return err;
    (r->s->json ? print_json : print_text)(&e, r->teacher[0] != '\0');
    return 0;
}

int cmd_eval(const struct settings *s)
{
    struct run r;
    int err = need(s->student, "model", "eval");
    if (!err)
        err = need(s->data.path, "data", "eval");
    if (err)
        return err;
    err = run_open(&r, s);
    if (!err)
        err = evaluate(&r);
    run_close(&r);
    return err;
}
