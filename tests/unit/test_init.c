/* SPDX-License-Identifier: Apache-2.0
 *
 * test_init.c: random models: their distribution, their determinism, their folder.
 */
#include "hash_tensors.h"
#include "model/init.h"
#include "model/tensor_names.h"
#include "plain_layers.h"
#include "unit.h"

#include <math.h>
#include <omp.h>
#include <signal.h>
#include <sys/resource.h>

/* Make a model, open it and remove its folder. The caller closes w, whose mapping stays. */
static uint64_t hash_of(const struct model_config *c, uint64_t seed, enum nj_tensor_type dtype,
                        int64_t shard_bytes, struct tensors *w)
{
    check_ok(init_model(at("m"), c, seed, dtype, shard_bytes, NULL), "init");
    check_ok(st_open(at("m"), w), "open");
    remove_tree(at("m"));
    return hash_tensors(w);
}

static void presets_are_consistent(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t parameters;
    } published[] = {{"qwen2.5-0.5b", 494032768},   {"qwen2.5-1.5b", 1543714304},
                     {"qwen2.5-7b", 7615616512},    {"qwen3-0.6b", 596049920},
                     {"qwen3-1.7b", 1720574976},    {"llama-3.2-1b", 1235814400},
                     {"llama-3.2-3b", 3212749824},  {"llama-3.1-8b", 8030261248},
                     {"smollm2-135m", 134515008},   {"mistral-7b-v0.3", 7248023552},
                     {"gemma-3-270m", 268098176},   {"gemma-3-1b", 999885952},
                     {"gemma-3-4b", 3880263168},    {"smollm3-3b", 3075098624},
                     {"olmo-2-1b", 1484916736},     {"olmo-2-7b", 7298617344},
                     {"phi-3-mini", 3821079552},    {"phi-4-mini", 3836021760},
                     {"glm-4-9b", 9400279040},      {"olmo-3-7b", 7298011136},
                     {"granite-3.3-2b", 2533539840}};
    struct model_config c;
    for (const struct preset *p = presets; p->name; p++) {
        check_ok(preset_config(p, &c), p->name);
        check_ok(config_check(&c, p->name), p->name);
        assert_ptr_equal(preset_find(p->name), p);
    }
    assert_null(preset_find("qwen"));
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        check_ok(preset_config(preset_find(published[i].name), &c), published[i].name);
        if (config_parameters(&c) != published[i].parameters)
            fail_msg("%s: %lld", published[i].name, (long long)config_parameters(&c));
    }
}

static void the_tokenizer_comes_along(void **state)
{
    (void)state;
    make_folder("shape");
    write_text(at("shape/tokenizer.json"), "{}");
    write_text(at("shape/generation_config.json"), "{\"top_k\": 7}");
    const struct preset *p = preset_find("nojit-tiny");
    check_ok(init_model(at("with"), &p->config, 1, NJ_TYPE_F32, INT64_MAX, at("shape")), "init");
    assert_int_equal(access(at("with/tokenizer.json"), F_OK), 0);
    check_text(at("with/generation_config.json"), "{\"top_k\": 7}");
}

static void folders_hold_what_the_list_says(void **state)
{
    (void)state;
    for (const struct preset *p = presets; p->name; p++) {
        struct tensor_spec *spec;
        struct model_config back;
        struct tensors w;
        size_t count;
        if (p->fields || config_parameters(&p->config) > 1000000)
            continue;
        check_ok(init_model(at("list"), &p->config, 1, NJ_TYPE_F32, INT64_MAX, NULL), p->name);
        check_ok(config_read(at("list"), &back), "config");
        assert_memory_equal(&back, &p->config, sizeof back);
        assert_int_equal(access(at("list/generation_config.json"), F_OK), 0);
        check_ok(st_open(at("list"), &w), "open");
        check_ok(tensor_specs(&p->config, &spec, &count), "specs");
        assert_int_equal(w.count, count);
        for (size_t i = 0; i < count; i++) {
            const struct tensor *t = tensors_find(&w, spec[i].name);
            assert_non_null(t);
            assert_int_equal(t->rank, spec[i].rank);
            assert_int_equal(t->bytes, 4 * tensor_elements(&spec[i]));
        }
        free(spec);
        tensors_close(&w);
        remove_tree(at("list"));
    }
}

