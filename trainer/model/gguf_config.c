/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_config.c: see gguf_config.h. Metadata is translated into the config.json that Hugging Face would have for it, so
 * that the rules, defaults and refusals of a family exist once. What llama.cpp computes by a key that the family lacks
 * is refused here.
 */
#include "model/gguf_config.h"

#include "base/families.h"
#include "base/try.h"
#include "io/error.h"
#include "io/json_text.h"
#include "model/config_from.h"
#include "model/gguf_names.h"
#include "model/gguf_recurrent.h"
#include "model/gguf_rope.h"
#include "model/gguf_source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

/* Return a field that has been set; 0: it has not. */
static int64_t whole_of(const struct gguf_source *s, const char *field)
{
    return (int64_t)json_integer_value(json_object_get(s->out, field));
}

static void put_whole(struct gguf_source *s, const char *field, int64_t value)
{
    json_object_set_new(s->out, field, json_integer((json_int_t)value));
}

/* Set a field to a number above 0. */
static int put_positive(struct gguf_source *s, const char *name, const char *field, double missing)
{
    double value;
    TRY(gguf_positive(s, name, missing, &value));
    json_object_set_new(s->out, field, json_real(value));
    return 0;
}

/* ---- the architecture ---- */

/* Find the row of the file's architecture. */
static int find_arch(const struct gguf *g, const struct gguf_arch **out)
{
    char supported[NAMES_BYTES] = "";
    struct gguf_text name;
    int known = 0, listed = 0;
    TRY(gguf_string(g, "general.architecture", &name));
    for (int i = 0; i < GGUF_ARCHS; i++) {
        const struct gguf_arch *a = &gguf_archs[i];
        known += family_find(a->model_type) != NULL;
        if (name.text && strlen(a->name) == name.bytes &&
            memcmp(a->name, name.text, name.bytes) == 0 && family_find(a->model_type)) {
            *out = a;
            return 0;
        }
    }
    for (int i = 0; i < GGUF_ARCHS; i++)
        if (family_find(gguf_archs[i].model_type))
            name_append(supported, gguf_archs[i].name, listed++, known);
    if (!name.text)
        return fail(NJ_E_FORMAT, "%s: general.architecture is missing; %s", g->path, supported);
    return fail(NJ_E_UNSUPPORTED, "%s: general.architecture is %.*s; %s", g->path, gguf_shown(name),
                name.text, supported);
}

/* Refuse a file of adapters or of an importance matrix, which is no model. */
static int refuse_kind(const struct gguf *g)
{
    struct gguf_text type;
    TRY(gguf_string(g, "general.type", &type));
    if (!type.text || (type.bytes == 5 && memcmp(type.text, "model", 5) == 0))
        return 0;
    return fail(NJ_E_UNSUPPORTED, "%s: general.type is %.*s; name the file of a model", g->path,
                gguf_shown(type), type.text);
}

/* ---- refusals ---- */

#define SHARED_SIZE_KEY "expert_shared_feed_forward_length"

/* Keys that llama.cpp computes with, and the values that change nothing. */
static const struct neutral {
    const char *name;
    double value;
    enum {
        NOWHERE,
        FACTORS,
        SCORES,
        TEMPERATURE,
        SHARED,
        PREDICTIONS
    } read; /* architectures that it is read for */
} neutral[] = {
    {"logit_scale", 1, FACTORS},
    {"residual_scale", 1, FACTORS},
    {"embedding_scale", 1, FACTORS},
    {"attention.scale", 0, SCORES},
    {TEMPERATURE_KEY, 0, TEMPERATURE},
    {"final_logit_softcapping", 0, NOWHERE},
    {"attn_logit_softcapping", 0, NOWHERE},
    {"attention.clamp_kqv", 0, NOWHERE},
    {"attention.max_alibi_bias", 0, NOWHERE},
    {"attention.shared_kv_layers", 0, NOWHERE},
    {"embedding_length_per_layer_input", 0, NOWHERE},
    {"nextn_predict_layers", 0, PREDICTIONS},
    {"expert_shared_count", 0, NOWHERE},
    {SHARED_SIZE_KEY, 0, SHARED},
    {"expert_group_count", 1, NOWHERE},
    {"expert_weights_scale", 1, NOWHERE},
    {"expert_gating_func", 1, NOWHERE}, /* softmax */
};

/* Return whether this key decides of which family a file is. */
static bool is_key(const struct gguf_arch *a, const char *key)
{
    return a->key && strcmp(a->key, key) == 0;
}

