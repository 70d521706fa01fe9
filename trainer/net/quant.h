/* SPDX-License-Identifier: Apache-2.0
 *
 * quant.h: a net whose matrices stay quantised on the device.
 */
#ifndef NOJIT_TRAINER_QUANT_H
#define NOJIT_TRAINER_QUANT_H

#include "base/tensor_type.h"
#include "net/carve.h"
#include "net/net.h"

/* Rows of one type; those of a type that is not quantised are T. */
struct quant_part {
    enum nj_tensor_type type;
    int rows;
    char *data; /* device */
};

/* Parts lie below each other: q, k and v or gate and up, whose types may differ. */
struct quant_matrix {
    struct quant_part part[3];
    int parts, rows, columns;
};

/* Places the parameters of such a net: types of tensor_specs(), as in struct train_options; NULL: none is
 * quantised, but each matrix has a place of its own. */
int quant_layout(struct net *n, const unsigned char *types);
void quant_free(struct net *n);
/* The matrices of a layer; then head and embedding. Nothing of a net that is not such a one. */
void quant_carve_layer(const struct net *n, int layer, struct carve *m);
void quant_carve_ends(const struct net *n, struct carve *m);
/* Of the scratch that they are expanded into. */
size_t quant_scratch_bytes(const struct net *n);
/* Where a tensor lies: its matrix, the part, and its first row there; NULL: it is no matrix. */
struct quant_matrix *quant_place(const struct net *n, size_t spec, int *part, int *row);
/* Bytes of so many rows of a part. */
size_t quant_rows_bytes(const struct net *n, const struct quant_matrix *m, int part, int64_t rows);

/* Rows of a matrix as T: expanded into the scratch, which the next call overwrites, or where they lie if they
 * are T. first: a multiple of QUANT_ROWS, so that blocks are aligned. */
enum { QUANT_ROWS = 64 };
const void *quant_expand(struct work *r, const struct net *n, int matrix, int first, int rows);
/* Rows of the head that the scratch has room for. */
int quant_head_rows(const struct net *n);
/* Rows of the embedding by ids. */
void quant_embed(struct work *r, const struct net *n, void *dst, const int32_t *ids, int rows);

#endif
