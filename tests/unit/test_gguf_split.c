/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf_split.c: models in several GGUF files, complete, and with missing or foreign parts.
 */
#include <sys/resource.h>

#include "formats/gguf.h"
#include "unit.h"

enum { PARTS = 3, ABSENT = -1000 };

/* The description of the whole in a part, and its one tensor. */
struct part {
    int64_t no, count, tensors; /* split.no, split.count, split.tensors.count, or ABSENT */
    const char *tensor;
    int alignment; /* 0: not stated, 32 */
};

static const struct part sound[PARTS] = {{0, 3, 3, "c", 0}, {1, 3, 3, "a", 64}, {2, 3, 3, "b", 0}};

/* ---- files, byte by byte ---- */

static void put(FILE *f, int64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        putc((int)(x >> (8 * i) & 0xff), f);
}

static void put_text(FILE *f, const char *text)
{
    put(f, (int64_t)strlen(text), 8);
    fputs(text, f);
}

static void put_key(FILE *f, const char *key, enum gguf_type type, int64_t x)
{
    if (x == ABSENT)
        return;
    put_text(f, key);
    put(f, type, 4);
    put(f, x, (int)gguf_type_bytes(type));
}

static void write_part(const char *path, const struct part *p)
{
    const int alignment = p->alignment ? p->alignment : 32;
    const float data = (float)p->tensor[0];
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs("GGUF", f);
    put(f, 3, 4);
    put(f, 1, 8);
    put(f, (p->no != ABSENT) + (p->count != ABSENT) + (p->tensors != ABSENT) + (p->alignment != 0),
        8);
    put_key(f, "split.no", p->no > UINT16_MAX ? GGUF_U64 : GGUF_U16, p->no);
    put_key(f, "split.count", GGUF_U16, p->count);
    put_key(f, "split.tensors.count", GGUF_I32, p->tensors);
    put_key(f, "general.alignment", GGUF_U32, p->alignment ? p->alignment : ABSENT);
    put_text(f, p->tensor);
    put(f, 1, 4); /* dimensions */
    put(f, 1, 8);
    put(f, 0, 4); /* F32 */
    put(f, 0, 8); /* offset */
    while (ftell(f) % alignment != 0)
        putc(0, f);
    fwrite(&data, sizeof data, 1, f);
    assert_int_equal(fclose(f), 0);
}

/* "m-00001-of-00003.gguf" */
static const char *path_of(int no, int parts)
{
    char name[64];
    snprintf(name, sizeof name, "m-%05d-of-%05d.gguf", no + 1, parts);
    return at(name);
}

static void write_all(const struct part *part)
{
    for (int i = 0; i < PARTS; i++)
        write_part(path_of(i, PARTS), &part[i]);
}

static int open_first(void)
{
    struct gguf g;
    const int rc = gguf_open(path_of(0, PARTS), &g);
    if (rc == 0)
        gguf_close(&g);
    else
        assert_true(g.value == NULL && g.tensors.map == NULL && g.tensors.tensor == NULL);
    return rc;
}

/* ---- checks ---- */

static void parts_of_a_gguf_file_are_one_model(void **state)
{
    (void)state;
    struct gguf g;
    write_all(sound);
    check_ok(gguf_open(path_of(0, PARTS), &g), "open");
    assert_int_equal(g.tensors.count, PARTS);
    for (size_t i = 0; i < PARTS; i++) {
        const char name[2] = {(char)('a' + i)};
        float x;
        assert_string_equal(g.tensors.tensor[i].name, name);
        memcpy(&x, g.tensors.tensor[i].data, sizeof x);
        assert_true(x == (float)name[0]);
    }
    gguf_close(&g);
}

/* Files with one fault each. */
static const struct {
    int part; /* number of the faulty part */
    struct part is;
    int code;
    const char *message;
} faults[] = {
    {1, {2, 3, 3, "a", 0}, NJ_E_FORMAT, "m-00002-of-00003.gguf: split.no is 2, not 1; fetch all"},
    {1, {ABSENT, 3, 3, "a", 0}, NJ_E_FORMAT, "m-00002-of-00003.gguf: split.no is -1, not 1"},
    {1, {1, 4, 3, "a", 0}, NJ_E_FORMAT, "m-00002-of-00003.gguf: split.count is 4, not 3"},
    {2, {2, 3, 7, "b", 0}, NJ_E_FORMAT, "m-00003-of-00003.gguf: split.tensors.count is 7, not 3"},
    {2, {2, 3, 3, "a", 0}, NJ_E_FORMAT, "m-00001-of-00003.gguf: tensor a is there twice"},
    {0, {1, 3, 3, "c", 0}, NJ_E_FORMAT, "part 2 of 3; give the first, whose name ends in -00001-"},
    {0, {3, 3, 3, "c", 0}, NJ_E_FORMAT, "split.no is 3, but split.count is 3"},
    {0,
     {INT64_MAX, 3, 3, "c", 0},
     NJ_E_FORMAT,
     "split.no is 9223372036854775807, but split.count is 3"},
    {0, {0, 2, 3, "c", 0}, NJ_E_FORMAT, "of 2 parts, whose name must end in -00001-of-00002.gguf"},
    {0, {0, 1001, 3, "c", 0}, NJ_E_FORMAT, "split.count is 1001; at most 1000 parts"},
    {0, {0, 3, 4, "c", 0}, NJ_E_FORMAT, "m-00002-of-00003.gguf: split.tensors.count is 3, not 4"},
};

