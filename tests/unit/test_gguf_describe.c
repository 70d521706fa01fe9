/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf_describe.c: which models a GGUF file can describe, and the keys that it gets, read back as fields of
 * config.json.
 */
#include "base/families.h"
#include "formats/gguf_write.h"
#include "io/error.h"
#include "model/gguf_config.h"
#include "model/gguf_describe.h"
#include "model/gguf_names.h"
#include "model/gguf_rope.h"
#include "plain_layers.h"
#include "unit.h"

#include <math.h>
#include <string.h>

/* ---- models ---- */

/* Return a model of the family with heads of 64 elements that are as wide as the stream. */
static struct model_config model_of(const char *model_type, int layers)
{
    struct model_config c = {.hidden_size = 256,
                             .layers = layers,
                             .vocab_size = 64,
                             .max_positions = 1024,
                             .bos_id = -1,
                             .eos_id = -1,
                             .rms_eps = 0.5f};
    const struct family *family = family_find(model_type);
    struct block *blocks = config_plain_layers(&c, model_type);
    blocks[PLAIN_ATTENTION].heads = 4;
    blocks[PLAIN_ATTENTION].kv_heads = 2;
    blocks[PLAIN_ATTENTION].head_dim = 64;
    blocks[PLAIN_GLU].ffn_size = 512;
    c.arch.rope[0].theta = 1e4;
    c.tied = strcmp(family->gguf ? family->gguf : "", "olmo2") != 0;
    return c;
}

static int row_of_act(enum nj_activation kernels)
{
    int i = 0;
    while (hidden_acts[i].kernels != kernels)
        i++;
    return i;
}

/* Let layers have a window and a table of their own, but for every `full_every`-th. */
static void give_windows(struct model_config *c, int window, int full_every, struct rope local)
{
    c->arch.kind[1] = c->arch.kind[0];
    c->arch.kind[1].block[PLAIN_ATTENTION].window = window;
    c->arch.kind[1].block[PLAIN_ATTENTION].rope = 1;
    c->arch.rope[1] = local;
    for (int l = 0; l < c->layers; l++)
        c->arch.kind_of[l] = (l + 1) % full_every != 0;
}

static struct model_config gemma3(void)
{
    struct model_config c = model_of("gemma3_text", 6);
    GLU(&c).act = row_of_act(NJ_GELU_TANH);
    c.embedding_scale = 16;
    c.arch.rope[0] = (struct rope){.theta = 1e6, .rule = ROPE_LINEAR, .scaling = {.factor = 8}};
    give_windows(&c, 100, 6, (struct rope){.theta = 5e3});
    return c;
}

static struct model_config smollm3(void)
{
    struct model_config c = model_of("smollm3", 4);
    c.arch.kind[1] = c.arch.kind[0];
    c.arch.kind[1].block[PLAIN_ATTENTION].rope = 1;
    c.arch.rope[1].rule = ROPE_NONE;
    c.arch.kind_of[3] = 1;
    return c;
}

static const struct rope yarn = {.theta = 1e4,
                                 .rule = ROPE_YARN,
                                 .scaling = {.factor = 8, .original_positions = 128},
                                 .beta_fast = 32,
                                 .beta_slow = 1,
                                 .truncate = true,
                                 .amplitude = 1.5f};

static struct model_config olmo3(void)
{
    struct model_config c = model_of("olmo3", 4);
    c.arch.rope[0] = yarn;
    give_windows(&c, 100, 4, (struct rope){.theta = 1e4});
    return c;
}

static struct model_config exaone4(void)
{
    struct model_config c = model_of("exaone4", 64);
    c.arch.rope[0].rule = ROPE_NONE;
    give_windows(&c, 100, 4, (struct rope){.theta = 1e6});
    return c;
}

static struct model_config granite(const char *model_type)
{
    struct model_config c = model_of(model_type, 1);
    c.embedding_scale = 12;
    c.residual_scale = 0.25f;
    c.logit_scale = 1.0f / 6;
    ATTENTION(&c).score_scale = 0.015625f;
    return c;
}

static struct model_config phi3(void)
{
    struct model_config c = model_of("phi3", 1);
    struct rope *r = &c.arch.rope[0];
    *r = (struct rope){.theta = 1e4,
                       .rule = ROPE_LONGROPE,
                       .rotary = 4,
                       .amplitude = 1.25f,
                       .scaling = {.original_positions = 256},
                       .short_factor = {1, 2},
                       .long_factor = {3, 4}};
    ATTENTION(&c).window = 100;
    return c;
}

static struct model_config hunyuan(void)
{
    struct model_config c = model_of("hunyuan_v1_dense", 1);
    c.arch.rope[0].rule = ROPE_NTK;
    c.arch.rope[0].alpha = 1000;
    return c;
}

static struct model_config mistral3(float amplitude)
{
    struct model_config c = model_of("ministral3", 1);
    c.arch.rope[0] = yarn;
    c.arch.rope[0].amplitude = amplitude;
    return c;
}

