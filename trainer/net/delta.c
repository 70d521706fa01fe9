/* SPDX-License-Identifier: Apache-2.0
 *
 * delta.c: the gated delta rule as a block: out(norm(o) * silu(z)), o = delta(silu(conv(q, k, v)), b, a), where q, k, v
 * and z are a product with the normed rows, and b and a another, always in T. The state of each value head is D x D
 * numbers; documents begin with none. The backward pass computes again what chunks of rows make of the products.
 */
#include "base/delta.h"
#include "base/checked.h"
#include "net/cache.h"
#include "net/convolution.h"
#include "net/layer_gemm.h"
#include "net/norm.h"
#include "net/step_product.h"
#include "nojit_ops.h"

/* [N, (H + 2K) D + H D] queries, keys, values and z; [N, 2H] b and a. */
enum { INPUT, STEPS, ARRAYS };
_Static_assert((int)ARRAYS <= (int)BLOCK_ARRAYS_MOST, "struct acts has no place for an array");

enum { SILU = 1 }; /* the activation behind the convolution */

/* ---- memory ---- */

/* Return the number of columns of values. */
static int64_t values(const struct block *b)
{
    return b->kind == BLOCK_DELTA ? (int64_t)b->heads * b->head_dim : 0;
}

static int64_t channels(const struct block *b)
{
    return b->kind == BLOCK_DELTA ? block_channels(b) : 0;
}

static int64_t input(const struct block *b)
{
    return channels(b) + values(b);
}

static int64_t heads(const struct block *b)
{
    return b->kind == BLOCK_DELTA ? b->heads : 0;
}

static int64_t state(const struct block *b)
{
    return values(b) * (b->kind == BLOCK_DELTA ? b->head_dim : 0);
}

static size_t array_bytes(const struct net *n, const struct block *b, size_t rows,
                          enum acts_mode mode, int array)
{
    const size_t columns = (size_t)(array == INPUT ? input(b) : 2 * heads(b));
    (void)mode;
    return size_product(rows, columns, dtype_bytes(n->T));
}

static int chunks(const struct acts *a)
{
    return (a->S + DELTA_CHUNK - 1) / DELTA_CHUNK;
}

/* Return the number of chunks of all sequences. */
static size_t all_chunks(const struct acts *a)
{
    return size_mul((size_t)a->B, (size_t)chunks(a));
}

static void carve(const struct net *n, size_t rows, struct carve *m, struct acts *a)
{
    struct delta_acts *d = &a->rule;
    const size_t T = dtype_bytes(n->T), H = net_most(n, heads);
    const size_t places = size_product(all_chunks(a), H, DELTA_CHUNK);
    if (H == 0)
        return;
    d->qkv = carve_take(m, size_product(rows, net_most(n, channels), T));
    d->o = carve_take(m, size_product(rows, net_most(n, values), T));
    d->gates = carve_take(m, size_product(places, DELTA_FACTORS, sizeof *d->gates));
    d->logs = carve_take(m, size_product(places, DELTA_LOGS, sizeof *d->logs));
    d->solve = carve_take(m, size_product(places, DELTA_CHUNK, T));
    d->scores = carve_take(m, size_product(places, DELTA_CHUNK, T));
}

static void carve_backward(const struct net *n, size_t rows, struct carve *m, struct acts *a)
{
    struct delta_acts *d = &a->rule;
    const size_t T = dtype_bytes(n->T), H = net_most(n, heads), all = all_chunks(a);
    const size_t columns = size_product(rows, net_most(n, values), T);
    if (H == 0)
        return;
    d->states = carve_take(m, size_product(all, net_most(n, state), T));
    d->dstates = carve_take(m, size_product(all, net_most(n, state), T));
    d->updates = carve_take(m, columns);
    d->dr = carve_take(m, columns);
    d->dout = carve_take(m, columns);
    d->dqkv = carve_take(m, size_product(rows, net_most(n, channels), T));
    d->dinput = carve_take(m, size_product(rows, net_most(n, input), T));
    d->dsteps = carve_take(m, size_product(rows, size_mul(2, H), T));
    /* without adapters nothing reads the normed rows after this gradient is written */
    d->dx = net_some(n, BLOCK_DELTA, DELTA_STEPS, matrix_has_adapters)
                ? carve_take(m, size_product(rows, (size_t)n->c.hidden_size, T))
                : a->y;
    d->log_part = carve_take(m, size_product(all, H, sizeof *d->log_part));
    d->step_part = carve_take(m, size_product(all, H, sizeof *d->step_part));
}

