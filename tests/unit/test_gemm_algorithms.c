/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gemm_algorithms.c: on a GPU, every algorithm that cuBLASLt proposes for the GEMMs of a step gives the known
 * product, bit for bit; the cost of comparing is printed beside that of timing.
 */
#include "unit.h"

#include "device_fixture.h"
#include "internal.h"

enum { ROWS = 8192, SMALL = 1000, VOCABULARY = 151936 };

static void print_line(void *user, const char *line)
{
    (void)user;
    print_message("%s\n", line);
}

static nj_context *open_gpu(int tune)
{
    const struct nj_options o = {.device = NJ_DEVICE_CUDA, .gemm_tune = tune, .log = print_line};
    nj_context *ctx = NULL;
    const int rc = nj_context_create(&ctx, &o);
    if (rc == 0)
        return ctx;
    nj_context_destroy(ctx);
    if (may_be_absent(NJ_DEVICE_CUDA, rc))
        skip();
    fail_msg("%s", nj_error_name(rc));
    return NULL;
}

static struct nj_gemm shape_of(enum nj_gemm_kind kind, int M, int N, int K)
{
    return (struct nj_gemm){.kind = kind,
                            .ab_dtype = NJ_LP,
                            .c_dtype = NJ_LP,
                            .M = M,
                            .N = N,
                            .K = K,
                            .lda = kind == NJ_GEMM_TN ? M : K,
                            .ldb = kind == NJ_GEMM_NT ? K : N,
                            .ldc = N};
}

/* Prepare a GEMM. A shape without an algorithm on this GPU counts as refused: FP8 falls back to 16 bits there. */
static void prepare(nj_context *ctx, const struct nj_gemm *g)
{
    const struct nj_device_info *info = nj_context_device(ctx);
    const struct nj_device_info before = *info;
    char text[NJ_GEMM_TEXT_BYTES];
    nj_gemm_describe(g, text, sizeof text);
    const int rc = nj_gemm_prepare(ctx, g);
    if (rc == NJ_E_UNSUPPORTED || (rc == NJ_E_GEMM && g->ab_dtype == NJ_F8))
        print_message("%s\n", nj_context_error(ctx));
    else if (rc)
        fail_msg("%s", nj_context_error(ctx));
    print_message(
        "     %-74s %2u compared, %u wrong, %u refused, %7.1f ms, %5.1f of them comparing\n", text,
        info->gemms_checked - before.gemms_checked, info->gemms_wrong - before.gemms_wrong,
        info->gemms_refused - before.gemms_refused, info->gemm_ms - before.gemm_ms,
        info->gemm_check_ms - before.gemm_check_ms);
}

static void prepare_layer(nj_context *ctx, int rows, int out, int in)
{
    struct nj_gemm dw = shape_of(NJ_GEMM_TN, out, in, rows);
    const struct nj_gemm forward = shape_of(NJ_GEMM_NT, rows, out, in);
    const struct nj_gemm dx = shape_of(NJ_GEMM_NN, rows, in, out);
    prepare(ctx, &forward);
    prepare(ctx, &dx);
    dw.c_dtype = NJ_F32;
    prepare(ctx, &dw);
    dw.beta = 1;
    prepare(ctx, &dw);
}

static void prepare_f8(nj_context *ctx, int rows, int out, int in)
{
    const int one = nj_context_device(ctx)->f8 == NJ_F8_ONE;
    struct nj_gemm forward = shape_of(NJ_GEMM_NT, rows, out, in);
    struct nj_gemm dw = shape_of(NJ_GEMM_NT, out, in, rows);
    forward.ab_dtype = dw.ab_dtype = NJ_F8;
    forward.one_scale = one;
    dw.c_dtype = NJ_F32;
    dw.one_scale = nj_context_device(ctx)->f8 != NJ_F8_BLOCKS;
    prepare(ctx, &forward);
    prepare(ctx, &dw);
    dw.beta = 1;
    prepare(ctx, &dw);
    if (!dw.one_scale)
        return;
    dw.a_e5m2 = 1;
    prepare(ctx, &dw);
}

static void prepare_step(nj_context *ctx)
{
    static const int sizes[][2] = {
        {1152, 896}, {896, 896}, {9728, 896}, {896, 4864}, {17920, 1536}};
    const struct nj_gemm logits = shape_of(NJ_GEMM_NT, ROWS / 2, VOCABULARY, 896);
    struct nj_gemm plain = shape_of(NJ_GEMM_NT, ROWS, 1024, 1024);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        prepare_layer(ctx, ROWS, sizes[i][0], sizes[i][1]);
    prepare_layer(ctx, SMALL, 1152, 896);
    prepare(ctx, &logits);
    plain.ab_dtype = plain.c_dtype = NJ_F32;
    prepare(ctx, &plain);
    if (nj_context_device(ctx)->f8 == NJ_F8_NONE)
        return;
    prepare_f8(ctx, ROWS, 17920, 1536);
    prepare_f8(ctx, SMALL / 32 * 32, 1152, 896);
}

static void say_sum(const char *how, const struct nj_device_info *d)
{
    print_message("     %s: %u algorithms compared, %u wrong, %u refused; %.0f ms, %.0f of them "
                  "comparing: %.1f %% more than without\n",
                  how, d->gemms_checked, d->gemms_wrong, d->gemms_refused, d->gemm_ms,
                  d->gemm_check_ms, 100 * d->gemm_check_ms / (d->gemm_ms - d->gemm_check_ms));
}

static void every_algorithm_of_the_gemms_of_a_step_is_right(void **state)
{
    (void)state;
    for (int tune = 1; tune >= 0; tune--) {
        nj_context *ctx = open_gpu(tune);
        const struct nj_device_info *d = nj_context_device(ctx);
        prepare_step(ctx);
        say_sum(tune ? "timed" : "first choices", d);
        assert_true(d->gemms_checked > 0);
        assert_int_equal(d->gemms_wrong, 0);
        assert_int_equal(d->gemms_unchecked, 0);
        nj_context_destroy(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_of_the_gemms_of_a_step_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
