/* SPDX-License-Identifier: Apache-2.0
 *
 * test_apr_model.c: APR files as models, compared with the Hugging Face folders that they were made from.
 */
#include "apr_fixture.h"
#include "gguf_fixture.h"
#include "model/model_open.h"
#include "model_fixture.h"

#define COMMON                                                                                     \
    .hidden_size = 256, .layers = 2, .vocab_size = 61, .max_positions = 512, .bos_id = -1,         \
    .eos_id = 60

static const struct model_config llama = {.model_type = "llama",
                                          CONFIG_PLAIN(4, 2, 64, 256, 0),
                                          .rms_eps = 1e-5f,
                                          CONFIG_ROPE(5e5),
                                          .tied = true,
                                          COMMON};
static const struct model_config qwen2 = {
    .model_type = "qwen2",
    CONFIG_PLAIN(4, 2, 64, 256, FEATURE_BIT(FEATURE_QKV_BIAS)),
    .rms_eps = 1e-6f,
    CONFIG_ROPE(1e6),
    .tied = true,
    COMMON};
static const struct model_config qwen3 = {
    .model_type = "qwen3",
    CONFIG_PLAIN(4, 2, 128, 256, FEATURE_BIT(FEATURE_QK_NORM)),
    .rms_eps = 1e-6f,
    CONFIG_ROPE(1e6),
    COMMON};
static const struct model_config *const models[] = {&llama, &qwen2, &qwen3};
enum { MODELS = sizeof models / sizeof *models };

static void write_folders(void)
{
    for (size_t m = 0; m < MODELS; m++)
        if (access(at(models[m]->model_type), F_OK) != 0)
            write_folder(at(models[m]->model_type), models[m]);
}

static void write_apr(const char *file, const char *from, struct apr_form form)
{
    write_folders();
    assert_int_equal(apr_write(at(file), apr_of(at(from), &form)), 0);
}

/* Round a row to the values that a type can store. */
static void round_row(float *x, int64_t columns, int dtype)
{
    static const struct {
        int dtype;
        enum nj_tensor_type type;
    } types[] = {{APR_FILE_F16, NJ_TYPE_F16},
                 {APR_FILE_BF16, NJ_TYPE_BF16},
                 {APR_FILE_Q4_K, NJ_TYPE_Q4_K},
                 {APR_FILE_Q6_K, NJ_TYPE_Q6_K}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char blocks[1024];
        if (types[i].dtype != dtype)
            continue;
        const struct tensor t = {
            .dtype = types[i].type, .rank = 2, .shape = {1, columns}, .data = blocks};
        check_ok(quantize_rows(t.dtype, x, 1, columns, blocks), "quantize");
        tensor_to_f32(&t, 0, columns, x);
    }
}

static void check_tensor(const struct tensor *got, const struct tensor *want, int dtype)
{
    const int64_t rows = want->rank == 2 ? want->shape[0] : 1;
    const int64_t columns = want->rank == 2 ? want->shape[1] : want->shape[0];
    assert_non_null(got);
    for (int64_t r = 0; r < rows; r++) {
        float x[512], y[512];
        tensor_to_f32(got, r * columns, columns, x);
        tensor_to_f32(want, r * columns, columns, y);
        if (want->rank == 2)
            round_row(y, columns, dtype);
        if (memcmp(x, y, (size_t)columns * sizeof *x) != 0)
            fail_msg("%s: row %lld differs", want->name, (long long)r);
    }
}

/* Check that both give the same model. */
static void check_same(const char *file, const char *dir, int dtype)
{
    struct model_config a, b;
    struct tensors x, y;
    check_ok(source_config(at(file), &a), file);
    check_ok(source_config(at(dir), &b), dir);
    check_config(&a, &b);
    check_ok(source_tensors(at(file), &x), file);
    check_ok(source_tensors(at(dir), &y), dir);
    assert_int_equal(x.count, y.count);
    for (size_t i = 0; i < y.count; i++)
        check_tensor(tensors_find(&x, y.tensor[i].name), &y.tensor[i], dtype);
    tensors_close(&x);
    tensors_close(&y);
    assert_false(source_is_folder(at(file)));
}

static void an_apr_file_is_the_folder_it_was_made_of(void **state)
{
    (void)state;
    static const int types[] = {APR_FILE_F32, APR_FILE_F16, APR_FILE_BF16, APR_FILE_Q4_K,
                                APR_FILE_Q6_K};
    for (size_t m = 0; m < MODELS; m++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            write_apr("m.apr", models[m]->model_type, (struct apr_form){.dtype = types[t]});
            check_same("m.apr", models[m]->model_type, types[t]);
        }
}

