/* SPDX-License-Identifier: Apache-2.0
 *
 * block_scales.h: scales of quantized blocks that are not finite. Bad importance matrices have left files with such
 * scales, which make every logit NaN; in MXFP4 one is a code of its own, of which kernels make a large number.
 */
#ifndef NOJIT_TRAINER_BLOCK_SCALES_H
#define NOJIT_TRAINER_BLOCK_SCALES_H

#include "base/tensor_type.h"

#include <stdbool.h>
#include <stddef.h>

/* Return whether the scales of blocks, and so all elements, are finite. */
bool block_scales_finite(enum nj_tensor_type type, const void *blocks, size_t bytes);

#endif
