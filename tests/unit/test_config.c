/* SPDX-License-Identifier: Apache-2.0
 *
 * test_config.c: configurations as transformers 4 and 5 write them, refusals, derived values.
 */
#include "config_fixture.h"
#include "io/json_text.h"
#include "io/notes.h"
#include "model/tensor_names.h"

#include <math.h>

#define QWEN2 OF("qwen2")
#define QWEN3 OF("qwen3")
#define MISTRAL OF("mistral")
#define LLAMA "\"model_type\":\"llama\"," SIZES
#define LLAMA3                                                                                     \
    "\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"                             \
    "\"original_max_position_embeddings\":8192"

static bool has(const struct model_config *c, enum feature feature)
{
    return block_has(&ATTENTION(c), feature);
}

static void families_imply_their_switches(void **state)
{
    (void)state;
    struct model_config c;
    check_ok(read_json("{" QWEN2 "}", &c), "qwen2");
    assert_true(has(&c, FEATURE_QKV_BIAS) && !has(&c, FEATURE_QK_NORM) && !c.tied);
    assert_int_equal(ATTENTION(&c).head_dim, 64);
    assert_int_equal(c.max_positions, 32768);
    assert_int_equal(c.bos_id, -1);
    assert_int_equal(c.eos_id, -1);
    assert_true(c.rms_eps == 1e-6f && c.arch.rope[0].theta == 1e4);
    check_ok(read_json("{" QWEN3 "}", &c), "qwen3");
    assert_true(!has(&c, FEATURE_QKV_BIAS) && has(&c, FEATURE_QK_NORM));
    assert_int_equal(ATTENTION(&c).head_dim, 128);
    check_ok(read_json("{" LLAMA "}", &c), "llama");
    assert_true(!has(&c, FEATURE_QKV_BIAS) && !has(&c, FEATURE_QK_NORM));
    assert_int_equal(ATTENTION(&c).kv_heads, 2);
    assert_int_equal(c.max_positions, 2048);
}

/* A window that contains every position counts as none, and a file that is written says so. */
static void windows_beyond_the_positions_are_none(void **state)
{
    (void)state;
    static const char *const models[] = {
        "{" MISTRAL ",\"sliding_window\":null}",
        "{" MISTRAL ",\"sliding_window\":4096,\"max_position_embeddings\":4096}",
        "{" MISTRAL ",\"max_position_embeddings\":2048}",
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct model_config c, back;
        check_ok(read_json(models[i], &c), models[i]);
        assert_true(!has(&c, FEATURE_QKV_BIAS) && !has(&c, FEATURE_QK_NORM));
        c.max_positions = 100000;
        check_ok(config_write(scratch, &c, "bfloat16"), "write");
        check_ok(config_read(scratch, &back), "read back");
        assert_memory_equal(&c, &back, sizeof c);
    }
}

static void windows_are_read_and_written(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        int window;
    } models[] = {
        {"", 4096},
        {",\"sliding_window\":1", 1},
        {",\"sliding_window\":4095,\"max_position_embeddings\":4096", 4095},
        {",\"sliding_window\":4096,\"max_position_embeddings\":4096", 0},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct model_config c, back;
        char json[1024];
        snprintf(json, sizeof json, "{" MISTRAL "%s}", models[i].fields);
        check_ok(read_json(json, &c), json);
        for (int l = 0; l < c.layers; l++)
            assert_int_equal(arch_block(&c.arch, l, BLOCK_ATTENTION)->window, models[i].window);
        check_ok(config_write(scratch, &c, "bfloat16"), "write");
        check_ok(config_read(scratch, &back), "read back");
        assert_memory_equal(&c, &back, sizeof c);
    }
}

static void activations_are_read_and_written(void **state)
{
    (void)state;
    for (int i = 0; i < HIDDEN_ACTS; i++) {
        struct model_config c, back;
        char fields[300];
        snprintf(fields, sizeof fields, "{" QWEN2 ",\"hidden_act\":\"%s\"}", hidden_acts[i].name);
        check_ok(read_json(fields, &c), fields);
        assert_int_equal(GLU(&c).act, i);
        check_ok(config_write(scratch, &c, "bfloat16"), "write");
        check_ok(config_read(scratch, &back), "read back");
        assert_memory_equal(&c, &back, sizeof c);
    }
}

