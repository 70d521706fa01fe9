/* SPDX-License-Identifier: Apache-2.0
 *
 * f8.h: a net whose matrices are e4m3.
 */
#ifndef NOJIT_TRAINER_F8_H
#define NOJIT_TRAINER_F8_H

#include "net/carve.h"
#include "net/net.h"

enum {
    F8_MULTIPLE = 16,            /* of rows and columns, for a GEMM */
    F8_WIDEST_ACTIVATION = 30720 /* columns that the kernels take which quantise one */
};

/* A byte an element and a scale a row; and T, where the device refuses the GEMM in FP8. */
extern const struct matrix_format matrix_f8, matrix_f8_refused;
/* Place the parameters of a model whose matrices are E4M3. */
int f8_layout(struct net *n);
/* Choose the format of each by what is refused. NJ_E_UNSUPPORTED if none is FP8. */
int f8_choose(struct net *n);
/* Return whether some matrix is FP8. */
bool f8_any(const struct net *n);
/* Return the elements of matrices of a format. */
int64_t f8_elements(const struct net *n, const struct matrix_format *format);
/* Columns of logits that its head makes of a vocabulary; the last ones mean nothing. */
int f8_logits(int vocab);
/* F8_MULTIPLE, or what else GEMMs of the device want. */
int f8_multiple(enum nj_f8_scales scales);
/* Room for a matrix, and for the largest of some, each with so many elements, rows and columns at most. */
struct f8_matrix f8_rows(enum nj_f8_scales scales, int rows, int columns, struct carve *m);
struct f8_matrix f8_room(enum nj_f8_scales scales, size_t elements, int rows, int columns,
                         struct carve *m);

#endif
