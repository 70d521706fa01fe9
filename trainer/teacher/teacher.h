/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher.h: a model that only runs forward.
 */
#ifndef NOJIT_TRAINER_TEACHER_H
#define NOJIT_TRAINER_TEACHER_H

#include "net/acts.h"

/* A teacher has no gradients, no moments and no master weights. */
struct teacher {
    struct net net;
    struct acts acts; /* activations of a micro-batch */
    /* Activations of several, if `batches` is more than 1; its y outlives the pass. */
    struct acts pass;
    struct rows rows;   /* rows of those: ids, pos, doc_start */
    int batches;        /* number of micro-batches of a step in one pass */
    bool apart;         /* it runs before a micro-step, which lacks its forward pass */
    char *hidden;       /* [chunks chunk, C] normed rows with a target */
    struct f8_matrix x; /* FP8: those of a chunk */
};

/* Compute the normed rows of a micro-batch, in t->acts.y. */
void teacher_forward(struct work *r, struct teacher *t, const struct rows *rows);
/* Compute the normed rows of t->batches micro-batches, in t->pass.y. */
void teacher_pass(struct work *r, struct teacher *t);
/* Copy the rows of micro-batch `batch` of the pass from t->pass.y to t->acts.y. */
void teacher_rows(struct work *r, struct teacher *t, int batch);
/* Copy the rows in t->acts.y that have a target to t->hidden. */
void teacher_keep(struct work *r, struct teacher *t, const struct rows *rows, int padded);
/* Compute the logits of `rows` rows of t->hidden from `first` on. */
void teacher_logits(struct work *r, const struct teacher *t, int first, int rows, int vocab, int ld,
                    void *logits);

#endif
