/* SPDX-License-Identifier: Apache-2.0
 *
 * config_put.c: see config_put.h.
 */
#include "model/config_put.h"

#include "model/config_recurrent.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *real_of_float(float value)
{
    char text[32];
    snprintf(text, sizeof text, "%.7g", (double)value);
    if (strtof(text, NULL) != value)
        snprintf(text, sizeof text, "%.9g", (double)value);
    return json_real(strtod(text, NULL));
}

static const struct block *attention_in(const struct model_config *c)
{
    return arch_attention(&c->arch, c->layers);
}

/* ---- rotations ---- */

static void set_float(json_t *object, const char *name, float value)
{
    json_object_set_new(object, name, real_of_float(value));
}

static json_t *list_of_floats(const float *value, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, real_of_float(value[i]));
    return list;
}

static void put_llama3(json_t *o, const struct rope *r)
{
    set_float(o, "factor", r->scaling.factor);
    set_float(o, "low_freq_factor", r->scaling.low_freq_factor);
    set_float(o, "high_freq_factor", r->scaling.high_freq_factor);
}

static void put_yarn(json_t *o, const struct rope *r)
{
    set_float(o, "factor", r->scaling.factor);
    set_float(o, "beta_fast", r->beta_fast);
    set_float(o, "beta_slow", r->beta_slow);
    if (!r->truncate)
        json_object_set_new(o, "truncate", json_false());
}

/* Set alpha, and the factor that the class needs beside it. */
static void put_alpha(json_t *o, const struct rope *r)
{
    set_float(o, "alpha", r->alpha);
    set_float(o, "factor", 1);
}

/* Return the object of a table's scaling, or null. Older versions of transformers take no other keys of Phi-3 than its
 * type and its divisors. */
static json_t *scaling_object(const struct model_config *c, const struct family *family, int table)
{
    static const char *const types[ROPE_RULES] = {[ROPE_LINEAR] = "linear",
                                                  [ROPE_LLAMA3] = "llama3",
                                                  [ROPE_YARN] = "yarn",
                                                  [ROPE_LONGROPE] = "longrope",
                                                  [ROPE_NTK] = "dynamic"};
    const struct rope *r = &c->arch.rope[table];
    const struct rope_scaling *s = &r->scaling;
    const bool few = (family->fields & FIELDS_LONGROPE) != 0;
    const int pairs = rope_rotary(r, attention_in(c)->head_dim) / 2;
    if (!types[r->rule])
        return json_null();
    json_t *o = json_pack("{s:s}", few ? "type" : "rope_type", types[r->rule]);
    if (r->rule == ROPE_LINEAR)
        set_float(o, "factor", s->factor);
    if (r->rule == ROPE_LLAMA3)
        put_llama3(o, r);
    if (r->rule == ROPE_YARN)
        put_yarn(o, r);
    if (r->rule == ROPE_NTK)
        put_alpha(o, r);
    if (r->rule == ROPE_LONGROPE) {
        json_object_set_new(o, "short_factor", list_of_floats(r->short_factor, pairs));
        json_object_set_new(o, "long_factor", list_of_floats(r->long_factor, pairs));
    }
    if (r->rule == ROPE_LONGROPE &&
        s->factor != (float)((double)c->max_positions / s->original_positions))
        set_float(o, "factor", s->factor);
    if (s->original_positions > 0 && !few)
        json_object_set_new(o, "original_max_position_embeddings",
                            json_integer(s->original_positions));
    if (rope_amplitude(r) != rope_natural_amplitude(r))
        set_float(o, "attention_factor", rope_amplitude(r));
    return o;
}

/* Return a table as an object of rope_parameters. */
static json_t *parameters_object(const struct model_config *c, const struct family *family,
                                 int table)
{
    json_t *o = scaling_object(c, family, table);
    if (json_is_null(o))
        o = json_pack("{s:s}", "rope_type", "default");
    json_object_set_new(o, "rope_theta", json_real(c->arch.rope[table].theta));
    return o;
}

/* Return the part of a head that rotates, so that its product with the size of a head is not below the number of
 * elements. */
static double rotary_part(const struct rope *r, int head_dim)
{
    const int rotary = rope_rotary(r, head_dim);
    double part = (double)rotary / head_dim;
    while ((int)(head_dim * part) < rotary)
        part = nextafter(part, 1);
    return part;
}

/* Set rope_parameters where transformers 4 does not know the family. The class needs the keys of its factor of
 * queries. */
