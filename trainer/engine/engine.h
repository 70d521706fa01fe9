/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.h: the training engine as commands see it: opening and closing, evaluation, scores; the headers that it
 * includes have the rest. It knows nothing of options, files of metrics, progress or signals.
 */
#ifndef NOJIT_TRAINER_ENGINE_H
#define NOJIT_TRAINER_ENGINE_H

#include "batch/source.h"
#include "decode/decode.h"
#include "decode/row_logits.h"
#include "decode/speculate.h"
#include "model/config.h"
#include "nojit.h"
#include "objective/losses.h"
#include "state/cost.h"
#include "state/plan.h"
#include "state/schedule.h"
#include "step/score_batch.h"
#include "step/train_step.h"
#include "weights/model_files.h"

struct engine;

/* Open the folders, check the pair (same vocabulary up to padding), plan, allocate the arenas, load the weights and
 * prepare every GEMM. teacher_dir NULL: cross-entropy only; o->steps == 0: no gradients. say(user, line): one-line
 * notices (fall-backs, restricted vocabulary); may be NULL. */
int engine_create(nj_context *ctx, const char *student_dir, const char *teacher_dir,
                  const struct train_options *o, void (*say)(void *user, const char *line),
                  void *user, struct engine **out);
void engine_destroy(struct engine *e);
const struct model_config *engine_student(const struct engine *e);
const struct model_config *engine_teacher(const struct engine *e); /* NULL without one */
/* Return the student's FP8 GEMMs, "in each of the student's layers: gate_up down; in the LM head: logits", or
 * "". */
const char *engine_student_fp8(const struct engine *e);
/* Return the GEMMs of the student or the teacher that were to be in FP8, but for which the device has no algorithm:
 * "gate_up logits", or "". */
const char *engine_fp8_refused(const struct engine *e, bool of_teacher);
int engine_head_chunk(const struct engine *e);             /* rows of logits at a time */
int64_t engine_trained_parameters(const struct engine *e); /* number, of model or adapters */
const struct plan *engine_plan(const struct engine *e);
/* Hash of the weights as loaded (tensors_hash). */
uint64_t engine_student_hash(const struct engine *e);
uint64_t engine_teacher_hash(const struct engine *e);

struct eval_result {
    double loss;
    OBJECTIVE_SUMS(MEAN_FIELD) /* means over valid tokens */
    double perplexity;
    int64_t valid_tokens;
    /* Results token by token, only from an engine with a teacher and steps == 0. */
    double kd_p50, kd_p90, kd_p99, kd_max; /* percentiles of the tokens' divergences */
    double teacher_ce_loss, teacher_perplexity;
    double acceptance; /* acceptance rate of the student's tokens by the teacher; 0: not measured */
};
/* Evaluate one pass over d. Ranks that are processes all call it, with the same data, and get the same result,
 * whose bits do not depend on their number. */
int engine_eval(struct engine *e, struct batch_source *d, struct eval_result *out);
/* Refuse losses that are not finite: NJ_E_FORMAT, with the weights that are to blame, if any. */
int engine_check_eval(struct engine *e, const struct eval_result *r);
/* Call `seen` from now on with the number of rows of an evaluation that are done, from 0 on. */
void engine_watch(struct engine *e, void (*seen)(void *user, int64_t rows, int64_t total),
                  void *user);

/* Compute ce[i]: -log p of target[i] behind position at[i], by the student. */
int engine_score(struct engine *e, const struct score_batch *b, float *ce);

/* Begin to compute the hidden states behind the last norm at the positions at[]; then wait for them, and copy them to
 * `hidden`, which is pinned: [count, C] of engine_type(). One batch at a time. */
int engine_hidden_begin(struct engine *e, const struct score_batch *b);
int engine_hidden_end(struct engine *e, int count, void *hidden);
/* Return the type of weights and hidden states. */
enum nj_tensor_type engine_type(const struct engine *e);

struct step_flops engine_flops(const struct engine *e);
/* Return by how much free device memory has fallen since there were `before` bytes, other programs included; 0:
 * unknown (a CPU; managed memory, which is taken as it is used). */
size_t memory_taken(nj_context *ctx, size_t before);
size_t engine_allocated_bytes(const struct engine *e); /* device memory taken for the plan */
size_t
engine_step_comm_bytes(const struct engine *e); /* bytes received from others in the last step */
size_t engine_library_bytes(const struct engine *e); /* device memory taken beside the plan */

#endif
