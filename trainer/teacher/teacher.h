/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher.h: a model that only runs forward.
 */
#ifndef NOJIT_TRAINER_TEACHER_H
#define NOJIT_TRAINER_TEACHER_H

#include "net/acts.h"

/* It has no gradients, no moments, no master weights. */
struct teacher {
    struct net net;
    struct acts acts;   /* of a micro-batch */
    struct acts pass;   /* of several, where `batches` is more than 1; its y outlives the pass */
    struct rows rows;   /* of those: ids, pos, doc_start */
    int batches;        /* micro-batches of a step that it runs over at once */
    bool apart;         /* it runs before a micro-step, which lacks its forward pass */
    char *hidden;       /* [chunks chunk, C] */
    struct f8_matrix x; /* f8: those of a chunk */
};

/* Leaves the normed rows of a micro-batch in t->acts.y. */
void teacher_forward(struct work *r, struct teacher *t, const struct rows *rows);
/* Leaves those of t->batches micro-batches in t->pass.y. */
void teacher_pass(struct work *r, struct teacher *t);
/* From there to t->acts.y: those of the one that is `batch` of them. */
void teacher_rows(struct work *r, struct teacher *t, int batch);
/* Keeps those in t->acts.y that have a target, in t->hidden. */
void teacher_keep(struct work *r, struct teacher *t, const struct rows *rows, int padded);
/* Logits of `rows` of them from `first` on. */
void teacher_logits(struct work *r, const struct teacher *t, int first, int rows, int vocab, int ld,
                    void *logits);

#endif
