/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.h: the training engine as commands see it: it opens and closes, evaluates, scores; the headers that it
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

/* Opens folders, checks the pair (same vocabulary up to padding), plans, allocates one arena, loads
 * weights, prepares every matrix product. teacher_dir NULL: cross-entropy only; o->steps == 0: no
 * gradients. say(user, line): one-line notices (fall-backs, restricted vocabulary); may be NULL. */
int engine_create(nj_context *ctx, const char *student_dir, const char *teacher_dir,
                  const struct train_options *o, void (*say)(void *user, const char *line),
                  void *user, struct engine **out);
void engine_destroy(struct engine *e);
const struct model_config *engine_student(const struct engine *e);
const struct model_config *engine_teacher(const struct engine *e); /* NULL without one */
/* Where GEMMs of it are FP8, "in each of the student's layers: gate_up down; in the LM head: logits"; "" if none is. */
const char *engine_student_f8(const struct engine *e);
/* Those that were to be in FP8, and that no algorithm of the device does so: "gate_up logits", of the student or the
 * teacher; "" for none. */
const char *engine_f8_refused(const struct engine *e, bool of_teacher);
int engine_head_chunk(const struct engine *e);             /* rows of logits at a time */
int64_t engine_trained_parameters(const struct engine *e); /* of the model or its adapters */
const struct plan *engine_plan(const struct engine *e);
uint64_t engine_student_hash(const struct engine *e); /* of the weights as loaded (tensors_hash) */
uint64_t engine_teacher_hash(const struct engine *e);

struct eval_result {
    double loss;
    OBJECTIVE_SUMS(MEAN_FIELD) /* means over valid tokens */
    double perplexity;
    int64_t valid_tokens;
    /* Token by token; only from an engine with a teacher and steps == 0. */
    double kd_p50, kd_p90, kd_p99, kd_max; /* of the tokens' divergences */
    double teacher_ce_loss, teacher_perplexity;
    double acceptance; /* of the student's tokens by the teacher; 0: not asked for */
};
/* One pass over d, whose pass ends. Where ranks are processes each calls it, with the same data, and gets the same
 * result, whose bits do not depend on their number. */
int engine_eval(struct engine *e, struct batch_source *d, struct eval_result *out);
/* Refuses losses that are not finite: NJ_E_FORMAT with the weights that are to blame, if some are. */
int engine_check_eval(struct engine *e, const struct eval_result *r);
/* From here on `seen` is told how many rows of an evaluation are done, from 0 on. */
void engine_watch(struct engine *e, void (*seen)(void *user, int64_t rows, int64_t total),
                  void *user);

/* ce[i]: -log p of target[i] behind position at[i], by the student. */
int engine_score(struct engine *e, const struct score_batch *b, float *ce);

struct step_flops engine_flops(const struct engine *e);
/* By how much free device memory has fallen since there were `before` bytes; other programs count,
 * too. 0: cannot be told (a CPU; managed memory, which is taken as it is used). */
size_t memory_taken(nj_context *ctx, size_t before);
size_t engine_allocated_bytes(const struct engine *e); /* the same, when the plan's was taken */
size_t
engine_step_comm_bytes(const struct engine *e);      /* the plan's of the last step, all of them */
size_t engine_library_bytes(const struct engine *e); /* before that, beside the plan */

#endif
