/* SPDX-License-Identifier: Apache-2.0
 *
 * texts.c: see texts.h. Answers that are ready before those of earlier prompts wait for them.
 */
#include "eval/texts.h"

#include "base/clock.h"
#include "base/plural.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/waits.h"
#include "model/model_open.h"
#include "record/sample.h"
#include "run/batch_fit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Most texts at a time for --batch-size auto: on a GPU more texts gain little; on a CPU GEMMs get no faster. */
enum { ROWS_OF_GPU = 512, ROWS_OF_CPU = 16 };

struct text {
    int32_t *ids; /* tokens of the text; NULL: none yet, or written */
    int count;
    enum decode_end end;
    struct stopped_text generated; /* place where a stop text ends it */
};

struct texts {
    struct run *run;
    const struct prompts *prompts;
    FILE *out;
    int64_t each;        /* number of texts for a prompt */
    struct text *answer; /* texts of each prompt, one prompt after the other */
    int64_t count, taken, written, done, tokens;
};

struct stop_texts texts_stop_texts(const struct settings *s)
{
    return (struct stop_texts){s->stop.path, s->stop.count};
}

int texts_check_length(const char *model, const char *what, int64_t needed, int given)
{
    struct model_config c;
    TRY(source_config(model, &c));
    if (given > 0 && needed > given)
        return fail(
            NJ_E_ARG,
            "%s and --max-tokens make %lld token%s, more than --seq-len %d; raise the one or "
            "lower the other",
            what, (long long)needed, plural(needed), given);
    if (needed > config_positions(&c))
        return fail(NJ_E_ARG,
                    "%s and --max-tokens make %lld tokens, and %s takes %d at most; shorten the "
                    "prompt, or lower --max-tokens and max_tokens of its line",
                    what, (long long)needed, model, config_positions(&c));
    return 0;
}

int texts_positions(struct run *r, const char *what, int64_t needed)
{
    TRY(texts_check_length(r->student, what, needed, r->options.decode_positions));
    r->options.decode_positions = (int)needed;
    return 0;
}

int texts_rows(struct run *r, int64_t texts)
{
    const bool gpu = strcmp(nj_context_device(r->ctx)->backend, "cpu") != 0;
    const int wanted = r->options.decode_rows, auto_most = gpu ? ROWS_OF_GPU : ROWS_OF_CPU;
    int most = wanted > 0 ? wanted : auto_most;
    if (most > texts)
        most = (int)texts;
    r->options.decode_rows = most;
    return wanted > 0 ? 0 : run_fit_decoder(r, false, most);
}

/* ---- JSON ---- */

static json_t *text_of(const struct tokenizer *t, const struct text *a)
{
    if (a->generated.by)
        return json_text(a->generated.text.at, a->generated.text.count);
    return sample_text(t, a->ids, a->end == DECODE_STOPPED ? a->count - 1 : a->count);
}

