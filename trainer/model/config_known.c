/* SPDX-License-Identifier: Apache-2.0
 *
 * config_known.c: see config_known.h. The lists hold the fields of the families' configuration classes in transformers
 * 5.24 and of their base classes, those of earlier versions, and those that other programs add to files of these
 * families.
 */
#include "model/config_known.h"

#include "io/error.h"

#include <stdlib.h>
#include <string.h>

/* Fields of all families that config.c, config_layers.c, config_rope.c, the tokenizer or the settings of generation
 * read. */
static const char *const read_fields[] = {
    "attention_dropout",
    "audio_config",
    "bos_token_id",
    "eos_token_id",
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "layer_types",
    "max_position_embeddings",
    "max_window_layers",
    "model_type",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "original_max_position_embeddings",
    "partial_rotary_factor",
    "quantization_config",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "sliding_window",
    "text_config",
    "tie_word_embeddings",
    "use_sliding_window",
    "vision_config",
    "vocab_size",
};

/* Fields of some families: read, or without a use in a model of attention and gated MLPs. */
static const struct group_field {
    unsigned group;
    const char *name;
} group_fields[] = {
    {FIELDS_PATTERN, "_sliding_window_pattern"},
    {FIELDS_PATTERN, "sliding_window_pattern"},
    {FIELDS_GEMMA, "cache_implementation"},
    {FIELDS_GEMMA, "query_pre_attn_scalar"},
    {FIELDS_GEMMA, "rope_local_base_freq"},
    {FIELDS_MULTIPLIERS, "attention_multiplier"},
    {FIELDS_UNROTATED, "no_rope_layer_interval"},
    {FIELDS_UNROTATED, "no_rope_layers"},
    {FIELDS_BASES, "layer_rope_theta"},
    {FIELDS_MUSE, "output_multiplier"},
    {FIELDS_MUSE, "post_norm_eps"},
    {FIELDS_MUSE, "qk_scale_factor"},
    {FIELDS_HUNYUAN, "attention_head_dim"},
    {FIELDS_HUNYUAN, "cla_share_factor"}, /* use_cla is false */
    {FIELDS_HUNYUAN, "class_num"},
    {FIELDS_HUNYUAN, "dense_list"},
    {FIELDS_HUNYUAN, "eod_token_id"},
    {FIELDS_HUNYUAN, "im_end_id"},
    {FIELDS_HUNYUAN, "im_newline_id"},
    {FIELDS_HUNYUAN, "im_start_id"},
    {FIELDS_HUNYUAN, "image_token_id"},
    {FIELDS_HUNYUAN, "mask_init_id"},
    {FIELDS_HUNYUAN, "norm_type"},
    {FIELDS_HUNYUAN, "org_vocab_size"},
    {FIELDS_HUNYUAN, "pool_type"},
    {FIELDS_HUNYUAN, "text_end_id"},
    {FIELDS_HUNYUAN, "text_start_id"},
    {FIELDS_DEPTH, "dim_model_base"},
    {FIELDS_DEPTH, "mup_denominator"},
    {FIELDS_DEPTH, "scale_depth"},
    {FIELDS_DEPTH, "scale_emb"},
    {FIELDS_EXPERTS, "decoder_sparse_step"},
    {FIELDS_EXPERTS, "mlp_only_layers"},
    {FIELDS_EXPERTS, "moe_intermediate_size"},
    {FIELDS_EXPERTS, "norm_topk_prob"},
    {FIELDS_EXPERTS | FIELDS_OSS, "num_experts_per_tok"},
    {FIELDS_EXPERTS | FIELDS_OSS, "output_router_logits"},
    {FIELDS_EXPERTS | FIELDS_OSS, "router_aux_loss_coef"},
    {FIELDS_LEADING, "routed_scaling_factor"},
    {FIELDS_EXPERT_BIAS, "num_dense_layers"},
    {FIELDS_EXPERT_BIAS, "use_expert_bias"},
    {FIELDS_GLM, "first_k_dense_replace"},
    {FIELDS_GLM, "n_group"},
    {FIELDS_GLM, "n_shared_experts"},
    {FIELDS_GLM, "topk_group"},
    {FIELDS_GLM, "num_mtp_layers"}, /* layers that predict further tokens */
    {FIELDS_GLM, "num_nextn_predict_layers"},
    {FIELDS_OSS, "experts_per_token"},
    {FIELDS_OSS, "initial_context_length"}, /* rope_scaling has it, too */
    {FIELDS_OSS, "swiglu_alpha"},
    {FIELDS_OSS, "swiglu_limit"},
    {FIELDS_ADJUST, "block_auto_adjust_ff_dim"},
    {FIELDS_ADJUST, "block_dim"}, /* the class takes hidden_size and norm_eps */
    {FIELDS_ADJUST, "block_ff_dim"},
    {FIELDS_ADJUST, "block_ffn_dim_multiplier"},
    {FIELDS_ADJUST, "block_mlp_init_scale"},
    {FIELDS_ADJUST, "block_multiple_of"},
    {FIELDS_ADJUST, "block_norm_eps"},
    {FIELDS_ADJUST, "block_out_init_scale"},
    {FIELDS_ADJUST, "block_use_xavier_init"},
    {FIELDS_CONV, "conv_L_cache"},
    {FIELDS_ADJUST, "conv_dim"},
    {FIELDS_ADJUST, "conv_dim_out"},
    {FIELDS_ADJUST, "conv_use_xavier_init"},
    {FIELDS_ADJUST, "full_attn_idxs"},
    {FIELDS_ADJUST, "num_heads"},
    {FIELDS_CONV, "tie_embedding"},
    {FIELDS_DELTA, "full_attention_interval"},
    {FIELDS_DELTA, "linear_conv_kernel_dim"},
    {FIELDS_DELTA, "linear_key_head_dim"},
    {FIELDS_DELTA, "linear_num_key_heads"},
    {FIELDS_DELTA, "linear_num_value_heads"},
    {FIELDS_DELTA, "linear_value_head_dim"},
    {FIELDS_DELTA, "mtp_num_hidden_layers"}, /* heads that predict further tokens */
    {FIELDS_DELTA, "mtp_use_dedicated_embeddings"},
    {FIELDS_HYBRID, "init_method"},
    {FIELDS_HYBRID, "mamba_chunk_size"},
    {FIELDS_HYBRID, "mamba_conv_bias"},
    {FIELDS_HYBRID, "mamba_d_conv"},
    {FIELDS_HYBRID, "mamba_d_head"},
    {FIELDS_HYBRID, "mamba_d_state"},
    {FIELDS_HYBRID, "mamba_expand"},
    {FIELDS_HYBRID, "mamba_n_groups"},
    {FIELDS_HYBRID, "mamba_n_heads"},
    {FIELDS_HYBRID, "mamba_proj_bias"},
    {FIELDS_HYBRID, "num_experts_per_tok"},
    {FIELDS_HYBRID, "output_router_logits"},
    {FIELDS_HYBRID, "position_embedding_type"},
    {FIELDS_HYBRID, "router_aux_loss_coef"},
    {FIELDS_HYBRID, "shared_intermediate_size"},
};

