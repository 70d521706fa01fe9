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
struct fp8_operands {
    struct fp8_matrix dy, dgu; /* rows of a gradient, of the gradient of gate and up */
    struct fp8_matrix w;
    struct fp8_matrix xt, dyt, wt; /* columns of x, of a gradient, of w */
    float *top; /* largest scales of the rows that become columns (student_fp8_top()) */
};

/* Scratch of a mixture of experts: N rows, E experts, J of them chosen for a row, I the rows of one expert's gate. A
 * place is that of a pair of a row and an expert among all pairs, sorted by expert. In a training pass the arrays from
 * `logits` to `gate_up` are those of the layer (experts_use_kept()). */
struct expert_acts {
    float *logits;      /* [N, E] output of the router */
    float *router_bias; /* [E] */
    int32_t *chosen;    /* [N, J] */
    float *weight;      /* [N, J] */
    int32_t *first;     /* [E + 1] first place of each expert, and the number of pairs */
    int32_t *row;       /* [N J] row of the pair at a place */
    int32_t *place;     /* [N, J] */
    char *gate_up;      /* [N J, 2 I] by place */
    char *act;          /* [N J, I] */
    char *output;       /* [N J, C] */
    /* Backward: gradients of logits and weights. */
    char *dlogits;  /* [N, E], rows of a multiple of 8 columns */
    float *dweight; /* [N, J] */
    /* The loss that balances experts, if the net has one: partial sums of a layer; sums of all layers; gradients of the
     * probabilities; its sum over micro-batches and the step state, which the engine sets. */
    float *share_part; /* [PARTIAL_SUMS, 2 E] */
    float *shares;     /* [2 E] probabilities, and how often each expert was chosen */
    float *dprob;      /* [E] */
    float *loss;
    const float *state;
};

/* Scratch of a gated short convolution of X channels, and of its backward pass. */
struct conv_acts {
    char *y;       /* [N, X] output */
    char *dy;      /* [N, X] its gradient */
    char *dthirds; /* [N, 3 X] gradients of gates and input */
};

/* Scratch of the gated delta rule, of H value heads of D elements and X channels of its convolution, and of its
 * backward pass. Chunks are those of base/delta.h, of all sequences. */
struct delta_acts {
    char *qkv;             /* [N, X] output of the convolution: queries, keys, values */
    char *o;               /* [N, H D] output, then normed and gated */
    float *gates, *logs;   /* factors and logarithms of each chunk, from delta_solve */
    char *solve, *scores;  /* [chunks H, 64, 64] */
    char *states;          /* [chunks H, D, D] state before each chunk */
    char *updates;         /* [N, H D] */
    char *dstates;         /* [chunks H, D, D] */
    char *dr, *dout;       /* [N, H D] */
    char *dqkv;            /* [N, X] */
    char *dinput, *dsteps; /* gradients of the products */
    char *dx;              /* [N, C] gradient of the normed rows by the steps */
    float *log_part,
        *step_part; /* [chunks, H] partial sums of the gradients of A_log and dt_bias */
};

/* Modes of a pass. Only ACTS_TRAIN keeps a copy per layer of what is not recomputed; otherwise all layers use the
 * same memory. In ACTS_DECODE each row is the next one of a sequence in the cache. */
enum acts_mode { ACTS_INFER, ACTS_TRAIN, ACTS_DECODE };
/* Largest number of arrays that a block computes for the backward pass. */
enum { BLOCK_ARRAYS_MOST = 6 };
struct acts {
    enum acts_mode mode;
    int B, S;
    const struct cache *cache; /* cache that receives keys and values; NULL: none */
    /* ACTS_DECODE: number of chunks of keys that attention goes through. */
    int chunks;
    /* ACTS_DECODE: partial sums of the chunks, where there are several. */
    float *chunk_sums;
    /* Residual stream, [N, C]: inputs of the layers and of the final norm (layers + 1), and inputs of the other blocks
     * of the layers; 1 / root mean square of their rows, [N]. */
    struct carve_series input, inner;
    struct carve_series input_rstd, inner_rstd;
    /* Outputs of blocks with a norm after them, [N, C], before that norm; 1 / root mean square of their rows, [N]. */
    struct carve_series output, output_rstd;
    /* Arrays that blocks compute for the backward pass (block_ops), by kind of layer. If they are not kept, all layers
     * share those of the first kind. */
    struct carve_series kept[BLOCK_KINDS][BLOCK_ARRAYS_MOST][LAYER_KINDS_MOST];
    /* Scratch of one layer. */
    char *y; /* [N, C] normed rows */
    /* [N, C] branch to be added to the stream; backward: gradient of normed rows. */
    char *branch;
    char *act; /* [N, I] gated activation of gate and up */
    struct expert_acts experts;
    struct conv_acts conv;
    struct delta_acts rule;
    /* Rows of heads as products have them, where attention has another layout, or gated ones; or their gradients. */
    char *heads;
    struct fp8_matrix x; /* FP8: operand of the next product, in place of y and act */
    struct fp8_operands f8;
    struct lora_acts lora; /* scratch of the adapters */
    /* Scratch of backward. */
    char *dx;     /* [N, C] gradient of the residual stream */
    char *dact;   /* [N, I] gradient of act, then act itself, computed again */
    char *dqkv;   /* [N, (H + 2K) D] gradient of qkv */
    char *dout;   /* [N, H D] gradient of o */
    char *second; /* [N, C] gradient of the rows that a gate reads, too */
    float *delta; /* [B, H, S] sum of o times its gradient */
    float *part;  /* partial sums of the gradients of gains and biases */
};

/* Number of partial sums that a reduction over rows is split into: fixed, so that results do not depend on the
 * machine. */
enum { PARTIAL_SUMS = 264 };
static inline int partial_sums(int rows)
{
    return rows < PARTIAL_SUMS ? rows : PARTIAL_SUMS;
}

static inline int acts_rows(const struct acts *a)
{
    return a->B * a->S;
}

/* Carve the two parts of the activations of n out of m: _kept is what the backward pass reads of the forward pass,
 * _scratch the scratch of one layer, which is free between two layers. ACTS_DECODE has the arrays of ACTS_INFER and
 * those that decoder.c adds. */
void acts_carve_kept(const struct net *n, int B, int S, enum acts_mode mode, struct carve *m,
                     struct acts *out);
void acts_carve_scratch(const struct net *n, struct carve *m, struct acts *out);
void acts_carve(const struct net *n, int B, int S, enum acts_mode mode, struct carve *m,
                struct acts *out);

/* Arrays that one block reads and writes. */
struct block_acts {
    void *x, *next; /* its input, and that of the next block or of the final norm */
    float *rstd, *next_rstd;
    /* Its output, a->branch or what the norm after it reads, and for the latter 1 / root mean square of its rows. */
    void *output;
    float *output_rstd;
    void *kept[BLOCK_ARRAYS_MOST]; /* NULL: the block has none */
};
struct block_acts acts_block(const struct net *n, const struct acts *a, int layer, int block);

#endif
