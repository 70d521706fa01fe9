/* SPDX-License-Identifier: Apache-2.0
 *
 * side_files.h: the files beside a model's weights that go with it: tokenizer, chat template, generation
 * settings. One is copied only from the model's own folder, or from the files of that model in the Hugging
 * Face cache, where a snapshot is links to blobs: what a link elsewhere leads to may be a secret.
 */
#ifndef NOJIT_TRAINER_SIDE_FILES_H
#define NOJIT_TRAINER_SIDE_FILES_H

#include <stdbool.h>

/* Whether it is the name of one of these files. */
bool side_file_name(const char *name);
/* Copies a file of that name, if it is there, with the permissions it has, as far as umask leaves them. */
int side_file_copy(const char *from, const char *to, const char *name);
/* Copies all that `from` has into `to`. */
int side_files_copy(const char *from, const char *to);
/* Refuses what side_files_copy() would refuse in `from`. */
int side_files_check(const char *from);

#endif
