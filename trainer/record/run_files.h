/* SPDX-License-Identifier: Apache-2.0
 *
 * run_files.h: which files in a run's folder are the run's own. A new run takes no folder that has a name it would
 * write; only files that are recognizably a run's are written to or removed, and no link is followed.
 */
#ifndef NOJIT_TRAINER_OWN_H
#define NOJIT_TRAINER_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The beginning of OUT/lock. */
#define OWN_LOCK_MARK "nojit run: "
/* A model exported as a GGUF file type, in OUT. */
#define OWN_EXPORT "model-%s.gguf"

/* Return N of checkpoint-N, written as a run writes it; otherwise 0. */
int64_t own_step(const char *name);

/* Return the number of checkpoints of steps above `after` in the folder; *oldest: the oldest of them, or 0. */
size_t own_steps(const char *out, int64_t after, int64_t *oldest);
/* Return the step of its newest checkpoint below `before`, or 0. */
int64_t own_newest(const char *out, int64_t before);

/* Refuse a folder that holds a name that a run writes. */
int own_check_new(const char *out);
/* Refuse a folder in which a name that a run writes in place has another form. */
int own_check_again(const char *out);
/* Return whether the folder has rows of metrics, as a run that has begun does. */
bool own_is_begun(const char *out);

/* Open a file to write it in place; flags: O_RDWR and the like. It must be a regular file with one name, of this user
 * or of the folder's owner; it is created if it is absent and flags has O_CREAT. Without O_CREAT an absent file is
 * refused, with ENOENT in errno. */
int own_open(const char *path, int flags, int *fd);

/* Return whether OUT/NAME is a folder with a whole training state. */
bool own_is_checkpoint(const char *out, const char *name);
/* Remove OUT/NAME: a file, or a folder of files that a run writes into one. Nothing is removed from a folder that holds
 * anything else. Return 0 if it is absent, too; *removed, if not NULL, counts. */
int own_remove(const char *out, const char *name, int *removed);

/* Call what(user, name, pid) for every entry OUT/NAME that a run writes first under another name, NAME.tmp-PID. */
void own_each_partial(const char *out, void (*what)(void *user, const char *name, long pid),
                      void *user);

#endif
