/* SPDX-License-Identifier: Apache-2.0
 *
 * test_config_composite.c: files of models of text and images, of which the language model is read and saved.
 */
#include "config_fixture.h"
#include "io/json_text.h"
#include "io/notes.h"

#define ONE SIZES ",\"num_key_value_heads\":1"
/* gemma-3-4b-it, but for its sizes. */
#define OUTER                                                                                      \
    "\"model_type\":\"gemma3\",\"architectures\":[\"Gemma3ForConditionalGeneration\"],"            \
    "\"boi_token_index\":255999,\"eoi_token_index\":256000,\"eos_token_id\":[1,106],"              \
    "\"image_token_index\":262144,\"initializer_range\":0.02,\"mm_tokens_per_image\":256,"         \
    "\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.50.0.dev0\",\"vision_config\":"     \
    "{\"hidden_size\":1152,\"model_type\":\"siglip_vision_model\"}"
#define TEXT                                                                                       \
    "\"text_config\":{" ONE ",\"model_type\":\"gemma3_text\",\"sliding_window\":16,"               \
    "\"eos_token_id\":7,\"layer_types\":[\"sliding_attention\",\"full_attention\"]}"

static char heard[1024];
static void hear(const char *sentence)
{
    snprintf(heard, sizeof heard, "%s", sentence);
}

static void the_language_model_is_read(void **state)
{
    (void)state;
    struct model_config c;
    notes_to(hear);
    check_ok(read_json("{" OUTER "," TEXT "}", &c), "gemma3");
    assert_non_null(strstr(heard, "of gemma3, the language model alone is read, and saved as "
                                  "gemma3_text"));
    notes_to(NULL);
    assert_string_equal(c.model_type, "gemma3_text");
    assert_int_equal(c.hidden_size, 128);
    assert_int_equal(c.eos_id, 1); /* the file's own field counts */
    assert_true(c.tied);
    check_ok(read_json("{\"model_type\":\"mistral3\",\"text_config\":{" ONE "}}", &c), "mistral3");
    assert_string_equal(c.model_type, "mistral");
    assert_int_equal(ATTENTION(&c).window, 4096);
    assert_true(c.tied); /* as in Mistral3Config */
    check_ok(
        read_json("{\"model_type\":\"mistral3\",\"tie_word_embeddings\":false,\"text_config\":{"
                  "\"tie_word_embeddings\":true," ONE "}}",
                  &c),
        "untied");
    assert_false(c.tied);
    check_ok(read_json("{\"model_type\":\"muse_glimmer\",\"video_token_id\":9,\"text_config\":{" ONE
                       "}}",
                       &c),
             "muse_glimmer");
    assert_string_equal(c.model_type, "muse_glimmer_text");
    assert_false(c.tied); /* as in MuseGlimmerConfig */
}

/* The form of published files of Qwen3.5, but for the sizes. */
static void files_of_qwen3_5_are_read(void **state)
{
    (void)state;
    static const char json[] =
        "{\"model_type\":\"qwen3_5\",\"architectures\":[\"Qwen3_5ForConditionalGeneration\"],"
        "\"image_token_id\":248056,\"video_token_id\":248057,\"vision_start_token_id\":248053,"
        "\"vision_end_token_id\":248054,\"vision_config\":{\"model_type\":\"qwen3_5\"},"
        "\"text_config\":{" ONE ",\"model_type\":\"qwen3_5_text\",\"attn_output_gate\":true,"
        "\"full_attention_interval\":2,\"linear_num_value_heads\":16,"
        "\"linear_num_key_heads\":16,\"linear_key_head_dim\":128,\"linear_value_head_dim\":128,"
        "\"linear_conv_kernel_dim\":4,\"mamba_ssm_dtype\":\"float32\",\"mtp_num_hidden_layers\":1,"
        "\"mtp_use_dedicated_embeddings\":false,\"rope_parameters\":{\"mrope_interleaved\":true,"
        "\"mrope_section\":[11,11,10],\"rope_type\":\"default\",\"rope_theta\":10000000,"
        "\"partial_rotary_factor\":0.25}}}";
    struct model_config c;
    check_ok(read_json(json, &c), "qwen3_5");
    assert_string_equal(c.model_type, "qwen3_5_text");
    assert_false(c.tied); /* as in Qwen3_5Config */
    assert_int_equal(rope_rotary(&c.arch.rope[0], 256), 64);
    assert_true(c.arch.rope[0].theta == 1e7);
    assert_int_equal(arch_block(&c.arch, 0, BLOCK_DELTA)->heads, 16);
    assert_int_equal(arch_block(&c.arch, 1, BLOCK_ATTENTION)->head_dim, 256);
    check_ok(
        read_json("{\"model_type\":\"qwen3_5_moe\",\"image_token_id\":248056,\"vision_config\":{},"
                  "\"text_config\":{" ONE ",\"num_experts\":16,\"num_experts_per_tok\":8,"
                  "\"moe_intermediate_size\":32,\"shared_expert_intermediate_size\":32,"
                  "\"router_aux_loss_coef\":0.001,\"full_attention_interval\":1}}",
                  &c),
        "qwen3_5_moe");
    assert_string_equal(c.model_type, "qwen3_5_moe_text");
    assert_int_equal(arch_block(&c.arch, 0, BLOCK_EXPERTS)->shared_size, 32);
}

