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
    size_t first, segments; /* range in struct data's segments */
    size_t paths;           /* number of paths that were given for it */
    int64_t tokens;
    struct packed packed;
};

struct data {
    struct batch_source batches;
    struct segment *segment;
    size_t segment_count;
    struct source *source; /* order.count sources */
    struct order order;
    int64_t tokens;
    int S, vocab;
    bool once, weighted;
    enum packing packing; /* packing that was decided on */
    struct row_rules rules;
    struct row_notes notes;
    struct data_state at;
    struct batch batch;
    int32_t *window;      /* piece and the token after it, [S + 1] */
    unsigned char *flags; /* flags of the window's tokens, [S + 1] */
    struct passed_over passed;
    struct hasher { /* hash over each source's ids */
        uint64_t hash;
        size_t count;
        int32_t group[4096]; /* ids that are not hashed yet */
    } hasher;
};

/* Make data without a file. */
int data_create(int seq_len, struct data **out);
/* Allocate a batch and the buffers that its tokens are read into. */
int data_allocate(struct data *d, int batch_size);

#endif
