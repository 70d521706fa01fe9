/* SPDX-License-Identifier: Apache-2.0
 *
 * presets.c: shapes of models by name. Those of published models are in their config.json; one called "about the
 * shape" of a model has not been compared with that file, or with a published number of parameters.
 */
#include "base/try.h"
#include "io/error.h"
#include "io/json_text.h"
#include "model/config_from.h"
#include "model/init.h"

#include <stdio.h>
#include <string.h>

#define PRESET_COMMON .rms_eps = 1e-6f, .bos_id = -1

/* A shape: C hidden size, I intermediate size, L layers, H heads, K key-value heads, D head size, V vocabulary, P
 * positions. */
#define SHAPE(type, C, I, L, H, K, D, V, P, features)                                              \
    .model_type = (type), .hidden_size = (C), .layers = (L), .vocab_size = (V),                    \
    .max_positions = (P), CONFIG_PLAIN(H, K, D, I, features)
#define BIASED FEATURE_BIT(FEATURE_QKV_BIAS)
#define NORMED FEATURE_BIT(FEATURE_QK_NORM)

/* The same as fields of config.json, for families whose layers differ or that have numbers of their own. */
#define FIELD(name, value) ",\"" name "\":" #value
#define FIELDS(type, C, I, L, H, K, D, V, P)                                                       \
    "\"model_type\":\"" type "\"" FIELD("hidden_size", C) FIELD("intermediate_size", I)            \
        FIELD("num_hidden_layers", L) FIELD("num_attention_heads", H)                              \
            FIELD("num_key_value_heads", K) FIELD("head_dim", D) FIELD("vocab_size", V)            \
                FIELD("max_position_embeddings", P)
#define TOKENS(bos, eos) FIELD("bos_token_id", bos) FIELD("eos_token_id", eos)
#define TIED FIELD("tie_word_embeddings", true)
#define OLMO FIELD("rms_norm_eps", 1e-6) FIELD("eos_token_id", 100257)
#define GRANITE(score)                                                                             \
    FIELD("rms_norm_eps", 1e-5)                                                                    \
    FIELD("embedding_multiplier", 12)                                                              \
    FIELD("residual_multiplier", 0.22)                                                             \
    FIELD("logits_scaling", 8) FIELD("attention_multiplier", score)
#define FOUR "\"attention\",\"attention\",\"attention\",\"attention\""
#define FORTY FOUR "," FOUR "," FOUR "," FOUR "," FOUR "," FOUR "," FOUR "," FOUR "," FOUR "," FOUR
#define DENSE(I, types)                                                                            \
    FIELD("num_local_experts", 0)                                                                  \
    FIELD("position_embedding_type", "rope")                                                       \
    FIELD("shared_intermediate_size", I) ",\"layer_types\":[" types "]"

#define EXPERTS(E, J, I)                                                                           \
    FIELD("num_experts", E)                                                                        \
    FIELD("num_experts_per_tok", J)                                                                \
    FIELD("moe_intermediate_size", I) FIELD("norm_topk_prob", true)

#define C_ "\"conv\","
#define A_ "\"full_attention\","
#define LISTED(types, last) ",\"layer_types\":[" types "\"" last "\"]"

#define SHARED(I) FIELD("shared_expert_intermediate_size", I)

#define OSS_ROPE                                                                                   \
    ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":32.0,\"truncate\":false,"                \
    "\"original_max_position_embeddings\":4096}"
#define MIXED(attention)                                                                           \
    FIELD("norm_eps", 1e-5)                                                                        \
    FIELD("block_auto_adjust_ff_dim", false) ",\"full_attn_idxs\":[" attention "]"

#define DELTA(H, K, D)                                                                             \
    FIELD("linear_num_value_heads", H)                                                             \
    FIELD("linear_num_key_heads", K)                                                               \
    FIELD("linear_key_head_dim", D) FIELD("linear_value_head_dim", D)

