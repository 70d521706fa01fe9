/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gemm_table.c: chosen algorithms in a file: what is written is read, for the same device and
 * library only; torn and foreign files do no harm. On a GPU also that timing is not repeated.
 */
#include "unit.h"

#include "device_fixture.h"
#include "internal.h"

#include <sys/stat.h>

enum { RUNS = 2 };

static nj_context *open_context(enum nj_device_kind kind, int tune)
{
    const struct nj_options options = {.device = kind, .gemm_tune = tune};
    nj_context *ctx = NULL;
    int rc = nj_context_create(&ctx, &options);

    if (rc == 0)
        return ctx;
    nj_context_destroy(ctx);
    if (may_be_absent(kind, rc))
        skip();
    fail_msg("%s", nj_error_name(rc));
    return NULL;
}

static void fill(unsigned char *choice, int seed)
{
    for (int i = 0; i < NJ_GEMM_CHOICE_BYTES; i++)
        choice[i] = (unsigned char)(seed * 31 + i * 7);
}

/* A file with two choices. */
static void write_two(const char *path)
{
    unsigned char choice[NJ_GEMM_CHOICE_BYTES];
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);

    unlink(path); /* what an earlier test left may be of another device */
    fill(choice, 1);
    assert_int_equal(nj_gemm_choose(ctx, "NT one", choice), 0);
    fill(choice, 2);
    assert_int_equal(nj_gemm_choose(ctx, "NN two", choice), 0);
    assert_int_equal(nj_gemm_table_write(ctx, path), 0);
    nj_context_destroy(ctx);
}

static void test_written_is_read(void **state)
{
    unsigned char choice[NJ_GEMM_CHOICE_BYTES];
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);

    (void)state;
    write_two(at("table"));
    assert_int_equal(nj_gemm_table_read(ctx, at("table")), 2);
    fill(choice, 2);
    assert_memory_equal(nj_gemm_choice(ctx, "NN two"), choice, sizeof choice);
    fill(choice, 1);
    assert_memory_equal(nj_gemm_choice(ctx, "NT one"), choice, sizeof choice);
    assert_null(nj_gemm_choice(ctx, "NT"));
    /* Again it adds nothing. */
    assert_int_equal(nj_gemm_table_read(ctx, at("table")), 0);
    nj_context_destroy(ctx);
}

static void test_the_first_to_speak_counts(void **state)
{
    unsigned char choice[NJ_GEMM_CHOICE_BYTES];
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);

    (void)state;
    write_two(at("table"));
    fill(choice, 9);
    assert_int_equal(nj_gemm_choose(ctx, "NT one", choice), 0);
    assert_int_equal(nj_gemm_table_read(ctx, at("table")), 1);
    assert_memory_equal(nj_gemm_choice(ctx, "NT one"), choice, sizeof choice);
    nj_context_destroy(ctx);
}

/* Replaces the first `from` in the file. */
static void change(const char *path, const char *from, const char *to)
{
    char text[4096] = "";
    FILE *f = fopen(path, "rb");

    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    char *found = strstr(text, from);
    assert_non_null(found);
    f = fopen(path, "wb");
    assert_non_null(f);
    fprintf(f, "%.*s%s%s", (int)(found - text), text, to, found + strlen(from));
    fclose(f);
}

static void test_another_device_or_library_is_left(void **state)
{
    static const char *const changes[][2] = {
        {"nojit-gemm 1", "nojit-gemm 2"}, {"device ", "device other "}, {"library ", "library 9"}};

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);

        write_two(at("table"));
        change(at("table"), changes[i][0], changes[i][1]);
        assert_int_equal(nj_gemm_table_read(ctx, at("table")), 0);
        assert_null(nj_gemm_choice(ctx, "NT one"));
        nj_context_destroy(ctx);
    }
}

static void test_a_torn_file_gives_what_is_whole(void **state)
{
    struct stat info;

    (void)state;
    write_two(at("table"));
    assert_int_equal(stat(at("table"), &info), 0);
    for (off_t bytes = info.st_size - 1; bytes >= 0; bytes--) {
        nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);

        assert_int_equal(truncate(at("table"), bytes), 0);
        int count = nj_gemm_table_read(ctx, at("table"));
        assert_in_range(count, 0, 1);
        assert_int_equal(count, nj_gemm_choice(ctx, "NT one") != NULL);
        assert_null(nj_gemm_choice(ctx, "NN two"));
        nj_context_destroy(ctx);
    }
}

