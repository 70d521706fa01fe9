/* SPDX-License-Identifier: Apache-2.0
 *
 * test_self_test.c: when a GPU is tested, what is recorded, and what is reported, on the simulated driver and cuBLASLt.
 * tests/device/device_self_test.sh tests the kernels of the self-test.
 */
#include "cuda_sim.h"

#include <dirent.h>
#include <stdbool.h>

#include "cuda/backend.h"
#include "selftest/cases.h"

/* State of the replacement of nj_self_test(). */
static int tries, answer;

static int pretend(nj_context *ctx, struct nj_self_test *t)
{
    (void)ctx;
    tries++;
    t->kernels = 3;
    t->gemms = 2;
    snprintf(t->why, sizeof t->why, "add.f32 [N=1]: y[0]: got 1, want 2");
    return answer;
}

static struct nj_options options;

static int begin(void **state)
{
    static const char *const settings[] = {"NOJIT_SELF_TEST", "NOJIT_SIM_CUDA"};
    static char cache[128];
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        unsetenv(settings[i]);
    tries = answer = 0;
    if (scratch_begin(state) != 0)
        return -1;
    snprintf(cache, sizeof cache, "%s/cache", scratch);
    options =
        (struct nj_options){.device = NJ_DEVICE_CUDA, .cache_folder = cache, .self_test = pretend};
    return afresh(state);
}

/* Open the GPU, and close it. */
static struct nj_self_test_record start(void)
{
    nj_context *ctx = open_context(&options);
    const struct nj_self_test_record was = nj_context_device(ctx)->self_test;
    nj_context_destroy(ctx);
    return was;
}

static void refuse_start(int code, char *sentence, size_t bytes)
{
    nj_context *ctx;
    assert_int_equal(nj_context_create(&ctx, &options), code);
    snprintf(sentence, bytes, "%s", nj_context_error(ctx));
    nj_context_destroy(ctx);
    assert_int_equal(sim->live, 0);
    assert_int_equal(*lt_live, 0);
}

/* Find the one file in the cache; return false if there is none. */
static bool find_record(char *path, size_t bytes)
{
    DIR *cache = opendir(options.cache_folder);
    const struct dirent *e;
    int found = 0;
    while (cache && (e = readdir(cache)) != NULL)
        if (e->d_name[0] != '.' && found++ == 0)
            snprintf(path, bytes, "%s/%s", options.cache_folder, e->d_name);
    if (cache)
        closedir(cache);
    assert_true(found <= 1);
    return found == 1;
}

static void a_gpu_that_passed_is_not_tried_again(void **state)
{
    (void)state;
    const struct nj_self_test_record first = start(), second = start();
    assert_int_equal(tries, 1);
    assert_int_equal(first.state, NJ_SELF_TEST_NOW);
    assert_int_equal(second.state, NJ_SELF_TEST_BEFORE);
    assert_string_equal(second.at, first.at);
    assert_int_equal(strlen(first.at), strlen("2026-11-27T09:30:00Z"));
    assert_int_equal(second.kernels, 3);
    assert_int_equal(second.gemms, 2);
    assert_int_equal(second.spares, 0);
}

static void another_driver_library_or_card_is_tried(void **state)
{
    (void)state;
    start();
    setenv("NOJIT_SIM_CUDA", "13010", 1);
    start();
    assert_int_equal(tries, 2);
    setenv("NOJIT_SIM_LT_VERSION", "130200", 1);
    start();
    assert_int_equal(tries, 3);
    setenv("NOJIT_SIM_DEVICE", "h100,h100", 1);
    start();
    assert_int_equal(tries, 3);
    options.ordinal = 1;
    start();
    assert_int_equal(tries, 4);
}

static void another_build_is_tried(void **state)
{
    (void)state;
    char key[2][40];
    nj_context *ctx = open_context(&options);
    for (uint64_t build = 0; build < 2; build++) {
        nj_cuda_cache_key(ctx, build);
        snprintf(key[build], sizeof key[build], "%s", nj_context_device(ctx)->cache_key);
    }
    nj_context_destroy(ctx);
    assert_string_not_equal(key[0], key[1]);
}

