/* SPDX-License-Identifier: Apache-2.0
 *
 * test_optimizer_state.c: training with weights and moments in bfloat16: as good as float32 within the noise of
 * rounding, reproducible bit for bit, with a smaller plan; states of another kind are refused.
 */
#include "engine_fixture.h"

#include "base/float16.h"

#include <cblas.h>
#include <omp.h>
#include <sys/stat.h>
#include <unistd.h>

static struct train_options bf16_options(void)
{
    struct train_options o = small_options;
    o.optimizer_state = STATE_BF16;
    o.seed = 5;
    return o;
}

static void train_some(struct engine *e, struct batch_source *d, int steps,
                       struct step_result *last)
{
    for (int i = 0; i < steps; i++) {
        ok(engine_step(e, d, last));
        assert_string_equal(last->nonfinite, "");
    }
}

/* Train a new engine for some steps. */
static struct engine *trained(const char *student, const struct train_options *o, int steps,
                              struct step_result *last)
{
    struct engine *e = open_engine(student, "teacher", o);
    struct batch_source *d = open_tokens("tokens.bin", o, false);
    train_some(e, d, steps, last);
    batches_close(d);
    return e;
}

static bool same_weights(const struct engine *a, const struct engine *b)
{
    return memcmp(a->mem.master, b->mem.master, (size_t)engine_trained(a)->count * sizeof(float)) ==
           0;
}

static void assert_same_state(const struct engine *a, const struct engine *b)
{
    const size_t bytes = (size_t)engine_trained(a)->count * sizeof(uint16_t);
    assert_true(same_weights(a, b));
    assert_memory_equal(a->mem.m, b->mem.m, bytes);
    assert_memory_equal(a->mem.v, b->mem.v, bytes);
}

static void weights_of_a_16_bit_state_are_bfloat16(void **state)
{
    (void)state;
    const struct train_options o = bf16_options();
    struct step_result r;
    struct engine *e = trained("qwen3", &o, 1, &r);
    for (int64_t i = 0; i < e->student.p.count; i++)
        assert_true(f32_from_bf16(bf16_from_f32(e->mem.master[i])) == e->mem.master[i]);
    engine_destroy(e);
}

/* Return the mean distance of a weight from the next bfloat16 number. */
static double mean_unit(const struct engine *e)
{
    const int64_t n = e->student.p.count;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (e->mem.master[i] != 0)
            sum += ldexp(1, ilogbf(e->mem.master[i]) - 7) / (double)n;
    return sum;
}

/* An update of size lr is taken as a whole unit u with probability lr / u, so k of them spread a weight by at most
 * sqrt(k lr u), and the loss, to first order, by the norm of its gradient times that. The bound is five times that. The
 * noise of the second moments lengthens steps by 1 % (docs/objective.md). */
static void the_loss_with_a_16_bit_state_is_close_to_float32(void **state)
{
    (void)state;
    enum { STEPS = 60, SEEDS = 4 };
    struct train_options o = small_options;
    struct step_result first, want, got;
    o.lr = 1e-3f;
    engine_destroy(trained("qwen2", &o, 1, &first));
    struct engine *e = trained("qwen2", &o, STEPS, &want);
    const double spread = sqrt(STEPS * (double)o.lr * mean_unit(e)), way = first.loss - want.loss;
    const double bound = 5 * want.grad_norm * spread + 0.01 * way;
    engine_destroy(e);
    assert_true(bound < 0.1 * way);
    o.optimizer_state = STATE_BF16;
    for (int k = 0; k < SEEDS; k++) {
        o.seed = (uint64_t)k;
        engine_destroy(trained("qwen2", &o, STEPS, &got));
        if (!(fabs(got.loss - want.loss) <= bound))
            fail_msg("loss %.6g, in float32 %.6g, bound %.3g", got.loss, want.loss, bound);
    }
}

static void bits_repeat_on_any_threads(void **state)
{
    (void)state;
    struct train_options o = bf16_options();
    struct step_result r;
    const int threads = omp_get_max_threads();
    struct engine *e = trained("qwen2", &o, 5, &r), *f;
    for (int k = 1; k <= 3; k += 2) {
        omp_set_num_threads(k);
        f = trained("qwen2", &o, 5, &r);
        assert_same_state(e, f);
        engine_destroy(f);
    }
    omp_set_num_threads(threads);
    o.seed++;
    f = trained("qwen2", &o, 5, &r);
    assert_false(same_weights(e, f));
    engine_destroy(e);
    engine_destroy(f);
}

static void check_resume(const struct train_options *o, const char *dir)
{
    struct engine *e = open_engine("qwen2", "teacher", o), *f;
    struct batch_source *d = open_tokens("tokens.bin", o, false);
    struct data_state at;
    struct step_result r, s;
    int64_t step = 0;
    train_some(e, d, 4, &r);
    batches_tell(d, &at);
    assert_int_equal(mkdir(path_of(dir), 0700), 0);
    ok(engine_save_state(e, path_of(dir), 4, &at));
    train_some(e, d, 5, &r);

    f = open_engine("qwen2", "teacher", o);
    ok(engine_load_state(f, path_of(dir), &step, &at));
    assert_int_equal(step, 4);
    batches_seek(d, &at);
    train_some(f, d, 5, &s);
    assert_true(r.loss == s.loss && r.grad_norm == s.grad_norm);
    assert_same_state(e, f);
    batches_close(d);
    engine_destroy(e);
    engine_destroy(f);
}

