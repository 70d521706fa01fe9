/* SPDX-License-Identifier: Apache-2.0
 *
 * families.h: tables of the supported model families and activations, one row each. The trainer and blobcheck read
 * them.
 */
#ifndef NOJIT_FAMILIES_H
#define NOJIT_FAMILIES_H

#include "base/activation.h"
#include "base/features.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { RENAMES_MOST = 4 };

/* A family of models: the facts that its name implies, and defaults for fields missing from config.json. */
static const struct family {
    const char *model_type, *architecture; /* names in transformers */
    unsigned attention, mlp;               /* features of its blocks of either kind */
    float gain_offset;                     /* number added to the gains of all norms */
    int head_dim;                          /* 0: hidden_size / heads */
    int kv_heads;                          /* 0: as many as heads */
    int max_positions;
    double rms_eps, rope_theta;
    bool tied;
    int window; /* sliding_window where it is always on; 0: use_sliding_window decides */
    /* Parts of the names of tensors in a layer that differ from those of tensor_names.c. */
    struct tensor_rename {
        const char *from, *to;
    } rename[RENAMES_MOST];
    /* Name in GGUF files, a row of gguf_archs.h; NULL: they are neither read nor written.
     * Whether RoPE there rotates neighbouring rows, so that the rows of a head's two halves alternate. */
    const char *gguf;
    bool gguf_pairs;
} families[] = {
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .max_positions = 2048,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .gguf = "llama",
     .gguf_pairs = true},
    {.model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .kv_heads = 8,
     .max_positions = 131072,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .window = 4096,
     .gguf = "llama",
     .gguf_pairs = true},
    {.model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QKV_BIAS),
     .mlp = NORMED_BEFORE,
     .kv_heads = 32,
     .max_positions = 32768,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .gguf = "qwen2"},
    {.model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QK_NORM),
     .mlp = NORMED_BEFORE,
     .head_dim = 128,
     .kv_heads = 32,
     .max_positions = 32768,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .gguf = "qwen3"},
    {.model_type = "ministral3",
     .architecture = "Ministral3ForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .kv_heads = 8,
     .max_positions = 262144,
     .rms_eps = 1e-5,
     .rope_theta = 1e6,
     .gguf = "mistral3",
     .gguf_pairs = true},
    {.model_type = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .kv_heads = 4,
     .max_positions = 32768,
     .rms_eps = 1e-6,
     .rope_theta = 2e6,
     .gguf = "smollm3",
     .gguf_pairs = true},
    {.model_type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .attention = NORMED_BEFORE | NORMED_AFTER | FEATURE_BIT(FEATURE_QK_NORM),
     .mlp = NORMED_BEFORE | NORMED_AFTER,
     .gain_offset = 1,
     .head_dim = 256,
     .kv_heads = 4,
     .max_positions = 131072,
     .rms_eps = 1e-6,
     .rope_theta = 1e6,
     .tied = true,
     .rename = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                {"post_attention_layernorm", "pre_feedforward_layernorm"},
                {"post_mlp_layernorm", "post_feedforward_layernorm"}},
     .gguf = "gemma3"},
    {.model_type = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .attention = NORMED_AFTER | FEATURE_BIT(FEATURE_QK_NORM_ROW),
     .mlp = NORMED_AFTER,
     .max_positions = 2048,
     .rms_eps = 1e-5,
     .rope_theta = 1e4,
     .rename = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                {"post_mlp_layernorm", "post_feedforward_layernorm"}},
     .gguf = "olmo2"},
    {.model_type = "olmo3",
     .architecture = "Olmo3ForCausalLM",
     .attention = NORMED_AFTER | FEATURE_BIT(FEATURE_QK_NORM_ROW),
     .mlp = NORMED_AFTER,
     .max_positions = 2048,
     .rms_eps = 1e-5,
     .rope_theta = 1e4,
     .rename = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                {"post_mlp_layernorm", "post_feedforward_layernorm"}},
     .gguf = "olmo2"},
    {.model_type = "granite",
     .architecture = "GraniteForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .max_positions = 2048,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .gguf = "granite",
     .gguf_pairs = true},
    {.model_type = "granitemoehybrid",
     .architecture = "GraniteMoeHybridForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE | FEATURE_BIT(FEATURE_FUSED_GATE_UP),
     .max_positions = 2048,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .rename = {{"mlp.gate_up_proj", "shared_mlp.input_linear"},
                {"mlp.down_proj", "shared_mlp.output_linear"}},
     .gguf = "granite",
     .gguf_pairs = true},
    {.model_type = "phi3",
     .architecture = "Phi3ForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_FUSED_QKV),
     .mlp = NORMED_BEFORE | FEATURE_BIT(FEATURE_FUSED_GATE_UP),
     .max_positions = 4096,
     .rms_eps = 1e-5,
     .rope_theta = 1e4,
     .gguf = "phi3"},
    {.model_type = "glm4",
     .architecture = "Glm4ForCausalLM",
     .attention = NORMED_BEFORE | NORMED_AFTER | FEATURE_BIT(FEATURE_QKV_BIAS),
     .mlp = NORMED_BEFORE | NORMED_AFTER | FEATURE_BIT(FEATURE_FUSED_GATE_UP),
     .head_dim = 128,
     .kv_heads = 2,
     .max_positions = 131072,
     .rms_eps = 1.5625e-7,
     .rope_theta = 1e4,
     .gguf = "glm4"},
    {.model_type = "exaone4",
     .architecture = "Exaone4ForCausalLM",
     .attention = NORMED_AFTER | FEATURE_BIT(FEATURE_QK_NORM),
     .mlp = NORMED_AFTER,
     .kv_heads = 32,
     .max_positions = 2048,
     .rms_eps = 1e-5,
     .rope_theta = 1e4,
     .rename = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                {"post_mlp_layernorm", "post_feedforward_layernorm"}},
     .gguf = "exaone4"},
    {.model_type = "hunyuan_v1_dense",
     .architecture = "HunYuanDenseV1ForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QK_NORM) | FEATURE_BIT(FEATURE_QK_GAIN_LAST),
     .mlp = NORMED_BEFORE,
     .max_positions = 2048,
     .rms_eps = 1e-5,
     .rope_theta = 1e4,
     .rename = {{"self_attn.q_norm", "self_attn.query_layernorm"},
                {"self_attn.k_norm", "self_attn.key_layernorm"}},
     .gguf = "hunyuan-dense"},
    {.model_type = "minicpm",
     .architecture = "MiniCPMForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .max_positions = 2048,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .gguf = "minicpm",
     .gguf_pairs = true},
};