static int refuse_numbers(const struct gguf_source *s)
{
    const bool reads[] = {[NOWHERE] = false,
                          [FACTORS] = s->arch->factors,
                          [SCORES] = s->arch->score_key,
                          [TEMPERATURE] = is_key(s->arch, TEMPERATURE_KEY),
                          [SHARED] = s->arch->shared_mlp,
                          [PREDICTIONS] = s->arch->predicts};
    char key[128];
    double value;
    for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++) {
        TRY(gguf_number(s->g, gguf_key(s, neutral[i].name, key), neutral[i].value, &value));
        if (!reads[neutral[i].read] && value != neutral[i].value)
            return fail(NJ_E_UNSUPPORTED,
                        "%s: %s is %g, and models are computed with %g; use another model",
                        s->g->path, key, value, neutral[i].value);
    }
    return 0;
}

static const struct family *family_of(const struct gguf_source *s)
{
    return family_find(s->arch->model_type);
}

static bool has_experts(const struct gguf_source *s)
{
    return (family_of(s)->mlp & FEATURE_BIT(FEATURE_EXPERTS)) != 0;
}

static int refuse_features(const struct gguf_source *s)
{
    char key[128];
    int64_t experts;
    bool causal, rotates;
    TRY(refuse_numbers(s));
    TRY(gguf_bool(s->g, gguf_key(s, "attention.causal", key), true, &causal));
    if (!causal)
        return fail(NJ_E_UNSUPPORTED, "%s: %s is false; use a causal model", s->g->path, key);
    TRY(gguf_int(s->g, gguf_key(s, "expert_count", key), 0, &experts));
    if (experts > 1 && !has_experts(s))
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is %lld; mixtures of experts are not supported for this architecture; "
                    "use a dense model, or one of qwen3moe or gpt-oss",
                    s->g->path, key, (long long)experts);
    /* The key is a switch of rotation in files of Granite, and a label in others. */
    TRY(gguf_bool(s->g, gguf_key(s, "rope.scaling.finetuned", key), true, &rotates));
    if (!rotates && strcmp(s->arch->name, "granite") == 0)
        return fail(NJ_E_UNSUPPORTED, "%s: %s is false, so no head rotates; use another model",
                    s->g->path, key);
    return 0;
}

/* Refuse sizes other than head_dim where they can only be head_dim. */
static int refuse_other_heads(const struct gguf_source *s)
{
    static const struct {
        const char *name, *remedy;
    } same[] = {
        {"attention.value_length", "use a model whose keys and values are of one size"},
        {"attention.key_length_swa", "use a model whose heads are of one size"},
        {"attention.value_length_swa", "use a model whose heads are of one size"},
        {"rope.dimension_count", "use a model that rotates whole heads"},
        {"rope.dimension_count_swa", "use a model that rotates whole heads"},
    };
    const int64_t head_dim = whole_of(s, "head_dim");
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        int64_t size;
        const bool rotation = strncmp(same[i].name, "rope.", 5) == 0;
        TRY(gguf_whole(s, same[i].name, head_dim, &size));
        if (size != head_dim && !(rotation && s->arch->partial))
            return fail(NJ_E_UNSUPPORTED, "%s: %s.%s is %lld, and heads are of %lld; %s",
                        s->g->path, s->arch->name, same[i].name, (long long)size,
                        (long long)head_dim, same[i].remedy);
    }
    return 0;
}

/* ---- sizes, tokens, biases ---- */

/* Whole numbers that each file has, and the fields that they are. */
static const struct same_field {
    const char *key, *field;
} sizes[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
};

static int put_sizes(struct gguf_source *s)
{
    int64_t value;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        TRY(gguf_whole(s, sizes[i].key, 0, &value));
        put_whole(s, sizes[i].field, value);
    }
    const int64_t heads = whole_of(s, "num_attention_heads"), hidden = whole_of(s, "hidden_size");
    if (heads < 1 || hidden < heads)
        return fail(NJ_E_FORMAT,
                    "%s: embedding_length is %lld, less than attention.head_count %lld, or that is "
                    "not a whole number above 0",
                    s->g->path, (long long)hidden, (long long)heads);
    if (s->arch->recurrent) {
        TRY(gguf_put_recurrent(s));
    } else {
        TRY(gguf_whole(s, "attention.head_count_kv", heads, &value));
        put_whole(s, "num_key_value_heads", value);
    }
    TRY(gguf_whole(s, "attention.key_length", hidden / heads, &value));
    put_whole(s, "head_dim", value);
    return put_positive(s, "attention.layer_norm_rms_epsilon", family_eps_field(family_of(s)), NAN);
}

