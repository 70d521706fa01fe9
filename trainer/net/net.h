/* SPDX-License-Identifier: Apache-2.0
 *
 * net.h: one transformer inside the engine: its sizes, and where its weights and gradients lie. The
 * teacher and the student are both a `net`; only the student has gradients.
 */
#ifndef NOJIT_TRAINER_NET_H
#define NOJIT_TRAINER_NET_H

#include "net/block_matrix.h"
#include "net/matrix.h"
#include "net/params.h"

#include <stddef.h>

/* Parts of a layer that the backward pass recomputes instead of reading what the forward pass kept. */
enum recompute {
    RECOMPUTE_NONE,
    RECOMPUTE_MLP,  /* the gate and up product */
    RECOMPUTE_BLOCK /* all of a layer except its input */
};

struct lora;
struct teacher_shard;

/* GEMMs for which the device has no FP8 algorithm, found when they are prepared: they run in T. */
struct fp8_refusals {
    bool in_block[BLOCK_KINDS][BLOCK_MATRICES_MOST]; /* GEMMs of a matrix, in all layers */
    bool logits, gradients;                          /* gradients: of the LM head */
};

/* Counts of what comes before a layer. */
struct net_layer {
    int matrix;       /* number of matrices: that of its first one */
    int inner;        /* number of blocks behind the first one of their layer */
    int normed_after; /* number of blocks with a norm after them */
    int same_kind;    /* number of layers of its kind */
};

/* A tensor as rows of a matrix, by their numbers; matrix -1: it is not part of one. */
struct net_rows {
    int matrix, row;
};

struct net {
    struct model_config c;
    enum nj_dtype T;
    enum recompute recompute;
    float balance; /* factor of the gradient of the loss that balances experts; 0: there is none */
    struct params p;
    const struct params *trained; /* parameters that are trained: p, or its adapters'; NULL: none */
    struct net_layer *layer;      /* [layers + 1]; the last one counts all layers */
    struct matrix *matrix; /* [matrices]: those of each layer, block by block; head; embedding */
    int matrices;
    struct net_rows *rows_of;        /* [p.specs] rows of a matrix that each tensor fills */
    struct matrix *head, *embedding; /* two elements of `matrix`, or one if they are tied */
    char *w;                         /* parameters as T, on the device */
    float *grad;                     /* gradients in float32, on the device; NULL: not trained */
    float *inv_freq;                 /* tables (tables.h), frequencies first, on the device */
    int frequencies[ROPES_MOST],
        maps[ROPES_MOST];             /* first elements of the tables of each rotation */
    const struct lora *lora;          /* adapters, for lora.c and weights/ alone; NULL: none */
    enum nj_f8_scales f8_scales;      /* form of scales that the device's GEMMs take */
    struct fp8_refusals *fp8_refused; /* refused FP8 GEMMs; NULL: a refusal is an error */
    char fp8_names[96]; /* FP8 GEMMs in words, "in each of the student's layers: gate_up down" */
    struct teacher_shard *shard; /* state of teacher_shard.c, which alone reads it, or NULL */
};

void *net_weight(const struct net *n, int64_t first); /* returns NULL for -1 */

/* Place the parameters of n, whose configuration is set, and list its matrices. */
int net_place(struct net *n, enum params_matrices here);
void net_free(struct net *n);
/* Set the addresses of the parameters, and of their gradients unless they are frozen. */
void net_connect(struct net *n, char *w, float *grad);
/* Return the factor of the rows of the embedding. */
float net_embedding_scale(const struct net *n);
/* Return whether the net's own parameters are not trained. */
bool net_is_frozen(const struct net *n);
/* Return the matrices of a block, the block-th of its layer, in the order of block_matrices[]. */
struct matrix *net_block_matrices(const struct net *n, int layer, int block);
/* Return a matrix of the block of a kind, which the layer has. */
struct matrix *net_matrix(const struct net *n, int layer, enum block_kind kind, int which);
/* Return whether some layer has a block of that kind whose matrix `which` meets the condition. */
bool net_some(const struct net *n, enum block_kind kind, int which,
              bool (*condition)(const struct matrix *m));
/* Return the matrix that a tensor is rows of, from *row on, or NULL. A tied embedding is rows of the head. */
struct matrix *net_matrix_of(const struct net *n, size_t spec, int *row);
/* Carve the memory of those matrices of a layer, or of head and embedding, that lie in no arena. */
void net_carve_layer(const struct net *n, int layer, struct carve *m);
void net_carve_ends(const struct net *n, struct carve *m);
/* Return the largest size of a block. */
size_t net_most(const struct net *n, int64_t (*size)(const struct block *b));
/* Return the number of columns of the widest x. */
int net_widest_input(const struct net *n);

#endif
