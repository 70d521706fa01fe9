/* SPDX-License-Identifier: Apache-2.0
 *
 * packed_experts.h: experts of a model that is only read, which stay as quantized as its files have them.
 */
#ifndef NOJIT_TRAINER_PACKED_EXPERTS_H
#define NOJIT_TRAINER_PACKED_EXPERTS_H

#include "nojit.h"

/* Find the types of a model's tensors for train_options.student_types, which the caller frees: quantized experts keep
 * theirs, and other weights become T, since a step reads them in full. NULL: nothing stays quantized, because no expert
 * is, or because the device would have to expand all experts in each step. */
int packed_experts(const nj_context *ctx, const char *model, enum nj_dtype T, unsigned char **out);

#endif
