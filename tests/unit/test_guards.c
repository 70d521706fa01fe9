/* SPDX-License-Identifier: Apache-2.0
 *
 * test_guards.c: faults that other trainers have had and that no loss curve shows: options without effect, steps that
 * do not count, memory that follows the wrong size, results that belong to another run.
 */
#include "engine_fixture.h"

#include "base/step_state.h"

/* Return the weights after `steps` steps; the caller frees them. */
static float *weights_after(const struct train_options *o, const char *tokens, int steps,
                            size_t *bytes)
{
    struct engine *e = open_engine("qwen2", "teacher", o);
    struct batch_source *d = open_tokens(tokens, o, false);
    struct step_result r;
    for (int i = 0; i < steps; i++)
        ok(engine_step(e, d, &r));
    *bytes = (size_t)e->student.p.count * sizeof(float);
    float *w = malloc(*bytes);
    assert_non_null(w);
    memcpy(w, e->mem.master, *bytes);
    batches_close(d);
    engine_destroy(e);
    return w;
}

/* Return the options with one of them changed. */
static struct train_options with(struct train_options o, int option)
{
    struct {
        float *value;
        float other;
    } const real[] = {{&o.lr, 1e-3f},         {&o.weight_decay, 0.5f}, {&o.beta1, 0.5f},
                      {&o.beta2, 0.5f},       {&o.eps, 1e-2f},         {&o.max_grad_norm, 1e-3f},
                      {&o.temperature, 3.0f}, {&o.kd_ratio, 0.9f},     {&o.beta, 0.5f},
                      {&o.min_lr_ratio, 0.5f}};
    const int reals = sizeof real / sizeof *real;
    if (option < reals)
        *real[option].value = real[option].other;
    else if (option == reals)
        o.grad_accum = 2;
    else if (option == reals + 1)
        o.batch_size = 3;
    else if (option == reals + 2)
        o.warmup_steps = 2;
    else if (option == reals + 3)
        o.objective = OBJECTIVE_TVD;
    else
        o.schedule = SCHEDULE_LINEAR;
    if (real[option % reals].value == &o.min_lr_ratio)
        o.schedule = SCHEDULE_COSINE;
    return o;
}

static void check_every_option(const struct train_options *plain)
{
    enum { OPTIONS = 15 };
    size_t bytes;
    float *usual = weights_after(plain, "tokens.bin", 3, &bytes);
    struct train_options cosine = *plain;
    cosine.schedule = SCHEDULE_COSINE;
    float *on_cosine = weights_after(&cosine, "tokens.bin", 3, &bytes);
    for (int k = 0; k < OPTIONS; k++) {
        const struct train_options o = with(*plain, k);
        float *other = weights_after(&o, "tokens.bin", 3, &bytes);
        if (memcmp(other, o.schedule == SCHEDULE_COSINE ? on_cosine : usual, bytes) == 0)
            fail_msg("option %d changes nothing", k);
        free(other);
    }
    free(usual);
    free(on_cosine);
}

static void every_option_reaches_the_weights(void **state)
{
    (void)state;
    struct train_options o = small_options;
    check_every_option(&o);
    o.optimizer_state = STATE_BF16;
    check_every_option(&o);
}

static void rates_are_those_of_the_schedule(void **state)
{
    (void)state;
    struct train_options o = small_options;
    o.schedule = SCHEDULE_COSINE;
    o.steps = 6;
    o.warmup_steps = 2;
    struct engine *e = open_engine("qwen2", NULL, &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    for (int step = 1; step <= o.steps; step++) {
        struct step_result r;
        ok(engine_step(e, d, &r));
        assert_true(r.lr == (double)schedule_lr(&o, step));
        assert_true(e->mem.pinned->state[NJ_STEP_UPDATES] == (float)step);
    }
    batches_close(d);
    engine_destroy(e);
}

static size_t planned(const struct model_config *student, const struct model_config *teacher,
                      const struct train_options *o)
{
    struct plan p;
    ok(plan_make(student, teacher, o, &p));
    return p.total_bytes;
}

/* Memory follows the sequences of this run, not the longest that the model could take, and not their square. */
static void plan_follows_the_sequences(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct model_config longer = qwen2;
    longer.max_positions = 32768;
    assert_int_equal(planned(&longer, NULL, &o), planned(&qwen2, NULL, &o));
    o.seq_len = 64;
    const size_t once = planned(&qwen3, NULL, &o);
    o.seq_len = 128;
    const size_t twice = planned(&qwen3, NULL, &o);
    o.seq_len = 256;
    const size_t four_times = planned(&qwen3, NULL, &o);
    assert_true(twice > once);
    assert_true(four_times - twice <= 2 * (twice - once) + 65536); /* alignment */
}

/* A teacher has weights, and room for one chunk's logits and for its own hidden rows; it has no gradients, moments or
 * master weights. */
static void teachers_pay_for_inference_only(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct plan p;
    ok(plan_make(&qwen2, &teacher_config, &o, &p));
    const size_t weights = (size_t)config_parameters(&teacher_config) * sizeof(float);
    const size_t rows = (size_t)(o.batch_size * o.seq_len) * sizeof(float);
    const size_t hidden = rows * (size_t)teacher_config.hidden_size;
    const size_t logits = (size_t)o.head_chunk * 64 * sizeof(float); /* 61 columns, padded */
    size_t own = 0;
    for (int i = 0; i < p.count; i++)
        if (strncmp(p.region[i].name, "teacher.", 8) == 0)
            own += p.region[i].bytes;
    assert_true(own >= weights + hidden + logits);
    assert_true(own < weights + hidden + logits + weights / 4);
    assert_true(p.total_bytes < planned(&qwen2, NULL, &o) + own + 65536);
}

static void plans_beyond_the_budget_are_refused(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct engine *e;
    o.memory_bytes = 4096;
    assert_int_equal(engine_create(ctx, path_of("qwen2"), NULL, &o, NULL, NULL, &e), NJ_E_NOMEM);
    assert_null(e);
    assert_non_null(strstr(fail_text(), "this run needs"));
}

static void steps_without_targets_change_nothing(void **state)
{
    (void)state;
    struct train_options o = small_options;
    char path[128];
    snprintf(path, sizeof path, "%s", path_of("nothing.bin"));
    write_tokens("nothing.bin", 7, true, 1);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)(256 + TOKENS) * 4, SEEK_SET), 0);
    for (int i = 0; i < TOKENS / 8 + 1; i++)
        fputc(0, f);
    assert_int_equal(fclose(f), 0);
    struct engine *e = open_engine("qwen2", "teacher", &o);
    struct batch_source *d = open_tokens("nothing.bin", &o, false);
    const size_t bytes = (size_t)e->student.p.count * sizeof(float);
    void *before = malloc(bytes);
    struct step_result r;
    assert_non_null(before);
    memcpy(before, e->mem.master, bytes);
    for (int step = 1; step <= 2; step++) {
        ok(engine_step(e, d, &r));
        assert_true(r.passed_over && isnan(r.loss) && isnan(r.grad_norm));
        assert_int_equal(r.valid_tokens, 0);
        assert_int_equal(r.empty, o.grad_accum);
        assert_true((float)r.lr == schedule_lr(&o, step));
        assert_int_equal(e->step, step);
    }
    assert_memory_equal(e->mem.master, before, bytes);
    free(before);
    batches_close(d);
    engine_destroy(e);
}

