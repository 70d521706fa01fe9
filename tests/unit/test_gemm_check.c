/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gemm_check.c: cuBLASLt's results are checked, here on the simulated one: the product of every kind of GEMM is
 * known, so an algorithm with a wrong product is skipped, wherever the fault is; a listed algorithm that refuses to run
 * is replaced by the next; both are reported.
 */
#include "cuda_sim.h"

#include <stdbool.h>

#include "cuda/cuda_gemm.h"
#include "cuda/library.h"

static char said[4096];

static void keep_line(void *user, const char *line)
{
    (void)user;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", line);
}

static const struct nj_options plain = {.device = NJ_DEVICE_CUDA, .log = keep_line};
static const struct nj_options tuned = {.device = NJ_DEVICE_CUDA, .log = keep_line, .gemm_tune = 1};

static int begin(void **state)
{
    static const char *const settings[] = {"NOJIT_SIM_LT_WRONG", "NOJIT_SIM_LT_REFUSES",
                                           "NOJIT_SIM_LT_NO_F8", "NOJIT_SIM_ELAPSED"};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        unsetenv(settings[i]);
    said[0] = '\0';
    return afresh(state);
}

static struct nj_gemm shape_of(enum nj_gemm_kind kind, int M, int N, int K)
{
    return (struct nj_gemm){.kind = kind,
                            .M = M,
                            .N = N,
                            .K = K,
                            .lda = kind == NJ_GEMM_TN ? M : K,
                            .ldb = kind == NJ_GEMM_NT ? K : N,
                            .ldc = N};
}

/* Prepare the GEMM; all its algorithms give the expected product. */
static void expect_right(nj_context *ctx, const struct nj_gemm *g)
{
    const struct nj_device_info *info = nj_context_device(ctx);
    const uint32_t before = info->gemms_checked;
    char text[NJ_GEMM_TEXT_BYTES];
    nj_gemm_describe(g, text, sizeof text);
    if (nj_gemm_prepare(ctx, g) != 0)
        fail_msg("%s", nj_context_error(ctx));
    if (info->gemms_wrong != 0 || info->gemms_checked != before + 3)
        fail_msg("%s: %u checked; %s", text, info->gemms_checked - before, said);
}

/* Check sizes without a common factor, gaps between rows, K beyond a whole period of the pattern, and rows as long as
 * its period. */
static void expect_all_kinds(nj_context *ctx, enum nj_dtype operands, enum nj_dtype result)
{
    static const struct {
        int M, N, K, gap;
    } sizes[] = {{37, 300, 29, 0}, {5, 7, 3, 4}, {3, 5, 70001, 0}, {19, 127, 226, 0}, {1, 1, 1, 0}};
    for (int kind = 0; kind < 3; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct nj_gemm g =
                shape_of((enum nj_gemm_kind)kind, sizes[i].M, sizes[i].N, sizes[i].K);
            g.ab_dtype = operands;
            g.c_dtype = result;
            g.lda += sizes[i].gap;
            g.ldb += sizes[i].gap;
            g.ldc += sizes[i].gap;
            g.beta = (float)(i % 2);
            g.scale = i == 1 ? 0.3f : 1;
            expect_right(ctx, &g);
        }
}

static void expect_f8(nj_context *ctx, int one_scale, int e5m2, enum nj_dtype result)
{
    struct nj_gemm g = shape_of(NJ_GEMM_NT, 21, 48, 160);
    g.ab_dtype = NJ_F8;
    g.c_dtype = result;
    g.one_scale = one_scale;
    g.a_e5m2 = e5m2;
    expect_right(ctx, &g);
}

static void the_product_of_every_kind_of_gemm_is_known(void **state)
{
    (void)state;
    static const char *const devices[] = {"h100", "t4"}; /* bfloat16, float16 */
    for (int i = 0; i < 2; i++) {
        setenv("NOJIT_SIM_DEVICE", devices[i], 1);
        nj_context *ctx = open_context(&tuned);
        expect_all_kinds(ctx, NJ_F32, NJ_F32);
        expect_all_kinds(ctx, NJ_LP, NJ_F32);
        expect_all_kinds(ctx, NJ_LP, NJ_LP);
        nj_context_destroy(ctx);
        assert_int_equal(sim->live, 0);
        assert_int_equal(*lt_live, 0);
    }
}

