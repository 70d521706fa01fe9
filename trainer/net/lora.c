/* SPDX-License-Identifier: Apache-2.0
 *
 * lora.c: decides where adapters lie and what they compute. Each projection has its own A, B and mask; its columns of
 * a fused product are written in place, so the sum with the frozen product is rounded to T once more. The backward
 * pass recomputes the intermediate values of an adapter from its input.
 */
#include "net/lora.h"

#include "base/check.h"
#include "base/checked.h"
#include "base/try.h"
#include "io/error.h"
#include "io/random.h"
#include "net/quant.h"
#include "nojit_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- layout ---- */

/* Append A or B of a base matrix. Rows of B have its role, and its order in files; A has none, ROLE_COUNT. Return its
 * first element. */
static int64_t append(struct params *p, const struct tensor_spec *base, const char *part,
                      enum tensor_role role, int64_t rows, int64_t columns)
{
    struct tensor_spec *spec = &p->spec[p->specs];
    int stem = (int)(strlen(base->name) - strlen(".weight"));
    *spec = (struct tensor_spec){
        .rank = 2, .shape = {rows, columns}, .role = role, .layer = base->layer};
    snprintf(spec->name, sizeof spec->name, "base_model.model.%.*s.lora_%s.weight", stem,
             base->name, part);
    p->first[p->specs++] = p->count;
    int64_t first = p->count;
    p->count = params_align(first + rows * columns);
    return first;
}

/* Give a matrix its adapters: targets of one matrix follow each other. */
static void attach(struct matrix *m, const struct adapter *ad)
{
    if (m->adapters++ == 0)
        m->adapter = ad;
}

/* Return the number of an adapter's mask. Those of the last adapter, which few layers have, come last. */
static int mask_of(const struct net *n, int layer, int adapter)
{
    return adapter < LORA_LAST ? layer * LORA_LAST + adapter : n->c.layers * LORA_LAST + layer;
}

/* Return whether a tensor is a gate whose rows files have among those of queries: one adapter has both. */
static bool is_of_queries(const struct net *n, const struct tensor_spec *s)
{
    return s->role == ROLE_ATTENTION_GATE &&
           block_has(arch_block(&n->c.arch, s->layer, BLOCK_ATTENTION), FEATURE_GATED_Q);
}

/* Find whether a tensor is to have an adapter; false if it cannot. */
static int wants(const struct net *n, const struct lora_config *o, const struct tensor_spec *s,
                 bool *wanted)
{
    *wanted = false;
    if (lora_adapter_of(s->role) < 0)
        return 0;
    return lora_wants(o, n->c.model_type, is_of_queries(n, s) ? ROLE_Q_WEIGHT : s->role, wanted);
}

/* Refuse targets that are parts of a tensor. */
static int check_targets(const struct net *n, const struct lora_config *o)
{
    bool wanted;
    for (size_t i = 0; i < n->p.specs; i++)
        TRY(wants(n, o, &n->p.spec[i], &wanted));
    return 0;
}

/* Give a tensor of the base its adapter, if it is to have one. */
static void add_adapter(const struct net *n, size_t tensor, struct lora *out)
{
    const struct tensor_spec *s = &n->p.spec[tensor];
    const int k = lora_adapter_of(s->role), r = out->o.rank;
    struct adapter *of_layer = &out->adapter[s->layer * LORA_ADAPTERS], *ad = &of_layer[k];
    const struct adapter *queries = is_of_queries(n, s) ? &of_layer[LORA_Q] : NULL;
    bool wanted;
    int row;
    if (k < 0)
        return;
    *ad = (struct adapter){.of = out, .a = -1, .mask = mask_of(n, s->layer, k)};
    attach(net_matrix_of(n, tensor, &row), ad);
    CHECK(wants(n, &out->o, s, &wanted) == 0);
    if (!wanted)
        return;
    ad->shares = queries != NULL;
    ad->mask = queries ? queries->mask : ad->mask;
    ad->a = queries ? queries->a : append(&out->p, s, "A", ROLE_COUNT, r, s->shape[1]);
    ad->b = append(&out->p, s, "B", s->role, s->shape[0], r);
    ad->in = (int)s->shape[1];
    ad->out = (int)s->shape[0];
    ad->column = row;
}

static int layout(const struct net *n, const struct lora_config *o, struct lora *out)
{
    const size_t most = LORA_ADAPTERS * (size_t)n->c.layers;
    int rc = 0;
    *out = (struct lora){.o = *o, .p = {.head = -1}};
    out->p.spec = calloc(2 * most, sizeof *out->p.spec);
    out->p.first = calloc(2 * most, sizeof *out->p.first);
    out->adapter = calloc(most, sizeof *out->adapter);
    if (!out->p.spec || !out->p.first || !out->adapter)
        rc = fail(NJ_E_NOMEM, "no host memory for the adapters of %d layers; free some",
                  n->c.layers);
    for (size_t i = 0; rc == 0 && i < n->p.specs; i++)
        add_adapter(n, i, out);
    out->p.decayed = out->p.count;
    if (rc != 0)
        lora_free(out);
    return rc;
}

static int check_blocks(const struct model_config *c)
{
    if (!arch_first(&c->arch, c->layers, BLOCK_EXPERTS))
        return 0;
    return fail(NJ_E_UNSUPPORTED, "adapters are not supported for models with experts; use a model "
                                  "without them, or train all weights");
}

int net_layout(struct net *n, const struct lora_config *o, const unsigned char *types,
               struct lora *adapters)
{
    TRY(types ? quant_layout(n, types) : net_place(n, PARAMS_ALL));
    n->trained = &n->p;
    if (o->rank == 0)
        return 0;
    TRY(check_blocks(&n->c));
    TRY(check_targets(n, o));
    TRY(layout(n, o, adapters));
    n->lora = adapters;
    n->trained = &adapters->p;
    return 0;
}

