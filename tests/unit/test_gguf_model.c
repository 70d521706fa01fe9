/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf_model.c: GGUF files as models, compared with the Hugging Face folders that they were made from.
 */
#include "base/families.h"
#include "base/float16.h"
#include "gguf_fixture.h"
#include "gguf_parts.h"
#include "hash_tensors.h"
#include "model/gguf_describe.h"
#include "model/gguf_rope.h"
#include "model/model_open.h"
#include "model_fixture.h"
#include "unit.h"

#define COMMON .vocab_size = 61, .max_positions = 512, .bos_id = -1, .eos_id = 60

/* key-value heads are fewer than heads, but more than one: their count decides the order of k's rows */
static const struct model_config llama = {.model_type = "llama",
                                          .hidden_size = 96,
                                          CONFIG_PLAIN(4, 2, 64, 160, 0),
                                          .layers = 2,
                                          .rms_eps = 1e-5f,
                                          CONFIG_ROPE(5e5),
                                          .tied = true,
                                          COMMON};
static const struct model_config qwen2 = {
    .model_type = "qwen2",
    .hidden_size = 96,
    CONFIG_PLAIN(4, 2, 64, 160, FEATURE_BIT(FEATURE_QKV_BIAS)),
    .layers = 2,
    .rms_eps = 1e-6f,
    CONFIG_ROPE(1e6),
    .tied = true,
    COMMON};
static const struct model_config qwen3 = {
    .model_type = "qwen3",
    .hidden_size = 96,
    CONFIG_PLAIN(4, 2, 128, 160, FEATURE_BIT(FEATURE_QK_NORM)),
    .layers = 2,
    .rms_eps = 1e-6f,
    CONFIG_ROPE(1e6),
    COMMON};

static float rounded(float x, enum nj_tensor_type dtype)
{
    return dtype == NJ_TYPE_F32    ? x
           : dtype == NJ_TYPE_BF16 ? f32_from_bf16(bf16_from_f32(x))
                                   : f32_from_f16(f16_from_f32(x));
}

static void check_tensor(const struct tensor *got, const struct tensor *want,
                         enum nj_tensor_type dtype)
{
    const int64_t n = want->shape[0] * (want->rank == 2 ? want->shape[1] : 1);
    float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
    assert_true(x && y && got);
    assert_string_equal(got->name, want->name);
    tensor_to_f32(got, 0, n, x);
    tensor_to_f32(want, 0, n, y);
    for (int64_t i = 0; i < n; i++)
        if (x[i] != (want->rank == 2 ? rounded(y[i], dtype) : y[i]))
            fail_msg("%s: element %lld is %g, expected %g", want->name, (long long)i, (double)x[i],
                     (double)y[i]);
    free(x);
    free(y);
}

/* Check that both give the same model. */
static void check_same(const char *file, const char *dir, enum nj_tensor_type dtype)
{
    struct model_config a, b;
    struct tensors x, y;
    check_ok(source_config(file, &a), file);
    check_ok(source_config(dir, &b), dir);
    check_config(&a, &b);
    check_ok(source_tensors(file, &x), file);
    check_ok(source_tensors(dir, &y), dir);
    assert_int_equal(x.count, y.count);
    for (size_t i = 0; i < y.count; i++)
        check_tensor(tensors_find(&x, y.tensor[i].name), &y.tensor[i], dtype);
    tensors_close(&x);
    tensors_close(&y);
}

static void a_gguf_file_is_the_folder_it_was_made_of(void **state)
{
    (void)state;
    const struct model_config *const models[] = {&llama, &qwen2, &qwen3};
    static const struct gguf_form forms[] = {{.dtype = NJ_TYPE_F32},
                                             {.dtype = NJ_TYPE_F16, .vocab_size = true},
                                             {.dtype = NJ_TYPE_BF16, .fused = true}};
    for (size_t m = 0; m < 3; m++) {
        write_folder(at(models[m]->model_type), models[m]);
        for (size_t f = 0; f < 3; f++) {
            check_ok(gguf_of(at(models[m]->model_type), at("m.gguf"), &forms[f]), "write");
            check_same(at("m.gguf"), at(models[m]->model_type), forms[f].dtype);
        }
    }
}