static void test_nothing_known_leaves_the_file(void **state)
{
    struct stat before, after;
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);

    (void)state;
    write_two(at("table"));
    assert_int_equal(stat(at("table"), &before), 0);
    assert_int_equal(nj_gemm_table_write(ctx, at("table")), 0);
    assert_int_equal(stat(at("table"), &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(nj_gemm_table_read(ctx, at("no such table")), 0);
    nj_context_destroy(ctx);
}

static void test_what_is_of_others_is_left(void **state)
{
    unsigned char choice[NJ_GEMM_CHOICE_BYTES] = {1};
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);

    (void)state;
    assert_int_equal(nj_gemm_choose(ctx, "NT one", choice), 0);
    write_two(at("others"));
    change(at("others"), "device ", "device other ");
    assert_int_equal(nj_gemm_table_write(ctx, at("others")), NJ_E_FORMAT);
    assert_non_null(strstr(nj_context_error(ctx), "others is no table of this GPU"));
    write_text(at("letter"), "Dear reader");
    assert_int_equal(nj_gemm_table_write(ctx, at("letter")), NJ_E_FORMAT);
    write_text(at("empty"), "");
    assert_int_equal(nj_gemm_table_write(ctx, at("empty")), 0);
    nj_context_destroy(ctx);
}

static void test_no_place_is_an_error(void **state)
{
    unsigned char choice[NJ_GEMM_CHOICE_BYTES] = {1};
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);

    (void)state;
    assert_int_equal(nj_gemm_choose(ctx, "NT one", choice), 0);
    assert_int_equal(nj_gemm_table_write(ctx, at("no folder/table")), NJ_E_IO);
    assert_non_null(strstr(nj_context_error(ctx), "no folder/table"));
    nj_context_destroy(ctx);
}

static void test_timing_is_not_repeated(void **state)
{
    const struct nj_gemm g = {.kind = NJ_GEMM_NT,
                              .ab_dtype = NJ_LP,
                              .c_dtype = NJ_LP,
                              .M = 1024,
                              .N = 896,
                              .K = 896,
                              .lda = 896,
                              .ldb = 896,
                              .ldc = 896};
    unsigned char choice[RUNS][NJ_GEMM_CHOICE_BYTES];

    (void)state;
    for (int run = 0; run < RUNS; run++) {
        nj_context *ctx = open_context(NJ_DEVICE_CUDA, 1);

        assert_int_equal(nj_gemm_table_read(ctx, at("gpu")), run);
        assert_int_equal(nj_gemm_prepare(ctx, &g), 0);
        assert_int_equal(nj_context_device(ctx)->gemms_timed, 1 - run);
        assert_int_equal(ctx->choices.count, 1);
        memcpy(choice[run], ctx->choices.row[0].choice, sizeof choice[run]);
        assert_int_equal(nj_gemm_table_write(ctx, at("gpu")), 0);
        nj_context_destroy(ctx);
    }
    assert_memory_equal(choice[0], choice[1], sizeof choice[0]);
}

/* A choice that the library refuses is made again. */
static void test_a_bad_choice_is_made_again(void **state)
{
    const struct nj_gemm g = {.kind = NJ_GEMM_NT,
                              .ab_dtype = NJ_LP,
                              .c_dtype = NJ_LP,
                              .M = 256,
                              .N = 128,
                              .K = 64,
                              .lda = 64,
                              .ldb = 64,
                              .ldc = 128};
    unsigned char bad[NJ_GEMM_CHOICE_BYTES];
    nj_context *ctx = open_context(NJ_DEVICE_CUDA, 1);

    (void)state;
    assert_int_equal(nj_gemm_prepare(ctx, &g), 0);
    memset(bad, 0xee, sizeof bad);
    memcpy(ctx->choices.row[0].choice, bad, sizeof bad);
    assert_int_equal(nj_gemm_table_write(ctx, at("bad")), 0);
    nj_context_destroy(ctx);
    ctx = open_context(NJ_DEVICE_CUDA, 1);
    assert_int_equal(nj_gemm_table_read(ctx, at("bad")), 1);
    assert_int_equal(nj_gemm_prepare(ctx, &g), 0);
    assert_int_equal(nj_context_device(ctx)->gemms_timed, 1);
    assert_memory_not_equal(ctx->choices.row[0].choice, bad, sizeof bad);
    nj_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_is_read),
        cmocka_unit_test(test_the_first_to_speak_counts),
        cmocka_unit_test(test_another_device_or_library_is_left),
        cmocka_unit_test(test_a_torn_file_gives_what_is_whole),
        cmocka_unit_test(test_nothing_known_leaves_the_file),
        cmocka_unit_test(test_what_is_of_others_is_left),
        cmocka_unit_test(test_no_place_is_an_error),
        cmocka_unit_test(test_timing_is_not_repeated),
        cmocka_unit_test(test_a_bad_choice_is_made_again),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
