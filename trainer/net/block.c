/* SPDX-License-Identifier: Apache-2.0
 *
 * block.c: see block.h.
 */
#include "net/block.h"

const struct block_ops *const block_ops[BLOCK_KINDS] = {
    [BLOCK_ATTENTION] = &attention_ops, [BLOCK_GLU] = &glu_ops,     [BLOCK_EXPERTS] = &experts_ops,
    [BLOCK_CONV] = &conv_ops,           [BLOCK_DELTA] = &delta_ops,
};
