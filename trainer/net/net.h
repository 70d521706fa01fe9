/* SPDX-License-Identifier: Apache-2.0
 *
 * net.h: one transformer inside the engine: its sizes, and where its weights and gradients lie. The
 * teacher and the student are both a `net`; only the student has gradients.
 */
#ifndef NOJIT_TRAINER_NET_H
#define NOJIT_TRAINER_NET_H

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
struct f8_refusals {
    bool product[PRODUCTS], logits, gradients; /* gradients: of the LM head */
};

struct net {
    struct model_config c;
    enum nj_dtype T;
    enum recompute recompute;
    struct params p;
    struct matrix *matrix; /* [matrices]: PRODUCTS of each layer, the head, the embedding */
    int matrices;
    struct matrix *head, *embedding; /* two elements of `matrix`, or one if they are tied */
    char *w;                         /* parameters as T, on the device */
    float *grad;                     /* gradients in float32, on the device; NULL: not trained */
    float *inv_freq;                 /* [D/2] rotation frequencies, on the device */
    const struct lora *lora;         /* adapters; NULL: none */
    enum nj_f8_scales f8_scales;     /* form of scales that the device's GEMMs take */
    struct f8_refusals *f8_refused;  /* refused FP8 GEMMs; NULL: a refusal is an error */
    char f8_names[96]; /* FP8 GEMMs in words, "in each of the student's layers: gate_up down" */
    struct teacher_shard *shard; /* state of teacher_shard.c, which alone reads it, or NULL */
};

void *net_weight(const struct net *n, int64_t first); /* returns NULL for -1 */
int net_qkv(const struct model_config *c);            /* returns (H + 2K) D */

/* Place the parameters of n, whose configuration is set, and list its matrices. */
int net_place(struct net *n, enum params_matrices here);
void net_free(struct net *n);
/* Set the addresses of the parameters, and of the gradients of a model that is trained whole. */
void net_connect(struct net *n, char *w, float *grad);
/* Return whether all matrices are plain and without adapters. */
bool net_is_plain(const struct net *n);
struct matrix *net_layer_matrix(const struct net *n, int layer, enum product which);
/* Return the matrix that a tensor is rows of, from *row on, or NULL. A tied embedding is rows of the head. */
struct matrix *net_matrix_of(const struct net *n, size_t spec, int *row);
/* Carve the memory of those matrices of a layer, or of head and embedding, that lie in no arena. */
void net_carve_layer(const struct net *n, int layer, struct carve *m);
void net_carve_ends(const struct net *n, struct carve *m);
/* Return the name of a layer's product in lines and receipts: "gate_up". */
const char *product_name(enum product which);
/* Return the number of columns of the widest x. */
int product_widest_input(const struct model_config *c);

#endif
