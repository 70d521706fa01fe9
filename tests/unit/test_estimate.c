/* SPDX-License-Identifier: Apache-2.0
 *
 * test_estimate.c: the estimated time of a step, compared with every measured step (docs/performance.md and
 * docs/quantized-teachers.md have the measurements). If this fails, `nojit plan --gpu` predicts a speed that the same
 * shapes did not have. ROWS=1 prints the rows of docs/planning.md.
 */
#include "engine/engine.h"
#include "model/init.h"
#include "net/lora.h"
#include "net/net.h"
#include "run/estimate.h"
#include "run/teacher_types.h"
#include "state/plan_layout.h"
#include "unit.h"

#include <math.h>

enum {
    T8 = 1,
    S8 = 2,
    Q4 = 4,
    BLOCK = 8
}; /* FP8 teacher, FP8 student, Q4_K teacher, --recompute block */

struct measured {
    const char *gpu, *teacher, *student;
    int batch, seq_len, accum, kind;
    double ms;
};

static const struct measured steps[] = {
    {"h200", "qwen2.5-1.5b", "qwen2.5-0.5b", 8, 1024, 1, 0, 97.0},
    {"h200", "qwen2.5-1.5b", "qwen2.5-0.5b", 8, 2048, 1, 0, 199.2},
    {"h200", "qwen2.5-1.5b", "qwen2.5-0.5b", 4, 4096, 1, 0, 217.2},
    {"h200", "qwen2.5-1.5b", "qwen2.5-0.5b", 4, 512, 1, 0, 28.3},
    {"h200", "qwen2.5-1.5b", "qwen2.5-0.5b", 1, 512, 1, 0, 13.8},
    {"h200", "qwen2.5-1.5b", "qwen2.5-0.5b", 8, 1024, 1, T8, 83.8},
    {"h200", "qwen2.5-1.5b", "qwen2.5-0.5b", 8, 2048, 1, T8, 169.3},
    {"h200", "qwen2.5-1.5b", "qwen2.5-0.5b", 4, 4096, 1, T8, 188.3},
    {"h200", "qwen2.5-1.5b", "qwen2.5-0.5b", 4, 512, 1, T8, 25.1},
    {"h200", "qwen2.5-1.5b", "qwen2.5-0.5b", 1, 512, 1, T8, 13.5},
    {"h200", "qwen2.5-1.5b", "qwen2.5-0.5b", 8, 1024, 1, T8 | S8, 70.9},
    {"h200", "qwen2.5-1.5b", "qwen2.5-0.5b", 8, 2048, 1, T8 | S8, 146.6},
    {"h200", NULL, "qwen2.5-0.5b", 8, 1024, 1, 0, 53.3},
    {"h200", NULL, "qwen2.5-0.5b", 8, 1024, 1, S8, 44.4},
    {"h200", "qwen3-1.7b", "qwen3-0.6b", 8, 1024, 1, 0, 118.5},
    {"h200", "llama-3.2-3b", "llama-3.2-1b", 4, 1024, 1, 0, 106.9},
    {"h200", "llama-3.2-3b", "llama-3.2-1b", 4, 1024, 1, T8 | S8, 73.5},
    {"h200", "llama-3.1-8b", "llama-3.2-1b", 4, 1024, 1, BLOCK, 171.7},
    {"h200", "llama-3.1-8b", "llama-3.2-1b", 4, 1024, 1, T8 | BLOCK, 130.2},
    {"h200", "llama-3.1-8b", "llama-3.2-1b", 4, 1024, 1, T8 | S8 | BLOCK, 110.8},
    {"h200", "qwen2.5-7b", "qwen2.5-0.5b", 8, 1024, 1, 0, 239.9},
    {"h200", "qwen3-30b-a3b", "qwen3-0.6b", 8, 1024, 1, 0, 180.5},
    {"h100", "gemma-3-4b", "gemma-3-1b", 4, 1024, 1, 0, 113.0},
    {"h100", "olmo-2-7b", "olmo-2-1b", 4, 1024, 1, 0, 165.6},
    {"h100", "qwen2.5-1.5b", "qwen2.5-0.5b", 8, 1024, 1, 0, 99.6},
    {"h100", "qwen2.5-1.5b", "qwen2.5-0.5b", 8, 1024, 1, T8, 85.4},
    {"h100", "qwen2.5-1.5b", "qwen2.5-0.5b", 8, 1024, 1, T8 | S8, 76.2},
    {"h100", "qwen2.5-1.5b", "qwen2.5-0.5b", 4, 1000, 1, 0, 53.3},
    {"h100", "qwen2.5-1.5b", "qwen2.5-0.5b", 1, 8192, 1, 0, 133.9},
    {"h100", "qwen2.5-1.5b", "qwen2.5-0.5b", 1, 32768, 1, 0, 955.1},
    {"h100", "qwen2.5-1.5b", "qwen2.5-0.5b", 1, 8192, 1, T8 | S8, 109.1},
    {"h100", "llama-3.2-3b", "llama-3.2-1b", 4, 1024, 1, 0, 111.5},
    {"h100", "llama-3.2-3b", "llama-3.2-1b", 4, 1024, 1, T8 | S8, 78.4},
    {"h100", NULL, "qwen2.5-0.5b", 8, 1024, 1, 0, 55.3},
    {"h100", "qwen2.5-7b", "qwen2.5-0.5b", 8, 1024, 1, 0, 240.8},
    {"h100", "qwen2.5-7b", "qwen2.5-0.5b", 8, 1024, 1, Q4, 248.3},
    {"h100", "qwen2.5-7b", "qwen2.5-0.5b", 2, 1024, 8, 0, 501.6},
    {"h100", "qwen2.5-7b", "qwen2.5-0.5b", 2, 1024, 8, Q4, 516.7},
    {"h100", "qwen2.5-7b", "qwen2.5-0.5b", 1, 1024, 8, 0, 274.8},
    {"h100", "qwen2.5-7b", "qwen2.5-0.5b", 1, 1024, 8, Q4, 289.5},
};
enum { STEPS = sizeof steps / sizeof steps[0] };