static void the_product_of_every_kind_of_f8_gemm_is_known(void **state)
{
    (void)state;
    setenv("NOJIT_SIM_DEVICE", "h100", 1);
    nj_context *ctx = open_context(&tuned);
    expect_f8(ctx, 0, 0, NJ_LP);
    expect_f8(ctx, 1, 0, NJ_F32);
    expect_f8(ctx, 1, 1, NJ_LP);
    nj_context_destroy(ctx);
    setenv("NOJIT_SIM_DEVICE", "rtx4090", 1);
    ctx = open_context(&tuned);
    expect_f8(ctx, 1, 1, NJ_F32);
    nj_context_destroy(ctx);
    setenv("NOJIT_SIM_DEVICE", "rtx5090", 1);
    ctx = open_context(&tuned);
    expect_f8(ctx, 0, 0, NJ_LP);
    nj_context_destroy(ctx);
}

/* Expect a wrong algorithm to be skipped. Algorithm 2 is the first that is listed. */
static void expect_left_out(const struct nj_options *o, const char *wrong, const char *where)
{
    const struct nj_gemm g = shape_of(NJ_GEMM_NN, 70, 90, 30);
    nj_context *ctx = open_context(o);
    const struct nj_device_info *info = nj_context_device(ctx);
    setenv("NOJIT_SIM_LT_WRONG", wrong, 1);
    said[0] = '\0';
    assert_int_equal(nj_gemm_prepare(ctx, &g), 0);
    assert_int_equal(info->gemms_wrong, 1);
    assert_int_equal(info->gemms_checked, o->gemm_tune ? 3 : 2);
    if (o->gemm_tune)
        assert_int_equal(ctx->choices.row[0]->choice[0], 3);
    if (!strstr(said, where) || !strstr(said, "algorithms gave a wrong result, please report it"))
        fail_msg("%s", said);
    nj_context_destroy(ctx);
}

static void an_algorithm_that_lies_is_left_out(void **state)
{
    (void)state;
    const struct nj_options *const o[] = {&plain, &tuned};
    setenv("NOJIT_SIM_ELAPSED", "1", 1); /* the first is as fast as the others */
    for (int i = 0; i < 2; i++) {
        expect_left_out(o[i], "2:-1",
                        "GEMM NN f32->f32 M=70 N=90 K=30 ld 30,90,90 beta 0 scale 1: cuBLASLt "
                        "13.1.0 on Simulated NVIDIA H100 80GB HBM3: 1 of 3");
        expect_left_out(o[i], "2:1", "(algorithm 2: element [34, 44] has the bits 0x");
    }
}

static void a_gemm_whose_algorithms_all_lie_is_refused(void **state)
{
    (void)state;
    const struct nj_gemm g = shape_of(NJ_GEMM_TN, 40, 20, 30);
    const struct nj_options *const o[] = {&plain, &tuned};
    setenv("NOJIT_SIM_LT_WRONG", "0:4", 1);
    for (int i = 0; i < 2; i++) {
        nj_context *ctx = open_context(o[i]);
        assert_int_equal(nj_gemm_prepare(ctx, &g), NJ_E_GEMM);
        assert_non_null(strstr(nj_context_error(ctx), "of which 3 give wrong results (algorithm "
                                                      "2: element [18, 8]"));
        assert_non_null(strstr(nj_context_error(ctx), "NOJIT_CUBLASLT"));
        nj_context_destroy(ctx);
        assert_int_equal(sim->live, 0);
        assert_int_equal(*lt_live, 0);
    }
}

