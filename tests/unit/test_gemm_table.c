/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gemm_table.c: chosen algorithms in a file: they are read back for the same device and library only; torn and
 * foreign files do no harm. On a GPU, also that timing is not repeated.
 */
#include "unit.h"

#include "device_fixture.h"
#include "internal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { RUNS = 2, WRITERS = 6, ROWS = 1000 };

/* Calls of the runtime are intercepted here: they count compared shapes, and record what had been flushed when a file
 * was renamed. */
static size_t compared;
static int flushed, flushed_before_rename;

int strcmp(const char *a, const char *b)
{
    compared++;
    for (; *a && *a == *b; a++)
        b++;
    return (unsigned char)*a - (unsigned char)*b;
}

int fsync(int fd)
{
    flushed++;
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    flushed_before_rename = flushed;
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

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

/* Write a file with two choices. */
static void write_two(const char *path)
{
    unsigned char choice[NJ_GEMM_CHOICE_BYTES];
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);

    unlink(path); /* an earlier test may have left the table of another device */
    fill(choice, 1);
    assert_int_equal(nj_gemm_choose(ctx, "NT one", choice), 0);
    fill(choice, 2);
    assert_int_equal(nj_gemm_choose(ctx, "NN two", choice), 0);
    assert_int_equal(nj_gemm_table_write(ctx, path), 0);
    nj_context_destroy(ctx);
}

static void a_written_table_of_gemms_is_read(void **state)
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
    /* Reading it again adds nothing. */
    assert_int_equal(nj_gemm_table_read(ctx, at("table")), 0);
    nj_context_destroy(ctx);
}

static void the_first_choice_of_a_gemm_counts(void **state)
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

/* Replace the first `from` in the file. */
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

static void choices_of_another_device_or_library_are_left(void **state)
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

static void a_torn_table_gives_what_is_whole(void **state)
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

static void a_table_is_left_where_nothing_is_known(void **state)
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

static void rows_of_others_in_a_table_are_left(void **state)
{
    unsigned char choice[NJ_GEMM_CHOICE_BYTES] = {1};
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);

    (void)state;
    assert_int_equal(nj_gemm_choose(ctx, "NT one", choice), 0);
    write_two(at("others"));
    change(at("others"), "device ", "device other ");
    assert_int_equal(nj_gemm_table_write(ctx, at("others")), NJ_E_FORMAT);
    assert_non_null(strstr(nj_context_error(ctx), "others is not a table of this GPU"));
    write_text(at("letter"), "Dear reader");
    assert_int_equal(nj_gemm_table_write(ctx, at("letter")), NJ_E_FORMAT);
    write_text(at("empty"), "");
    assert_int_equal(nj_gemm_table_write(ctx, at("empty")), 0);
    nj_context_destroy(ctx);
}

static void a_table_without_a_place_is_an_error(void **state)
{
    unsigned char choice[NJ_GEMM_CHOICE_BYTES] = {1};
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);

    (void)state;
    assert_int_equal(nj_gemm_choose(ctx, "NT one", choice), 0);
    assert_int_equal(nj_gemm_table_write(ctx, at("no folder/table")), NJ_E_IO);
    assert_non_null(strstr(nj_context_error(ctx), "no folder/table"));
    nj_context_destroy(ctx);
}

/* Write a table of so many rows. Return how many shapes are compared when it is read. */
static size_t comparisons_of(int rows)
{
    unsigned char choice[NJ_GEMM_CHOICE_BYTES] = {1};
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);
    char shape[32];

    unlink(at("long"));
    for (int i = 0; i < rows; i++) {
        snprintf(shape, sizeof shape, "NT %d", i);
        assert_int_equal(nj_gemm_choose(ctx, shape, choice), 0);
    }
    assert_int_equal(nj_gemm_table_write(ctx, at("long")), 0);
    nj_context_destroy(ctx);
    ctx = open_context(NJ_DEVICE_CPU, 0);
    compared = 0;
    assert_int_equal(nj_gemm_table_read(ctx, at("long")), rows);
    const size_t n = compared;
    nj_context_destroy(ctx);
    return n;
}

static void gemms_of_twice_the_rows_take_twice_as_long(void **state)
{
    const size_t once = comparisons_of(ROWS), twice = comparisons_of(2 * ROWS);

    (void)state;
    assert_in_range(once, ROWS, 60 * ROWS);
    assert_in_range(twice, once, once * 5 / 2);
}

