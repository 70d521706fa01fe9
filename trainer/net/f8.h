/* SPDX-License-Identifier: Apache-2.0
 *
 * f8.h: a net whose matrices are E4M3.
 */
#ifndef NOJIT_TRAINER_F8_H
#define NOJIT_TRAINER_F8_H

#include "net/carve.h"
#include "net/net.h"

enum {
    F8_MULTIPLE = 16, /* multiple of rows and columns that a GEMM takes */
    /* Most columns that the kernels which quantize an activation take. */
    F8_WIDEST_ACTIVATION = 30720
};

/* Formats with a byte per element and a scale per row, and with elements of T, where the device refuses the FP8
 * GEMM. */
extern const struct matrix_format matrix_f8, matrix_f8_refused;
/* Place the parameters of a model whose matrices are E4M3. */
int f8_layout(struct net *n);
/* Choose the format of each matrix, by the GEMMs that are refused. Return NJ_E_UNSUPPORTED if none is FP8. */
int f8_choose(struct net *n);
/* Return whether some matrix is FP8. */
bool f8_any(const struct net *n);
/* Return the elements of matrices of a format. */
int64_t f8_elements(const struct net *n, const struct matrix_format *format);
/* Return the columns of logits that the head computes for a vocabulary; the last ones have no meaning. */
int f8_logits(int vocab);
/* Return the multiple of rows and columns that GEMMs of the device want: F8_MULTIPLE or a larger one. */
int f8_multiple(enum nj_f8_scales scales);
/* Carve room for one matrix (f8_rows), or for the largest of several, each with at most so many elements, rows and
 * columns (f8_room). */
struct f8_matrix f8_rows(enum nj_f8_scales scales, int rows, int columns, struct carve *m);
struct f8_matrix f8_room(enum nj_f8_scales scales, size_t elements, int rows, int columns,
                         struct carve *m);

#endif
