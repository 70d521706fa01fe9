/* SPDX-License-Identifier: Apache-2.0
 *
 * test_splits.c: splits of a data set that lie in one folder are not read together.
 */
#include "data/token_files.h"
#include "unit.h"

#include <sys/stat.h>

enum { FILES_MOST = 8 };
static const struct {
    const char *files[FILES_MOST]; /* files of the folder */
    enum data_split wanted, instead;
    const char *got;  /* names of the files that are read; NULL: refused */
    const char *said; /* note, or reason of the refusal */
} folders[] = {
    {{"test-00000-of-00001.parquet", "train-00000-of-00002.parquet",
      "train-00001-of-00002.parquet"},
     SPLIT_TRAIN,
     SPLIT_AUTO,
     "train-00000-of-00002.parquet train-00001-of-00002.parquet ",
     ": the split train is read (2 files); not read: test (1 file)"},
    {{"test.jsonl", "train.jsonl"},
     SPLIT_TEST,
     SPLIT_AUTO,
     "test.jsonl ",
     "the split test is read"},
    {{"test.jsonl", "train.jsonl", "valid.jsonl.gz"},
     SPLIT_VALIDATION,
     SPLIT_TEST,
     "valid.jsonl.gz ",
     "not read: train (1 file), test (1 file)"},
    {{"test.jsonl", "train.jsonl"}, SPLIT_VALIDATION, SPLIT_TEST, "test.jsonl ", "the split test"},
    {{"test.jsonl", "train.jsonl"},
     SPLIT_AUTO,
     SPLIT_AUTO,
     NULL,
     ": holds splits that are not read together: train (1 file), test (1 file); choose one by "
     "--split, or name files"},
    {{"dev/a.jsonl", "training/a.jsonl", "training/b.jsonl"},
     SPLIT_TRAIN,
     SPLIT_AUTO,
     "training/a.jsonl training/b.jsonl ",
     "not read: validation (1 file)"},
    {{"alpaca_test.jsonl", "alpaca_train.jsonl", "more.jsonl"},
     SPLIT_TRAIN,
     SPLIT_AUTO,
     "alpaca_train.jsonl ",
     "not read: test (1 file), others (1 file)"},
    {{"data.jsonl", "test.jsonl"}, SPLIT_TRAIN, SPLIT_AUTO, NULL, "test (1 file), others (1 file)"},
    {{"notes.txt", "test.txt"}, SPLIT_TRAIN, SPLIT_AUTO, "notes.txt test.txt ", ""},
    {{"trainer.jsonl", "tests.jsonl"}, SPLIT_TRAIN, SPLIT_AUTO, "tests.jsonl trainer.jsonl ", ""},
    {{"train-1.jsonl", "train-2.jsonl", "more.txt"},
     SPLIT_AUTO,
     SPLIT_AUTO,
     "more.txt train-1.jsonl train-2.jsonl ",
     ""},
};

static void write_files(const char *dir, const char *const *files)
{
    char path[128];
    make_folder(dir);
    for (int i = 0; i < FILES_MOST && files[i]; i++) {
        const char *slash = strchr(files[i], '/');
        snprintf(path, sizeof path, "%s/%.*s", dir, slash ? (int)(slash - files[i]) : 0, files[i]);
        mkdir(at(path), 0777); /* it may exist */
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        write_text(at(path), "{\"text\": \"a\"}\n");
    }
}

static void one_split_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char dir[32], got[512] = "";
        struct file_list list;
        struct passed_over passed = {0};
        const struct split_choice choice = {folders[i].wanted, folders[i].instead};
        snprintf(dir, sizeof dir, "folder%zu", i);
        write_files(dir, folders[i].files);
        const char *path = at(dir);
        const int rc = files_collect(&path, 1, &choice, &list, &passed);
        if (!folders[i].got) {
            check_refused(rc, NJ_E_FORMAT, folders[i].said, dir);
            continue;
        }
        check_ok(rc, dir);
        for (size_t k = 0; k < list.count; k++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s ",
                     list.path[k] + strlen(path) + 1);
        assert_string_equal(got, folders[i].got);
        if (!strstr(passed.split, folders[i].said) ||
            (*folders[i].said == '\0') != (*passed.split == '\0'))
            fail_msg("%s: '%s'", dir, passed.split);
        files_free(&list);
    }
}

/* A named file is read, whatever its name. */
static void named_files_are_read_together(void **state)
{
    (void)state;
    static const char *const files[FILES_MOST] = {"test.jsonl", "train.jsonl"};
    const struct split_choice choice = {SPLIT_TRAIN, SPLIT_AUTO};
    struct file_list list;
    char train[512], test[512], pattern[512];
    write_files("named", files);
    snprintf(train, sizeof train, "%s/train.jsonl", at("named"));
    snprintf(test, sizeof test, "%s/test.jsonl", at("named"));
    snprintf(pattern, sizeof pattern, "%s/*.jsonl", at("named"));
    const char *const both[] = {train, test}, *const one[] = {pattern};
    check_ok(files_collect(both, 2, &choice, &list, NULL), "named");
    assert_int_equal(list.count, 2);
    files_free(&list);
    check_ok(files_collect(one, 1, &choice, &list, NULL), "pattern");
    assert_int_equal(list.count, 2);
    files_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_split_is_read),
        cmocka_unit_test(named_files_are_read_together),
    };
    return cmocka_run_group_tests_name("splits", tests, scratch_begin, scratch_end);
}