/* The architecture decides whether weights are divided by their sum. The width of the MLPs of gpt-oss is that of its
 * experts. */
static int put_experts(struct gguf_source *s)
{
    const bool oss = (family_of(s)->fields & FIELDS_OSS) != 0;
    static const struct same_field whole[] = {
        {"expert_count", "num_experts"},
        {"expert_used_count", "num_experts_per_tok"},
        {"expert_feed_forward_length", "moe_intermediate_size"}};
    char key[128];
    int64_t value;
    bool renormalized;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        TRY(gguf_whole(s, whole[i].key, 0, &value));
        put_whole(s, whole[i].field, value);
    }
    TRY(gguf_bool(s->g, gguf_key(s, "expert_weights_norm", key), s->arch->renormalized,
                  &renormalized));
    if (renormalized != s->arch->renormalized)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is %s, and llama.cpp computes otherwise; use another model", s->g->path,
                    key, renormalized ? "true" : "false");
    if (oss)
        put_whole(s, "intermediate_size", whole_of(s, "moe_intermediate_size"));
    json_object_set_new(s->out, "norm_topk_prob", json_boolean(s->arch->renormalized));
    return 0;
}

static int put_vocab(struct gguf_source *s)
{
    const struct tensor *embed = tensors_find(&s->g->tensors, GGUF_EMBED);
    const int64_t rows = embed ? embed->shape[0] : 0;
    int64_t size;
    if (rows < 1)
        return fail(NJ_E_FORMAT, "%s: tensor " GGUF_EMBED " is missing; fetch the file again",
                    s->g->path);
    TRY(gguf_whole(s, "vocab_size", rows, &size));
    put_whole(s, "vocab_size", size);
    json_object_set_new(s->out, "tie_word_embeddings",
                        json_boolean(!tensors_find(&s->g->tensors, GGUF_HEAD)));
    return 0;
}

static int put_tokens(struct gguf_source *s)
{
    static const char *const fields[] = {"bos_token_id", "eos_token_id"};
    for (int i = 0; i < 2; i++) {
        char key[64];
        int64_t id;
        snprintf(key, sizeof key, "tokenizer.ggml.%s", fields[i]);
        TRY(gguf_int(s->g, key, -1, &id));
        if (id != -1)
            put_whole(s, fields[i], id);
    }
    return 0;
}

static bool has_tensor(const struct gguf_source *s, const char *name)
{
    return tensors_find(&s->g->tensors, name) != NULL;
}

/* Set the switches of biases where files of an architecture may have them. */
static void put_biases(struct gguf_source *s)
{
    if ((s->arch->attention & FEATURE_BIT(FEATURE_QKV_BIAS)) != 0)
        json_object_set_new(s->out, "attention_bias",
                            json_boolean(has_tensor(s, "blk.0.attn_q.bias") ||
                                         has_tensor(s, "blk.0.attn_qkv.bias")));
    if ((s->arch->mlp & FEATURE_BIT(FEATURE_MLP_BIAS)) != 0)
        json_object_set_new(s->out, "mlp_bias", json_boolean(has_tensor(s, "blk.0.ffn_up.bias")));
}

/* ---- windows ---- */

/* Return the window that a file names; 0: none. One that no key falls out of is none where all layers have it. */
static int read_window(const struct gguf_source *s, int64_t *out)
{
    char key[128];
    TRY(gguf_int(s->g, gguf_key(s, WINDOW_KEY, key), 0, out));
    const bool all = *out >= whole_of(s, "max_position_embeddings");
    if (*out < 1 || (all && s->arch->windows != GGUF_SOME_WINDOWS))
        *out = 0;
    if (*out == 0 || s->arch->windows != GGUF_NO_WINDOW)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: %s is %lld; sliding windows are not supported for this architecture; use a "
                "model without one",
                s->g->path, key, (long long)*out);
}

