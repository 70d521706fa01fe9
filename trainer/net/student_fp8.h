/* SPDX-License-Identifier: Apache-2.0
 *
 * student_fp8.h: FP8 (E4M3) GEMMs of a student in training: forward, gradient of the input, gradient of the weights,
 * also of the LM head. Weights, their updates and everything between two GEMMs keep their types. Operands are
 * quantized for each GEMM by rows, with a scale each; for the gradient of weights, which sums over rows, by columns,
 * with one scale.
 */
#ifndef NOJIT_TRAINER_STUDENT_FP8_H
#define NOJIT_TRAINER_STUDENT_FP8_H

#include "net/acts.h"

/* Format of T whose GEMMs have FP8 operands in training passes: a decoder and its prompts have 16-bit operands. */
extern const struct matrix_format matrix_fp8_trained;
/* Choose the format of the matrices of n: FP8 GEMMs for those of at least `least` elements, in passes over `rows`
 * rows; least 0: for none. Return NJ_E_UNSUPPORTED if there are none, or they are not supported. */
int student_fp8_choose(struct net *n, int64_t least, int64_t rows);
/* Return the number of elements of the matrices with FP8 GEMMs in all layers, or of the LM head's. */
int64_t student_fp8_weights(const struct net *n);
int64_t student_fp8_head_weights(const struct net *n);
bool student_fp8_any(const struct net *n);
bool student_fp8_head(const struct net *n);
/* Carve the operands of one GEMM; nothing in them stays from the forward pass to the backward pass. */
void student_fp8_carve(const struct net *n, int rows, struct carve *m, struct acts *a);

/* Return where kernels of the backward pass keep the largest scale of the rows that they write of an operand of
 * this GEMM; all begin at zero. */
enum fp8_operand { FP8_X, FP8_DY, FP8_W, FP8_OPERANDS };
float *student_fp8_top(const struct fp8_operands *o, const struct matrix *m, enum fp8_operand of);
void student_fp8_begin_backward(struct work *r, const struct net *n, const struct acts *a);

/* The LM head, whose weight is quantized once for all chunks of rows. Logits have as many columns as it has rows;
 * the columns beyond the vocabulary are zero. */
struct fp8_head {
    struct fp8_matrix w, x;
    float *w_top, *x_top; /* largest scales of w and x */
    float *dy_scale;      /* scale of the gradient of the logits */
    /* Whether its gradients are FP8 GEMMs, too, and their operands, which lie in the memory of the teacher's
     * logits: columns of w, of x and of the gradient. */
    bool gradients;
    struct fp8_matrix wt, xt, dyt;
};
bool student_fp8_head_on(const struct net *n, const struct acts *a);
void student_fp8_head_carve(const struct net *n, int chunk, int ld, struct carve *m,
                            struct fp8_head *out);
/* Return whether the gradients of the head can be FP8 GEMMs; _carve_gradients() carves their operands, and then
 * they are. */
bool student_fp8_head_gradients_may(const struct net *n);
void student_fp8_head_carve_gradients(const struct net *n, int chunk, int ld, struct carve *m,
                                      struct fp8_head *out);
/* Add to fp8_names whether the gradients of the head are FP8 GEMMs. */
void student_fp8_head_name(struct net *n, const struct fp8_head *h);
void student_fp8_head_weight(struct work *r, const struct net *n, const struct fp8_head *h);
void student_fp8_head_logits(struct work *r, const struct net *n, const struct fp8_head *h, void *y,
                             const void *x);
/* Compute dx of the rows whose logits were computed last, and their part of the weight's gradient. dy: E5M2, in
 * rows `ld` bytes apart. */
void student_fp8_head_backward(struct work *r, const struct net *n, const struct fp8_head *h,
                               int vocab, void *dx, char *dy, int64_t ld, bool add);

#endif
