/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf.c: GGUF files written, read, split and damaged.
 */
#include "io/gguf_write.h"
#include "unit.h"

static const struct st_declared tensors[] = {
    {"token_embd.weight", NJ_TYPE_Q8_0, 2, {3, 64}},
    {"output_norm.weight", NJ_TYPE_F32, 1, {5}},
    {"blk.0.ffn_up.weight", NJ_TYPE_Q4_K, 2, {2, 512}},
};
enum { TENSORS = sizeof tensors / sizeof *tensors };

static void put_metadata(struct gguf_writer *w)
{
    static const struct gguf_text words[] = {{"a", 1}, {"", 0}, {"b\0c", 3}};
    static const int32_t numbers[] = {-1, 0, INT32_MAX};
    gguf_put_u32(w, "u32", 4000000000u);
    gguf_put_f32(w, "f32", 0.25f);
    gguf_put_bool(w, "bool", true);
    gguf_put_string(w, "general.architecture", "llama");
    gguf_put_strings(w, "strings", words, 3);
    gguf_put_i32s(w, "ints", numbers, 3);
}

/* Byte k of a tensor's data. */
static unsigned char byte_of(size_t tensor, size_t k)
{
    return (unsigned char)(k * 31 + tensor * 7);
}

/* In pieces of `piece` bytes, whatever the tensors' ends. */
static int write_file(const char *path, size_t piece)
{
    struct gguf_writer *w;
    unsigned char data[1 << 12];
    size_t bytes = 0;
    int rc = gguf_write_begin(path, &w);
    if (rc != 0)
        return rc;
    put_metadata(w);
    rc = gguf_write_tensors(w, tensors, TENSORS);
    for (size_t t = 0; t < TENSORS; t++)
        for (size_t k = 0; k < st_declared_bytes(&tensors[t]); k++)
            data[bytes++] = byte_of(t, k);
    for (size_t from = 0; rc == 0 && from < bytes; from += piece)
        rc = gguf_write_data(w, data + from, bytes - from < piece ? bytes - from : piece);
    if (rc == 0)
        return gguf_write_end(w);
    gguf_write_abort(w);
    return rc;
}

static void check_metadata(const struct gguf *g)
{
    int64_t whole;
    double number;
    bool flag;
    struct gguf_text text, *texts;
    int32_t *ints;
    size_t count;
    check_ok(gguf_int(g, "u32", 0, &whole), "u32");
    assert_true(whole == 4000000000);
    check_ok(gguf_int(g, "absent", -7, &whole), "absent");
    assert_true(whole == -7);
    check_ok(gguf_number(g, "f32", 0, &number), "f32");
    assert_true(number == 0.25);
    check_ok(gguf_number(g, "u32", 0, &number), "u32");
    assert_true(number == 4e9);
    check_ok(gguf_bool(g, "bool", false, &flag), "bool");
    assert_true(flag);
    check_ok(gguf_string(g, "general.architecture", &text), "text");
    assert_true(text.bytes == 5 && memcmp(text.text, "llama", 5) == 0);
    check_ok(gguf_strings(g, "strings", &texts, &count), "strings");
    assert_true(count == 3 && texts[1].bytes == 0 && memcmp(texts[2].text, "b\0c", 3) == 0);
    free(texts);
    check_ok(gguf_ints(g, "ints", &ints, &count), "ints");
    assert_true(count == 3 && ints[0] == -1 && ints[2] == INT32_MAX);
    free(ints);
    check_refused(gguf_int(g, "f32", 0, &whole), NJ_E_FORMAT, "f32 is f32, not a whole number",
                  "gguf");
    check_refused(gguf_string(g, "strings", &text), NJ_E_FORMAT, "an array of string, not text",
                  "gguf");
}

static void files_come_back(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 7, 32, 1 << 12};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct gguf g;
        check_ok(write_file(at("a.gguf"), pieces[i]), "write");
        assert_true(gguf_is(at("a.gguf")) && !gguf_is(at("")) && !gguf_is(at("absent")));
        check_ok(gguf_open(at("a.gguf"), &g), "open");
        check_metadata(&g);
        assert_int_equal(g.tensors.count, TENSORS);
        for (size_t t = 0; t < TENSORS; t++) {
            const struct tensor *found = tensors_find(&g.tensors, tensors[t].name);
            assert_non_null(found);
            assert_int_equal(found->dtype, tensors[t].dtype);
            assert_int_equal(found->rank, tensors[t].rank);
            assert_memory_equal(found->shape, tensors[t].shape, sizeof found->shape);
            assert_int_equal(found->bytes, st_declared_bytes(&tensors[t]));
            for (size_t k = 0; k < found->bytes; k++)
                assert_int_equal(((const unsigned char *)found->data)[k], byte_of(t, k));
        }
        gguf_close(&g);
    }
}

/* ---- damaged files ---- */

static int open_bytes(const unsigned char *data, size_t bytes)
{
    struct gguf g;
    write_bytes(at("bad.gguf"), data, bytes);
    const int rc = gguf_open(at("bad.gguf"), &g);
    if (rc == 0)
        gguf_close(&g);
    return rc;
}