/* The moments of the embedding, and the fixed values of norms and biases. */
static void values_of_a_new_model_are_as_declared(void **state)
{
    (void)state;
    struct tensors w;
    hash_of(&preset_find("nojit-small")->config, 7, NJ_TYPE_F32, INT64_MAX, &w);
    const struct tensor *t = tensors_find(&w, "model.layers.3.mlp.up_proj.weight");
    const int64_t n = t->shape[0] * t->shape[1];
    float *x = malloc((size_t)n * sizeof *x);
    double sum = 0, square = 0, fourth = 0, product = 0;
    tensor_to_f32(t, 0, n, x);
    for (int64_t i = 0; i < n; i++) {
        const double z = (double)x[i] / 0.02;
        sum += z;
        square += z * z;
        fourth += z * z * z * z;
        product += i ? z * (double)x[i - 1] / 0.02 : 0;
    }
    free(x);
    /* The bound is five standard errors. */
    const double error = 5 / sqrt((double)n);
    assert_true(fabs(sum / (double)n) < error);
    assert_true(fabs(square / (double)n - 1) < sqrt(2) * error);
    assert_true(fabs(fourth / (double)n - 3) < sqrt(96) * error);
    assert_true(fabs(product / (double)n) < error);

    float gain[256], bias[256];
    tensor_to_f32(tensors_find(&w, "model.layers.3.input_layernorm.weight"), 0, 256, gain);
    tensor_to_f32(tensors_find(&w, "model.layers.3.self_attn.q_proj.bias"), 0, 256, bias);
    for (int i = 0; i < 256; i++)
        assert_true(gain[i] == 1 && bias[i] == 0);
    tensors_close(&w);
}

static void the_same_seed_gives_the_same_model(void **state)
{
    (void)state;
    const struct model_config *c = &preset_find("nojit-tiny-qwen3")->config;
    struct tensors w;
    const int threads = omp_get_max_threads();
    const uint64_t hash = hash_of(c, 3, NJ_TYPE_BF16, INT64_MAX, &w);
    tensors_close(&w);
    for (int n = 1; n <= 4; n++) {
        omp_set_num_threads(n);
        assert_true(hash == hash_of(c, 3, NJ_TYPE_BF16, n * 40000, &w));
        tensors_close(&w);
    }
    omp_set_num_threads(threads);
    assert_true(hash != hash_of(c, 4, NJ_TYPE_BF16, INT64_MAX, &w));
    tensors_close(&w);
}

/* A tensor larger than the block that is filled at a time does not repeat. */
static void large_tensors_do_not_repeat(void **state)
{
    (void)state;
    struct model_config c = preset_find("nojit-tiny")->config;
    struct tensors w;
    c.vocab_size = 1 << 17;
    hash_of(&c, 3, NJ_TYPE_BF16, INT64_MAX, &w);
    const struct tensor *t = tensors_find(&w, "model.embed_tokens.weight");
    assert_int_equal(t->bytes, 2 << 23);
    for (int shift = 12; shift < 23; shift++) {
        float x[256], y[256];
        tensor_to_f32(t, 0, 256, x);
        tensor_to_f32(t, (int64_t)1 << shift, 256, y);
        int equal = 0;
        for (int i = 0; i < 256; i++)
            equal += x[i] == y[i];
        assert_in_range(equal, 0, 32);
    }
    tensors_close(&w);
}

/* All types hold the same numbers, rounded. */
static void types_of_a_new_model_agree(void **state)
{
    (void)state;
    const struct model_config *c = &preset_find("nojit-tiny")->config;
    struct tensors wide, half[2];
    hash_of(c, 3, NJ_TYPE_F32, INT64_MAX, &wide);
    hash_of(c, 3, NJ_TYPE_BF16, INT64_MAX, &half[0]);
    hash_of(c, 3, NJ_TYPE_F16, INT64_MAX, &half[1]);
    for (size_t i = 0; i < wide.count; i++)
        for (int k = 0; k < 2; k++) {
            uint16_t x, y;
            assert_int_equal(half[k].tensor[i].bytes * 2, wide.tensor[i].bytes);
            for (int64_t j = 0; j < (int64_t)half[k].tensor[i].bytes / 2; j++) {
                tensor_to_16(&wide.tensor[i], j, 1, k, &x);
                tensor_to_16(&half[k].tensor[i], j, 1, k, &y);
                assert_int_equal(x, y);
            }
        }
    tensors_close(&wide);
    tensors_close(&half[0]);
    tensors_close(&half[1]);
}

/* Layer k of the new model is layer layers[k] of the old one, whatever its type and shards; the tensors outside the
 * layers are unchanged. */
static void layers_are_taken_over(void **state)
{
    (void)state;
    static const int layers[] = {6, 0, 3};
    const char *const untied = "lm_head.weight";
    for (int dtype = NJ_TYPE_F32; dtype <= NJ_TYPE_F16; dtype++) {
        struct model_config c = preset_find("nojit-tiny-qwen3")->config, back;
        struct tensors from, to;
        c.layers = 7;
        check_ok(init_model(at("old"), &c, 5, (enum nj_tensor_type)dtype, 100000, NULL), "old");
        check_ok(st_open(at("old"), &from), "open old");
        assert_true(from.map_count > 1);
        c.layers = 3;
        check_ok(init_from_layers(at("new"), &c, at("old"), layers, 0, NULL, INT64_MAX), "new");
        check_ok(st_open(at("new"), &to), "open new");
        check_ok(config_read(at("new"), &back), "config");
        assert_memory_equal(&back, &c, sizeof c);
        for (size_t i = 0; i < to.count; i++) {
            int layer, used = 0;
            char name[128];
            snprintf(name, sizeof name, "%s", to.tensor[i].name);
            if (sscanf(name, "model.layers.%d%n", &layer, &used) == 1)
                snprintf(name, sizeof name, "model.layers.%d%s", layers[layer],
                         to.tensor[i].name + used);
            const struct tensor *t = tensors_find(&from, name);
            assert_non_null(t);
            assert_int_equal(to.tensor[i].dtype, dtype);
            assert_int_equal(to.tensor[i].bytes, t->bytes);
            assert_memory_equal(to.tensor[i].data, t->data, t->bytes);
        }
        assert_non_null(tensors_find(&to, untied));
        assert_int_equal(from.count - to.count, 4 * (from.count - 3) / 7);
        tensors_close(&to);
        tensors_close(&from);
        remove_tree(at("new"));
        remove_tree(at("old"));
    }
}

