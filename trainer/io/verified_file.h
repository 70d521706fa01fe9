/* SPDX-License-Identifier: Apache-2.0
 *
 * verified_file.h: a file that appears whole or not at all: written under a temporary name beside its place,
 * flushed, read back and compared by length and hash before it takes its name. That the name lies on the
 * disk is for whoever publishes the folder (model_folder.c).
 */
#ifndef NOJIT_TRAINER_VERIFIED_FILE_H
#define NOJIT_TRAINER_VERIFIED_FILE_H

#include "io/path.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct verified_file {
    char path[PATH_BYTES], temp[PATH_BYTES];
    FILE *file;
    uint64_t bytes; /* written so far */
    int error;      /* errno of a write that failed, or 0 */
    void *hash;     /* XXH3_state_t, of everything written */
};

/* After a failure of any of them, and after the end, abort frees what is left. */
int verified_begin(struct verified_file *f, const char *path);
int verified_put(struct verified_file *f, const void *data, size_t bytes);
/* Flushes, closes and compares. */
int verified_check(struct verified_file *f);
int verified_publish(struct verified_file *f);
/* Removes what has not been published; fine after it. */
void verified_abort(struct verified_file *f);

#endif
