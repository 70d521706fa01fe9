/* SPDX-License-Identifier: Apache-2.0
 *
 * logits.h: from normed rows to logits.
 */
#ifndef NOJIT_TRAINER_LOGITS_H
#define NOJIT_TRAINER_LOGITS_H

#include "net/net.h"

/* y[rows, ld] = x[rows, C] head^T, the first `vocab` columns of it. quantised: room for as many rows of x as e4m3, of a
 * net that multiplies those. */
void net_logits(struct work *r, const struct net *n, const struct f8_matrix *quantised,
                const void *x, int rows, int vocab, int ld, void *y);

#endif