static void a_split_file_is_the_folder_it_was_made_of(void **state)
{
    (void)state;
    struct tensors whole, parts;
    const struct gguf_form form = {.dtype = NJ_TYPE_BF16, .fused = true};
    write_folder(at("split"), &qwen2);
    check_ok(gguf_of(at("split"), at("whole.gguf"), &form), "write");
    gguf_split(at("whole.gguf"), at("parts"), 4);
    check_same(at("parts-00001-of-00004.gguf"), at("split"), form.dtype);
    check_ok(source_tensors(at("whole.gguf"), &whole), "whole");
    check_ok(source_tensors(at("parts-00001-of-00004.gguf"), &parts), "parts");
    assert_true(hash_tensors(&whole) == hash_tensors(&parts));
    tensors_close(&whole);
    tensors_close(&parts);
}

/* The presence of output.weight is the only sign of a separate head. */
static void a_head_of_its_own_is_no_table_of_embeddings(void **state)
{
    (void)state;
    struct model_config c = llama;
    c.tied = false;
    write_folder(at("untied"), &c);
    const struct gguf_form form = {.dtype = NJ_TYPE_F32};
    check_ok(gguf_of(at("untied"), at("untied.gguf"), &form), "write");
    check_same(at("untied.gguf"), at("untied"), NJ_TYPE_F32);
}

/* Tensors have llama.cpp's names, for reading and for writing. */
static void tensors_have_llama_cpps_names(void **state)
{
    (void)state;
    static const struct {
        const char *theirs, *ours;
    } same[] = {
        {"token_embd.weight", "model.embed_tokens.weight"},
        {"output_norm.weight", "model.norm.weight"},
        {"output.weight", "lm_head.weight"},
        {"blk.1.attn_norm.weight", "model.layers.1.input_layernorm.weight"},
        {"blk.1.ffn_norm.weight", "model.layers.1.post_attention_layernorm.weight"},
        {"blk.1.attn_q.weight", "model.layers.1.self_attn.q_proj.weight"},
        {"blk.1.attn_k.weight", "model.layers.1.self_attn.k_proj.weight"},
        {"blk.1.attn_v.weight", "model.layers.1.self_attn.v_proj.weight"},
        {"blk.1.attn_q.bias", "model.layers.1.self_attn.q_proj.bias"},
        {"blk.1.attn_k.bias", "model.layers.1.self_attn.k_proj.bias"},
        {"blk.1.attn_v.bias", "model.layers.1.self_attn.v_proj.bias"},
        {"blk.1.attn_q_norm.weight", "model.layers.1.self_attn.q_norm.weight"},
        {"blk.1.attn_k_norm.weight", "model.layers.1.self_attn.k_norm.weight"},
        {"blk.1.attn_output.weight", "model.layers.1.self_attn.o_proj.weight"},
        {"blk.1.ffn_gate.weight", "model.layers.1.mlp.gate_proj.weight"},
        {"blk.1.ffn_up.weight", "model.layers.1.mlp.up_proj.weight"},
        {"blk.1.ffn_down.weight", "model.layers.1.mlp.down_proj.weight"},
    };
    struct model_config c = qwen2;
    struct tensor_spec *spec;
    size_t specs, found = 0;
    char name[128];
    c.tied = false;
    /* No family has both features; this way all roles occur. */
    ATTENTION(&c).features |= FEATURE_BIT(FEATURE_QK_NORM);
    check_ok(tensor_specs(&c, &spec, &specs), "specs");
    for (size_t i = 0; i < specs; i++)
        for (size_t k = 0; k < sizeof same / sizeof *same; k++)
            if (strcmp(spec[i].name, same[k].ours) == 0) {
                gguf_tensor_name(NULL, &spec[i], name);
                assert_string_equal(name, same[k].theirs);
                found++;
            }
    assert_int_equal(found, sizeof same / sizeof *same);
    free(spec);
    assert_string_equal(gguf_arch("llama")->name, "llama");
    assert_string_equal(gguf_arch("mistral")->name, "llama");
    assert_string_equal(gguf_arch("qwen2")->name, "qwen2");
    assert_string_equal(gguf_arch("qwen3")->name, "qwen3");
}