static void a_gpu_that_failed_is_refused_by_name_and_not_kept(void **state)
{
    static const char *const says[] = {"Simulated NVIDIA H100",
                                       "sm_90a",
                                       "for CUDA 13.0",
                                       "cuBLASLt 13.1.0",
                                       "ptxas ",
                                       "add.f32 [N=1]: y[0]: got 1, want 2",
                                       "`nojit doctor --self-test`",
                                       "--device cpu"};
    (void)state;
    char sentence[NJ_SENTENCE_BYTES], path[600];
    answer = NJ_E_DEVICE;
    refuse_start(NJ_E_DEVICE, sentence, sizeof sentence);
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (!strstr(sentence, says[i]))
            fail_msg("no '%s' in: %s", says[i], sentence);
    assert_false(find_record(path, sizeof path));
    refuse_start(NJ_E_DEVICE, sentence, sizeof sentence);
    assert_int_equal(tries, 2);
}

static void a_self_test_that_is_switched_off_is_said(void **state)
{
    (void)state;
    char sentence[NJ_SENTENCE_BYTES], path[600];
    setenv("NOJIT_SELF_TEST", "off", 1);
    assert_int_equal(start().state, NJ_SELF_TEST_SKIPPED);
    assert_int_equal(tries, 0);
    assert_false(find_record(path, sizeof path));
    setenv("NOJIT_SELF_TEST", "maybe", 1);
    refuse_start(NJ_E_ARG, sentence, sizeof sentence);
    assert_string_equal(sentence, "NOJIT_SELF_TEST=maybe: must be on or off");
    setenv("NOJIT_SELF_TEST", "on", 1);
    assert_int_equal(start().state, NJ_SELF_TEST_NOW);
    setenv("NOJIT_SELF_TEST", "off", 1);
    assert_int_equal(start().state, NJ_SELF_TEST_BEFORE);
    options.self_test = NULL;
    assert_int_equal(start().state, NJ_SELF_TEST_NONE);
}

static void a_damaged_record_is_as_none(void **state)
{
    (void)state;
    char path[600], text[600] = "";
    start();
    assert_true(find_record(path, sizeof path));
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    const size_t bytes = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    for (size_t kept = 0; kept < bytes; kept += 7) {
        write_bytes(path, text, kept);
        tries = 0;
        start();
        assert_int_equal(tries, 1);
    }
    text[bytes] = 'x';
    write_bytes(path, text, bytes + 1);
    start();
    assert_int_equal(tries, 2);
    start();
    assert_int_equal(tries, 2);
}

/* A requested self-test runs on a GPU that has passed, and on one for which it is switched off. */
static void a_gpu_that_fails_later_loses_its_record(void **state)
{
    (void)state;
    char sentence[NJ_SENTENCE_BYTES], path[600];
    start();
    options.retest = 1;
    setenv("NOJIT_SELF_TEST", "off", 1);
    assert_int_equal(start().state, NJ_SELF_TEST_NOW);
    assert_int_equal(tries, 2);
    assert_true(find_record(path, sizeof path));
    answer = NJ_E_DEVICE;
    refuse_start(NJ_E_DEVICE, sentence, sizeof sentence);
    assert_false(find_record(path, sizeof path));
}

static void without_a_cache_folder_every_start_tries(void **state)
{
    (void)state;
    options.cache_folder = NULL;
    start();
    start();
    assert_int_equal(tries, 2);
}

/* ---- GEMMs ---- */

struct heard {
    char names[4096];
    uint32_t wrong;
};

static void hear(void *user, const struct nj_device_info *device, const struct nj_trial *t)
{
    struct heard *h = user;
    const size_t used = strlen(h->names);
    (void)device;
    if (t->verdict != NJ_PASSED)
        print_message("%s [%s]: %s\n", t->name, t->label, t->wrong);
    h->wrong += t->verdict != NJ_PASSED;
    snprintf(h->names + used, sizeof h->names - used, "%s [%s]\n", t->name, t->label);
}

static void try_gemms(const char *device, struct nj_self_test *t)
{
    nj_stream *s;
    options.self_test = NULL;
    setenv("NOJIT_SIM_DEVICE", device, 1);
    nj_context *ctx = open_context(&options);
    assert_int_equal(nj_stream_create(ctx, &s), 0);
    assert_int_equal(nj_selftest_gemms(ctx, s, t), 0);
    nj_stream_destroy(s);
    nj_context_destroy(ctx);
    assert_int_equal(sim->live, 0);
    assert_int_equal(*lt_live, 0);
}