/* Return the configuration of a preset until the call after the next; NULL: of none. */
static const struct model_config *shape(const char *name)
{
    static struct model_config config[2];
    static int last;
    if (name == NULL)
        return NULL;
    last = !last;
    check_ok(preset_config(preset_find(name), &config[last]), name);
    return &config[last];
}

static struct train_options options_of(const struct measured *m)
{
    return (struct train_options){.batch_size = m->batch,
                                  .seq_len = m->seq_len,
                                  .grad_accum = m->accum,
                                  .steps = 1,
                                  .dtype = NJ_LP,
                                  .teacher_fp8 = (m->kind & T8) != 0,
                                  .student_fp8 = m->kind & S8 ? STUDENT_FP8_LEAST : 0,
                                  .f8_scales = NJ_F8_ROWS,
                                  .recompute = m->kind & BLOCK ? RECOMPUTE_BLOCK : RECOMPUTE_NONE};
}

/* Return the milliseconds that are estimated for a step that was measured. */
static double estimated(const struct measured *m, struct estimate *e)
{
    struct train_options o = options_of(m);
    unsigned char *types = NULL;
    struct plan p;
    if (m->kind & Q4)
        check_ok(teacher_types_as(shape(m->teacher), TEACHER_Q4_K, &types), "types");
    o.teacher_types = types;
    check_ok(plan_make(shape(m->student), shape(m->teacher), &o, &p), "plan");
    *e = estimate_step(gpu_named(m->gpu), o.dtype, &p.work);
    free(types);
    return e->seconds * 1e3;
}

