/* SPDX-License-Identifier: Apache-2.0
 *
 * families.h: the table of the supported model families, one row each. The trainer and blobcheck read
 * them.
 */
#ifndef NOJIT_FAMILIES_H
#define NOJIT_FAMILIES_H

#include "base/features.h"
#include "base/hidden_act.h"
#include "base/route.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { RENAMES_MOST = 9 };

#define ALL_BIASES (FEATURE_BIT(FEATURE_QKV_BIAS) | FEATURE_BIT(FEATURE_O_BIAS))

/* Which layers have the window, unless layer_types lists them. */
enum window_rule {
    WINDOW_NONE,      /* no layer */
    WINDOW_ALL,       /* every layer, whatever layer_types says */
    WINDOW_EACH,      /* every layer */
    WINDOW_BUT_LAST,  /* all but the last of every `period` layers */
    WINDOW_BUT_FIRST, /* all but the first of every `period` layers */
    WINDOW_TO_LAST,   /* all but the last layer and those a multiple of `period` before it */
    WINDOW_FROM,      /* with use_sliding_window, those from max_window_layers on */
    WINDOW_UNROTATED  /* with use_sliding_window, those that do not rotate */
};

/* Which table of rotations a layer has. */
enum rotation_rule {
    ROTATION_ONE,       /* the same for all layers */
    ROTATION_BY_WINDOW, /* layers with the window have a table of their own */
    ROTATION_WINDOWED,  /* layers without the window do not rotate, if there is one */
    ROTATION_LISTED,    /* layers do not rotate where no_rope_layers has 0 */
    ROTATION_BASES,     /* layer_rope_theta has the base of each layer; 0: it does not rotate */
    /* layers do not rotate where layer_rope_theta has 0; without it, each `period`-th from the last one back */
    ROTATION_ZEROS,
    ROTATION_NAMED /* nothing rotates unless position_embedding_type is "rope" */
};

/* Groups of fields of config.json that only some families have. */
enum {
    FIELDS_MLP_BIAS = 1 << 0,    /* mlp_bias */
    FIELDS_PATTERN = 1 << 1,     /* sliding_window_pattern */
    FIELDS_ROTARY = 1 << 2,      /* partial_rotary_factor */
    FIELDS_LONGROPE = 1 << 3,    /* rope types "su" and "yarn" stand for longrope */
    FIELDS_BETA = 1 << 4,        /* llama_4_scaling_beta */
    FIELDS_GEMMA = 1 << 5,       /* query_pre_attn_scalar and others */
    FIELDS_MULTIPLIERS = 1 << 6, /* embedding_multiplier and others */
    FIELDS_HYBRID = 1 << 7, /* sizes of experts and recurrent layers, which a dense model lacks */
    FIELDS_UNROTATED = 1 << 8, /* no_rope_layers, no_rope_layer_interval */
    FIELDS_HUNYUAN = 1 << 9,   /* alpha of rope type "dynamic" and others */
    FIELDS_DEPTH = 1 << 10,    /* scale_emb, scale_depth, dim_model_base */
    FIELDS_BASES = 1 << 11,    /* layer_rope_theta */
    FIELDS_EXPERTS = 1 << 12,  /* moe_intermediate_size and others */
    FIELDS_MUSE = 1 << 13,     /* qk_scale_factor, output_multiplier, post_norm_eps */
    FIELDS_OSS = 1 << 14,      /* swiglu_limit and others; models that are read, not written */
    FIELDS_CONV = 1 << 15,     /* conv_L_cache, block_ff_dim, norm_eps and others */
    FIELDS_DELTA = 1 << 16,    /* linear_num_value_heads and others */
    FIELDS_SPARSE = 1 << 17, /* decoder_sparse_step, mlp_only_layers, intermediate_size of others */
    FIELDS_SHARED = 1 << 18, /* shared_expert_intermediate_size */
};