/* ---- forward ---- */

/* Return what lies this many columns behind the beginning of rows of T. */
static char *behind(const struct block_pass *p, void *rows, int64_t columns)
{
    return (char *)rows + (size_t)columns * dtype_bytes(p->n->T);
}

/* Return a, which stands behind b in rows of both. */
static void *steps_of(const struct block_pass *p, void *rows)
{
    return behind(p, rows, p->b->heads);
}

static struct layer_cache cache_of(const struct block_pass *p)
{
    return cache_layer(p->n, p->a->cache, p->layer);
}

/* Return the convolution, which computes a->rule.qkv. */
static struct convolution convolution_of(const struct block_pass *p)
{
    return (struct convolution){.taps = ROLE_DELTA_TAPS,
                                .x = p->v.kept[INPUT],
                                .gate_in = NULL,
                                .gate_out = NULL,
                                .y = p->a->rule.qkv,
                                .channels = block_channels(p->b),
                                .ld = (int)input(p->b),
                                .act = SILU};
}

static void solve(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    const struct block *b = p->b;
    OP(r, nj_delta_solve(r->s, p->n->T, b->head_dim,
                         &(struct nj_delta_solve){.gates = a->rule.gates,
                                                  .logs = a->rule.logs,
                                                  .solve = a->rule.solve,
                                                  .scores = a->rule.scores,
                                                  .qkv = a->rule.qkv,
                                                  .b = p->v.kept[STEPS],
                                                  .a = steps_of(p, p->v.kept[STEPS]),
                                                  .a_log = block_weight(p, ROLE_DELTA_LOG),
                                                  .dt_bias = block_weight(p, ROLE_DELTA_STEP),
                                                  .doc_start = p->rows->doc_start,
                                                  .B = a->B,
                                                  .S = a->S,
                                                  .H = b->heads,
                                                  .K = b->kv_heads,
                                                  .ld = 2 * b->heads}));
}

/* Compute a->rule.o; what the backward pass reads besides, if it is wanted; and of prompts their last states, which a
 * decoder continues from. */
static void pass(struct work *r, const struct block_pass *p, bool backward)
{
    const struct acts *a = p->a;
    const struct block *b = p->b;
    const struct convolution c = convolution_of(p);
    const bool stored = a->mode == ACTS_INFER && a->cache;
    convolution_fwd(r, p, &c);
    solve(r, p);
    OP(r, nj_delta_fwd(r->s, p->n->T, b->head_dim,
                       &(struct nj_delta_fwd){.o = a->rule.o,
                                              .states = backward ? a->rule.states : NULL,
                                              .updates = backward ? a->rule.updates : NULL,
                                              .state = stored ? cache_of(p).delta : NULL,
                                              .qkv = a->rule.qkv,
                                              .gates = a->rule.gates,
                                              .logs = a->rule.logs,
                                              .solve = a->rule.solve,
                                              .scores = a->rule.scores,
                                              .doc_start = p->rows->doc_start,
                                              .slot = stored ? p->rows->slot : NULL,
                                              .B = a->B,
                                              .S = a->S,
                                              .H = b->heads,
                                              .K = b->kv_heads,
                                              .G = stored ? a->cache->slots : 1}));
    if (stored)
        convolution_store(r, p, &c);
}

/* Compute a->rule.o for the next row of each sequence, from the states in the cache. */
static void step(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    const struct block *b = p->b;
    const struct convolution c = convolution_of(p);
    convolution_step(r, p, &c);
    OP(r, nj_delta_step(r->s, p->n->T, b->head_dim,
                        &(struct nj_delta_step){.o = a->rule.o,
                                                .state = cache_of(p).delta,
                                                .qkv = a->rule.qkv,
                                                .b = p->v.kept[STEPS],
                                                .a = steps_of(p, p->v.kept[STEPS]),
                                                .a_log = block_weight(p, ROLE_DELTA_LOG),
                                                .dt_bias = block_weight(p, ROLE_DELTA_STEP),
                                                .slot = p->rows->slot,
                                                .pos = p->rows->pos,
                                                .R = acts_rows(a),
                                                .H = b->heads,
                                                .K = b->kv_heads,
                                                .ld = 2 * b->heads,
                                                .G = a->cache->slots}));
}

