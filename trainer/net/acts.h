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

/* Of one GEMM of a student that trains with FP8 operands; its rows of x are those of struct acts. */
struct f8_operands {
    struct f8_matrix dy, dgu; /* rows of a gradient; of that of gate and up */
    struct f8_matrix w;
    struct f8_matrix xt, dyt, wt; /* columns of x, of a gradient, of w */
    float *top; /* largest scales of rows that become columns: as student_f8_top() has them */
};

/* Scratch and what is kept of a forward pass. Only ACTS_TRAIN keeps a copy a layer, of what is not
 * computed again; otherwise every layer uses the same memory. With ACTS_DECODE each row is the next one of a
 * sequence in the cache. */
enum acts_mode { ACTS_INFER, ACTS_TRAIN, ACTS_DECODE };
struct acts {
    enum acts_mode mode;
    int B, S;
    const struct cache *cache; /* that keys and values go to; NULL: none */
    int chunks;                /* ACTS_DECODE: of keys that attention goes through */
    float *chunk_sums;         /* ACTS_DECODE: of their sums, where there is more than one */
    /* The residual stream, [N, C]: before the norm of attention, in each of the layers, and before
     * the final norm (layers + 1); before the norm of the MLP (layers). */
    struct carve_series s1, s2;
    struct carve_series rstd1, rstd2; /* [N] each: 1 / root mean square of the rows of s1 and s2 */
    struct carve_series
        qkv; /* [N, (H + 2K) D] after rotation; in a decoder without qk_norm before it */
    struct carve_series raw;     /* before both; only ACTS_TRAIN with qk_norm: else in qkv */
    struct carve_series rstd_qk; /* [N, H + K] of the heads of q and k */
    struct carve_series o;       /* [N, H D] what attention puts out */
    struct carve_series lse;     /* [B, H, S] log of the sum of exponentials of its scores */
    struct carve_series gu;      /* [N, 2 I] gate and up; backward leaves their gradient here */
    /* Scratch of one layer. */
    size_t
        scratch_bytes; /* ACTS_TRAIN: from y on, in which nothing is from the last norm to the backward pass */
    char *y;            /* [N, C] normed rows */
    char *branch;       /* [N, C] what is added to the stream; backward: gradient of normed rows */
    char *act;          /* [N, I] gated activation of gu */
    struct f8_matrix x; /* f8: what the next product reads, in place of y and act */
    struct f8_operands f8;
    struct lora_acts lora; /* of adapters */
    /* Scratch of backward. */
    char *dx;     /* [N, C] gradient of the residual stream */
    char *dact;   /* [N, I] of act */
    char *dqkv;   /* [N, (H + 2K) D] of qkv */
    char *dout;   /* [N, H D] of o */
    float *delta; /* [B, H, S] sum of o times its gradient */
    float *part;  /* partial sums of gains and biases */
};

/* Partial sums a reduction over rows is split into: fixed, so that results do not depend on the
 * machine. */
enum { PARTIAL_SUMS = 264 };
int partial_sums(int rows);

/* Carves acts for n out of m. Those of ACTS_DECODE are those of ACTS_INFER, and what decoder.c adds. */
void acts_carve(const struct net *n, int B, int S, enum acts_mode mode, struct carve *m,
                struct acts *out);

/* What one layer reads and writes of it. */
struct layer_acts {
    char *s1, *s2, *qkv, *raw, *o, *gu;
    char *s1_next; /* input of the next layer, or of the final norm */
    float *rstd1, *rstd2, *rstd_qk, *lse, *rstd1_next;
};
int acts_rows(const struct acts *a);
struct layer_acts acts_layer(const struct net *n, const struct acts *a, int layer);

#endif