static void the_language_model_is_saved(void **state)
{
    (void)state;
    static const char wanted[] =
        "{" ONE ",\"model_type\":\"gemma3_text\",\"architectures\":[\"Gemma3ForCausalLM\"],"
        "\"sliding_window\":16,\"eos_token_id\":[1,106],\"torch_dtype\":\"float16\","
        "\"tie_word_embeddings\":true,\"layer_types\":[\"sliding_attention\",\"full_attention\"]}";
    struct model_config c, back;
    json_t *got, *want;
    check_ok(read_json("{" OUTER "," TEXT "}", &c), "read");
    make_folder("saved");
    check_ok(config_copy(scratch, at("saved"), &c, "float16"), "copy");
    check_ok(json_read_file(at("saved/config.json"), "", &got), "got");
    check_ok(json_read_text("wanted", wanted, strlen(wanted), 0, "", &want), "wanted");
    if (!json_equal(got, want))
        fail_msg("%s", json_dumps(got, 0));
    json_decref(got);
    json_decref(want);
    check_ok(config_read(at("saved"), &back), "read back");
    assert_memory_equal(&back, &c, sizeof c);
}

static const struct {
    const char *json;
    int code;
    const char *part;
} refused[] = {
    {"{\"model_type\":\"gemma3\"}", NJ_E_FORMAT, "text_config is missing"},
    {"{\"model_type\":\"gemma3\",\"text_config\":[1]}", NJ_E_FORMAT, "text_config is [1]; it must"},
    {"{\"model_type\":\"gemma3\",\"zzq\":1,\"text_config\":{" ONE "}}", NJ_E_UNSUPPORTED,
     "zzq is 1; this field is not known beside text_config"},
    {"{\"model_type\":\"gemma3\",\"text_config\":{\"zzq\":1," ONE "}}", NJ_E_UNSUPPORTED,
     "text_config.zzq is 1; this field is not known"},
    {"{\"model_type\":\"mistral3\",\"text_config\":{\"model_type\":\"zzq\"," ONE "}}",
     NJ_E_UNSUPPORTED, "text_config.model_type is \"zzq\"; llama"},
    {"{\"model_type\":\"mistral3\",\"text_config\":{\"hidden_size\":-1}}", NJ_E_FORMAT,
     "text_config.hidden_size is -1"},
    {"{\"model_type\":\"mistral3\",\"eos_token_id\":264,\"text_config\":{" ONE "}}", NJ_E_FORMAT,
     "json: eos_token_id is 264"},
    {"{\"model_type\":\"mistral3\",\"text_config\":{\"vision_config\":{\"a\":1}," ONE "}}",
     NJ_E_UNSUPPORTED, "models of more than text are not supported"},
};

static void other_composites_are_refused(void **state)
{
    (void)state;
    struct model_config c;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused(read_json(refused[i].json, &c), refused[i].code, refused[i].part,
                      refused[i].json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_language_model_is_read),
        cmocka_unit_test(files_of_qwen3_5_are_read),
        cmocka_unit_test(the_language_model_is_saved),
        cmocka_unit_test(other_composites_are_refused),
    };
    return cmocka_run_group_tests_name("config_composite", tests, scratch_begin, scratch_end);
}
