/* SPDX-License-Identifier: Apache-2.0
 *
 * logits.c: see logits.h.
 */
#include "net/logits.h"

void net_logits(struct work *r, const struct net *n, const struct fp8_matrix *x8, const void *x,
                int rows, int vocab, int ld, void *y)
{
    const struct matmul p = {.rows = rows, .out = vocab, .ldy = ld, .x8 = x8};
    matrix_fwd(r, n->head, &p, y, x);
}