/* The files of SmolLM2-135M and Mistral-7B-v0.3. */
static void published_files_are_read(void **state)
{
    (void)state;
    struct model_config c;
    check_ok(read_json("{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,"
                       "\"attention_dropout\":0.0,\"bos_token_id\":0,\"eos_token_id\":0,"
                       "\"hidden_act\":\"silu\",\"hidden_size\":576,\"initializer_range\":0.041,"
                       "\"intermediate_size\":1536,\"is_llama_config\":true,"
                       "\"max_position_embeddings\":8192,\"model_type\":\"llama\","
                       "\"num_attention_heads\":9,\"num_hidden_layers\":30,"
                       "\"num_key_value_heads\":3,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,"
                       "\"rope_interleaved\":false,\"rope_scaling\":null,\"rope_theta\":100000,"
                       "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
                       "\"use_cache\":true,\"vocab_size\":49152}",
                       &c),
             "SmolLM2-135M");
    assert_int_equal(ATTENTION(&c).head_dim, 64);
    assert_true(c.tied && c.arch.rope[0].theta == 1e5 && c.rms_eps == 1e-5f);
    assert_int_equal(config_parameters(&c), 134515008);
    check_ok(read_json("{\"architectures\":[\"MistralForCausalLM\"],\"attention_dropout\":0.0,"
                       "\"bos_token_id\":1,\"eos_token_id\":2,\"hidden_act\":\"silu\","
                       "\"hidden_size\":4096,\"initializer_range\":0.02,"
                       "\"intermediate_size\":14336,\"max_position_embeddings\":32768,"
                       "\"model_type\":\"mistral\",\"num_attention_heads\":32,"
                       "\"num_hidden_layers\":32,\"num_key_value_heads\":8,"
                       "\"rms_norm_eps\":1e-05,\"rope_theta\":1000000.0,"
                       "\"sliding_window\":null,\"tie_word_embeddings\":false,"
                       "\"torch_dtype\":\"bfloat16\",\"use_cache\":true,\"vocab_size\":32768}",
                       &c),
             "Mistral-7B-v0.3");
    assert_int_equal(ATTENTION(&c).head_dim, 128);
    assert_true(!c.tied && c.arch.rope[0].theta == 1e6 && ATTENTION(&c).kv_heads == 8);
    assert_int_equal(config_parameters(&c), 7248023552);
}

static void fields_of_config_json_are_read(void **state)
{
    (void)state;
    struct model_config c;
    check_ok(
        read_json("{" QWEN2 ",\"rms_norm_eps\":1e-5,\"rope_theta\":1000000.0,\"head_dim\":128,"
                  "\"tie_word_embeddings\":true,\"bos_token_id\":3,\"eos_token_id\":[5,6],"
                  "\"max_position_embeddings\":77,\"hidden_act\":\"silu\",\"rope_scaling\":null,"
                  "\"use_sliding_window\":false,\"sliding_window\":4096,"
                  "\"layer_types\":[\"full_attention\",\"full_attention\"],"
                  "\"quantization_config\":null}",
                  &c),
        "all");
    assert_true(c.rms_eps == 1e-5f && c.arch.rope[0].theta == 1e6 && c.tied);
    assert_int_equal(ATTENTION(&c).head_dim, 128);
    assert_int_equal(c.bos_id, 3);
    assert_int_equal(c.eos_id, 5);
    assert_int_equal(c.max_positions, 77);
    assert_int_equal(c.arch.rope[0].rule, ROPE_DEFAULT);
}

/* transformers 4 and 5 write the same RoPE settings in two ways. */
static void both_spellings_of_rope_are_read(void **state)
{
    (void)state;
    static const char *const spellings[] = {
        "{" LLAMA ",\"rope_theta\":5e5,\"rope_scaling\":{\"rope_type\":\"llama3\"," LLAMA3 "}}",
        "{" LLAMA ",\"rope_theta\":500000,\"rope_scaling\":{\"type\":\"llama3\"," LLAMA3 "}}",
        "{" LLAMA ",\"rope_parameters\":{\"rope_type\":\"llama3\",\"rope_theta\":5e5," LLAMA3 "}}",
    };
    for (int i = 0; i < 3; i++) {
        struct model_config c;
        check_ok(read_json(spellings[i], &c), spellings[i]);
        assert_true(c.arch.rope[0].theta == 5e5);
        assert_true(c.arch.rope[0].scaling.factor == 8 &&
                    c.arch.rope[0].scaling.low_freq_factor == 1);
        assert_true(c.arch.rope[0].scaling.high_freq_factor == 4);
        assert_int_equal(c.arch.rope[0].scaling.original_positions, 8192);
    }
    struct model_config c;
    check_ok(read_json("{" QWEN2 ",\"rope_parameters\":{\"rope_type\":\"default\","
                       "\"rope_theta\":1e6}}",
                       &c),
             "default");
    assert_true(c.arch.rope[0].theta == 1e6 && c.arch.rope[0].rule == ROPE_DEFAULT);
}

