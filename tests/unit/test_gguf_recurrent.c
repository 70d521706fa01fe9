/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf_recurrent.c: GGUF files of models with recurrent layers: the order of their heads, tensors of all types,
 * and keys that say which layers are recurrent.
 */
#include "formats/gguf_write.h"
#include "formats/safetensors.h"
#include "io/error.h"
#include "io/json_text.h"
#include "model/gguf_config.h"
#include "model/gguf_export.h"
#include "model/gguf_names.h"
#include "model/init.h"
#include "model/model_open.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two key heads of three value heads each, of two elements, behind four others. */
static void value_heads_are_tiled(void **state)
{
    (void)state;
    static const int file[] = {0, 1, 2, 3, 4, 5, 8, 9, 12, 13, 6, 7, 10, 11, 14, 15};
    const struct head_tiles tiles = {2, 3, 2, 4}, none = {2, 1, 2, 4};
    for (int i = 0; i < 16; i++) {
        assert_int_equal(head_tiles_element(&tiles, i), file[i]);
        assert_int_equal(head_tiles_place(&tiles, file[i]), i);
        assert_int_equal(head_tiles_element(&none, i), i);
    }
}

/* ---- tensors ---- */

static void ignore(void *user, double bytes, double total)
{
    (void)user;
    (void)bytes;
    (void)total;
}

static void export_as(const char *from, const char *to, const char *type)
{
    const struct export_options o = {
        .ftype = gguf_ftype_find(type), .name = "model", .written = ignore};
    double bytes;
    check_ok(gguf_export(from, to, &o, &bytes), type);
}

/* Make a model of a preset whose numbers are all random, of a file that has them as folders do. */
static void make_model(const char *preset, const char *dir, struct model_config *c)
{
    struct st_declared declared[128];
    struct st_writer *st;
    struct tensors w;
    char path[600];
    uint32_t seed = 1;
    check_ok(preset_config(preset_find(preset), c), preset);
    check_ok(init_model(dir, c, 1, NJ_TYPE_F32, 1 << 30, NULL), dir);
    check_ok(st_open(dir, &w), dir);
    assert_true(w.count <= sizeof declared / sizeof *declared);
    for (size_t i = 0; i < w.count; i++) {
        const struct tensor *t = &w.tensor[i];
        declared[i] = (struct st_declared){t->name, NJ_TYPE_F32, t->rank, {0}};
        memcpy(declared[i].shape, t->shape, sizeof declared[i].shape);
    }
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    check_ok(st_write_begin(path, declared, w.count, &st), dir);
    for (size_t i = 0; i < w.count; i++)
        for (size_t k = 0; k < w.tensor[i].bytes / sizeof(float); k++) {
            seed = seed * 1664525u + 1013904223u;
            const float x = (float)(int32_t)seed * 0x1p-32f;
            check_ok(st_write_data(st, &x, sizeof x), dir);
        }
    check_ok(st_write_end(st), dir);
    tensors_close(&w);
}

static float *values_of(const struct tensors *w, const struct tensor_spec *s)
{
    const struct tensor *t = tensors_find(w, s->name);
    float *x = malloc((size_t)tensor_elements(s) * sizeof *x);
    assert_non_null(x);
    check_ok(weights_check("a model", s, t), s->name);
    tensor_to_f32(t, 0, tensor_elements(s), x);
    return x;
}

