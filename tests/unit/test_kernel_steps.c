/* SPDX-License-Identifier: Apache-2.0
 *
 * test_kernel_steps.c: a trace of a GPU is divided into steps, their phases and their kernels.
 */
#include "../../bench/kernel_steps.h"
#include "unit.h"

static const char training[] = "forward:_head,backward:clip_scale,update:adamw";
static struct timeline line;
static uint64_t now; /* time in us at which the next kernel starts */

static int afresh(void **state)
{
    (void)state;
    now = 0;
    return 0;
}

static int cleared(void **state)
{
    (void)state;
    timeline_free(&line);
    return 0;
}

/* Add a kernel that runs beside others, from `start` us on. */
static void beside(const char *name, uint64_t start, uint64_t us)
{
    timeline_add(&line, name, 1000 * start, 1000 * (start + us));
}

/* Add a kernel after the last one. */
static void runs(const char *name, uint64_t us)
{
    beside(name, now, us);
    now += us;
}

static void gives(const char *phases, int skip, const char *want)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    timeline_write(&line, phases, skip, f);
    fclose(f);
    if (strcmp(text, want) != 0)
        fail_msg("got\n%sexpected\n%s", text, want);
    free(text);
}

/* Two chunks of the head, as with long batches; 4 us without a kernel. */
static void step_of_one_gpu(void)
{
    runs("gemm", 40);
    runs("nj_kd_head_lp", 5);
    runs("gemm", 10);
    runs("nj_kd_head_lp", 5);
    runs("gemm", 80);
    now += 4;
    runs("nj_clip_scale_f32", 6);
    runs("nj_adamw_lp", 50);
}

/* The table of such steps, whatever their number. */
#define TABLE_OF_ONE_GPU                                                                           \
    "    0.060 ms, 0.000 idle, 0.000 copies alone  forward\n"                                      \
    "    0.090 ms, 0.004 idle, 0.000 copies alone  backward\n"                                     \
    "    0.050 ms, 0.000 idle, 0.000 copies alone  update\n"                                       \
    "    0.130 ms  65.0 %     3.0 runs  gemm\n"                                                    \
    "    0.050 ms  25.0 %     1.0 runs  nj_adamw_lp\n"                                             \
    "    0.010 ms   5.0 %     2.0 runs  nj_kd_head_lp\n"                                           \
    "    0.006 ms   3.0 %     1.0 runs  nj_clip_scale_f32\n"

static void a_step_of_one_gpu_has_three_phases(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        step_of_one_gpu();
    gives(training, 2, "2 steps, 0.200 ms per step, GPU idle 2.00 %\n" TABLE_OF_ONE_GPU);
}

/* AdamW runs piece by piece, with transfers between and beside; gradients are still in flight when the backward pass
 * ends; the transfer of weights reaches into the next step. */
static void step_of_several_gpus(void)
{
    runs("gemm", 60);
    runs("nj_tv_head_lp", 10);
    runs("gemm", 80);
    beside("(copy to a GPU)", now - 30, 45); /* 15 us without a kernel beside it */
    now += 20;                               /* and 5 us of nothing */
    runs("nj_clip_scale_f32", 5);
    runs("nj_adamw_lp", 10);
    beside("(copy to a GPU)", now, 12);
    runs("nccl_broadcast", 2);
    now += 8;
    runs("nj_adamw_lp", 5);
    beside("(copy to a GPU)", now, 25);
}

static void pieces_of_an_update_are_one_phase(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        step_of_several_gpus();
    gives(training, 1,
          "3 steps, 0.200 ms per step, GPU idle 2.50 %\n"
          "    0.070 ms, 0.000 idle, 0.000 copies alone  forward\n"
          "    0.105 ms, 0.005 idle, 0.015 copies alone  backward\n"
          "    0.025 ms, 0.000 idle, 0.008 copies alone  update\n"
          "    0.140 ms  70.0 %     2.0 runs  gemm\n"
          "    0.082 ms  41.0 %     3.0 runs  (copy to a GPU)\n"
          "    0.015 ms   7.5 %     2.0 runs  nj_adamw_lp\n"
          "    0.010 ms   5.0 %     1.0 runs  nj_tv_head_lp\n"
          "    0.005 ms   2.5 %     1.0 runs  nj_clip_scale_f32\n"
          "    0.002 ms   1.0 %     1.0 runs  nccl_broadcast\n");
}

/* Records come in any order. */
static void what_follows_the_last_step_is_left_out(void **state)
{
    (void)state;
    runs("nj_kd_head_lp", 7); /* an evaluation */
    step_of_one_gpu();
    step_of_one_gpu();
    runs("nj_kd_head_lp", 100);
    runs("nj_clip_scale_f32", 100);
    beside("earlier", 0, 1);
    gives(training, 1, "1 steps, 0.200 ms per step, GPU idle 2.00 %\n" TABLE_OF_ONE_GPU);
}

static void one_mark_is_a_step_for_each_group_of_runs(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        runs("nj_gemv_norm_lp", 30);
        runs("nj_sample_lp", 5);
        runs("nj_sample_next_f32", 1);
        now += 4;
    }
    gives("token:nj_sample", 0,
          "4 steps, 0.040 ms per step, GPU idle 10.00 %\n"
          "    0.040 ms, 0.004 idle, 0.000 copies alone  token\n"
          "    0.030 ms  75.0 %     1.0 runs  nj_gemv_norm_lp\n"
          "    0.005 ms  12.5 %     1.0 runs  nj_sample_lp\n"
          "    0.001 ms   2.5 %     1.0 runs  nj_sample_next_f32\n");
}

static void too_few_steps_are_said(void **state)
{
    (void)state;
    gives(training, 5, "too few steps to show\n");
    step_of_one_gpu();
    step_of_one_gpu();
    gives(training, 2, "too few steps to show\n");
    gives("other:no_such_kernel", 1, "too few steps to show\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_step_of_one_gpu_has_three_phases, afresh, cleared),
        cmocka_unit_test_setup_teardown(pieces_of_an_update_are_one_phase, afresh, cleared),
        cmocka_unit_test_setup_teardown(what_follows_the_last_step_is_left_out, afresh, cleared),
        cmocka_unit_test_setup_teardown(one_mark_is_a_step_for_each_group_of_runs, afresh, cleared),
        cmocka_unit_test_setup_teardown(too_few_steps_are_said, afresh, cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
