/* SPDX-License-Identifier: Apache-2.0
 *
 * config_experts.c: see config_experts.h. Defaults are those of the classes of transformers 5.24.
 */
#include "model/config_experts.h"

#include "base/try.h"
#include "io/error.h"
#include "model/config_put.h"

/* ---- reading ---- */

/* Read the number of experts, of which files have the older name, the newer or both. */
static int read_count(const struct fields *f, const struct family *family, int *out)
{
    static const char older[] = "num_experts", newer[] = "num_local_experts";
    int again;
    json_t *both = field_get(f, older) ? field_get(f, newer) : NULL;
    TRY(field_int(f, field_get(f, newer) ? newer : older, family->experts, out));
    if (!both)
        return 0;
    TRY(field_int(f, older, 0, &again));
    return *out == again ? 0
                         : field_refuse(f, NJ_E_FORMAT, newer, both,
                                        "num_experts is another number; remove the wrong one");
}

/* Set which layers have experts: every decoder_sparse_step-th that mlp_only_layers does not list. */
static int read_sparse(const struct fields *f, const struct model_config *c, bool *sparse)
{
    static const char name[] = "mlp_only_layers";
    json_t *list = field_get(f, name), *value;
    size_t i;
    int step;
    TRY(field_int(f, "decoder_sparse_step", 1, &step));
    if (list && !json_is_array(list))
        return field_refuse(f, NJ_E_FORMAT, name, list, "it must be a list of layers");
    for (int l = 0; l < c->layers; l++)
        sparse[l] = (l + 1) % step == 0;
    json_array_foreach(list, i, value)
    {
        const json_int_t layer = json_integer_value(value);
        if (!json_is_integer(value))
            return field_refuse(f, NJ_E_FORMAT, name, value, "it must be the number of a layer");
        if (layer >= 0 && layer < c->layers)
            sparse[layer] = false;
    }
    return 0;
}

/* Refuse what the class of a family without dense MLPs does not read, unless it is what the class computes. */
static int check_all_sparse(const struct fields *f, const struct model_config *c,
                            const struct block *b, const bool *sparse)
{
    static const char only[] = "mlp_only_layers", step[] = "decoder_sparse_step",
                      norm[] = "norm_topk_prob";
    bool all = true;
    for (int l = 0; l < c->layers; l++)
        all = all && sparse[l];
    const char *name = !b->renormalized ? norm : field_get(f, only) ? only : step;
    if (b->renormalized && all)
        return 0;
    return field_refuse(f, NJ_E_UNSUPPORTED, name, field_get(f, name),
                        "in this family all layers have experts, whose weights are divided by "
                        "their sum; use another model");
}

/* Read the size of the expert that all rows take; 0: there is none. */
static int read_shared(const struct fields *f, const struct family *family, struct block *out)
{
    return field_int(f, "shared_expert_intermediate_size", family->shared_size, &out->shared_size);
}

/* Read what only the experts of gpt-oss have; the width of its MLPs is theirs. */
static int read_oss(const struct fields *f, struct block *out)
{
    static const char other[] = "experts_per_token";
    json_t *again = field_get(f, other);
    double limit, alpha;
    TRY(field_number(f, "swiglu_limit", 7, &limit));
    TRY(field_number(f, "swiglu_alpha", 1.702, &alpha));
    out->glu_limit = (float)limit;
    out->glu_alpha = (float)alpha;
    if (again && json_integer_value(again) != out->experts_used)
        return field_refuse(f, NJ_E_FORMAT, other, again,
                            "num_experts_per_tok is another number; remove the wrong one");
    return 0;
}

int config_experts(const struct fields *f, const struct family *family,
                   const struct model_config *c, const struct block *mlp, struct block *out,
                   bool *sparse)
{
    *out = *mlp;
    out->kind = BLOCK_EXPERTS;
    out->features = family->mlp;
    out->router = family->router;
    TRY(read_count(f, family, &out->experts));
    TRY(field_int(f, "num_experts_per_tok", family->experts_used, &out->experts_used));
    if (family->fields & FIELDS_OSS) {
        for (int l = 0; l < c->layers; l++)
            sparse[l] = true;
        return read_oss(f, out);
    }
    TRY(field_int(f, "moe_intermediate_size", family->expert_size, &out->ffn_size));
    TRY(field_bool(f, "norm_topk_prob", family->renormalized, &out->renormalized));
    if (family->fields & FIELDS_SHARED)
        TRY(read_shared(f, family, out));
    TRY(read_sparse(f, c, sparse));
    return family_has_no_dense(family) ? check_all_sparse(f, c, out, sparse) : 0;
}

int config_balance(const struct fields *f, float *out)
{
    static const char name[] = "router_aux_loss_coef";
    json_t *given = field_get(f, name);
    const double x = given ? json_number_value(given) : 0.001;
    bool wanted;
    *out = 0;
    TRY(field_bool(f, "output_router_logits", false, &wanted));
    if (given && (!json_is_number(given) || !(x >= 0) || x > 1e6))
        return field_refuse(f, NJ_E_FORMAT, name, given,
                            "it must be a number from 0 to a million; correct it");
    *out = wanted ? (float)x : 0;
    return 0;
}

/* ---- writing ---- */

static void put_whole(json_t *root, const char *name, int value)
{
    json_object_set_new(root, name, json_integer(value));
}

static void put_sparse(json_t *root, const struct model_config *c)
{
    json_t *dense = json_array();
    for (int l = 0; l < c->layers; l++)
        if (arch_block(&c->arch, l, BLOCK_GLU))
            json_array_append_new(dense, json_integer(l));
    put_whole(root, "decoder_sparse_step", 1);
    json_object_set_new(root, "mlp_only_layers", dense);
}

void config_put_experts(json_t *root, const struct model_config *c, const struct family *family)
{
    const struct block *b = arch_first(&c->arch, c->layers, BLOCK_EXPERTS);
    if (!(family->fields & FIELDS_EXPERTS))
        return;
    if (family->fields & FIELDS_SPARSE)
        put_sparse(root, c);
    if (!b)
        return;
    put_whole(root,
              json_object_get(root, "num_local_experts") ? "num_local_experts" : "num_experts",
              b->experts);
    put_whole(root, "num_experts_per_tok", b->experts_used);
    put_whole(root, "moe_intermediate_size", b->ffn_size);
    if (!family_has_no_dense(family))
        json_object_set_new(root, "norm_topk_prob", json_boolean(b->renormalized));
    if (family->fields & FIELDS_SHARED)
        put_whole(root, "shared_expert_intermediate_size", b->shared_size);
    if (c->balance > 0) {
        json_object_set_new(root, "output_router_logits", json_true());
        json_object_set_new(root, "router_aux_loss_coef", real_of_float(c->balance));
    }
}