/* APR's own types, also for q and k, whose rows alternate. */
static void own_blocks_come_in_hugging_faces_order(void **state)
{
    (void)state;
    static const struct {
        int dtype;
        float scale;
        enum nj_tensor_type type;
    } cases[] = {{APR_FILE_Q4, 0, NJ_TYPE_Q4_0},
                 {APR_FILE_Q8, 0, NJ_TYPE_F32},
                 {APR_FILE_Q8, 0x1p-10f, NJ_TYPE_Q8_0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int halves = 0; halves < 2; halves++) {
            struct tensors x, y;
            write_apr("own.apr", "llama",
                      (struct apr_form){
                          .dtype = cases[i].dtype, .scale = cases[i].scale, .halves = halves});
            write_apr("plain.apr", "llama", (struct apr_form){.halves = halves});
            check_ok(source_tensors(at("own.apr"), &x), "own");
            check_ok(source_tensors(at("plain.apr"), &y), "plain");
            for (size_t k = 0; k < x.count; k++) {
                const int64_t all = y.tensor[k].shape[0] * y.tensor[k].shape[1];
                if (x.tensor[k].rank == 1)
                    continue;
                assert_int_equal(x.tensor[k].dtype, cases[i].type);
                float *a = malloc((size_t)all * sizeof *a), *b = malloc((size_t)all * sizeof *b);
                char *rows = malloc(x.tensor[k].bytes);
                assert_true(a && b && rows);
                tensor_to_f32(&x.tensor[k], 0, all, a);
                tensor_to_f32(&y.tensor[k], 0, all, b);
                for (int64_t e = 0; e < all; e++)
                    if (fabsf(a[e] - b[e]) > 0.01f)
                        fail_msg("%s: element %lld", x.tensor[k].name, (long long)e);
                /* rows of blocks are those elements */
                const struct tensor made = {.dtype = x.tensor[k].dtype,
                                            .rank = 2,
                                            .shape = {y.tensor[k].shape[0], y.tensor[k].shape[1]},
                                            .data = rows};
                tensor_rows(&x.tensor[k], 0, y.tensor[k].shape[0], rows);
                tensor_to_f32(&made, 0, all, b);
                assert_memory_equal(a, b, (size_t)all * sizeof *a);
                free(a);
                free(b);
                free(rows);
            }
            tensors_close(&x);
            tensors_close(&y);
        }
}

static void a_head_is_tied_where_it_is_a_copy(void **state)
{
    (void)state;
    struct model_config c;
    static const int types[] = {APR_FILE_F32, APR_FILE_Q4};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        write_apr("copy.apr", "qwen2", (struct apr_form){.dtype = types[t], .copies_head = true});
        check_ok(source_config(at("copy.apr"), &c), "copy");
        assert_true(c.tied);
        write_apr("apart.apr", "qwen2",
                  (struct apr_form){.dtype = types[t], .copies_head = true, .head_apart = true});
        check_ok(source_config(at("apart.apr"), &c), "apart");
        assert_false(c.tied);
        /* nor where nothing says so */
        write_apr("unsaid.apr", "qwen2",
                  (struct apr_form){.dtype = types[t],
                                    .copies_head = true,
                                    .change = "{\"tied_embeddings\":null}"});
        check_ok(source_config(at("unsaid.apr"), &c), "unsaid");
        assert_false(c.tied);
    }
    write_apr("copy.apr", "qwen2", (struct apr_form){.copies_head = true});
    check_same("copy.apr", "qwen2", APR_FILE_F32);
}

static void apr_tensors_have_either_name(void **state)
{
    (void)state;
    for (int names = 0; names < 3; names++)
        for (size_t m = 0; m < MODELS; m++) {
            write_apr("names.apr", models[m]->model_type, (struct apr_form){.names = names});
            check_same("names.apr", models[m]->model_type, APR_FILE_F32);
        }
}

