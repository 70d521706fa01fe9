/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher_types.h: the types of a teacher whose weights stay quantized.
 */
#ifndef NOJIT_TRAINER_TEACHER_TYPES_H
#define NOJIT_TRAINER_TEACHER_TYPES_H

#include "run/run.h"

/* Choose how the teacher's weights are held, from its file and --teacher-dtype: options.teacher_types. */
int run_teacher_types(struct run *r);
/* Let the student's experts stay quantized, for a command that only reads the model: options.student_types. */
int run_student_types(struct run *r);
/* Make the types, in the order of tensor_specs(), that a value of --teacher-dtype asks for; the caller frees them. */
int teacher_types_as(const struct model_config *c, enum teacher_dtype as, unsigned char **out);
/* Make those of a model whose experts are MXFP4, and other weights not quantized. */
int teacher_types_mxfp4(const struct model_config *c, unsigned char **out);
/* Return "fp8", "q4_k", the quantized types of a file, "Q4_K, Q6_K", or `plain`. */
const char *run_teacher_dtype(const struct run *r, const char *plain);
/* Return whether --teacher-dtype changes the teacher's weights from those in its files. */
bool run_rounds_teacher(const struct run *r);

#endif