/* Fields that change nothing of what a model computes. */
static const char *const unused_fields[] = {
    /* origin of the model, and the class that loads it */
    "_commit_hash",
    "_name_or_path",
    "architectures",
    "auto_map",
    "base_model_name_or_path",
    "dtype",
    "is_llama_config",
    "model_name",
    "name_or_path",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    /* way of computing that does not change the result */
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_attn_implementation_internal",
    "_experts_implementation_internal",
    "_flash_attn_2_enabled",
    "attn_implementation",
    "chunk_size_feed_forward",
    "experts_implementation",
    "pretraining_tp", /* cuts products into parts that have the same sum */
    "torchscript",
    "use_bfloat16",
    "use_cache",
    /* initialization and training */
    "attn_pdrop",
    "embd_pdrop",
    "gradient_checkpointing",
    "hidden_dropout",
    "initializer_range",
    "loss_type",
    "resid_pdrop",
    "tf_legacy_loss",
    /* selection of a class's outputs */
    "finetuning_task",
    "id2label",
    "is_decoder",
    "label2id",
    "num_labels",
    "output_attentions",
    "output_hidden_states",
    "problem_type",
    "return_dict",
    "task_specific_params",
    "tie_encoder_decoder",
    "tie_last_hidden_states",
    "use_return_dict",
    /* tokens and texts */
    "cls_token_id",
    "decoder_start_token_id",
    "mask_token_id",
    "max_sequence_length",
    "model_max_length",
    "pad_token_id",
    "prefix",
    "sep_token_id",
    "tokenizer_class",
    "tokenizer_model_max_length",
    "unk_token_id",
    /* generation, as earlier versions wrote it */
    "assistant_confidence_threshold",
    "assistant_lookbehind",
    "bad_words_ids",
    "begin_suppress_tokens",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "encoder_repetition_penalty",
    "epsilon_cutoff",
    "eta_cutoff",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "length_penalty",
    "max_length",
    "max_new_tokens",
    "min_length",
    "no_repeat_ngram_size",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_scores",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict_in_generate",
    "suppress_tokens",
    "target_lookbehind",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    /* sizes of blocks that no model of these families has */
    "time_step_limit",
};