static void every_measured_step_is_within_its_range(void **state)
{
    (void)state;
    double worst = 0, sum = 0;
    for (int i = 0; i < STEPS; i++) {
        struct estimate e;
        const struct measured *m = &steps[i];
        const double ms = estimated(m, &e), error = ms / m->ms - 1;
        if (getenv("ROWS") != NULL)
            printf("| %s | %s -> %s | %d x %d x %d | %s%s%s%s | %.1f | %.1f | %+.1f %% |\n", m->gpu,
                   m->teacher != NULL ? m->teacher : "", m->student, m->batch, m->seq_len, m->accum,
                   m->kind & T8 ? " FP8 teacher" : "", m->kind & S8 ? " FP8 student" : "",
                   m->kind & Q4 ? " Q4_K teacher" : "", m->kind & BLOCK ? " recompute" : "", m->ms,
                   ms, 100 * error);
        if (e.low * 1e3 > m->ms || e.high * 1e3 < m->ms)
            fail_msg("%s %s %d x %d: %.1f ms were measured, %.1f to %.1f estimated", m->gpu,
                     m->student, m->batch, m->seq_len, m->ms, e.low * 1e3, e.high * 1e3);
        worst = fmax(worst, fabs(error));
        sum += error;
    }
    assert_true(worst < 0.082);            /* as docs/planning.md says */
    assert_true(fabs(sum / STEPS) < 0.02); /* no bias towards fast or slow */
}

/* Options change the estimate as they change the work. */
static void options_change_the_estimate(void **state)
{
    (void)state;
    struct estimate plain, other;
    struct measured m = {"rtx4090", "qwen2.5-1.5b", "qwen2.5-0.5b", 4, 1024, 2, 0, 0};
    estimated(&m, &plain);
    m.kind = BLOCK;
    estimated(&m, &other);
    assert_true(other.seconds > 1.05 * plain.seconds);
    m.kind = T8;
    estimated(&m, &other);
    assert_true(other.seconds < 0.9 * plain.seconds);
    m.kind = 0;
    m.gpu = "t4"; /* a GPU without an FP8 peak, which 16 bits do not need */
    estimated(&m, &other);
    assert_true(other.seconds > 2 * plain.seconds && isfinite(other.seconds));
    /* two ranks: half of the micro-batches each */
    struct train_options o = options_of(&m);
    struct plan one, two;
    check_ok(plan_make(shape(m.student), shape(m.teacher), &o, &one), "plan");
    o.ranks = 2;
    check_ok(plan_make(shape(m.student), shape(m.teacher), &o, &two), "plan");
    assert_true(two.work.tokens == one.work.tokens && two.work.gemm == one.work.gemm / 2);
    o.rank = RANKS_VIRTUAL;
    check_ok(plan_make(shape(m.student), shape(m.teacher), &o, &two), "plan");
    assert_true(two.work.gemm == one.work.gemm);
    /* adapters: no gradients of weights */
    o.ranks = 1;
    o.lora = (struct lora_config){.rank = 16, .alpha = 32};
    check_ok(lora_targets_add(&o.lora, "all-linear"), "targets");
    check_ok(plan_make(shape(m.student), NULL, &o, &two), "plan");
    o.lora.rank = 0;
    check_ok(plan_make(shape(m.student), NULL, &o, &one), "plan");
    assert_true(two.work.gemm < 0.75 * one.work.gemm && two.work.gemm > 0.6 * one.work.gemm);
    o.steps = 0;
    check_ok(plan_make(shape(m.student), NULL, &o, &one), "plan");
    assert_true(one.work.tokens == 0);
}

