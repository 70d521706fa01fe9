/* SPDX-License-Identifier: Apache-2.0
 *
 * tables.h: tables of a net on the device, which follow from its configuration: frequencies of rotations, and maps of
 * elements between heads as products have them and as attention reads them. Those have block_padded_dim() elements, of
 * which i rotates with i + D/2.
 */
#ifndef NOJIT_TRAINER_TABLES_H
#define NOJIT_TRAINER_TABLES_H

#include "net/net.h"

/* Set where each table of a net begins. */
void tables_place(struct net *n);
/* Return the bytes of the tables, and write them for sequences of at most that many positions. */
size_t tables_bytes(const struct model_config *c);
void tables_fill(const struct model_config *c, int positions, void *to);
/* Return the frequencies of the heads of an attention block, on the device. */
const float *tables_frequencies(const struct net *n, const struct block *b);
/* Return the two maps of an attention block whose heads are mapped, on the device: to the heads of attention, an
 * element of a product's head or -1 for each; and back. */
const int32_t *tables_map_to(const struct net *n, const struct block *b);
const int32_t *tables_map_back(const struct net *n, const struct block *b);

#endif
