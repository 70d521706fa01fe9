/* SPDX-License-Identifier: Apache-2.0
 *
 * sample_log.c: see sample_log.h.
 */
#include "record/sample_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "io/error.h"
#include "io/json_text.h"

int sample_log_prompts(struct sample_log *l, const struct settings *s, const struct tokenizer *t,
                       int seq_len)
{
    const struct path_list *given = &s->sample_prompts;
    l->tokens = s->sample_tokens;
    l->longest = seq_len;
    l->prompt = calloc(given->count + 1, sizeof *l->prompt);
    if (l->prompt == NULL)
        return fail(NJ_E_NOMEM, "out of memory for %zu prompts", given->count);
    while (l->count < given->count) {
        struct sample_prompt *p = &l->prompt[l->count];
        p->text = given->path[l->count++];
        TRY(sample_encode(t, p->text, &p->ids, &p->count));
        if ((int64_t)p->count >= l->longest)
            return fail(NJ_E_ARG,
                        "--sample-prompt '%.40s': %zu tokens leave no room in --seq-len %d; "
                        "shorten it",
                        p->text, p->count, seq_len);
    }
    return 0;
}

int sample_log_open(struct sample_log *l, const char *dir, int64_t resumed, struct rows_done *done)
{
    snprintf(l->path, sizeof l->path, "%s/samples.jsonl", dir);
    const int rc =
        rows_open(l->path, resumed, NULL, NULL, done, l->count > 0 || l->answers ? &l->file : NULL);
    done->missing = 0; /* not every step has a sample */
    return rc;
}

/* Copy the first `most` code points of a text to one line: characters that are not visible become spaces, and several
 * spaces become one. out: 4 most + 4 bytes. */
static void shorten(const char *text, size_t most, char *out)
{
    size_t left = strlen(text), length, used = 0;
    for (size_t n = 0; left > 0 && n < most; text += length, left -= length) {
        uint32_t cp;
        length = utf8_next((const unsigned char *)text, left, &cp);
        const bool blank = cp == ' ' || is_control(cp);
        if (blank && used > 0 && out[used - 1] == ' ')
            continue;
        memcpy(out + used, blank ? " " : text, blank ? 1 : length);
        used += blank ? 1 : length;
        n++;
    }
    memcpy(out + used, left > 0 ? "..." : "", left > 0 ? sizeof "..." : 1);
}

static int put_row(const struct sample_log *l, json_t *row)
{
    const int rc = json_write_line(l->file, l->path, json_incref(row), 0);
    return rc != 0 || fflush(l->file) == 0
               ? rc
               : fail(NJ_E_IO, "%s: cannot be written: %s", l->path, strerror(errno));
}

static void say(struct progress *p, int64_t step, const json_t *row)
{
    enum { PROMPT = 24, TEXT = 60 };
    char prompt[4 * PROMPT + 4], text[4 * TEXT + 4];
    shorten(json_string_value(json_object_get(row, "prompt")), PROMPT, prompt);
    shorten(json_string_value(json_object_get(row, "text")), TEXT, text);
    progress_say(p, "sample at step %lld: '%s' continues '%s'", (long long)step, prompt, text);
}

static int write_one(struct sample_log *l, const struct sampling *how, int64_t step,
                     const struct sample_prompt *prompt, struct progress *p)
{
    char *text = NULL;
    size_t bytes = 0;
    const int64_t count = (int64_t)prompt->count, room = l->longest - count;
    FILE *f = open_memstream(&text, &bytes);
    if (f == NULL)
        return fail(NJ_E_NOMEM, "out of memory for a sample");
    int rc = sample_continue(how, prompt->ids, count, l->tokens < room ? l->tokens : room, f, NULL);
    if (fclose(f) != 0 && rc == 0)
        rc = fail(NJ_E_NOMEM, "out of memory for a sample");
    if (rc == 0) {
        json_t *row = json_pack("{s:I, s:o, s:o}", "step", (json_int_t)step, "prompt",
                                json_text(prompt->text, strlen(prompt->text)), "text",
                                json_text(text, bytes));
        rc = put_row(l, row);
        if (rc == 0)
            say(p, step, row);
        json_decref(row);
    }
    free(text);
    return rc;
}

int sample_log_write(struct sample_log *l, const struct sampling *how, int64_t step,
                     struct progress *p)
{
    for (size_t i = 0; i < l->count; i++)
        TRY(write_one(l, how, step, &l->prompt[i], p));
    return 0;
}

int sample_log_answer(struct sample_log *l, const struct tokenizer *t,
                      const struct generation *ends, int64_t step, const struct answer *a)
{
    const bool whole = generation_stops(ends, a->generated[a->generated_count - 1]);
    json_t *row =
        json_pack("{s:I, s:o, s:o, s:s}", "step", (json_int_t)step, "prompt",
                  sample_text(t, a->prompt, a->prompt_count), "text",
                  sample_text(t, a->generated, whole ? a->generated_count - 1 : a->generated_count),
                  "answer", whole ? "whole" : "cut");
    const int rc = put_row(l, row);
    json_decref(row);
    return rc;
}

void sample_log_close(struct sample_log *l)
{
    if (l->file != NULL)
        fclose(l->file);
    for (size_t i = 0; i < l->count; i++)
        free(l->prompt[i].ids);
    free(l->prompt);
}