/* The files are read as transformers 5 reads them. */
static void the_object_of_rope_that_counts_is_read(void **state)
{
    (void)state;
    struct model_config c;
    check_ok(read_json("{" LLAMA
                       ",\"rope_theta\":3e4,\"rope_scaling\":{\"rope_type\":\"llama3\"," LLAMA3
                       "},\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":5e5}}",
                       &c),
             "rope_scaling goes before rope_parameters");
    assert_true(c.arch.rope[0].theta == 3e4 && c.arch.rope[0].scaling.factor == 8);
    check_ok(
        read_json("{" LLAMA ",\"rope_scaling\":{},\"rope_parameters\":{\"rope_theta\":5e5}}", &c),
        "an empty object is none");
    assert_true(c.arch.rope[0].theta == 5e5);
    check_ok(read_json("{" LLAMA
                       ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\","
                       "\"rope_theta\":5e5}}}",
                       &c),
             "by type of layer");
    assert_true(c.arch.rope[0].theta == 5e5);
}

static void switched_windows_without_a_layer_are_none(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "", ",\"max_window_layers\":2", ",\"max_window_layers\":1,\"sliding_window\":null",
        ",\"max_window_layers\":1,\"layer_types\":[\"full_attention\",\"full_attention\"]",
        ",\"max_window_layers\":1,\"max_position_embeddings\":64,\"sliding_window\":64"};
    struct model_config c;
    char json[1024];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        snprintf(json, sizeof json, "{" QWEN2 ",\"use_sliding_window\":true%s}", fields[i]);
        check_ok(read_json(json, &c), json);
    }
}

static char heard[1024];
static void hear(const char *sentence)
{
    snprintf(heard, sizeof heard, "%s", sentence);
}

static void dropout_that_is_not_done_is_said_once(void **state)
{
    (void)state;
    struct model_config c;
    notes_to(hear);
    for (int i = 0; i < 2; i++) {
        heard[0] = '\0';
        check_ok(read_json("{" LLAMA ",\"attention_dropout\":0.1}", &c), "dropout");
        assert_true((strstr(heard, "attention_dropout is 0.1; training goes without it") != NULL) ==
                    (i == 0));
    }
    check_ok(read_json("{" LLAMA ",\"attention_dropout\":0.0}", &c), "no dropout");
    assert_string_equal(heard, "");
    notes_to(NULL);
}

/* Each field is one that transformers writes, a later version may write, or another program adds. */
static void fields_that_change_nothing_are_read(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "\"attention_bias\":false,\"mlp_bias\":false,\"is_causal\":true",
        "\"num_local_experts\":1,\"num_experts\":0,\"n_routed_experts\":null",
        "\"embedding_multiplier\":1.0,\"residual_multiplier\":1,\"logits_scaling\":1.0",
        "\"final_logit_softcapping\":null,\"zzq\":null,\"per_layer_config\":null",
        "\"pruned_heads\":{},\"is_encoder_decoder\":false,\"add_cross_attention\":false",
        "\"pretraining_tp\":2,\"use_cache\":false,\"id2label\":{\"0\":\"LABEL_0\"}",
        "\"_name_or_path\":\"a/b\",\"transformers_version\":\"5.24.0\",\"temperature\":0.6",
        "\"tokenizer_model_max_length\":1000000000000000019884624838656,"
        "\"time_step_limit\":[0.0,Infinity]",
    };
    struct model_config plain, c;
    check_ok(read_json("{" LLAMA "}", &plain), "plain");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char json[512];
        snprintf(json, sizeof json, "{" LLAMA ",%s}", fields[i]);
        check_ok(read_json(json, &c), json);
        assert_memory_equal(&c, &plain, sizeof c);
    }
    check_ok(read_json("{" QWEN2 ",\"attention_bias\":true}", &c), "Qwen2 has no such field");
    check_ok(read_json("{" QWEN3 ",\"use_qk_norm\":true}", &c), "Qwen3 has the norms");
}

