/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.h: OUT/checkpoint-N, each a model folder that transformers opens plus state.bin. A
 * checkpoint appears under its name whole or not at all. OUT/best is one more, outside the count.
 * settings.txt in each says what a run that goes on must repeat.
 */
#ifndef NOJIT_TRAINER_CHECKPOINT_H
#define NOJIT_TRAINER_CHECKPOINT_H

#include <stdint.h>

#include "data.h"
#include "engine.h"

enum { SETTINGS_BYTES = 8192 };

struct checkpoints {
    char out[4096];                /* the run's folder */
    int64_t keep;                  /* newest ones that stay */
    int64_t last;                  /* step of the newest one, 0: none */
    char settings[SETTINGS_BYTES]; /* lines "name value" */
};

/* Takes OUT for a new run (made if absent, must not hold a run or a model) or, with resume ("auto"
 * or a folder), for one that goes on with c->settings. On return resume_dir is the checkpoint to
 * load, or "". The caller sets c->settings and c->keep. */
int checkpoints_open(struct checkpoints *c, const char *out, const char *resume, char *resume_dir,
                     size_t bytes);
/* Saves step N and removes what is older than the newest `keep`. */
int checkpoints_save(struct checkpoints *c, struct engine *e, int64_t step,
                     const struct data_state *data);
/* Saves step N as OUT/best, in place of what was there. */
int checkpoints_save_best(const struct checkpoints *c, struct engine *e, int64_t step,
                          const struct data_state *data);
/* The final model: into a temporary folder, then file by file into OUT. */
int checkpoints_finish(struct checkpoints *c, struct engine *e);

#endif
