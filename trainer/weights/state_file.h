/* SPDX-License-Identifier: Apache-2.0
 *
 * state_file.h: state.bin as a file: fields and arrays under tags, each with its XXH3-64. Everything is checked
 * before use.
 */
#ifndef NOJIT_TRAINER_STATE_FILE_H
#define NOJIT_TRAINER_STATE_FILE_H

#include "base/step_state.h"
#include "io/path.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Fields of the file, each also a row of the table in state_file.c. A field that an older file lacks is 0. */
struct state_fields {
    int64_t step;
    uint32_t dtype;  /* enum nj_dtype of the run */
    uint32_t kept;   /* 0: all in float32; else moments in bfloat16, weights by kept_code() */
    uint64_t layout; /* XXH3 of tensor names and places */
    int64_t elements;
    uint64_t epoch, window;
    float slots[NJ_STEP_SLOTS];
};

enum { STATE_ARRAYS = 3 }; /* weights, first and second moments */

struct state_array {
    uint64_t at, bytes, hash;
};

struct state_file {
    FILE *f;
    uint64_t size, end; /* bytes of the file being read, and end of its last array */
    uint32_t version;
    struct state_fields fields;
    struct state_array array[STATE_ARRAYS];
    char path[PATH_BYTES];
};

/* Open DIR/state.bin for writing, with room for arrays of so many bytes. The caller sets fields and hashes before
 * state_file_finish(), which writes them last, so that a file cut short has none. */
int state_file_create(struct state_file *s, const char *dir, const uint64_t bytes[STATE_ARRAYS]);
int state_file_finish(struct state_file *s);
/* Open DIR/state.bin and read its fields (_open); refuse arrays of other sizes (_expect). */
int state_file_open(struct state_file *s, const char *dir);
int state_file_expect(struct state_file *s, const uint64_t bytes[STATE_ARRAYS]);
/* Seek to an array, or read or write its bytes, in their order. */
int state_file_seek(struct state_file *s, int array);
int state_file_read(struct state_file *s, void *to, size_t bytes);
int state_file_write(struct state_file *s, const void *from, size_t bytes);
/* Compare the hash of an array that was read. */
int state_file_check(const struct state_file *s, int array, uint64_t hash);
int state_file_close(struct state_file *s,
                     int rc); /* returns rc, or the failure to close a file that was written */

#endif