static const struct {
    const char *json;
    int code;
    const char *part;
} refused[] = {
    {"{" QWEN2 ",}", NJ_E_FORMAT, "config.json:1: "},
    {"[1]", NJ_E_FORMAT, "not a JSON object"},
    {"{" QWEN2 ",\"rope_theta\":Infinity}", NJ_E_FORMAT, "rope_theta is Infinity; it must be"},
    {"{" SIZES "}", NJ_E_FORMAT, "model_type is missing"},
    {"{\"model_type\":\"gpt2\"," SIZES "}", NJ_E_UNSUPPORTED,
     "model_type is \"gpt2\"; llama, mistral, "},
    {"{\"model_type\":\"qwen2_moe\"," SIZES "}", NJ_E_UNSUPPORTED,
     "model_type is \"qwen2_moe\"; llama"},
    {"{\"model_type\":\"mixtral\"," SIZES ",\"num_local_experts\":8}", NJ_E_UNSUPPORTED,
     "model_type is \"mixtral\"; llama"},
    {"{\"model_type\":\"llava\",\"text_config\":{" LLAMA "}}", NJ_E_UNSUPPORTED,
     "text_config is {\"model_type\":\"llama\",\"hidden_size\":128,"},
    {"{\"model_type\":\"llava\",\"text_config\":{" LLAMA "}}", NJ_E_UNSUPPORTED,
     "...; models of more than text"},
    {"{" QWEN2 ",\"vision_config\":{\"depth\":32}}", NJ_E_UNSUPPORTED,
     "vision_config is {\"depth\":32}; models of more than text"},
    {"{" QWEN3 ",\"num_experts\":128}", NJ_E_UNSUPPORTED,
     "num_experts is 128; mixtures of experts"},
    {"{" LLAMA ",\"num_local_experts\":8}", NJ_E_UNSUPPORTED, "num_local_experts is 8; mixtures"},
    {"{" LLAMA ",\"n_routed_experts\":64}", NJ_E_UNSUPPORTED, "n_routed_experts is 64; mixtures"},
    {"{" MISTRAL ",\"attention_bias\":true}", NJ_E_UNSUPPORTED,
     "attention_bias is true; biases of this family"},
    {"{" MISTRAL ",\"sliding_window\":\"x\"}", NJ_E_FORMAT, "sliding_window is \"x\""},
    {"{" MISTRAL ",\"sliding_window\":0}", NJ_E_FORMAT, "sliding_window is 0; it must be a whole"},
    {"{\"model_type\":\"llama\"}", NJ_E_FORMAT, "hidden_size is missing"},
    {"{\"model_type\":\"llama\",\"hidden_size\":\"x\"}", NJ_E_FORMAT, "hidden_size is \"x\""},
    {"{\"model_type\":\"llama\",\"hidden_size\":0}", NJ_E_FORMAT, "hidden_size is 0"},
    {"{\"model_type\":\"llama\",\"hidden_size\":-4}", NJ_E_FORMAT, "hidden_size is -4"},
    {"{\"model_type\":\"llama\",\"hidden_size\":12.5}", NJ_E_FORMAT, "hidden_size is 12.5"},
    {"{\"model_type\":\"llama\",\"hidden_size\":99999999999}", NJ_E_FORMAT, "is 99999999999"},
    {"{" LLAMA ",\"max_position_embeddings\":2000000000}", NJ_E_FORMAT, "2000000000"},
    {"{" QWEN3 ",\"head_dim\":80}", NJ_E_UNSUPPORTED,
     "head_dim (or hidden_size / num_attention_heads) is 80; 64, 128 and 256"},
    {"{" LLAMA ",\"num_key_value_heads\":3}", NJ_E_FORMAT, "no multiple of num_key_value_heads 3"},
    {"{" LLAMA ",\"rms_norm_eps\":0}", NJ_E_FORMAT, "rms_norm_eps is 0"},
    {"{" LLAMA ",\"rms_norm_eps\":\"1e-6\"}", NJ_E_FORMAT, "rms_norm_eps is \"1e-6\""},
    {"{" LLAMA ",\"rope_theta\":-1}", NJ_E_FORMAT, "rope_theta is -1"},
    {"{" LLAMA ",\"tie_word_embeddings\":1}", NJ_E_FORMAT, "tie_word_embeddings is 1"},
    {"{" LLAMA ",\"eos_token_id\":264}", NJ_E_FORMAT, "eos_token_id is 264; it must be below"},
    {"{" LLAMA ",\"eos_token_id\":\"</s>\"}", NJ_E_FORMAT, "eos_token_id is"},
    {"{" LLAMA ",\"hidden_act\":\"relu\"}", NJ_E_UNSUPPORTED,
     "hidden_act is \"relu\"; silu, swish, gelu, gelu_python, "
     "gelu_pytorch_tanh, gelu_python_tanh and gelu_new are supported"},
    {"{" LLAMA ",\"hidden_act\":1}", NJ_E_UNSUPPORTED, "hidden_act is 1; silu, swish, "},
    {"{" LLAMA ",\"attention_bias\":1}", NJ_E_FORMAT, "attention_bias is 1; it must be true or"},
    {"{" QWEN3 ",\"attention_bias\":true}", NJ_E_UNSUPPORTED, "attention_bias is true"},
    {"{" QWEN3 ",\"mlp_bias\":true}", NJ_E_UNSUPPORTED, "mlp_bias is true; biases in the MLP are"},
    {"{" LLAMA ",\"sliding_window\":64}", NJ_E_UNSUPPORTED,
     "sliding_window is 64; models of this family have no windows"},
    {"{" LLAMA ",\"use_sliding_window\":true}", NJ_E_UNSUPPORTED,
     "use_sliding_window is true; models"},
    {"{" QWEN2 ",\"is_causal\":false}", NJ_E_UNSUPPORTED,
     "is_causal is false; only causal models are supported"},
    {"{" LLAMA ",\"rope_parameters\":{\"rope_type\":\"default\",\"scale\":2}}", NJ_E_UNSUPPORTED,
     "rope_parameters.scale is 2; this key is not known"},
    {"{" LLAMA
     ",\"original_max_position_embeddings\":4096,\"rope_scaling\":{\"type\":\"llama3\"," LLAMA3
     "}}",
     NJ_E_FORMAT, "original_max_position_embeddings is 4096; the scaling"},
    {"{" QWEN2 ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]}", NJ_E_FORMAT,
     "layer_types is \"sliding_attention\"; no window is given, or it is switched off"},
    {"{" LLAMA ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]}", NJ_E_UNSUPPORTED,
     "layer_types is \"sliding_attention\"; only full_attention is supported in this family"},
    {"{" QWEN2 ",\"layer_types\":[\"full_attention\",\"mamba\"]}", NJ_E_UNSUPPORTED,
     "layer_types is \"mamba\"; full_attention and sliding_attention are supported"},
    {"{" QWEN2 ",\"layer_types\":[\"full_attention\"]}", NJ_E_FORMAT,
     "layer_types is [\"full_attention\"]; it must be a list with the type of each layer"},
    {"{" QWEN2 ",\"quantization_config\":{\"quant_method\":\"mxfp4\"}}", NJ_E_UNSUPPORTED,
     "quantization_config: quant_method is \"mxfp4\", which is read of gpt_oss alone"},
    {"{" LLAMA ",\"partial_rotary_factor\":0.5}", NJ_E_UNSUPPORTED, "partial_rotary_factor is 0.5"},
    {"{" LLAMA ",\"zzq\":[1]}", NJ_E_UNSUPPORTED, "zzq is [1]; this field is not known"},
    {"{" LLAMA ",\"zzq\":false}", NJ_E_UNSUPPORTED, "zzq is false; this field is not known"},
    {"{" QWEN2 ",\"mlp_bias\":1}", NJ_E_UNSUPPORTED, "mlp_bias is 1; biases in the MLP"},
    {"{" LLAMA ",\"query_pre_attn_scalar\":256}", NJ_E_UNSUPPORTED,
     "query_pre_attn_scalar is 256; this field is not known"},
    {"{" LLAMA ",\"per_layer_config\":{\"0\":{\"intermediate_size\":512}}}", NJ_E_UNSUPPORTED,
     "per_layer_config is {\"0\":{\"intermediate_size\":512}}; layers must be alike"},
    {"{" LLAMA ",\"residual_multiplier\":0.22}", NJ_E_UNSUPPORTED, "residual_multiplier is 0.22;"},
    {"{" LLAMA ",\"final_logit_softcapping\":30.0}", NJ_E_UNSUPPORTED,
     "final_logit_softcapping is 30.0; caps of"},
    {"{" QWEN2 ",\"use_qk_norm\":true}", NJ_E_UNSUPPORTED, "use_qk_norm is true; norms of queries"},
    {"{" LLAMA ",\"rope_scaling\":{\"rope_type\":\"mrope\",\"factor\":4.0}}", NJ_E_UNSUPPORTED,
     "rope_scaling.rope_type is \"mrope\"; default, linear, dynamic, yarn, longrope and llama3 are "
     "supported; without scaling, set rope_scaling to null"},
    {"{" LLAMA ",\"rope_scaling\":{\"type\":\"su\"}}", NJ_E_UNSUPPORTED,
     "rope_scaling.type is \"su\""},
    {"{" LLAMA ",\"rope_scaling\":{\"type\":7}}", NJ_E_UNSUPPORTED, "rope_scaling.type is 7"},
    {"{" LLAMA ",\"rope_parameters\":{\"rope_type\":\"default\",\"partial_rotary_factor\":0.5}}",
     NJ_E_UNSUPPORTED, "partial_rotary_factor is 0.5; only 1 is supported"},
    {"{" LLAMA ",\"rope_parameters\":{\"rope_type\":\"ntk\"}}", NJ_E_UNSUPPORTED,
     "rope_parameters.rope_type is \"ntk\"; default, linear, dynamic, yarn, longrope and llama3 "
     "are "
     "supported; without scaling, set it to default"},
    {"{" LLAMA ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0}}", NJ_E_FORMAT,
     "low_freq_factor is missing"},
    {"{" LLAMA ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":4.0,"
     "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8192}}",
     NJ_E_FORMAT, "high_freq_factor must be above low_freq_factor"},
    {"{" LLAMA ",\"rope_scaling\":\"yarn\"}", NJ_E_FORMAT, "rope_scaling is \"yarn\""},
    {"{\"model_type\":\"llama\",\"hidden_size\":100,\"intermediate_size\":256,"
     "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"vocab_size\":264,\"head_dim\":64}",
     NJ_E_UNSUPPORTED, "hidden_size is 100, intermediate_size is 256; both must be multiples of 8"},
    {"{\"model_type\":\"llama\",\"hidden_size\":1,\"intermediate_size\":256,"
     "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"vocab_size\":264}",
     NJ_E_FORMAT, "hidden_size is 1, less than num_attention_heads 2"},
};