/* ---- keys ---- */

/* Return the keys of a file that describes the model, read back. */
static json_t *described(const struct model_config *c, const char *name)
{
    struct gguf_writer *w;
    struct gguf g;
    json_t *fields;
    static const float table[64 * 256], divisors[] = {1.5f, 2.5f};
    const struct st_declared declared[] = {{GGUF_EMBED, NJ_TYPE_F32, 2, {64, 256}},
                                           {GGUF_ROPE_LONG, NJ_TYPE_F32, 1, {2}},
                                           {GGUF_ROPE_SHORT, NJ_TYPE_F32, 1, {2}}};
    const bool has_divisors = c->arch.rope[0].rule == ROPE_LONGROPE;
    check_ok(gguf_check_model(c, name), name);
    check_ok(gguf_write_begin(at("m.gguf"), &w), name);
    gguf_put_string(w, "general.architecture", gguf_arch(c->model_type)->name);
    gguf_describe(w, c);
    check_ok(gguf_write_tensors(w, declared, has_divisors ? 3 : 1), name);
    check_ok(gguf_write_data(w, table, sizeof table), name);
    for (int i = 0; has_divisors && i < 2; i++)
        check_ok(gguf_write_data(w, divisors, sizeof divisors), name);
    check_ok(gguf_write_end(w), name);
    check_ok(gguf_open(at("m.gguf"), &g), name);
    check_ok(gguf_config_fields(&g, &fields), name);
    gguf_close(&g);
    return fields;
}

/* Check some fields, given as JSON with single quotes. */
static void check_fields(const struct model_config *c, const char *wanted)
{
    char text[1024];
    const char *name;
    json_t *value, *fields = described(c, wanted);
    snprintf(text, sizeof text, "{%s}", wanted);
    for (char *at = text; (at = strchr(at, '\'')) != NULL;)
        *at = '"';
    json_t *want = json_loads(text, 0, NULL);
    assert_non_null(want);
    json_object_foreach(want, name, value)
    {
        if (!json_equal(json_object_get(fields, name), value))
            fail_msg("%s: %s is %s", c->model_type, name,
                     json_dumps(json_object_get(fields, name), JSON_ENCODE_ANY));
    }
    json_decref(want);
    json_decref(fields);
}

static void keys_say_what_the_model_is(void **state)
{
    (void)state;
    struct model_config c = gemma3();
    check_fields(&c, "'model_type': 'gemma3_text', 'sliding_window': 100, 'layer_types': "
                     "['sliding_attention', 'sliding_attention', 'sliding_attention', "
                     "'sliding_attention', 'sliding_attention', 'full_attention'], 'rope_theta': "
                     "1000000.0, 'rope_local_base_freq': 5000.0, 'query_pre_attn_scalar': 64, "
                     "'rope_scaling': {'rope_type': 'linear', 'factor': 8.0}");
    c = smollm3();
    check_fields(&c, "'model_type': 'smollm3', 'rope_theta': 10000.0");
    c = olmo3();
    json_t *fields = described(&c, "olmo3"), *scaling = json_object_get(fields, "rope_scaling");
    assert_string_equal(json_string_value(json_object_get(fields, "model_type")), "olmo3");
    assert_string_equal(json_string_value(json_object_get(scaling, "rope_type")), "yarn");
    assert_int_equal(
        json_integer_value(json_object_get(scaling, "original_max_position_embeddings")), 128);
    const double amplitude = json_real_value(json_object_get(scaling, "attention_factor"));
    assert_true(fabs(amplitude - 1.5) < 1e-6);
    json_decref(fields);
    c = exaone4();
    check_fields(&c, "'model_type': 'exaone4', 'sliding_window': 100, 'rope_theta': 1000000.0");
    c = granite("granite");
    check_fields(&c, "'model_type': 'granite', 'embedding_multiplier': 12.0, "
                     "'residual_multiplier': 0.25, 'logits_scaling': 6.0, "
                     "'attention_multiplier': 0.015625");
    c = granite("granitemoehybrid");
    check_fields(&c, "'model_type': 'granite', 'logits_scaling': 6.0");
    c = phi3();
    check_fields(&c, "'model_type': 'phi3', 'sliding_window': 100, 'partial_rotary_factor': "
                     "0.0625, 'rope_scaling': {'rope_type': 'longrope', 'long_factor': [1.5, "
                     "2.5], 'short_factor': [1.5, 2.5], 'original_max_position_embeddings': 256, "
                     "'attention_factor': 1.25}");
    c = model_of("glm4", 1);
    c.arch.rope[0].rotary = 32;
    check_fields(&c, "'model_type': 'glm4', 'partial_rotary_factor': 0.5");
    c = hunyuan();
    fields = described(&c, "hunyuan");
    const double theta = json_real_value(json_object_get(fields, "rope_theta"));
    assert_true(fabs(theta / (1e4 * pow(1000, 64.0 / 62)) - 1) < 1e-7);
    json_decref(fields);
    c = mistral3(1);
    check_fields(&c, "'rope_scaling': {'rope_type': 'yarn', 'factor': 8.0, "
                     "'original_max_position_embeddings': 128, 'beta_fast': 32.0, 'beta_slow': "
                     "1.0, 'mscale': 1.0, 'mscale_all_dim': 1.0}");
}

