/* SPDX-License-Identifier: Apache-2.0
 *
 * test_quant_teacher.c: a teacher whose weights stay quantized gives, bit for bit, the results of one with expanded
 * weights, on the CPU.
 */
#include "engine_fixture.h"

#include "engine/engine.h"
#include "formats/safetensors.h"
#include "gguf_fixture.h"
#include "io/model_folder.h"
#include "model/model_open.h"
#include "net/backward.h"
#include "net/layer_gemm.h"
#include "net/quant.h"
#include "nojit_ops.h"
#include "run/teacher_types.h"
#include "weights/block_scales.h"

enum { WORDS = 1301, SPECS_MOST = 64 };

/* Two layers in which every type occurs at least once, and all mixtures of a fused matrix. */
static const struct model_config untied = {
    .model_type = "llama",
    .hidden_size = 256,
    CONFIG_PLAIN(4, 2, 64, 256, 0),
    .layers = 2,
    .vocab_size = WORDS,
    .max_positions = 128,
    .bos_id = -1,
    .eos_id = END_OF_TEXT,
    .rms_eps = 1e-5f,
    CONFIG_ROPE(1e4),
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

/* Write random blocks. Their half-precision scales lie at even bytes, and each is set to about 2^-8. */
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

static void write_quantized(const char *name, const struct model_config *c)
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
        gguf_tensor_name(NULL, &spec[i], names[i]);
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

/* Return the elements of a tensor, expanded by the op's reference if it is quantized. */
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
        ok(nj_dequantize(s, NJ_F32, (int)t->dtype,
                         &(struct nj_dequantize){.dst = out,
                                                 .data = (const int32_t *)(const void *)blocks,
                                                 .M = rows,
                                                 .R = rows,
                                                 .C = columns}));
    }
    free(blocks);
    return out;
}

/* Write a folder with the weights of a GGUF file in float32. */
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

/* Compare the losses of two steps and an evaluation; `kept`: the teacher stays quantized. */
static void run_both(const char *quantized, const char *whole, const struct model_config *c,
                     int grad_accum)
{
    struct step_result step[2][2];
    struct eval_result eval[2];
    for (int kept = 0; kept < 2; kept++) {
        unsigned char *types = NULL;
        struct train_options o = small_options;
        o.grad_accum = grad_accum;
        if (kept)
            ok(source_types(path_of(quantized), c, &types));
        assert_true(!kept == !types);
        o.teacher_types = types;
        struct engine *e = open_engine("student", kept ? quantized : whole, &o);
        struct batch_source *d = open_tokens("masked.bin", &o, false);
        for (int i = 0; i < 2; i++) {
            ok(engine_step(e, d, &step[kept][i]));
            step[kept][i].step_ms = 0;
        }
        assert_true(kept == (e->teacher.net.head->format == &matrix_quant));
        batches_close(d);
        engine_destroy(e);
        o.steps = 0;
        e = open_engine("student", kept ? quantized : whole, &o);
        d = open_tokens("masked.bin", &o, true);
        ok(engine_eval(e, d, &eval[kept]));
        batches_close(d);
        engine_destroy(e);
        free(types);
    }
    assert_true(isfinite(eval[0].kd_loss) && eval[0].kd_loss > 0);
    assert_memory_equal(step[0], step[1], sizeof step[0]);
    assert_memory_equal(&eval[0], &eval[1], sizeof eval[0]);
}

static void a_quantized_teacher_is_its_expanded_weights(void **state)
{
    (void)state;
    struct model_config c = untied;
    for (int tied = 0; tied < 2; tied++) {
        char quantized[32], whole[32];
        c.tied = tied;
        snprintf(quantized, sizeof quantized, "quantized%d.gguf", tied);
        snprintf(whole, sizeof whole, "whole%d", tied);
        write_quantized(quantized, &c);
        write_expanded(whole, quantized, &c);
        run_both(quantized, whole, &c, 1);
        run_both(quantized, whole, &c, 3);
    }
}

