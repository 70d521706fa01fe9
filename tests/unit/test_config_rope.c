/* SPDX-License-Identifier: Apache-2.0
 *
 * test_config_rope.c: rotations as files of transformers 4 and 5 describe them. Figures are those of transformers 5.24.
 */
#include "config_fixture.h"

#include <math.h>

#define FOUR_NUMBERS "[1,2,3,4]"
#define LISTS                                                                                      \
    "\"short_factor\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"          \
    "\"long_factor\":[2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2]"
#define YARN "\"factor\":8.0,\"original_max_position_embeddings\":1024"
#define LLAMA3 "\"factor\":8.0,\"low_freq_factor\":1,\"high_freq_factor\":4"
#define MINISTRAL3                                                                                 \
    OF("ministral3")                                                                               \
    ",\"rope_parameters\":{\"type\":\"yarn\",\"rope_theta\":1e6,\"factor\":16.0,\"mscale\":1.0,"   \
    "\"mscale_all_dim\":1.0,\"original_max_position_embeddings\":16384"

static void rules_are_read_and_written(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum rope_rule rule;
        float factor, amplitude;
        int original;
    } rows[] = {
        {OF("llama") ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":4}", ROPE_LINEAR, 4, 1, 0},
        {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":4}", ROPE_DEFAULT, 0,
         1, 0},
        {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"yarn\"," YARN "}", ROPE_YARN, 8,
         1.20794415f, 1024},
        {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8}", ROPE_YARN, 8,
         1.20794415f, 2048},
        {OF("llama") ",\"original_max_position_embeddings\":512,\"rope_scaling\":{\"rope_type\":"
                     "\"yarn\",\"factor\":8}",
         ROPE_YARN, 8, 1.20794415f, 512},
        {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"yarn\"," YARN ",\"attention_factor\":1.5}",
         ROPE_YARN, 8, 1.5f, 1024},
        {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"yarn\"," YARN ",\"mscale\":0.707,"
                     "\"mscale_all_dim\":1.0}",
         ROPE_YARN, 8, 0.949560882f, 1024},
        {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"yarn\"," YARN ",\"mscale\":1,"
                     "\"mscale_all_dim\":1.0,\"truncate\":false,\"beta_fast\":16,\"beta_slow\":2}",
         ROPE_YARN, 8, 1, 1024},
        {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"yarn\"," YARN ",\"mscale\":1,"
                     "\"mscale_all_dim\":0}",
         ROPE_YARN, 8, 1.20794415f, 1024},
        {OF("llama") ",\"max_position_embeddings\":8192,\"rope_scaling\":{\"type\":"
                     "\"longrope\"," LISTS ",\"original_max_position_embeddings\":1024}",
         ROPE_LONGROPE, 8, 1.14017543f, 1024},
        {OF("llama") ",\"max_position_embeddings\":8192,\"rope_scaling\":{\"type\":"
                     "\"longrope\"," LISTS
                     ",\"original_max_position_embeddings\":1024,\"factor\":3}",
         ROPE_LONGROPE, 3, 1.07633464f, 1024},
        {OF("phi3") ",\"max_position_embeddings\":131072,\"rope_scaling\":{\"type\":\"su\"," LISTS
                    "}",
         ROPE_LONGROPE, 32, 1.19023807f, 4096},
        {OF("phi3") ",\"rope_scaling\":{\"type\":\"yarn\"," LISTS "}", ROPE_LONGROPE, 1, 1, 4096},
        {OF("phi3") ",\"rope_scaling\":{\"type\":\"longrope\",\"attention_factor\":1.25," LISTS "}",
         ROPE_LONGROPE, 1, 1.25f, 4096},
        {OF("hunyuan_v1_dense") ",\"rope_scaling\":{\"type\":\"dynamic\",\"alpha\":1000.0,"
                                "\"beta_fast\":32,\"beta_slow\":1,\"factor\":1.0,\"mscale\":1.0,"
                                "\"mscale_all_dim\":1.0}",
         ROPE_NTK, 0, 1, 0},
        {OF("hunyuan_v1_dense") ",\"rope_scaling\":{\"type\":\"dynamic\",\"alpha\":0,\"factor\":2}",
         ROPE_DEFAULT, 0, 1, 0},
        {MINISTRAL3 "}", ROPE_YARN, 16, 1, 16384},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        char json[1024];
        snprintf(json, sizeof json, "{%s}", rows[i].json);
        check_ok(read_json(json, &c), json);
        const struct rope *r = &c.arch.rope[0];
        if (r->rule != rows[i].rule || r->scaling.factor != rows[i].factor ||
            r->scaling.original_positions != rows[i].original ||
            !(fabsf(rope_amplitude(r) - rows[i].amplitude) < 2e-7f))
            fail_msg("%s: rule %d, factor %g, amplitude %.9g, %d positions", json, (int)r->rule,
                     (double)r->scaling.factor, (double)rope_amplitude(r),
                     r->scaling.original_positions);
        check_written(&c, json);
    }
}