static void put_parameters(json_t *root, const struct model_config *c, const struct family *family)
{
    json_t *o = parameters_object(c, family, 0);
    if (family->fields & FIELDS_BETA) {
        set_float(o, "llama_4_scaling_beta", c->arch.rope[0].query_beta);
        if (!json_object_get(o, "original_max_position_embeddings"))
            json_object_set_new(o, "original_max_position_embeddings",
                                json_integer(c->max_positions));
    }
    json_object_set_new(root, "rope_parameters", o);
}

/* rope_theta and rope_scaling are read by transformers 4 and 5; where layers differ, 5 needs rope_parameters, since the
 * older fields say less. */
void config_put_ropes(json_t *root, const struct model_config *c, const struct family *family)
{
    const struct rope *r = c->arch.rope;
    if (family->fields & FIELDS_ROTARY)
        json_object_set_new(root, "partial_rotary_factor",
                            json_real(rotary_part(r, attention_in(c)->head_dim)));
    if ((family->fields & FIELDS_LONGROPE) && r->scaling.original_positions > 0)
        json_object_set_new(root, "original_max_position_embeddings",
                            json_integer(r->scaling.original_positions));
    if (family->rotation == ROTATION_NAMED)
        json_object_set_new(root, "position_embedding_type",
                            json_string(attention_in(c)->rope == 0 ? "rope" : "nope"));
    if (family->rope_needed) {
        put_parameters(root, c, family);
        return;
    }
    json_object_set_new(root, "rope_theta", json_real(r->theta));
    json_object_set_new(root, "rope_scaling", scaling_object(c, family, 0));
    if (family->rotation != ROTATION_BY_WINDOW)
        return;
    if (family->fields & FIELDS_GEMMA)
        json_object_set_new(root, "rope_local_base_freq", json_real(r[1].theta));
    json_object_set_new(root, "rope_parameters",
                        json_pack("{s:o, s:o}", "full_attention", parameters_object(c, family, 0),
                                  "sliding_attention", parameters_object(c, family, 1)));
}

/* ---- numbers ---- */

static float factor_of(float scale)
{
    return scale == 0 ? 1 : scale;
}

static void put_gemma(json_t *root, const struct model_config *c)
{
    const double scale = (double)block_score_scale(attention_in(c));
    json_object_set_new(root, "query_pre_attn_scalar", json_integer(lround(1 / (scale * scale))));
    json_object_set_new(root, "final_logit_softcapping",
                        c->logit_cap > 0 ? real_of_float(c->logit_cap) : json_null());
}

/* Set the factors of MiniCPM; the one of the residual stream stands for all layers together. */
static void put_depth(json_t *root, const struct model_config *c)
{
    const double residual = (double)factor_of(c->residual_scale);
    set_float(root, "scale_emb", factor_of(c->embedding_scale));
    set_float(root, "scale_depth", (float)(residual * sqrt(c->layers)));
    set_float(root, "dim_model_base", (float)((double)factor_of(c->logit_scale) * c->hidden_size));
}

/* Set the numbers of Muse Glimmer. The factor of queries is the shorter one of those that give the scores theirs. */
static void put_muse(json_t *root, const struct model_config *c)
{
    const struct block *b = attention_in(c);
    const float scale = block_score_scale(b);
    const double root_dim = sqrt(b->head_dim), factor = (double)scale * root_dim;
    const float near = (float)factor;
    const bool same = (float)((double)near / root_dim) == scale;
    json_object_set_new(root, "qk_scale_factor", same ? real_of_float(near) : json_real(factor));
    set_float(root, "output_multiplier", factor_of(c->logit_scale));
    set_float(root, "final_logit_softcapping", c->logit_cap);
    set_float(root, "post_norm_eps", c->after_eps);
}

/* Set what a class for experts and recurrent layers checks, though no layer has them. */
static void put_hybrid(json_t *root)
{
    enum { DIVISOR = 8 }; /* hidden_size is a multiple */
    json_object_set_new(root, "num_local_experts", json_integer(0));
    json_object_set_new(root, "num_experts_per_tok", json_integer(0));
    json_object_set_new(root, "mamba_n_heads", json_integer(DIVISOR));
}