static void compute_arrays(struct work *r, const struct block_pass *p)
{
    product_fwd(r, p->a, &p->matrix[DELTA_IN], p->v.kept[INPUT], block_rows(p));
    product_fwd(r, p->a, &p->matrix[DELTA_STEPS], p->v.kept[STEPS], block_rows(p));
}

/* Compute the normed and gated heads of a->rule.o. */
static void norm_fwd_gated(struct work *r, const struct block_pass *p, void *y)
{
    const struct block *b = p->b;
    OP(r, nj_gated_norm_fwd(
              r->s, p->n->T, b->head_dim,
              &(struct nj_gated_norm_fwd){.y = y,
                                          .o = p->a->rule.o,
                                          .z = behind(p, p->v.kept[INPUT], block_channels(b)),
                                          .w = block_weight(p, ROLE_DELTA_GAIN),
                                          .N = acts_rows(p->a),
                                          .H = b->heads,
                                          .ld = (int)input(b),
                                          .eps = p->n->c.rms_eps}));
}

static void forward(struct work *r, const struct block_pass *p)
{
    char *o = p->a->rule.o;
    /* 1. q, k, v and z; b and a */
    compute_arrays(r, p);
    /* 2. delta rule */
    if (p->a->mode == ACTS_DECODE)
        step(r, p);
    else
        pass(r, p, false);
    /* 3. norm and gate, in place */
    norm_fwd_gated(r, p, o);
    /* 4. output */
    product_fwd(r, p->a, &p->matrix[DELTA_OUT], p->v.output, o);
}

/* ---- backward ---- */

/* Compute the gradients of o, in place, and of z from that of the normed and gated heads, which replace o again. */
static void norm_bwd_gated(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    const struct block *b = p->b;
    const int N = acts_rows(a);
    OP(r, nj_gated_norm_bwd(
              r->s, p->n->T, b->head_dim,
              &(struct nj_gated_norm_bwd){.dout = a->rule.dout,
                                          .dz = behind(p, a->rule.dinput, block_channels(b)),
                                          .dw_part = a->part,
                                          .y = a->rule.o,
                                          .dy = a->rule.dout,
                                          .o = a->rule.o,
                                          .z = behind(p, p->v.kept[INPUT], block_channels(b)),
                                          .w = block_weight(p, ROLE_DELTA_GAIN),
                                          .N = N,
                                          .H = b->heads,
                                          .ld = (int)input(b),
                                          .P = partial_sums(N),
                                          .eps = p->n->c.rms_eps}));
    norm_add_columns(r, p->n, p->first[ROLE_DELTA_GAIN], a->part, N, b->head_dim);
}

/* Add sums of all chunks to the gradient of a parameter of the heads. */
static void add_of_chunks(struct work *r, const struct block_pass *p, enum tensor_role role,
                          const float *part)
{
    if (p->n->grad)
        OP(r, nj_colsum(r->s, NJ_F32,
                        &(struct nj_colsum){.dst = p->n->grad + p->first[role],
                                            .part = part,
                                            .P = (int)all_chunks(p->a),
                                            .C = p->b->heads}));
}

