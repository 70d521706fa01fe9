/* SPDX-License-Identifier: Apache-2.0
 *
 * test_mfu.c: the peak with which each kind of operation is compared. tests/cli/receipt_fields.sh counts the operations
 * of a run.
 */
#include <math.h>

#include "record/mfu.h"
#include "unit.h"

static const struct step_flops STEP = {
    .student = 989e12, .student_fp8 = 989.5e12, .teacher = 494.5e12, .teacher_fp8 = 1979e12};

static struct ideal_seconds on(const char *name, enum nj_dtype dtype, const struct step_flops *f)
{
    struct nj_device_info d = {.sm = 90};
    snprintf(d.name, sizeof d.name, "%s", name);
    return mfu_ideal(&d, dtype, f);
}

static void each_part_has_its_peak(void **state)
{
    (void)state;
    const struct ideal_seconds h200 = on("NVIDIA H200", NJ_LP, &STEP);
    assert_true(fabs(h200.student - 1.5) < 1e-12);
    assert_true(fabs(h200.teacher - 1.5) < 1e-12);
    assert_true(fabs(on("NVIDIA H100 PCIe", NJ_LP, &STEP).student - 989.0 / 756 - 989.5 / 1513) <
                1e-12);
}

static void an_unknown_peak_is_no_number(void **state)
{
    (void)state;
    const struct step_flops alone = {.student = 1e12}, plain = {.student = 1e12, .teacher = 1e12};
    assert_true(isnan(on("Some GPU", NJ_LP, &STEP).student));
    assert_true(isnan(on("NVIDIA H200", NJ_F32, &STEP).student));
    assert_true(isnan(on("NVIDIA A100", NJ_LP, &STEP).teacher));
    assert_true(isfinite(on("NVIDIA A100", NJ_LP, &plain).teacher));
    assert_true(on("NVIDIA H200", NJ_LP, &alone).teacher == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_part_has_its_peak),
                                       cmocka_unit_test(an_unknown_peak_is_no_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
