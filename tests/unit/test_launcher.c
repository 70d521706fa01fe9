/* SPDX-License-Identifier: Apache-2.0
 *
 * test_launcher.c: the parts that all launchers share: saturating arithmetic, and refusals before a kernel runs.
 * tests/unit/test_refusals.c violates the conditions of every contract.
 */
#include "launcher.h"
#include "nojit_ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static nj_context *ctx;
static nj_stream *stream;

static void sums_and_products_saturate(void **state)
{
    (void)state;
    assert_true(i64_add(INT64_MAX, 1) == INT64_MAX && i64_add(INT64_MIN, -1) == INT64_MIN);
    assert_true(i64_sub(INT64_MIN, 1) == INT64_MIN && i64_sub(INT64_MAX, -1) == INT64_MAX);
    assert_true(i64_mul(INT64_MAX, 2) == INT64_MAX && i64_mul(INT64_MAX, -2) == INT64_MIN);
    assert_true(i64_mul(INT64_MIN, -1) == INT64_MAX && i64_mul(-3, 5) == -15);
    assert_true(i64_div(INT64_MIN, -1) == INT64_MAX && i64_div(-7, 2) == -3);
    assert_true(i64_rem(INT64_MIN, -1) == 0 && i64_rem(-7, 2) == -1);
    assert_true(i64_ceil_div(7, 2) == 4 && i64_ceil_div(-7, 2) == -3);
}

static void divisions_by_zero_are_zero(void **state)
{
    (void)state;
    assert_true(i64_div(5, 0) == 0 && i64_rem(5, 0) == 0 && i64_ceil_div(5, 0) == 0);
    assert_true(i64_ceil_div(5, -1) == 0);
}

static void grids_are_held_to_the_device(void **state)
{
    static const struct {
        int64_t blocks[3];
        int fits;
    } cases[] = {
        {{INT32_MAX, 65535, 65535}, 1},
        {{0, 0, 0}, 1},
        {{(int64_t)INT32_MAX + 1, 1, 1}, 0},
        {{1, 65536, 1}, 0},
        {{1, 1, 65536}, 0},
        {{-1, 1, 1}, 0},
        {{1, -1, 1}, 0},
        {{1, 1, INT64_MAX}, 0},
    };
    const struct nj_op op = {.cluster = 1};
    const struct nj_op clusters = {.cluster = 2, .whole_clusters = "whole"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(nj_grid_broken(&op, cases[i].blocks) == NULL, cases[i].fits);
    assert_null(nj_grid_broken(&clusters, (const int64_t[]){4, 3, 1}));
    assert_string_equal(nj_grid_broken(&clusters, (const int64_t[]){5, 2, 2}), "whole");
}

/* Expect the last error to be this sentence. */
static void says(const char *sentence)
{
    assert_string_equal(nj_context_error(ctx), sentence);
}

static void what_a_caller_leaves_out_is_refused(void **state)
{
    _Alignas(16) float x[4] = {1, 2, 3, 4}, y[4] = {0};
    (void)state;
    assert_int_equal(nj_add(stream, NJ_F32, NULL), NJ_E_ARG);
    says("add: args is not NULL does not hold (T=f32)");
    assert_int_equal(nj_add(stream, NJ_F32, &(struct nj_add){.y = y, .a = x, .n = 4}), NJ_E_ARG);
    says("add: b is not NULL does not hold (T=f32, n=4)");
    assert_int_equal(nj_add(stream, NJ_F32, &(struct nj_add){.y = y, .a = x, .b = x}), NJ_E_ARG);
    says("add: n >= 1 does not hold (T=f32, n=0)");
    assert_int_equal(
        nj_dropout(stream, NJ_F32, &(struct nj_dropout){.y = y, .x = x, .n = 4, .p = 0.5f}),
        NJ_E_ARG);
    says("dropout: key is not NULL does not hold (T=f32, n=4, p=0.5, mask=0)");
    assert_int_equal(nj_add(stream, NJ_F32, &(struct nj_add){.y = y, .a = x, .b = x, .n = 4}), 0);
    assert_true(y[3] == 8);
}

static void a_missing_variant_is_named(void **state)
{
    (void)state;
    assert_int_equal(nj_attn_fwd(stream, NJ_F32, 96, &(struct nj_attn_fwd){.B = 1}),
                     NJ_E_NO_KERNEL);
    assert_non_null(strstr(nj_context_error(ctx), "no kernel attn_fwd.f32.d96 "));
    assert_int_equal(nj_attn_fwd(stream, NJ_F8, 64, NULL), NJ_E_NO_KERNEL);
    assert_non_null(strstr(nj_context_error(ctx), "no kernel attn_fwd.unknown.d64 "));
}

static int open_cpu(void **state)
{
    const struct nj_options cpu = {.device = NJ_DEVICE_CPU};
    (void)state;
    return nj_context_create(&ctx, &cpu) || nj_stream_create(ctx, &stream);
}

static int close_cpu(void **state)
{
    (void)state;
    nj_stream_destroy(stream);
    nj_context_destroy(ctx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products_saturate),
        cmocka_unit_test(divisions_by_zero_are_zero),
        cmocka_unit_test(grids_are_held_to_the_device),
        cmocka_unit_test(what_a_caller_leaves_out_is_refused),
        cmocka_unit_test(a_missing_variant_is_named),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_cpu);
}
