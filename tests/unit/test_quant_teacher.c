/* SPDX-License-Identifier: Apache-2.0
 *
 * test_quant_teacher.c: a teacher that stays quantised does what a teacher with its expanded weights does, bit
 * for bit, on the CPU.
 */
#include "engine_fixture.h"

#include "engine/quant.h"
#include "gguf_fixture.h"
#include "io/model_folder.h"
#include "io/safetensors.h"
#include "model/source.h"
#include "nojit_ops.h"

enum { WORDS = 1301, SPECS_MOST = 64 };

/* Two layers in which every type comes once at least, and all mixtures of a fused matrix. */
static const struct model_config untied = {
    .model_type = "llama",
    .hidden_size = 256,
    .intermediate_size = 256,
    .layers = 2,
    .heads = 4,
    .kv_heads = 2,
    .head_dim = 64,
    .vocab_size = WORDS,
    .max_positions = 128,
    .bos_id = -1,
    .eos_id = END_OF_TEXT,
    .rms_eps = 1e-5f,
    .rope_theta = 1e4,
};

static enum nj_tensor_type type_of(const struct tensor_spec *s)
{
    static const enum nj_tensor_type of_layer[2][ROLE_COUNT] = {
        {[ROLE_Q_WEIGHT] = NJ_TYPE_Q4_K,
         [ROLE_K_WEIGHT] = NJ_TYPE_Q4_K,
         [ROLE_V_WEIGHT] = NJ_TYPE_Q6_K,
         [ROLE_O_WEIGHT] = NJ_TYPE_Q5_K,
         [ROLE_GATE_WEIGHT] = NJ_TYPE_Q3_K,
         [ROLE_UP_WEIGHT] = NJ_TYPE_Q2_K,
         [ROLE_DOWN_WEIGHT] = NJ_TYPE_IQ4_XS},
        {[ROLE_Q_WEIGHT] = NJ_TYPE_Q4_0,
         [ROLE_K_WEIGHT] = NJ_TYPE_F16,
         [ROLE_V_WEIGHT] = NJ_TYPE_Q5_1,
         [ROLE_O_WEIGHT] = NJ_TYPE_BF16,
         [ROLE_GATE_WEIGHT] = NJ_TYPE_Q4_1,
         [ROLE_UP_WEIGHT] = NJ_TYPE_IQ4_NL,
         [ROLE_DOWN_WEIGHT] = NJ_TYPE_Q5_0},
    };
    if (s->rank == 1)
        return NJ_TYPE_F32;
    if (s->role == ROLE_EMBED)
        return NJ_TYPE_Q8_0;
    return s->role == ROLE_HEAD ? NJ_TYPE_Q6_K : of_layer[s->layer % 2][s->role];
}

/* Half-precision scales of a block lie at even bytes: each is made one of about 2^-8. */
static void write_blocks(struct gguf_writer *w, const struct tensor_spec *s, uint32_t seed)
{
    const enum nj_tensor_type type = type_of(s);
    const size_t bytes = tensor_type_bytes(type, tensor_elements(s));
    uint16_t *data = malloc(bytes);
    assert_non_null(data);
    for (size_t i = 0; i < bytes / 2; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (uint16_t)((seed >> 16 & 0x83ff) | (type == NJ_TYPE_BF16 ? 0x3c00 : 0x1800));
    }
    if (type == NJ_TYPE_F32)
        for (size_t i = 0; i < bytes / 4; i++)
            ((float *)(void *)data)[i] = 0.5f + (float)(i * 37 % 64) / 64;
    ok(gguf_write_data(w, data, bytes));
    free(data);
}

