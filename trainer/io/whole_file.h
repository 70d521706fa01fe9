/* SPDX-License-Identifier: Apache-2.0
 *
 * whole_file.h: a file that appears whole or not at all: it is written under a temporary name
 * (temp.h), flushed and renamed.
 */
#ifndef NOJIT_TRAINER_WHOLE_FILE_H
#define NOJIT_TRAINER_WHOLE_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct whole_file {
    FILE *f;
    bool must_be_new; /* whether to replace no file; the caller sets it after whole_file_begin() */
    char path[4200], temp[4240];
};

int whole_file_begin(struct whole_file *w, const char *path);
/* Rename the file to its final name, replacing any file there, and wait until the name is on
 * disk. After a failure, either rc or one of its own, nothing is left and the old file is
 * unchanged, except that if only the new name cannot be flushed, the file is there, whole.
 * Return rc or NJ_E_IO. */
int whole_file_end(struct whole_file *w, int rc);

#endif