/* Keys have the names that aprender's reader accepts. */
static void apr_keys_have_other_names(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "{\"hidden_size\":null,\"hidden_dim\":256,\"num_layers\":null,\"num_hidden_layers\":2,"
        "\"num_heads\":null,\"num_attention_heads\":4,\"num_kv_heads\":null,"
        "\"num_key_value_heads\":2,\"vocab_size\":null,\"n_vocab\":61,\"intermediate_size\":null,"
        "\"ffn_dim\":256,\"max_position_embeddings\":null,\"max_seq_len\":512,"
        "\"rms_norm_eps\":null,\"layer_norm_eps\":1e-6}",
        "{\"hidden_size\":null,\"d_model\":256,\"num_layers\":null,\"n_layers\":2,"
        "\"num_heads\":null,\"n_heads\":4,\"num_kv_heads\":null,\"n_kv_heads\":2,"
        "\"intermediate_size\":null,\"intermediate_dim\":256,\"max_position_embeddings\":null,"
        "\"context_length\":512,\"rms_norm_eps\":null,\"norm_eps\":1e-6,\"rope_type\":null}",
        "{\"hidden_size\":null,\"n_embd\":256,\"num_layers\":null,\"n_layer\":2,"
        "\"num_heads\":null,\"n_head\":4,\"intermediate_size\":null,\"n_inner\":256,"
        "\"max_position_embeddings\":null,\"n_ctx\":512,\"architecture\":null,"
        "\"model_type\":\"Qwen2\"}",
        "{\"architecture\":\"Auto\",\"hf_model_type\":\"qwen2\",\"head_dim\":null,"
        "\"tokenizer.eos_token_id\":null,\"eos_token_id\":[60,59],\"num_experts\":0}",
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        write_apr("keys.apr", "qwen2", (struct apr_form){.change = changes[i]});
        check_same("keys.apr", "qwen2", APR_FILE_F32);
    }
    /* rotation of halves needs no import from GGUF */
    write_apr("keys.apr", "llama", (struct apr_form){.halves = true});
    check_same("keys.apr", "llama", APR_FILE_F32);
    write_apr("keys.apr", "llama", (struct apr_form){.change = "{\"rope_type\":null}"});
    check_same("keys.apr", "llama", APR_FILE_F32);
}

static void llama3_scaling_is_read(void **state)
{
    (void)state;
    struct model_config c = llama;
    float divisors[32];
    c.arch.rope[0].rule = ROPE_LLAMA3;
    c.arch.rope[0].scaling = (struct rope_scaling){8, 1, 4, 8192};
    c.max_positions = 131072;
    gguf_llama3_divisors(&c, divisors);
    write_folder(at("scaled"), &c);
    write_apr("scaled.apr", "scaled", (struct apr_form){.divisors = divisors});
    check_same("scaled.apr", "scaled", APR_FILE_F32);
    write_apr("said.apr", "scaled",
              (struct apr_form){.change = "{\"rope_scaling\":{\"rope_type\":\"llama3\","
                                          "\"factor\":8,\"low_freq_factor\":1,"
                                          "\"high_freq_factor\":4,"
                                          "\"original_max_position_embeddings\":8192}}"});
    check_same("said.apr", "scaled", APR_FILE_F32);
}

