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

/* Places the parameters of such a net. */
int f8_layout(struct net *n);
void f8_free(struct net *n);
/* Says which matrices stay T, by n->f8_refused. NJ_E_UNSUPPORTED if all do. */
int f8_choose(struct net *n);
/* Whether GEMMs of these matrices, or with the head, are in FP8: of such a net, and not refused. */
bool f8_on(const struct net *n, enum product which);
bool f8_head_on(const struct net *n);
/* Elements of the matrices that stay T. */
int64_t f8_plain_weights(const struct net *n);
/* The matrices of a layer; then the head. Nothing of a net that is not such a one. */
void f8_carve_layer(const struct net *n, int layer, struct carve *m);
void f8_carve_head(const struct net *n, struct carve *m);
/* Columns of logits that its head makes of a vocabulary; the last ones mean nothing. */
int f8_logits(int vocab);
/* F8_MULTIPLE, or what else GEMMs of the device want. */
int f8_multiple(const struct net *n);
/* Room for a matrix, and for the largest of some, each with so many elements, rows and columns at most. */
struct f8_matrix f8_rows(const struct net *n, int rows, int columns, struct carve *m);
struct f8_matrix f8_room(const struct net *n, size_t elements, int rows, int columns,
                         struct carve *m);
/* Rows of x as e4m3. */
void f8_quantize(struct work *r, const struct net *n, const struct f8_matrix *to, const void *x,
                 int rows, int columns);

#endif