/* Set layer_types: for each layer whether it has the window, as an array says or by the architecture's rule. */
static int put_layer_types(struct gguf_source *s, int64_t window)
{
    char key[128];
    int32_t *each = NULL;
    size_t count = 0;
    int64_t every = s->arch->full_every;
    const int64_t layers = whole_of(s, "num_hidden_layers");
    const struct gguf_value *v =
        gguf_find(s->g, gguf_key(s, "attention.sliding_window_pattern", key));
    if (layers < 1 || layers > CONFIG_LAYERS_MOST)
        return 0; /* it is refused as a number of layers */
    if (v && v->array)
        TRY(gguf_ints(s->g, key, &each, &count));
    else
        TRY(gguf_int(s->g, key, every, &every));
    if ((v && v->array && count != (size_t)layers) || every < 1) {
        free(each);
        return fail(NJ_E_FORMAT, "%s: %s is not one value for each of %lld layers; " GGUF_CONVERT,
                    s->g->path, key, (long long)layers);
    }
    json_t *types = json_array();
    for (int64_t i = 0; i < layers; i++) {
        const bool windowed = window > 0 && (each ? each[i] != 0 : (i + 1) % every != 0);
        json_array_append_new(types,
                              json_string(windowed ? "sliding_attention" : "full_attention"));
    }
    json_object_set_new(s->out, "layer_types", types);
    free(each);
    return 0;
}

/* Set the window, and the family where the window decides it. */
static int put_windows(struct gguf_source *s)
{
    const struct gguf_arch *a = s->arch;
    const char *model_type = a->model_type;
    int64_t window;
    double other = 0;
    char key[128];
    TRY(read_window(s, &window));
    json_object_set_new(s->out, "sliding_window",
                        window > 0 ? json_integer((json_int_t)window) : json_null());
    if (is_key(a, TEMPERATURE_KEY))
        TRY(gguf_number(s->g, gguf_key(s, TEMPERATURE_KEY, key), 0, &other));
    if (is_key(a, WINDOW_KEY) ? window > 0 : other != 0)
        model_type = a->model_type_with_key;
    json_object_set_new(s->out, "model_type", json_string(model_type));
    return a->windows == GGUF_SOME_WINDOWS ? put_layer_types(s, window) : 0;
}

/* ---- fields of one family ---- */

/* The scale of scores is not in the file: llama.cpp takes a model of 62 layers for the one of 27B. */
static int put_gemma3(struct gguf_source *s)
{
    double theta;
    if (json_is_null(json_object_get(s->out, "sliding_window")))
        json_object_del(s->out, "sliding_window"); /* layer_types says that no layer has one */
    const bool largest = whole_of(s, "num_hidden_layers") == GGUF_GEMMA3_27B_LAYERS;
    put_whole(s, "query_pre_attn_scalar",
              largest ? whole_of(s, "hidden_size") / whole_of(s, "num_attention_heads")
                      : whole_of(s, "head_dim"));
    TRY(gguf_positive(s, "rope.local.freq_base", 1e4, &theta)); /* as Ollama writes it */
    return put_positive(s, "rope.freq_base_swa", "rope_local_base_freq", theta);
}

/* A dense GraniteMoeHybrid has its MLP as a shared expert, whose size then stands under both names. */
static int check_shared_mlp(const struct gguf_source *s)
{
    const int64_t size = whole_of(s, "intermediate_size");
    int64_t shared;
    TRY(gguf_whole(s, SHARED_SIZE_KEY, size, &shared));
    if (shared != size && shared != 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s." SHARED_SIZE_KEY " is %lld, and the MLP is of %lld; use another model",
                    s->g->path, s->arch->name, (long long)shared, (long long)size);
    return 0;
}

static int put_granite(struct gguf_source *s)
{
    char key[128];
    double scale;
    TRY(check_shared_mlp(s));
    TRY(put_positive(s, "embedding_scale", "embedding_multiplier", 1));
    TRY(put_positive(s, "residual_scale", "residual_multiplier", 1));
    TRY(put_positive(s, "logit_scale", "logits_scaling", NAN));
    TRY(gguf_number(s->g, gguf_key(s, "attention.scale", key), 0, &scale));
    const double missing = 1 / sqrt((double)whole_of(s, "head_dim"));
    if (scale != 0)
        return put_positive(s, "attention.scale", "attention_multiplier", NAN);
    json_object_set_new(s->out, "attention_multiplier", json_real(missing));
    return 0;
}

/* Older files lack the factors, and llama.cpp's defaults for them are not those of the model. */
static int put_minicpm(struct gguf_source *s)
{
    double residual, logits;
    TRY(put_positive(s, "embedding_scale", "scale_emb", NAN));
    TRY(gguf_positive(s, "residual_scale", NAN, &residual));
    TRY(gguf_positive(s, "logit_scale", NAN, &logits));
    json_object_set_new(s->out, "scale_depth",
                        json_real(residual * sqrt((double)whole_of(s, "num_hidden_layers"))));
    json_object_set_new(s->out, "dim_model_base",
                        json_real((double)whole_of(s, "hidden_size") / logits));
    return 0;
}