static struct train_options with_adapters(struct train_options o)
{
    o.lora = (struct lora_config){.rank = 4, .alpha = 8, .dropout = 0.1};
    ok(lora_targets_add(&o.lora, "all-linear"));
    return o;
}

static void resuming_continues_bit_for_bit(void **state)
{
    (void)state;
    const struct train_options o = bf16_options(), l = with_adapters(o);
    check_resume(&o, "state");
    check_resume(&l, "state-adapters");
}

static void another_state_is_refused(void **state)
{
    (void)state;
    static const char *const says[] = {"--optimizer-state f32; resume with the same",
                                       "--optimizer-state bf16; resume with the same"};
    struct data_state at = {0};
    int64_t step;
    struct engine *e[2];
    for (int k = 0; k < 2; k++) {
        struct train_options o = small_options;
        o.optimizer_state = k;
        e[k] = open_engine("qwen2", NULL, &o);
        assert_int_equal(mkdir(path_of(k ? "kept1" : "kept0"), 0700), 0);
        ok(engine_save_state(e[k], path_of(k ? "kept1" : "kept0"), 1, &at));
    }
    for (int k = 0; k < 2; k++) {
        const char *dir = path_of(k ? "kept1" : "kept0");
        assert_int_equal(engine_load_state(e[!k], dir, &step, &at), NJ_E_ARG);
        if (!strstr(fail_text(), says[k]))
            fail_msg("%s", fail_text());
    }
    engine_destroy(e[0]);
    engine_destroy(e[1]);
}

/* The adapters are equal bit for bit, and training continues from them. */
static void saved_adapters_load_again(void **state)
{
    (void)state;
    struct train_options o = with_adapters(bf16_options());
    struct step_result r;
    struct engine *e = trained("qwen2", &o, 6, &r), *f;
    assert_int_equal(mkdir(path_of("adapters"), 0700), 0);
    ok(engine_save_model(e, path_of("adapters")));
    char *dir = strdup(path_of("adapters"));
    o.adapter_dir = dir;
    f = open_engine("qwen2", "teacher", &o);
    assert_true(same_weights(e, f));
    free(dir);
    engine_destroy(e);
    engine_destroy(f);
}

static size_t bytes_of(const struct plan *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->region[i].name, name) == 0)
            return p->region[i].bytes;
    return 0;
}

/* Elements of an arena are aligned to 256 bytes whatever their size; apart from that, regions halve. */
static void the_plan_of_a_16_bit_state_is_smaller(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct train_options o = small_options;
        struct plan f32, bf16;
        o.dtype = k % 2 ? NJ_LP : NJ_F32;
        if (k / 2)
            o = with_adapters(o);
        const char *owner = k / 2 ? "adapters" : "student";
        char name[32];
        ok(plan_make(&qwen3, &teacher_config, &o, &f32));
        o.optimizer_state = STATE_BF16;
        ok(plan_make(&qwen3, &teacher_config, &o, &bf16));
        size_t saved = 0;
        for (int m = 1; m <= 2; m++) {
            snprintf(name, sizeof name, "%s.moment%d", owner, m);
            assert_true(bytes_of(&f32, name) >= 2 * bytes_of(&bf16, name) - 512);
            saved += bytes_of(&f32, name) - bytes_of(&bf16, name);
        }
        snprintf(name, sizeof name, "%s.master", owner);
        assert_true((bytes_of(&f32, name) > 0) == (o.dtype == NJ_LP));
        assert_int_equal(bytes_of(&bf16, name), 0);
        saved += bytes_of(&f32, name);
        assert_int_equal(f32.total_bytes - bf16.total_bytes, saved);
    }
}

/* Restart as on an old processor, on which the bits of OpenBLAS's sums depend on how it divides a GEMM; OpenBLAS
 * detects the processor at start-up. This works on x86 only. */
static void run_as_on_prescott(char **argv)
{
#ifdef __x86_64__
    const char *type = getenv("OPENBLAS_CORETYPE");
    if ((!type || strcmp(type, "PRESCOTT")) && setenv("OPENBLAS_CORETYPE", "PRESCOTT", 1) == 0)
        execv("/proc/self/exe", argv);
    if (strcmp(openblas_get_corename(), "Prescott") != 0)
        fprintf(stderr, "OpenBLAS takes this processor for %s\n", openblas_get_corename()), exit(1);
#else
    (void)argv;
#endif
}

int main(int argc, char **argv)
{
    (void)argc;
    run_as_on_prescott(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_a_16_bit_state_are_bfloat16),
        cmocka_unit_test(the_loss_with_a_16_bit_state_is_close_to_float32),
        cmocka_unit_test(bits_repeat_on_any_threads),
        cmocka_unit_test(resuming_continues_bit_for_bit),
        cmocka_unit_test(another_state_is_refused),
        cmocka_unit_test(saved_adapters_load_again),
        cmocka_unit_test(the_plan_of_a_16_bit_state_is_smaller),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
