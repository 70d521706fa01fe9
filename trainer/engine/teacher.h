/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher.h: a model that only runs forward.
 */
#ifndef NOJIT_TRAINER_TEACHER_H
#define NOJIT_TRAINER_TEACHER_H

#include "engine/acts.h"

/* It has no gradients, no moments, no master weights. */
struct teacher {
    struct net net;
    struct acts acts;
    char *hidden;       /* [chunks chunk, C] */
    struct f8_matrix x; /* f8: those of a chunk */
};

/* Leaves the normed rows that have a target in t->hidden. */
void teacher_forward(struct work *r, struct teacher *t, const struct rows *rows, int padded);
/* Logits of `rows` of them from `first` on. */
void teacher_logits(struct work *r, const struct teacher *t, int first, int rows, int vocab, int ld,
                    void *logits);

#endif