static void an_algorithm_that_refuses_makes_room_for_the_next(void **state)
{
    (void)state;
    const struct nj_options *const o[] = {&plain, &tuned};
    setenv("NOJIT_SIM_LT_REFUSES", "2:1000", 1);
    for (int i = 0; i < 2; i++)
        for (int M = 999; M <= 1000; M++) {
            const struct nj_gemm g = shape_of(NJ_GEMM_NT, M, 8, 8);
            nj_context *ctx = open_context(o[i]);
            said[0] = '\0';
            assert_int_equal(nj_gemm_prepare(ctx, &g), 0);
            assert_int_equal(nj_context_device(ctx)->gemms_refused, M == 1000);
            assert_int_equal(strstr(said, "refused to run (algorithm 2: cublasLtMatmul: "
                                          "CUBLAS_STATUS_NOT_SUPPORTED); left out") != NULL,
                             M == 1000);
            nj_context_destroy(ctx);
        }
    setenv("NOJIT_SIM_LT_REFUSES", "0:1000", 1);
    const struct nj_gemm g = shape_of(NJ_GEMM_NT, 1000, 8, 8);
    nj_context *ctx = open_context(&plain);
    assert_int_equal(nj_gemm_prepare(ctx, &g), NJ_E_GEMM);
    assert_non_null(strstr(nj_context_error(ctx), "3 are refused (algorithm 2: cublasLtMatmul"));
    nj_context_destroy(ctx);
}

static void a_stored_choice_that_lies_is_made_again(void **state)
{
    (void)state;
    const struct nj_gemm g = shape_of(NJ_GEMM_NT, 12, 8, 8);
    char path[] = "/tmp/nojit-choices-XXXXXX";
    assert_true(close(mkstemp(path)) == 0);
    setenv("NOJIT_SIM_ELAPSED", "1", 1);
    for (int run = 0; run < 3; run++) {
        nj_context *ctx = open_context(&tuned);
        assert_int_equal(nj_gemm_table_read(ctx, path), run > 0);
        assert_int_equal(nj_gemm_prepare(ctx, &g), 0);
        assert_int_equal(nj_context_device(ctx)->gemms_timed, run < 2);
        assert_int_equal(nj_context_device(ctx)->gemms_checked, run == 0 ? 3 : run == 1 ? 3 : 1);
        assert_int_equal(ctx->choices.row[0]->choice[0], run == 0 ? 2 : 3);
        assert_int_equal(nj_gemm_table_write(ctx, path), 0);
        nj_context_destroy(ctx);
        setenv("NOJIT_SIM_LT_WRONG", "2:1", 1);
    }
    assert_int_equal(unlink(path), 0);
}