static void files_that_are_no_table_of_gemms_are_refused(void **state)
{
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);
    static const char *const names[] = {"huge", "pipe", "."};

    (void)state;
    write_two(at("huge"));
    assert_int_equal(truncate(at("huge"), (16 << 20) + 1), 0);
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unsigned char choice[NJ_GEMM_CHOICE_BYTES] = {1};

        assert_int_equal(nj_gemm_table_read(ctx, at(names[i])), NJ_E_FORMAT);
        assert_non_null(strstr(nj_context_error(ctx), "a file of at most 16 MiB"));
        assert_int_equal(nj_gemm_choose(ctx, "NT one", choice), 0);
        assert_int_equal(nj_gemm_table_write(ctx, at(names[i])), NJ_E_FORMAT);
        nj_gemm_choices_free(ctx);
    }
    nj_context_destroy(ctx);
}

/* Two writers act like runs that start at the same time. */
static void writers_of_a_table_keep_each_others_rows(void **state)
{
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);
    unsigned char choice[NJ_GEMM_CHOICE_BYTES] = {1};
    char shape[32];
    int status;

    (void)state;
    write_two(at("shared"));
    for (int i = 0; i < WRITERS; i++) {
        if (fork() != 0)
            continue;
        snprintf(shape, sizeof shape, "NT writer %d", i);
        nj_gemm_choose(ctx, shape, choice);
        _exit(nj_gemm_table_write(ctx, at("shared")) != 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(nj_gemm_table_read(ctx, at("shared")), 2 + WRITERS);
    nj_context_destroy(ctx);
}

static void a_table_of_gemms_is_replaced_whole(void **state)
{
    nj_context *ctx = open_context(NJ_DEVICE_CPU, 0);
    unsigned char choice[NJ_GEMM_CHOICE_BYTES] = {1};
    char link[4200], text[16] = "";
    struct stat info;
    FILE *f;

    (void)state;
    write_text(at("victim"), "of others");
    snprintf(link, sizeof link, "%s.tmp-%ld", at("whole"), (long)getpid());
    assert_int_equal(symlink(at("victim"), link), 0);
    write_text(at("whole"), "");
    assert_int_equal(chmod(at("whole"), 0640), 0);
    assert_int_equal(nj_gemm_choose(ctx, "NT one", choice), 0);
    flushed = flushed_before_rename = 0;
    assert_int_equal(nj_gemm_table_write(ctx, at("whole")), 0);
    assert_int_equal(flushed_before_rename, 1);
    assert_int_equal(stat(at("whole"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    f = fopen(at("victim"), "re");
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    assert_string_equal(text, "of others");
    nj_context_destroy(ctx);
}

static void the_timing_of_gemms_is_not_repeated(void **state)
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
        memcpy(choice[run], ctx->choices.row[0]->choice, sizeof choice[run]);
        assert_int_equal(nj_gemm_table_write(ctx, at("gpu")), 0);
        nj_context_destroy(ctx);
    }
    assert_memory_equal(choice[0], choice[1], sizeof choice[0]);
}

/* A choice that the library refuses is replaced. */
static void a_bad_choice_of_a_gemm_is_made_again(void **state)
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
    memcpy(ctx->choices.row[0]->choice, bad, sizeof bad);
    assert_int_equal(nj_gemm_table_write(ctx, at("bad")), 0);
    nj_context_destroy(ctx);
    ctx = open_context(NJ_DEVICE_CUDA, 1);
    assert_int_equal(nj_gemm_table_read(ctx, at("bad")), 1);
    assert_int_equal(nj_gemm_prepare(ctx, &g), 0);
    assert_int_equal(nj_context_device(ctx)->gemms_timed, 1);
    assert_memory_not_equal(ctx->choices.row[0]->choice, bad, sizeof bad);
    nj_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_table_of_gemms_is_read),
        cmocka_unit_test(the_first_choice_of_a_gemm_counts),
        cmocka_unit_test(choices_of_another_device_or_library_are_left),
        cmocka_unit_test(a_torn_table_gives_what_is_whole),
        cmocka_unit_test(a_table_is_left_where_nothing_is_known),
        cmocka_unit_test(rows_of_others_in_a_table_are_left),
        cmocka_unit_test(a_table_without_a_place_is_an_error),
        cmocka_unit_test(gemms_of_twice_the_rows_take_twice_as_long),
        cmocka_unit_test(files_that_are_no_table_of_gemms_are_refused),
        cmocka_unit_test(writers_of_a_table_keep_each_others_rows),
        cmocka_unit_test(a_table_of_gemms_is_replaced_whole),
        cmocka_unit_test(the_timing_of_gemms_is_not_repeated),
        cmocka_unit_test(a_bad_choice_of_a_gemm_is_made_again),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