/* Compare the tensors of two models: differences of matrices have at most `share` of their root mean square. */
static void check_alike(const char *a, const char *b, const struct model_config *c, double share)
{
    struct tensors x, y;
    struct tensor_spec *spec;
    size_t count;
    check_ok(source_tensors(a, &x), a);
    check_ok(source_tensors(b, &y), b);
    check_ok(tensor_specs(c, &spec, &count), a);
    for (size_t i = 0; i < count; i++) {
        float *p = values_of(&x, &spec[i]), *q = values_of(&y, &spec[i]);
        double most = 0, apart = 0, square = 0, squares = 0;
        for (int64_t k = 0; k < tensor_elements(&spec[i]); k++) {
            const double d = (double)p[k] - (double)q[k];
            most = fmax(most, fabs((double)p[k]));
            apart = fmax(apart, fabs(d));
            square += d * d;
            squares += (double)p[k] * (double)p[k];
        }
        /* log(-(-exp(x))) in float32: exp is rounded once, and so is the logarithm of what it is off by 2^-24. Gains
         * are rounded when 1 is added. */
        const bool changed = gguf_negated_exp(&spec[i]) || gguf_added(c, &spec[i]) != 0;
        const double rounded = changed ? (1 + most) * 0x1p-24 : 0;
        const bool matrix = share > 0 && spec[i].rank == 2;
        if (!(matrix ? sqrt(square / squares) <= share : apart <= rounded))
            fail_msg("%s differs by up to %g", spec[i].name, apart);
        free(p);
        free(q);
    }
    free(spec);
    tensors_close(&x);
    tensors_close(&y);
}

/* A file has the model's tensors, and a file of that file, too. Numbers are uniform within +-m. A step of 8 bits,
 * m / 127, is off by 1 / sqrt(12) of it, which is sqrt(3) / sqrt(12) / 127 of m / sqrt(3), and float16 rounds it by
 * 2^-11; a step of 4 bits, 2 m / 15, is off by 1 / 15, and 6 bits of its scale and least number add less than half of
 * that. */
static void tensors_come_back(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        double share;
    } types[] = {{"f32", 0}, {"q8_0", 0.5 / 127 + 0x1p-11}, {"q4_k_m", 1.5 / 15}};
    static const char *const presets_of[] = {"nojit-tiny-lfm2", "nojit-tiny-qwen3.5"};
    for (int m = 0; m < 2; m++) {
        struct model_config c;
        char folder[300], file[400], again[400];
        snprintf(folder, sizeof folder, "%s", at(presets_of[m]));
        make_model(presets_of[m], folder, &c);
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            snprintf(file, sizeof file, "%s/%s.gguf", folder, types[t].type);
            snprintf(again, sizeof again, "%s/%s-again.gguf", folder, types[t].type);
            export_as(folder, file, types[t].type);
            check_alike(folder, file, &c, types[t].share);
            export_as(file, again, types[t].type);
            check_alike(folder, again, &c, 2 * types[t].share);
        }
    }
}

/* If the blocks of a type hold columns of two heads, a file's output matrix is one of floats. */
static void blocks_of_two_heads_become_floats(void **state)
{
    (void)state;
    static const char name[] = "model.layers.0.linear_attn.out_proj.weight";
    static const struct {
        const char *type;
        enum nj_tensor_type as;
    } cases[] = {{"q8_0", NJ_TYPE_Q8_0}, {"q6_k", NJ_TYPE_F32}, {"bf16", NJ_TYPE_BF16}};
    struct model_config c;
    char folder[300], file[400];
    snprintf(folder, sizeof folder, "%s", at("heads"));
    make_model("nojit-tiny-qwen3.5", folder, &c);
    snprintf(file, sizeof file, "%s/m.gguf", folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tensors w;
        char found[64];
        export_as(folder, file, cases[i].type);
        check_ok(source_tensors(file, &w), file);
        assert_int_equal(tensors_find(&w, name)->dtype, cases[i].as);
        tensors_close(&w);
        check_ok(source_quantized(file, found, sizeof found), file);
        assert_true((strstr(found, "Q6_K") != NULL) == (cases[i].as == NJ_TYPE_F32));
    }
}

/* ---- keys ---- */

enum { VALUES_MOST = 6 };
struct key {
    const char *name;
    int count; /* 0: it is a number */
    int32_t value[VALUES_MOST];
};