static const float odd[32] = {2, 3};
static const struct refused {
    const char *model;
    struct apr_form form;
    int code;
    const char *part;
} refused[] = {
    {"qwen2",
     {.change = "{\"architecture\":\"gemma3_text\"}"},
     NJ_E_UNSUPPORTED,
     "architecture is gemma3_text; llama, mistral, qwen2 and qwen3 are supported"},
    {"qwen2",
     {.change = "{\"architecture\":null,\"model_type\":null}"},
     NJ_E_FORMAT,
     "architecture is missing; llama"},
    {"qwen2",
     {.change = "{\"architecture\":null,\"model_type\":\"phi\"}"},
     NJ_E_UNSUPPORTED,
     "b.apr: model_type is phi; llama"},
    {"qwen2",
     {.change = "{\"hf_model_type\":\"phi\",\"architecture\":null,\"model_type\":null}"},
     NJ_E_UNSUPPORTED,
     "b.apr: hf_model_type is phi; llama"},
    {"qwen2",
     {.change = "{\"num_layers\":null}"},
     NJ_E_FORMAT,
     "b.apr: num_layers is missing; use the model's Hugging Face folder or GGUF file"},
    {"qwen2",
     {.change = "{\"num_layers\":null,\"n_layer\":-2}"},
     NJ_E_FORMAT,
     "b.apr: n_layer is -2; it must be a whole number above 0"},
    {"qwen2",
     {.change = "{\"num_kv_heads\":3}"},
     NJ_E_FORMAT,
     "num_heads is 4, no multiple of num_kv_heads 3; use the model's Hugging Face folder"},
    {"qwen2",
     {.change = "{\"rope_scaling\":{\"rope_type\":\"mrope\"}}"},
     NJ_E_UNSUPPORTED,
     "rope_type is \"mrope\"; default, linear, "},
    {"qwen2",
     {.change = "{\"layer_types\":[\"mamba\",\"mamba\"]}"},
     NJ_E_UNSUPPORTED,
     "layer_types is \"mamba\"; full_attention and sliding_attention are supported"},
    {"qwen2",
     {.change = "{\"num_layers\":3}"},
     NJ_E_FORMAT,
     "tensor model.layers.2.input_layernorm.weight is missing"},
    {"qwen2",
     {.change = "{\"num_layers\":1}"},
     NJ_E_UNSUPPORTED,
     "tensor model.layers.1.input_layernorm.weight is not part of the model"},
    {"qwen2", {.change = "{\"hidden_size\":\"256\"}"}, NJ_E_FORMAT, "hidden_size is \"256\""},
    {"qwen2",
     {.change = "{\"vocab_size\":64}"},
     NJ_E_FORMAT,
     "has shape [61, 256], the configuration asks for [64, 256]"},
    {"qwen2",
     {.change = "{\"num_experts\":8}"},
     NJ_E_UNSUPPORTED,
     "num_experts is 8; mixtures of experts"},
    {"qwen2", {.change = "{\"head_dim\":66}"}, NJ_E_UNSUPPORTED, "is 66; multiples of 8"},
    {"qwen2",
     {.change = "{\"tokenizer.eos_token_id\":61}"},
     NJ_E_FORMAT,
     "tokenizer.eos_token_id is 61; it must be below vocab_size 61"},
    {"qwen2",
     {.change = "{\"tied_embeddings\":false}"},
     NJ_E_FORMAT,
     "tensor lm_head.weight is missing"},
    {"qwen2",
     {.change = "{\"tied_embeddings\":\"yes\"}"},
     NJ_E_FORMAT,
     "tied_embeddings is neither true nor false"},
    {"qwen2",
     {.change = "{\"tied_embeddings\":null,\"tie_word_embeddings\":1}"},
     NJ_E_FORMAT,
     "tie_word_embeddings is neither true nor false"},
    {"qwen2", {.change = "{\"rope_type\":1}"}, NJ_E_UNSUPPORTED, "rope_type is neither 0"},
    {"qwen2", {.change = "{\"rope_type\":\"neox\"}"}, NJ_E_UNSUPPORTED, "rope_type is neither"},
    {"qwen2",
     {.change = "{\"rope_type\":0}"},
     NJ_E_UNSUPPORTED,
     "rope_type is 0, and heads of qwen2 rotate halves"},
    {"llama",
     {.change = "{\"original_format\":null}"},
     NJ_E_UNSUPPORTED,
     "rope_type is 0, which aprender writes for a Llama's heads in either order"},
    {"llama",
     {.change = "{\"original_format\":\"safetensors\",\"rope_type\":null}"},
     NJ_E_UNSUPPORTED,
     "rope_type is missing, which aprender writes"},
    {"llama", {.divisors = odd}, NJ_E_UNSUPPORTED, "rope_freqs.weight divides frequency 0 by 2"},
    {"qwen2",
     {.drop = "model.layers.1.mlp.up_proj.weight"},
     NJ_E_FORMAT,
     "tensor model.layers.1.mlp.up_proj.weight is missing"},
    {"qwen2",
     {.drop = "model.layers.0.self_attn.q_proj.bias"},
     NJ_E_FORMAT,
     "tensor model.layers.0.self_attn.q_proj.bias is missing"},
    {"llama",
     {.extra = "model.layers.0.self_attn.q_proj.bias"},
     NJ_E_UNSUPPORTED,
     "tensor model.layers.0.self_attn.q_proj.bias is not part of the model"},
    {"llama",
     {.extra = "token_embd.weight"},
     NJ_E_UNSUPPORTED,
     "tensor token_embd.weight is not part of the model"},
};

static void apr_models_that_are_not_computed_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct tensors w = {0};
        write_apr("b.apr", refused[i].model, refused[i].form);
        const int rc = source_tensors(at("b.apr"), &w);
        tensors_close(&w);
        check_refused(rc, refused[i].code, refused[i].part, refused[i].part);
    }
}

/* Damage is noticed when weights are read; reading only the headers works. */
static void damaged_apr_weights_are_refused(void **state)
{
    (void)state;
    struct tensors w;
    struct model_config c;
    unsigned char *types;
    write_folders();
    const struct apr_form form = {.dtype = APR_FILE_Q4_K};
    struct apr_bytes b = apr_of(at("qwen2"), &form);
    b.data[b.bytes - 1000] ^= 16;
    assert_int_equal(apr_write(at("damaged.apr"), b), 0);
    check_ok(source_config(at("damaged.apr"), &c), "configuration");
    check_ok(source_types(at("damaged.apr"), &c, &types), "types");
    assert_int_equal(types[0], NJ_TYPE_Q4_K);
    free(types);
    check_refused(source_tensors(at("damaged.apr"), &w), NJ_E_FORMAT,
                  "the checksum at its end is wrong", "damaged");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_apr_file_is_the_folder_it_was_made_of),
        cmocka_unit_test(own_blocks_come_in_hugging_faces_order),
        cmocka_unit_test(a_head_is_tied_where_it_is_a_copy),
        cmocka_unit_test(apr_tensors_have_either_name),
        cmocka_unit_test(apr_keys_have_other_names),
        cmocka_unit_test(llama3_scaling_is_read),
        cmocka_unit_test(apr_models_that_are_not_computed_are_refused),
        cmocka_unit_test(damaged_apr_weights_are_refused),
    };
    return cmocka_run_group_tests_name("apr_model", tests, scratch_begin, scratch_end);
}
