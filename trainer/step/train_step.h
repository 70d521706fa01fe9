/* SPDX-License-Identifier: Apache-2.0
 *
 * train_step.h: one optimizer step and its results.
 */
#ifndef NOJIT_TRAINER_TRAIN_STEP_H
#define NOJIT_TRAINER_TRAIN_STEP_H

#include "objective/losses.h"

#include <stdbool.h>
#include <stdint.h>

struct batch_source;
struct engine;

struct step_result {
    double loss;
    OBJECTIVE_SUMS(MEAN_FIELD) /* means over valid tokens */
    /* With options.answers: means over the tokens of answers; NaN where a step has none. */
    ANSWER_SUMS(MEAN_FIELD)
    double grad_norm, lr;
    int64_t valid_tokens, tokens;
    int64_t skipped_updates; /* float16: updates skipped so far */
    float loss_scale;
    double step_ms;
    bool stopping;       /* some rank was to stop when the step began; the same on all */
    int empty;           /* micro-batches without a target */
    bool passed_over;    /* so were all: there is no loss, and the weights are as they were */
    char nonfinite[160]; /* "" or which tensor was not finite */
    bool intact;         /* then: the student's weights are finite, as before the step */
};
/* One optimiser step over grad_accum micro-batches pulled from d. Normalised over the valid tokens
 * of all of them. NJ_E_DEVICE, or NJ_E_FORMAT if the loss is not finite (out->nonfinite names the
 * tensor; weights unchanged, and d is before the step). Where ranks are processes each calls it, with
 * the same data, and gets the same result. */
int engine_step(struct engine *e, struct batch_source *d, struct step_result *out);
/* Whether a step or an evaluation failed for want of a batch: the state is that of the step before, to
 * which d stands, too. */
bool engine_data_failed(const struct engine *e);

#endif
