/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.h: OUT/checkpoint-N, each a model folder that transformers opens plus state.bin. A
 * checkpoint appears under its name whole or not at all. OUT/best is one more, outside the count.
 * settings.txt in each says what a resumed run must repeat, progress.txt what it goes on with and may
 * change. docs/run-folder.md promises that both, and state.bin, stay readable.
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
    char out[PATH_BYTES];          /* the run's folder */
    int64_t keep;                  /* newest ones that stay */
    int64_t last;                  /* step of the newest one, 0: none */
    char settings[SETTINGS_BYTES]; /* lines "name value" */
    char progress[2048];           /* the same: what is so far, and what may change */
    char found[2048];              /* progress of the one to go on from, or "" */
    char resume[4200];             /* the one to go on from, or "" */
    struct lock lock;
    char before[PATH_BYTES]; /* folder that was there before checkpoints_begin(), or "" */
    bool again;              /* OUT holds a run that this one goes on with, or starts over */
    int64_t stuck;           /* checkpoints up to this step cannot be removed */
    char notes[4096];        /* lines that nobody has heard yet */
    void (*say)(void *user, const char *line);
    void *user;
    bool learned_end; /* the student has learned to end its turns with turn_end */
    int32_t turn_end;
    const char *student; /* the model that it began as */
    /* NULL, or adds files of its own to the folder of a checkpoint */
    int (*add)(void *user, const char *dir);
    void *add_user;
};

/* Whether OUT may take a new run (it must not hold a run or a model) or, with resume ("auto" or a
 * folder), one that goes on; sets c->resume. Writes nothing. */
int checkpoints_open(struct checkpoints *c, const char *out, const char *resume);
/* Makes OUT and those above it where they are absent, locks it, asks again what checkpoints_open() asked, as
 * another run may have been there meanwhile, and removes what a run that was killed has left partial.
 * On failure checkpoints_close() is still to be called. */
int checkpoints_begin(struct checkpoints *c, const char *resume);
/* Who hears of what is removed, or cannot be; what was to be said before that is said at once. */
void checkpoints_listen(struct checkpoints *c, void (*say)(void *user, const char *line),
                        void *user);
/* The part of it that removes. */
void checkpoints_settle(struct checkpoints *c);
/* Finds the value of a setting in c->resume, or the one that an earlier nojit had and did not write; false without
 * either. */
bool checkpoints_setting(const struct checkpoints *c, const char *name, char *out, size_t bytes);
/* Whether the run that c->resume belongs to had c->settings; reads c->found. */
int checkpoints_check(struct checkpoints *c);
/* What c->found has under NAME. */
bool checkpoints_progress(const struct checkpoints *c, const char *name, char *out, size_t bytes);
/* A run that has ended. */
struct ended_run {
    int64_t steps; /* done; 0: it has not ended */
    bool early;    /* before its last step, as its held-out loss no longer fell */
    bool diverged;
};
/* Finds the finished run whose model OUT holds, if a run of so many steps with this patience would do no more. A
 * receipt that cannot be read is an error. */
int checkpoints_done(const struct checkpoints *c, int64_t steps, int64_t patience,
                     struct ended_run *out);
/* Once the state of `step` is loaded: checkpoints of later steps become checkpoint-N.old; *aside is
 * their number. Removes what is older than the newest `keep`. */
int checkpoints_go_on(struct checkpoints *c, int64_t step, int64_t *aside);
/* Step of the checkpoint in OUT before c->resume, the newest if that is none of OUT's; 0: none. */
int64_t checkpoints_other(const struct checkpoints *c);
/* Gives the lock back, and removes what checkpoints_begin() made, if nothing is in it. */
void checkpoints_close(struct checkpoints *c);
/* Saves step N and removes what is older than the newest `keep`. */
int checkpoints_save(struct checkpoints *c, struct engine *e, int64_t step,
                     const struct data_state *data);
/* Saves step N as OUT/best, in place of what was there. What has a name of these and is no run's is not
 * removed, but gets another name. */
int checkpoints_save_best(struct checkpoints *c, struct engine *e, int64_t step,
                          const struct data_state *data);
/* The final model: into a temporary folder, then file by file into OUT. */
int checkpoints_finish(struct checkpoints *c, struct engine *e);
/* The model of `base` with the final adapters in its weights as OUT/merged, in place of an earlier
 * one; *merged: how many adapters that were. */
int checkpoints_merge(struct checkpoints *c, const char *base, size_t *merged);

#endif