/* Compute the gradients of queries, keys, values, b and a from that of o. */
static void delta_bwd(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    const struct delta_acts *d = &a->rule;
    const struct block *b = p->b;
    OP(r, nj_delta_bwd_state(r->s, p->n->T, b->head_dim,
                             &(struct nj_delta_bwd_state){.dr = d->dr,
                                                          .dstates = d->dstates,
                                                          .dout = d->dout,
                                                          .qkv = d->qkv,
                                                          .gates = d->gates,
                                                          .solve = d->solve,
                                                          .scores = d->scores,
                                                          .B = a->B,
                                                          .S = a->S,
                                                          .H = b->heads,
                                                          .K = b->kv_heads}));
    OP(r, nj_delta_bwd(r->s, p->n->T, b->head_dim,
                       &(struct nj_delta_bwd){.dqkv = d->dqkv,
                                              .db = d->dsteps,
                                              .da = steps_of(p, d->dsteps),
                                              .da_log_part = d->log_part,
                                              .ddt_bias_part = d->step_part,
                                              .dout = d->dout,
                                              .qkv = d->qkv,
                                              .updates = d->updates,
                                              .states = d->states,
                                              .dr = d->dr,
                                              .dstates = d->dstates,
                                              .gates = d->gates,
                                              .logs = d->logs,
                                              .b = p->v.kept[STEPS],
                                              .a = steps_of(p, p->v.kept[STEPS]),
                                              .a_log = block_weight(p, ROLE_DELTA_LOG),
                                              .dt_bias = block_weight(p, ROLE_DELTA_STEP),
                                              .doc_start = p->rows->doc_start,
                                              .B = a->B,
                                              .S = a->S,
                                              .H = b->heads,
                                              .K = b->kv_heads,
                                              .ld = 2 * b->heads}));
    add_of_chunks(r, p, ROLE_DELTA_LOG, d->log_part);
    add_of_chunks(r, p, ROLE_DELTA_STEP, d->step_part);
}

/* Compute the gradient of the normed rows x in a->branch. */
static void products_bwd(struct work *r, const struct block_pass *p)
{
    struct acts *a = p->a;
    const struct matrix *in = &p->matrix[DELTA_IN], *steps = &p->matrix[DELTA_STEPS];
    const int64_t elements = (int64_t)acts_rows(a) * p->n->c.hidden_size;
    const void *x = block_rows(p);
    norm_again(r, p);
    product_gradient(r, a, in, a->rule.dinput);
    product_dw(r, a, in, a->rule.dinput, x);
    product_dx(r, a, in, a->branch, a->rule.dinput, x);
    product_gradient(r, a, steps, a->rule.dsteps);
    product_dw(r, a, steps, a->rule.dsteps, x);
    product_dx(r, a, steps, a->rule.dx, a->rule.dsteps, x);
    OP(r, nj_add(r->s, p->n->T,
                 &(struct nj_add){.y = a->branch, .a = a->branch, .b = a->rule.dx, .n = elements}));
}

static void backward(struct work *r, const struct block_pass *p)
{
    struct acts *a = p->a;
    const struct matrix *out = &p->matrix[DELTA_OUT];
    const struct convolution c = convolution_of(p);
    const void *dy = block_gradient(p);
    /* 1. what the chunks were */
    pass(r, p, true);
    /* 2. output, norm and gate; adapters read the normed heads before they replace o */
    if (matrix_has_adapters(out))
        norm_fwd_gated(r, p, a->rule.dr);
    product_gradient(r, a, out, dy);
    product_dx(r, a, out, a->rule.dout, dy, a->rule.dr);
    norm_bwd_gated(r, p);
    product_dw(r, a, out, dy, a->rule.o);
    /* 3. delta rule */
    delta_bwd(r, p);
    /* 4. convolution */
    convolution_bwd(
        r, p, &c,
        &(struct convolution_gradients){
            .dy = a->rule.dqkv, .dx = a->rule.dinput, .dgate_in = NULL, .dgate_out = NULL});
    /* 5. normed rows */
    products_bwd(r, p);
}

/* ---- a decoder's step of few rows ---- */

static void few_rows(struct work *r, const struct block_pass *p)
{
    step_normed_product(r, p, DELTA_IN, p->v.kept[INPUT], NULL);
    step_normed_product(r, p, DELTA_STEPS, p->v.kept[STEPS], NULL);
    step(r, p);
    norm_fwd_gated(r, p, p->a->rule.o);
    step_add_product(r, p, DELTA_OUT, p->a->rule.o);
}

const struct block_ops delta_ops = {
    .arrays = ARRAYS,
    .dropped = RECOMPUTE_BLOCK,
    .array_bytes = array_bytes,
    .carve = carve,
    .carve_backward = carve_backward,
    .forward = forward,
    .compute_arrays = compute_arrays,
    .backward = backward,
    .decoder_step = few_rows,
};