static void other_configurations_are_refused(void **state)
{
    (void)state;
    struct model_config c;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        check_refused(read_json(refused[i].json, &c), refused[i].code, refused[i].part,
                      refused[i].json);
        assert_non_null(strstr(fail_text(), scratch)); /* the message names the file */
    }
    check_refused(config_read(at("missing"), &c), NJ_E_IO, "missing/config.json: No such file",
                  "missing folder");
}

static void written_configurations_read_back(void **state)
{
    (void)state;
    static const char *const models[] = {
        "{" QWEN2 ",\"rms_norm_eps\":1e-5,\"rope_theta\":1e6,\"tie_word_embeddings\":true,"
        "\"bos_token_id\":1,\"eos_token_id\":2}",
        "{" QWEN3 "}",
        "{" LLAMA ",\"rope_theta\":5e5,\"rope_scaling\":{\"rope_type\":\"llama3\"," LLAMA3 "}}",
    };
    for (int i = 0; i < 3; i++) {
        struct model_config c, back;
        check_ok(read_json(models[i], &c), models[i]);
        check_ok(config_write(scratch, &c, "bfloat16"), "write");
        check_ok(config_read(scratch, &back), "read back");
        assert_memory_equal(&c, &back, sizeof c);
    }
    struct model_config c;
    check_ok(read_json(models[0], &c), "again");
    check_refused(config_write("/proc", &c, "float32"), NJ_E_IO,
                  "/proc/config.json: cannot be written", "unwritable");
    ATTENTION(&c).head_dim = 63;
    check_refused(config_write(scratch, &c, "float32"), NJ_E_UNSUPPORTED,
                  "is 63; multiples of 8 up to 256", "bad");
}

