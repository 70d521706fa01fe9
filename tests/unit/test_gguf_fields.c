/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf_fields.c: the metadata of GGUF files as fields of config.json: keys as llama.cpp's converter writes them
 * for each architecture.
 */
#include "gguf_fixture.h"
#include "model/gguf_config.h"
#include "model/gguf_rope.h"
#include "unit.h"

/* A file: its metadata, and tensors beside the table of embeddings. */
struct translated {
    const char *arch;
    struct gguf_change keys[24];
    const char *tensors[4];
    const char *fields; /* config.json, but for the sizes that all have */
};

#define WHOLE(key, x)                                                                              \
    {                                                                                              \
        key, CHANGE_U32, x, NULL,                                                                  \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define REAL(key, x)                                                                               \
    {                                                                                              \
        key, CHANGE_F32, x, NULL,                                                                  \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define TEXT(key, x)                                                                               \
    {                                                                                              \
        key, CHANGE_TEXT, 0, x,                                                                    \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define SIZES(a, layers)                                                                           \
    WHOLE(a ".context_length", 1024), WHOLE(a ".embedding_length", 256),                           \
        WHOLE(a ".block_count", layers), WHOLE(a ".feed_forward_length", 512),                     \
        WHOLE(a ".attention.head_count", 4), WHOLE(a ".attention.head_count_kv", 2),               \
        REAL(a ".attention.layer_norm_rms_epsilon", 0.5)

static const struct translated translated[] = {
    {"llama",
     {SIZES("llama", 2), REAL("llama.rope.freq_base", 5e5), REAL("llama.rope.scale_linear", 4)},
     {GGUF_HEAD},
     "'model_type': 'llama', 'sliding_window': null, 'rope_theta': 500000.0, "
     "'tie_word_embeddings': false, 'attention_bias': false, 'mlp_bias': false, "
     "'rope_scaling': {'rope_type': 'linear', 'factor': 4.0}"},
    {"llama",
     {SIZES("llama", 2), WHOLE("llama.attention.sliding_window", 100),
      WHOLE("tokenizer.ggml.bos_token_id", 1), WHOLE("tokenizer.ggml.eos_token_id", 2)},
     {"blk.0.attn_q.bias", "blk.0.ffn_up.bias"},
     "'model_type': 'mistral', 'sliding_window': 100, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': true, 'attention_bias': true, 'mlp_bias': true, 'bos_token_id': 1, "
     "'eos_token_id': 2"},
    {"smollm3",
     {SIZES("smollm3", 2), REAL("smollm3.rope.freq_base", 2e6)},
     {NULL},
     "'model_type': 'smollm3', 'sliding_window': null, 'rope_theta': 2000000.0, "
     "'tie_word_embeddings': true"},
    {"gemma3",
     {SIZES("gemma3", 7), WHOLE("gemma3.attention.key_length", 128),
      WHOLE("gemma3.attention.value_length", 128), WHOLE("gemma3.attention.sliding_window", 64),
      REAL("gemma3.rope.freq_base", 1e6), TEXT("gemma3.rope.scaling.type", "linear"),
      REAL("gemma3.rope.scaling.factor", 8)},
     {NULL},
     "'model_type': 'gemma3_text', 'head_dim': 128, 'sliding_window': 64, 'layer_types': "
     "['sliding_attention', 'sliding_attention', 'sliding_attention', 'sliding_attention', "
     "'sliding_attention', 'full_attention', 'sliding_attention'], 'query_pre_attn_scalar': 128, "
     "'rope_theta': 1000000.0, 'rope_local_base_freq': 10000.0, 'rope_scaling': {'rope_type': "
     "'linear', 'factor': 8.0}, 'tie_word_embeddings': true"},
    {"gemma3",
     {SIZES("gemma3", 1), REAL("gemma3.rope.global.freq_base", 1e6),
      REAL("gemma3.rope.local.freq_base", 2e4)},
     {NULL},
     "'model_type': 'gemma3_text', 'layer_types': ['full_attention'], 'query_pre_attn_scalar': "
     "64, 'rope_theta': 1000000.0, 'rope_local_base_freq': 20000.0, 'tie_word_embeddings': true"},
    {"gemma3",
     {SIZES("gemma3", 1), REAL("gemma3.rope.freq_base_swa", 5e3)},
     {NULL},
     "'model_type': 'gemma3_text', 'layer_types': ['full_attention'], 'query_pre_attn_scalar': "
     "64, 'rope_theta': 10000.0, 'rope_local_base_freq': 5000.0, 'tie_word_embeddings': true"},
    {"olmo2",
     {SIZES("olmo2", 2), REAL("olmo2.rope.freq_base", 5e5)},
     {GGUF_HEAD},
     "'model_type': 'olmo2', 'sliding_window': null, 'layer_types': ['full_attention', "
     "'full_attention'], 'rope_theta': 500000.0, 'tie_word_embeddings': false"},
    {"olmo2",
     {SIZES("olmo2", 4),
      WHOLE("olmo2.attention.sliding_window", 4096),
      {"olmo2.attention.sliding_window_pattern", CHANGE_I32S, 4, NULL, {1, 0, 1, 0}},
      TEXT("olmo2.rope.scaling.type", "yarn"),
      REAL("olmo2.rope.scaling.factor", 8),
      WHOLE("olmo2.rope.scaling.original_context_length", 512),
      REAL("olmo2.rope.scaling.yarn_attn_factor", 1.25),
      REAL("olmo2.rope.scaling.yarn_beta_fast", 32),
      REAL("olmo2.rope.scaling.yarn_beta_slow", 1)},
     {GGUF_HEAD},
     "'model_type': 'olmo3', 'sliding_window': 4096, 'layer_types': ['sliding_attention', "
     "'full_attention', 'sliding_attention', 'full_attention'], 'rope_theta': 10000.0, "
     "'tie_word_embeddings': false, 'rope_scaling': {'rope_type': 'yarn', 'factor': 8.0, "
     "'original_max_position_embeddings': 512, 'attention_factor': 1.25, 'beta_fast': 32.0, "
     "'beta_slow': 1.0}"},
    {"granite",
     {SIZES("granite", 2), REAL("granite.attention.scale", 0.015625),
      REAL("granite.embedding_scale", 12), REAL("granite.residual_scale", 0.25),
      REAL("granite.logit_scale", 8), WHOLE("granite.expert_count", 0),
      WHOLE("granite.expert_shared_feed_forward_length", 512)},
     {NULL},
     "'model_type': 'granite', 'sliding_window': null, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': true, 'attention_bias': false, 'mlp_bias': false, "
     "'attention_multiplier': 0.015625, 'embedding_multiplier': 12.0, 'residual_multiplier': "
     "0.25, 'logits_scaling': 8.0"},
    {"granite",
     {SIZES("granite", 2), REAL("granite.logit_scale", 1)},
     {NULL},
     "'model_type': 'granite', 'sliding_window': null, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': true, 'attention_bias': false, 'mlp_bias': false, "
     "'attention_multiplier': 0.125, 'embedding_multiplier': 1.0, 'residual_multiplier': 1.0, "
     "'logits_scaling': 1.0"},
    {"phi3",
     {SIZES("phi3", 2), WHOLE("phi3.rope.dimension_count", 48),
      WHOLE("phi3.rope.scaling.original_context_length", 256),
      REAL("phi3.rope.scaling.attn_factor", 1.25), WHOLE("phi3.attention.sliding_window", 0)},
     {GGUF_ROPE_LONG, GGUF_ROPE_SHORT},
     "'model_type': 'phi3', 'sliding_window': null, 'rope_theta': 10000.0, "
     "'partial_rotary_factor': 0.75, 'original_max_position_embeddings': 256, "
     "'tie_word_embeddings': true, 'rope_scaling': {'rope_type': 'longrope', 'long_factor': "
     "[1.5], 'short_factor': [1.5], 'original_max_position_embeddings': 256, "
     "'attention_factor': 1.25}"},
    {"phi3",
     {SIZES("phi3", 2), WHOLE("phi3.attention.sliding_window", 200)},
     {NULL},
     "'model_type': 'phi3', 'sliding_window': 200, 'rope_theta': 10000.0, "
     "'partial_rotary_factor': 1.0, 'tie_word_embeddings': true"},
    {"glm4",
     {SIZES("glm4", 2), WHOLE("glm4.rope.dimension_count", 32)},
     {"blk.0.attn_q.bias"},
     "'model_type': 'glm4', 'sliding_window': null, 'rope_theta': 10000.0, "
     "'partial_rotary_factor': 0.5, 'tie_word_embeddings': true, 'attention_bias': true"},
    {"exaone4",
     {SIZES("exaone4", 4), WHOLE("exaone4.attention.sliding_window", 100),
      WHOLE("exaone4.attention.sliding_window_pattern", 2)},
     {NULL},
     "'model_type': 'exaone4', 'sliding_window': 100, 'layer_types': ['sliding_attention', "
     "'full_attention', 'sliding_attention', 'full_attention'], 'rope_theta': 10000.0, "
     "'tie_word_embeddings': true"},
    {"hunyuan-dense",
     {SIZES("hunyuan-dense", 2), REAL("hunyuan-dense.rope.freq_base", 11158840),
      TEXT("hunyuan-dense.rope.scaling.type", "none"), REAL("hunyuan-dense.rope.scaling.factor", 1),
      WHOLE("hunyuan-dense.rope.scaling.original_context_length", 262144)},
     {NULL},
     "'model_type': 'hunyuan_v1_dense', 'sliding_window': null, 'rope_theta': 11158840.0, "
     "'tie_word_embeddings': true"},
    {"minicpm",
     {SIZES("minicpm", 4), REAL("minicpm.embedding_scale", 12),
      REAL("minicpm.residual_scale", 0.75), REAL("minicpm.logit_scale", 4),
      TEXT("minicpm.rope.scaling.type", "longrope")},
     {GGUF_ROPE_LONG, GGUF_ROPE_SHORT},
     "'model_type': 'minicpm', 'sliding_window': null, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': true, 'scale_emb': 12.0, 'scale_depth': 1.5, 'dim_model_base': 64.0, "
     "'original_max_position_embeddings': 1024, 'rope_scaling': {'rope_type': 'longrope', "
     "'long_factor': [1.5], 'short_factor': [1.5], 'original_max_position_embeddings': 1024}"},
    {"mistral3",
     {SIZES("mistral3", 2), REAL("mistral3.rope.freq_base", 1e9)},
     {GGUF_HEAD},
     "'model_type': 'mistral', 'sliding_window': null, 'rope_theta': 1000000000.0, "
     "'tie_word_embeddings': false"},
    {"mistral3",
     {SIZES("mistral3", 2), REAL("mistral3.attention.temperature_scale", 0.125),
      TEXT("mistral3.rope.scaling.type", "yarn"), REAL("mistral3.rope.scaling.factor", 16),
      WHOLE("mistral3.rope.scaling.original_context_length", 64),
      REAL("mistral3.rope.scaling.yarn_log_multiplier", 1)},
     {NULL},
     "'model_type': 'ministral3', 'sliding_window': null, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': true, 'rope_scaling': {'rope_type': 'yarn', 'factor': 16.0, "
     "'original_max_position_embeddings': 64, 'mscale': 1.0, 'mscale_all_dim': 1.0, "
     "'llama_4_scaling_beta': 0.125}"},
};

static void write_translated(const char *path, const struct translated *t)
{
    struct gguf_writer *w;
    const struct gguf_form form = {.change = t->keys};
    static const float table[64 * 256], number = 1.5f;
    struct st_declared declared[5] = {{GGUF_EMBED, NJ_TYPE_F32, 2, {64, 256}}};
    size_t count = 1;
    check_ok(gguf_write_begin(path, &w), t->fields);
    gguf_put_string(w, "general.architecture", t->arch);
    gguf_put_changes(w, &form);
    for (; count <= 4 && t->tensors[count - 1]; count++)
        declared[count] = (struct st_declared){t->tensors[count - 1], NJ_TYPE_F32, 1, {1}};
    check_ok(gguf_write_tensors(w, declared, count), t->fields);
    check_ok(gguf_write_data(w, table, sizeof table), t->fields);
    for (size_t i = 1; i < count; i++)
        check_ok(gguf_write_data(w, &number, sizeof number), t->fields);
    check_ok(gguf_write_end(w), t->fields);
}

static void keys_become_the_fields_of_config_json(void **state)
{
    (void)state;
    static const char sizes[] =
        "{'max_position_embeddings': 1024, 'hidden_size': 256, 'intermediate_size': 512, "
        "'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 64, 'vocab_size': 64, "
        "'rms_norm_eps': 0.5, 'num_hidden_layers': %d, %s}";
    for (size_t i = 0; i < sizeof translated / sizeof *translated; i++) {
        const struct translated *t = &translated[i];
        char text[2048];
        struct gguf g;
        json_t *got;
        write_translated(at("t.gguf"), t);
        check_ok(gguf_open(at("t.gguf"), &g), t->fields);
        check_ok(gguf_config_fields(&g, &got), t->fields);
        snprintf(text, sizeof text, sizes, (int)t->keys[2].number, t->fields);
        for (char *at = text; (at = strchr(at, '\'')) != NULL;)
            *at = '"';
        json_t *want = json_loads(text, 0, NULL); /* the last of two equal keys counts */
        assert_non_null(want);
        if (!json_equal(got, want)) {
            char *shown = json_dumps(got, JSON_SORT_KEYS);
            fail_msg("%s %zu: %s", t->arch, i, shown);
        }
        json_decref(want);
        json_decref(got);
        gguf_close(&g);
    }
}

static void a_shared_mlp_of_another_size_is_refused(void **state)
{
    (void)state;
    static const struct translated wrong = {
        "granite",
        {SIZES("granite", 2), REAL("granite.logit_scale", 8),
         WHOLE("granite.expert_shared_feed_forward_length", 96)},
        {NULL},
        "another size"};
    struct gguf g;
    json_t *got = NULL;
    write_translated(at("wrong.gguf"), &wrong);
    check_ok(gguf_open(at("wrong.gguf"), &g), wrong.fields);
    check_refused(gguf_config_fields(&g, &got), NJ_E_UNSUPPORTED,
                  "granite.expert_shared_feed_forward_length is 96, and the MLP is of 512",
                  wrong.fields);
    gguf_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_become_the_fields_of_config_json),
        cmocka_unit_test(a_shared_mlp_of_another_size_is_refused),
    };
    return cmocka_run_group_tests_name("gguf_fields", tests, scratch_begin, scratch_end);
}