static const struct key qwen35[] = {
    {"qwen35.block_count", 0, {4}},
    {"qwen35.context_length", 0, {64}},
    {"qwen35.embedding_length", 0, {128}},
    {"qwen35.feed_forward_length", 0, {64}},
    {"qwen35.attention.head_count", 0, {2}},
    {"qwen35.attention.head_count_kv", 0, {1}},
    {"qwen35.attention.key_length", 0, {64}},
    {"qwen35.rope.dimension_count", 0, {16}},
    {"qwen35.rope.dimension_sections", 4, {11, 11, 10, 0}},
    {"qwen35.full_attention_interval", 0, {2}},
    {"qwen35.ssm.conv_kernel", 0, {4}},
    {"qwen35.ssm.state_size", 0, {64}},
    {"qwen35.ssm.group_count", 0, {2}},
    {"qwen35.ssm.time_step_rank", 0, {4}},
    {"qwen35.ssm.inner_size", 0, {256}},
    {NULL, 0, {0}},
};
static const struct key lfm2[] = {
    {"lfm2.block_count", 0, {4}},          {"lfm2.context_length", 0, {64}},
    {"lfm2.embedding_length", 0, {128}},   {"lfm2.feed_forward_length", 0, {64}},
    {"lfm2.attention.head_count", 0, {2}}, {"lfm2.attention.head_count_kv", 4, {0, 1, 0, 1}},
    {"lfm2.shortconv.l_cache", 0, {3}},    {NULL, 0, {0}},
};

static void put_key(struct gguf_writer *w, const struct key *k)
{
    if (k->count > 0)
        gguf_put_i32s(w, k->name, k->value, (size_t)k->count);
    else
        gguf_put_u32(w, k->name, (uint32_t)k->value[0]);
}

/* Read the configuration of a file with keys, of which one may be another (count < 0: absent), or added. */
static int read_keys(const char *arch, const struct key *keys, const struct key *other,
                     struct model_config *out)
{
    static const float table[16 * 128];
    const struct st_declared declared = {GGUF_EMBED, NJ_TYPE_F32, 2, {16, 128}};
    struct gguf_writer *w;
    struct gguf g;
    char eps[64];
    snprintf(eps, sizeof eps, "%s.attention.layer_norm_rms_epsilon", arch);
    check_ok(gguf_write_begin(at("keys.gguf"), &w), arch);
    gguf_put_string(w, "general.architecture", arch);
    gguf_put_f32(w, eps, 1e-5f);
    for (const struct key *k = keys; k->name; k++)
        if (!other || strcmp(k->name, other->name) != 0)
            put_key(w, k);
    if (other && other->count >= 0)
        put_key(w, other);
    check_ok(gguf_write_tensors(w, &declared, 1), arch);
    check_ok(gguf_write_data(w, table, sizeof table), arch);
    check_ok(gguf_write_end(w), arch);
    check_ok(gguf_open(at("keys.gguf"), &g), arch);
    const int rc = gguf_read_config(&g, out);
    gguf_close(&g);
    return rc;
}

/* Return a letter for the mixer of each layer. */
static const char *mixers(const struct model_config *c, char out[16])
{
    for (int l = 0; l < c->layers; l++)
        out[l] = "a??cd"[arch_mixer(&c->arch, l)->kind];
    out[c->layers] = '\0';
    return out;
}