#define NO_EXPERTS                                                                                 \
    "mixtures of experts are not supported in this family; use a dense model, or one of a family " \
    "with experts (nojit models)"
#define NO_CAPS "caps of scores and logits are not supported; use a model without them"
#define NO_MULTIPLIERS "multipliers are not supported; use a model without them"
#define NO_DECODER "only models of a decoder alone are supported; use a language model"
#define NO_PAIRS "heads must rotate their two halves; use a model that does"
#define QK_NORMS (FEATURE_BIT(FEATURE_QK_NORM) | FEATURE_BIT(FEATURE_QK_NORM_ROW))

/* Fields that would change the computation, and their values that do not. */
static const struct neutral_field {
    const char *name;
    const char *neutral; /* values in JSON, separated by spaces; null always changes nothing */
    /* Groups of fields, features of attention, and rules of windows of families that read the field, or compute what
     * any value of it asks for; 0: none. */
    unsigned group, features, windows;
    const char *remedy;
} neutral_fields[] = {
    {"attention_bias", "false", 0, FEATURE_BIT(FEATURE_QKV_BIAS), 0,
     "biases of this family are not supported; use a model without them"},
    {"qkv_bias", "false", 0, 0, 0,
     "biases of this family are not supported; use a model without them"},
    {"mlp_bias", "false", FIELDS_MLP_BIAS, 0, 0,
     "biases in the MLP are not supported in this family; use a model without them"},
    {"conv_bias", "false", 0, 0, 0,
     "biases of convolutions are not supported; use a model without them"},
    {"attn_output_gate", "false", 0, FEATURE_BIT(FEATURE_GATED_Q), 0,
     "the output of attention is not gated in this family; use a model without gates"},
    {"mamba_ssm_dtype", "\"float32\"", 0, 0, 0,
     "states must be float32; use a model whose states are"},
    {"block_use_swiglu", "true", 0, 0, 0, "MLPs must be gated; use a model whose MLPs are"},
    {"use_pos_enc", "true", 0, 0, 0, "heads must rotate; use a model that does"},
    {"is_causal", "true", 0, 0, 0, "only causal models are supported; use a language model"},
    {"use_bidirectional_attention", "false", 0, 0, 0,
     "only causal models are supported; use a language model"},
    {"num_local_experts", "0 1", FIELDS_EXPERTS | FIELDS_OSS, 0, 0, NO_EXPERTS},
    {"num_experts", "0 1", FIELDS_EXPERTS | FIELDS_OSS, 0, 0, NO_EXPERTS},
    {"shared_expert_intermediate_size", "0", FIELDS_SHARED, 0, 0,
     "shared experts are not supported in this family; use a model without them"},
    {"n_routed_experts", "0 1", FIELDS_GLM, 0, 0, NO_EXPERTS},
    {"is_encoder_decoder", "false", 0, 0, 0, NO_DECODER},
    {"add_cross_attention", "false", 0, 0, 0, NO_DECODER},
    {"per_layer_config", "{}", 0, 0, 0, "layers must be alike; use a model whose layers are"},
    {"pruned_heads", "{}", 0, 0, 0,
     "all layers must have all heads; use a model without pruned ones"},
    {"normalization_function", "\"rmsnorm\"", 0, 0, 0,
     "norms must be rmsnorm; use a model with these"},
    {"rope_interleaved", "false", 0, 0, 0, NO_PAIRS},
    {"rope_traditional", "false", 0, 0, 0, NO_PAIRS},
    {"add_classification_head", "false", 0, 0, 0, "use a model with a head for tokens"},
    {"position_embedding_xdrope", "false", 0, 0, 0,
     "only positions of text are supported; use a language model"},
    {"use_cla", "false", 0, 0, 0,
     "layers must have keys of their own; use a model whose layers do"},
    {"use_rotary_pos_emb", "true", 0, 0, 0, "heads must rotate; use a model that does"},
    {"use_mrope", "false", 0, 0, 0, "only positions of text are supported; use a language model"},
    {"use_qk_norm", "false", 0, QK_NORMS, 0,
     "norms of queries and keys are not supported in this family; use a model without them"},
    {"use_sliding_window", "false", 0, 0, ~1u << WINDOW_NONE,
     "models of this family have no windows; set it to false"},
    {"embedding_multiplier", "1", FIELDS_MULTIPLIERS, 0, 0, NO_MULTIPLIERS},
    {"residual_multiplier", "1", FIELDS_MULTIPLIERS, 0, 0, NO_MULTIPLIERS},
    {"logits_scaling", "1", FIELDS_MULTIPLIERS, 0, 0, NO_MULTIPLIERS},
    {"attn_logit_softcapping", "", 0, 0, 0, NO_CAPS},
    {"final_logit_softcapping", "", FIELDS_GEMMA | FIELDS_MUSE, 0, 0, NO_CAPS},
};

