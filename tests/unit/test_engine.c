/* SPDX-License-Identifier: Apache-2.0
 *
 * test_engine.c: guarantees of a training step, an evaluation, generation and a saved state.
 */
#include "engine_fixture.h"

#include "engine/engine.h"
#include "formats/safetensors.h"
#include "net/forward.h"

#include <sys/stat.h>
#include <unistd.h>

static void step_ok(struct engine *e, struct batch_source *d, struct step_result *r)
{
    ok(engine_step(e, d, r));
    assert_string_equal(r->nonfinite, "");
}

static float *copy_of(const float *x, int64_t n)
{
    float *out = malloc((size_t)n * sizeof *out);
    assert_non_null(out);
    memcpy(out, x, (size_t)n * sizeof *out);
    return out;
}

/* Train for two passes over the data. */
static double train_some(struct engine *e, struct batch_source *d, int steps,
                         struct step_result *last)
{
    double first = 0;
    for (int i = 0; i < steps; i++) {
        step_ok(e, d, last);
        if (i == 0)
            first = last->loss;
    }
    return first;
}

static void loss_falls(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct engine *e = open_engine("qwen2", "teacher", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    struct step_result r;
    double first = train_some(e, d, 20, &r);
    assert_true(r.loss < first - 0.3);
    assert_true(r.grad_norm > 0 && isfinite(r.grad_norm));
    batches_close(d);
    engine_destroy(e);
}

static void loss_is_its_parts(void **state)
{
    (void)state;
    static const float betas[] = {0, 0.3f, 1, 0};
    double kd[4];
    for (int k = 0; k < 4; k++) {
        struct train_options o = small_options;
        o.kd_ratio = 0.3f;
        o.temperature = 3.0f;
        o.beta = betas[k];
        o.objective = k == 3 ? OBJECTIVE_TVD : OBJECTIVE_KL;
        struct engine *e = open_engine("qwen3", "teacher", &o);
        struct batch_source *d = open_tokens("masked.bin", &o, false);
        struct step_result r;
        step_ok(e, d, &r);
        double ratio = (double)o.kd_ratio, want = (1 - ratio) * r.ce_loss + ratio * 9 * r.kd_loss;
        kd[k] = r.kd_loss;
        assert_true(fabs(r.loss - want) < 1e-9);
        assert_true(r.kd_loss > 1e-5);
        assert_true(r.ce_loss > 3.0 && r.ce_loss < 5.5); /* log 61 = 4.1 */
        assert_true(r.teacher_entropy > 3.0 && r.teacher_entropy < 4.2);
        assert_true(r.valid_tokens > 0 && r.valid_tokens < r.tokens);
        batches_close(d);
        engine_destroy(e);
    }
    /* the mixture lies between the two */
    assert_true(kd[1] < 0.3 * kd[0] && kd[1] < 0.7 * kd[2]);
    assert_true(kd[2] != kd[0]);
    assert_true(kd[3] > kd[0] && kd[3] < sqrt(kd[0] / 2)); /* Pinsker's inequality */
}

static void every_tensor_moves(void **state)
{
    (void)state;
    const char *const models[] = {"qwen2", "qwen3", "teacher"};
    struct train_options o = small_options;
    o.weight_decay = 0; /* decay would move parameters without a gradient, too */
    for (int k = 0; k < 3; k++) {
        struct engine *e = open_engine(models[k], NULL, &o);
        struct batch_source *d = open_tokens("tokens.bin", &o, false);
        const struct params *p = &e->student.p;
        float *before = copy_of(e->mem.master, p->count);
        struct step_result r;
        step_ok(e, d, &r);
        for (size_t i = 0; i < p->specs; i++)
            if (memcmp(before + p->first[i], e->mem.master + p->first[i],
                       (size_t)tensor_elements(&p->spec[i]) * sizeof(float)) == 0)
                fail_msg("%s: %s did not move", models[k], p->spec[i].name);
        free(before);
        batches_close(d);
        engine_destroy(e);
    }
}

static void padding_stays_zero(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct engine *e = open_engine("qwen2", "teacher", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    struct step_result r;
    train_some(e, d, 3, &r);
    int64_t checked = 0;
    for (int64_t i = 0; i < e->student.p.count; i++) {
        if (strcmp(params_name_at(&e->student.p, i), "padding") != 0)
            continue;
        assert_true(e->mem.master[i] == 0.0f && ((float *)e->mem.m)[i] == 0.0f);
        checked++;
    }
    assert_int_equal(checked,
                     /* the padding of three norms and of the embedding */
                     3 * (128 - 72) + (4416 - VOCAB * 72));
    batches_close(d);
    engine_destroy(e);
}

/* Return the weights after training with a split of the batch. eps is large, so that an update does not amplify the
 * rounding of gradients near zero. */
static float *weights_of_split(int batch, int accum, const char *tokens, double *loss, int64_t *n)
{
    struct train_options o = small_options;
    o.batch_size = batch;
    o.grad_accum = accum;
    o.eps = 1e-2f;
    struct engine *e = open_engine("qwen2", "teacher", &o);
    struct batch_source *d = open_tokens(tokens, &o, false);
    struct step_result r;
    train_some(e, d, 3, &r);
    *loss = r.loss;
    *n = e->student.p.count;
    float *w = copy_of(e->mem.master, *n);
    batches_close(d);
    engine_destroy(e);
    return w;
}

static double farthest(const float *a, const float *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double apart = fabs((double)a[i] - (double)b[i]);
        if (!(apart <= worst))
            worst = apart;
    }
    return worst;
}

static void splitting_changes_nothing(void **state)
{
    (void)state;
    double loss[3];
    int64_t n;
    float *w[3];
    for (int i = 0; i < 3; i++)
        w[i] = weights_of_split(4 >> i, 1 << i, "masked.bin", &loss[i], &n);
    for (int i = 1; i < 3; i++) {
        assert_true(fabs(loss[i] - loss[0]) < 1e-5);
        assert_true(farthest(w[i], w[0], n) < 1e-5);
    }
    for (int i = 0; i < 3; i++)
        free(w[i]);
}

/* The files differ in one token, which is only a target; in the masked pair that target is ignored. */
static void ignored_rows_do_nothing(void **state)
{
    (void)state;
    const char *const pair[2][2] = {{"masked.bin", "masked_other.bin"},
                                    {"tokens.bin", "other.bin"}};
    for (int k = 0; k < 2; k++) {
        double loss[2];
        int64_t n;
        float *a = weights_of_split(4, 1, pair[k][0], &loss[0], &n);
        float *b = weights_of_split(4, 1, pair[k][1], &loss[1], &n);
        bool same = memcmp(a, b, (size_t)n * sizeof *a) == 0 && loss[0] == loss[1];
        assert_int_equal(same, k == 0);
        free(a);
        free(b);
    }
}

static void same_model_has_no_divergence(void **state)
{
    (void)state;
    static const float betas[] = {0, 0.5f, 1, 0};
    for (int k = 0; k < 4; k++) {
        struct train_options o = small_options;
        o.beta = betas[k];
        o.objective = k == 3 ? OBJECTIVE_TVD : OBJECTIVE_KL;
        struct engine *e = open_engine("qwen3", "qwen3", &o);
        struct batch_source *d = open_tokens("tokens.bin", &o, false);
        struct step_result r;
        assert_true(engine_student_hash(e) == engine_teacher_hash(e));
        step_ok(e, d, &r);
        assert_true(fabs(r.kd_loss) < 1e-6);
        assert_true(r.agreement == 1.0);
        batches_close(d);
        engine_destroy(e);
    }
}

static void resuming_continues_bit_for_bit(void **state)
{
    (void)state;
    struct train_options o = small_options;
    o.schedule = SCHEDULE_COSINE; /* the learning rate differs from step to step */
    struct engine *e = open_engine("qwen2", "teacher", &o), *f;
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    struct data_state at;
    struct step_result r, s;
    int64_t step = 0;
    train_some(e, d, 5, &r);
    batches_tell(d, &at);
    assert_int_equal(mkdir(path_of("state"), 0700), 0);
    ok(engine_save_state(e, path_of("state"), 5, &at));
    train_some(e, d, 4, &r);

    f = open_engine("qwen2", "teacher", &o);
    memset(&at, 0, sizeof at);
    ok(engine_load_state(f, path_of("state"), &step, &at));
    assert_int_equal(step, 5);
    batches_seek(d, &at);
    train_some(f, d, 4, &s);
    assert_true(r.loss == s.loss && r.grad_norm == s.grad_norm && r.lr == s.lr);
    size_t bytes = (size_t)e->student.p.count * sizeof(float);
    assert_memory_equal(e->mem.master, f->mem.master, bytes);
    assert_memory_equal(e->mem.m, f->mem.m, bytes);
    assert_memory_equal(e->mem.v, f->mem.v, bytes);
    batches_close(d);
    engine_destroy(e);
    engine_destroy(f);
}

/* A bit is changed in each part of the file, and the file is cut short. */
static void damaged_states_are_refused(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct engine *e = open_engine("qwen2", NULL, &o);
    struct data_state at = {0};
    int64_t step;
    assert_int_equal(mkdir(path_of("damaged"), 0700), 0);
    char *path = strdup(path_of("damaged/state.bin"));
    for (int k = 0; k < 5; k++) {
        ok(engine_save_state(e, path_of("damaged"), 0, &at));
        FILE *f = fopen(path, "r+b");
        assert_non_null(f);
        fseek(f, 0, SEEK_END);
        long size = ftell(f);
        if (k == 4) {
            assert_int_equal(ftruncate(fileno(f), size - 1), 0);
        } else {
            fseek(f, k == 0 ? 40 : size / 3 * k - 8, SEEK_SET);
            int byte = fgetc(f);
            fseek(f, -1, SEEK_CUR);
            fputc(byte ^ 4, f);
        }
        assert_int_equal(fclose(f), 0);
        assert_int_equal(engine_load_state(e, path_of("damaged"), &step, &at), NJ_E_FORMAT);
        assert_non_null(strstr(fail_text(), "state.bin"));
    }
    free(path);
    engine_destroy(e);
}

static void saved_model_opens_again(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct engine *e = open_engine("qwen3", NULL, &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    struct step_result r;
    train_some(e, d, 2, &r);
    assert_int_equal(mkdir(path_of("saved"), 0700), 0);
    ok(engine_save_model(e, path_of("saved")));
    struct engine *f = open_engine("saved", NULL, &o);
    size_t bytes = (size_t)e->student.p.count * sizeof(float);
    assert_memory_equal(e->mem.master, f->mem.master, bytes);
    batches_close(d);
    engine_destroy(e);
    engine_destroy(f);
}

static void broken_weights_are_named_and_kept(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct engine *e = open_engine("qwen2", "teacher", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false);
    struct step_result r;
    step_ok(e, d, &r);
    e->mem.master[e->student.p.layer[0][ROLE_DOWN_WEIGHT] + 5] = NAN;
    float *before = copy_of(e->mem.master, e->student.p.count);
    assert_int_equal(engine_step(e, d, &r), NJ_E_FORMAT);
    assert_non_null(strstr(r.nonfinite, "model.layers.0.mlp.down_proj.weight"));
    assert_memory_equal(before, e->mem.master, (size_t)e->student.p.count * sizeof(float));
    e->mem.master[e->student.p.layer[0][ROLE_DOWN_WEIGHT] + 5] = 0.01f;
    step_ok(e, d, &r); /* nothing of the failed step is left */
    free(before);
    batches_close(d);
    engine_destroy(e);
}

static void an_evaluation_repeats_its_numbers(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct engine *e = open_engine("qwen2", "teacher", &o);
    struct batch_source *d = open_tokens("masked.bin", &o, true);
    struct eval_result a, b, c;
    ok(engine_eval(e, d, &a));
    ok(engine_eval(e, d, &b));
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(fabs(a.perplexity - exp(a.ce_loss)) < 1e-9);
    o.steps = 0; /* the same without gradients */
    struct engine *f = open_engine("qwen2", "teacher", &o);
    ok(engine_eval(f, d, &c));
    assert_true(a.loss == c.loss && a.valid_tokens == c.valid_tokens);
    batches_close(d);
    engine_destroy(e);
    engine_destroy(f);
}

/* One batch holds all tokens, so that the values from which the percentiles come are still available. */
static void evaluation_compares_tokens(void **state)
{
    (void)state;
    struct train_options o = small_options;
    o.steps = 0;
    o.batch_size = 12;
    struct engine *e = open_engine("qwen2", "qwen3", &o), *alone = open_engine("qwen3", NULL, &o);
    struct batch_source *d = open_tokens("masked.bin", &o, true);
    struct eval_result r, teacher;
    ok(engine_eval(e, d, &r));
    ok(engine_eval(alone, d, &teacher));
    assert_true(fabs(r.teacher_ce_loss - teacher.ce_loss) < 1e-5);
    assert_true(fabs(r.teacher_perplexity - teacher.perplexity) < 1e-3);

    const double got[] = {r.kd_p50, r.kd_p90, r.kd_p99, r.kd_max};
    const int share[] = {50, 90, 99, 100};
    const int64_t n = r.valid_tokens;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)e->mem.token_kd[i];
    assert_true(n > 100 && fabs(sum / (double)n - r.kd_loss) < 1e-6);
    for (int k = 0; k < 4; k++) {
        int64_t below = 0, upto = 0;
        for (int64_t i = 0; i < n; i++) {
            below += (double)e->mem.token_kd[i] < got[k];
            upto += (double)e->mem.token_kd[i] <= got[k];
        }
        assert_true(100 * upto >= share[k] * n && 100 * below < share[k] * n);
    }
    batches_close(d);
    engine_destroy(e);
    engine_destroy(alone);
}

/* Acceptance is 1 minus the TVD that the objective measures at temperature 1; the other results are unchanged. */
static void acceptance_is_one_minus_the_distance(void **state)
{
    (void)state;
    static const char *const students[] = {"qwen2", "qwen3"};
    struct train_options plain = small_options;
    plain.steps = 0;
    plain.temperature = 1;
    struct train_options o = plain, tvd = plain;
    o.acceptance = 1;
    tvd.objective = OBJECTIVE_TVD;
    for (int k = 0; k < 2; k++) {
        struct engine *e = open_engine(students[k], "qwen3", &o);
        struct engine *f = open_engine(students[k], "qwen3", &plain);
        struct engine *g = open_engine(students[k], "qwen3", &tvd);
        struct batch_source *d = open_tokens("masked.bin", &o, true);
        struct eval_result got, want, distance;
        ok(engine_eval(e, d, &got));
        ok(engine_eval(f, d, &want));
        ok(engine_eval(g, d, &distance));
        assert_true(got.acceptance == 1 - distance.kd_loss && want.acceptance == 0);
        assert_true(k == 0 ? got.acceptance > 0.1 && got.acceptance < 0.99 : got.acceptance == 1);
        got.acceptance = 0;
        assert_memory_equal(&got, &want, sizeof got);
        batches_close(d);
        engine_destroy(e);
        engine_destroy(f);
        engine_destroy(g);
    }
}

/* Values that are computed again have the bits of the kept ones, so training is bitwise identical, with less memory. */
static void recomputing_changes_nothing(void **state)
{
    (void)state;
    const char *const models[] = {"qwen2", "qwen3"};
    const int rank[] = {0, 4};
    for (int k = 0; k < 4; k++) {
        float *want = NULL;
        size_t bytes = SIZE_MAX;
        for (int level = RECOMPUTE_NONE; level <= RECOMPUTE_BLOCK; level++) {
            struct train_options o = small_options;
            o.recompute = level;
            o.lora = (struct lora_config){.rank = rank[k / 2], .alpha = 8, .dropout = 0.1};
            ok(lora_targets_add(&o.lora, "all-linear"));
            struct engine *e = open_engine(models[k % 2], "teacher", &o);
            struct batch_source *d = open_tokens("tokens.bin", &o, false);
            struct step_result r;
            train_some(e, d, 3, &r);
            int64_t n = engine_trained(e)->count;
            if (want)
                assert_memory_equal(want, e->mem.master, (size_t)n * sizeof *want);
            else
                want = copy_of(e->mem.master, n);
            struct carve c = {0};
            struct acts a;
            acts_carve(&e->student, o.batch_size, o.seq_len, ACTS_TRAIN, &c, &a);
            assert_true(c.used < bytes || e->student.c.layers == 1);
            bytes = c.used;
            batches_close(d);
            engine_destroy(e);
        }
        free(want);
    }
}

static size_t arena_used(struct engine *e, const struct plan *p)
{
    struct plan again = {0};
    struct memory m;
    plan_layout(&e->student, &e->teacher, &e->o, (struct carve){.base = e->device}, e->host, &m,
                &again);
    assert_int_equal(again.total_bytes, p->total_bytes);
    return again.total_bytes;
}

/* The sum of the regions equals the total and the bytes carved; the last array ends at the end of the arena. */
static void plan_is_what_is_used(void **state)
{
    (void)state;
    struct train_options o = small_options;
    for (int k = 0; k < 2; k++) {
        o.steps = k == 0 ? 40 : 0;
        struct plan plan;
        ok(plan_make(&qwen3, &teacher_config, &o, &plan));
        struct engine *e = open_engine("qwen3", "teacher", &o);
        size_t sum = 0, host = 0;
        for (int i = 0; i < plan.count; i++)
            *(plan.region[i].place == PLAN_HOST ? &host : &sum) += plan.region[i].bytes;
        assert_int_equal(sum, plan.total_bytes);
        assert_int_equal(host, plan.host_bytes);
        assert_int_equal(arena_used(e, &plan), plan.total_bytes);
        char *end = (char *)e->device + plan.total_bytes;
        char *last = (char *)e->teacher.net.inv_freq + 64 / 2 * sizeof(float);
        assert_true(last <= end && end - last < 256);
        char *host_end = (char *)e->host + plan.host_bytes;
        assert_true(e->mem.transfer + e->mem.transfer_bytes == host_end);
        engine_destroy(e);
    }
}

static void models_that_do_not_fit_each_other_are_refused(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct engine *e;
    struct model_config c = teacher_config;
    c.vocab_size = 400;
    ok(init_model(path_of("wide"), &c, 4, NJ_TYPE_F32, 1 << 30, NULL));
    assert_int_equal(engine_create(ctx, path_of("qwen2"), path_of("wide"), &o, NULL, NULL, &e),
                     NJ_E_UNSUPPORTED);
    assert_null(e);
    assert_non_null(strstr(fail_text(), "400"));
    o.seq_len = 4096;
    assert_int_equal(engine_create(ctx, path_of("qwen2"), NULL, &o, NULL, NULL, &e), NJ_E_ARG);
    o = small_options;
    o.grad_accum = 0;
    assert_int_equal(engine_create(ctx, path_of("qwen2"), NULL, &o, NULL, NULL, &e), NJ_E_ARG);
    ok(config_write(path_of("wide"), &qwen2, "float32"));
    o = small_options;
    assert_int_not_equal(engine_create(ctx, path_of("wide"), NULL, &o, NULL, NULL, &e), 0);
    assert_non_null(strstr(fail_text(), "model."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_falls),
        cmocka_unit_test(loss_is_its_parts),
        cmocka_unit_test(every_tensor_moves),
        cmocka_unit_test(padding_stays_zero),
        cmocka_unit_test(splitting_changes_nothing),
        cmocka_unit_test(ignored_rows_do_nothing),
        cmocka_unit_test(same_model_has_no_divergence),
        cmocka_unit_test(resuming_continues_bit_for_bit),
        cmocka_unit_test(damaged_states_are_refused),
        cmocka_unit_test(saved_model_opens_again),
        cmocka_unit_test(broken_weights_are_named_and_kept),
        cmocka_unit_test(an_evaluation_repeats_its_numbers),
        cmocka_unit_test(evaluation_compares_tokens),
        cmocka_unit_test(acceptance_is_one_minus_the_distance),
        cmocka_unit_test(recomputing_changes_nothing),
        cmocka_unit_test(plan_is_what_is_used),
        cmocka_unit_test(models_that_do_not_fit_each_other_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
