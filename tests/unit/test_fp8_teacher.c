/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fp8_teacher.c: a teacher with FP8 (E4M3) GEMMs, on the CPU, which widens operands: the layout of its weights,
 * and effects that FP8 may and may not have.
 */
#include "engine_fixture.h"

static struct train_options fp8_options(void)
{
    struct train_options o = small_options;
    o.teacher_fp8 = 1;
    return o;
}

static double value_of(char bits)
{
    const int b = (unsigned char)bits, exponent = b >> 3 & 15, fraction = b & 7;
    const double size = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    assert_true((b & 127) != 127);
    return b & 128 ? -size : size;
}

/* Check a matrix: the bound is half a unit of E4M3, of a normal number or of the scale; a scale is rounded to
 * float32. */
static void check_matrix(const struct fp8_matrix *m, const float *want, int rows, const char *what)
{
    for (int r = 0; r < m->rows; r++) {
        const double scale = (double)m->scale[r];
        for (int c = 0; c < m->columns; c++) {
            const double got = scale * value_of(m->q[r * m->columns + c]);
            const double w = r < rows ? (double)want[r * m->columns + c] : 0;
            if (!(fabs(got - w) <= fmax(0x1p-4 * fabs(w), 0x1p-10 * scale) * (1 + 0x1p-20)))
                fail_msg("%s, row %d, column %d: %g became %g", what, r, c, w, got);
        }
    }
}

/* Every matrix is compared with that of the same teacher in float32, whose layout differs. */
static void weights_are_where_products_read_them(void **state)
{
    (void)state;
    const char *const models[] = {"teacher", "qwen3", "tied"};
    struct train_options o = fp8_options();
    for (int k = 0; k < 3; k++) {
        struct engine *e = open_engine("qwen2", models[k], &o);
        struct engine *plain = open_engine("qwen2", models[k], &small_options);
        const struct net *n = &e->teacher.net, *p = &plain->teacher.net;
        const float *all = (const float *)(void *)p->w;
        for (int i = 0; i < n->matrices && &n->matrix[i] < n->head; i++)
            check_matrix(&n->matrix[i].f8, all + p->matrix[i].first, p->matrix[i].rows, models[k]);
        check_matrix(&n->head->f8, all + p->p.head, n->c.vocab_size, "head");
        for (size_t i = 0; i < n->p.specs; i++)
            if (n->p.spec[i].rank == 1 || n->p.spec[i].role == ROLE_EMBED)
                assert_memory_equal(net_weight(n, n->p.first[i]), net_weight(p, p->p.first[i]),
                                    (size_t)tensor_elements(&n->p.spec[i]) * sizeof(float));
        assert_true(engine_teacher_hash(e) == engine_teacher_hash(plain));
        engine_destroy(e);
        engine_destroy(plain);
    }
}

/* Evaluate the same student with the teacher in its own type and in E4M3. */
static void eval_both(const char *student, const char *teacher, struct eval_result out[2])
{
    for (int f8 = 0; f8 < 2; f8++) {
        struct train_options o = small_options;
        o.teacher_fp8 = f8;
        o.steps = 0;
        o.temperature = 1;
        struct engine *e = open_engine(student, teacher, &o);
        struct batch_source *d = open_tokens("masked.bin", &o, true);
        ok(engine_eval(e, d, &out[f8]));
        batches_close(d);
        engine_destroy(e);
    }
}

/* The losses differ, by far less than with another model. */
static void an_f8_teacher_changes_a_little(void **state)
{
    (void)state;
    const char *const models[] = {"teacher", "qwen3", "tied", "gelu-tanh"};
    for (int k = 0; k < 4; k++) {
        struct eval_result same[2], other[2];
        eval_both(models[k], models[k], same);
        eval_both("qwen2", models[k], other);
        assert_true(fabs(same[0].kd_loss) < 1e-7);
        assert_true(same[1].kd_loss > 1e-6 && same[1].kd_loss < 0.02 * other[0].kd_loss);
        assert_true(same[1].ce_loss == same[0].ce_loss); /* the student's loss */
        assert_true(other[1].kd_loss != other[0].kd_loss);
        assert_true(fabs(other[1].kd_loss - other[0].kd_loss) < 0.1 * other[0].kd_loss);
    }
}

/* Weights are large enough for activations to differ: rounding costs 0.009 nats per token, SiLU in place of GELU
 * 0.024. */
static void the_teacher_keeps_its_activation(void **state)
{
    (void)state;
    static const char *const model = "tests/golden/torch/llama_gelu_tanh";
    struct train_options o = fp8_options();
    struct engine *e;
    struct eval_result r;
    o.steps = 0;
    ok(engine_create(ctx, model, model, &o, NULL, NULL, &e));
    struct batch_source *d = open_tokens("masked.bin", &o, true);
    ok(engine_eval(e, d, &r));
    assert_true(r.kd_loss > 0 && r.kd_loss < 0.015);
    batches_close(d);
    engine_destroy(e);
}

/* Zeros are the same in E4M3, so the run must have the same bits: the teacher's pass must not affect the memory that it
 * shares with the student's. */
static void a_teacher_of_zeros_is_the_same(void **state)
{
    (void)state;
    float *want = NULL;
    double loss = 0;
    for (int f8 = 0; f8 < 2; f8++) {
        struct train_options o = small_options;
        o.teacher_fp8 = f8;
        struct engine *e = open_engine("qwen3", "zeros", &o);
        struct batch_source *d = open_tokens("tokens.bin", &o, false);
        struct step_result r;
        const size_t bytes = (size_t)e->student.p.count * sizeof *want;
        for (int i = 0; i < 4; i++)
            ok(engine_step(e, d, &r));
        if (f8) {
            assert_true(r.loss == loss);
            assert_memory_equal(e->mem.master, want, bytes);
        } else {
            loss = r.loss;
            want = malloc(bytes);
            assert_non_null(want);
            memcpy(want, e->mem.master, bytes);
        }
        batches_close(d);
        engine_destroy(e);
    }
    free(want);
}