const struct adapter *lora_of(const struct lora *l, const struct tensor_spec *base)
{
    const int k = lora_adapter_of(base->role);
    const struct adapter *ad = k < 0 ? NULL : &l->adapter[base->layer * LORA_ADAPTERS + k];
    return ad && ad->a >= 0 ? ad : NULL;
}

void lora_free(struct lora *l)
{
    params_free(&l->p);
    free(l->adapter);
    *l = (struct lora){0};
}

void lora_fill(const struct lora *l, uint64_t seed, size_t i, int64_t first, int64_t count,
               float *out)
{
    const struct tensor_spec *spec = &l->p.spec[i];
    const bool is_a = spec->role == ROLE_COUNT;
    const float bound = is_a ? 1.0f / sqrtf((float)spec->shape[1]) : 0.0f;
    const uint64_t key = XXH3_64bits_withSeed(spec->name, strlen(spec->name), seed);
    for (int64_t k = 0; k < count; k++) {
        uint64_t bits = random_mix(key + (uint64_t)(first + k + 1) * 0x9e3779b97f4a7c15u);
        out[k] = bound * ((float)(bits >> 40) * 0x1p-23f - 1.0f);
    }
}

/* ---- work ---- */

/* Addresses and shapes of one adapter in a pass. */
struct place {
    const struct adapter *ad;
    struct linear down, up; /* products x A^T, and with B^T into columns of y */
    const void *a, *b;
    const void *x; /* input after dropout */
    size_t column_bytes;
};

static const void *weight(const struct adapter *ad, enum nj_dtype T, int64_t first)
{
    return ad->of->w + (size_t)first * dtype_bytes(T);
}

static bool drops(const struct adapter *ad, const struct lora_acts *a)
{
    return a->key != NULL && ad->of->o.dropout > 0;
}

static void drop(struct work *r, const struct lora_acts *a, const struct place *p, void *y,
                 const void *x)
{
    OP(r, nj_dropout(r->s, p->down.T,
                     &(struct nj_dropout){.y = y,
                                          .x = x,
                                          .key = a->key,
                                          .n = (int64_t)p->down.rows * p->ad->in,
                                          .p = (float)p->ad->of->o.dropout,
                                          .mask = p->ad->mask}));
}

/* Find the adapter, and fill a->dropped if elements drop. Return false if there is no adapter. */
static bool begin(struct work *r, const struct matrix *m, const struct adapter *ad,
                  const struct matmul *product, const struct lora_acts *a, const void *x,
                  struct place *p)
{
    if (ad->a < 0)
        return false;
    const struct lora_config *o = &ad->of->o;
    *p = (struct place){
        .ad = ad,
        .down = {m->T, product->rows, o->rank, ad->in, .ldy = o->rank},
        .up = {m->T, product->rows, ad->out, o->rank, .ldy = product->ldy,
               .scale = (float)((double)matrix_scale(m) * o->alpha / o->rank)},
        .a = weight(ad, m->T, ad->a),
        .b = weight(ad, m->T, ad->b),
        .x = x,
        .column_bytes = (size_t)ad->column * dtype_bytes(m->T),
    };
    if (drops(ad, a)) {
        drop(r, a, p, a->dropped, x);
        p->x = a->dropped;
    }
    linear_fwd(r, &p->down, a->low, p->x, p->a);
    return true;
}

void lora_fwd(struct work *r, const struct matrix *m, const struct matmul *product,
              const struct lora_acts *a, void *y, const void *x)
{
    struct place p;
    for (int i = 0; i < m->adapters; i++) {
        if (!begin(r, m, &m->adapter[i], product, a, x, &p))
            continue;
        p.up.add = true;
        linear_fwd(r, &p.up, (char *)y + p.column_bytes, a->low, p.b);
    }
}

void lora_bwd(struct work *r, const struct matrix *m, const struct matmul *product,
              const struct lora_acts *a, void *dx, const void *dy, const void *x)
{
    struct place p;
    for (int i = 0; i < m->adapters; i++) {
        const struct adapter *ad = &m->adapter[i];
        if (!begin(r, m, ad, product, a, x, &p))
            continue;
        float *grad = ad->of->grad;
        const char *dy_columns = (const char *)dy + p.column_bytes;
        linear_dw(r, &p.up, grad + ad->b, dy_columns, a->low, product->add);
        linear_dx(r, &p.up, a->dlow, dy_columns, p.b);
        linear_dw(r, &p.down, grad + ad->a, a->dlow, p.x, product->add || ad->shares);
        if (drops(ad, a)) {
            linear_dx(r, &p.down, a->dropped, a->dlow, p.a);
            drop(r, a, &p, a->dropped, a->dropped);
            OP(r,
               nj_add(r->s, m->T,
                      &(struct nj_add){
                          .y = dx, .a = dx, .b = a->dropped, .n = (int64_t)p.down.rows * ad->in}));
        } else {
            p.down.add = true;
            linear_dx(r, &p.down, dx, a->dlow, p.a);
        }
    }
}

void lora_carve(const struct net *n, int rows, bool train, struct carve *m, struct lora_acts *out)
{
    if (!n->lora)
        return;
    const size_t N = (size_t)rows, e = dtype_bytes(n->T);
    const size_t low = size_product(N, (size_t)n->lora->o.rank, e);
    out->low = carve_take(m, low);
    if (!train)
        return;
    out->dlow = carve_take(m, low);
    if (n->lora->o.dropout > 0)
        out->dropped = carve_take(m, size_product(N, (size_t)net_widest_input(n), e));
}
