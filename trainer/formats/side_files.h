/* SPDX-License-Identifier: Apache-2.0
 *
 * side_files.h: files that belong to a model beside its weights: tokenizer, chat template,
 * generation settings. A file is copied only from the model's own folder, or from the files of
 * that model in the Hugging Face cache, where a snapshot consists of links to blobs: a link to
 * anywhere else may lead to a secret.
 */
#ifndef NOJIT_TRAINER_SIDE_FILES_H
#define NOJIT_TRAINER_SIDE_FILES_H

#include <stdbool.h>

/* Return whether this is the name of such a file. */
bool side_file_name(const char *name);
/* Copy the file of this name, if it exists, with its permissions as far as umask allows. */
int side_file_copy(const char *from, const char *to, const char *name);
/* Copy all side files of `from` to `to`. */
int side_files_copy(const char *from, const char *to);
/* Refuse any file in `from` that side_files_copy() would refuse. */
int side_files_check(const char *from);

#endif