/* Losses do not depend on the loss scale of the gradient. */
static void infinite_gradients_are_refused(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct engine *e = open_engine("qwen2", "teacher", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    const size_t bytes = (size_t)e->student.p.count * sizeof(float);
    void *before = malloc(bytes);
    struct step_result r;
    assert_non_null(before);
    memcpy(before, e->mem.master, bytes);
    e->mem.state[NJ_STEP_LOSS_SCALE] = INFINITY;
    assert_int_equal(engine_step(e, d, &r), NJ_E_FORMAT);
    assert_true(isfinite(r.loss) && !isfinite(r.grad_norm));
    assert_non_null(strstr(r.nonfinite, "gradient of"));
    assert_memory_equal(before, e->mem.master, bytes);
    e->mem.state[NJ_STEP_LOSS_SCALE] = 1;
    ok(engine_step(e, d, &r)); /* nothing of the refused step is left */
    free(before);
    batches_close(d);
    engine_destroy(e);
}

static void same_run_same_bits(void **state)
{
    (void)state;
    size_t bytes;
    float *a = weights_after(&small_options, "masked.bin", 4, &bytes);
    float *b = weights_after(&small_options, "masked.bin", 4, &bytes);
    assert_memory_equal(a, b, bytes);
    free(a);
    free(b);
}

static void teachers_do_not_move(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct engine *e = open_engine("qwen2", "teacher", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    const size_t bytes = (size_t)e->teacher.net.p.count * sizeof(float);
    void *before = malloc(bytes);
    struct step_result r;
    assert_non_null(before);
    memcpy(before, e->teacher.weights, bytes);
    for (int i = 0; i < 3; i++)
        ok(engine_step(e, d, &r));
    assert_memory_equal(e->teacher.weights, before, bytes);
    free(before);
    batches_close(d);
    engine_destroy(e);
}

/* held.bin is made like tokens.bin, from another seed: the rule by which ids follow each other can be learnt. */
static void distilling_lowers_the_held_out_loss(void **state)
{
    (void)state;
    struct train_options o = small_options;
    o.kd_ratio = 0.1f; /* this teacher has not learnt the text */
    struct engine *e = open_engine("qwen2", "teacher", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    write_tokens("held.bin", 8, false, 1);
    struct batch_source *held = open_tokens("held.bin", &o, true);
    struct eval_result before, after;
    struct step_result r;
    ok(engine_eval(e, held, &before));
    for (int i = 0; i < 40; i++)
        ok(engine_step(e, d, &r));
    ok(engine_eval(e, held, &after));
    assert_true(after.ce_loss < before.ce_loss - 0.05);
    batches_close(d);
    batches_close(held);
    engine_destroy(e);
    o.kd_ratio = 1; /* with the teacher only, the student approaches it */
    e = open_engine("qwen2", "teacher", &o);
    d = open_tokens("tokens.bin", &o, false);
    ok(engine_step(e, d, &r));
    const double first = r.kd_loss;
    for (int i = 1; i < 40; i++)
        ok(engine_step(e, d, &r));
    assert_true(r.kd_loss < 0.7 * first);
    batches_close(d);
    engine_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_reaches_the_weights),
        cmocka_unit_test(rates_are_those_of_the_schedule),
        cmocka_unit_test(plan_follows_the_sequences),
        cmocka_unit_test(teachers_pay_for_inference_only),
        cmocka_unit_test(plans_beyond_the_budget_are_refused),
        cmocka_unit_test(steps_without_targets_change_nothing),
        cmocka_unit_test(infinite_gradients_are_refused),
        cmocka_unit_test(same_run_same_bits),
        cmocka_unit_test(teachers_do_not_move),
        cmocka_unit_test(distilling_lowers_the_held_out_loss),
    };
    return cmocka_run_group_tests_name("guards", tests, fixture_open, fixture_close);
}
