/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fp8_student.c: a student trained with FP8 GEMMs, on the CPU, which widens operands: effects that FP8 may and may
 * not have.
 */
#include "engine_fixture.h"

static struct train_options fp8_options(int64_t least)
{
    struct train_options o = small_options;
    o.student_fp8 = least;
    return o;
}

/* Return the gradients of the first step, for a student of the shape "qwen3". */
static float *gradients_of(const struct train_options *o, struct engine **e)
{
    *e = open_engine("qwen3", "teacher", o);
    struct batch_source *d = open_tokens("tokens.bin", o, false);
    struct step_result r;
    ok(engine_step(*e, d, &r));
    batches_close(d);
    return (*e)->mem.grad;
}

/* Return |a - b| / |b| for one tensor. */
static double apart(const float *a, const float *b, int64_t count)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += (double)(a[i] - b[i]) * (double)(a[i] - b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / size);
}

/* An E4M3 element is off by 3 % on average, and each gradient has passed several GEMMs. */
static void gradients_of_an_f8_student_are_near(void **state)
{
    (void)state;
    const struct train_options with = fp8_options(1);
    struct engine *plain_engine, *e;
    const float *plain = gradients_of(&small_options, &plain_engine);
    const float *f8 = gradients_of(&with, &e);
    const struct params *p = &e->student.p;
    for (size_t i = 0; i < p->specs; i++) {
        const int64_t first = p->first[i], count = tensor_elements(&p->spec[i]);
        const double off = apart(f8 + first, plain + first, count);
        if (!(off > 1e-4 && off < 0.2))
            fail_msg("%s: %g", p->spec[i].name, off);
    }
    engine_destroy(plain_engine);
    engine_destroy(e);
}

/* Return the share of b in a, which is 1 if a is not biased. */
static double along(const float *a, const float *b, int64_t count)
{
    double product = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        product += (double)a[i] * (double)b[i];
        size += (double)b[i] * (double)b[i];
    }
    return product / size;
}

static void gradients_of_the_head_are_near(void **state)
{
    (void)state;
    struct train_options o = fp8_options(1);
    struct engine *plain_engine, *e;
    o.batch_size = 8;
    o.head_chunk = 120; /* FP8 GEMMs cannot add chunks */
    const float *plain = gradients_of(&o, &plain_engine);
    o.head_chunk = 128;
    const float *f8 = gradients_of(&o, &e);
    const struct params *p = &e->student.p;
    const int64_t head = (int64_t)VOCAB * qwen3.hidden_size;
    assert_true(!plain_engine->mem.fp8_head.gradients && e->mem.fp8_head.gradients);
    for (size_t i = 0; i < p->specs; i++) {
        const int64_t first = p->first[i], count = tensor_elements(&p->spec[i]);
        const double off = apart(f8 + first, plain + first, count);
        if (!(off > 1e-4 && off < 0.2))
            fail_msg("%s: %g", p->spec[i].name, off);
    }
    /* measured 0.001; rounding to nearest gives 0.024, since most gradients of a row are equal in the first step */
    const double part = along(f8 + p->head, plain + p->head, head);
    if (!(fabs(part - 1) < 0.01))
        fail_msg("of the gradient of the head %g are left", part);
    engine_destroy(plain_engine);
    engine_destroy(e);
}

/* There are 61 tokens and a hidden size of 64. A row of a chunk needs 64 bytes for its gradient and 64 for x, and w has
 * 64 columns of 64 bytes; the logits have 256 bytes per row. */
static void gradients_of_the_head_need_room(void **state)
{
    (void)state;
    const struct {
        int chunk, objective;
        bool teacher, on;
    } runs[] = {{48, OBJECTIVE_KL, true, true},
                {32, OBJECTIVE_KL, true, false},
                {40, OBJECTIVE_KL, true, false},
                {48, OBJECTIVE_TVD, true, false},
                {48, OBJECTIVE_KL, false, false}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct train_options o = fp8_options(1);
        o.batch_size = 6;
        o.head_chunk = runs[i].chunk;
        o.objective = runs[i].objective;
        struct plan plan;
        const struct model_config *teacher = runs[i].teacher ? &teacher_config : NULL;
        bool on = false;
        ok(plan_make(&qwen3, teacher, &o, &plan));
        for (int k = 0; k < plan.count; k++)
            on |= strcmp(plan.region[k].name, "head.fp8.gradients") == 0;
        if (on != runs[i].on)
            fail_msg("run %zu: %d", i, on);
    }
}

