/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_describe.c: see gguf_describe.h. Keys are those of llama.cpp's converter. Much of what llama.cpp computes has no
 * key, but follows from the architecture, so a model that differs there is refused.
 */
#include "model/gguf_describe.h"

#include "base/families.h"
#include "base/try.h"
#include "io/error.h"
#include "model/gguf_names.h"
#include "model/gguf_recurrent.h"
#include "model/gguf_rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KEEP "keep the Hugging Face folder"

/* ---- checks ---- */

struct check {
    const struct model_config *c;
    const struct gguf_arch *arch;
    const char *where;
};

static int refuse(const struct check *k, const char *what)
{
    return fail(
        NJ_E_UNSUPPORTED,
        "%s: %s, and llama.cpp computes it otherwise for GGUF files of architecture %s; " KEEP,
        k->where, what, k->arch->name);
}

static const struct block *attention_of(const struct model_config *c, int layer)
{
    return arch_block(&c->arch, layer, BLOCK_ATTENTION);
}

static const struct block *first_attention(const struct model_config *c)
{
    return arch_attention(&c->arch, c->layers);
}

static int window_in(const struct model_config *c, int layer)
{
    const struct block *b = attention_of(c, layer);
    return b ? b->window : 0;
}

static bool is_one(float factor)
{
    return factor == 0 || factor == 1;
}

static const char *activation_name(enum nj_activation kernels)
{
    int i = 0;
    while (hidden_acts[i].kernels != kernels)
        i++;
    return hidden_acts[i].name;
}

static int check_activation(const struct check *k)
{
    const struct hidden_act *act = &hidden_acts[arch_mlp(&k->c->arch, 0)->act];
    if (act->kernels == k->arch->activation)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: hidden_act is %s, and llama.cpp computes %s for GGUF files of architecture "
                "%s; " KEEP,
                k->where, act->name, activation_name(k->arch->activation), k->arch->name);
}

/* Check that all layers have one size, and no features that llama.cpp's graph lacks. */
static int check_layers(const struct check *k)
{
    const struct family *family = family_find(k->c->model_type);
    const struct block *first = first_attention(k->c), *mlp = arch_mlp(&k->c->arch, 0);
    const char *other = gguf_recurrent_differs(k->arch, k->c);
    if (other)
        return refuse(k, other);
    for (int l = 0; l < k->c->layers; l++) {
        const struct block *b = attention_of(k->c, l), *g = arch_mlp(&k->c->arch, l);
        b = b ? b : first; /* a recurrent layer has none */
        if (b->heads != first->heads || b->kv_heads != first->kv_heads ||
            b->head_dim != first->head_dim || g->ffn_size != mlp->ffn_size)
            return refuse(k, "layers differ in their sizes");
        if (block_has(g, FEATURE_EXPERTS) != ((family->mlp & FEATURE_BIT(FEATURE_EXPERTS)) != 0))
            return refuse(k, "some layers have no experts");
        if (g->renormalized != k->arch->renormalized)
            return refuse(k, "the weights of the experts of a row are not divided by their sum");
        if ((b->features & ~(family->attention | k->arch->attention)) != 0 ||
            (g->features & ~(family->mlp | k->arch->mlp)) != 0)
            return refuse(k, "layers have biases or another feature beside those of the family");
    }
    if (k->arch->square && first->heads * first->head_dim != k->c->hidden_size)
        return refuse(k, "heads together are not as wide as hidden_size");
    if (k->arch->untied && k->c->tied)
        return refuse(k, "the head is the embedding table");
    return 0;
}

/* Return whether the architecture gives a layer a window, in a model that has one. */
static bool has_window(const struct gguf_arch *a, int layer)
{
    return a->windows == GGUF_IDLE_WINDOW || (layer + 1) % a->full_every != 0;
}