static void rows_alternate_in_queries_and_keys_of_llama(void **state)
{
    (void)state;
    for (int r = 0; r < ROLE_COUNT; r++) {
        const int heads = r == ROLE_Q_WEIGHT || r == ROLE_Q_BIAS   ? ATTENTION(&llama).heads
                          : r == ROLE_K_WEIGHT || r == ROLE_K_BIAS ? ATTENTION(&llama).kv_heads
                                                                   : 0;
        const struct tensor_spec spec = {.role = (enum tensor_role)r, .layer = 1};
        assert_int_equal(gguf_pairs(&llama, &spec), heads);
        assert_int_equal(gguf_pairs(&qwen2, &spec), 0);
        assert_int_equal(gguf_pairs(&qwen3, &spec), 0);
    }
}

/* The rule is recovered from the divisors of frequencies, and gives the same angles up to the last position. */
static void llama3_scaling_is_found_in_the_divisors(void **state)
{
    (void)state;
    static const struct {
        int head_dim;
        double theta;
        struct rope_scaling scaling;
    } models[] = {
        {128, 5e5, {8, 1, 4, 8192}}, /* Llama 3.1 */
        {64, 5e5, {32, 1, 4, 8192}}, /* Llama 3.2 */
        {128, 5e5, {16, 1, 4, 8192}}, {64, 5e5, {8, 1, 4, 256}}, {64, 1e4, {8, 1, 4, 2048}},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct model_config c = llama, back;
        char dir[32], file[32];
        float divisors[64], inv_freq[64];
        ATTENTION(&c).head_dim = models[i].head_dim;
        c.arch.rope[0].theta = models[i].theta;
        c.arch.rope[0].rule = ROPE_LLAMA3;
        c.arch.rope[0].scaling = models[i].scaling;
        c.max_positions = 131072;
        snprintf(dir, sizeof dir, "scaled-%zu", i);
        snprintf(file, sizeof file, "scaled-%zu.gguf", i);
        write_folder(at(dir), &c);
        const struct gguf_form form = {.dtype = NJ_TYPE_F32};
        check_ok(gguf_of(at(dir), at(file), &form), "write");
        check_same(at(file), at(dir), NJ_TYPE_F32);
        check_ok(source_config(at(file), &back), "read");
        gguf_llama3_divisors(&c, divisors);
        config_inv_freq(&back, back.max_positions, inv_freq);
        for (int k = 0; k < models[i].head_dim / 2; k++) {
            const double frequency = rope_frequency(&c.arch.rope[0], models[i].head_dim, k);
            const double theirs = frequency / (double)divisors[k];
            assert_true(fabs((double)inv_freq[k] - theirs) * 131071 < 0.02);
        }
        gguf_rope_freqs(&back, inv_freq);
        for (int k = 0; k < models[i].head_dim / 2; k++)
            assert_true(fabsf(inv_freq[k] / divisors[k] - 1) < 1e-5f);
    }
}

/* Divisors of 1 scale nothing. */
static void divisors_of_one_are_no_scaling(void **state)
{
    (void)state;
    float ones[32];
    struct model_config c;
    for (int i = 0; i < 32; i++)
        ones[i] = 1;
    const struct gguf_form form = {.dtype = NJ_TYPE_F32, .divisors = ones, .divisor_count = 32};
    write_folder(at("ones"), &llama);
    check_ok(gguf_of(at("ones"), at("ones.gguf"), &form), "write");
    check_ok(source_config(at("ones.gguf"), &c), "read");
    assert_int_equal(c.arch.rope[0].rule, ROPE_DEFAULT);
}

static void gguf_values_may_be_arrays_and_absent(void **state)
{
    (void)state;
    static const struct gguf_change change[] = {
        {"llama.feed_forward_length", CHANGE_I32S, 2, NULL, {160, 160}},
        {"llama.attention.value_length", CHANGE_DROP, 0, NULL, {0}},
        {"llama.rope.dimension_count", CHANGE_U32, 64, NULL, {0}},
        {"llama.rope.scaling.type", CHANGE_TEXT, 0, "none", {0}},
        {"llama.expert_count", CHANGE_U32, 0, NULL, {0}},
        {"llama.attention.sliding_window", CHANGE_U32, 512, NULL, {0}},
        {"general.name", CHANGE_TEXT, 0, "any", {0}},
        {NULL, CHANGE_DROP, 0, NULL, {0}},
    };
    const struct gguf_form form = {.dtype = NJ_TYPE_F32, .change = change};
    struct model_config c = llama;
    c.hidden_size = 256;
    write_folder(at("arrays"), &c);
    check_ok(gguf_of(at("arrays"), at("arrays.gguf"), &form), "write");
    check_same(at("arrays.gguf"), at("arrays"), NJ_TYPE_F32);

    /* head_dim is hidden_size / heads, theta 10000, and there are as many key heads as query heads */
    static const struct gguf_change fewer[] = {
        {"llama.attention.key_length", CHANGE_DROP, 0, NULL, {0}},
        {"llama.attention.value_length", CHANGE_DROP, 0, NULL, {0}},
        {"llama.attention.head_count_kv", CHANGE_DROP, 0, NULL, {0}},
        {"llama.rope.freq_base", CHANGE_DROP, 0, NULL, {0}},
        {"llama.rope.scaling.type", CHANGE_TEXT, 0, "linear", {0}},
        {NULL, CHANGE_DROP, 0, NULL, {0}},
    };
    const struct gguf_form least = {.dtype = NJ_TYPE_F32, .change = fewer};
    ATTENTION(&c).kv_heads = 4;
    c.arch.rope[0].theta = 1e4;
    write_folder(at("least"), &c);
    check_ok(gguf_of(at("least"), at("least.gguf"), &least), "write");
    check_same(at("least.gguf"), at("least"), NJ_TYPE_F32);
}