static void write_quantised(const char *name, const struct model_config *c)
{
    const struct gguf_form form = {.vocab_size = true};
    struct st_declared declared[SPECS_MOST];
    char names[SPECS_MOST][128];
    struct tensor_spec *spec;
    struct gguf_writer *w;
    size_t count;
    ok(tensor_specs(c, &spec, &count));
    assert_true(count <= SPECS_MOST);
    for (size_t i = 0; i < count; i++) {
        gguf_tensor_name(&spec[i], names[i]);
        declared[i] = (struct st_declared){
            names[i], type_of(&spec[i]), spec[i].rank, {spec[i].shape[0], spec[i].shape[1]}};
    }
    ok(gguf_write_begin(path_of(name), &w));
    gguf_put_model(w, &form, c);
    ok(gguf_write_tensors(w, declared, count));
    for (size_t i = 0; i < count; i++)
        write_blocks(w, &spec[i], (uint32_t)i + 1);
    ok(gguf_write_end(w));
    free(spec);
}

/* The elements of a tensor, by the op's reference where it is quantised. */
static float *expanded(nj_stream *s, const struct tensor *t)
{
    const int rows = (int)t->shape[0], columns = (int)t->shape[1];
    float *out = malloc((size_t)rows * (size_t)columns * sizeof *out);
    char *blocks = aligned_alloc(64, (tensor_type_bytes(t->dtype, rows * columns) + 127) / 64 * 64);
    assert_true(out && blocks);
    if (tensor_type_block(t->dtype) == 1) {
        tensor_to_f32(t, 0, rows * columns, out);
    } else {
        tensor_rows(t, 0, rows, blocks);
        ok(nj_dequantize(s, NJ_F32, (int)t->dtype, out, (const int32_t *)(const void *)blocks, NULL,
                         rows, rows, columns));
    }
    free(blocks);
    return out;
}

/* A folder with the weights of a GGUF file in float32. */
static void write_expanded(const char *name, const char *from, const struct model_config *c)
{
    struct st_declared declared[SPECS_MOST];
    struct st_folder_writer *w;
    struct tensor_spec *spec;
    struct tensors tensors;
    nj_stream *s;
    size_t count;
    ok(tensor_specs(c, &spec, &count));
    ok(source_tensors(path_of(from), &tensors));
    ok(nj_stream_create(ctx, &s));
    ok(folder_make(path_of(name), (char[4096]){0}, 4096));
    ok(config_write(path_of(name), c, "float32"));
    for (size_t i = 0; i < count; i++)
        declared[i] = (struct st_declared){
            spec[i].name, NJ_TYPE_F32, spec[i].rank, {spec[i].shape[0], spec[i].shape[1]}};
    ok(st_folder_begin(path_of(name), declared, count, INT64_MAX, &w));
    for (size_t i = 0; i < count; i++) {
        struct tensor t = *tensors_find(&tensors, spec[i].name);
        t.shape[1] = spec[i].shape[1];
        float *x = expanded(s, &t);
        ok(st_folder_data(w, x, st_declared_bytes(&declared[i])));
        free(x);
    }
    ok(st_folder_end(w));
    nj_stream_destroy(s);
    tensors_close(&tensors);
    free(spec);
}

/* Losses of two steps and an evaluation; kept: the teacher stays quantised. */
static void run_both(const char *quantised, const char *whole, const struct model_config *c,
                     int grad_accum)
{
    struct step_result step[2][2];
    struct eval_result eval[2];
    for (int kept = 0; kept < 2; kept++) {
        unsigned char *types = NULL;
        struct train_options o = small_options;
        o.grad_accum = grad_accum;
        if (kept)
            ok(source_types(path_of(quantised), c, &types));
        assert_true(!kept == !types);
        o.teacher_types = types;
        struct engine *e = open_engine("student", kept ? quantised : whole, &o);
        struct data *d = open_tokens("masked.bin", &o, false);
        for (int i = 0; i < 2; i++) {
            ok(engine_step(e, d, &step[kept][i]));
            step[kept][i].step_ms = 0;
        }
        assert_true(!kept == !e->teacher.net.quant);
        data_close(d);
        engine_destroy(e);
        o.steps = 0;
        e = open_engine("student", kept ? quantised : whole, &o);
        d = open_tokens("masked.bin", &o, true);
        ok(engine_eval(e, d, &eval[kept]));
        data_close(d);
        engine_destroy(e);
        free(types);
    }
    assert_true(isfinite(eval[0].kd_loss) && eval[0].kd_loss > 0);
    assert_memory_equal(step[0], step[1], sizeof step[0]);
    assert_memory_equal(&eval[0], &eval[1], sizeof eval[0]);
}

