/* SPDX-License-Identifier: Apache-2.0
 *
 * model_files.h: the files that a run saves of a model, and resumes from.
 */
#ifndef NOJIT_TRAINER_MODEL_FILES_H
#define NOJIT_TRAINER_MODEL_FILES_H

#include <stdint.h>

struct data_state;
struct engine;

/* Save or load a model folder and the state for resuming. They are written into an existing empty folder, which the
 * caller renames. With adapters these are saved instead of the model. state.bin has the weights as they are
 * updated, moments, step state, data position and step; beside it are the algorithms of the GEMMs. */
#define ENGINE_GEMM_TABLE "gemm.txt"
int engine_save_model(struct engine *e, const char *dir);
/* Save a model folder that has the LM head alone. */
int engine_save_head(struct engine *e, const char *dir);
/* Take part in saving, on the ranks that do not save themselves, if ranks are processes. */
int engine_collect_model(struct engine *e);
int engine_collect_state(struct engine *e);
/* Return the bytes of the weights in the model folder. */
uint64_t engine_model_bytes(const struct engine *e);
int engine_save_state(struct engine *e, const char *dir, int64_t step,
                      const struct data_state *data);
int engine_load_state(struct engine *e, const char *dir, int64_t *step, struct data_state *data);

#endif
