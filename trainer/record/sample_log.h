/* SPDX-License-Identifier: Apache-2.0
 *
 * sample_log.h: OUT/samples.jsonl: the student's continuations of --sample-prompt, each time that held-out data is
 * measured, drawn from the weights as they are without changing the run's state; and, with --on-policy, some of the
 * answers that it learns from.
 */
#ifndef NOJIT_TRAINER_SAMPLE_LOG_H
#define NOJIT_TRAINER_SAMPLE_LOG_H

#include "batch/answers.h"
#include "options/settings.h"
#include "record/progress.h"
#include "record/rows.h"
#include "record/sample.h"

struct sample_log {
    struct sample_prompt {
        const char *text;
        int32_t *ids;
        size_t count;
    } * prompt;
    size_t count;
    int64_t tokens;  /* largest number of tokens of a continuation */
    int64_t longest; /* largest number of tokens of a prompt and its continuation */
    bool answers;    /* whether there are rows of answers, too */
    char path[4200];
    FILE *file; /* NULL without prompts and answers */
};

/* Encode the prompts, so that one that cannot be continued ends the run before it starts. */
int sample_log_prompts(struct sample_log *l, const struct settings *s, const struct tokenizer *t,
                       int seq_len);
/* Open DIR/samples.jsonl and keep its rows up to `resumed` (rows.h). */
int sample_log_open(struct sample_log *l, const char *dir, int64_t resumed, struct rows_done *done);
/* Write a row and a line of the terminal for each prompt. */
int sample_log_write(struct sample_log *l, const struct sampling *how, int64_t step,
                     struct progress *p);
/* Write a row for an answer of a step; ends: the ends of texts of the model that wrote it. */
int sample_log_answer(struct sample_log *l, const struct tokenizer *t,
                      const struct generation *ends, int64_t step, const struct answer *a);
void sample_log_close(struct sample_log *l);

#endif