static void quantised_is_expanded(void **state)
{
    (void)state;
    struct model_config c = untied;
    for (int tied = 0; tied < 2; tied++) {
        char quantised[32], whole[32];
        c.tied = tied;
        snprintf(quantised, sizeof quantised, "quantised%d.gguf", tied);
        snprintf(whole, sizeof whole, "whole%d", tied);
        write_quantised(quantised, &c);
        write_expanded(whole, quantised, &c);
        run_both(quantised, whole, &c, 1);
        run_both(quantised, whole, &c, 3);
    }
}

/* What the teacher takes: its blocks, norms and one scratch; not the matrices. */
static void nothing_is_kept_expanded(void **state)
{
    (void)state;
    unsigned char *types;
    struct plan plan;
    struct train_options o = small_options;
    struct tensor_spec *spec;
    size_t count, blocks = 0, taken = 0;
    write_quantised("planned.gguf", &untied);
    ok(source_types(path_of("planned.gguf"), &untied, &types));
    o.teacher_types = types;
    ok(plan_make(&qwen2, &untied, &o, &plan));
    for (int i = 0; i < plan.count; i++)
        if (strcmp(plan.region[i].name, "teacher.weights") == 0 ||
            strcmp(plan.region[i].name, "teacher.expanded") == 0)
            taken += plan.region[i].bytes;
    ok(tensor_specs(&untied, &spec, &count));
    for (size_t i = 0; i < count; i++) {
        const enum nj_tensor_type kept =
            tensor_type_block(type_of(&spec[i])) > 1 ? type_of(&spec[i]) : NJ_TYPE_F32;
        blocks += (tensor_type_bytes(kept, tensor_elements(&spec[i])) + 255) / 256 * 256;
    }
    const size_t scratch = (size_t)(2 * untied.intermediate_size * untied.hidden_size) * 4;
    assert_true(taken > blocks && taken <= blocks + scratch + 256);
    free(spec);
    free(types);
}

static void broken_scales_are_refused(void **state)
{
    (void)state;
    unsigned char *types;
    struct engine *e;
    struct train_options o = small_options;
    write_quantised("broken.gguf", &untied);
    ok(source_types(path_of("broken.gguf"), &untied, &types));
    struct tensors tensors;
    ok(source_tensors(path_of("broken.gguf"), &tensors));
    const struct tensor *t = tensors_find(&tensors, "model.layers.1.mlp.down_proj.weight");
    const long at = (const char *)t->data - (const char *)tensors.map[0].base;
    tensors_close(&tensors);
    FILE *f = fopen(path_of("broken.gguf"), "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at + 22 * 8 * 100, SEEK_SET), 0); /* a block of row 100 */
    assert_int_equal(fwrite("\x00\x7c", 1, 2, f), 2);
    fclose(f);
    o.teacher_types = types;
    assert_int_equal(
        engine_create(ctx, path_of("student"), path_of("broken.gguf"), &o, NULL, NULL, &e),
        NJ_E_FORMAT);
    assert_non_null(strstr(fail_text(), "tensor model.layers.1.mlp.down_proj.weight holds a scale "
                                        "that is not finite"));
    free(types);
}

static int open_all(void **state)
{
    struct model_config student = qwen2;
    student.vocab_size = WORDS;
    if (fixture_open(state) != 0)
        return -1;
    ok(init_model(path_of("student"), &student, 1, NJ_TYPE_F32, 1 << 30, NULL));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantised_is_expanded),
        cmocka_unit_test(nothing_is_kept_expanded),
        cmocka_unit_test(broken_scales_are_refused),
    };
    return cmocka_run_group_tests_name("quant_teacher", tests, open_all, fixture_close);
}