enum {
    READ_FIELDS = sizeof read_fields / sizeof *read_fields,
    UNUSED_FIELDS = sizeof unused_fields / sizeof *unused_fields,
    GROUP_FIELDS = sizeof group_fields / sizeof *group_fields,
    NEUTRAL_FIELDS = sizeof neutral_fields / sizeof *neutral_fields
};

/* Return whether a value equals one word of JSON; numbers compare by value, so that 1.0 is 1. */
static bool is_value(const json_t *value, const char *word, size_t bytes)
{
    char text[16] = "";
    if (bytes >= sizeof text)
        return false;
    memcpy(text, word, bytes);
    if (json_is_number(value))
        return text[strspn(text, "0123456789")] == '\0' &&
               json_number_value(value) == strtod(text, NULL);
    return (json_is_true(value) && strcmp(text, "true") == 0) ||
           (json_is_false(value) && strcmp(text, "false") == 0) ||
           (json_is_string(value) && json_string_length(value) + 2 == bytes && text[0] == '"' &&
            memcmp(text + 1, json_string_value(value), bytes - 2) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0 && strcmp(text, "{}") == 0);
}

static bool is_neutral(const struct neutral_field *row, const json_t *value)
{
    for (const char *at = row->neutral; *at != '\0'; at += strspn(at, " ")) {
        const size_t bytes = strcspn(at, " ");
        if (is_value(value, at, bytes))
            return true;
        at += bytes;
    }
    return false;
}

/* Return whether the family reads the field, or computes what it asks for. */
static bool is_free(const struct neutral_field *row, const struct family *family)
{
    return (row->group & family->fields) != 0 ||
           (row->features & (family->attention | family->biases)) != 0 ||
           (row->windows & 1u << family->windows) != 0;
}

int config_refuse_values(const struct fields *f, const struct family *family)
{
    for (int i = 0; i < NEUTRAL_FIELDS; i++) {
        const struct neutral_field *row = &neutral_fields[i];
        const json_t *value = field_get(f, row->name);
        if (value && !is_free(row, family) && !is_neutral(row, value))
            return field_refuse(f, NJ_E_UNSUPPORTED, row->name, value, row->remedy);
    }
    return 0;
}

static bool is_listed(const char *const *list, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

static bool is_known(const struct family *family, const char *name)
{
    for (int i = 0; i < NEUTRAL_FIELDS; i++)
        if (strcmp(neutral_fields[i].name, name) == 0)
            return true;
    for (int i = 0; i < GROUP_FIELDS; i++)
        if (strcmp(group_fields[i].name, name) == 0 &&
            (group_fields[i].group & family->fields) != 0)
            return true;
    return is_listed(read_fields, READ_FIELDS, name) ||
           is_listed(unused_fields, UNUSED_FIELDS, name) ||
           strcmp(name, family_act_field(family)) == 0 ||
           strcmp(name, family_eps_field(family)) == 0;
}

int config_refuse_unknown(const struct fields *f, const struct family *family)
{
    const char *name;
    json_t *value;
    json_object_foreach(f->object, name, value)
    {
        if (!json_is_null(value) && !is_known(family, name))
            return field_refuse(f, NJ_E_UNSUPPORTED, name, value,
                                "this field is not known, and may change what the model computes; "
                                "remove it if the model is the same without it");
    }
    return 0;
}
