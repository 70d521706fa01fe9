/* SPDX-License-Identifier: Apache-2.0
 *
 * families.h: the table of the supported model families, one row each. The trainer and blobcheck read
 * them.
 */
#ifndef NOJIT_FAMILIES_H
#define NOJIT_FAMILIES_H

#include "base/family.h"
#include "base/hidden_act.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct family families[] = {
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
     .architecture = "Lfm2ForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QK_NORM),
     .mlp = NORMED_BEFORE,
     .recurrent = NORMED_BEFORE | FEATURE_BIT(FEATURE_CONV),
     .fields = FIELDS_CONV | FIELDS_ADJUST,
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
                {"model.norm", "model.embedding_norm"}},
     .gguf = "lfm2"},
    {.model_type = "glm4_moe",
     .models = "GLM-4.5-Air",
     .limits = "without use_qk_norm",
     .architecture = "Glm4MoeForCausalLM",
     .attention = NORMED_BEFORE,
     .mlp = NORMED_BEFORE | FEATURE_BIT(FEATURE_EXPERTS) | FEATURE_BIT(FEATURE_CORRECTION) |
            FEATURE_BIT(FEATURE_SHARED_EXPERT),
     .biases = FEATURE_BIT(FEATURE_QKV_BIAS),
     .fields = FIELDS_ROTARY | FIELDS_EXPERTS | FIELDS_LEADING | FIELDS_GLM,
     .kv_heads = 8,
     .max_positions = 131072,
     .rms_eps = 1e-5,
     .rope_theta = 1e4,
     .rotary = 0.5,
     .router = NJ_ROUTE_SIGMOID,
     .renormalized = true,
     .hidden_size = 4096,
     .ffn_size = 10944,
     .layers = 46,
     .heads = 96,
     .vocab_size = 151552,
     .experts = 128,
     .experts_used = 8,
     .expert_size = 1408,
     .leading = 1,
     .rename = {{"mlp.shared_expert", "mlp.shared_experts"}}},
    {.model_type = "lfm2_moe",
     .models = "LFM2, LFM2.5 with experts: 8B-A1B, 24B-A2B",
     .architecture = "Lfm2MoeForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QK_NORM),
     .mlp = NORMED_BEFORE | FEATURE_BIT(FEATURE_EXPERTS) | FEATURE_BIT(FEATURE_CORRECTION),
     .recurrent = NORMED_BEFORE | FEATURE_BIT(FEATURE_CONV),
     .fields = FIELDS_CONV | FIELDS_EXPERTS | FIELDS_LEADING | FIELDS_EXPERT_BIAS,
     .kv_heads = 8,
     .max_positions = 128000,
     .rms_eps = 1e-5,
     .rope_theta = 1e6,
     .router = NJ_ROUTE_SIGMOID,
     .renormalized = true,
     .route_eps = 1e-6,
     .tied = true,
     .hidden_size = 2048,
     .ffn_size = 7168,
     .layers = 32,
     .heads = 32,
     .vocab_size = 65536,
     .experts = 32,
     .experts_used = 4,
     .expert_size = 1792,
     .leading = 2,
     .rename = {{"input_layernorm", "operator_norm"},
                {"post_attention_layernorm", "ffn_norm"},
                {"self_attn.q_norm", "self_attn.q_layernorm"},
                {"self_attn.k_norm", "self_attn.k_layernorm"},
                {"self_attn.o_proj", "self_attn.out_proj"},
                {"mlp.gate_proj", "feed_forward.w1"},
                {"mlp.up_proj", "feed_forward.w3"},
                {"mlp.down_proj", "feed_forward.w2"},
                {"mlp.gate.e_score_correction_bias", "feed_forward.expert_bias"},
                {"mlp.gate", "feed_forward.gate"},
                {"mlp.experts.*.gate_proj", "feed_forward.experts.*.w1"},
                {"mlp.experts.*.up_proj", "feed_forward.experts.*.w3"},
                {"mlp.experts.*.down_proj", "feed_forward.experts.*.w2"},
                {"model.norm", "model.embedding_norm"}}},
    {.model_type = "qwen3_5_text",
     .models = "Qwen3.5, dense (its text)",
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
     .vocab_size = 248320,
     .gguf = "qwen35"},
    {.model_type = "qwen3_next",
     .models = "Qwen3-Next 80B-A3B, Coder",
     .architecture = "Qwen3NextForCausalLM",
     .attention = NORMED_BEFORE | FEATURE_BIT(FEATURE_QK_NORM) | FEATURE_BIT(FEATURE_GATE) |
                  FEATURE_BIT(FEATURE_GATED_Q),
     .mlp = NORMED_BEFORE | FEATURE_BIT(FEATURE_EXPERTS) | FEATURE_BIT(FEATURE_SHARED_EXPERT) |
            FEATURE_BIT(FEATURE_SHARED_GATE),
     .recurrent = NORMED_BEFORE | FEATURE_BIT(FEATURE_CONV) | FEATURE_BIT(FEATURE_DELTA) |
                  FEATURE_BIT(FEATURE_GROUPED_DELTA),
     .fields = FIELDS_DELTA | FIELDS_ROTARY | FIELDS_EXPERTS | FIELDS_SPARSE | FIELDS_SHARED,
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
     .ffn_size = 5632,
     .layers = 48,
     .heads = 16,
     .vocab_size = 151936,
     .experts = 512,
     .experts_used = 10,
     .expert_size = 512,
     .shared_size = 512,
     .rename = {{"linear_attn.in_proj_q", "linear_attn.in_proj_qkvz"},
                {"linear_attn.in_proj_b", "linear_attn.in_proj_ba"}}},
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

/* Return the one with the number of experts. */
static inline const char *family_experts_field(const struct family *f)
{
    return f->fields & FIELDS_GLM ? "n_routed_experts" : "num_experts";
}
/* Return the one with the number of first layers without experts. */
static inline const char *family_leading_field(const struct family *f)
{
    return f->fields & FIELDS_GLM ? "first_k_dense_replace" : "num_dense_layers";
}

/* Return whether all layers of the family's models have experts, whose width is moe_intermediate_size. */
static inline bool family_has_no_dense(const struct family *f)
{
    return (f->fields & FIELDS_EXPERTS) != 0 && (f->fields & (FIELDS_SPARSE | FIELDS_LEADING)) == 0;
}

/* Return whether models of the family can only be teachers: their experts have biases, or there is one that all rows
 * take. */
static inline bool family_is_teacher_only(const struct family *f)
{
    const unsigned forward_only =
        FEATURE_BIT(FEATURE_CORRECTION) | FEATURE_BIT(FEATURE_SHARED_EXPERT);
    return (f->fields & FIELDS_OSS) != 0 || (f->mlp & forward_only) != 0;
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