/* A config.json of these families has one number of heads, one width and one window for all layers. */
static void layers_that_differ_are_not_written(void **state)
{
    (void)state;
    struct model_config c, other;
    check_ok(read_json("{" LLAMA "}", &c), "read");
    assert_true(c.layers > 1);
    other = c;
    other.arch.kind[1] = c.arch.kind[0];
    other.arch.kind_of[1] = 1;
    check_ok(config_write(scratch, &other, "float32"), "another kind of the same sizes");
    other.arch.kind[1].block[PLAIN_GLU].ffn_size += 8;
    check_refused(config_write(scratch, &other, "float32"), NJ_E_UNSUPPORTED,
                  "config.json of a llama cannot describe these layers", "widths");
    other.arch.kind[1].block[PLAIN_GLU].ffn_size++;
    check_refused(config_check(&other, "m"), NJ_E_UNSUPPORTED, "both must be multiples of 8",
                  "a layer that cannot be");
    ATTENTION(&c).window = 16;
    check_refused(config_write(scratch, &c, "float32"), NJ_E_UNSUPPORTED, "by their sizes, windows",
                  "window");
}

static void written_files_say_what_transformers_reads(void **state)
{
    (void)state;
    struct model_config c;
    char text[4096];
    check_ok(read_json("{" LLAMA ",\"rope_scaling\":{\"rope_type\":\"llama3\"," LLAMA3 "}}", &c),
             "read");
    check_ok(config_write(scratch, &c, "float16"), "write");
    FILE *file = fopen(at("config.json"), "rb");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    static const char *const lines[] = {
        "\"LlamaForCausalLM\"",           "\"torch_dtype\": \"float16\"",
        "\"dtype\": \"float16\"",         "\"rms_norm_eps\": 1e-6",
        "\"tie_word_embeddings\": false", "\"bos_token_id\": null",
        "\"rope_theta\": 10000.0",        "\"factor\": 8.0",
        "\"rope_type\": \"llama3\"",      "\"model_type\": \"llama\""};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(text, lines[i]))
            fail_msg("%s is not in %s", lines[i], text);
}