/* Return the id of a prompt, which is JSON; without one, its number. */
static json_t *id_of(const struct prompt *p)
{
    return p->id ? json_loads(p->id, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                 : json_integer((json_int_t)p->index);
}

static void free_text(struct text *a)
{
    free(a->ids);
    free(a->generated.text.at);
    a->ids = NULL;
    a->generated.text = (struct pool){0};
}

static int write_answer(struct texts *t, int64_t i)
{
    struct text *a = &t->answer[i];
    struct prompt p;
    prompts_get(t->prompts, 0, i / t->each, &p);
    json_t *row =
        json_pack("{s:o, s:o, s:I, s:I, s:s}", "id", id_of(&p), "text",
                  text_of(&t->run->tokenizer, a), "prompt_tokens", (json_int_t)p.count, "tokens",
                  (json_int_t)a->count, "end", a->end == DECODE_STOPPED ? "stop" : "length");
    if ((row && a->generated.by &&
         json_object_set_new(row, "stop", json_c_text(a->generated.by)) != 0) ||
        (row && t->each > 1 &&
         json_object_set_new(row, "index", json_integer((json_int_t)(i % t->each))) != 0)) {
        json_decref(row);
        row = NULL;
    }
    const int rc = json_write_line(t->out, "standard output", row, 0);
    free_text(a);
    return rc;
}

/* ---- callbacks of the decoder ---- */

static int next(void *user, struct decode_prompt *out)
{
    struct texts *t = user;
    struct prompt p;
    if (t->taken == t->count)
        return 0;
    prompts_get(t->prompts, 0, t->taken / t->each, &p);
    *out = (struct decode_prompt){
        .ids = p.ids,
        .count = (int)p.count,
        .most = p.most > 0 ? p.most : (int)t->run->s->max_tokens,
        .number = (int32_t)t->taken,
        .user = &t->answer[t->taken],
    };
    t->taken++;
    return 1;
}

static int write_ready(struct texts *t)
{
    while (t->written < t->count && t->answer[t->written].end != DECODE_MORE)
        TRY(write_answer(t, t->written++));
    if (fflush(t->out) != 0)
        return fail(NJ_E_IO, "standard output: cannot be written: %s", strerror(errno));
    return 0;
}

/* Add tokens to the text up to a stop text; *count becomes the number of tokens up to there. */
static int look_for_stop(const struct texts *t, struct text *a, const int32_t *ids, int *count,
                         enum decode_end *end)
{
    const struct stop_texts stops = texts_stop_texts(t->run->s);
    int kept = *end == DECODE_STOPPED ? *count - 1 : *count;
    if (stops.count == 0)
        return 0;
    if (!stop_add_tokens(&stops, &a->generated, &t->run->tokenizer, ids, &kept))
        return fail(NJ_E_NOMEM, "out of memory for an answer");
    if (a->generated.by) {
        *count = kept;
        *end = DECODE_STOPPED;
    }
    return 0;
}

static int generated(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                     enum decode_end end)
{
    struct texts *t = user;
    struct text *a = p->user;
    if (!a->ids)
        a->ids = malloc((size_t)p->most * sizeof *a->ids);
    if (!a->ids)
        return fail(NJ_E_NOMEM, "out of memory for an answer");
    TRY(look_for_stop(t, a, ids, &count, &end));
    memcpy(a->ids + a->count, ids, (size_t)count * sizeof *ids);
    a->count += count;
    a->end = end;
    t->tokens += count;
    t->done += end != DECODE_MORE;
    const bool stopped =
        a->generated.by != NULL; /* a->generated may be written, and freed, below */
    progress_texts(&t->run->progress, t->done, t->count, t->tokens);
    const int failed = end != DECODE_MORE ? write_ready(t) : 0;
    return failed ? failed : stopped;
}

static void say_rate(struct texts *t, double seconds)
{
    progress_say(&t->run->progress, "%lld text%s, %lld tokens in %.2f s: %.0f tokens/s",
                 (long long)t->done, plural(t->done), (long long)t->tokens, seconds,
                 (double)t->tokens / seconds);
}

int texts_write(struct run *r, const struct prompts *prompts, FILE *out)
{
    const int64_t each = r->s->num_return_sequences;
    struct texts t = {.run = r,
                      .prompts = prompts,
                      .out = out,
                      .each = each,
                      .count = prompts_count(prompts) * each};
    const struct decode_io io = {
        .next = next,
        .generated = generated,
        .user = &t,
        .how = run_sampling(r),
        .stop = r->ends.stop,
        .stops = r->ends.stops,
    };
    t.answer = calloc((size_t)t.count, sizeof *t.answer);
    if (!t.answer)
        return fail(NJ_E_NOMEM, "out of memory for %lld answers", (long long)t.count);
    const double from = clock_seconds();
    r->progress.started = from;
    wait_begin("writing texts");
    const int rc = engine_decode(r->engine, &io);
    wait_end();
    progress_clear(&r->progress);
    if (rc == 0)
        say_rate(&t, clock_seconds() - from);
    for (int64_t i = 0; i < t.count; i++)
        free_text(&t.answer[i]);
    free(t.answer);
    return rc;
}
