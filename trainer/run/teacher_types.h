/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher_types.h: the types of a teacher whose weights stay quantised.
 */
#ifndef NOJIT_TRAINER_TEACHER_TYPES_H
#define NOJIT_TRAINER_TEACHER_TYPES_H

#include "run/run.h"

/* How the teacher's weights are held, of its file and --teacher-dtype: options.teacher_types. */
int run_teacher_types(struct run *r);
/* Types of tensor_specs() that a value of --teacher-dtype asks for; free() them. */
int teacher_types_as(const struct model_config *c, enum teacher_dtype as, unsigned char **out);
/* "fp8", "q4_k", the quantised types of a file, "Q4_K, Q6_K", or `plain`. */
const char *run_teacher_dtype(const struct run *r, const char *plain);
/* Whether --teacher-dtype makes it another model than its files hold. */
bool run_rounds_teacher(const struct run *r);

#endif