#define CHANGED(...)                                                                               \
    (const struct gguf_change[])                                                                   \
    {                                                                                              \
        {__VA_ARGS__},                                                                             \
        {                                                                                          \
            NULL, CHANGE_DROP, 0, NULL,                                                            \
            {                                                                                      \
                0                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define DROPPED(key) CHANGED(key, CHANGE_DROP, 0, NULL, {0})
#define SET(key, x) CHANGED(key, CHANGE_U32, x, NULL, {0})

static float odd[32], nan_first[32], few[31];
static const struct {
    const struct model_config *model;
    struct gguf_form form;
    int code;
    const char *part;
} refused[] = {
    {&llama,
     {.change = DROPPED("general.architecture")},
     NJ_E_FORMAT,
     "general.architecture is missing; llama, qwen2, qwen3, "},
    {&llama,
     {.change = CHANGED("general.architecture", CHANGE_TEXT, 0, "qwen3vlmoe", {0})},
     NJ_E_UNSUPPORTED,
     "general.architecture is qwen3vlmoe; llama, qwen2, qwen3, "},
    {&llama,
     {.change = DROPPED("llama.context_length")},
     NJ_E_FORMAT,
     "llama.context_length is missing; fetch"},
    {&llama,
     {.change = DROPPED("llama.attention.layer_norm_rms_epsilon")},
     NJ_E_FORMAT,
     "llama.attention.layer_norm_rms_epsilon is missing"},
    {&llama,
     {.change = SET("llama.block_count", 0)},
     NJ_E_FORMAT,
     "llama.block_count is 0; it must be a whole number above 0"},
    {&llama, {.change = SET("llama.block_count", 4e9)}, NJ_E_FORMAT, "is 4000000000"},
    {&llama,
     {.change = CHANGED("llama.block_count", CHANGE_TEXT, 0, "two", {0})},
     NJ_E_FORMAT,
     "llama.block_count is string"},
    {&llama,
     {.change = CHANGED("llama.feed_forward_length", CHANGE_I32S, 2, NULL, {160, 96})},
     NJ_E_UNSUPPORTED,
     "llama.feed_forward_length is 160 for layer 0 and 96 for layer 1"},
    {&llama,
     {.change = CHANGED("llama.feed_forward_length", CHANGE_I32S, 0, NULL, {0})},
     NJ_E_FORMAT,
     "llama.feed_forward_length is empty"},
    {&llama,
     {.change = SET("llama.attention.value_length", 32)},
     NJ_E_UNSUPPORTED,
     "llama.attention.value_length is 32, and heads are of 64"},
    {&llama,
     {.change = SET("llama.rope.dimension_count", 32)},
     NJ_E_UNSUPPORTED,
     "llama.rope.dimension_count is 32, and heads are of 64; use a model that rotates whole"},
    {&llama,
     {.change = SET("llama.embedding_length", 3)},
     NJ_E_FORMAT,
     "embedding_length is 3, less than attention.head_count 4"},
    {&llama,
     {.change = SET("llama.attention.head_count_kv", 3)},
     NJ_E_FORMAT,
     "llama.attention.head_count is 4, no multiple of llama.attention.head_count_kv 3; fetch or"},
    {&llama,
     {.change = SET("llama.expert_count", 8)},
     NJ_E_UNSUPPORTED,
     "llama.expert_count is 8; mixtures of experts"},
    {&llama,
     {.change = CHANGED("llama.attention.causal", CHANGE_BOOL, 0, NULL, {0})},
     NJ_E_UNSUPPORTED,
     "llama.attention.causal is false; use a causal model"},
    {&llama,
     {.change = CHANGED("llama.logit_scale", CHANGE_F32, 0.5, NULL, {0})},
     NJ_E_UNSUPPORTED,
     "llama.logit_scale is 0.5, and models are computed with 1"},
    {&llama,
     {.change = CHANGED("llama.final_logit_softcapping", CHANGE_F32, 30, NULL, {0})},
     NJ_E_UNSUPPORTED,
     "llama.final_logit_softcapping is 30, and models are computed with 0"},
    {&llama,
     {.change = CHANGED("llama.rope.scaling.attn_factor", CHANGE_F32, 2, NULL, {0})},
     NJ_E_UNSUPPORTED,
     "llama.rope.scaling.attn_factor is 2, and models are computed with 1"},
    {&llama,
     {.change = CHANGED("general.type", CHANGE_TEXT, 0, "adapter", {0})},
     NJ_E_UNSUPPORTED,
     "general.type is adapter; name the file of a model"},
    {&qwen2,
     {.change = SET("qwen2.attention.sliding_window", 128)},
     NJ_E_UNSUPPORTED,
     "qwen2.attention.sliding_window is 128; sliding windows"},
    {&llama,
     {.change = CHANGED("llama.rope.scaling.type", CHANGE_TEXT, 0, "ntk", {0})},
     NJ_E_UNSUPPORTED,
     "llama.rope.scaling.type is ntk; none, linear, yarn and longrope are read"},
    {&llama,
     {.change = CHANGED("llama.rope.scaling.type", CHANGE_TEXT, 0, "yarn", {0})},
     NJ_E_FORMAT,
     "llama.rope.scaling.factor is missing"},
    {&llama,
     {.change = CHANGED("llama.rope.freq_base", CHANGE_F32, -1, NULL, {0})},
     NJ_E_FORMAT,
     "llama.rope.freq_base is -1; it must be a number above 0"},
    {&llama,
     {.change = SET("tokenizer.ggml.eos_token_id", 4e9)},
     NJ_E_FORMAT,
     "tokenizer.ggml.eos_token_id is 4000000000; it must be a token id"},
    {&llama,
     {.change = SET("tokenizer.ggml.eos_token_id", 61)},
     NJ_E_FORMAT,
     "tokenizer.ggml.eos_token_id is 61; it must be below llama.vocab_size 61"},
    {&llama, {.change = SET("llama.attention.key_length", 80)}, NJ_E_UNSUPPORTED, "heads are"},
    {&llama,
     {.divisors = odd, .divisor_count = 32},
     NJ_E_UNSUPPORTED,
     "rope_freqs.weight divides frequency 0 by 1, where Llama 3's rule has 1.1"},
    {&llama,
     {.change = CHANGED("llama.rope.scaling.factor", CHANGE_F32, 2, NULL, {0}),
      .divisors = nan_first,
      .divisor_count = 32},
     NJ_E_UNSUPPORTED,
     "tensor rope_freqs.weight and the metadata both scale positions"},
    {&llama,
     {.divisors = nan_first, .divisor_count = 32},
     NJ_E_UNSUPPORTED,
     "divides frequency 0 by"},
    {&llama,
     {.divisors = few, .divisor_count = 31},
     NJ_E_FORMAT,
     "rope_freqs.weight is not 32 numbers of F32"},
    {&llama, {.drop = "token_embd.weight"}, NJ_E_FORMAT, "token_embd.weight is missing"},
    {&llama, {.drop = "blk.1.ffn_up.weight"}, NJ_E_FORMAT, "tensor blk.1.ffn_up.weight is missing"},
    {&qwen2,
     {.extra = "blk.0.attn_output.bias"},
     NJ_E_UNSUPPORTED,
     "tensor blk.0.attn_output.bias is not part of the model that the metadata describes"},
    {&qwen2, {.drop = "blk.0.attn_q.bias"}, NJ_E_FORMAT, "blk.0.attn_q.bias is missing"},
    {&llama,
     {.extra = "blk.2.attn_norm.weight"},
     NJ_E_UNSUPPORTED,
     "tensor blk.2.attn_norm.weight is not part of the model that the metadata describes"},
    {&llama,
     {.extra = "blk.0.attn_qkv.weight"},
     NJ_E_UNSUPPORTED,
     "tensors blk.0.attn_q.weight and blk.0.attn_qkv.weight hold the same weights"},
    {&llama,
     {.change = SET("llama.vocab_size", 77)},
     NJ_E_FORMAT,
     "tensor token_embd.weight has shape [61, 96], the configuration asks for [77, 96]"},
    {&llama,
     {.fused = true, .change = SET("llama.attention.head_count_kv", 4)},
     NJ_E_FORMAT,
     "blk.0.attn_qkv.weight has 512 rows where q, k and v have 768"},
};

static void gguf_models_that_are_not_computed_are_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 32; i++)
        odd[i] = nan_first[i] = 1 + (float)i;
    nan_first[0] = NAN;
    write_folder(at("whole-llama"), &llama);
    write_folder(at("whole-qwen2"), &qwen2);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct tensors w = {0};
        struct gguf_form form = refused[i].form;
        form.dtype = NJ_TYPE_F32;
        check_ok(gguf_of(at(refused[i].model == &llama ? "whole-llama" : "whole-qwen2"),
                         at("b.gguf"), &form),
                 refused[i].part);
        const int rc = source_tensors(at("b.gguf"), &w);
        tensors_close(&w);
        check_refused(rc, refused[i].code, refused[i].part, refused[i].part);
    }
}