void config_put_numbers(json_t *root, const struct model_config *c, const struct family *family)
{
    const struct block *attention = attention_in(c);
    if (family->biases != 0)
        json_object_set_new(root, "attention_bias",
                            json_boolean((attention->features & family->biases) != 0));
    if (family->fields & FIELDS_MLP_BIAS)
        json_object_set_new(root, "mlp_bias",
                            json_boolean(block_has(arch_mlp(&c->arch, 0), FEATURE_MLP_BIAS)));
    if (family->fields & FIELDS_MULTIPLIERS) {
        set_float(root, "embedding_multiplier", factor_of(c->embedding_scale));
        set_float(root, "residual_multiplier", factor_of(c->residual_scale));
        set_float(root, "attention_multiplier", block_score_scale(attention));
        set_float(root, "logits_scaling", (float)(1 / (double)factor_of(c->logit_scale)));
    }
    if (family->fields & FIELDS_GEMMA)
        put_gemma(root, c);
    if (family->fields & FIELDS_MUSE)
        put_muse(root, c);
    if (family->fields & FIELDS_DEPTH)
        put_depth(root, c);
    if (family->fields & FIELDS_HYBRID)
        put_hybrid(root);
}

/* ---- layers ---- */

/* Return whether a layer has the window. One that no key falls out of is none, but the table of rotations tells, if
 * sliding_window is there. */
static bool is_windowed(const json_t *root, const struct model_config *c,
                        const struct family *family, int layer)
{
    const struct block *b = arch_block(&c->arch, layer, BLOCK_ATTENTION);
    const bool there = !json_is_null(json_object_get(root, "sliding_window"));
    if (!b)
        return false;
    return b->window > 0 || (family->rotation == ROTATION_BY_WINDOW && b->rope == 1) ||
           (family->rotation == ROTATION_WINDOWED && b->rope == 0 && there);
}

/* Return the table of a layer's rotation; that of layers without attention is not used. */
static const struct rope *table_of(const struct model_config *c, int layer)
{
    const struct block *b = arch_block(&c->arch, layer, BLOCK_ATTENTION);
    return &c->arch.rope[b ? b->rope : 0];
}

static bool rotates(const struct model_config *c, int layer)
{
    return table_of(c, layer)->rule != ROPE_NONE;
}

void config_put_window(json_t *root, const struct model_config *c, const struct family *family)
{
    int window = 0, first = c->layers;
    bool all_rotate = true;
    for (int l = c->layers - 1; l >= 0; l--) {
        const struct block *b = arch_block(&c->arch, l, BLOCK_ATTENTION);
        const int own = b ? b->window : 0;
        window = own > window ? own : window;
        first = own > 0 ? l : first;
        all_rotate = all_rotate && rotates(c, l);
    }
    if (family->windows == WINDOW_NONE || (family->windows == WINDOW_FROM && window == 0))
        return;
    if (window == 0 && (family->rotation == ROTATION_BY_WINDOW ||
                        (family->rotation == ROTATION_WINDOWED && !all_rotate)))
        window = c->max_positions; /* the family has one, which no key falls out of */
    json_object_set_new(root, "sliding_window", window > 0 ? json_integer(window) : json_null());
    if (family->windows == WINDOW_FROM || family->windows == WINDOW_UNROTATED)
        json_object_set_new(root, "use_sliding_window", json_boolean(window > 0));
    if (family->windows == WINDOW_FROM)
        json_object_set_new(root, "max_window_layers", json_integer(first));
}

/* Return the word of layer_types for a layer. */
static const char *type_of(const struct model_config *c, const struct family *family, int layer,
                           bool windowed)
{
    if (!arch_block(&c->arch, layer, BLOCK_ATTENTION))
        return config_recurrent_type(family);
    return windowed                         ? "sliding_attention"
           : family->fields & FIELDS_HYBRID ? "attention"
                                            : "full_attention";
}

void config_put_layers(json_t *root, const struct model_config *c, const struct family *family)
{
    bool listed = json_is_array(json_object_get(root, "layer_types")) ||
                  (family->fields & FIELDS_HYBRID) || family->recurrent != 0 ||
                  family->windows == WINDOW_EACH || family->windows == WINDOW_BUT_LAST ||
                  family->windows == WINDOW_BUT_FIRST || family->windows == WINDOW_TO_LAST;
    json_t *types = json_array(), *rotating = json_array(), *bases = json_array();
    for (int l = 0; l < c->layers; l++) {
        const bool windowed = family->windows != WINDOW_ALL && is_windowed(root, c, family, l);
        listed = listed || windowed;
        json_array_append_new(types, json_string(type_of(c, family, l, windowed)));
        json_array_append_new(rotating, json_integer(rotates(c, l)));
        json_array_append_new(bases, json_real(rotates(c, l) ? table_of(c, l)->theta : 0));
    }
    if (listed)
        json_object_set(root, "layer_types", types);
    if (family->rotation == ROTATION_LISTED)
        json_object_set(root, "no_rope_layers", rotating);
    if (family->fields & FIELDS_BASES)
        json_object_set(root, "layer_rope_theta", bases);
    json_decref(types);
    json_decref(rotating);
    json_decref(bases);
}