/* Some layers of a model are copied, as `init --layers` does; other fields of the file are kept, since other programs
 * may need them. */
static void copied_files_say_what_theirs_do(void **state)
{
    (void)state;
    static const char all[] =
        "{" QWEN2 ",\"architectures\":[\"Qwen2Model\"],\"auto_map\":{\"AutoModel\":\"m.M\"},"
        "\"eos_token_id\":[7,9],\"pad_token_id\":3,\"initializer_range\":0.041666666666666664,"
        "\"layer_types\":[\"full_attention\",\"full_attention\"],"
        "\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":32,"
        "\"version\":\"gemm\",\"zero_point\":true},\"dtype\":\"float16\"}";
    static const char copied[] =
        "{" QWEN2 ",\"architectures\":[\"Qwen2ForCausalLM\"],\"eos_token_id\":[7,9],"
        "\"pad_token_id\":3,\"initializer_range\":0.041666666666666664,\"num_hidden_layers\":1,"
        "\"layer_types\":[\"full_attention\"],\"dtype\":\"bfloat16\","
        "\"tie_word_embeddings\":false}";
    struct model_config c;
    json_t *got, *wanted;
    check_ok(read_json(all, &c), "read");
    make_folder("copied");
    c.layers = 1;
    check_ok(config_copy(scratch, at("copied"), &c, "bfloat16"), "copy");
    check_ok(json_read_file(at("copied/config.json"), "", &got), "got");
    check_ok(json_read_text("wanted", copied, strlen(copied), 0, "", &wanted), "wanted");
    if (!json_equal(got, wanted))
        fail_msg("%s", json_dumps(got, 0));
    json_decref(got);
    json_decref(wanted);
}