static void a_student_learns_of_an_f8_teacher(void **state)
{
    (void)state;
    struct train_options o = fp8_options();
    struct engine *e = open_engine("qwen2", "teacher", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    struct step_result first, r;
    ok(engine_step(e, d, &first));
    for (int i = 1; i < 20; i++)
        ok(engine_step(e, d, &r));
    assert_true(r.loss < first.loss - 0.3);
    batches_close(d);
    engine_destroy(e);
}

static void broken_weights_of_an_f8_teacher_are_named(void **state)
{
    (void)state;
    struct train_options o = fp8_options();
    struct engine *e = open_engine("qwen2", "teacher", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    struct step_result r;
    const struct net *n = &e->teacher.net;
    struct fp8_matrix *gate_up = &net_matrix(n, 1, BLOCK_GLU, GLU_GATE_UP)->f8;
    gate_up->scale[arch_block(&n->c.arch, 1, BLOCK_GLU)->ffn_size + 3] = NAN;
    assert_int_equal(engine_step(e, d, &r), NJ_E_FORMAT);
    assert_string_equal(r.nonfinite, "weight of the teacher model.layers.1.mlp.up_proj.weight");
    batches_close(d);
    engine_destroy(e);
}

/* The weights take a byte per element and four per row; float32 takes four per element. */
static void the_plan_of_an_f8_teacher_is_smaller_and_used(void **state)
{
    (void)state;
    struct train_options o = fp8_options();
    struct plan f8, plain;
    ok(plan_make(&qwen3, &teacher_config, &o, &f8));
    ok(plan_make(&qwen3, &teacher_config, &small_options, &plain));
    const size_t less =
        region_bytes(&plain, "teacher.weights") - region_bytes(&f8, "teacher.weights");
    assert_true(f8.total_bytes < plain.total_bytes);
    struct engine *e = open_engine("qwen3", "teacher", &o);
    const struct net *n = &e->teacher.net;
    size_t elements = 0;
    for (const struct matrix *m = n->matrix; m <= n->head; m++)
        elements += (size_t)m->f8.rows * (size_t)m->f8.columns;
    assert_true(less > 2.8 * (double)elements && less < 3.0 * (double)elements);
    assert_int_equal(engine_plan(e)->total_bytes, f8.total_bytes);
    char *end = (char *)e->device + f8.total_bytes;
    char *last = (char *)n->inv_freq + 64 / 2 * sizeof(float);
    assert_true(last <= end && end - last < 256);
    engine_destroy(e);
}

static void f8_teachers_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct train_options o = fp8_options();
    struct engine *e;
    struct plan plan;
    assert_int_equal(engine_create(ctx, path_of("qwen3"), path_of("qwen2"), &o, NULL, NULL, &e),
                     NJ_E_UNSUPPORTED);
    assert_non_null(strstr(fail_text(), "multiples of 16"));
    assert_int_equal(plan_make(&qwen3, &qwen2, &o, &plan), NJ_E_UNSUPPORTED);
}

static void evaluation_may_stop_early(void **state)
{
    (void)state;
    struct train_options o = fp8_options();
    struct eval_result r;
    o.steps = 0;
    o.eval_batches = 2;
    struct engine *e = open_engine("teacher", "teacher", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, true);
    ok(engine_eval(e, d, &r));
    const int64_t batch = o.batch_size * o.seq_len; /* the ends of documents have no target */
    assert_true(r.valid_tokens > batch && r.valid_tokens <= 2 * batch);
    batches_close(d);
    engine_destroy(e);
}

/* Make a model whose file holds zeros after its header. */
static void make_zeros(void)
{
    uint64_t header;
    ok(init_model(path_of("zeros"), &teacher_config, 3, NJ_TYPE_F32, 1 << 30, NULL));
    FILE *f = fopen(path_of("zeros/model.safetensors"), "r+b");
    assert_non_null(f);
    assert_int_equal(fread(&header, sizeof header, 1, f), 1);
    fseek(f, 0, SEEK_END);
    const long end = ftell(f), start = (long)(sizeof header + header);
    assert_true(end > start);
    fseek(f, start, SEEK_SET);
    for (long i = start; i < end; i++)
        fputc(0, f);
    assert_int_equal(fclose(f), 0);
}

static int open_all(void **state)
{
    struct model_config tied = qwen3;
    int rc = fixture_open(state);
    tied.tied = true;
    ok(init_model(path_of("tied"), &tied, 4, NJ_TYPE_F32, 1 << 30, NULL));
    make_zeros();
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_where_products_read_them),
        cmocka_unit_test(an_f8_teacher_changes_a_little),
        cmocka_unit_test(the_teacher_keeps_its_activation),
        cmocka_unit_test(a_teacher_of_zeros_is_the_same),
        cmocka_unit_test(a_student_learns_of_an_f8_teacher),
        cmocka_unit_test(broken_weights_of_an_f8_teacher_are_named),
        cmocka_unit_test(the_plan_of_an_f8_teacher_is_smaller_and_used),
        cmocka_unit_test(f8_teachers_that_do_not_fit_are_refused),
        cmocka_unit_test(evaluation_may_stop_early),
    };
    return cmocka_run_group_tests(tests, open_all, fixture_close);
}