/* The teacher needs memory for its blocks, norms and one scratch buffer, not for the matrices. */
static void nothing_of_a_quantized_teacher_is_kept_expanded(void **state)
{
    (void)state;
    unsigned char *types;
    struct plan plan;
    struct train_options o = small_options;
    struct tensor_spec *spec;
    size_t count, blocks = 0, taken = 0;
    write_quantized("planned.gguf", &untied);
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
    const size_t scratch = (size_t)(2 * GLU(&untied).ffn_size * untied.hidden_size) * 4;
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
    write_quantized("broken.gguf", &untied);
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

static void seven_billion_take_six_gigabytes(void **state)
{
    (void)state;
    const struct model_config *c = &preset_find("qwen2.5-7b")->config;
    struct train_options o = small_options;
    unsigned char *types;
    struct plan plan;
    ok(teacher_types_as(c, TEACHER_Q4_K, &types));
    o.dtype = NJ_LP;
    o.teacher_types = types;
    ok(plan_make(&preset_find("qwen2.5-0.5b")->config, c, &o, &plan));
    const size_t blocks = region_bytes(&plan, "teacher.weights");
    const size_t all = blocks + region_bytes(&plan, "teacher.expanded");
    assert_true(blocks > 4500000000 && all <= 6000000000);
    free(types);
}

/* A quarter of 128 experts is expanded at a time: 1,536 rows of 2,048 numbers each. */
static void thirty_billion_in_experts_take_nineteen_gigabytes(void **state)
{
    (void)state;
    struct model_config c;
    struct train_options o = small_options;
    unsigned char *types;
    struct plan plan;
    ok(preset_config(preset_find("qwen3-30b-a3b"), &c));
    ok(teacher_types_as(&c, TEACHER_Q4_K, &types));
    o.dtype = NJ_LP;
    o.teacher_types = types;
    ok(plan_make(&preset_find("qwen3-0.6b")->config, &c, &o, &plan));
    const size_t expanded = region_bytes(&plan, "teacher.expanded");
    assert_int_equal(expanded, 32 * 1536 * 2048 * 2);
    assert_true(region_bytes(&plan, "teacher.weights") + expanded < 19000000000);
    free(types);
}

/* Quantized folders can leave out some experts. */
static void experts_of_many_types_are_refused(void **state)
{
    (void)state;
    struct model_config c;
    struct train_options o = small_options;
    unsigned char *types;
    struct tensor_spec *spec;
    struct plan plan;
    size_t count;
    ok(preset_config(preset_find("qwen3-30b-a3b"), &c));
    ok(teacher_types_as(&c, TEACHER_Q4_K, &types));
    ok(tensor_specs(&c, &spec, &count));
    for (size_t i = 0; i < count; i++)
        if (spec[i].role == ROLE_EXPERT_UP_WEIGHT && spec[i].layer == 5 && spec[i].expert % 9 == 4)
            types[i] = NJ_TYPE_Q5_K;
    free(spec);
    o.teacher_types = types;
    assert_int_equal(plan_make(&preset_find("qwen3-0.6b")->config, &c, &o, &plan),
                     NJ_E_UNSUPPORTED);
    assert_non_null(strstr(fail_text(), "the experts of layer 5 have Q5_K after matrices of"));
    free(types);
}

/* The matrices are not parameters, so they cannot be given a gradient. */
static void gradients_of_a_quantized_teacher_are_refused(void **state)
{
    (void)state;
    unsigned char *types;
    struct train_options o = small_options;
    write_quantized("frozen.gguf", &untied);
    ok(source_types(path_of("frozen.gguf"), &untied, &types));
    o.teacher_types = types;
    struct engine *e = open_engine("student", "frozen.gguf", &o);
    const struct net *n = &e->teacher.net;
    struct carve memory = {0};
    struct acts a;
    acts_carve(n, o.batch_size, o.seq_len, ACTS_INFER, &memory, &a);
    memory = (struct carve){.base = calloc(1, memory.used)};
    assert_non_null(memory.base);
    acts_carve(n, o.batch_size, o.seq_len, ACTS_INFER, &memory, &a);
    assert_null(n->grad);
    for (size_t i = 0; i < n->p.specs; i++)
        assert_true((n->p.first[i] < 0) == (n->p.spec[i].rank == 2));
    for (int i = 0; i < n->layer[1].matrix; i++) {
        struct work w = engine_work(e);
        product_dx(&w, &a, &n->matrix[i], a.branch, a.branch, a.y);
        assert_int_not_equal(w.rc, 0);
    }
    struct work w = engine_work(e);
    net_backward(&w, n, &a, &e->mem.rows);
    assert_int_not_equal(w.rc, 0);
    free(memory.base);
    engine_destroy(e);
    free(types);
}

/* The head runs in slices, each of whose GEMMs was prepared. */
static void epochs_with_a_quantized_teacher_end(void **state)
{
    (void)state;
    unsigned char *types;
    struct train_options o = small_options;
    struct step_result first = {0}, r;
    struct data_state at;
    write_quantized("epochs.gguf", &untied);
    ok(source_types(path_of("epochs.gguf"), &untied, &types));
    o.teacher_types = types;
    struct engine *e = open_engine("student", "epochs.gguf", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    assert_true(e->teacher.net.head->quant.at_once < WORDS);
    for (batches_tell(d, &at); at.epoch < 3; batches_tell(d, &at)) {
        ok(engine_step(e, d, &r));
        first = first.valid_tokens ? first : r;
    }
    assert_true(r.loss < first.loss);
    batches_close(d);
    engine_destroy(e);
    free(types);
}

/* A folder that is quantized while it is read gives the blocks of a quantized file, whose rows lie in another order. */
static void folders_are_quantized_like_files(void **state)
{
    (void)state;
    static const enum nj_tensor_type each[] = {NJ_TYPE_Q8_0, NJ_TYPE_Q5_0, NJ_TYPE_Q4_K,
                                               NJ_TYPE_Q6_K};
    ok(init_model(path_of("folder"), &untied, 5, NJ_TYPE_F32, 1 << 30, NULL));
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        const struct gguf_form form = {.dtype = each[k]};
        unsigned char *types;
        struct eval_result r[2];
        ok(gguf_of(path_of("folder"), path_of("file.gguf"), &form));
        ok(source_types(path_of("file.gguf"), &untied, &types));
        for (int file = 0; file < 2; file++) {
            struct train_options o = small_options;
            o.steps = 0;
            o.teacher_types = types;
            struct engine *e = open_engine("folder", file ? "file.gguf" : "folder", &o);
            struct batch_source *d = open_tokens("masked.bin", &o, true);
            ok(engine_eval(e, d, &r[file]));
            batches_close(d);
            engine_destroy(e);
        }
        assert_memory_equal(&r[0], &r[1], sizeof r[0]);
        assert_true(r[0].kd_loss > 1e-9 && r[0].kd_loss < 0.01);
        free(types);
    }
}

struct reading {
    double last, total;
    int models; /* models that were read to the end */
};

static void told(void *user, double bytes, double total)
{
    struct reading *r = user;
    if (bytes <= 0) {
        *r = (struct reading){.total = total, .models = r->models};
        return;
    }
    assert_true(total == r->total && bytes > r->last && bytes <= total);
    r->last = bytes;
    r->models += bytes == total;
}

/* Progress is reported for student and teacher, to the last byte, whether the teacher is kept as it is, quantized or
 * not. */
static void the_reading_of_a_quantized_teacher_is_told(void **state)
{
    (void)state;
    const struct gguf_form form = {.dtype = NJ_TYPE_Q5_0};
    unsigned char *types;
    ok(init_model(path_of("plain"), &untied, 5, NJ_TYPE_F32, 1 << 30, NULL));
    ok(gguf_of(path_of("plain"), path_of("plain.gguf"), &form));
    ok(source_types(path_of("plain.gguf"), &untied, &types));
    for (int k = 0; k < 3; k++) {
        struct reading r = {0};
        struct train_options o = small_options;
        o.teacher_types = k == 0 ? NULL : types;
        o.loaded = told;
        o.loaded_user = &r;
        engine_destroy(open_engine("plain", k == 2 ? "plain.gguf" : "plain", &o));
        assert_int_equal(r.models, 2);
    }
    free(types);
}

/* Scales that are not finite, as float16, bfloat16 or the upper half of a float; and byte 3 of an I4 block, which says
 * which of the first two its scale is. */
static const struct broken {
    uint16_t scale;
    unsigned char kind;
} broken[] = {{0x7e00, 0}, {0xfc00, 0}, {0x7f80, 1}, {0xffc0, 1}, {0x7c00, 1}};

/* Return whether every element of a block is finite. */
static bool expands(nj_stream *s, int type, const unsigned char *block)
{
    _Alignas(16) float x[256];
    const int elements = tensor_type_block((enum nj_tensor_type)type);
    bool finite = true;
    ok(nj_dequantize(s, NJ_F32, type,
                     &(struct nj_dequantize){.dst = x,
                                             .data = (const int32_t *)(const void *)block,
                                             .M = 1,
                                             .R = 1,
                                             .C = elements}));
    ok(nj_stream_sync(s));
    for (int i = 0; i < elements; i++)
        finite = finite && isfinite(x[i]);
    return finite;
}

/* Bytes of a scale at any other place would be read as digits, which are finite. */
static void scales_are_where_they_are_looked_for(void **state)
{
    (void)state;
    nj_stream *s;
    ok(nj_stream_create(ctx, &s));
    for (int type = NJ_TYPE_Q8_0; type < NJ_TYPES; type++) {
        const enum nj_tensor_type t = (enum nj_tensor_type)type;
        const size_t bytes = tensor_type_bytes(t, tensor_type_block(t));
        for (size_t at = 0; at + 2 <= bytes; at += 2) {
            for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
                _Alignas(16) unsigned char block[256] = {[3] = broken[i].kind};
                memcpy(block + at, &broken[i].scale, sizeof broken[i].scale);
                if (expands(s, type, block) != block_scales_finite(t, block, bytes))
                    fail_msg("%s, byte %zu, %04x", tensor_type_name(t), at, broken[i].scale);
            }
        }
    }
    nj_stream_destroy(s);
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
        cmocka_unit_test(a_quantized_teacher_is_its_expanded_weights),
        cmocka_unit_test(nothing_of_a_quantized_teacher_is_kept_expanded),
        cmocka_unit_test(broken_scales_are_refused),
        cmocka_unit_test(scales_are_where_they_are_looked_for),
        cmocka_unit_test(folders_are_quantized_like_files),
        cmocka_unit_test(the_reading_of_a_quantized_teacher_is_told),
        cmocka_unit_test(seven_billion_take_six_gigabytes),
        cmocka_unit_test(thirty_billion_in_experts_take_nineteen_gigabytes),
        cmocka_unit_test(experts_of_many_types_are_refused),
        cmocka_unit_test(gradients_of_a_quantized_teacher_are_refused),
        cmocka_unit_test(epochs_with_a_quantized_teacher_end),
    };
    return cmocka_run_group_tests_name("quant_teacher", tests, open_all, fixture_close);
}
