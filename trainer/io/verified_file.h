/* SPDX-License-Identifier: Apache-2.0
 *
 * verified_file.h: a file that appears whole or not at all: it is written under a temporary name
 * beside its final one, flushed, read back and compared by length and hash before it is renamed.
 * The code that publishes the folder makes sure that the name is on disk (model_folder.c).
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
    uint64_t bytes; /* number of bytes written so far */
    int error;      /* errno of a failed write, or 0 */
    void *hash;     /* XXH3_state_t over all bytes written */
};

/* Begin a file. After a failure of any of these functions, and after the end, verified_abort()
 * frees what is left. */
int verified_begin(struct verified_file *f, const char *path);
int verified_put(struct verified_file *f, const void *data, size_t bytes);
/* Flush the file, close it and compare it with the bytes written. */
int verified_check(struct verified_file *f);
int verified_publish(struct verified_file *f);
/* Remove the file if it has not been published; may be called after it has been. */
void verified_abort(struct verified_file *f);

#endif