/* Return the one window of a model; 0: none. */
static int window_of(const struct model_config *c)
{
    for (int l = 0; l < c->layers; l++)
        if (window_in(c, l) > 0)
            return window_in(c, l);
    return 0;
}

static int check_windows(const struct check *k)
{
    const struct gguf_arch *a = k->arch;
    const int window = window_of(k->c);
    if (window == 0 && gguf_rope_tables(k->c).windowed >= 0)
        return refuse(k, "layers rotate by two tables, and none has a window");
    if (window == 0)
        return 0;
    if (a->windows == GGUF_NO_WINDOW)
        return refuse(k, "layers have a sliding window");
    if (a->windowed_layers > 0 && a->windowed_layers != k->c->layers)
        return refuse(k, "layers have a sliding window in a model of this many layers");
    for (int l = 0; l < k->c->layers; l++)
        if (window_in(k->c, l) != (has_window(a, l) ? window : 0))
            return refuse(k, "another choice of layers has the sliding window");
    return 0;
}

/* Return whether the architecture rotates the heads of a layer. */
static bool is_rotated(const struct check *k, int layer)
{
    const struct gguf_arch *a = k->arch;
    if (a->unrotated_every > 0)
        return (layer + 1) % a->unrotated_every != 0;
    return !a->still_if_full || window_of(k->c) == 0 || window_in(k->c, layer) > 0;
}

static const char *const rule_names[ROPE_RULES] = {
    [ROPE_DEFAULT] = "default", [ROPE_NONE] = "none", [ROPE_LINEAR] = "linear",
    [ROPE_LLAMA3] = "llama3",   [ROPE_YARN] = "yarn", [ROPE_LONGROPE] = "longrope",
    [ROPE_NTK] = "dynamic",
};

/* Check one table; `of`: which layers it belongs to. */
static int check_table(const struct check *k, const struct rope *r, unsigned rules)
{
    const bool amplified = r->rule == ROPE_YARN || r->rule == ROPE_LONGROPE;
    if ((rules & RULE_BIT(r->rule)) == 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: positions are scaled (%s), and llama.cpp reads no such scale from GGUF "
                    "files of architecture %s; " KEEP,
                    k->where, rule_names[r->rule], k->arch->name);
    if (r->rule == ROPE_YARN && !r->truncate)
        return refuse(k, "positions are scaled by yarn without truncate");
    if (!amplified && rope_amplitude(r) != 1)
        return refuse(k, "rotated elements have a factor");
    if (!k->arch->partial &&
        rope_rotary(r, first_attention(k->c)->head_dim) != first_attention(k->c)->head_dim)
        return refuse(k, "a part of each head rotates");
    return 0;
}

static int check_positions(const struct check *k)
{
    const struct gguf_tables t = gguf_rope_tables(k->c);
    for (int l = 0; l < k->c->layers; l++)
        if (attention_of(k->c, l) &&
            (k->c->arch.rope[attention_of(k->c, l)->rope].rule != ROPE_NONE) != is_rotated(k, l))
            return refuse(k, "another choice of layers rotates its heads");
    TRY(check_table(k, &k->c->arch.rope[t.full], k->arch->rules));
    if (t.windowed >= 0)
        TRY(check_table(k, &k->c->arch.rope[t.windowed], RULES_PLAIN));
    return 0;
}

/* Return the scale of scores that llama.cpp computes with where it reads none. */
static float implied_scale(const struct check *k)
{
    const struct block *b = first_attention(k->c);
    const bool largest =
        strcmp(k->arch->name, "gemma3") == 0 && k->c->layers == GGUF_GEMMA3_27B_LAYERS;
    return 1 / sqrtf((float)(largest ? k->c->hidden_size / b->heads : b->head_dim));
}

