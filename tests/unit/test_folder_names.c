/* SPDX-License-Identifier: Apache-2.0
 *
 * test_folder_names.c: tensors of a folder get their model's names, whichever program saved them; which head is used;
 * tensors that are not weights.
 */
#include "formats/safetensors.h"
#include "io/notes.h"
#include "model/folder_names.h"
#include "model/quantized_folder.h"
#include "unit.h"

#include <jansson.h>

static char heard[4096];

static void hear(const char *sentence)
{
    const size_t used = strlen(heard);
    snprintf(heard + used, sizeof heard - used, "%s\n", sentence);
}

/* Weights of two elements each, with consecutive values, in the given order; types of 4 or 8 bytes. */
struct row {
    const char *name, *type;
    float first;
};

static void write_weights(const struct row *row, size_t rows)
{
    json_t *header = json_object();
    float data[64] = {0};
    size_t bytes = 0;
    for (size_t i = 0; i < rows; i++) {
        const bool wide = strcmp(row[i].type, "I64") == 0;
        const size_t more = wide ? 16 : 8;
        json_object_set_new(header, row[i].name,
                            json_pack("{s:s,s:[i],s:[i,i]}", "dtype", row[i].type, "shape", 2,
                                      "data_offsets", (int)bytes, (int)(bytes + more)));
        data[bytes / 4] = row[i].first;
        data[bytes / 4 + 1] = row[i].first + 1;
        bytes += more;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    const uint64_t length = strlen(text);
    FILE *f = fopen(at("model.safetensors"), "wb");
    assert_non_null(f);
    fwrite(&length, sizeof length, 1, f);
    fwrite(text, 1, length, f);
    fwrite(data, 1, bytes, f);
    assert_int_equal(fclose(f), 0);
    free(text);
    json_decref(header);
}

static void write_config(bool tied)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":64,"
             "\"num_hidden_layers\":1,\"num_attention_heads\":1,\"vocab_size\":8,"
             "\"tie_word_embeddings\":%s}",
             tied ? "true" : "false");
    write_text(at("config.json"), text);
    heard[0] = '\0';
    notes_to(hear);
}

static float first_of(const struct tensors *w, const char *name)
{
    float x = -1;
    const struct tensor *t = tensors_find(w, name);
    if (!t)
        fail_msg("%s is not there", name);
    tensor_to_f32(t, 0, 1, &x);
    return x;
}

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

static void prefixes_of_wrappers_are_taken_off(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"module.", "_orig_mod.", "base_model.model.",
                                           "module._orig_mod.", "_fsdp_wrapped_module."};
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        char names[2][64];
        struct tensors w;
        snprintf(names[0], sizeof names[0], "%smodel.norm.weight", prefixes[i]);
        snprintf(names[1], sizeof names[1], "%slm_head.weight", prefixes[i]);
        write_config(false);
        write_weights((struct row[]){{names[0], "F32", 3}, {names[1], "F32", 5}}, 2);
        check_ok(folder_tensors(scratch, &w), prefixes[i]);
        assert_true(first_of(&w, "model.norm.weight") == 3 && first_of(&w, "lm_head.weight") == 5);
        if (!strstr(heard, "names of tensors are read without the prefix "))
            fail_msg("%s is taken off in silence", prefixes[i]);
        tensors_close(&w);
    }
}

static void names_of_the_base_model_alone_get_their_prefix(void **state)
{
    (void)state;
    static const struct row rows[] = {{"layers.0.self_attn._orig_mod.q_proj.weight", "F32", 1},
                                      {"embed_tokens.weight", "F32", 2},
                                      {"norm.weight", "F32", 3}};
    struct tensors w;
    write_config(true);
    write_weights(rows, COUNT(rows));
    check_ok(folder_tensors(scratch, &w), "bare");
    assert_true(first_of(&w, "model.layers.0.self_attn.q_proj.weight") == 1);
    assert_true(first_of(&w, "model.embed_tokens.weight") == 2);
    assert_true(first_of(&w, "model.norm.weight") == 3);
    assert_non_null(strstr(heard, "with the prefix model."));
    tensors_close(&w);
}

static void plain_names_need_no_note(void **state)
{
    (void)state;
    static const struct row rows[] = {{"model.embed_tokens.weight", "F32", 2},
                                      {"lm_head.weight", "F32", 2}};
    struct tensors w;
    struct model_config c;
    write_config(true);
    write_weights(rows, COUNT(rows));
    check_ok(folder_config(scratch, &c), "config");
    check_ok(folder_tensors(scratch, &w), "plain");
    assert_true(c.tied);
    assert_string_equal(heard, "");
    tensors_close(&w);
}

