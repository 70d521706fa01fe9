/* SPDX-License-Identifier: Apache-2.0
 *
 * f8.h: a net whose matrices are E4M3.
 */
#ifndef NOJIT_TRAINER_FP8_H
#define NOJIT_TRAINER_FP8_H

#include "net/carve.h"
#include "net/net.h"

enum {
    FP8_MULTIPLE = 16, /* multiple of rows and columns that a GEMM takes */
    /* Most columns that the kernels which quantize an activation take. */
    FP8_WIDEST_ACTIVATION = 30720
};

/* Formats with a byte per element and a scale per row, and with elements of T, where the device refuses the FP8
 * GEMM. */
extern const struct matrix_format matrix_fp8, matrix_fp8_refused;
/* Place the parameters of a model whose matrices are E4M3. */
int fp8_layout(struct net *n);
/* Choose the format of each matrix, by the GEMMs that are refused. Return NJ_E_UNSUPPORTED if none is FP8. */
int fp8_choose(struct net *n);
/* Return whether some matrix is FP8. */
bool fp8_any(const struct net *n);
/* Return the elements of matrices of a format. */
int64_t fp8_elements(const struct net *n, const struct matrix_format *format);
/* Return the columns of logits that the head computes for a vocabulary; the last ones have no meaning. */
int fp8_logits(int vocab);
/* Return the multiple of rows and columns that GEMMs of the device want: FP8_MULTIPLE or a larger one. */
int fp8_multiple(enum nj_f8_scales scales);
/* Carve room for one matrix (fp8_rows), or for the largest of several, each with at most so many elements, rows and
 * columns (fp8_room). */
struct fp8_matrix fp8_rows(enum nj_f8_scales scales, int rows, int columns, struct carve *m);
struct fp8_matrix fp8_room(enum nj_f8_scales scales, size_t elements, int rows, int columns,
                           struct carve *m);

#endif
