/* SPDX-License-Identifier: Apache-2.0
 *
 * net.h: one transformer inside the engine: its sizes, and where its weights and gradients lie. The
 * teacher and the student are both a `net`; only the student has gradients.
 */
#ifndef NOJIT_TRAINER_NET_H
#define NOJIT_TRAINER_NET_H

#include "net/linear.h"
#include "net/params.h"

#include <stddef.h>

/* What backward computes again instead of reading what forward kept. */
enum recompute {
    RECOMPUTE_NONE,
    RECOMPUTE_MLP,  /* the gate and up product */
    RECOMPUTE_BLOCK /* all of a layer but its input */
};

struct lora;
struct quant_matrix;
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
    char *w;                    /* device, parameters as T */
    float *grad;                /* device, float32; NULL: these weights have no gradients */
    float *inv_freq;            /* device, [D/2] */
    const struct lora *lora;    /* NULL: no adapters */
    struct quant_matrix *quant; /* matrices that stay quantised (quant.h); NULL: none do */
    char *expanded;             /* device: scratch that one of them is expanded into */
    struct f8_matrix *f8; /* [layers * PRODUCTS + 1] matrices of each layer, then the head; NULL:
                              * all of them are T, in w */
    enum nj_f8_scales f8_scales; /* that the device's GEMMs take */
    bool f8_gemm[PRODUCTS]; /* of a student: those with FP8 operands in training (student_f8.h) */
    bool f8_head;           /* the logits, too */
    struct f8_refusals *f8_refused; /* NULL: one that is refused is an error */
    char f8_names[96]; /* where they are, "in each of the student's layers: gate_up down" */
    struct teacher_shard *shard; /* NULL: all layers are here */
};

size_t dtype_bytes(enum nj_dtype T);
void *net_weight(const struct net *n, int64_t first); /* NULL for -1 */
int net_qkv(const struct model_config *c);            /* (H + 2K) D */

/* Rows and columns of a layer's matrix, for so many rows of x. */
struct linear product_shape(const struct net *n, int rows, enum product which);
/* The matrices that a GEMM reads, numbered: layer * PRODUCTS + product, then the head. That of a tensor, or -1. */
int net_matrix(const struct net *n, const struct tensor_spec *s);
int net_head(const struct net *n);
/* Where it is noted that GEMMs with this matrix are refused, for struct linear. */
bool *net_f8_refused(const struct net *n, enum product which);
/* Return what lines and receipts call a product of a layer: "gate_up". */
const char *product_name(enum product which);
/* Columns of the widest x. */
int product_widest_input(const struct model_config *c);

#endif