static void a_name_that_comes_twice_is_refused(void **state)
{
    (void)state;
    static const struct row rows[] = {{"module.model.norm.weight", "F32", 1},
                                      {"model.norm.weight", "F32", 2}};
    struct tensors w;
    write_config(false);
    write_weights(rows, COUNT(rows));
    check_refused(folder_tensors(scratch, &w), NJ_E_FORMAT,
                  "tensor model.norm.weight is there with a prefix and without", "twice");
}

static void a_head_of_its_own_unties_the_model(void **state)
{
    (void)state;
    static const struct row rows[] = {{"_orig_mod.model.embed_tokens.weight", "F32", 2},
                                      {"_orig_mod.lm_head.weight", "F32", 3}};
    struct model_config c;
    write_config(true);
    write_weights(rows, COUNT(rows));
    check_ok(folder_config(scratch, &c), "config");
    assert_false(c.tied);
    assert_non_null(strstr(heard, "the weights hold a head of its own, which is used"));
}

static void a_head_alone_is_the_embedding_table_of_a_tied_model(void **state)
{
    (void)state;
    static const struct row rows[] = {{"lm_head.weight", "F32", 7},
                                      {"model.norm.weight", "F32", 1}};
    struct tensors w;
    write_config(true);
    write_weights(rows, COUNT(rows));
    check_ok(folder_tensors(scratch, &w), "tied");
    assert_true(first_of(&w, "model.embed_tokens.weight") == 7);
    tensors_close(&w);
    write_config(false);
    check_ok(folder_tensors(scratch, &w), "untied");
    assert_null(tensors_find(&w, "model.embed_tokens.weight"));
    tensors_close(&w);
}

static void buffers_are_no_weights_of_any_type(void **state)
{
    (void)state;
    static const struct row rows[] = {{"model.norm.weight", "F32", 1},
                                      {"model.embeddings.position_ids", "I64", 0},
                                      {"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", 0}};
    struct tensors w;
    write_config(false);
    write_weights(rows, COUNT(rows));
    check_ok(folder_tensors(scratch, &w), "buffers");
    assert_int_equal(w.count, 1);
    tensors_close(&w);
}

static void integers_are_refused_for_what_they_are(void **state)
{
    (void)state;
    struct tensors w;
    write_config(false);
    write_weights((struct row[]){{"model.steps", "I64", 1}}, 1);
    check_refused(folder_tensors(scratch, &w), NJ_E_UNSUPPORTED,
                  "tensor model.steps, of type I64, is not a weight", "no weight");
    write_weights((struct row[]){{"model.norm.weight", "I64", 1}}, 1);
    check_refused(folder_tensors(scratch, &w), NJ_E_UNSUPPORTED,
                  "tensor model.norm.weight is I64; F32, BF16 and F16 are supported", "a weight");
}

static void a_pointer_of_git_lfs_is_called_so(void **state)
{
    (void)state;
    static const char pointer[] =
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
    struct tensors w;
    struct model_config c;
    write_config(false);
    write_text(at("model.safetensors"), pointer);
    check_refused(folder_tensors(scratch, &w), NJ_E_FORMAT,
                  "model.safetensors: a Git LFS pointer, not the file", "weights");
    write_text(at("config.json"), pointer);
    check_refused(folder_config(scratch, &c), NJ_E_FORMAT, "config.json: a Git LFS pointer",
                  "JSON");
}

static void adapters_beside_a_model_are_said(void **state)
{
    (void)state;
    struct model_config c;
    write_config(false);
    write_weights((struct row[]){{"model.norm.weight", "F32", 1}}, 1);
    write_text(at("adapter_config.json"), "{}");
    check_ok(folder_config(scratch, &c), "both");
    assert_non_null(strstr(heard, "holds adapters beside the model, which is read without them"));
    unlink(at("adapter_config.json"));
}

/* Tensors of Gemma 3 and Mistral 3 as transformers 4 and 5 name them. */
static const struct row composite[] = {
    {"model.language_model.embed_tokens.weight", "F32", 1},
    {"language_model.model.layers.0.input_layernorm.weight", "F32", 2},
    {"language_model.lm_head.weight", "F32", 3},
    {"language_model.norm.weight", "F32", 4},
    {"vision_tower.vision_model.head.weight", "F32", 5},
    {"model.vision_tower.encoder.scales", "I64", 6},
    {"multi_modal_projector.mm_input_projection_weight", "F32", 7},
    {"mtp.layers.0.weight", "F32", 8},
};