static void parts_of_other_gguf_files_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        write_all(sound);
        write_part(path_of(faults[i].part, PARTS), &faults[i].is);
        check_refused(open_first(), faults[i].code, faults[i].message, faults[i].message);
    }
}

static void a_count_that_the_parts_do_not_reach_is_refused(void **state)
{
    (void)state;
    struct part four[PARTS];
    memcpy(four, sound, sizeof four);
    for (int i = 0; i < PARTS; i++)
        four[i].tensors = 4;
    write_all(four);
    check_refused(open_first(), NJ_E_FORMAT,
                  "split.tensors.count is 4, and the parts hold 3 tensors; fetch all parts",
                  "count");
    for (int i = 0; i < PARTS; i++)
        four[i].tensors = ABSENT;
    write_all(four);
    check_ok(open_first(), "without the key");
}

static void a_missing_part_of_a_gguf_file_is_named(void **state)
{
    (void)state;
    for (int i = 1; i < PARTS; i++) {
        write_all(sound);
        assert_int_equal(unlink(path_of(i, PARTS)), 0);
        char sentence[80];
        snprintf(sentence, sizeof sentence,
                 "-0000%d-of-00003.gguf: No such file or directory; fetch all parts", i + 1);
        check_refused(open_first(), NJ_E_IO, sentence, "missing");
    }
    write_all(sound);
    assert_int_equal(truncate(path_of(2, PARTS), 60), 0);
    check_refused(open_first(), NJ_E_FORMAT, "m-00003-of-00003.gguf: ", "cut");
}

static void any_other_part_names_the_first(void **state)
{
    (void)state;
    struct gguf g;
    write_all(sound);
    check_refused(gguf_open(path_of(1, PARTS), &g), NJ_E_FORMAT,
                  "m-00002-of-00003.gguf: part 2 of 3; give the first", "second");
    write_part(at("renamed.gguf"), &sound[0]);
    check_refused(gguf_open(at("renamed.gguf"), &g), NJ_E_FORMAT,
                  "the first of 3 parts, whose name must end in -00001-of-00003.gguf", "renamed");
}

/* The parts are opened one at a time, however many there are. */
static void parts_need_one_descriptor(void **state)
{
    (void)state;
    struct rlimit before, limit;
    write_all(sound);
    const int free_one = dup(0);
    assert_true(free_one >= 0 && close(free_one) == 0);
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)free_one + 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    const int one = open_first();
    limit.rlim_cur = (rlim_t)free_one;
    setrlimit(RLIMIT_NOFILE, &limit);
    const int none = open_first();
    setrlimit(RLIMIT_NOFILE, &before);
    check_refused(none, NJ_E_IO, "m-00001-of-00003.gguf: Too many open files", "none");
    check_ok(one, "one");
}

static void a_file_that_cannot_be_mapped_is_told(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers reserve more than any limit */
#else
    struct rlimit before, limit;
    write_all(sound);
    assert_int_equal(truncate(path_of(2, PARTS), (off_t)1 << 36), 0); /* a hole in the file */
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)1 << 35;
    setrlimit(RLIMIT_AS, &limit);
    const int rc = open_first();
    setrlimit(RLIMIT_AS, &before);
    check_refused(rc, NJ_E_IO, "m-00003-of-00003.gguf: cannot map 68719476736 bytes", "large");
    check_ok(open_first(), "no limit");
#endif
}

/* A complete file may say that it is split into one. */
static void one_part_may_have_any_name(void **state)
{
    (void)state;
    static const struct part alone[] = {
        {0, 1, 1, "a", 0}, {0, 0, 1, "a", 0}, {0, ABSENT, 1, "a", 0}};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        struct gguf g;
        write_part(at("alone.gguf"), &alone[i]);
        check_ok(gguf_open(at("alone.gguf"), &g), "alone");
        assert_int_equal(g.tensors.count, 1);
        gguf_close(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_gguf_file_are_one_model),
        cmocka_unit_test(parts_of_other_gguf_files_are_refused),
        cmocka_unit_test(a_count_that_the_parts_do_not_reach_is_refused),
        cmocka_unit_test(a_missing_part_of_a_gguf_file_is_named),
        cmocka_unit_test(any_other_part_names_the_first),
        cmocka_unit_test(one_part_may_have_any_name),
        cmocka_unit_test(parts_need_one_descriptor),
        cmocka_unit_test(a_file_that_cannot_be_mapped_is_told),
    };
    return cmocka_run_group_tests_name("gguf_split", tests, scratch_begin, scratch_end);
}