static void rotary_frequencies_follow_the_formula(void **state)
{
    (void)state;
    struct model_config c = {.layers = 1, CONFIG_PLAIN(1, 1, 128, 8, 0), CONFIG_ROPE(5e5)};
    float plain[64], scaled[64];
    config_inv_freq(&c, c.max_positions, plain);
    for (int i = 0; i < 64; i++)
        assert_true(fabs(plain[i] * pow(5e5, i / 64.0) - 1) < 1e-6);
    c.arch.rope[0].rule = ROPE_LLAMA3;
    c.arch.rope[0].scaling = (struct rope_scaling){8, 1, 4, 8192};
    config_inv_freq(&c, c.max_positions, scaled);
    int kept = 0, slowed = 0, between = 0;
    for (int i = 0; i < 64; i++) {
        const double wave = 2 * acos(-1) / plain[i];
        const double ratio = scaled[i] / (double)plain[i];
        if (wave < 8192 / 4.0) {
            kept += fabs(ratio - 1) < 1e-6;
        } else if (wave > 8192) {
            slowed += fabs(ratio - 0.125) < 1e-6;
        } else {
            const double smooth = (8192 / wave - 1) / 3;
            between += fabs(ratio - (smooth + (1 - smooth) / 8)) < 1e-6;
        }
    }
    assert_int_equal(kept + slowed + between, 64);
    assert_true(kept > 0 && slowed > 0 && between > 0);
}

static void tensors_are_those_of_the_family(void **state)
{
    (void)state;
    struct model_config c;
    struct tensor_spec *spec;
    size_t count;
    check_ok(read_json("{" QWEN2 ",\"tie_word_embeddings\":true}", &c), "qwen2");
    check_ok(tensor_specs(&c, &spec, &count), "specs");
    assert_int_equal(count, 2 + 2 * 12);
    assert_string_equal(spec[0].name, "model.embed_tokens.weight");
    assert_string_equal(spec[13].name, "model.layers.1.input_layernorm.weight");
    assert_string_equal(spec[15].name, "model.layers.1.self_attn.k_proj.weight");
    assert_int_equal(spec[15].shape[0], 64);
    assert_int_equal(spec[15].shape[1], 128);
    assert_string_equal(spec[17].name, "model.layers.1.self_attn.q_proj.bias");
    assert_int_equal(spec[17].rank, 1);
    assert_int_equal(spec[17].layer, 1);
    assert_int_equal(spec[25].role, ROLE_FINAL_NORM);
    free(spec);
    /* 264*128 + 128 + 2*(2*128 + 128*128*2 + 2*64*128 + 128+2*64 + 3*128*256) */
    assert_int_equal(config_parameters(&c),
                     264 * 128 + 128 + 2 * (256 + 32768 + 16384 + 256 + 98304));

    check_ok(read_json("{" QWEN3 "}", &c), "qwen3");
    check_ok(tensor_specs(&c, &spec, &count), "specs");
    assert_int_equal(count, 3 + 2 * 11);
    assert_string_equal(spec[5].name, "model.layers.0.self_attn.q_norm.weight");
    assert_int_equal(spec[5].shape[0], 128);
    assert_string_equal(spec[count - 1].name, "lm_head.weight");
    free(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_imply_their_switches),
        cmocka_unit_test(windows_beyond_the_positions_are_none),
        cmocka_unit_test(windows_are_read_and_written),
        cmocka_unit_test(activations_are_read_and_written),
        cmocka_unit_test(published_files_are_read),
        cmocka_unit_test(fields_of_config_json_are_read),
        cmocka_unit_test(both_spellings_of_rope_are_read),
        cmocka_unit_test(the_object_of_rope_that_counts_is_read),
        cmocka_unit_test(switched_windows_without_a_layer_are_none),
        cmocka_unit_test(dropout_that_is_not_done_is_said_once),
        cmocka_unit_test(fields_that_change_nothing_are_read),
        cmocka_unit_test(other_configurations_are_refused),
        cmocka_unit_test(written_configurations_read_back),
        cmocka_unit_test(layers_that_differ_are_not_written),
        cmocka_unit_test(written_files_say_what_transformers_reads),
        cmocka_unit_test(copied_files_say_what_theirs_do),
        cmocka_unit_test(rotary_frequencies_follow_the_formula),
        cmocka_unit_test(tensors_are_those_of_the_family),
    };
    return cmocka_run_group_tests_name("config", tests, scratch_begin, scratch_end);
}
