/* SPDX-License-Identifier: Apache-2.0
 *
 * lora.h: low-rank adapters of a net whose own weights are frozen (Hu et al. 2021, arXiv:2106.09685): y = x W^T +
 * alpha / r dropout(x) A^T B^T. Adapters have their own arenas, laid out like those of a model, which replace the
 * model's arenas wherever weights are trained.
 */
#ifndef NOJIT_TRAINER_LORA_H
#define NOJIT_TRAINER_LORA_H

#include "model/lora_config.h"
#include "net/carve.h"
#include "net/net.h"

/* The adapter of one tensor, which may be some rows of a matrix. */
struct adapter {
    const struct lora *of;
    int64_t a, b;        /* first elements of A [r, in] and B [out, r]; a < 0: none */
    int in, out, column; /* input columns; output columns in the fused product, from `column` on */
    int mask;            /* number of its dropout masks */
    bool shares;         /* its A is that of queries, whose gradient is made before */
};

struct lora {
    struct lora_config o;
    struct params p;         /* A and B of each adapter, under PEFT's names */
    struct adapter *adapter; /* [layers * LORA_ADAPTERS] */
    char *w;                 /* weights as T, on the device */
    float *grad;             /* gradients in float32, on the device */
};

/* Scratch and keys that adapters need in a pass. */
struct lora_acts {
    char *low, *dlow;   /* scratch of one adapter: [N, r] and its gradient */
    char *dropped;      /* input of one adapter after dropout */
    const int32_t *key; /* random key of this pass's masks; NULL: no dropout */
};

/* Place the parameters of a net that is trained, and of its adapters, which are trained alone if it has any. */
int net_layout(struct net *n, const struct lora_config *o, const unsigned char *types,
               struct lora *adapters);
/* Return the adapter of a matrix of the base, or NULL. */
const struct adapter *lora_of(const struct lora *l, const struct tensor_spec *base);
void lora_free(struct lora *l);
/* Compute the initial weights, `count` elements of spec i from `first` on: A uniform within 1 / sqrt(in), as PEFT
 * draws it, B zero. */
void lora_fill(const struct lora *l, uint64_t seed, size_t i, int64_t first, int64_t count,
               float *out);

/* Add the adapters of a matrix to y. */
void lora_fwd(struct work *r, const struct matrix *m, const struct matmul *product,
              const struct lora_acts *a, void *y, const void *x);
/* Compute the gradients of a matrix's adapters, added up if product->add says so, and add to dx. */
void lora_bwd(struct work *r, const struct matrix *m, const struct matmul *product,
              const struct lora_acts *a, void *dx, const void *dy, const void *x);
/* Carve the scratch of the adapters for that many rows. */
void lora_carve(const struct net *n, int rows, bool train, struct carve *m, struct lora_acts *out);

#endif
