/* SPDX-License-Identifier: Apache-2.0
 *
 * batch.h: a micro-batch on the host, as a source gives it. batch.def lists its arrays.
 */
#ifndef NOJIT_TRAINER_BATCH_H
#define NOJIT_TRAINER_BATCH_H

#include <stddef.h>
#include <stdint.h>

#define IGNORED (-100) /* target of a position that has no loss */

/* Runs that have an array of batch.def. */
enum array_use {
    USE_FORWARD = 1,  /* any run that computes a forward pass */
    USE_STEP = 2,     /* training and evaluation */
    USE_TEACHER = 4,  /* the teacher reads another context than the student */
    USE_ANSWERS = 8,  /* answers of the student are measured by themselves */
    USE_DECODER = 16, /* runs whose keys and values go to a cache */
    USE_BALANCE = 32  /* the student's experts are balanced */
};

/* A micro-batch of B x S positions, row-major. Arrays that the run does not use are NULL. */
struct batch {
    int B, S;
    int64_t valid; /* number of targets that are not IGNORED */
#define HOST(name, type, use, values, empty) type *name;
#define GIVEN_ROW(name, type, use) type *name;
#include "batch/batch.def"
    void *memory; /* memory of all arrays, one after the other in the order of batch.def */
    size_t bytes;
};

/* Allocate the arrays of these uses (enum array_use); their elements are 0. */
int batch_allocate(struct batch *out, int B, int S, unsigned uses);
/* Allocate the arrays anew for another number of rows. If memory runs out, the batch stays as it was. */
int batch_resize(struct batch *b, int B, int S, unsigned uses);
void batch_free(struct batch *b);
/* End a sequence of which `end` positions are filled. The rest is a document of its own without a target. */
void batch_pad_row(struct batch *b, int row, int end);
/* Let the teacher read in a sequence what the student reads. */
void batch_share_row(struct batch *b, int row);
/* Copy the arrays of a sequence that both batches have. */
void batch_copy_row(struct batch *to, int row, const struct batch *from, int from_row);
/* Count the targets of a sequence. */
int64_t batch_row_targets(const struct batch *b, int row);

#endif