/* A fault of the GPU is not taken for a refusal, even if it occurs while an algorithm is tried. */
static void a_fault_of_the_gpu_is_no_refusal(void **state)
{
    (void)state;
    const struct nj_gemm g = shape_of(NJ_GEMM_NT, 12, 8, 8);
    nj_context *ctx = open_context(&tuned);
    fails("product", 700);
    assert_int_equal(nj_gemm_prepare(ctx, &g), NJ_E_DEVICE);
    assert_non_null(strstr(nj_context_error(ctx), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert_int_equal(nj_context_device(ctx)->gemms_refused, 0);
    nj_context_destroy(ctx);
}

/* The GEMMs are bfloat16 and float32, in tiles of 128 rows and 128 columns. */
static void a_thorough_look_meets_every_tile(void **state)
{
    (void)state;
    enum { TILE = 128 };
    static const struct {
        size_t M, N, element;
    } sizes[] = {{8192, 5632, 2},   {8192, 1024, 2},   {2048, 11264, 2}, {4096, 4096, 4},
                 {151936, 1024, 4}, {4096, 151936, 2}, {1000, 1000, 4},  {5632, 2048, 4},
                 {1024, 1024, 2},   {16384, 17920, 2}, {896, 151936, 4}, {8192, 9728, 2},
                 {300, 77777, 4},   {8192, 151936, 2}, {100000, 72, 4},  {2560, 6912, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t N = sizes[i].N, element = sizes[i].element, row = N * element;
        const size_t across = (N + TILE - 1) / TILE, down = (sizes[i].M + TILE - 1) / TILE;
        const struct nj_lt_sample s = nj_lt_sample_of(sizes[i].M * row, row, NJ_LT_THOROUGH);
        unsigned char *met = calloc(across, down);
        assert_non_null(met);
        assert_true(s.width % element == 0 && s.pitch % element == 0);
        assert_true((s.count - 1) * s.pitch + s.width <= sizes[i].M * row);
        for (size_t p = 0; p < s.count; p++)
            for (size_t e = p * s.pitch / element; e < (p * s.pitch + s.width) / element; e++)
                met[e / N / TILE * across + e % N / TILE] = 1;
        if (memchr(met, 0, across * down))
            fail_msg("a tile of %zu x %zu is not looked at, by pieces of %zu bytes %zu apart",
                     sizes[i].M, N, s.width, s.pitch);
        free(met);
    }
}

static void what_is_reported_of_a_version_is_known(void **state)
{
    (void)state;
    static const struct {
        size_t version;
        int sm;
        const char *says; /* NULL: no message */
    } cases[] = {
        {130501, 120, "cuBLASLt 13.5.1 on sm_120: reported: errors of memory"},
        {130501, 121,
         "pip install 'nvidia-cublas==13.4.0.*', and name its folder by NOJIT_CUBLASLT"},
        {130501, 90, NULL},
        {130502, 120, NULL},
        {130400, 120, "no power of two (kekzl/imp issue 446); such GEMMs run in 16 bits"},
        {130400, 121, NULL},
        {130500, 120, NULL},
        {130600, 90, "algorithm 68"},
        {130100, 120, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[400];
        nj_library_reports(cases[i].version, cases[i].sm, got, sizeof got);
        if (cases[i].says ? !strstr(got, cases[i].says) : got[0] != '\0')
            fail_msg("%zu on sm_%d: '%s'", cases[i].version, cases[i].sm, got);
        assert_true(strlen(got) + 1 < sizeof got);
    }
    setenv("NOJIT_SIM_LT_VERSION", "130600", 1);
    nj_context *ctx = open_context(&plain);
    assert_non_null(strstr(nj_context_device(ctx)->gemm_reports, "NVIDIA/raft issue 3098"));
    nj_context_destroy(ctx);
}

static bool has_code_for_the_simulation(void)
{
    static const int sms[] = {75, 89, 90, 120};
    char why[NJ_SENTENCE_BYTES];
    struct nj_index index;
    bool has = nj_index_embedded(&index, why) == 0;
    for (size_t i = 0; has && i < sizeof sms / sizeof *sms; i++)
        has = nj_index_arch_for(&index, sms[i]) >= 0;
    return has;
}

static void not_tried_without_code_for_every_arch(void **state)
{
    (void)state;
}

int main(void)
{
    const struct CMUnitTest none[] = {cmocka_unit_test(not_tried_without_code_for_every_arch)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_product_of_every_kind_of_gemm_is_known, begin),
        cmocka_unit_test_setup(the_product_of_every_kind_of_f8_gemm_is_known, begin),
        cmocka_unit_test_setup(an_algorithm_that_lies_is_left_out, begin),
        cmocka_unit_test_setup(a_gemm_whose_algorithms_all_lie_is_refused, begin),
        cmocka_unit_test_setup(an_algorithm_that_refuses_makes_room_for_the_next, begin),
        cmocka_unit_test_setup(a_stored_choice_that_lies_is_made_again, begin),
        cmocka_unit_test_setup(a_fault_of_the_gpu_is_no_refusal, begin),
        cmocka_unit_test_setup(a_thorough_look_meets_every_tile, begin),
        cmocka_unit_test_setup(what_is_reported_of_a_version_is_known, begin),
    };
    return has_code_for_the_simulation() ? cmocka_run_group_tests(tests, load_libraries, NULL)
                                         : cmocka_run_group_tests(none, NULL, NULL);
}
