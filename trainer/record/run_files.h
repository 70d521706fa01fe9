/* SPDX-License-Identifier: Apache-2.0
 *
 * run_files.h: what in a run's folder is the run's own. A new run takes no folder that has a name it would
 * write; nothing is written to or removed that is not recognisably a run's, and no link is followed.
 */
#ifndef NOJIT_TRAINER_OWN_H
#define NOJIT_TRAINER_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How OUT/lock begins. */
#define OWN_LOCK_MARK "nojit run: "
/* A model exported as a mixture of types, in OUT. */
#define OWN_EXPORT "model-%s.gguf"

/* N of checkpoint-N, written as a run writes it; else 0. */
int64_t own_step(const char *name);

/* How many checkpoints of steps above `after` the folder has; *oldest of them, or 0. */
size_t own_steps(const char *out, int64_t after, int64_t *oldest);
/* Step of its newest checkpoint below `before`, or 0. */
int64_t own_newest(const char *out, int64_t before);

/* Refuses a folder that holds a name which a run writes. */
int own_check_new(const char *out);
/* Refuses a folder in which a name that a run writes in place is of another form. */
int own_check_again(const char *out);
/* Whether the folder has rows of metrics, as a run has that began. */
bool own_is_begun(const char *out);

/* Opens a file to write it in place; flags: O_RDWR and the like. It must be a regular file with one name,
 * of this user or of the folder's owner; it is made where it is absent and flags has O_CREAT. Refused with
 * ENOENT in errno where it is not there. */
int own_open(const char *path, int flags, int *fd);

/* Whether OUT/NAME is a folder with a whole training state. */
bool own_is_checkpoint(const char *out, const char *name);
/* Removes OUT/NAME: a file, or a folder of files that a run writes into one. Nothing is removed of a
 * folder that holds anything else. 0 as well where it is not there; *removed, if not NULL, counts. */
int own_remove(const char *out, const char *name, int *removed);

/* Calls what(user, name, pid) for every entry OUT/NAME that a run writes first under another name,
 * NAME.tmp-PID. */
void own_each_partial(const char *out, void (*what)(void *user, const char *name, long pid),
                      void *user);

#endif