static void gemms_of_each_kind_and_type_are_tried(void **state)
{
    static const struct {
        const char *device, *lp;
        const char *f8[5]; /* and no others */
    } gpus[] = {
        {"t4", "float16", {NULL}},
        {"rtx4090",
         "bfloat16",
         {"e4m3 (one scale) to bfloat16", "e4m3 (one scale) to float32",
          "e5m2 x e4m3 (one scale) to bfloat16", "e5m2 x e4m3 (one scale) to float32"}},
        {"h100",
         "bfloat16",
         {"e4m3 (rows) to bfloat16", "e4m3 (one scale) to bfloat16", "e4m3 (one scale) to float32",
          "e5m2 x e4m3 (one scale) to bfloat16", "e5m2 x e4m3 (one scale) to float32"}},
        {"gb10", "bfloat16", {"e4m3 (blocks) to bfloat16", "e4m3 (blocks) to float32"}},
    };
    static const char *const kinds[] = {"NT", "NN", "TN"};
    (void)state;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        struct heard heard = {.wrong = 0};
        struct nj_self_test t = {.tried = hear, .user = &heard};
        uint32_t count = 0;
        char name[128];
        try_gemms(gpus[i].device, &t);
        for (int kind = 0; kind < 3; kind++) {
            snprintf(name, sizeof name, "GEMM %s float32 [517 x 1040 x 64]\n", kinds[kind]);
            assert_non_null(strstr(heard.names, name));
            snprintf(name, sizeof name, "GEMM %s %s [67 x 144 x 64]\n", kinds[kind], gpus[i].lp);
            assert_non_null(strstr(heard.names, name));
            snprintf(name, sizeof name, "GEMM %s %s to float32 [", kinds[kind], gpus[i].lp);
            assert_non_null(strstr(heard.names, name));
        }
        for (; count < 5 && gpus[i].f8[count]; count++) {
            snprintf(name, sizeof name, "GEMM NT %s [", gpus[i].f8[count]);
            if (!strstr(heard.names, name))
                fail_msg("%s: no '%s' in: %s", gpus[i].device, name, heard.names);
        }
        assert_int_equal(heard.wrong, 0);
        assert_int_equal(t.gemms, 2 * (9 + count));
    }
}

/* FP8 only affects speed: a GPU is usable without FP8 GEMMs in its library. */
static void fp8_gemms_that_a_library_lacks_are_no_failure(void **state)
{
    (void)state;
    struct nj_self_test t = {.all = 0};
    setenv("NOJIT_SIM_LT_NO_F8", "0:0:0", 1);
    try_gemms("gb10", &t);
    unsetenv("NOJIT_SIM_LT_NO_F8");
    assert_int_equal(t.gemms, 2 * 9);
    assert_int_equal(t.failed, 0);
}

/* Return whether this build has code for these GPUs; builds with other ARCHS do not. */
static bool has_code(int sm)
{
    char why[NJ_SENTENCE_BYTES];
    struct nj_index index;
    return nj_index_embedded(&index, why) == 0 && nj_index_arch_for(&index, sm) >= 0;
}

static void not_tried_without_code_for_these_gpus(void **state)
{
    (void)state;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, scratch_end)

int main(void)
{
    const struct CMUnitTest none[] = {cmocka_unit_test(not_tried_without_code_for_these_gpus)};
    const struct CMUnitTest tests[] = {
        TEST(a_gpu_that_passed_is_not_tried_again),
        TEST(another_driver_library_or_card_is_tried),
        TEST(another_build_is_tried),
        TEST(a_gpu_that_failed_is_refused_by_name_and_not_kept),
        TEST(a_self_test_that_is_switched_off_is_said),
        TEST(a_damaged_record_is_as_none),
        TEST(a_gpu_that_fails_later_loses_its_record),
        TEST(without_a_cache_folder_every_start_tries),
        TEST(gemms_of_each_kind_and_type_are_tried),
        TEST(fp8_gemms_that_a_library_lacks_are_no_failure),
    };
    return has_code(75) && has_code(89) && has_code(90) && has_code(121)
               ? cmocka_run_group_tests(tests, load_libraries, NULL)
               : cmocka_run_group_tests(none, NULL, NULL);
}
