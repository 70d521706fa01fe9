/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher_check.h: what --teacher-dtype changes in the teacher's distribution.
 */
#ifndef NOJIT_TRAINER_TEACHER_CHECK_H
#define NOJIT_TRAINER_TEACHER_CHECK_H

#include "run/run.h"

/* Measure the effect on the first batches, and print it in a line; returns 0 also if memory does not suffice. Call
 * it before the engine is opened, while most memory is free. */
int run_check_teacher(struct run *r);

#endif