static const struct {
    const char *arch;
    int (*put)(struct gguf_source *s);
} own[] = {
    {"gemma3", put_gemma3},
    {"granite", put_granite},
    {"minicpm", put_minicpm},
};

/* ---- the configuration ---- */

static int put_all(struct gguf_source *s)
{
    TRY(put_sizes(s));
    TRY(refuse_other_heads(s));
    TRY(put_windows(s));
    TRY(refuse_features(s));
    if (has_experts(s))
        TRY(put_experts(s));
    TRY(put_vocab(s));
    TRY(put_tokens(s));
    put_biases(s);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i].arch, s->arch->name) == 0)
            TRY(own[i].put(s));
    return gguf_put_rope(s);
}

int gguf_config_fields(const struct gguf *g, json_t **out)
{
    struct gguf_source s = {.g = g};
    *out = NULL;
    TRY(refuse_kind(g));
    TRY(find_arch(g, &s.arch));
    json_memory_begin();
    s.out = json_object();
    int rc = put_all(&s);
    if (json_memory_end())
        rc = fail(NJ_E_NOMEM, "%s: out of memory for its metadata", g->path);
    if (rc == 0)
        *out = s.out;
    else
        json_decref(s.out);
    return rc;
}

/* Return the file's name for a field: a key, or a tensor whose presence decides it. */
static struct config_name name_of(const void *of, const char *field)
{
    static const struct same_field known[] = {
        {"attention.head_count_kv", "num_key_value_heads"},
        {"attention.key_length", "head_dim"},
        {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
        {"attention.layer_norm_rms_epsilon", "norm_eps"},
        {"shortconv.l_cache", "conv_L_cache"},
        {"ssm.conv_kernel", "linear_conv_kernel_dim"},
        {"ssm.state_size", "linear_key_head_dim"},
        {"ssm.group_count", "linear_num_key_heads"},
        {"ssm.time_step_rank", "linear_num_value_heads"},
        {"ssm.inner_size", "linear_value_head_dim"},
        {"attention.sliding_window", "sliding_window"},
        {"attention.sliding_window_pattern", "layer_types"},
        {"rope.freq_base", "rope_theta"},
        {"rope.freq_base_swa", "rope_local_base_freq"},
        {TEMPERATURE_KEY, "llama_4_scaling_beta"},
        {"rope.dimension_count", "partial_rotary_factor"},
        {"embedding_scale", "embedding_multiplier"},
        {"embedding_scale", "scale_emb"},
        {"residual_scale", "residual_multiplier"},
        {"residual_scale", "scale_depth"},
        {"logit_scale", "logits_scaling"},
        {"logit_scale", "dim_model_base"},
        {"attention.scale", "attention_multiplier"},
        {"vocab_size", "vocab_size"},
        {"expert_count", "num_experts"},
        {"expert_used_count", "num_experts_per_tok"},
        {"expert_feed_forward_length", "moe_intermediate_size"},
    };
    static const char scaling[] = "rope_scaling";
    const struct gguf_arch *arch = of;
    struct config_name out;
    snprintf(out.text, sizeof out.text, "%s", field);
    if (strstr(field, "_token_id"))
        snprintf(out.text, sizeof out.text, "tokenizer.ggml.%s", field);
    if (strcmp(field, "attention_bias") == 0)
        snprintf(out.text, sizeof out.text, "blk.0.attn_q.bias");
    if (strncmp(field, scaling, strlen(scaling)) == 0)
        snprintf(out.text, sizeof out.text, "%s.rope.scaling%s", arch->name,
                 field + strlen(scaling));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].field, field) == 0)
            snprintf(out.text, sizeof out.text, "%s.%s", arch->name, known[i].key);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(sizes[i].field, field) == 0)
            snprintf(out.text, sizeof out.text, "%s.%s", arch->name, sizes[i].key);
    return out;
}

int gguf_read_config(const struct gguf *g, struct model_config *out)
{
    const struct gguf_arch *arch = NULL;
    json_t *fields;
    TRY(gguf_config_fields(g, &fields));
    int rc = find_arch(g, &arch);
    if (rc == 0)
        rc = config_from(&(struct config_file){g->path, name_of, arch, GGUF_CONVERT}, fields, out);
    json_decref(fields);
    if (rc == 0 && (arch->rules & RULE_BIT(ROPE_LLAMA3)) != 0)
        rc = gguf_read_rope_freqs(g->path, &g->tensors, out);
    return rc;
}