/* A family of models: the facts that its name implies, and defaults for fields missing from config.json. */
static const struct family {
    const char *model_type, *architecture; /* names in transformers */
    const char *models;                    /* published models of the family, for people */
    const char *limits; /* conditions that models must meet to be read, for people; NULL: none */
    const char *tried; /* sizes that have run, beside small ones of every family; NULL: no others */
    const char *listed;      /* family of a file that has layer_types; NULL: this one */
    unsigned attention, mlp; /* features of its blocks of either kind */
    unsigned recurrent;      /* features of blocks in the place of attention; 0: it has none */
    const char *act;         /* activation; NULL: silu */
    unsigned biases;         /* features of attention that attention_bias switches */
    unsigned fields;         /* FIELDS_* that it has */
    float gain_offset;       /* number added to the gains of all norms */
    bool plain_final;        /* whether the final norm's gain has no such number */
    bool embed_root;         /* embeddings are multiplied by sqrt(hidden_size) */
    bool embed_normed;       /* embeddings are normed, without a gain */
    int head_dim;            /* 0: hidden_size / heads */
    int kv_heads;            /* 0: as many as heads */
    int max_positions;
    int original_positions; /* original_max_position_embeddings; 0: max_positions */
    double rms_eps, rope_theta;
    double window_theta;  /* base of the table of layers with the window; 0: rope_theta */
    double rotary;        /* partial_rotary_factor; 0: whole heads rotate */
    bool neighbors;       /* element 2i rotates with 2i + 1 */
    bool rope_needed;     /* a file must have rope_parameters */
    enum nj_route router; /* rule of its routers, if its layers have experts */
    bool renormalized;    /* norm_topk_prob */
    bool tied;
    enum window_rule windows;
    enum rotation_rule rotation;
    int window, period; /* sliding_window (0: none), sliding_window_pattern */
    /* Sizes of a model whose file leaves them out; 0: it must have them. */
    int hidden_size, ffn_size, layers, heads, vocab_size;
    int experts, experts_used, expert_size, shared_size;
    /* Parts of the names of tensors that differ from those of tensor_names.c. */
    struct tensor_rename {
        const char *from, *to;
    } rename[RENAMES_MOST];
    /* Name in GGUF files, a row of gguf_archs.h; NULL: they are neither read nor written.
     * Whether RoPE there rotates neighbouring rows, so that the rows of a head's two halves alternate. */
    const char *gguf;
    bool gguf_pairs;
} families[] = {
    {.model_type = "llama",
     .models = "Llama 2 and 3, SmolLM2, TinyLlama",
     .tried = "SmolLM2 135M as published; 1.2B, 3.2B, 8B",
     .architecture = "LlamaForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .biases = ALL_BIASES,
     .fields = FIELDS_MLP_BIAS,
     .max_positions = 2048,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .gguf = "llama",
     .gguf_pairs = true},
    {.model_type = "mistral",
     .models = "Mistral 7B, Mistral Small 3 (its text)",
     .tried = "7B",
     .architecture = "MistralForCausalLM",
     .listed = "ministral",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .kv_heads = 8,
     .max_positions = 131072,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .windows = WINDOW_ALL,
     .window = 4096,
     .gguf = "llama",
     .gguf_pairs = true},
    {.model_type = "ministral",
     .models = "Ministral 8B",
     .architecture = "MinistralForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .kv_heads = 8,
     .max_positions = 131072,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .windows = WINDOW_EACH,
     .window = 4096},
    {.model_type = "ministral3",
     .models = "Ministral 3 (its text)",
     .limits = "sequences within original_max_position_embeddings",
     .architecture = "Ministral3ForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .fields = FIELDS_BETA,
     .head_dim = 128,
     .kv_heads = 8,
     .max_positions = 262144,
     .rms_eps = 1e-5,
     .rope_theta = 1e4,
     .rope_needed = true,
     .windows = WINDOW_ALL,
     .gguf = "mistral3",
     .gguf_pairs = true},
    {.model_type = "qwen2",
     .models = "Qwen2, Qwen2.5",
     .tried = "0.5B, 1.5B, 7B",
     .architecture = "Qwen2ForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QKV_BIAS),
     .mlp = NORMED_BEFORE,
     .kv_heads = 32,
     .max_positions = 32768,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .windows = WINDOW_FROM,
     .window = 4096,
     .gguf = "qwen2"},
    {.model_type = "qwen3",
     .models = "Qwen3, dense",
     .tried = "0.6B, 1.7B",
     .architecture = "Qwen3ForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QK_NORM),
     .mlp = NORMED_BEFORE,
     .head_dim = 128,
     .kv_heads = 32,
     .max_positions = 32768,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .windows = WINDOW_FROM,
     .window = 4096,
     .gguf = "qwen3"},
    {.model_type = "qwen3_moe",
     .models = "Qwen3 with experts: 30B-A3B, 235B-A22B, Coder",
     .tried = "30B-A3B",
     .architecture = "Qwen3MoeForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QK_NORM),
     .mlp = NORMED_BEFORE | FEATURE_BIT(FEATURE_EXPERTS),
     .fields = FIELDS_EXPERTS | FIELDS_SPARSE,
     .kv_heads = 4,
     .max_positions = 32768,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .router = NJ_ROUTE_SOFTMAX,
     .experts = 128,
     .experts_used = 8,
     .expert_size = 768,
     .gguf = "qwen3moe"},
    {.model_type = "gpt_oss",
     .models = "gpt-oss 20b and 120b",
     .architecture = "GptOssForCausalLM",
     .attention = NORMED_BEFORE | ALL_BIASES | FEATURE_BIT(FEATURE_SINKS),
     .mlp = NORMED_BEFORE | FEATURE_BIT(FEATURE_EXPERTS) | FEATURE_BIT(FEATURE_MLP_BIAS),
     .biases = ALL_BIASES,
     .fields = FIELDS_OSS,
     .head_dim = 64,
     .kv_heads = 8,
     .max_positions = 131072,
     .rms_eps = 1e-5,
     .rope_theta = 1.5e5,
     .rope_needed = true,
     .router = NJ_ROUTE_TOP_SOFTMAX,
     .windows = WINDOW_BUT_LAST,
     .window = 128,
     .period = 2,
     .hidden_size = 2880,
     .ffn_size = 2880,
     .layers = 36,
     .heads = 64,
     .vocab_size = 201088,
     .experts = 128,
     .experts_used = 4,
     .rename = {{"mlp.gate", "mlp.router"}},
     .gguf = "gpt-oss"},
    {.model_type = "gemma3_text",
     .models = "Gemma 3 (its text)",
     .limits = "without attn_logit_softcapping",
     .tried = "270M as published; 1B, 4B",
     .architecture = "Gemma3ForCausalLM",
     .attention = NORMED_BEFORE | NORMED_AFTER | FEATURE_BIT(FEATURE_QK_NORM),
     .mlp = NORMED_BEFORE | NORMED_AFTER,
     .act = "gelu_pytorch_tanh",
     .fields = FIELDS_GEMMA | FIELDS_PATTERN,
     .gain_offset = 1,
     .embed_root = true,
     .head_dim = 256,
     .kv_heads = 4,
     .max_positions = 131072,
     .rms_eps = 1e-6,
     .rope_theta = 1e6,
     .window_theta = 1e4,
     .tied = true,
     .windows = WINDOW_BUT_LAST,
     .rotation = ROTATION_BY_WINDOW,
     .window = 4096,
     .period = 6,
     .hidden_size = 2304,
     .ffn_size = 9216,
     .layers = 26,
     .heads = 8,
     .vocab_size = 262208,
     .rename = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                {"post_attention_layernorm", "pre_feedforward_layernorm"},
                {"post_mlp_layernorm", "post_feedforward_layernorm"}},
     .gguf = "gemma3"},
    {.model_type = "smollm3",
     .models = "SmolLM3",
     .architecture = "SmolLM3ForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .biases = ALL_BIASES,
     .fields = FIELDS_MLP_BIAS | FIELDS_UNROTATED,
     .kv_heads = 4,
     .max_positions = 32768,
     .rms_eps = 1e-6,
     .rope_theta = 2e6,
     .tied = true,
     .windows = WINDOW_UNROTATED,
     .rotation = ROTATION_LISTED,
     .period = 4,
     .gguf = "smollm3",
     .gguf_pairs = true},
    {.model_type = "olmo2",
     .models = "OLMo 2",
     .tried = "1B, 7B",
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
     .models = "OLMo 3",
     .architecture = "Olmo3ForCausalLM",
     .attention = NORMED_AFTER | FEATURE_BIT(FEATURE_QK_NORM_ROW),
     .mlp = NORMED_AFTER,
     .max_positions = 2048,
     .rms_eps = 1e-5,
     .rope_theta = 5e5,
     .windows = WINDOW_BUT_LAST,
     .rotation = ROTATION_BY_WINDOW,
     .window = 4096,
     .period = 4,
     .rename = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                {"post_mlp_layernorm", "post_feedforward_layernorm"}},
     .gguf = "olmo2"},
    {.model_type = "exaone4",
     .models = "EXAONE 4.0",
     .architecture = "Exaone4ForCausalLM",
     .attention = NORMED_AFTER | FEATURE_BIT(FEATURE_QK_NORM),
     .mlp = NORMED_AFTER,
     .fields = FIELDS_PATTERN,
     .kv_heads = 32,
     .max_positions = 2048,
     .rms_eps = 1e-5,
     .rope_theta = 1e4,
     .windows = WINDOW_BUT_LAST,
     .rotation = ROTATION_WINDOWED,
     .window = 4096,
     .period = 4,
     .rename = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                {"post_mlp_layernorm", "post_feedforward_layernorm"}},
     .gguf = "exaone4"},
    {.model_type = "granite",
     .models = "Granite 3",
     .architecture = "GraniteForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .biases = ALL_BIASES,
     .fields = FIELDS_MLP_BIAS | FIELDS_MULTIPLIERS,
     .max_positions = 2048,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .gguf = "granite",
     .gguf_pairs = true},
    {.model_type = "granitemoehybrid",
     .models = "Granite 4.0, dense ones",
     .limits = "without experts; all layers are attention",
     .architecture = "GraniteMoeHybridForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE | FEATURE_BIT(FEATURE_FUSED_GATE_UP),
     .biases = ALL_BIASES,
     .fields = FIELDS_MULTIPLIERS | FIELDS_HYBRID,
     .max_positions = 2048,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .rotation = ROTATION_NAMED,
     .rename = {{"mlp.gate_up_proj", "shared_mlp.input_linear"},
                {"mlp.down_proj", "shared_mlp.output_linear"}},
     .gguf = "granite",
     .gguf_pairs = true},
    {.model_type = "granite_swa",
     .models = "Granite Swash",
     .limits = "layer_rope_theta of one base, with or without 0, or of two",
     .architecture = "GraniteSWAForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_SINKS),
     .mlp = NORMED_BEFORE,
     .biases = ALL_BIASES,
     .fields = FIELDS_MLP_BIAS | FIELDS_MULTIPLIERS | FIELDS_BASES,
     .kv_heads = 4,
     .max_positions = 8192,
     .rms_eps = 1e-5,
     .rope_theta = 1e4,
     .tied = true,
     .windows = WINDOW_BUT_FIRST,
     .rotation = ROTATION_BASES,
     .window = 128,
     .period = 4,
     .hidden_size = 2560,
     .ffn_size = 8192,
     .layers = 24,
     .heads = 20,
     .vocab_size = 100352},
    {.model_type = "phi3",
     .models = "Phi-3, Phi-3.5, Phi-4",
     .limits = "LongRoPE: one list of divisors for a run, by --seq-len",
     .architecture = "Phi3ForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_FUSED_QKV),
     .mlp = NORMED_BEFORE | FEATURE_BIT(FEATURE_FUSED_GATE_UP),
     .fields = FIELDS_ROTARY | FIELDS_LONGROPE,
     .max_positions = 4096,
     .original_positions = 4096,
     .rms_eps = 1e-5,
     .rope_theta = 1e4,
     .windows = WINDOW_ALL,
     .gguf = "phi3"},
    {.model_type = "glm4",
     .models = "GLM-4-0414",
     .architecture = "Glm4ForCausalLM",
     .attention = NORMED_BEFORE | NORMED_AFTER | FEATURE_BIT(FEATURE_QKV_BIAS),
     .mlp = NORMED_BEFORE | NORMED_AFTER | FEATURE_BIT(FEATURE_FUSED_GATE_UP),
     .biases = FEATURE_BIT(FEATURE_QKV_BIAS),
     .fields = FIELDS_ROTARY,
     .head_dim = 128,
     .kv_heads = 2,
     .max_positions = 131072,
     .rms_eps = 1.5625e-7,
     .rope_theta = 1e4,
     .rotary = 0.5,
     .neighbors = true,
     .gguf = "glm4"},
    {.model_type = "hunyuan_v1_dense",
     .models = "Hunyuan, dense",
     .limits = "without use_cla",
     .architecture = "HunYuanDenseV1ForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QK_NORM) | FEATURE_BIT(FEATURE_QK_GAIN_LAST),
     .mlp = NORMED_BEFORE,
     .fields = FIELDS_HUNYUAN,
     .max_positions = 2048,
     .rms_eps = 1e-5,
     .rope_theta = 1e4,
     .rename = {{"self_attn.q_norm", "self_attn.query_layernorm"},
                {"self_attn.k_norm", "self_attn.key_layernorm"}},
     .gguf = "hunyuan-dense"},
    {.model_type = "minicpm",
     .models = "MiniCPM, MiniCPM4",
     .limits = "without sparse_config",
     .architecture = "MiniCPMForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE,
     .fields = FIELDS_DEPTH,
     .max_positions = 2048,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .tied = true,
     .gguf = "minicpm",
     .gguf_pairs = true},
    {.model_type = "muse_glimmer_text",
     .models = "Muse Glimmer (its text)",
     .limits = "layer_rope_theta holds only 0 and rope_theta",
     .architecture = "MuseGlimmerTextModel",
     .attention = NORMED_BEFORE | NORMED_AFTER | FEATURE_BIT(FEATURE_QK_NORM) |
                  FEATURE_BIT(FEATURE_QK_NO_GAIN) | FEATURE_BIT(FEATURE_GATE),
     .mlp = NORMED_BEFORE | NORMED_AFTER,
     .fields = FIELDS_MUSE | FIELDS_BASES,
     .gain_offset = 1,
     .plain_final = true,
     .embed_normed = true,
     .head_dim = 128,
     .kv_heads = 2,
     .max_positions = 131072,
     .rms_eps = 1e-5,
     .rope_theta = 1e4,
     .windows = WINDOW_TO_LAST,
     .rotation = ROTATION_ZEROS,
     .window = 2048,
     .period = 4,
     .hidden_size = 6656,
     .ffn_size = 19968,
     .layers = 52,
     .heads = 32,
     .vocab_size = 202048,
     .rename = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                {"post_attention_layernorm", "pre_feedforward_layernorm"},
                {"post_mlp_layernorm", "post_feedforward_layernorm"}}},
    {.model_type = "lfm2",
     .models = "LFM2, LFM2.5, dense",
     .limits = "without adapters",
     .architecture = "Lfm2ForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QK_NORM),
     .mlp = NORMED_BEFORE,
     .recurrent = NORMED_BEFORE | FEATURE_BIT(FEATURE_CONV),
     .fields = FIELDS_CONV,
     .kv_heads = 8,
     .max_positions = 128000,
     .rms_eps = 1e-5,
     .rope_theta = 1e6,
     .tied = true,
     .hidden_size = 2560,
     .ffn_size = 12288,
     .layers = 32,
     .heads = 32,
     .vocab_size = 65536,
     .rename = {{"input_layernorm", "operator_norm"},
                {"post_attention_layernorm", "ffn_norm"},
                {"self_attn.q_norm", "self_attn.q_layernorm"},
                {"self_attn.k_norm", "self_attn.k_layernorm"},
                {"self_attn.o_proj", "self_attn.out_proj"},
                {"mlp.gate_proj", "feed_forward.w1"},
                {"mlp.up_proj", "feed_forward.w3"},
                {"mlp.down_proj", "feed_forward.w2"},
                {"model.norm", "model.embedding_norm"}}},
    {.model_type = "qwen3_5_text",
     .models = "Qwen3.5, dense (its text)",
     .limits = "without adapters",
     .architecture = "Qwen3_5ForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QK_NORM) | FEATURE_BIT(FEATURE_GATE) |
                  FEATURE_BIT(FEATURE_GATED_Q),
     .mlp = NORMED_BEFORE,
     .recurrent = NORMED_BEFORE | FEATURE_BIT(FEATURE_CONV) | FEATURE_BIT(FEATURE_DELTA),
     .fields = FIELDS_DELTA | FIELDS_ROTARY,
     .gain_offset = 1,
     .head_dim = 256,
     .kv_heads = 4,
     .max_positions = 32768,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .rotary = 0.25,
     .period = 4,
     .hidden_size = 4096,
     .ffn_size = 12288,
     .layers = 32,
     .heads = 16,
     .vocab_size = 248320},
    {.model_type = "qwen3_5_moe_text",
     .models = "Qwen3.5 with experts: 35B-A3B, 122B-A10B (its text)",
     .architecture = "Qwen3_5MoeForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QK_NORM) | FEATURE_BIT(FEATURE_GATE) |
                  FEATURE_BIT(FEATURE_GATED_Q),
     .mlp = NORMED_BEFORE | FEATURE_BIT(FEATURE_EXPERTS) | FEATURE_BIT(FEATURE_SHARED_EXPERT) |
            FEATURE_BIT(FEATURE_SHARED_GATE),
     .recurrent = NORMED_BEFORE | FEATURE_BIT(FEATURE_CONV) | FEATURE_BIT(FEATURE_DELTA),
     .fields = FIELDS_DELTA | FIELDS_ROTARY | FIELDS_EXPERTS | FIELDS_SHARED,
     .gain_offset = 1,
     .head_dim = 256,
     .kv_heads = 2,
     .max_positions = 32768,
     .rms_eps = 1e-6,
     .rope_theta = 1e4,
     .rotary = 0.25,
     .router = NJ_ROUTE_SOFTMAX,
     .renormalized = true,
     .period = 4,
     .hidden_size = 2048,
     .layers = 40,
     .heads = 16,
     .vocab_size = 248320,
     .experts = 256,
     .experts_used = 8,
     .expert_size = 512,
     .shared_size = 512},
};

