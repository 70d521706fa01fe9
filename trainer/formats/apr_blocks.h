/* SPDX-License-Identifier: Apache-2.0
 *
 * apr_blocks.h: the quantised types that are APR's own.
 */
#ifndef NOJIT_TRAINER_APR_BLOCKS_H
#define NOJIT_TRAINER_APR_BLOCKS_H

#include "formats/tensors.h"

enum apr_blocks {
    APR_NONE, /* a type of ggml's, or no blocks */
    APR_Q4, /* 32 elements, of all rows in a line: a float16, then two numbers a byte, the first in the low bits;
                 (number - 8) * scale */
    APR_Q8, /* a float, then a signed byte per element: number * scale */
};

uint64_t apr_blocks_bytes(enum apr_blocks kind, uint64_t elements);
/* t, whose data are such blocks, becomes a tensor of a type that has their numbers: Q4_0 where rows are whole blocks,
 * Q8_0 where they are and float16 holds the scale; else F32. */
void apr_blocks_pack(enum apr_blocks kind, struct packed *p, struct tensor *t);

#endif
