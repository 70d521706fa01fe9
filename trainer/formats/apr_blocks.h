/* SPDX-License-Identifier: Apache-2.0
 *
 * apr_blocks.h: the quantized types that only APR has.
 */
#ifndef NOJIT_TRAINER_APR_BLOCKS_H
#define NOJIT_TRAINER_APR_BLOCKS_H

#include "formats/tensors.h"

enum apr_blocks {
    APR_NONE, /* a type of ggml's, or an unquantized one */
    APR_Q4,   /* blocks of 32 elements across all rows: a float16 scale, then two numbers per byte,
             * the first in the low bits; (number - 8) * scale */
    APR_Q8,   /* one float scale, then a signed byte per element: number * scale */
};

uint64_t apr_blocks_bytes(enum apr_blocks kind, uint64_t elements);
/* Turn t, whose data are such blocks, into a tensor of a type that has the same numbers: Q4_0 if
 * rows are whole blocks, Q8_0 if they are and float16 holds the scale; else F32. */
void apr_blocks_pack(enum apr_blocks kind, struct packed *p, struct tensor *t);

#endif
