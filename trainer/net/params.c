/* SPDX-License-Identifier: Apache-2.0
 *
 * params.c: decides where each tensor lies in the flat arenas.
 */
#include "net/params.h"

#include "io/error.h"

#include <stdlib.h>

enum { ALIGN_ELEMENTS = 64 };

/* Field that a role starts (offset into struct layer_params or struct params), or a mark that the role continues
 * the fused parameter of the role before it. */
struct role_place {
    bool continues;
    bool in_layer;
    size_t field;
};
#define LAYER(field)                                                                               \
    {                                                                                              \
        false, true, offsetof(struct layer_params, field)                                          \
    }
#define MODEL(field)                                                                               \
    {                                                                                              \
        false, false, offsetof(struct params, field)                                               \
    }
#define CONTINUES                                                                                  \
    {                                                                                              \
        true, false, 0                                                                             \
    }

static const struct role_place place_of[ROLE_COUNT] = {
    [ROLE_EMBED] = MODEL(embed),     [ROLE_INPUT_NORM] = LAYER(ln1), [ROLE_Q_WEIGHT] = LAYER(wqkv),
    [ROLE_K_WEIGHT] = CONTINUES,     [ROLE_V_WEIGHT] = CONTINUES,    [ROLE_Q_BIAS] = LAYER(bqkv),
    [ROLE_K_BIAS] = CONTINUES,       [ROLE_V_BIAS] = CONTINUES,      [ROLE_Q_NORM] = LAYER(qnorm),
    [ROLE_K_NORM] = LAYER(knorm),    [ROLE_O_WEIGHT] = LAYER(wo),    [ROLE_POST_NORM] = LAYER(ln2),
    [ROLE_GATE_WEIGHT] = LAYER(wgu), [ROLE_UP_WEIGHT] = CONTINUES,   [ROLE_DOWN_WEIGHT] = LAYER(wd),
    [ROLE_FINAL_NORM] = MODEL(norm), [ROLE_HEAD] = MODEL(head),
};

int64_t params_align(int64_t n)
{
    return (n + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
}

static bool lies_here(const struct tensor_spec *spec, enum params_matrices here)
{
    return spec->rank == 1 || here == PARAMS_ALL ||
           (here == PARAMS_EMBEDDING && spec->role == ROLE_EMBED);
}

/* Place every tensor of one rank after the others. */
static int64_t place_rank(struct params *p, int rank, enum params_matrices here, int64_t at)
{
    for (size_t i = 0; i < p->specs; i++) {
        const struct tensor_spec *spec = &p->spec[i];
        const struct role_place *place = &place_of[spec->role];
        if (spec->rank != rank)
            continue;
        if (!lies_here(spec, here)) {
            p->first[i] = -1;
            continue;
        }
        if (!place->continues) {
            char *owner = place->in_layer ? (char *)&p->layer[spec->layer] : (char *)p;
            at = params_align(at);
            *(int64_t *)(void *)(owner + place->field) = at;
        }
        p->first[i] = at;
        at += tensor_elements(spec);
    }
    return params_align(at);
}

int params_layout(const struct model_config *c, enum params_matrices here, struct params *out)
{
    *out = (struct params){.embed = -1, .head = -1};
    int rc = tensor_specs(c, &out->spec, &out->specs);
    if (rc != 0)
        return rc;
    out->first = calloc(out->specs, sizeof *out->first);
    out->layer = calloc((size_t)c->layers, sizeof *out->layer);
    if (!out->first || !out->layer) {
        params_free(out);
        return fail(NJ_E_NOMEM, "no host memory for the list of %d layers; free some", c->layers);
    }
    for (int l = 0; l < c->layers; l++)
        out->layer[l] = (struct layer_params){-1, -1, -1, -1, -1, -1, -1, -1, -1};
    out->decayed = place_rank(out, 2, here, 0);
    out->count = place_rank(out, 1, here, out->decayed);
    if (c->tied)
        out->head = out->embed;
    return 0;
}

int64_t params_product(const struct params *p, int layer, enum product which)
{
    const struct layer_params *l = &p->layer[layer];
    const int64_t first[PRODUCTS] = {
        [PRODUCT_QKV] = l->wqkv,
        [PRODUCT_O] = l->wo,
        [PRODUCT_GATE_UP] = l->wgu,
        [PRODUCT_DOWN] = l->wd,
    };
    return first[which];
}

int64_t params_matrices(const struct params *p)
{
    const int64_t first = params_product(p, 0, PRODUCT_QKV);
    return (p->head > first ? p->head : p->decayed) - first;
}

void params_free(struct params *p)
{
    free(p->spec);
    free(p->first);
    free(p->layer);
    *p = (struct params){0};
}
