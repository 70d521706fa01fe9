/* SPDX-License-Identifier: Apache-2.0
 *
 * acts.h: the memory that one pass through a transformer needs.
 */
#ifndef NOJIT_TRAINER_ACTS_H
#define NOJIT_TRAINER_ACTS_H

#include "net/carve.h"
#include "net/lora.h"
#include "net/net.h"
#include "net/rows.h"

#include <stddef.h>
#include <stdint.h>

struct cache;

/* Operands of one FP8 GEMM of a student in training; the rows of x are in struct acts. */
struct f8_operands {
    struct f8_matrix dy, dgu; /* rows of a gradient, of the gradient of gate and up */
    struct f8_matrix w;
    struct f8_matrix xt, dyt, wt; /* columns of x, of a gradient, of w */
    float *top; /* largest scales of the rows that become columns (student_f8_top()) */
};

/* Modes of a pass. Only ACTS_TRAIN keeps a copy per layer of what is not recomputed; otherwise all layers use the
 * same memory. In ACTS_DECODE each row is the next one of a sequence in the cache. */
enum acts_mode { ACTS_INFER, ACTS_TRAIN, ACTS_DECODE };
struct acts {
    enum acts_mode mode;
    int B, S;
    const struct cache *cache; /* cache that receives keys and values; NULL: none */
    /* ACTS_DECODE: number of chunks of keys that attention goes through. */
    int chunks;
    /* ACTS_DECODE: partial sums of the chunks, where there are several. */
    float *chunk_sums;
    /* Residual stream, [N, C]: s1 before the attention norm of each layer and before the final norm (layers + 1);
     * s2 before the norm of the MLP (layers). */
    struct carve_series s1, s2;
    struct carve_series rstd1, rstd2; /* [N] each: 1 / root mean square of the rows of s1 and s2 */
    struct carve_series
        qkv; /* [N, (H + 2K) D] q, k, v after rotation; in a decoder without qk_norm before it */
    /* Q, k, v before norm and rotation; apart from qkv only in ACTS_TRAIN with qk_norm. */
    struct carve_series raw;
    struct carve_series rstd_qk; /* [N, H + K] 1 / root mean square of the heads of q and k */
    struct carve_series o;       /* [N, H D] output of attention */
    struct carve_series lse;     /* [B, H, S] log of the sum of exponentials of the scores */
    /* [N, 2 I] gate and up; the backward pass leaves their gradient here. */
    struct carve_series gu;
    /* Scratch of one layer. */
    char *y; /* [N, C] normed rows */
    /* [N, C] branch to be added to the stream; backward: gradient of normed rows. */
    char *branch;
    char *act;          /* [N, I] gated activation of gu */
    struct f8_matrix x; /* FP8: operand of the next product, in place of y and act */
    struct f8_operands f8;
    struct lora_acts lora; /* scratch of the adapters */
    /* Scratch of backward. */
    char *dx;     /* [N, C] gradient of the residual stream */
    char *dact;   /* [N, I] gradient of act */
    char *dqkv;   /* [N, (H + 2K) D] gradient of qkv */
    char *dout;   /* [N, H D] gradient of o */
    float *delta; /* [B, H, S] sum of o times its gradient */
    float *part;  /* partial sums of the gradients of gains and biases */
};

/* Number of partial sums that a reduction over rows is split into: fixed, so that results do not depend on the
 * machine. */
enum { PARTIAL_SUMS = 264 };
int partial_sums(int rows);

/* Carve the two parts of the activations of n out of m: _kept is what the backward pass reads of the forward pass,
 * _scratch the scratch of one layer, which is free between two layers. ACTS_DECODE has the arrays of ACTS_INFER and
 * those that decoder.c adds. */
void acts_carve_kept(const struct net *n, int B, int S, enum acts_mode mode, struct carve *m,
                     struct acts *out);
void acts_carve_scratch(const struct net *n, struct carve *m, struct acts *out);
void acts_carve(const struct net *n, int B, int S, enum acts_mode mode, struct carve *m,
                struct acts *out);

/* Arrays that one layer reads and writes. */
struct layer_acts {
    char *s1, *s2, *qkv, *raw, *o, *gu;
    char *s1_next; /* input of the next layer, or of the final norm */
    float *rstd1, *rstd2, *rstd_qk, *lse, *rstd1_next;
};
int acts_rows(const struct acts *a);
struct layer_acts acts_layer(const struct net *n, const struct acts *a, int layer);

#endif
