/* SPDX-License-Identifier: Apache-2.0
 *
 * task_texts.c: see task_texts.h. A text ends with a token that ends texts of the model, with `until`, or with its
 * number of tokens.
 */
#include "eval/task_texts.h"

#include <string.h>

#include "base/clock.h"
#include "eval/texts.h"
#include "io/error.h"
#include "model/model_open.h"
#include "record/stop_text.h"

struct writer {
    struct run *run;
    const struct tasks *tasks;
    struct pool *text; /* text of each item */
    int64_t next, count, done, tokens;
};

static int most_of(const struct run *r, const struct task_item *it)
{
    return it->most > 0 ? it->most : (int)r->s->max_tokens;
}

/* Return the number of tokens that a prompt loses at its beginning, so that its answer has room. */
static int cut_of(const struct run *r, const struct task_item *it, int limit)
{
    const int cut = it->count + most_of(r, it) - limit;
    return cut > 0 ? cut : 0;
}

/* Find the limit of --seq-len or the model. */
static int find_limit(const struct run *r, int *limit)
{
    struct model_config c;
    const int given = (int)r->s->seq_len, rc = source_config(r->student, &c);
    *limit = given > 0 && given < config_positions(&c) ? given : config_positions(&c);
    return rc;
}

static int check_room(const struct run *r, const struct task_item *it, int limit)
{
    if (most_of(r, it) < limit)
        return 0;
    return fail(NJ_E_ARG,
                "%s:%ld: an answer of %d tokens leaves no room for the prompt in %d; lower "
                "max_tokens of the line, or --max-tokens",
                it->path, it->line, most_of(r, it), limit);
}

int task_texts_open(struct run *r, const struct tasks *t)
{
    int64_t count = 0, cut = 0;
    int limit, longest = 0, rc = find_limit(r, &limit);
    for (int64_t i = 0; i < tasks_count(t) && rc == 0; i++) {
        struct task_item it;
        tasks_get(t, i, &it);
        if (it.kind != TASK_TEXT)
            continue;
        rc = check_room(r, &it, limit);
        const int lost = cut_of(r, &it, limit), text = it.count + most_of(r, &it) - lost;
        longest = text > longest ? text : longest;
        cut += lost > 0;
        count++;
    }
    if (rc != 0 || count == 0)
        return rc;
    if (cut > 0)
        progress_say(&r->progress,
                     "%lld prompt%s longer than %d tokens with the answer; the beginning is left "
                     "out",
                     (long long)cut, cut == 1 ? " is" : "s are", limit);
    TRY(run_stops(r));
    TRY(texts_positions(r, "the longest prompt", longest));
    return texts_rows(r, count);
}

/* ---- callbacks of the decoder ---- */

/* Return the next prompt. The longest text determines the positions, so that prompts lose as much as
 * task_texts_open() has counted. */
static int next(void *user, struct decode_prompt *out)
{
    struct writer *w = user;
    struct task_item it = {.kind = TASK_CHOICE};
    while (w->next < tasks_count(w->tasks) && it.kind != TASK_TEXT)
        tasks_get(w->tasks, w->next++, &it);
    if (it.kind != TASK_TEXT)
        return 0;
    const int cut = cut_of(w->run, &it, w->run->options.decode_positions);
    *out = (struct decode_prompt){
        .ids = it.ids + cut,
        .count = it.count - cut,
        .most = most_of(w->run, &it),
        .user = &w->text[w->next - 1],
    };
    return 1;
}

/* Cut a text at the first of the texts that end it; its first `seen` bytes have been searched already. */
static bool cut_text(const struct tasks *t, int64_t item, struct pool *text, size_t seen)
{
    struct task_item it;
    bool cut = false;
    tasks_get(t, item, &it);
    for (int i = 0; i < it.untils; i++) {
        size_t bytes;
        const char *until = tasks_until(t, it.until + i, &bytes);
        const char *found = stop_find(text, seen, until, bytes);
        if (found) {
            text->count = (size_t)(found - (const char *)text->at);
            seen = text->count < seen ? text->count : seen;
            cut = true;
        }
    }
    return cut;
}

static int add_tokens(const struct tokenizer *t, const int32_t *ids, int count, struct pool *text)
{
    for (int i = 0; i < count; i++) {
        size_t bytes;
        const char *generated = tokenizer_decode(t, ids[i], &bytes);
        if (!pool_add(text, generated, bytes, 1))
            return fail(NJ_E_NOMEM, "out of memory for an answer");
    }
    return 0;
}

static int generated(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                     enum decode_end end)
{
    struct writer *w = user;
    struct pool *text = p->user;
    const size_t seen = text->count;
    const int kept = end == DECODE_STOPPED ? count - 1 : count;
    TRY(add_tokens(&w->run->tokenizer, ids, kept, text));
    const bool cut = cut_text(w->tasks, text - w->text, text, seen);
    w->tokens += count;
    w->done += cut || end != DECODE_MORE;
    progress_texts(&w->run->progress, w->done, w->count, w->tokens);
    return cut;
}

int task_texts_run(struct run *r, const struct tasks *t, struct pool *text)
{
    struct writer w = {.run = r, .tasks = t, .text = text};
    const struct decode_io io = {
        .next = next,
        .generated = generated,
        .user = &w,
        .stop = r->ends.stop,
        .stops = r->ends.stops,
    };
    for (int64_t i = 0; i < tasks_count(t); i++) {
        struct task_item it;
        tasks_get(t, i, &it);
        w.count += it.kind == TASK_TEXT;
    }
    r->progress.started = clock_seconds();
    const int rc = w.count > 0 ? engine_decode(r->engine, &io) : 0;
    progress_clear(&r->progress);
    return rc;
}
