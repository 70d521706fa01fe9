/* SPDX-License-Identifier: Apache-2.0
 *
 * quant.h: a net whose matrices stay quantized on the device.
 */
#ifndef NOJIT_TRAINER_QUANT_H
#define NOJIT_TRAINER_QUANT_H

#include "net/net.h"

/* Format of GGUF blocks and other quantized types, expanded into scratch before each GEMM. */
extern const struct matrix_format matrix_quant;

/* Place the parameters of a model with quantized matrices. types: types of tensor_specs(), as in struct
 * train_options; NULL: none is quantized, but each matrix has memory of its own. */
int quant_layout(struct net *n, const unsigned char *types);
/* Return the bytes of the scratch that matrices are expanded into. */
size_t quant_scratch_bytes(const struct net *n);
void quant_connect(struct net *n, char *scratch);
/* Find the part of a matrix that a row is in; *row becomes the row of that part. */
int quant_part_of(const struct matrix *m, int *row);
/* Return the bytes of `rows` rows of a part. */
size_t quant_rows_bytes(const struct matrix *m, int part, int64_t rows);

/* Return the blocks of rows that lie one after another at an aligned address, and their type; NULL: some rows are of
 * another type, or are not quantized. */
const int32_t *quant_blocks(const struct matrix *m, int first, int rows, enum nj_tensor_type *type);

/* Multiple of rows from which matrices are expanded, so that blocks are aligned; number of groups of the experts of a
 * layer that are expanded one after the other, each of which still fills a GPU. */
enum { QUANT_ROWS = 64, EXPERT_GROUPS = 4 };

#endif