static void the_language_model_of_a_composite_is_taken_out(void **state)
{
    (void)state;
    struct tensors w;
    write_config(false);
    write_text(at("config.json"), "{\"model_type\":\"gemma3\",\"text_config\":{}}");
    write_weights(composite, COUNT(composite));
    check_ok(st_open_parts(scratch, &w), "composite");
    check_ok(folder_names_settle(scratch, &w), "composite");
    assert_int_equal(w.count, 4);
    assert_true(first_of(&w, "model.embed_tokens.weight") == 1);
    assert_true(first_of(&w, "model.layers.0.input_layernorm.weight") == 2);
    assert_true(first_of(&w, "lm_head.weight") == 3);
    assert_true(first_of(&w, "model.norm.weight") == 4);
    if (!strstr(heard, "of its tensors 4 are left out, which the language model does not use: "
                       "those whose names begin with vision_tower., model.vision_tower., mtp., "
                       "multi_modal_projector."))
        fail_msg("%s", heard);
    tensors_close(&w);
}

/* Such tensors of another folder stay, so that they are refused as extra ones. */
static void other_folders_keep_all_their_tensors(void **state)
{
    (void)state;
    struct tensors w;
    write_config(false);
    write_weights(composite, COUNT(composite));
    check_ok(st_open_parts(scratch, &w), "plain");
    check_ok(folder_names_settle(scratch, &w), "plain");
    assert_int_equal(w.count, COUNT(composite));
    assert_string_equal(heard, "");
    tensors_close(&w);
    /* A folder may hold a tensor under two names of a composite. */
    static const struct row twice[] = {{"model.language_model.norm.weight", "F32", 1},
                                       {"language_model.norm.weight", "F32", 2}};
    write_text(at("config.json"), "{\"model_type\":\"gemma3\",\"text_config\":{}}");
    write_weights(twice, COUNT(twice));
    check_ok(st_open_parts(scratch, &w), "twice");
    check_refused(folder_names_settle(scratch, &w), NJ_E_FORMAT,
                  "tensor model.norm.weight is there with a prefix and without", "twice");
    tensors_close(&w);
}

/* Files of some families have more to predict further tokens, which models of other families would need. */
static void what_predicts_further_tokens_is_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        int kept;
    } rows[] = {{"qwen3_next", 3}, {"glm4_moe", 3}, {"qwen3_moe", 4}};
    static const struct row file[] = {{"model.layers.1.mlp.gate.weight", "F32", 1},
                                      {"model.layers.12.mlp.gate.weight", "F32", 2},
                                      {"model.norm.weight", "F32", 3},
                                      {"mtp.norm.weight", "F32", 4}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct model_config c = {.layers = 12};
        struct tensors w;
        snprintf(c.model_type, sizeof c.model_type, "%s", rows[i].type);
        write_config(false);
        write_weights(file, COUNT(file));
        check_ok(st_open_parts(scratch, &w), "plain");
        *heard = '\0';
        folder_names_cut(scratch, &c, &w);
        assert_int_equal(w.count, rows[i].kept);
        assert_true((strstr(heard, "of its tensors 1 are left out, which predict further tokens") !=
                     NULL) == (rows[i].kept == 3));
        tensors_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_language_model_of_a_composite_is_taken_out),
        cmocka_unit_test(other_folders_keep_all_their_tensors),
        cmocka_unit_test(what_predicts_further_tokens_is_left_out),
        cmocka_unit_test(prefixes_of_wrappers_are_taken_off),
        cmocka_unit_test(names_of_the_base_model_alone_get_their_prefix),
        cmocka_unit_test(plain_names_need_no_note),
        cmocka_unit_test(a_name_that_comes_twice_is_refused),
        cmocka_unit_test(a_head_of_its_own_unties_the_model),
        cmocka_unit_test(a_head_alone_is_the_embedding_table_of_a_tied_model),
        cmocka_unit_test(buffers_are_no_weights_of_any_type),
        cmocka_unit_test(integers_are_refused_for_what_they_are),
        cmocka_unit_test(a_pointer_of_git_lfs_is_called_so),
        cmocka_unit_test(adapters_beside_a_model_are_said),
    };
    return cmocka_run_group_tests_name("folder_names", tests, scratch_begin, scratch_end);
}
