/* SPDX-License-Identifier: Apache-2.0
 *
 * acts.c: the memory that one pass through a transformer needs.
 */
#include "net/acts.h"

#include "base/checked.h"
#include "net/f8.h"

int partial_sums(int rows)
{
    return rows < PARTIAL_SUMS ? rows : PARTIAL_SUMS;
}

static size_t part_bytes(const struct model_config *c, int rows)
{
    int widest = net_qkv(c) > c->hidden_size ? net_qkv(c) : c->hidden_size;
    return size_product((size_t)partial_sums(rows), (size_t)widest, sizeof(float));
}

static void carve_backward(const struct net *n, size_t N, struct carve *m, struct acts *a)
{
    const struct model_config *c = &n->c;
    size_t e = dtype_bytes(n->T), heads = (size_t)c->heads;
    a->dx = carve_take(m, size_product(N, (size_t)c->hidden_size, e));
    /* without adapters nothing reads the activation after its gradient is written */
    a->dact = net_layer_matrix(n, 0, PRODUCT_DOWN)->adapters > 0
                  ? carve_take(m, size_product(N, (size_t)c->intermediate_size, e))
                  : a->act;
    a->dqkv = carve_take(m, size_product(N, (size_t)net_qkv(c), e));
    a->dout = carve_take(m, size_product(N, heads, (size_t)c->head_dim, e));
    a->delta = carve_take(m, size_product(N, heads, sizeof(float)));
    /* Two halves: the gains of queries and of keys are reduced by one kernel. */
    a->part = carve_take(m, part_bytes(c, (int)N));
}

void acts_carve_kept(const struct net *n, int B, int S, enum acts_mode mode, struct carve *m,
                     struct acts *out)
{
    const struct model_config *c = &n->c;
    size_t e = dtype_bytes(n->T), N = size_mul((size_t)B, (size_t)S);
    size_t layers = mode == ACTS_TRAIN ? (size_t)c->layers : 1;
    size_t kept = n->recompute == RECOMPUTE_BLOCK ? 1 : layers;
    size_t kept_gu = n->recompute != RECOMPUTE_NONE ? 1 : layers;
    size_t C = (size_t)c->hidden_size, I = (size_t)c->intermediate_size, QKV = (size_t)net_qkv(c);
    /* Inputs of the layers and of the final norm. */
    size_t inputs = mode == ACTS_TRAIN ? size_add(layers, 1) : 1;
    size_t heads = (size_t)c->heads, normed = size_add(heads, (size_t)c->kv_heads);

    *out = (struct acts){.mode = mode, .B = B, .S = S};
    const size_t norm = size_mul(N, sizeof(float)), stream = size_product(N, C, e);
    carve_take_series(m, inputs, stream, &out->s1);
    carve_take_series(m, inputs, norm, &out->rstd1);
    /* If nothing is kept, one buffer is the residual stream of the whole pass. */
    out->s2 = out->s1;
    out->rstd2 = out->rstd1;
    if (mode == ACTS_TRAIN) {
        carve_take_series(m, kept, stream, &out->s2);
        carve_take_series(m, kept, norm, &out->rstd2);
    }
    carve_take_series(m, kept, size_product(N, QKV, e), &out->qkv);
    out->raw = out->qkv; /* if nothing is kept, rows are normed and rotated in place */
    if (c->qk_norm && mode == ACTS_TRAIN)
        carve_take_series(m, kept, size_product(N, QKV, e), &out->raw);
    if (c->qk_norm)
        carve_take_series(m, kept, size_product(N, normed, sizeof(float)), &out->rstd_qk);
    carve_take_series(m, kept, size_product(N, heads, size_mul((size_t)c->head_dim, e)), &out->o);
    carve_take_series(m, kept, size_product(N, heads, sizeof(float)), &out->lse);
    carve_take_series(m, kept_gu, size_product(N, 2, size_mul(I, e)), &out->gu);
}

void acts_carve_scratch(const struct net *n, struct carve *m, struct acts *out)
{
    const struct model_config *c = &n->c;
    const bool train = out->mode == ACTS_TRAIN;
    const size_t e = dtype_bytes(n->T), N = size_mul((size_t)out->B, (size_t)out->S);
    const size_t stream = size_product(N, (size_t)c->hidden_size, e);
    out->y = carve_take(m, stream);
    out->branch = carve_take(m, stream);
    if (f8_any(n))
        out->x = f8_rows(n->f8_scales, (int)N, product_widest_input(c), m);
    if (!net_layer_matrix(n, 0, PRODUCT_DOWN)->format->e4m3)
        out->act = carve_take(m, size_product(N, (size_t)c->intermediate_size, e));
    if (train)
        carve_backward(n, N, m, out);
    lora_carve(n, (int)N, train, m, &out->lora);
}

void acts_carve(const struct net *n, int B, int S, enum acts_mode mode, struct carve *m,
                struct acts *out)
{
    acts_carve_kept(n, B, S, mode, m, out);
    acts_carve_scratch(n, m, out);
}

int acts_rows(const struct acts *a)
{
    return a->B * a->S;
}

struct layer_acts acts_layer(const struct net *n, const struct acts *a, int layer)
{
    const size_t input = a->mode == ACTS_TRAIN ? (size_t)layer : 0;
    const size_t next = a->mode == ACTS_TRAIN ? input + 1 : 0;
    const size_t l = n->recompute == RECOMPUTE_BLOCK ? 0 : input;
    const size_t gu = n->recompute != RECOMPUTE_NONE ? 0 : input;
    return (struct layer_acts){
        .s1 = carve_item(&a->s1, input),
        .s1_next = carve_item(&a->s1, next),
        .s2 = carve_item(&a->s2, l),
        .qkv = carve_item(&a->qkv, l),
        .raw = carve_item(&a->raw, l),
        .o = carve_item(&a->o, l),
        .gu = carve_item(&a->gu, gu),
        .rstd1 = carve_item(&a->rstd1, input),
        .rstd1_next = carve_item(&a->rstd1, next),
        .rstd2 = carve_item(&a->rstd2, l),
        .lse = carve_item(&a->lse, l),
        .rstd_qk = n->c.qk_norm ? carve_item(&a->rstd_qk, l) : NULL,
    };
}
