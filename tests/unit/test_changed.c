/* SPDX-License-Identifier: Apache-2.0
 *
 * test_changed.c: files that are changed while they are in use cause an error message, never a crash.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "batch/data.h"
#include "data/data_file.h"
#include "formats/gguf_write.h"
#include "formats/safetensors.h"
#include "hash_tensors.h"
#include "unit.h"

enum { VOCABULARY = 1000, ROW = 512, TOKENS = 8 * ROW + 1 };

static int begin(void **state)
{
    return scratch_begin(state);
}

static void write_ids(const char *path, int count)
{
    static uint16_t ids[TOKENS];
    for (int i = 0; i < count; i++)
        ids[i] = (uint16_t)(1 + i % (VOCABULARY - 1));
    write_bytes(path, ids, (size_t)count * sizeof *ids);
}

static struct data *open_ids(const char *path, int seq_len)
{
    struct data *d = NULL;
    const struct data_options o = {.paths = &path,
                                   .path_count = 1,
                                   .seq_len = seq_len,
                                   .batch_size = 1,
                                   .vocab_size = VOCABULARY};
    check_ok(data_open(&o, NULL, &d), path);
    return d;
}

/* The cut may be within a page, where a mapped file would show zeros. */
static void shorter_token_files_are_told(void **state)
{
    static const int left[] = {0, 1, 2 * TOKENS - 1};
    (void)state;
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        write_ids(at("t.u16"), TOKENS);
        struct data *d = open_ids(at("t.u16"), ROW);
        struct batch b;
        assert_int_equal(batches_next(data_batches(d), &b), 0);
        assert_int_equal(truncate(at("t.u16"), left[i]), 0);
        int rc = 0;
        for (int row = 1; row < 8 && rc == 0; row++)
            rc = batches_next(data_batches(d), &b);
        check_refused(rc, NJ_E_IO, "the file was truncated", "t.u16");
        write_ids(at("t.u16"), TOKENS);
        batches_seek(data_batches(d), &(struct data_state){0});
        assert_int_equal(batches_next(data_batches(d), &b), 0);
        assert_int_equal(b.ids[ROW - 1], ROW);
        data_close(d);
    }
}

/* The file that was checked is the one that is read. */
static void a_replaced_token_file_stays(void **state)
{
    struct batch b;
    (void)state;
    write_ids(at("r.u16"), TOKENS);
    struct data *d = open_ids(at("r.u16"), ROW);
    const uint64_t hash = data_hash(d);
    write_text(at("other"), "xxxx");
    assert_int_equal(rename(at("other"), at("r.u16")), 0);
    for (int row = 0; row < 8; row++)
        assert_int_equal(batches_next(data_batches(d), &b), 0);
    assert_int_equal(b.ids[0], 1 + (7 * ROW) % (VOCABULARY - 1));
    assert_true(data_hash(d) == hash);
    data_close(d);
}

