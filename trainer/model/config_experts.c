/* SPDX-License-Identifier: Apache-2.0
 *
 * config_experts.c: see config_experts.h. Defaults are those of the classes of transformers 5.24.
 */
#include "model/config_experts.h"

#include "base/try.h"
#include "io/error.h"
#include "model/config_put.h"

#include <stdio.h>

/* ---- reading ---- */

/* Read the number of experts, of which files have the older name, the newer or both. */
static int read_count(const struct fields *f, const struct family *family, int *out)
{
    static const char newer[] = "num_local_experts";
    const char *older = family_experts_field(family);
    char remedy[REMEDY_BYTES];
    int again;
    json_t *both = field_get(f, older) ? field_get(f, newer) : NULL;
    TRY(field_int(f, field_get(f, newer) ? newer : older, family->experts, out));
    if (!both)
        return 0;
    TRY(field_int(f, older, 0, &again));
    snprintf(remedy, sizeof remedy, "%s is another number; remove the wrong one", older);
    return *out == again ? 0 : field_refuse(f, NJ_E_FORMAT, newer, both, remedy);
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

/* Read the size of the shared expert. */
static int read_shared(const struct fields *f, const struct family *family, struct block *out)
{
    return field_int(f, "shared_expert_intermediate_size", family->shared_size, &out->shared_size);
}

/* Read how many of the first layers have no experts; there may be none of them. */
static int read_leading(const struct fields *f, const struct family *family,
                        const struct model_config *c, bool *sparse)
{
    const char *name = family_leading_field(family);
    json_t *value = field_get(f, name);
    int leading = 0;
    if (!json_is_integer(value) || json_integer_value(value) != 0)
        TRY(field_int(f, name, family->leading, &leading));
    for (int l = 0; l < c->layers; l++)
        sparse[l] = l >= leading;
    return 0;
}

/* Read what such families have beside the number of first layers. */
static int read_scores(const struct fields *f, const struct family *family, struct block *out)
{
    double scale;
    bool biased = true;
    TRY(field_number(f, "routed_scaling_factor", 1, &scale));
    out->route_scale = (float)scale;
    out->route_eps = (float)family->route_eps;
    if (family->fields & FIELDS_EXPERT_BIAS)
        TRY(field_bool(f, "use_expert_bias", true, &biased));
    if (!biased)
        out->features &= ~FEATURE_BIT(FEATURE_CORRECTION);
    return 0;
}

/* Read what only the experts of GLM have. */
static int read_glm(const struct fields *f, struct block *out)
{
    static const char shared[] = "n_shared_experts";
    int count;
    TRY(field_int(f, "n_group", 1, &out->groups));
    TRY(field_int(f, "topk_group", 1, &out->groups_used));
    TRY(field_int(f, shared, 1, &count));
    if (count > CONFIG_SIZE_MOST / out->ffn_size)
        return field_refuse(f, NJ_E_FORMAT, shared, field_get(f, shared),
                            "the shared experts become too large");
    out->shared_size = count * out->ffn_size;
    return 0;
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
    if (family->fields & FIELDS_GLM)
        TRY(read_glm(f, out));
    if (family->fields & FIELDS_LEADING) {
        TRY(read_scores(f, family, out));
        return read_leading(f, family, c, sparse);
    }
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

/* Return the number of layers without experts. */
static int dense_layers(const struct model_config *c)
{
    int dense = 0;
    for (int l = 0; l < c->layers; l++)
        dense += arch_block(&c->arch, l, BLOCK_GLU) != NULL;
    return dense;
}

static void put_scores(json_t *root, const struct block *b, const struct family *family)
{
    json_object_set_new(root, "routed_scaling_factor", real_of_float(b->route_scale));
    if (family->fields & FIELDS_EXPERT_BIAS)
        json_object_set_new(root, "use_expert_bias",
                            json_boolean(block_has(b, FEATURE_CORRECTION)));
    if (!(family->fields & FIELDS_GLM))
        return;
    put_whole(root, "n_group", b->groups);
    put_whole(root, "topk_group", b->groups_used);
    put_whole(root, "n_shared_experts", b->shared_size / b->ffn_size);
}

bool config_experts_fit(const struct model_config *c, const struct family *family)
{
    const int dense = family->fields & FIELDS_LEADING ? dense_layers(c) : 0;
    for (int l = 0; l < dense; l++)
        if (arch_block(&c->arch, l, BLOCK_EXPERTS))
            return false;
    return true;
}

void config_put_experts(json_t *root, const struct model_config *c, const struct family *family)
{
    const struct block *b = arch_first(&c->arch, c->layers, BLOCK_EXPERTS);
    if (!(family->fields & FIELDS_EXPERTS))
        return;
    if (family->fields & FIELDS_SPARSE)
        put_sparse(root, c);
    if (family->fields & FIELDS_LEADING)
        put_whole(root, family_leading_field(family), dense_layers(c));
    if (!b)
        return;
    put_whole(root,
              json_object_get(root, "num_local_experts") ? "num_local_experts"
                                                         : family_experts_field(family),
              b->experts);
    put_whole(root, "num_experts_per_tok", b->experts_used);
    put_whole(root, "moe_intermediate_size", b->ffn_size);
    if (!family_has_no_dense(family))
        json_object_set_new(root, "norm_topk_prob", json_boolean(b->renormalized));
    if (family->fields & FIELDS_SHARED)
        put_whole(root, "shared_expert_intermediate_size", b->shared_size);
    if (family->fields & FIELDS_LEADING)
        put_scores(root, b, family);
    if (c->balance > 0) {
        json_object_set_new(root, "output_router_logits", json_true());
        json_object_set_new(root, "router_aux_loss_coef", real_of_float(c->balance));
    }
}
