/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher_check.h: what --teacher-dtype changes in the teacher's distribution.
 */
#ifndef NOJIT_TRAINER_TEACHER_CHECK_H
#define NOJIT_TRAINER_TEACHER_CHECK_H

#include "run/run.h"

/* Measures it on the first batches, and says it in a line; 0 also where
 * memory does not suffice for it. Before the engine is opened, while there is the most. */
int run_check_teacher(struct run *r);

#endif
