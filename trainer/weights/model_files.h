/* SPDX-License-Identifier: Apache-2.0
 *
 * model_files.h: what a run saves of a model, and begins again from.
 */
#ifndef NOJIT_TRAINER_MODEL_FILES_H
#define NOJIT_TRAINER_MODEL_FILES_H

#include <stdint.h>

struct data_state;
struct engine;

/* Model folder and state for resuming: writes into an existing empty folder; the caller renames it.
 * With adapters they are what is saved. state.bin: weights as they are updated, moments, step state, data position,
 * step; beside it the algorithms of matrix products. */
#define ENGINE_GEMM_TABLE "gemm.txt"
int engine_save_model(struct engine *e, const char *dir);
/* Where ranks are processes and one saves, the others do their part of it meanwhile: */
int engine_collect_model(struct engine *e);
int engine_collect_state(struct engine *e);
/* Of the weights in it. */
uint64_t engine_model_bytes(const struct engine *e);
int engine_save_state(struct engine *e, const char *dir, int64_t step,
                      const struct data_state *data);
int engine_load_state(struct engine *e, const char *dir, int64_t *step, struct data_state *data);

#endif
