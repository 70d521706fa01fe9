/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h: one transformer inside the engine: where its parameters lie, what it keeps of a forward
 * pass, and how work is issued. The teacher and the student are both a `net`; only the student has
 * gradients.
 */
#ifndef NOJIT_TRAINER_MODEL_H
#define NOJIT_TRAINER_MODEL_H

#include "model/config.h"
#include "model/tensor_names.h"
#include "nojit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- params.c: parameters in a flat arena ---- */

/* First element of each fused parameter of a layer; -1: the family has none. */
struct layer_params {
    int64_t wqkv; /* [(H + 2K) D, C]: q, k, v */
    int64_t wo;   /* [C, H D] */
    int64_t wgu;  /* [2 I, C]: gate, up */
    int64_t wd;   /* [C, I] */
    int64_t ln1, ln2, bqkv, qnorm, knorm;
};

/* Every arena (weights, master, moments, gradients) has this layout: matrices first, they decay;
 * then norms and biases. Each fused parameter starts at a multiple of 64 elements; what lies
 * between stays zero. */
struct params {
    struct tensor_spec *spec; /* Hugging Face tensors, canonical order */
    int64_t *first; /* of each spec, its first element: a row range of a fused parameter */
    size_t specs;
    bool f8; /* matrices but the embedding lie elsewhere, as e4m3: their first is -1 */
    struct layer_params *layer;
    int64_t embed, head, norm; /* head == embed if tied */
    int64_t count, decayed;    /* elements in all; of those that decay */
};

int params_layout(const struct model_config *c, bool f8, struct params *out);
void params_free(struct params *p);
/* The matrices that a layer multiplies with. */
enum product { PRODUCT_QKV, PRODUCT_O, PRODUCT_GATE_UP, PRODUCT_DOWN, PRODUCTS };
/* First element of one. */
int64_t params_product(const struct params *p, int layer, enum product which);
/* Elements of the matrices of all layers, which lie together from the first layer's PRODUCT_QKV on: the
 * embedding comes before them, a head of its own after them. There is no gap between them (heads have 64 or
 * 128 elements): what lies in a gap of gradients would count in their norm. */
int64_t params_matrices(const struct params *p);
/* Where the next parameter may start. */
int64_t params_align(int64_t element);

/* ---- issuing work ---- */

/* Where work goes. The first error sticks and later work is skipped, so that model code reads as
 * equations. With `prepare` nothing is launched; matrix products are prepared instead, by the code
 * that will run them. */
struct work {
    nj_context *ctx;
    nj_stream *s;
    int rc;
    bool prepare;
    bool add; /* gradients of weights are added to what is there, not written over it */
};

#define OP(run, call)                                                                              \
    do {                                                                                           \
        if ((run)->rc == 0 && !(run)->prepare)                                                     \
            (run)->rc = (call);                                                                    \
    } while (0)

/* Products with a weight w[out, in]. */
struct linear {
    enum nj_dtype T;
    int rows, out, in;
    int64_t ldy; /* elements from one row of y or dy to the next */
    bool add;    /* y and dx are added to */
    float scale; /* of the product; 0 counts as 1 */
};
void linear_fwd(struct work *r, const struct linear *l, void *y, const void *x, const void *w);
/* x and w as e4m3, with a scale for each row. */
struct f8_matrix {
    int rows, columns;
    char *q;
    float *scale;
};
void linear_f8(struct work *r, const struct linear *l, void *y, const struct f8_matrix *x,
               const struct f8_matrix *w);
void linear_dx(struct work *r, const struct linear *l, void *dx, const void *dy, const void *w);
/* dw (float32) = dy^T x, or += */
void linear_dw(struct work *r, const struct linear *l, float *dw, const void *dy, const void *x,
               bool add);

/* ---- one network ---- */

/* What backward computes again instead of reading what forward kept. */
enum recompute {
    RECOMPUTE_NONE,
    RECOMPUTE_MLP,  /* the gate and up product */
    RECOMPUTE_BLOCK /* all of a layer but its input */
};

struct net {
    struct model_config c;
    enum nj_dtype T;
    enum recompute recompute;
    struct params p;
    char *w;                 /* device, parameters as T */
    float *grad;             /* device, float32; NULL: these weights have no gradients */
    float *inv_freq;         /* device, [D/2] */
    const struct lora *lora; /* NULL: no adapters */
    struct f8_matrix *f8;    /* [layers * PRODUCTS + 1] matrices of each layer, then the head; NULL:
                              * all of them are T, in w */
};

size_t dtype_bytes(enum nj_dtype T);
void *net_weight(const struct net *n, int64_t first); /* NULL for -1 */
int net_qkv(const struct model_config *c);            /* (H + 2K) D */

/* Device arrays that come with a micro-batch of N = B S rows (micro_batch.c fills them). */
struct rows {
    int32_t *ids, *pos, *doc_start; /* [N] */
    int32_t *order, *runs;          /* [N], [N + 1]: as embed_bwd wants them */
    int32_t *valid;                 /* [chunks * chunk] row of each valid target, then -1 */
    int32_t *inverse;               /* [N] where a row went in valid, or -1 */
    int32_t *target;                /* [chunks * chunk] target of each valid row, then -1 */
    int32_t *key;                   /* [2] random bits of the micro-batch */
};

