/* SPDX-License-Identifier: Apache-2.0
 *
 * params.c: decides where each tensor lies in the flat arenas.
 */
#include "net/params.h"

#include "base/try.h"
#include "io/error.h"

#include <stdlib.h>

/* WIDE: number of elements, of 16 bits at least, that have room for one of float32. */
enum { ALIGN_ELEMENTS = 64, WIDE = 2 };

/* Roles that continue the fused parameter of the role before. */
static const bool continues[ROLE_COUNT] = {
    [ROLE_K_WEIGHT] = true,       [ROLE_V_WEIGHT] = true,         [ROLE_K_BIAS] = true,
    [ROLE_V_BIAS] = true,         [ROLE_UP_WEIGHT] = true,        [ROLE_UP_BIAS] = true,
    [ROLE_EXPERT_UP_BIAS] = true, [ROLE_SHARED_UP_WEIGHT] = true, [ROLE_DELTA_K_WEIGHT] = true,
    [ROLE_DELTA_V_WEIGHT] = true, [ROLE_DELTA_Z_WEIGHT] = true,   [ROLE_DELTA_A_WEIGHT] = true,
};

int64_t params_align(int64_t n)
{
    return (n + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
}

/* Kinds of tensors by their number of sizes. */
enum rank { VECTOR = 1, MATRIX, TAPS };

static bool lies_here(const struct tensor_spec *spec, enum params_matrices here)
{
    return spec->rank != MATRIX || here == PARAMS_ALL || here == PARAMS_HEAD ||
           (here == PARAMS_EMBEDDING && spec->role == ROLE_EMBED);
}

/* Note where a tensor begins. */
static void note(struct params *p, const struct tensor_spec *spec, int64_t at)
{
    if (spec->role == ROLE_EMBED)
        p->embed = at;
    else if (spec->role == ROLE_HEAD)
        p->head = at;
    else if (spec->role == ROLE_FINAL_NORM)
        p->norm = at;
    else if (spec->expert == 0)
        p->layer[spec->layer][spec->role] = at;
    if (spec->layer >= 0 && spec->rank == MATRIX && p->begin[spec->layer] < 0)
        p->begin[spec->layer] = at;
}

/* Place every tensor of one kind after the others. */
static int64_t place(struct params *p, enum rank rank, enum params_matrices here, int64_t at)
{
    for (size_t i = 0; i < p->specs; i++) {
        const struct tensor_spec *spec = &p->spec[i];
        if (spec->rank != (int)rank || !lies_here(spec, here))
            continue;
        at = continues[spec->role] || spec->expert > 0 ? at : params_align(at);
        p->first[i] = at;
        note(p, spec, at);
        at += tensor_elements(spec) * (tensor_is_wide(spec->role) ? WIDE : 1);
    }
    return params_align(at);
}

/* Return a list of first elements, none of which is known. */
static int64_t *unknown(size_t count)
{
    int64_t *first = malloc(count * sizeof *first);
    for (size_t i = 0; first && i < count; i++)
        first[i] = -1;
    return first;
}

/* Leave the tensor of the LM head alone in the list. */
static void keep_head(const struct model_config *c, struct params *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->specs; i++)
        if (tensor_is_head(c, &p->spec[i]))
            p->spec[kept++] = p->spec[i];
    p->specs = kept;
}

int params_layout(const struct model_config *c, enum params_matrices here, struct params *out)
{
    const size_t layers = (size_t)c->layers;
    *out = (struct params){.embed = -1, .head = -1, .layers = c->layers};
    TRY(tensor_specs(c, &out->spec, &out->specs));
    if (here == PARAMS_HEAD)
        keep_head(c, out);
    out->first = unknown(out->specs);
    out->layer = (int64_t(*)[ROLE_COUNT])unknown(layers * ROLE_COUNT);
    out->begin = unknown(layers + 1);
    if (!out->first || !out->layer || !out->begin) {
        params_free(out);
        return fail(NJ_E_NOMEM, "no host memory for the list of %d layers; free some", c->layers);
    }
    out->matrices = place(out, MATRIX, here, 0);
    out->decayed = place(out, TAPS, here, out->matrices);
    out->count = place(out, VECTOR, here, out->decayed);
    out->begin[c->layers] = out->head > out->begin[0] ? out->head : out->matrices;
    if (c->tied)
        out->head = out->embed;
    return 0;
}

int64_t params_layer(const struct params *p, int layer)
{
    return p->begin[layer];
}

int64_t params_matrices(const struct params *p)
{
    return params_layer(p, p->layers) - params_layer(p, 0);
}

void params_free(struct params *p)
{
    free(p->spec);
    free(p->first);
    free(p->layer);
    free(p->begin);
    *p = (struct params){0};
}
