/* SPDX-License-Identifier: Apache-2.0
 *
 * whole_file.h: a file that appears whole or not at all: written under a temporary name (temp.h), flushed,
 * renamed.
 */
#ifndef NOJIT_TRAINER_WHOLE_FILE_H
#define NOJIT_TRAINER_WHOLE_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct whole_file {
    FILE *f;
    bool must_be_new; /* replaces nothing; whoever wants that sets it after whole_file_begin() */
    char path[4200], temp[4240];
};

int whole_file_begin(struct whole_file *w, const char *path);
/* Give it its name, in place of what had it, and wait until that lies on the disk; after a failure, rc or
 * of its own, nothing is left and the old file is as it was. But where the new name alone cannot be flushed,
 * the file is there, whole. Return rc or NJ_E_IO. */
int whole_file_end(struct whole_file *w, int rc);

#endif