/* Layers are rounded to the new type. */
static void layers_taken_over_are_converted(void **state)
{
    (void)state;
    const struct model_config *c = &preset_find("nojit-tiny")->config;
    static const enum nj_tensor_type to_type[] = {NJ_TYPE_F16, NJ_TYPE_F32};
    static const int layers[] = {0, 1};
    struct tensors from, to;
    check_ok(init_model(at("old"), c, 5, NJ_TYPE_BF16, INT64_MAX, NULL), "old");
    check_ok(st_open(at("old"), &from), "open old");
    for (int k = 0; k < 2; k++) {
        check_ok(init_from_layers(at("new"), c, at("old"), layers, 0, &to_type[k], INT64_MAX),
                 "new");
        check_ok(st_open(at("new"), &to), "open new");
        for (size_t i = 0; i < to.count; i++) {
            const int64_t n = (int64_t)from.tensor[i].bytes / 2;
            assert_int_equal(to.tensor[i].dtype, to_type[k]);
            for (int64_t j = 0; j < n; j++) {
                uint16_t x, y;
                tensor_to_16(&from.tensor[i], j, 1, 1, &x);
                tensor_to_16(&to.tensor[i], j, 1, 1, &y);
                assert_int_equal(x, y);
            }
        }
        tensors_close(&to);
        remove_tree(at("new"));
    }
    tensors_close(&from);
    remove_tree(at("old"));
}

/* A model that lacks a tensor of its config.json is refused. */
static void missing_layers_are_refused(void **state)
{
    (void)state;
    struct model_config c = preset_find("nojit-tiny")->config;
    static const int layers[] = {0, 2};
    check_ok(init_model(at("old"), &c, 5, NJ_TYPE_BF16, INT64_MAX, NULL), "old");
    check_refused(init_from_layers(at("new"), &c, at("old"), layers, 0, NULL, INT64_MAX),
                  NJ_E_FORMAT, "tensor model.layers.2.input_layernorm.weight is missing",
                  "a layer");
    c.vocab_size += 8;
    check_refused(init_from_layers(at("new"), &c, at("old"), layers, 0, NULL, INT64_MAX),
                  NJ_E_FORMAT, "model.embed_tokens.weight has shape [264, 64]", "a shape");
    assert_int_equal(access(at("new"), F_OK), -1);
    remove_tree(at("old"));
}

static void a_failed_init_leaves_nothing(void **state)
{
    (void)state;
    struct model_config c = preset_find("nojit-tiny")->config;
    struct rlimit before, limit;
    make_folder("fail");
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 100000;
    setrlimit(RLIMIT_FSIZE, &limit);
    int rc = init_model(at("fail/m"), &c, 1, NJ_TYPE_F32, INT64_MAX, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    check_refused(rc, NJ_E_IO, "model.safetensors: cannot write it: File too large", "full");
    assert_int_equal(rmdir(at("fail")), 0); /* the folder is empty */

    ATTENTION(&c).head_dim = 36;
    check_refused(init_model(at("bad"), &c, 1, NJ_TYPE_F32, INT64_MAX, NULL), NJ_E_UNSUPPORTED,
                  "is 36; multiples of 8 up to 256", "bad configuration");
    assert_int_equal(access(at("bad"), F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_are_consistent),
        cmocka_unit_test(folders_hold_what_the_list_says),
        cmocka_unit_test(the_tokenizer_comes_along),
        cmocka_unit_test(values_of_a_new_model_are_as_declared),
        cmocka_unit_test(the_same_seed_gives_the_same_model),
        cmocka_unit_test(large_tensors_do_not_repeat),
        cmocka_unit_test(types_of_a_new_model_agree),
        cmocka_unit_test(layers_are_taken_over),
        cmocka_unit_test(layers_taken_over_are_converted),
        cmocka_unit_test(missing_layers_are_refused),
        cmocka_unit_test(a_failed_init_leaves_nothing),
    };
    return cmocka_run_group_tests_name("init", tests, scratch_begin, scratch_end);
}
