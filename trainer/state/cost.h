/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.h: the operations and bytes of a training step, counted from shapes.
 */
#ifndef NOJIT_TRAINER_COST_H
#define NOJIT_TRAINER_COST_H

#include "state/plan.h"

struct net;

/* Operations of one optimizer step: the student's, forward and backward, and the teacher's, forward; those of FP8
 * GEMMs apart. */
struct step_flops {
    double student, student_fp8, teacher, teacher_fp8;
    double attention; /* part of student and teacher that multiplies no weights */
};

/* Count the operations of an optimizer step of all ranks; `help.c` states the formula. teacher: NULL without one.
 * fp8_head: the gradients of the student's LM head are FP8 GEMMs. */
struct step_flops step_flops_count(const struct net *student, const struct net *teacher,
                                   const struct train_options *o, bool fp8_head);
/* Count the work of a model that runs forward over `sequences` sequences, in batches, without its LM head. */
struct step_work forward_work_count(const struct model_config *c, const struct train_options *o,
                                    double sequences);
/* Count the work of one rank in a training step; all 0 if nothing is trained. batches: number of micro-batches of a
 * pass of the teacher. */
struct step_work step_work_count(const struct net *student, const struct net *teacher, int batches,
                                 const struct train_options *o, bool fp8_head);

#endif