/* Values of hidden_act, and the kernels that compute each. The first is the default of a config.json without it. */
static const struct hidden_act {
    const char *name;
    enum nj_activation kernels;
} hidden_acts[] = {
    {"silu", NJ_SILU},
    {"swish", NJ_SILU},
    {"gelu", NJ_GELU},
    {"gelu_python", NJ_GELU},
    {"gelu_pytorch_tanh", NJ_GELU_TANH},
    {"gelu_python_tanh", NJ_GELU_TANH},
    {"gelu_new", NJ_GELU_TANH},
};

enum {
    FAMILIES = sizeof families / sizeof *families,
    HIDDEN_ACTS = sizeof hidden_acts / sizeof *hidden_acts,
    NAMES_BYTES = 256
};

static inline const struct family *family_find(const char *model_type)
{
    for (int i = 0; i < FAMILIES; i++)
        if (strcmp(families[i].model_type, model_type) == 0)
            return &families[i];
    return NULL;
}

/* Return the first family whose GGUF files have this architecture, or NULL. */
static inline const struct family *family_of_gguf(const char *gguf)
{
    for (int i = 0; i < FAMILIES; i++)
        if (families[i].gguf && strcmp(families[i].gguf, gguf) == 0)
            return &families[i];
    return NULL;
}

/* Return the row of a name, or -1. */
static inline int hidden_act_find(const char *name)
{
    for (int i = 0; i < HIDDEN_ACTS; i++)
        if (strcmp(hidden_acts[i].name, name) == 0)
            return i;
    return -1;
}

/* Append the name in row i of a list: "a, b and c are supported". */
static inline void name_append(char out[NAMES_BYTES], const char *name, int i, int rows)
{
    const size_t used = strlen(out);
    snprintf(out + used, NAMES_BYTES - used, "%s%s", name,
             i + 2 < rows    ? ", "
             : i + 2 == rows ? " and "
                             : " are supported");
}

static inline const char *families_supported(char out[NAMES_BYTES])
{
    out[0] = '\0';
    for (int i = 0; i < FAMILIES; i++)
        name_append(out, families[i].model_type, i, FAMILIES);
    return out;
}

static inline const char *hidden_acts_supported(char out[NAMES_BYTES])
{
    out[0] = '\0';
    for (int i = 0; i < HIDDEN_ACTS; i++)
        name_append(out, hidden_acts[i].name, i, HIDDEN_ACTS);
    return out;
}

#endif