/* llama.cpp assumes the activation of an architecture, and reads a scale of positions for some architectures only. */
static void models_that_a_file_would_say_wrongly_are_refused(void **state)
{
    (void)state;
    static const struct rope_scaling scaling = {8, 1, 4, 8192};
    const struct model_config *const models[] = {&llama, &qwen2, &qwen3};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct model_config c = *models[i];
        check_ok(gguf_check_model(&c, "m"), c.model_type);
        for (int act = 0; act < HIDDEN_ACTS; act++) {
            GLU(&c).act = act;
            if (hidden_acts[act].kernels == NJ_SILU)
                check_ok(gguf_check_model(&c, "m"), hidden_acts[act].name);
            else
                check_refused(gguf_check_model(&c, "m"), NJ_E_UNSUPPORTED, "m: hidden_act is gelu",
                              hidden_acts[act].name);
        }
        GLU(&c).act = 0;
        c.arch.rope[0].rule = ROPE_LLAMA3;
        c.arch.rope[0].scaling = scaling;
        if (models[i] == &llama)
            check_ok(gguf_check_model(&c, "m"), "scaled");
        else
            check_refused(gguf_check_model(&c, "m"), NJ_E_UNSUPPORTED, "m: positions are scaled",
                          c.model_type);
    }
}