/* Scratch and what is kept of a forward pass. Only ACTS_TRAIN keeps a copy a layer, of what is not
 * computed again; otherwise every layer uses the same memory. */
enum acts_mode { ACTS_INFER, ACTS_TRAIN, ACTS_DECODE };
struct acts {
    enum acts_mode mode;
    int B, S;
    int decode_pos;       /* ACTS_DECODE: the row of the cache that is written */
    char *s1, *s2;        /* [layers + 1] and [layers] residual stream before each norm, [N, C] */
    float *rstd1, *rstd2; /* [N] each */
    char *qkv;      /* [N, (H + 2K) D] after rotation; ACTS_DECODE: a cache of S rows a layer */
    char *raw;      /* before norm and rotation; only ACTS_TRAIN with qk_norm: else in qkv */
    float *rstd_qk; /* [N, H + K] */
    char *o;        /* [N, H D] */
    float *lse;     /* [B, H, S] */
    char *gu;       /* [N, 2 I]; backward leaves its gradient here */
    char *y, *branch, *act; /* scratch: normed rows, branch output, SwiGLU output */
    char *dx, *dact, *dqkv,
        *dout; /* scratch of backward; the gradient of normed rows uses branch */
    float *delta, *part;
    struct f8_matrix x; /* f8: what the next product reads */
    char *low, *dlow;   /* scratch of an adapter: [N, r] and its gradient */
    char *dropped;      /* and its input after dropout */
    const int32_t *key; /* of the masks of this pass; NULL: nothing drops */
};

/* Memory is carved from one arena. With base NULL it is only counted, by checked.h: SIZE_MAX is more than
 * can be addressed. */
enum { CARVE_ALIGN = 256 };
struct carve {
    char *base;
    size_t used;
};
void *carve_take(struct carve *c, size_t bytes);
/* Partial sums a reduction over rows is split into: fixed, so that results do not depend on the
 * machine. */
enum { PARTIAL_SUMS = 264, SUMSQ_PARTS = 1056 };
int partial_sums(int rows);

/* Carves acts for n out of m. With ACTS_DECODE one row is computed and S rows are cached. */
void acts_carve(const struct net *n, int B, int S, enum acts_mode mode, struct carve *m,
                struct acts *out);

/* What one layer reads and writes of it. */
struct layer_acts {
    char *s1, *s2, *qkv, *raw, *o, *gu;
    char *s1_next; /* input of the next layer, or of the final norm */
    char *cache;   /* ACTS_DECODE: first row of the layer's cache */
    float *rstd1, *rstd2, *rstd_qk, *lse, *rstd1_next;
};
int acts_rows(const struct acts *a);
struct layer_acts acts_layer(const struct net *n, const struct acts *a, int layer);

/* product.c: a product of a layer with its adapters. y = x W^T */
void product_fwd(struct work *r, const struct net *n, const struct acts *a, int layer,
                 enum product which, void *y, const void *x);
/* Rows and columns of its matrix, for so many rows of x. */
struct linear product_shape(const struct net *n, int rows, enum product which);
/* Gradient of W, if it is trained: dy^T x. */
void product_dw(struct work *r, const struct net *n, const struct acts *a, int layer,
                enum product which, const void *dy, const void *x);
/* dx = dy W; also the gradients of adapters, which alone read x. */
void product_dx(struct work *r, const struct net *n, const struct acts *a, int layer,
                enum product which, void *dx, const void *dy, const void *x);
/* Columns of the widest x. */
int product_widest_input(const struct model_config *c);

/* f8.c: places the parameters of a net whose matrices are to be e4m3. */
int f8_layout(struct net *n);
void f8_free(struct net *n);
void f8_carve(const struct net *n, struct carve *m);
/* Columns of logits that its head makes of a vocabulary; the last ones mean nothing. */
int f8_logits(int vocab);
/* Room for a matrix. */
struct f8_matrix f8_rows(int rows, int columns, struct carve *m);
/* Rows of x as e4m3; nothing to do for a net that is not. */
void f8_quantize(struct work *r, const struct net *n, const struct f8_matrix *to, const void *x,
                 int rows, int columns);

/* forward.c: what backward needs of a layer and forward did not keep; a->branch is overwritten. */
void forward_again(struct work *r, const struct net *n, struct acts *a, const struct rows *rows,
                   int layer);
/* From ids to normed hidden rows in a->y. */
void forward(struct work *r, const struct net *n, struct acts *a, const struct rows *rows);
/* backward.c: a->branch holds the gradient of the normed hidden rows. Gradients of gains,
 * biases and embedding are added to what is there, those of matrices are as r->add says. */
void backward(struct work *r, const struct net *n, struct acts *a, const struct rows *rows);

#endif