/* A sound file; to be freed. */
static unsigned char *sound(size_t *bytes)
{
    check_ok(write_file(at("a.gguf"), 512), "write");
    return (unsigned char *)read_bytes(at("a.gguf"), bytes);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *data = sound(&bytes);
    const size_t last = st_declared_bytes(&tensors[TENSORS - 1]), padding = (32 - last % 32) % 32;
    for (size_t n = 0; n < bytes - padding; n++)
        assert_int_not_equal(open_bytes(data, n), 0);
    check_ok(open_bytes(data, bytes - padding), "without the last padding");
    free(data);
}

/* Where text stands in the file. */
static size_t find(const unsigned char *data, size_t bytes, const char *text)
{
    const unsigned char *at = memmem(data, bytes, text, strlen(text));
    assert_non_null(at);
    return (size_t)(at - data);
}

static void lies_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *after; /* NULL: the file's start */
        size_t offset, bytes;
        uint64_t value;
        int code;
        const char *message;
    } lies[] = {
        {NULL, 0, 4, 0x4c4c4747, NJ_E_FORMAT, "no GGUF file"},
        {NULL, 4, 4, 1, NJ_E_UNSUPPORTED, "GGUF version 1; 2 and 3 are supported"},
        {NULL, 4, 4, 4, NJ_E_UNSUPPORTED, "GGUF version 4"},
        {NULL, 4, 4, 0x03000000, NJ_E_UNSUPPORTED, "big-endian"},
        {NULL, 8, 8, UINT64_MAX, NJ_E_FORMAT, "the list of tensors goes beyond the end"},
        {NULL, 16, 8, UINT64_MAX, NJ_E_FORMAT, "the metadata goes beyond the end"},
        {NULL, 24, 8, UINT64_MAX, NJ_E_FORMAT, "a metadata key has"},
        {NULL, 24, 8, 0, NJ_E_FORMAT, "a metadata key is empty"},
        {"bool", 0, 4, 13, NJ_E_FORMAT, "bool has the type 13"},
        {"ints", 4, 4, GGUF_ARRAY, NJ_E_UNSUPPORTED, "ints is an array of arrays"},
        {"ints", 8, 8, (uint64_t)1 << 29, NJ_E_FORMAT, "ints goes beyond the end"},
        {"ints", 8, 8, UINT64_MAX, NJ_E_FORMAT, "ints has 18446744073709551615 elements"},
        {"strings", 16, 8, (uint64_t)1 << 62, NJ_E_FORMAT, "strings has"},
        {"strings", 8, 8, 1 << 20, NJ_E_FORMAT, "strings has 21474836489 bytes"},
        {"token_embd.weight", 0, 4, 0, NJ_E_FORMAT, "has 0 dimensions"},
        {"token_embd.weight", 0, 4, 5, NJ_E_FORMAT, "has 5 dimensions"},
        {"token_embd.weight", 4, 8, 33, NJ_E_FORMAT,
         "rows of 33 elements, and Q8_0 has blocks of 32"},
        {"token_embd.weight", 4, 8, 0, NJ_E_FORMAT, "its shape is empty or too large"},
        {"token_embd.weight", 12, 8, (uint64_t)1 << 60, NJ_E_FORMAT,
         "its shape is empty or too large"},
        {"token_embd.weight", 12, 8, (uint64_t)1 << 40, NJ_E_FORMAT, "the file is cut short"},
        {"token_embd.weight", 20, 4, 39, NJ_E_UNSUPPORTED, "is MXFP4, which is not supported"},
        {"token_embd.weight", 20, 4, 4, NJ_E_FORMAT, "has the type 4, which GGUF does not know"},
        {"token_embd.weight", 20, 4, 1 << 30, NJ_E_FORMAT, "GGUF does not know"},
        {"token_embd.weight", 24, 8, 8, NJ_E_FORMAT, "no multiple of 32"},
        {"token_embd.weight", 24, 8, 32, NJ_E_FORMAT, "overlap"},
        {"token_embd.weight", 24, 8, (uint64_t)-32, NJ_E_FORMAT, "the file is cut short"},
    };
    size_t bytes;
    unsigned char *data = sound(&bytes), lying[1 << 13];
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const char *after = lies[i].after;
        const size_t from = after ? find(data, bytes, after) + strlen(after) : 0;
        memcpy(lying, data, bytes);
        for (size_t k = 0; k < lies[i].bytes; k++)
            lying[from + lies[i].offset + k] = (unsigned char)(lies[i].value >> (8 * k));
        check_refused(open_bytes(lying, bytes), lies[i].code, lies[i].message, lies[i].message);
    }
    free(data);
}

static void names_come_once(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *data = sound(&bytes);
    memcpy(data + find(data, bytes, "u32"), "f32", 3);
    check_refused(open_bytes(data, bytes), NJ_E_FORMAT, "the metadata key f32 is there twice",
                  "gguf");
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_back),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(names_come_once),
    };
    return cmocka_run_group_tests_name("gguf", tests, scratch_begin, scratch_end);
}