const struct preset presets[] = {
    {.name = "nojit-tiny",
     .summary = "over bytes, for tests",
     .config = {SHAPE("qwen2", 64, 192, 2, 1, 1, 64, 264, 512, BIASED), .eos_id = 256,
                CONFIG_ROPE(1e4), .tied = true, PRESET_COMMON}},
    {.name = "nojit-tiny-qwen3",
     .summary = "over bytes, Qwen3 form, head untied",
     .config = {SHAPE("qwen3", 128, 256, 2, 2, 1, 64, 264, 512, NORMED), .eos_id = 256,
                CONFIG_ROPE(1e4), PRESET_COMMON}},
    {.name = "nojit-tiny-llama",
     .summary = "over bytes, Llama form with scaled positions",
     .config = {SHAPE("llama", 128, 256, 2, 2, 1, 64, 264, 512, 0), .eos_id = 256, CONFIG_ROPE(5e5),
                .tied = true, CONFIG_ROPE_SCALING(8, 1, 4, 256), PRESET_COMMON}},
    {.name = "nojit-tiny-qwen3-moe",
     .summary = "over bytes, Qwen3 form with experts, for tests",
     .fields = FIELDS("qwen3_moe", 128, 256, 2, 2, 1, 64, 264, 512) EXPERTS(8, 2, 64)
         FIELD("eos_token_id", 256)},
    {.name = "nojit-tiny-lfm2",
     .summary = "over bytes, LFM2 form with convolutions",
     .fields = FIELDS("lfm2", 128, 256, 3, 2, 1, 64, 264, 512) MIXED("1")
         FIELD("bos_token_id", null) FIELD("eos_token_id", 256)},
    {.name = "nojit-tiny-lfm2-moe",
     .summary = "over bytes, LFM2 form with convolutions and experts, for tests",
     .fields =
         FIELDS("lfm2_moe", 128, 256, 3, 2, 1, 64, 264, 512) EXPERTS(8, 2, 64) LISTED(C_ A_, "conv")
             FIELD("num_dense_layers", 1) FIELD("bos_token_id", null) FIELD("eos_token_id", 256)},
    {.name = "nojit-tiny-glm4-moe",
     .summary = "over bytes, GLM-4.5 form with groups of experts, for tests",
     .fields = FIELDS("glm4_moe", 128, 256, 3, 2, 1, 64, 264, 512) FIELD("n_routed_experts", 8)
         FIELD("num_experts_per_tok", 2) FIELD("moe_intermediate_size", 64) FIELD("n_group", 4)
             FIELD("topk_group", 2) FIELD("attention_bias", true) FIELD("eos_token_id", 256)},
    {.name = "nojit-tiny-qwen3.5",
     .summary = "over bytes, Qwen3.5 form with linear attention",
     .fields = FIELDS("qwen3_5_text", 128, 256, 4, 2, 1, 64, 264, 512) DELTA(4, 2, 64)
         FIELD("eos_token_id", 256)},
    {.name = "nojit-tiny-qwen3.5-moe",
     .summary = "over bytes, Qwen3.5 form with linear attention and experts, for tests",
     .fields = FIELDS("qwen3_5_moe_text", 128, null, 4, 2, 1, 64, 264, 512) DELTA(4, 2, 64)
         EXPERTS(8, 2, 64) SHARED(64) FIELD("eos_token_id", 256)},
    {.name = "nojit-tiny-qwen3-next",
     .summary = "over bytes, Qwen3-Next form with linear attention and experts, for tests",
     .fields = FIELDS("qwen3_next", 128, 256, 4, 2, 1, 64, 264, 512) DELTA(4, 2, 64)
         EXPERTS(8, 2, 64) SHARED(64) FIELD("eos_token_id", 256)},
    {.name = "nojit-demo-teacher",
     .summary = "over bytes, for `make demo`",
     .config = {SHAPE("qwen2", 128, 448, 4, 2, 1, 64, 264, 512, BIASED), .eos_id = 256,
                CONFIG_ROPE(1e4), .tied = true, PRESET_COMMON}},
    {.name = "nojit-demo-student",
     .summary = "over bytes, a quarter of the teacher",
     .config = {SHAPE("qwen2", 64, 192, 4, 1, 1, 64, 264, 512, BIASED), .eos_id = 256,
                CONFIG_ROPE(1e4), .tied = true, PRESET_COMMON}},
    {.name = "nojit-small",
     .summary = "over bytes",
     .config = {SHAPE("qwen2", 256, 1024, 8, 4, 2, 64, 264, 2048, BIASED), .eos_id = 256,
                CONFIG_ROPE(1e4), .tied = true, PRESET_COMMON}},
    {.name = "nojit-base",
     .summary = "over bytes",
     .config = {SHAPE("qwen2", 512, 2048, 12, 8, 4, 64, 264, 2048, BIASED), .eos_id = 256,
                CONFIG_ROPE(1e4), .tied = true, PRESET_COMMON}},
    {.name = "qwen2.5-0.5b",
     .summary = "the shape of Qwen2.5-0.5B",
     .config = {SHAPE("qwen2", 896, 4864, 24, 14, 2, 64, 151936, 32768, BIASED), .eos_id = 151643,
                CONFIG_ROPE(1e6), .tied = true, PRESET_COMMON}},
    {.name = "qwen2.5-1.5b",
     .summary = "the shape of Qwen2.5-1.5B",
     .config = {SHAPE("qwen2", 1536, 8960, 28, 12, 2, 128, 151936, 131072, BIASED),
                .eos_id = 151643, CONFIG_ROPE(1e6), .tied = true, PRESET_COMMON}},
    {.name = "qwen2.5-7b",
     .summary = "the shape of Qwen2.5-7B",
     .config = {SHAPE("qwen2", 3584, 18944, 28, 28, 4, 128, 152064, 131072, BIASED),
                .eos_id = 151643, CONFIG_ROPE(1e6), PRESET_COMMON}},
    {.name = "qwen3-0.6b",
     .summary = "the shape of Qwen3-0.6B",
     .config = {SHAPE("qwen3", 1024, 3072, 28, 16, 8, 128, 151936, 40960, NORMED), .eos_id = 151643,
                CONFIG_ROPE(1e6), .tied = true, PRESET_COMMON}},
    {.name = "qwen3-1.7b",
     .summary = "the shape of Qwen3-1.7B",
     .config = {SHAPE("qwen3", 2048, 6144, 28, 16, 8, 128, 151936, 40960, NORMED), .eos_id = 151643,
                CONFIG_ROPE(1e6), .tied = true, PRESET_COMMON}},
    {.name = "qwen3-30b-a3b",
     .summary = "the shape of Qwen3-30B-A3B",
     .fields = FIELDS("qwen3_moe", 2048, 6144, 48, 32, 4, 128, 151936, 40960) EXPERTS(128, 8, 768)
         FIELD("eos_token_id", 151643) ",\"rope_theta\":1e6"},
    {.name = "gpt-oss-20b",
     .summary = "the shape of gpt-oss-20b, for plans",
     .fields = FIELDS("gpt_oss", 2880, 2880, 24, 64, 8, 64, 201088, 131072)
         FIELD("num_local_experts", 32) FIELD("eos_token_id", 200002) OSS_ROPE},
    {.name = "gpt-oss-120b",
     .summary = "the shape of gpt-oss-120b, for plans",
     .fields = FIELDS("gpt_oss", 2880, 2880, 36, 64, 8, 64, 201088, 131072)
         FIELD("num_local_experts", 128) FIELD("eos_token_id", 200002) OSS_ROPE},
    {.name = "llama-3.2-1b",
     .summary = "the shape of Llama-3.2-1B",
     .config = {SHAPE("llama", 2048, 8192, 16, 32, 8, 64, 128256, 131072, 0), .bos_id = 128000,
                .eos_id = 128001, .rms_eps = 1e-5f, CONFIG_ROPE(5e5), .tied = true,
                CONFIG_ROPE_SCALING(32, 1, 4, 8192)}},
    {.name = "llama-3.2-3b",
     .summary = "the shape of Llama-3.2-3B",
     .config = {SHAPE("llama", 3072, 8192, 28, 24, 8, 128, 128256, 131072, 0), .bos_id = 128000,
                .eos_id = 128001, .rms_eps = 1e-5f, CONFIG_ROPE(5e5), .tied = true,
                CONFIG_ROPE_SCALING(32, 1, 4, 8192)}},
    {.name = "llama-3.1-8b",
     .summary = "the shape of Llama-3.1-8B",
     .config = {SHAPE("llama", 4096, 14336, 32, 32, 8, 128, 128256, 131072, 0), .bos_id = 128000,
                .eos_id = 128001, .rms_eps = 1e-5f, CONFIG_ROPE(5e5),
                CONFIG_ROPE_SCALING(8, 1, 4, 8192)}},
    {.name = "smollm2-135m",
     .summary = "the shape of SmolLM2-135M",
     .config = {SHAPE("llama", 576, 1536, 30, 9, 3, 64, 49152, 8192, 0), .bos_id = 0, .eos_id = 0,
                .rms_eps = 1e-5f, CONFIG_ROPE(1e5), .tied = true}},
    {.name = "mistral-7b-v0.3",
     .summary = "the shape of Mistral-7B-v0.3",
     .config = {SHAPE("mistral", 4096, 14336, 32, 32, 8, 128, 32768, 32768, 0), .bos_id = 1,
                .eos_id = 2, .rms_eps = 1e-5f, CONFIG_ROPE(1e6)}},
    {.name = "ministral-3-3b",
     .summary = "about the shape of Ministral 3 3B, within its first 16,384 positions",
     .fields = FIELDS("ministral3", 3072, 9216, 26, 32, 8, 128, 131072, 16384)
         TIED TOKENS(1, 2) ",\"rope_parameters\":{\"rope_type\":\"yarn\",\"rope_theta\":1e6,"
                           "\"factor\":16.0,\"original_max_position_embeddings\":16384,"
                           "\"mscale\":1.0,\"mscale_all_dim\":1.0}"},
    {.name = "gemma-3-270m",
     .summary = "the shape of Gemma 3 270M",
     .fields = FIELDS("gemma3_text", 640, 2048, 18, 4, 1, 256, 262144, 32768)
         TOKENS(2, 1) ",\"sliding_window\":512"},
    {.name = "gemma-3-1b",
     .summary = "the shape of Gemma 3 1B",
     .fields = FIELDS("gemma3_text", 1152, 6912, 26, 4, 1, 256, 262144, 32768)
         TOKENS(2, 1) ",\"sliding_window\":512"},
    {.name = "gemma-3-4b",
     .summary = "the shape of Gemma 3 4B, text alone",
     .fields = FIELDS("gemma3_text", 2560, 10240, 34, 8, 4, 256, 262208, 131072)
         TOKENS(2, 1) ",\"sliding_window\":1024,\"rope_scaling\":{\"rope_type\":\"linear\","
                      "\"factor\":8.0}"},
    {.name = "smollm3-3b",
     .summary = "the shape of SmolLM3-3B",
     .fields = FIELDS("smollm3", 2048, 11008, 36, 16, 4, 128, 128256, 65536)
         TOKENS(128000, 128012) ",\"rope_theta\":5e6"},
    {.name = "olmo-2-1b",
     .summary = "the shape of OLMo 2 1B",
     .fields =
         FIELDS("olmo2", 2048, 8192, 16, 16, 16, 128, 100352, 4096) OLMO ",\"rope_theta\":5e5"},
    {.name = "olmo-2-7b",
     .summary = "the shape of OLMo 2 7B",
     .fields =
         FIELDS("olmo2", 4096, 11008, 32, 32, 32, 128, 100352, 4096) OLMO ",\"rope_theta\":5e5"},
    {.name = "olmo-3-7b",
     .summary = "the shape of OLMo 3 7B",
     .fields = FIELDS("olmo3", 4096, 11008, 32, 32, 32, 128, 100278, 65536) OLMO
     ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8.0,"
     "\"original_max_position_embeddings\":8192}"},
    {.name = "exaone-4.0-1.2b",
     .summary = "about the shape of EXAONE 4.0 1.2B",
     .fields = FIELDS("exaone4", 2048, 4096, 30, 32, 8, 64, 102400, 65536)
         TIED TOKENS(1, 361) ",\"sliding_window\":null,\"rope_theta\":1e6,\"rope_scaling\":{"
                             "\"rope_type\":\"llama3\",\"factor\":16.0,\"low_freq_factor\":1.0,"
                             "\"high_freq_factor\":4.0,"
                             "\"original_max_position_embeddings\":8192}"},
    {.name = "granite-3.3-2b",
     .summary = "the shape of Granite 3.3 2B",
     .fields = FIELDS("granite", 2048, 8192, 40, 32, 8, 64, 49159, 131072) TIED GRANITE(0.015625)
         TOKENS(0, 0) ",\"rope_theta\":1e7"},
    {.name = "granite-4.0-1b",
     .summary = "about the shape of Granite 4.0 1B",
     .fields = FIELDS("granitemoehybrid", 2048, 4096, 40, 16, 4, 128, 100352, 131072)
         TIED GRANITE(0.0078125) TOKENS(100257, 100257) DENSE(4096, FORTY)},
    {.name = "granite-swash-2b",
     .summary = "the sizes of the class of Granite Swash",
     .fields = FIELDS("granite_swa", 2560, 8192, 24, 20, 4, 128, 100352, 8192)
         TIED TOKENS(100257, 100257) ",\"rms_norm_eps\":1e-5"},
    {.name = "phi-3-mini",
     .summary = "the shape of Phi-3-mini-4k",
     .fields = FIELDS("phi3", 3072, 8192, 32, 32, 32, 96, 32064, 4096)
         TOKENS(1, 32000) ",\"sliding_window\":2047"},
    {.name = "phi-4-mini",
     .summary = "the shape of Phi-4-mini, within its first 4,096 positions",
     .fields = FIELDS("phi3", 3072, 8192, 32, 24, 8, 128, 200064, 4096)
         TIED TOKENS(199999, 199999) ",\"partial_rotary_factor\":0.75"},
    {.name = "glm-4-9b",
     .summary = "the shape of GLM-4-9B-0414",
     .fields = FIELDS("glm4", 4096, 13696, 40, 32, 2, 128, 151552,
                      32768) ",\"rms_norm_eps\":1e-5,\"eos_token_id\":151329"},
    {.name = "glm-4.5-air",
     .summary = "the shape of GLM-4.5-Air",
     .fields = FIELDS("glm4_moe", 4096, 10944, 46, 96, 8, 128, 151552, 131072)
         FIELD("n_routed_experts", 128) FIELD("attention_bias", true)
             FIELD("eos_token_id", 151329) ",\"rope_theta\":1e6"},
    {.name = "hunyuan-0.5b",
     .summary = "about the shape of Hunyuan 0.5B",
     .fields = FIELDS("hunyuan_v1_dense", 1024, 3584, 24, 8, 4, 128, 120818, 262144)
         TIED TOKENS(1, 120020) ",\"rope_scaling\":{\"type\":\"dynamic\",\"alpha\":1000.0,"
                                "\"factor\":1.0}"},
    {.name = "muse-glimmer-30b",
     .summary = "the shape of Muse Glimmer 30B, text alone",
     .fields = FIELDS("muse_glimmer_text", 6656, 19968, 52, 32, 2, 128, 202048, 131072)
         TOKENS(200000, 200001)},
    {.name = "minicpm4-0.5b",
     .summary = "about the shape of MiniCPM4 0.5B",
     .fields = FIELDS("minicpm", 1024, 4096, 24, 16, 2, 64, 73448, 32768)
         TOKENS(1, 2) ",\"rms_norm_eps\":1e-5,\"scale_emb\":12,\"scale_depth\":1.4,"
                      "\"dim_model_base\":256"},
    {.name = "qwen3.5-0.8b",
     .summary = "the shape of Qwen3.5 0.8B, text alone",
     .fields = FIELDS("qwen3_5_text", 1024, 3584, 24, 8, 2, 256, 248320, 262144) DELTA(16, 16, 128)
         TIED FIELD("eos_token_id", 248044) ",\"rope_theta\":1e7"},
    {.name = "qwen3.5-4b",
     .summary = "the shape of Qwen3.5 4B, text alone",
     .fields = FIELDS("qwen3_5_text", 2560, 9216, 32, 16, 4, 256, 248320, 262144) DELTA(32, 16, 128)
         TIED FIELD("eos_token_id", 248044) ",\"rope_theta\":1e7"},
    {.name = "qwen3.5-35b-a3b",
     .summary = "the shape of Qwen3.5 35B-A3B, text alone",
     .fields =
         FIELDS("qwen3_5_moe_text", 2048, null, 40, 16, 2, 256, 248320, 262144) DELTA(32, 16, 128)
             EXPERTS(256, 8, 512) SHARED(512) FIELD("eos_token_id", 248044) ",\"rope_theta\":1e7"},
    {.name = "qwen3.5-122b-a10b",
     .summary = "the shape of Qwen3.5 122B-A10B, text alone",
     .fields = FIELDS("qwen3_5_moe_text", 3072, null, 48, 32, 2, 256, 248320, 262144)
         DELTA(64, 16, 128) EXPERTS(256, 8, 1024) SHARED(1024)
             FIELD("eos_token_id", 248044) ",\"rope_theta\":1e7"},
    {.name = "qwen3-next-80b-a3b",
     .summary = "the shape of Qwen3-Next 80B-A3B",
     .fields = FIELDS("qwen3_next", 2048, 5120, 48, 16, 2, 256, 151936, 262144) DELTA(32, 16, 128)
         EXPERTS(512, 10, 512) SHARED(512) FIELD("eos_token_id", 151645) ",\"rope_theta\":1e7"},
    {.name = "lfm2-350m",
     .summary = "the shape of LFM2-350M",
     .fields = FIELDS("lfm2", 1024, 4608, 16, 16, 8, 64, 65536, 128000) MIXED("2,5,8,10,12,14")
         TOKENS(1, 7)},
    {.name = "lfm2-8b-a1b",
     .summary = "about the shape of LFM2-8B-A1B",
     .fields = FIELDS("lfm2_moe", 2048, 7168, 24, 32, 8, 64, 65536, 128000) EXPERTS(32, 4, 1792)
         LISTED(C_ C_ A_ C_ C_ C_ A_ C_ C_ C_ A_ C_ C_ C_ A_ C_ C_ C_ A_ C_ C_ A_ C_, "conv")
             TOKENS(1, 7)},
    {.name = "lfm2-1.2b",
     .summary = "the shape of LFM2-1.2B",
     .fields = FIELDS("lfm2", 2048, 8192, 16, 32, 8, 64, 65536, 128000) MIXED("2,5,8,10,12,14")
         TOKENS(1, 7)},
    {.name = NULL},
};

const struct preset *preset_find(const char *name)
{
    for (const struct preset *p = presets; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

int preset_config(const struct preset *p, struct model_config *out)
{
    enum { FIELDS_BYTES = 4096 };
    const struct config_file file = {.path = p->name};
    char text[FIELDS_BYTES];
    json_t *fields;
    *out = p->config;
    if (!p->fields)
        return 0;
    snprintf(text, sizeof text, "{%s}", p->fields);
    TRY(json_read_text(p->name, text, strlen(text), 0, "", &fields));
    const int rc = config_from(&file, fields, out);
    json_decref(fields);
    return rc;
}
