/* SPDX-License-Identifier: Apache-2.0
 *
 * data_struct.h: the inside of open data, for data.c, data_open.c and dealt.c.
 */
#ifndef NOJIT_TRAINER_DATA_STRUCT_H
#define NOJIT_TRAINER_DATA_STRUCT_H

#include "batch/data.h"
#include "batch/packing.h"
#include "batch/shuffle.h"

/* Files that make rows of their own: all of them, or those of one path with a weight. */
struct source {
    char *name;
    size_t first, segments; /* of struct data's */
    size_t paths;           /* that were given for it */
    int64_t tokens;
    struct packed packed;
};

struct data {
    struct batch_source batches;
    struct segment *segment;
    size_t segment_count;
    struct source *source; /* order.count of them */
    struct order order;
    int64_t tokens;
    int S, vocab;
    bool once, weighted;
    enum packing packing; /* as decided */
    struct row_rules rules;
    struct row_notes notes;
    struct data_state at;
    struct batch batch;
    int32_t *window;      /* a piece and the token after it: S + 1 */
    unsigned char *flags; /* S + 1 */
    struct passed_over passed;
    struct hasher { /* over each source's ids */
        uint64_t hash;
        size_t count;
        int32_t group[4096]; /* not hashed yet */
    } hasher;
};

/* Make data without a file. */
int data_create(int seq_len, struct data **out);
/* Allocate a batch and the buffers that its tokens are read into. */
int data_allocate(struct data *d, int batch_size);

#endif
