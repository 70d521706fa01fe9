/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf_growth.c: the cost of opening a GGUF file, for n keys or tensors and for twice as many, and for counts that
 * exceed the file. The sources are compiled here again, with counters of the bytes that they compare, copy and
 * allocate.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static size_t steps, allocated;

static void *counted_calloc(size_t count, size_t bytes)
{
    allocated += count * bytes;
    return calloc(count, bytes);
}

static void *counted_realloc(void *old, size_t bytes)
{
    allocated += bytes;
    return realloc(old, bytes);
}

static int counted_memcmp(const void *a, const void *b, size_t bytes)
{
    steps += bytes + 1;
    return memcmp(a, b, bytes);
}

static int counted_strcmp(const char *a, const char *b)
{
    steps += strlen(a) + 1;
    return strcmp(a, b);
}

static void *counted_memcpy(void *to, const void *from, size_t bytes)
{
    steps += bytes;
    return memcpy(to, from, bytes);
}

#define gguf_open counted_open
#define gguf_close counted_close
#define gguf_is counted_is
#define gguf_find counted_find
#define gguf_int counted_int
#define gguf_number counted_number
#define gguf_bool counted_bool
#define gguf_string counted_string
#define gguf_strings counted_strings
#define gguf_ints counted_ints
#define gguf_floats counted_gguf_floats
#define gguf_tensor_type counted_tensor_type
#define gguf_type_bytes counted_type_bytes
#define gguf_compare counted_compare
#define gguf_file_open counted_file_open
#include "formats/gguf_write.h"
#define calloc counted_calloc
#define realloc counted_realloc
#define memcmp counted_memcmp
#define strcmp counted_strcmp
#define memcpy counted_memcpy
#include "formats/gguf.c"
#include "formats/gguf_file.c"
#undef FETCH
#include "formats/gguf_values.c"
#undef calloc
#include "unit.h"

enum { SMALL = 2000, NAME = 60 };

/* Write a file with so many keys and tensors, whose names differ at their end. */
static void write_file(size_t keys, size_t tensors, size_t name_bytes)
{
    struct st_declared *t = calloc(tensors + 1, sizeof *t);
    char *key = calloc(1, name_bytes + 32), (*name)[NAME + 1] = calloc(tensors + 1, sizeof *name);
    struct gguf_writer *w;
    assert_true(t && key && name);
    check_ok(gguf_write_begin(at("a.gguf"), &w), "begin");
    memset(key, 'k', name_bytes);
    for (size_t i = 0; i < keys; i++) {
        snprintf(key + name_bytes, 32, "%zu", i * 7919 % keys);
        gguf_put_u32(w, key, 1);
    }
    for (size_t i = 0; i < tensors; i++) {
        snprintf(name[i], sizeof *name, "%0*zu", NAME, i * 7919 % tensors);
        t[i] = (struct st_declared){name[i], NJ_TYPE_F32, 1, {1}};
    }
    check_ok(gguf_write_tensors(w, t, tensors), "declare");
    for (size_t i = 0; i < tensors; i++)
        check_ok(gguf_write_data(w, &(float){0}, 4), "data");
    check_ok(gguf_write_end(w), "end");
    free(t);
    free(key);
    free(name);
}

static size_t size_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (size_t)info.st_size;
}

/* Return the number of steps of opening it. */
static size_t opened(size_t keys, size_t tensors, size_t name_bytes)
{
    struct gguf g;
    write_file(keys, tensors, name_bytes);
    steps = allocated = 0;
    check_ok(gguf_open(at("a.gguf"), &g), "open");
    assert_true(g.values == keys && g.tensors.count == tensors);
    assert_in_range(allocated, 1, 16 * size_of(at("a.gguf")));
    gguf_close(&g);
    return steps;
}

static void gguf_keys_are_sorted_in_time(void **state)
{
    (void)state;
    assert_in_range(opened(2 * SMALL, 0, 8), 1, opened(SMALL, 0, 8) * 5 / 2);
    assert_in_range(opened(40, 0, 60000), 1, opened(20, 0, 60000) * 5 / 2);
}

static void gguf_tensors_are_sorted_in_time(void **state)
{
    (void)state;
    assert_in_range(opened(0, 2 * SMALL, 0), 1, opened(0, SMALL, 0) * 5 / 2);
}

/* Each 8 bytes of the file in turn become a count that the file cannot hold. */
static void lies_of_a_gguf_file_allocate_nothing(void **state)
{
    (void)state;
    static const uint64_t lies[] = {
        UINT64_MAX, (uint64_t)1 << 63, (uint64_t)1 << 56,  (uint64_t)1 << 40,
        1 << 30,    1 << 24,           (uint64_t)-1 << 32, 1 << 16};
    size_t bytes;
    write_file(3, 3, 4);
    char *data = read_bytes(at("a.gguf"), &bytes);
    const int fd = open(at("a.gguf"), O_WRONLY);
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        for (size_t k = 4; k + 8 <= bytes; k++) {
            struct gguf g;
            assert_int_equal(pwrite(fd, &lies[i], 8, (off_t)k), 8);
            allocated = 0;
            if (gguf_open(at("a.gguf"), &g) == 0)
                gguf_close(&g);
            assert_in_range(allocated, 0, 16 * bytes);
            assert_int_equal(pwrite(fd, data + k, 8, (off_t)k), 8);
        }
    close(fd);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gguf_keys_are_sorted_in_time),
        cmocka_unit_test(gguf_tensors_are_sorted_in_time),
        cmocka_unit_test(lies_of_a_gguf_file_allocate_nothing),
    };
    return cmocka_run_group_tests_name("gguf_growth", tests, scratch_begin, scratch_end);
}