static void many_token_files_stay_open(void **state)
{
    enum { FILES = 60 };
    struct rlimit before, limit;
    struct batch b;
    (void)state;
    make_folder("many");
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "many/%02d.u16", i);
        write_ids(at(name), ROW);
    }
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = FILES / 2;
    setrlimit(RLIMIT_NOFILE, &limit);
    struct data *d = open_ids(at("many"), ROW);
    assert_int_equal(data_windows(d), FILES - 1);
    for (int row = 0; row < FILES - 1; row++)
        assert_int_equal(batches_next(data_batches(d), &b), 0);
    data_close(d);
    limit.rlim_max = limit.rlim_cur = FILES / 2;
    pid_t child = fork();
    if (child == 0) { /* the child cannot raise its limit again */
        const char *path = at("many");
        const struct data_options o = {&path, 1, .seq_len = ROW, .batch_size = 1,
                                       .vocab_size = 1000};
        setrlimit(RLIMIT_NOFILE, &limit);
        const int rc = data_open(&o, NULL, &d);
        _exit(rc == NJ_E_IO && strstr(fail_text(), "raise `ulimit -n`") ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    setrlimit(RLIMIT_NOFILE, &before);
}

static void text_is_read_in_parts(void **state)
{
    struct data_file f;
    (void)state;
    write_text(at("parts.txt"), "0123456789");
    check_ok(data_file_open(&f, at("parts.txt")), "open");
    check_ok(data_file_fill(&f, 4), "first");
    assert_int_equal(f.have, 4);
    data_file_skip(&f, 3);
    check_ok(data_file_fill(&f, 5), "second");
    assert_int_equal(f.have, 5);
    assert_memory_equal(f.text, "34567", 5);
    check_ok(data_file_fill(&f, 100), "all");
    assert_int_equal(f.have, 7);
    assert_memory_equal(f.text, "3456789", 7);
    check_ok(data_file_fill(&f, 100), "no more");
    data_file_close(&f);

    check_ok(data_file_open(&f, at("parts.txt")), "again");
    check_ok(data_file_fill(&f, 4), "a part");
    assert_int_equal(truncate(at("parts.txt"), 6), 0);
    check_refused(data_file_fill(&f, 10), NJ_E_IO,
                  "cannot read byte 6 of 10: the file was truncated", "cut");
    data_file_close(&f);
}

/* ---- weights, which are mapped while they are loaded ---- */

static const struct st_declared weights = {"w", NJ_TYPE_F32, 1, {1 << 16}};
static const float zeros[1 << 16];

static void write_safetensors(const char *path)
{
    struct st_writer *w;
    check_ok(st_write_begin(path, &weights, 1, &w), "begin");
    check_ok(st_write_data(w, zeros, sizeof zeros), "data");
    check_ok(st_write_end(w), "end");
}

static void write_gguf(const char *path)
{
    struct gguf_writer *w;
    check_ok(gguf_write_begin(path, &w), "begin");
    check_ok(gguf_write_tensors(w, &weights, 1), "tensors");
    check_ok(gguf_write_data(w, zeros, sizeof zeros), "data");
    check_ok(gguf_write_end(w), "end");
}

static int hash_safetensors(const char *path, const char *cut)
{
    struct tensors w;
    if (st_open_file(path, &w) != 0 || (cut && truncate(cut, 8192) != 0))
        return 2;
    hash_tensors(&w);
    return 0;
}

static int hash_gguf(const char *path, const char *cut)
{
    struct gguf g;
    if (gguf_open(path, &g) != 0 || (cut && truncate(cut, 8192) != 0))
        return 2;
    hash_tensors(&g.tensors);
    return 0;
}

static void shorter_weights_are_told(void **state)
{
    static const struct {
        const char *name;
        void (*write)(const char *path);
        int (*hash)(const char *path, const char *cut); /* the file is cut after it was opened */
    } kinds[] = {{"w.safetensors", write_safetensors, hash_safetensors},
                 {"w.gguf", write_gguf, hash_gguf}};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t bytes;
        int status;
        char sentence[128];
        kinds[i].write(at(kinds[i].name));
        kinds[i].write(at("other"));
        const pid_t child = fork();
        if (child == 0) {
            const int said = open(at("said"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
            if (said < 0 || dup2(said, STDERR_FILENO) < 0 || kinds[i].hash(at("other"), NULL) != 0)
                _exit(2);
            _exit(kinds[i].hash(at(kinds[i].name), at(kinds[i].name)) + 3);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 1);
        char *said = read_bytes(at("said"), &bytes);
        snprintf(sentence, sizeof sentence, "%s: read error: the file was truncated while in use",
                 kinds[i].name);
        assert_non_null(strstr(said, sentence));
        assert_null(strstr(said, "other"));
        free(said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shorter_token_files_are_told),
        cmocka_unit_test(a_replaced_token_file_stays),
        cmocka_unit_test(many_token_files_stay_open),
        cmocka_unit_test(text_is_read_in_parts),
        cmocka_unit_test(shorter_weights_are_told),
    };
    return cmocka_run_group_tests_name("changed", tests, begin, scratch_end);
}
