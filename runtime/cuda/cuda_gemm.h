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

/* An algorithm and its workspace. Some algorithms distribute tiles through a counter in the workspace, which an
 * extra kernel clears before each run; without a workspace each block has its own tile. So each algorithm is listed
 * with and without one. */
struct nj_lt_choice {
    struct nj_lt_algo algo;
    uint64_t workspace_bytes;
};
_Static_assert(sizeof(struct nj_lt_choice) == NJ_GEMM_CHOICE_BYTES, "what a table holds");

struct nj_lt_product {
    void *desc, *a, *b, *c; /* descriptor, and layouts of the operands in the library's order */
    struct nj_lt_choice choice;
    float alpha, beta;
    int scaled; /* 1: both operands have scales */
};

/* Pointers that one run needs besides the product. */
struct nj_lt_place {
    void *c;
    const void *a, *b; /* operands in the library's order */
    const void *a_scale, *b_scale;
    void *workspace;
    void *stream;
};

/* Turn a status of the library into a code with a sentence. */
int nj_lt_check(nj_context *ctx, int status, const char *what);
/* Return the library's type of the elements of an operand or result. */
int nj_lt_type(const nj_context *ctx, enum nj_dtype dtype);
/* Create the descriptor and the layouts in a product that is all zero. Call nj_lt_product_free() afterwards, even on
 * failure; it accepts NULL. */
int nj_lt_product_make(nj_context *ctx, const struct nj_gemm *g, struct nj_lt_product *p);
void nj_lt_product_free(nj_context *ctx, struct nj_lt_product *p);
int nj_lt_set_scales(nj_context *ctx, const struct nj_lt_product *p, const struct nj_lt_place *at);
/* Enqueue a product. NJ_E_GEMM: the library refuses it. */
int nj_lt_enqueue(nj_context *ctx, const struct nj_lt_product *p, const struct nj_lt_place *at);

/* Operands of one shape, and their known product. */
struct nj_lt_known {
    const struct nj_gemm *g;
    const struct nj_lt_place *at;
    int row_period, column_period;
    int row_step;                /* steps in the pattern from one row of the result to the next */
    size_t element_bytes, bytes; /* bytes of an element and of the whole result */
    /* Known product in the result's type, [row_period][2 * column_period]. */
    unsigned char *expected;
    char where[96]; /* description of a wrong element, with the right value */
};

/* How much of a result is compared: QUICK for a candidate, THOROUGH for the one that will be taken. */
enum nj_lt_depth { NJ_LT_QUICK, NJ_LT_THOROUGH };
/* Pieces of a result that are compared: `count` pieces of `width` bytes, `pitch` bytes apart, and one more at its
 * end. The result has `bytes` bytes, with rows `row` bytes apart. */
struct nj_lt_sample {
    size_t width, pitch, count;
};
struct nj_lt_sample nj_lt_sample_of(size_t bytes, size_t row, enum nj_lt_depth depth);

/* Write scales of one. */
int nj_lt_fill_scales(nj_context *ctx, const struct nj_gemm *g, const struct nj_lt_place *at,
                      size_t bytes);
/* Write the operands, whose sizes are in the library's order, and compute the expected product. Call
 * nj_lt_known_end() afterwards, even on failure. */
int nj_lt_known_begin(nj_context *ctx, const struct nj_gemm *g, const struct nj_lt_place *at,
                      const size_t operand_bytes[2], struct nj_lt_known *out);
void nj_lt_known_end(struct nj_lt_known *k);
/* Fill the result with values that a run must replace or add to. */
int nj_lt_known_clear(nj_context *ctx, const struct nj_lt_known *k);
/* Wait for the run, and compare. *wrong: an element differs, described in k->where. */
int nj_lt_known_compare(nj_context *ctx, struct nj_lt_known *k, enum nj_lt_depth depth, int *wrong);
/* Return whether a thorough comparison covers more than a quick one. */
int nj_lt_known_has_more(const struct nj_lt_known *k);

/* Choose an algorithm; fills p->choice and plan->choice. */
int nj_lt_choose(nj_context *ctx, struct nj_gemm_plan *plan, struct nj_lt_product *p);

#endif
