/* SPDX-License-Identifier: Apache-2.0
 *
 * model_folder.h: model folders: how a new one appears whole or not at all.
 */
#ifndef NOJIT_TRAINER_FOLDER_H
#define NOJIT_TRAINER_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a folder is there. */
bool folder_is(const char *path);
/* Makes the folder, and those above it that are absent; before: the nearest that was there. Nothing is left
 * on failure. */
int folder_make(const char *path, char *before, size_t bytes);
/* Removes path and those above it that lie below `before`, as far as they are empty. */
void folder_unmake(const char *path, const char *before);
/* Whether the folder could be made, or written where it is there; leaves nothing. */
int folder_check_place(const char *path);
/* Whether path, which need not exist yet, is the folder dir or lies in it, whatever both are called. */
bool folder_holds(const char *dir, const char *path);
/* Refuses if the file system of `path` (which need not exist yet) has no room for a model with so many bytes
 * of weights. */
int folder_check_model_space(const char *path, uint64_t weights);

/* A folder that is published whole: written under a temporary name (temp.h), then flushed and renamed. */
struct folder {
    char path[4000], temp[4032];
    char before[4032]; /* the nearest folder that was there */
};
int folder_begin(struct folder *f, const char *path); /* nothing is left on failure */
/* Waits until its files lie on the disk. */
int folder_flush(const struct folder *f);
/* Waits until the names of the files in dir lie there, too. */
int folder_flush_names(const char *dir);
/* Flushes; on failure the temporary folder is removed. But where the new name alone cannot be flushed, the
 * folder is there, whole. */
int folder_commit(struct folder *f);
void folder_abort(struct folder *f); /* removes what was made; fine after a commit, too */

#endif