/* Files of both families have the same architecture; those with a window are of the one that has windows. */
static void a_llama_with_a_window_is_a_mistral(void **state)
{
    (void)state;
    const struct gguf_form form = {.dtype = NJ_TYPE_F32,
                                   .change = SET("llama.attention.sliding_window", 100)};
    struct model_config c;
    write_folder(at("window"), &llama);
    check_ok(gguf_of(at("window"), at("window.gguf"), &form), "write");
    check_ok(source_config(at("window.gguf"), &c), "read");
    assert_string_equal(c.model_type, "mistral");
    assert_int_equal(arch_block(&c.arch, 1, BLOCK_ATTENTION)->window, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gguf_file_is_the_folder_it_was_made_of),
        cmocka_unit_test(a_split_file_is_the_folder_it_was_made_of),
        cmocka_unit_test(a_head_of_its_own_is_no_table_of_embeddings),
        cmocka_unit_test(tensors_have_llama_cpps_names),
        cmocka_unit_test(rows_alternate_in_queries_and_keys_of_llama),
        cmocka_unit_test(llama3_scaling_is_found_in_the_divisors),
        cmocka_unit_test(divisors_of_one_are_no_scaling),
        cmocka_unit_test(gguf_values_may_be_arrays_and_absent),
        cmocka_unit_test(gguf_models_that_are_not_computed_are_refused),
        cmocka_unit_test(models_that_a_file_would_say_wrongly_are_refused),
        cmocka_unit_test(a_llama_with_a_window_is_a_mistral),
    };
    return cmocka_run_group_tests_name("gguf_model", tests, scratch_begin, scratch_end);
}
