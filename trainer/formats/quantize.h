/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize.h: converts rows of float32 to blocks of a tensor type. The bytes are those of ggml's
 * reference quantizers (quantize_row_*_ref, without an importance matrix), on any machine and
 * with any number of threads.
 */
#ifndef NOJIT_TRAINER_QUANTIZE_H
#define NOJIT_TRAINER_QUANTIZE_H

#include "base/tensor_type.h"

#include <stdbool.h>
#include <stdint.h>

/* Return whether the type is F32, BF16, F16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K. */
bool quantize_supports(enum nj_tensor_type type);

/* Quantize rows into blocks, which have tensor_type_bytes(type, rows * columns) bytes. Return 0;
 * NJ_E_ARG if the type is not supported or columns are not whole blocks; NJ_E_FORMAT if a value
 * is NaN, infinite or so large that a stored number (a scale in float16) would be infinite. The
 * caller, who knows the tensor's name, writes the sentence; blocks must not be used then. */
int quantize_rows(enum nj_tensor_type type, const float *x, int64_t rows, int64_t columns,
                  void *blocks);

#endif