enum { FAMILIES = sizeof families / sizeof *families, NAMES_BYTES = 256 };

/* Return the field of config.json that names the activation. */
static inline const char *family_act_field(const struct family *f)
{
    return f->fields & (FIELDS_GEMMA | FIELDS_MUSE) ? "hidden_activation" : "hidden_act";
}
/* Return the one with the width of the MLP. */
static inline const char *family_ffn_field(const struct family *f)
{
    return f->fields & FIELDS_HYBRID ? "shared_intermediate_size" : "intermediate_size";
}
/* Return the one with the number that norms add to mean squares. */
static inline const char *family_eps_field(const struct family *f)
{
    return f->fields & FIELDS_CONV ? "norm_eps" : "rms_norm_eps";
}

/* Return whether all layers of the family's models have experts, whose width is moe_intermediate_size. */
static inline bool family_has_no_dense(const struct family *f)
{
    return (f->fields & FIELDS_EXPERTS) != 0 && (f->fields & FIELDS_SPARSE) == 0;
}

/* Return whether models of the family have experts, and so can only be teachers. */
static inline bool family_is_teacher_only(const struct family *f)
{
    return (f->fields & (FIELDS_EXPERTS | FIELDS_OSS)) != 0;
}

static inline const struct family *family_find(const char *model_type)
{
    for (int i = 0; i < FAMILIES; i++)
        if (strcmp(families[i].model_type, model_type) == 0)
            return &families[i];
    return NULL;
}

/* Files of text and images, the family of their text_config if that does not name one, and whether the head is tied if
 * the file does not say. */
static const struct composite {
    const char *model_type, *text;
    bool tied;
} composites[] = {
    {"gemma3", "gemma3_text", true},
    {"mistral3", "mistral", true},
    {"muse_glimmer", "muse_glimmer_text", false},
    {"qwen3_5", "qwen3_5_text", false},
    {"qwen3_5_moe", "qwen3_5_moe_text", false},
};

static inline const struct composite *composite_find(const char *model_type)
{
    for (size_t i = 0; i < sizeof composites / sizeof *composites; i++)
        if (strcmp(composites[i].model_type, model_type) == 0)
            return &composites[i];
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