static int check_factors(const struct check *k)
{
    const struct model_config *c = k->c;
    const bool implied = strcmp(k->arch->name, "gemma3") == 0; /* the root of hidden_size */
    if (!k->arch->factors && (!(implied || is_one(c->embedding_scale)) ||
                              !is_one(c->residual_scale) || !is_one(c->logit_scale)))
        return refuse(k, "embeddings, branches or logits have a factor");
    if (c->logit_cap > 0)
        return refuse(k, "logits have a cap");
    for (int l = 0; !k->arch->score_key && l < c->layers; l++)
        if (attention_of(c, l) &&
            fabsf(block_score_scale(attention_of(c, l)) / implied_scale(k) - 1) > 1e-6f)
            return refuse(k, "scores have another scale");
    return 0;
}

int gguf_check_model(const struct model_config *c, const char *where)
{
    const struct check k = {c, gguf_arch(c->model_type), where};
    if (!k.arch)
        return fail(NJ_E_UNSUPPORTED, "%s: GGUF files of %s are not written; " KEEP, where,
                    c->model_type);
    if (family_find(c->model_type)->fields & FIELDS_OSS)
        return fail(NJ_E_UNSUPPORTED, "%s: models of %s are read, not written; " KEEP, where,
                    c->model_type);
    TRY(check_activation(&k));
    TRY(check_layers(&k));
    TRY(check_windows(&k));
    TRY(check_positions(&k));
    return check_factors(&k);
}

/* ---- keys ---- */

struct keys {
    struct gguf_writer *w;
    const char *arch;
};

static const char *key_of(const struct keys *k, const char *name, char out[128])
{
    snprintf(out, 128, "%s.%s", k->arch, name);
    return out;
}

static void put_whole(const struct keys *k, const char *name, int value)
{
    char key[128];
    gguf_put_u32(k->w, key_of(k, name, key), (uint32_t)value);
}

static void put_number(const struct keys *k, const char *name, double value)
{
    char key[128];
    gguf_put_f32(k->w, key_of(k, name, key), (float)value);
}

static void put_text(const struct keys *k, const char *name, const char *value)
{
    char key[128];
    gguf_put_string(k->w, key_of(k, name, key), value);
}

static void put_sizes(const struct keys *k, const struct model_config *c)
{
    const struct block *attention = first_attention(c);
    const struct gguf_tables t = gguf_rope_tables(c);
    const struct {
        const char *name;
        int value;
    } whole[] = {
        {"context_length", c->max_positions},
        {"embedding_length", c->hidden_size},
        {"block_count", c->layers},
        {"feed_forward_length", config_dense_size(c)},
        {"attention.head_count", attention->heads},
        {"attention.key_length", attention->head_dim},
        {"attention.value_length", attention->head_dim},
        {"rope.dimension_count", rope_rotary(&c->arch.rope[t.full], attention->head_dim)},
        {"vocab_size", c->vocab_size},
    };
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        put_whole(k, whole[i].name, whole[i].value);
    if (gguf_arch(c->model_type)->recurrent)
        gguf_describe_recurrent(k->w, gguf_arch(c->model_type), c);
    else
        put_whole(k, "attention.head_count_kv", attention->kv_heads);
    put_number(k, "attention.layer_norm_rms_epsilon", (double)c->rms_eps);
}

static void put_experts(const struct keys *k, const struct block *b)
{
    put_whole(k, "expert_count", b->experts);
    put_whole(k, "expert_used_count", b->experts_used);
    put_whole(k, "expert_feed_forward_length", b->ffn_size);
}

static void put_windows(const struct keys *k, const struct gguf_arch *a,
                        const struct model_config *c)
{
    bool each[CONFIG_LAYERS_MOST];
    char key[128];
    const int window = window_of(c);
    /* Earlier versions of llama.cpp take a Phi-3 of 4,096 positions without the key to have a window. */
    if (window == 0 && strcmp(a->name, "phi3") != 0)
        return;
    put_whole(k, WINDOW_KEY, window);
    for (int l = 0; l < c->layers; l++)
        each[l] = window_in(c, l) > 0;
    if (a->windows == GGUF_SOME_WINDOWS)
        gguf_put_bools(k->w, key_of(k, "attention.sliding_window_pattern", key), each,
                       (size_t)c->layers);
}