/* A live teacher adds its forward pass to a step, its LM head included: 97.0 - 53.3 ms, above. */
static void a_forward_pass_takes_what_a_teacher_adds(void **state)
{
    (void)state;
    const struct train_options o = {.batch_size = 8, .seq_len = 1024, .dtype = NJ_LP};
    struct model_config c;
    check_ok(preset_config(preset_find("qwen2.5-1.5b"), &c), "preset");
    struct step_work one = forward_work_count(&c, &o, 8), many = forward_work_count(&c, &o, 80);
    one.gemm += 2.0 * one.tokens * c.vocab_size * c.hidden_size;
    const struct estimate e = estimate_step(gpu_named("h200"), NJ_LP, &one);
    if (!(1e3 * e.low < 43.7 && 43.7 < 1e3 * e.high))
        fail_msg("%.1f to %.1f ms", 1e3 * e.low, 1e3 * e.high);
    one = forward_work_count(&c, &o, 8);
    assert_true(many.gemm == 10 * one.gemm && many.layers == 10 * one.layers);
    assert_true(many.attention == 10 * one.attention && many.bytes == 10 * one.bytes);
}

static void names_are_as_users_and_drivers_write_them(void **state)
{
    (void)state;
    char names[256];
    assert_ptr_equal(gpu_named("RTX 4090"), gpu_named("rtx4090"));
    assert_ptr_equal(gpu_named("H100-PCIe"), gpu_named("h100pcie"));
    assert_null(gpu_named("rtx"));
    assert_null(gpu_named(""));
    assert_string_equal(gpu_of_device("NVIDIA H100 80GB HBM3")->name, "h100");
    assert_string_equal(gpu_of_device("NVIDIA H100 PCIe")->name, "h100-pcie");
    assert_string_equal(gpu_of_device("NVIDIA L40S")->name, "l40s");
    assert_string_equal(gpu_of_device("NVIDIA A10")->name, "a10");
    assert_string_equal(gpu_of_device("NVIDIA A100-SXM4-40GB")->name, "a100-40gb");
    assert_string_equal(gpu_of_device("NVIDIA A100 80GB PCIe")->name, "a100");
    assert_null(gpu_of_device("NVIDIA GeForce RTX 4090 Laptop GPU"));
    assert_null(gpu_of_device("NVIDIA GeForce RTX 3090 Ti"));
    assert_null(gpu_of_device("NVIDIA GeForce RTX 4090 D"));
    assert_string_equal(gpu_of_device("NVIDIA GeForce RTX 2080 Ti")->name, "rtx2080ti");
    assert_string_equal(gpu_of_device("NVIDIA GH200 480GB")->name, "gh200");
    assert_string_equal(gpu_of_device("NVIDIA H100 NVL")->name, "h100-nvl");
    assert_null(gpu_of_device("NVIDIA L40"));
    assert_non_null(strstr(gpu_names(names, sizeof names), ", h200, "));
    for (const struct gpu *g = gpu_table; g->name != NULL; g++) {
        assert_ptr_equal(gpu_of_device(g->device), g);
        assert_ptr_equal(gpu_named(g->name), g);
        assert_true(g->tflops > 0 && g->f32_tflops > 0 && g->bandwidth > 0);
        assert_true((g->fp8_tflops > 0) == (g->sm >= 89));
        assert_true(gpu_budget(g) > (size_t)(g->gib * 0.85 * (1 << 30)));
    }
}

static void architectures_to_build_are_those_of_a_plain_make(void **state)
{
    (void)state;
    char arch[16];
    assert_string_equal(gpu_arch(gpu_named("h100"), arch, sizeof arch), "sm_90a");
    assert_string_equal(gpu_arch(gpu_named("h200"), arch, sizeof arch), "sm_90a");
    assert_string_equal(gpu_arch(gpu_named("rtx4090"), arch, sizeof arch), "sm_89");
    assert_string_equal(gpu_arch(gpu_named("a100"), arch, sizeof arch), "sm_80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_measured_step_is_within_its_range),
        cmocka_unit_test(options_change_the_estimate),
        cmocka_unit_test(a_forward_pass_takes_what_a_teacher_adds),
        cmocka_unit_test(architectures_to_build_are_those_of_a_plain_make),
        cmocka_unit_test(names_are_as_users_and_drivers_write_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