/* Sizes of qwen3: O is 64 x 128, QKV 384 x 64, gate and up 192 x 64, down 64 x 96, the head 61 x 64. */
static void small_matrices_are_left_out_of_f8(void **state)
{
    (void)state;
    const struct {
        int64_t least;
        bool on[4], head;
    } sizes[] = {
        {0, {false, false, false, false}, false},   {3904, {true, true, true, true}, true},
        {3905, {true, true, true, true}, false},    {6144, {true, true, true, true}, false},
        {6145, {true, true, true, false}, false},   {8193, {true, false, true, false}, false},
        {12289, {true, false, false, false}, false}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct train_options o = fp8_options(sizes[i].least);
        struct engine *e;
        gradients_of(&o, &e);
        for (int m = 0; m < e->student.c.layers * 4; m++)
            assert_true((e->student.matrix[m].format == &matrix_fp8_trained) == sizes[i].on[m % 4]);
        assert_true(student_fp8_head(&e->student) == sizes[i].head);
        engine_destroy(e);
    }
}

static double last_loss(const struct train_options *o, const char *student, const char *teacher,
                        int steps)
{
    struct engine *e = open_engine(student, teacher, o);
    struct batch_source *d = open_tokens("tokens.bin", o, false);
    struct step_result r;
    for (int i = 0; i < steps; i++)
        ok(engine_step(e, d, &r));
    batches_close(d);
    engine_destroy(e);
    return r.loss;
}

static void recomputing_changes_nothing_of_an_f8_student(void **state)
{
    (void)state;
    struct train_options o = fp8_options(1);
    const double want = last_loss(&o, "qwen3", "teacher", 4);
    for (int k = RECOMPUTE_MLP; k <= RECOMPUTE_BLOCK; k++) {
        o.recompute = k;
        assert_true(last_loss(&o, "qwen3", "teacher", 4) == want);
    }
}

/* Run two steps; the largest scales of rows are overwritten between them if asked. */
static struct engine *two_steps(bool overwrite)
{
    const struct train_options o = fp8_options(1);
    struct engine *e = open_engine("qwen3", "teacher", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    float *top = e->mem.student.f8.top;
    const int tops = qwen3.layers * 4 * FP8_OPERANDS;
    struct step_result r;
    ok(engine_step(e, d, &r));
    for (int i = 0; i < tops; i++) {
        assert_true(top[i] > 0 && isfinite(top[i]));
        top[i] = overwrite ? 0x1p90f : top[i];
    }
    ok(engine_step(e, d, &r));
    batches_close(d);
    return e;
}

static void micro_batches_do_not_meet(void **state)
{
    (void)state;
    struct engine *want = two_steps(false), *got = two_steps(true);
    assert_memory_equal(got->mem.grad, want->mem.grad,
                        (size_t)want->student.p.count * sizeof(float));
    engine_destroy(want);
    engine_destroy(got);
}

/* The runs have some GEMMs of a layer in FP8 and others not, an activation without a kernel of its own, adapters,
 * several micro-batches, no teacher. The loss is near that without FP8, but not equal. */
static void all_kinds_of_runs_learn_in_f8(void **state)
{
    (void)state;
    const struct {
        const char *student;
        int64_t least;
        int rank, micro;
        bool alone;
    } runs[] = {{"qwen3", 1, 0, 1, false},    {"qwen3", 6145, 0, 1, false},
                {"qwen3", 8193, 0, 2, false}, {"qwen3", 12289, 4, 1, false},
                {"qwen3", 1, 4, 2, false},    {"gelu-tanh", 1, 0, 1, false},
                {"qwen3", 1, 0, 2, true}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct train_options o = fp8_options(0);
        const char *teacher = runs[i].alone ? NULL : "teacher";
        o.grad_accum = runs[i].micro;
        if (runs[i].rank > 0) {
            o.lora = (struct lora_config){.rank = runs[i].rank, .alpha = 2.0 * runs[i].rank};
            ok(lora_targets_add(&o.lora, "all-linear"));
        }
        if (runs[i].alone)
            o.kd_ratio = 0;
        const double first = last_loss(&o, runs[i].student, teacher, 1);
        const double plain = last_loss(&o, runs[i].student, teacher, 12);
        o.student_fp8 = runs[i].least;
        const double f8 = last_loss(&o, runs[i].student, teacher, 12);
        if (!(f8 != plain && fabs(f8 - plain) < 0.05 * (first - plain)))
            fail_msg("run %zu: %g to %g, with FP8 %g", i, first, plain, f8);
    }
}

static size_t bytes_of(const struct plan *p, const char *name, const char **within)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->region[i].name, name) == 0) {
            *within = p->region[i].within;
            return p->region[i].bytes;
        }
    fail_msg("there is no region %s", name);
    return 0;
}