/* Put the factor of rotated elements, which llama.cpp multiplies by 1 + 0.1 ln(factor). */
static void put_amplitude(const struct keys *k, const struct rope *r)
{
    const double implied = 1 + 0.1 * log((double)r->scaling.factor);
    const double more = (double)rope_amplitude(r) / implied;
    if (strcmp(k->arch, "mistral3") == 0 && rope_amplitude(r) == 1)
        put_number(k, "rope.scaling.yarn_log_multiplier", 1);
    else if (fabs(more - 1) > 1e-6)
        put_number(k, "rope.scaling.attn_factor", more);
}

static void put_scaling(const struct keys *k, const struct rope *r)
{
    if (r->rule == ROPE_LINEAR || r->rule == ROPE_YARN) {
        put_text(k, "rope.scaling.type", rule_names[r->rule]);
        put_number(k, "rope.scaling.factor", (double)r->scaling.factor);
    }
    if (r->rule == ROPE_YARN) {
        put_whole(k, "rope.scaling.original_context_length", r->scaling.original_positions);
        put_number(k, "rope.scaling.yarn_beta_fast", (double)r->beta_fast);
        put_number(k, "rope.scaling.yarn_beta_slow", (double)r->beta_slow);
        put_amplitude(k, r);
        if (r->query_beta != 0)
            put_number(k, TEMPERATURE_KEY, (double)r->query_beta);
    }
    if (r->rule == ROPE_NTK) { /* theta has it */
        put_text(k, "rope.scaling.type", rule_names[ROPE_NONE]);
        put_number(k, "rope.scaling.factor", 1);
    }
    if (r->rule == ROPE_LONGROPE) {
        put_text(k, "rope.scaling.type", rule_names[r->rule]);
        put_whole(k, "rope.scaling.original_context_length", r->scaling.original_positions);
        put_number(k, "rope.scaling.attn_factor", (double)rope_amplitude(r));
    }
}

static void put_positions(const struct keys *k, const struct gguf_arch *a,
                          const struct model_config *c)
{
    const struct gguf_tables t = gguf_rope_tables(c);
    const struct rope *full = &c->arch.rope[t.full];
    const double R = rope_rotary(full, t.head_dim);
    put_number(k, "rope.freq_base",
               full->rule == ROPE_NTK ? full->theta * pow((double)full->alpha, R / (R - 2))
                                      : full->theta);
    if (a->windows == GGUF_SOME_WINDOWS && window_of(c) > 0)
        put_number(k, "rope.freq_base_swa",
                   c->arch.rope[t.windowed < 0 ? t.full : t.windowed].theta);
    put_scaling(k, full);
}

static double factor_of(float factor)
{
    return is_one(factor) ? 1 : (double)factor;
}

static void put_factors(const struct keys *k, const struct gguf_arch *a,
                        const struct model_config *c)
{
    if (a->factors) {
        put_number(k, "embedding_scale", factor_of(c->embedding_scale));
        put_number(k, "residual_scale", factor_of(c->residual_scale));
        put_number(k, "logit_scale", 1 / factor_of(c->logit_scale));
    }
    if (a->score_key)
        put_number(k, "attention.scale", (double)block_score_scale(first_attention(c)));
}

void gguf_describe(struct gguf_writer *w, const struct model_config *c)
{
    const struct gguf_arch *a = gguf_arch(c->model_type);
    const struct keys k = {w, a->name};
    put_sizes(&k, c);
    if (arch_mlp(&c->arch, 0)->kind == BLOCK_EXPERTS)
        put_experts(&k, arch_mlp(&c->arch, 0));
    put_windows(&k, a, c);
    put_positions(&k, a, c);
    put_factors(&k, a, c);
}
