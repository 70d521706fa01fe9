/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.h: products with weights.
 */
#ifndef NOJIT_TRAINER_LINEAR_H
#define NOJIT_TRAINER_LINEAR_H

#include "net/work.h"

#include <stdint.h>

/* Shape of products with a weight w[out, in]. */
struct linear {
    enum nj_dtype T;
    int rows, out, in;
    int64_t ldy;    /* elements from one row of y or dy to the next */
    bool add;       /* results are added to y and dx */
    bool wide;      /* linear_fwd: y is float32 */
    float scale;    /* factor of the product; 0 counts as 1 */
    bool one_scale; /* linear_fp8: each operand has one scale */
    bool x_e5m2;    /* linear_fp8: x is e5m2, not e4m3; with one_scale alone */
    int64_t ldx;    /* linear_fp8: bytes from one row of x to the next; 0 counts as `in` */
    bool *refused;  /* linear_fp8: set, instead of failing, if no algorithm computes it; or NULL */
};
void linear_fwd(struct work *r, const struct linear *l, void *y, const void *x, const void *w);
/* Operand x or w as E4M3, with a scale for each row, a power of two. wanted: room for the scales that the device's
 * GEMMs take instead (nj_f8_scales), which linear_fp8() fills: blocks, or one scale, to which q is then rounded for
 * good. NULL: GEMMs take scales of rows. */
struct fp8_matrix {
    int rows, columns;
    char *q;
    float *scale;
    void *wanted;
};
void linear_fp8(struct work *r, const struct linear *l, void *y, const struct fp8_matrix *x,
                const struct fp8_matrix *w);
void linear_dx(struct work *r, const struct linear *l, void *dx, const void *dy, const void *w);
/* Compute dw (float32) = dy^T x, or add it to dw. */
void linear_dw(struct work *r, const struct linear *l, float *dw, const void *dy, const void *x,
               bool add);

#endif
