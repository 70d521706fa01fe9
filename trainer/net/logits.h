/* SPDX-License-Identifier: Apache-2.0
 *
 * logits.h: computes logits from normed rows.
 */
#ifndef NOJIT_TRAINER_LOGITS_H
#define NOJIT_TRAINER_LOGITS_H

#include "net/net.h"

/* Bound logits that a product has computed, if the net's are. */
void net_cap_logits(struct work *r, const struct net *n, int rows, int vocab, int ld, void *y);
/* Compute y[rows, ld] = x[rows, C] head^T, its first `vocab` columns, bounded. quantized: room for as many rows of x as
 * E4M3, for a net that multiplies those. */
void net_logits(struct work *r, const struct net *n, const struct fp8_matrix *quantized,
                const void *x, int rows, int vocab, int ld, void *y);

#endif
