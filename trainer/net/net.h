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

/* What backward computes again instead of reading what forward kept. */
enum recompute {
    RECOMPUTE_NONE,
    RECOMPUTE_MLP,  /* the gate and up product */
    RECOMPUTE_BLOCK /* all of a layer but its input */
};

struct lora;
struct teacher_shard;

/* GEMMs that no FP8 algorithm of the device does, as comes out when they are prepared: they run in T. */
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
    struct matrix *head, *embedding; /* two of them; the same one where they are tied */
    char *w;                         /* device, parameters as T */
    float *grad;                     /* device, float32; NULL: these weights have no gradients */
    float *inv_freq;                 /* device, [D/2] */
    const struct lora *lora;         /* NULL: no adapters */
    enum nj_f8_scales f8_scales;     /* that the device's GEMMs take */
    struct f8_refusals *f8_refused;  /* NULL: one that is refused is an error */
    char f8_names[96]; /* where they are, "in each of the student's layers: gate_up down" */
    struct teacher_shard *shard; /* NULL: all layers are here */
};

void *net_weight(const struct net *n, int64_t first); /* NULL for -1 */
int net_qkv(const struct model_config *c);            /* (H + 2K) D */

/* Place the parameters of n, whose configuration is set, and list its matrices. */
int net_place(struct net *n, enum params_matrices here);
void net_free(struct net *n);
/* Say where the parameters lie, and the gradients of a model that is trained whole. */
void net_connect(struct net *n, char *w, float *grad);
/* Return whether all matrices are plain and without adapters. */
bool net_is_plain(const struct net *n);
struct matrix *net_layer_matrix(const struct net *n, int layer, enum product which);
/* Return the matrix that a tensor is rows of, from *row on, or NULL. A tied embedding is rows of the head. */
struct matrix *net_matrix_of(const struct net *n, size_t spec, int *row);
/* Take the memory of those matrices of a layer, or of head and embedding, that lie in no arena. */
void net_carve_layer(const struct net *n, int layer, struct carve *m);
void net_carve_ends(const struct net *n, struct carve *m);
/* Return what lines and receipts call a product of a layer: "gate_up". */
const char *product_name(enum product which);
/* Columns of the widest x. */
int product_widest_input(const struct model_config *c);

#endif