static void keys_say_which_layers_are_recurrent(void **state)
{
    (void)state;
    static const struct {
        const char *arch, *mixers;
        struct key other;
    } cases[] = {
        {"lfm2", "caca", {"lfm2.vocab_size", 0, {16}}},
        {"lfm2", "ccca", {"lfm2.attention.head_count_kv", 4, {0, 0, 0, 2}}},
        {"qwen35", "dada", {"qwen35.vocab_size", 0, {16}}},
        {"qwen35", "ddda", {"qwen35.full_attention_interval", -1, {0}}},
        {"qwen35", "ddda", {"qwen35.full_attention_interval", 0, {4}}},
        {"qwen35", "dada", {"qwen35.attention.head_count_kv", 4, {0, 1, 0, 1}}},
        /* two of the layers predict further tokens */
        {"qwen35", "da", {"qwen35.nextn_predict_layers", 0, {2}}},
        /* a text does not tell the three sections from each other, in whichever order pairs take turns */
        {"qwen35", "dada", {"qwen35.rope.dimension_sections", 4, {3, 3, 2, 0}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_config c;
        char found[16];
        const bool conv = strcmp(cases[i].arch, "lfm2") == 0;
        check_ok(read_keys(cases[i].arch, conv ? lfm2 : qwen35, &cases[i].other, &c),
                 cases[i].other.name);
        assert_string_equal(mixers(&c, found), cases[i].mixers);
        const struct block *b = arch_recurrent(&c.arch, 0);
        assert_int_equal(b->taps, conv ? 3 : 4);
        assert_int_equal(block_channels(b), conv ? 128 : 512);
        assert_true(c.rms_eps == 1e-5f);
    }
}

static void keys_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *arch;
        struct key other;
        int rc;
        const char *says;
    } cases[] = {
        {"lfm2",
         {"lfm2.attention.head_count_kv", 4, {0, 1, 0, 2}},
         NJ_E_UNSUPPORTED,
         "is 2 for layer 3"},
        {"lfm2",
         {"lfm2.attention.head_count_kv", 3, {0, 1, 0}},
         NJ_E_FORMAT,
         "not one value for each of 4"},
        {"lfm2",
         {"lfm2.attention.head_count_kv", 4, {0, 0, 0, 0}},
         NJ_E_FORMAT,
         "attention.head_count_kv"},
        {"lfm2", {"lfm2.shortconv.l_cache", -1, {0}}, NJ_E_FORMAT, "l_cache is missing"},
        {"lfm2",
         {"lfm2.nextn_predict_layers", 0, {1}},
         NJ_E_UNSUPPORTED,
         "nextn_predict_layers is 1"},
        {"qwen35",
         {"qwen35.attention.head_count_kv", 4, {0, 0, 0, 1}},
         NJ_E_UNSUPPORTED,
         "is 0 for layer 1"},
        {"qwen35", {"qwen35.full_attention_interval", 0, {0}}, NJ_E_FORMAT, "interval"},
        {"qwen35",
         {"qwen35.ssm.inner_size", 0, {257}},
         NJ_E_FORMAT,
         "inner_size is 257, not a multiple"},
        {"qwen35",
         {"qwen35.ssm.inner_size", 0, {512}},
         NJ_E_UNSUPPORTED,
         "ssm.inner_size is 128; it must be"},
        {"qwen35", {"qwen35.ssm.group_count", -1, {0}}, NJ_E_FORMAT, "ssm.group_count is missing"},
        {"qwen35", {"qwen35.nextn_predict_layers", 0, {4}}, NJ_E_FORMAT, "4 layers predict"},
        {"qwen35",
         {"qwen35.rope.dimension_sections", 4, {1, 1, 1, 7}},
         NJ_E_UNSUPPORTED,
         "four sections"},
        {"qwen35", {"qwen35.rope.dimension_sections", -1, {0}}, NJ_E_UNSUPPORTED, "four sections"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_config c;
        const bool conv = strcmp(cases[i].arch, "lfm2") == 0;
        const int rc = read_keys(cases[i].arch, conv ? lfm2 : qwen35, &cases[i].other, &c);
        if (rc != cases[i].rc || !strstr(fail_text(), cases[i].says))
            fail_msg("case %zu: %d, %s", i, rc, fail_text());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(value_heads_are_tiled),
        cmocka_unit_test(tensors_come_back),
        cmocka_unit_test(blocks_of_two_heads_become_floats),
        cmocka_unit_test(keys_say_which_layers_are_recurrent),
        cmocka_unit_test(keys_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests_name("gguf_recurrent", tests, scratch_begin, scratch_end);
}