/* Layers with a window and without have tables of their own, and what scales the one does not scale the other. */
static void tables_of_two_kinds_of_layers_are_read(void **state)
{
    (void)state;
#define GEMMA EIGHT("gemma3_text") ",\"head_dim\":64"
    static const struct {
        const char *json;
        double full, windowed;
        enum rope_rule full_rule, windowed_rule;
    } rows[] = {
        {GEMMA, 1e6, 1e4, ROPE_DEFAULT, ROPE_DEFAULT},
        {GEMMA ",\"rope_theta\":2e6,\"rope_local_base_freq\":3e4,\"rope_scaling\":{\"rope_type\":"
               "\"linear\",\"factor\":8.0}",
         2e6, 3e4, ROPE_LINEAR, ROPE_DEFAULT},
        {GEMMA ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8.0,"
               "\"rope_theta\":2e6},\"sliding_attention\":{\"rope_theta\":3e4}}",
         2e6, 3e4, ROPE_LINEAR, ROPE_DEFAULT},
        {GEMMA ",\"rope_parameters\":{\"full_attention\":null,\"sliding_attention\":{\"rope_type\":"
               "\"linear\",\"factor\":2}}",
         1e6, 1e4, ROPE_DEFAULT, ROPE_LINEAR},
        {GEMMA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":8},\"rope_parameters\":"
               "{\"full_attention\":{\"rope_theta\":2e6}}",
         2e6, 1e4, ROPE_LINEAR, ROPE_DEFAULT},
        {EIGHT("olmo3"), 5e5, 5e5, ROPE_DEFAULT, ROPE_DEFAULT},
        {EIGHT("olmo3") ",\"rope_theta\":1e6,\"rope_scaling\":{\"rope_type\":\"yarn\"," YARN "}",
         1e6, 1e6, ROPE_YARN, ROPE_DEFAULT},
        {EIGHT("olmo3") ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"yarn\"," YARN
                        ",\"rope_theta\":1e6},\"sliding_attention\":{\"rope_type\":\"default\","
                        "\"rope_theta\":5e5}}",
         1e6, 5e5, ROPE_YARN, ROPE_DEFAULT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        char json[1024];
        snprintf(json, sizeof json, "{%s}", rows[i].json);
        check_ok(read_json(json, &c), json);
        const struct rope *r = c.arch.rope;
        if (r[0].theta != rows[i].full || r[1].theta != rows[i].windowed ||
            r[0].rule != rows[i].full_rule || r[1].rule != rows[i].windowed_rule)
            fail_msg("%s: %g %d, %g %d", json, r[0].theta, (int)r[0].rule, r[1].theta,
                     (int)r[1].rule);
        check_written(&c, json);
    }
}

static void parts_of_heads_rotate(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int head_dim, rotary;
    } rows[] = {
        {OF("phi3"), 64, 0},
        {OF("phi3") ",\"partial_rotary_factor\":0.75", 64, 48},
        {OF("phi3") ",\"partial_rotary_factor\":0.75,\"head_dim\":128", 128, 96},
        {OF("phi3") ",\"rope_parameters\":{\"partial_rotary_factor\":0.25}", 64, 16},
        {OF("phi3") ",\"partial_rotary_factor\":0.5,\"head_dim\":96", 96, 48},
        {OF("glm4"), 128, 64},
        {OF("glm4") ",\"head_dim\":64,\"partial_rotary_factor\":0.25", 64, 16},
        {OF("glm4") ",\"partial_rotary_factor\":1.0", 128, 0},
        {OF("llama") ",\"partial_rotary_factor\":1.0", 64, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        char json[1024];
        snprintf(json, sizeof json, "{%s}", rows[i].json);
        check_ok(read_json(json, &c), json);
        assert_int_equal(ATTENTION(&c).head_dim, rows[i].head_dim);
        if (c.arch.rope[0].rotary != rows[i].rotary)
            fail_msg("%s: %d elements rotate", json, c.arch.rope[0].rotary);
        check_written(&c, json);
    }
    /* Every even part of every size of heads survives being written as a fraction. */
    for (int size = 8; size <= CONFIG_HEAD_DIM_MOST; size += 8)
        for (int rotary = 2; rotary < size; rotary += 2) {
            struct model_config c;
            char json[1024];
            snprintf(json, sizeof json, "{%s,\"head_dim\":%d}", OF("phi3"), size);
            check_ok(read_json(json, &c), json);
            c.arch.rope[0].rotary = rotary;
            check_written(&c, json);
        }
}

/* Queries of later positions would be scaled, so that the model has fewer positions. */
static void positions_that_scale_queries_are_left_out(void **state)
{
    (void)state;
    struct model_config c;
    check_ok(read_json("{" MINISTRAL3 "}}", &c), "without a factor");
    assert_int_equal(c.max_positions, 262144);
    check_ok(read_json("{" MINISTRAL3 ",\"llama_4_scaling_beta\":0.1}}", &c), "with a factor");
    assert_int_equal(c.max_positions, 262144); /* which are saved */
    assert_int_equal(config_positions(&c), 16384);
    check_ok(config_check_length(&c, 16384, "m"), "its positions");
    check_refused(config_check_length(&c, 16385, "m"), NJ_E_ARG, "the model has 16384 positions",
                  "one more");
    check_written(&c, "with a factor");
    check_ok(read_json("{" MINISTRAL3 ",\"llama_4_scaling_beta\":0}}", &c), "a factor of 0");
    assert_int_equal(config_positions(&c), 262144);
}

static const struct refused_fields refused[] = {
    {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"yarn\"}", NJ_E_FORMAT, "factor is missing"},
    {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"linear\"}", NJ_E_FORMAT, "factor is missing"},
    {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"dynamic\"}", NJ_E_FORMAT, "factor is missing"},
    {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":2,\"alpha\":9}",
     NJ_E_UNSUPPORTED, "rope_scaling.alpha is 9; this key is not known"},
    {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"yarn\"," YARN ",\"llama_4_scaling_beta\":0.5}",
     NJ_E_UNSUPPORTED, "rope_scaling.llama_4_scaling_beta is 0.5; this key is not known"},
    {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"yarn\"," YARN ",\"mscale\":-1}", NJ_E_FORMAT,
     "rope_scaling.mscale is -1; it must be a number, 0 or more"},
    {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"yarn\"," YARN ",\"attention_factor\":0}",
     NJ_E_FORMAT, "attention_factor is 0"},
    {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"longrope\",\"original_max_position_"
                 "embeddings\":"
                 "1," LISTS "}",
     NJ_E_FORMAT, "no attention_factor follows from it"},
    {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"longrope\"}", NJ_E_FORMAT,
     "rope_scaling.short_factor is ?; it must be a list of 32 numbers"},
    {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"longrope\",\"short_factor\":" FOUR_NUMBERS "}",
     NJ_E_FORMAT, "rope_scaling.short_factor is [1,2,3,4]; it must be a list of 32 numbers"},
    {OF("llama") ",\"head_dim\":8,\"rope_scaling\":{\"rope_type\":\"longrope\",\"short_factor\":"
                 "[1,2,0,4]}",
     NJ_E_FORMAT, "rope_scaling.short_factor is 0; it must be a list of 4 numbers above 0"},
    {OF("phi3") ",\"rope_scaling\":{\"type\":\"su\",\"original_max_position_embeddings\":"
                "8192," LISTS "}",
     NJ_E_FORMAT, "original_max_position_embeddings is 8192; the model must have the same"},
    {OF("phi3") ",\"partial_rotary_factor\":0.5,\"rope_scaling\":{\"type\":\"su\"," LISTS "}",
     NJ_E_FORMAT, "it must be a list of 16 numbers"},
    {OF("phi3") ",\"partial_rotary_factor\":0.05", NJ_E_UNSUPPORTED,
     "partial_rotary_factor is 0.05"},
    {OF("phi3") ",\"partial_rotary_factor\":1.5", NJ_E_UNSUPPORTED, "partial_rotary_factor is 1.5"},
    {OF("glm4") ",\"partial_rotary_factor\":0", NJ_E_FORMAT, "partial_rotary_factor is 0"},
    {OF("llama") ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e4},"
                 "\"sliding_attention\":{\"rope_theta\":2e4}}",
     NJ_E_UNSUPPORTED, "layers of this family rotate alike"},
    {GEMMA ",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":1e6}", NJ_E_FORMAT,
     "it must have an object for full_attention and one for sliding_attention"},
    {GEMMA ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\",\"zzq\":1}}",
     NJ_E_UNSUPPORTED, "rope_parameters.full_attention.zzq is 1; this key is not known"},
    {GEMMA ",\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"zzq\"}}", NJ_E_UNSUPPORTED,
     "rope_parameters.sliding_attention.rope_type is \"zzq\"; default, linear"},
    {EIGHT("olmo3") ",\"rope_scaling\":{\"rope_type\":\"yarn\"," YARN ",\"truncate\":false}",
     NJ_E_UNSUPPORTED,
     "rope_scaling.truncate is false; transformers reads it of a scaling for all"},
    {EIGHT("olmo3") ",\"rope_local_base_freq\":1e4", NJ_E_UNSUPPORTED, "rope_local_base_freq is"},
    {OF("ministral3"), NJ_E_FORMAT, "rope_parameters is missing"},
    {OF("ministral3") ",\"rope_parameters\":{\"rope_type\":\"default\",\"llama_4_scaling_beta\":"
                      "0.5}",
     NJ_E_UNSUPPORTED, "rope_parameters.llama_4_scaling_beta is 0.5; it must be a number, and the"},
    {MINISTRAL3 ",\"llama_4_scaling_beta\":\"x\"}", NJ_E_UNSUPPORTED,
     "rope_parameters.llama_4_scaling_beta is \"x\"; it must be a number"},
    {OF("llama") ",\"rope_scaling\":{\"rope_type\":\"llama3\"," LLAMA3 "}", NJ_E_FORMAT,
     "original_max_position_embeddings is missing"},
};

static void other_rotations_are_refused(void **state)
{
    (void)state;
    check_fields_refused(refused, sizeof refused / sizeof *refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_read_and_written),
        cmocka_unit_test(tables_of_two_kinds_of_layers_are_read),
        cmocka_unit_test(parts_of_heads_rotate),
        cmocka_unit_test(positions_that_scale_queries_are_left_out),
        cmocka_unit_test(other_rotations_are_refused),
    };
    return cmocka_run_group_tests_name("config_rope", tests, scratch_begin, scratch_end);
}