/* Operands lie in the teacher's logits if they fit; then a run takes no more memory than without FP8. */
static void operands_lie_in_idle_logits(void **state)
{
    (void)state;
    struct train_options o = fp8_options(1);
    struct plan plan, plain;
    const char *within;
    ok(plan_make(&qwen3, &teacher_config, &o, &plan));
    assert_true(bytes_of(&plan, "student.fp8", &within) > 0);
    assert_null(within);
    struct model_config wide = qwen3, wide_teacher = teacher_config;
    wide.vocab_size = 4000;
    wide_teacher.vocab_size = 4000;
    o.head_chunk = 32;
    ok(plan_make(&wide, &wide_teacher, &o, &plan));
    assert_int_equal(bytes_of(&plan, "student.fp8", &within), 0);
    assert_string_equal(within, "teacher.logits");
    o.student_fp8 = 0;
    ok(plan_make(&wide, &wide_teacher, &o, &plain));
    assert_true(plan.total_bytes == plain.total_bytes);
}

/* A head of 4,000 x 64 with a chunk of 16 rows needs 274,176 bytes; the scratch memory of a layer 4,744 per token, the
 * gradients of a layer 204,800, the logits 256,000. */
static void operands_of_the_head_lie_in_idle_memory(void **state)
{
    (void)state;
    const struct {
        int batch, layers, micro;
        const char *within;
    } runs[] = {{8, 2, 1, "activations"},
                {2, 2, 1, NULL},
                {2, 3, 1, "student.gradients"},
                {2, 3, 2, NULL},
                {8, 3, 2, "activations"}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct train_options o = fp8_options(13000); /* only the head */
        struct model_config c = qwen3;
        struct plan plan;
        const char *within = NULL;
        c.vocab_size = 4000;
        c.layers = runs[i].layers;
        o.batch_size = runs[i].batch;
        o.grad_accum = runs[i].micro;
        o.head_chunk = 16;
        ok(plan_make(&c, NULL, &o, &plan));
        const size_t bytes = bytes_of(&plan, "head.fp8", &within);
        if ((within == NULL) != (runs[i].within == NULL) || (within == NULL) != (bytes > 0) ||
            (within && strcmp(within, runs[i].within) != 0))
            fail_msg("run %zu: %zu bytes in %s", i, bytes, within ? within : "none");
    }
}

static void refused(const struct model_config *student, const struct train_options *o,
                    const char *why)
{
    struct plan plan;
    assert_int_equal(plan_make(student, &teacher_config, o, &plan), NJ_E_UNSUPPORTED);
    if (!strstr(fail_text(), why))
        fail_msg("%s", fail_text());
}

static void f8_students_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct train_options o = fp8_options(1);
    refused(&qwen2, &o, "sizes are multiples of 16");
    o.seq_len = 20;
    refused(&qwen3, &o, "sequence length is 40");
    o = fp8_options(1 << 22);
    refused(&qwen3, &o, "fewer than 4194304 elements");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_an_f8_student_are_near),
        cmocka_unit_test(gradients_of_the_head_are_near),
        cmocka_unit_test(gradients_of_the_head_need_room),
        cmocka_unit_test(small_matrices_are_left_out_of_f8),
        cmocka_unit_test(recomputing_changes_nothing_of_an_f8_student),
        cmocka_unit_test(micro_batches_do_not_meet),
        cmocka_unit_test(all_kinds_of_runs_learn_in_f8),
        cmocka_unit_test(operands_lie_in_idle_logits),
        cmocka_unit_test(operands_of_the_head_lie_in_idle_memory),
        cmocka_unit_test(f8_students_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
