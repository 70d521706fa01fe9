/* SPDX-License-Identifier: Apache-2.0
 *
 * model_folder.h: model folders: a new folder appears whole or not at all.
 */
#ifndef NOJIT_TRAINER_FOLDER_H
#define NOJIT_TRAINER_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return whether a folder exists at this path. */
bool folder_is(const char *path);
/* Create the folder and its missing parents; before receives the nearest parent that existed.
 * Nothing is left on failure. */
int folder_make(const char *path, char *before, size_t bytes);
/* Remove path and its parents below `before`, as far as they are empty. */
void folder_unmake(const char *path, const char *before);
/* Check that the folder could be created, or written if it exists; leave nothing behind. */
int folder_check_place(const char *path);
/* Return whether path, which need not exist yet, is the folder dir or lies in it, whatever names
 * both are given by. */
bool folder_holds(const char *dir, const char *path);
/* Refuse if the file system of `path` (which need not exist yet) has no room for a model with
 * this many bytes of weights. */
int folder_check_model_space(const char *path, uint64_t weights);

/* Folder that is published whole: it is written under a temporary name (temp.h), then flushed
 * and renamed. */
struct folder {
    char path[4000], temp[4032];
    char before[4032]; /* nearest parent folder that existed */
};
int folder_begin(struct folder *f, const char *path); /* leaves nothing on failure */
/* Wait until the folder's files are on disk. */
int folder_flush(const struct folder *f);
/* Wait until the names of the files in dir are on disk, too. */
int folder_flush_names(const char *dir);
/* Flush and publish the folder; on failure the temporary folder is removed, except that if only
 * the new name cannot be flushed, the folder is there, whole. */
int folder_commit(struct folder *f);
void folder_abort(struct folder *f); /* removes what was created; may follow a commit */

#endif
