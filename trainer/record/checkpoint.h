/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.h: OUT/checkpoint-N, each a model folder that transformers opens plus state.bin. A checkpoint appears
 * under its name whole or not at all. OUT/best is one more, outside the count. settings.txt in each says what a resumed
 * run must repeat, progress.txt the state that it continues from and the settings that it may change.
 * docs/run-folder.md promises that both, and state.bin, stay readable.
 */
#ifndef NOJIT_TRAINER_CHECKPOINT_H
#define NOJIT_TRAINER_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "batch/source.h"
#include "engine/engine.h"
#include "io/path.h"
#include "record/lock.h"

enum { SETTINGS_BYTES = 8192 };

struct checkpoints {
    char out[PATH_BYTES];          /* folder of the run */
    int64_t keep;                  /* number of newest checkpoints that are kept */
    int64_t last;                  /* step of the newest checkpoint, 0: none */
    char settings[SETTINGS_BYTES]; /* lines "name value" */
    char progress[2048]; /* lines "name value": the state so far, and settings that may change */
    char found[2048];    /* progress of the checkpoint to resume from, or "" */
    char resume[4200];   /* checkpoint to resume from, or "" */
    struct lock lock;
    char before[PATH_BYTES]; /* folder that existed before checkpoints_begin(), or "" */
    bool again;              /* whether OUT holds a run that this one continues or starts over */
    int64_t stuck;           /* step up to which checkpoints cannot be removed */
    char notes[4096];        /* lines that no listener has received yet */
    void (*say)(void *user, const char *line);
    void *user;
    bool learned_end; /* whether the student has learned to end its turns with turn_end */
    int32_t turn_end;
    const char *student; /* model that the student began as */
    /* Add files to the folder of a checkpoint, or NULL. */
    int (*add)(void *user, const char *dir);
    void *add_user;
};

/* Check that OUT may take a new run (it must hold neither a run nor a model) or, with resume ("auto" or a folder), one
 * that continues; set c->resume. Write nothing. */
int checkpoints_open(struct checkpoints *c, const char *out, const char *resume);
/* Make OUT and its parents where they are absent, lock it, repeat the checks of checkpoints_open(), as another run may
 * have changed OUT since, and remove what a killed run has left incomplete. On failure the caller must still call
 * checkpoints_close(). */
int checkpoints_begin(struct checkpoints *c, const char *resume);
/* Set the listener for what is removed or cannot be; earlier lines are passed to it at once. */
void checkpoints_listen(struct checkpoints *c, void (*say)(void *user, const char *line),
                        void *user);
/* Remove what a killed run has left incomplete, a part of checkpoints_begin(). */
void checkpoints_settle(struct checkpoints *c);
/* Find the value of a setting in c->resume, or the one that an earlier nojit had and did not write; false if there is
 * neither. */
bool checkpoints_setting(const struct checkpoints *c, const char *name, char *out, size_t bytes);
/* Check that the run that c->resume belongs to had c->settings; read c->found. */
int checkpoints_check(struct checkpoints *c);
/* Find the value of NAME in c->found. */
bool checkpoints_progress(const struct checkpoints *c, const char *name, char *out, size_t bytes);
/* A run that has ended. */
struct ended_run {
    int64_t steps; /* number of steps done; 0: it has not ended */
    bool early;    /* whether it ended before its last step, as its held-out loss no longer fell */
    bool diverged;
};
/* Find the finished run whose model OUT holds, if a run with these steps and this patience would do no more. A receipt
 * that cannot be read is an error. */
int checkpoints_done(const struct checkpoints *c, int64_t steps, int64_t patience,
                     struct ended_run *out);
/* Continue from `step`, once its state is loaded: checkpoints of later steps become checkpoint-N.old; *aside is their
 * number. Remove those older than the newest `keep`. */
int checkpoints_go_on(struct checkpoints *c, int64_t step, int64_t *aside);
/* Return the step of the checkpoint in OUT before c->resume, or of the newest if c->resume is not in OUT; 0: none. */
int64_t checkpoints_other(const struct checkpoints *c);
/* Release the lock, and remove what checkpoints_begin() made, if it is empty. */
void checkpoints_close(struct checkpoints *c);
/* Save step N and remove checkpoints older than the newest `keep`. */
int checkpoints_save(struct checkpoints *c, struct engine *e, int64_t step,
                     const struct data_state *data);
/* Save step N as OUT/best, in place of the previous one. A file or folder that has one of these names and is not a
 * run's is renamed, not removed. */
int checkpoints_save_best(struct checkpoints *c, struct engine *e, int64_t step,
                          const struct data_state *data);
/* Write the final model: into a temporary folder, then file by file into OUT. */
int checkpoints_finish(struct checkpoints *c, struct engine *e);
/* Write the model of `base` with the final adapters merged into its weights as OUT/merged, in place of an earlier one;
 * *merged: number of adapters. */
int checkpoints_merge(struct checkpoints *c, const char *base, size_t *merged);

#endif
