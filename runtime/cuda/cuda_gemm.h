/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_gemm.h: what the files that make GEMMs share, each of which calls those above it:
 *
 *   cuda_product.c       descriptors of the library, and a product enqueued
 *   cuda_gemm_check.c    operands whose product is known, and whether it came out
 *   cuda_gemm_choose.c   which algorithm a shape takes
 *   cuda_gemm.c          what the backend offers
 */
#ifndef NOJIT_CUDA_GEMM_H
#define NOJIT_CUDA_GEMM_H

#include "backend.h"

/* With a workspace some algorithms hand out tiles by a counter in it, which a kernel ahead of each run clears; they may
 * have none, and then each block has its own. So they are listed twice. */
struct nj_lt_choice {
    struct nj_lt_algo algo;
    uint64_t workspace_bytes;
};
_Static_assert(sizeof(struct nj_lt_choice) == NJ_GEMM_CHOICE_BYTES, "what a table holds");

struct nj_lt_product {
    void *desc, *a, *b, *c; /* a, b, c: layouts as the library counts operands */
    struct nj_lt_choice choice;
    float alpha, beta;
    int scaled; /* both operands have scales */
};

/* What one run needs besides the product. */
struct nj_lt_place {
    void *c;
    const void *a, *b; /* as the library counts operands */
    const void *a_scale, *b_scale;
    void *workspace;
    void *stream;
};

/* A status of the library as a code with a sentence. */
int nj_lt_check(nj_context *ctx, int status, const char *what);
/* The library's type of elements of an operand or of the result. */
int nj_lt_type(const nj_context *ctx, enum nj_dtype dtype);
/* Makes descriptor and layouts of a product that is all zero. nj_lt_product_free() comes after it, whether it fails or
 * not, and takes NULL, too. */
int nj_lt_product_make(nj_context *ctx, const struct nj_gemm *g, struct nj_lt_product *p);
void nj_lt_product_free(nj_context *ctx, struct nj_lt_product *p);
int nj_lt_set_scales(nj_context *ctx, const struct nj_lt_product *p, const struct nj_lt_place *at);
/* NJ_E_GEMM: the library refuses. */
int nj_lt_enqueue(nj_context *ctx, const struct nj_lt_product *p, const struct nj_lt_place *at);

/* One shape's operands and what their product is. */
struct nj_lt_known {
    const struct nj_gemm *g;
    const struct nj_lt_place *at;
    int row_period, column_period;
    int row_step;                /* in the pattern, from one row of the result to the next */
    size_t element_bytes, bytes; /* of the result */
    unsigned char *expected;     /* [row_period][2 * column_period], as the result has them */
    char where[96];              /* an element that was wrong, and what it should be */
};

/* How much of a result is looked at: of one among many, and of the one that will be taken. */
enum nj_lt_depth { NJ_LT_QUICK, NJ_LT_THOROUGH };
/* Pieces of a result of so many bytes, rows `row` bytes apart: `count` of `width` bytes, `pitch` bytes apart. Another
 * one is its end. */
struct nj_lt_sample {
    size_t width, pitch, count;
};
struct nj_lt_sample nj_lt_sample_of(size_t bytes, size_t row, enum nj_lt_depth depth);

/* Writes scales of one. */
int nj_lt_fill_scales(nj_context *ctx, const struct nj_gemm *g, const struct nj_lt_place *at,
                      size_t bytes);
/* Writes the operands, of so many bytes as the library counts them, and computes what to expect. nj_lt_known_end()
 * comes after it, whether it fails or not. */
int nj_lt_known_begin(nj_context *ctx, const struct nj_gemm *g, const struct nj_lt_place *at,
                      const size_t operand_bytes[2], struct nj_lt_known *out);
void nj_lt_known_end(struct nj_lt_known *k);
/* Writes to the result what a run must replace, or add to. */
int nj_lt_known_clear(nj_context *ctx, const struct nj_lt_known *k);
/* Waits for the run, and compares. *wrong: an element differs, k->where. */
int nj_lt_known_compare(nj_context *ctx, struct nj_lt_known *k, enum nj_lt_depth depth, int *wrong);
/* Whether a thorough look sees more than a quick one. */
int nj_lt_known_has_more(const struct nj_lt_known *k);

/* Fills p->choice and plan->choice. */
int nj_lt_choose(nj_context *ctx, struct nj_gemm_plan *plan, struct nj_lt_product *p);

#endif
