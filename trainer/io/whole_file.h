/* SPDX-License-Identifier: Apache-2.0
 *
 * whole_file.h: a file that appears whole or not at all: written under a name of its own, flushed, renamed.
 */
#ifndef NOJIT_TRAINER_WHOLE_FILE_H
#define NOJIT_TRAINER_WHOLE_FILE_H

#include <stdio.h>

struct whole_file {
    FILE *f;
    char path[4200], temp[4240];
};

/* Opens PATH.tmp-N, a file that was not there. */
int whole_file_begin(struct whole_file *w, const char *path);
/* Gives it its name, in place of what had it, and waits until that lies on the disk; after a failure, err or
 * of its own, nothing is left and the old file is as it was. Returns err or NJ_E_IO. */
int whole_file_end(struct whole_file *w, int err);

#endif