/* ---- refusals ---- */

static void refused(const struct model_config *c, const char *part)
{
    check_refused(gguf_check_model(c, "m"), NJ_E_UNSUPPORTED, part, part);
}

static void models_of_another_computation_are_refused(void **state)
{
    (void)state;
    struct model_config c = gemma3();
    c.arch.kind_of[0] = 0;
    refused(&c, "m: another choice of layers has the sliding window, and llama.cpp computes");
    c = gemma3();
    ATTENTION(&c).score_scale = 1;
    refused(&c, "scores have another scale");
    c = gemma3();
    c.arch.rope[1].rule = ROPE_LINEAR;
    refused(&c, "positions are scaled (linear)");
    c = gemma3();
    c.logit_cap = 30;
    refused(&c, "logits have a cap");
    c = smollm3();
    c.arch.kind_of[3] = 0;
    refused(&c, "another choice of layers rotates its heads");
    c = olmo3();
    c.tied = true;
    refused(&c, "the head is the embedding table");
    c = olmo3();
    c.hidden_size = 320;
    refused(&c, "heads together are not as wide as hidden_size");
    c = olmo3();
    c.arch.rope[0].truncate = false;
    refused(&c, "yarn without truncate");
    c = exaone4();
    c.layers = 60;
    refused(&c, "a sliding window in a model of this many layers");
    c = model_of("qwen3", 2);
    ATTENTION(&c).window = 100;
    refused(&c, "layers have a sliding window");
    c = model_of("qwen3", 2);
    ATTENTION(&c).features |= FEATURE_BIT(FEATURE_QKV_BIAS);
    refused(&c, "layers have biases");
    c = model_of("llama", 2);
    GLU(&c).features |= FEATURE_BIT(FEATURE_MLP_BIAS);
    check_ok(gguf_check_model(&c, "m"), "llama.cpp reads biases of a llama");
    c.embedding_scale = 2;
    refused(&c, "embeddings, branches or logits have a factor");
    c = model_of("llama", 2);
    c.arch.rope[0].rotary = 32;
    refused(&c, "a part of each head rotates");
    c = model_of("llama", 2);
    c.arch.rope[0].amplitude = 2;
    refused(&c, "rotated elements have a factor");
    c = model_of("llama", 2);
    c.arch.kind[1] = c.arch.kind[0];
    c.arch.kind[1].block[PLAIN_GLU].ffn_size = 64;
    c.arch.kind_of[1] = 1;
    refused(&c, "layers differ in their sizes");
}

/* ---- tensors ---- */

/* Gate and up, which Granite 4 has in one tensor, are two in the file, and gains of Gemma's norms have 1 added. */
static void tensors_are_cut_and_gains_are_whole(void **state)
{
    (void)state;
    const struct model_config hybrid = granite("granitemoehybrid"), gemma = gemma3();
    struct tensor_spec spec = {
        .rank = 2, .shape = {1024, 256}, .role = ROLE_GATE_UP_WEIGHT, .layer = 0};
    struct gguf_part part[GGUF_PARTS_MOST];
    assert_int_equal(gguf_parts(&hybrid, &spec, part), 2);
    assert_string_equal(part[0].spec.name, "blk.0.ffn_gate.weight");
    assert_string_equal(part[1].spec.name, "blk.0.ffn_up.weight");
    assert_int_equal(part[0].first, 0);
    assert_int_equal(part[1].first, 512);
    assert_int_equal(part[1].spec.shape[0], 512);
    assert_int_equal(gguf_parts(&gemma, &spec, part), 1);
    assert_string_equal(part[0].spec.name, "blk.0.ffn_up.weight");

    struct tensor_spec *specs;
    size_t count, norms = 0;
    check_ok(tensor_specs(&gemma, &specs, &count), "specs");
    for (size_t i = 0; i < count; i++) {
        const bool norm = strstr(specs[i].name, "norm.weight") != NULL;
        assert_true(gguf_added(&gemma, &specs[i]) == (norm ? 1 : 0));
        norms += norm;
    }
    assert_int_equal(norms, 6 * 6 + 1);
    free(specs);
    spec.role = ROLE_FFN_NORM;
    assert_true(gguf_added(&hybrid, &spec) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_say_what_the_model_is),
        cmocka_unit_test(models_of_another_computation_are_refused),
        cmocka_unit_test(tensors_are_cut_and_gains_are_whole),
    };
    return cmocka_run_group_tests_name("gguf_describe", tests, scratch_begin, scratch_end);
}
