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
    /* With options.answers: means over the tokens of answers; NaN if a step has none. */
    ANSWER_SUMS(MEAN_FIELD)
    /* Mean over micro-batches of the loss that balances experts, which has a part in `loss` if they are balanced. */
    double balance_loss;
    bool balanced;
    double grad_norm, lr;
    int64_t valid_tokens, tokens;
    int64_t skipped_updates; /* number of updates skipped so far, in float16 */
    float loss_scale;
    double step_ms;
    bool stopping;       /* some rank was to stop when the step began; the same on all ranks */
    int empty;           /* number of micro-batches without a target */
    bool passed_over;    /* all were empty: there is no loss, and the weights have not changed */
    char nonfinite[160]; /* tensor that was not finite, or "" */
    bool intact;         /* if so: the student's weights are finite, as before the step */
};
/* Run one optimizer step over grad_accum micro-batches read from d, normalized over the valid tokens of all of
 * them. Return NJ_E_DEVICE, or NJ_E_FORMAT if the loss is not finite (out->nonfinite names the tensor; the weights
 * are unchanged, and d is before the step). Ranks that are processes all call it, with the same data, and get the
 * same result. */
int engine_step(struct engine *e, struct batch_source *d, struct step_result *out);
/* Return whether a step or an evaluation failed because it got no batch: the state is that of the step before, and
 * so is the position of d. */
bool engine_data_failed(const struct engine *e);

#endif
