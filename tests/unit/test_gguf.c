/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf.c: GGUF files written, read, split and damaged.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "formats/gguf_write.h"
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
    gguf_put_string(w, "general.architecture", "llama");
    gguf_put_u32(w, "u32", 4000000000u);
    gguf_put_f32(w, "f32", 0.25f);
    gguf_put_bool(w, "bool", true);
    gguf_put_u32(w, "general.alignment", 32);
    gguf_put_strings(w, "strings", words, 3);
    gguf_put_i32s(w, "ints", numbers, 3);
}

/* Return byte k of a tensor's data. */
static unsigned char byte_of(size_t tensor, size_t k)
{
    return (unsigned char)(k * 31 + tensor * 7);
}

/* Write the file in pieces of `piece` bytes, across the ends of tensors. */
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

static void gguf_files_come_back(void **state)
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

/* ---- files of the Python package gguf (tests/golden/make_gguf.py) ---- */

#define GOLDEN "tests/golden/gguf/"

static void the_package_writes_the_same_bytes(void **state)
{
    (void)state;
    size_t bytes, wanted;
    check_ok(write_file(at("a.gguf"), 512), "write");
    char *data = read_bytes(at("a.gguf"), &bytes),
         *want = read_bytes(GOLDEN "written.gguf", &wanted);
    assert_int_equal(bytes, wanted);
    assert_memory_equal(data, want, bytes);
    free(data);
    free(want);
}

static void values_of_the_package_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *key, *keys; /* key of the value, and of an array that holds it twice */
        int64_t value;
        bool fits; /* fits 32 bits */
    } whole[] = {
        {"UINT8", "UINT8s", 255, true},           {"INT8", "INT8s", -128, true},
        {"UINT16", "UINT16s", 65535, true},       {"INT16", "INT16s", -32768, true},
        {"UINT32", "UINT32s", UINT32_MAX, false}, {"INT32", "INT32s", INT32_MIN, true},
        {"UINT64", "UINT64s", INT64_MAX, false},  {"INT64", "INT64s", INT64_MIN, false},
    };
    struct gguf g;
    int64_t x;
    double number;
    bool flag;
    int32_t *ints;
    size_t count;
    struct gguf_text text, *texts;
    check_ok(gguf_open(GOLDEN "types.gguf", &g), "open");
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        check_ok(gguf_int(&g, whole[i].key, 0, &x), whole[i].key);
        assert_true(x == whole[i].value);
        const int rc = gguf_ints(&g, whole[i].keys, &ints, &count);
        assert_int_equal(rc == 0, whole[i].fits);
        assert_true(rc != 0 || (count == 2 && ints[0] == x && ints[1] == x));
        free(ints);
    }
    check_ok(gguf_number(&g, "FLOAT32", 0, &number), "f32");
    assert_true(number == 1.5);
    check_ok(gguf_number(&g, "FLOAT64", 0, &number), "f64");
    assert_true(number == -1e300);
    check_ok(gguf_bool(&g, "BOOL", false, &flag), "bool");
    assert_true(flag);
    check_ok(gguf_string(&g, "STRING", &text), "text");
    assert_true(text.bytes == 5 && memcmp(text.text, "caf\xc3\xa9", 5) == 0);
    check_ok(gguf_strings(&g, "STRINGs", &texts, &count), "texts");
    assert_true(count == 2 && texts[1].bytes == 5 && memcmp(texts[1].text, text.text, 5) == 0);
    free(texts);
    const struct tensor *w = tensors_find(&g.tensors, "w");
    assert_true(w && w->rank == 2 && w->shape[0] == 2 && w->shape[1] == 3);
    float row[3];
    tensor_to_f32(w, 3, 3, row);
    assert_true(row[0] == 3 && row[2] == 5);
    gguf_close(&g);
}

static void parts_of_the_package_are_read(void **state)
{
    (void)state;
    struct gguf g;
    check_ok(gguf_open(GOLDEN "split-00001-of-00003.gguf", &g), "open");
    assert_int_equal(g.tensors.count, 3);
    for (size_t i = 0; i < 3; i++) {
        float x;
        tensor_to_f32(&g.tensors.tensor[i], 1, 1, &x);
        assert_true(g.tensors.tensor[i].name[0] == "abc"[i] && x == (float)((i + 1) % 3));
    }
    gguf_close(&g);
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

/* Return the bytes of a sound file; the caller frees them. */
static unsigned char *sound(size_t *bytes)
{
    check_ok(write_file(at("a.gguf"), 512), "write");
    return (unsigned char *)read_bytes(at("a.gguf"), bytes);
}

static void every_truncated_gguf_file_is_refused(void **state)
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

/* Return the position of a text in the file. */
static size_t find(const unsigned char *data, size_t bytes, const char *text)
{
    const unsigned char *at = memmem(data, bytes, text, strlen(text));
    assert_non_null(at);
    return (size_t)(at - data);
}

static void lying_gguf_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *after; /* NULL: the start of the file */
        long offset;
        size_t bytes;
        uint64_t value;
        int code;
        const char *message;
    } lies[] = {
        {NULL, 0, 4, 0x4c4c4747, NJ_E_FORMAT, "not a GGUF file"},
        {NULL, 4, 4, 1, NJ_E_UNSUPPORTED, "GGUF version 1; 2 and 3 are supported"},
        {NULL, 4, 4, 4, NJ_E_UNSUPPORTED, "GGUF version 4"},
        {NULL, 4, 4, 0, NJ_E_UNSUPPORTED, "GGUF version 0"},
        {NULL, 4, 4, 0x03000000, NJ_E_UNSUPPORTED, "big-endian"},
        {NULL, 4, 4, 0x01000000, NJ_E_UNSUPPORTED, "big-endian"},
        {NULL, 8, 8, UINT64_MAX, NJ_E_FORMAT, "the list of tensors goes beyond the end"},
        {NULL, 16, 8, UINT64_MAX, NJ_E_FORMAT, "the metadata goes beyond the end"},
        {NULL, 24, 8, UINT64_MAX, NJ_E_FORMAT, "a metadata key has"},
        {NULL, 24, 8, 0, NJ_E_FORMAT, "a metadata key is empty"},
        {"bool", 0, 4, 13, NJ_E_FORMAT, "bool has the type 13"},
        {"general.alignment", 4, 4, 0, NJ_E_FORMAT, "general.alignment is 0, no power of two"},
        {"general.alignment", 4, 4, 48, NJ_E_FORMAT, "general.alignment is 48, no power of two"},
        {"general.alignment", 4, 4, 1u << 31, NJ_E_FORMAT, "general.alignment is 2147483648"},
        {"general.alignment", 4, 4, 4096, NJ_E_FORMAT, "the data goes beyond the end"},
        {"general.alignment", 0, 4, GGUF_F32, NJ_E_FORMAT, "general.alignment is f32, not a whole"},
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
        {"token_embd.weight", 20, 4, 40, NJ_E_UNSUPPORTED, "is NVFP4, which is not supported"},
        {"token_embd.weight", 20, 4, 4, NJ_E_FORMAT, "has the type 4, which GGUF does not know"},
        {"token_embd.weight", 20, 4, 1 << 30, NJ_E_FORMAT, "GGUF does not know"},
        {"token_embd.weight", 24, 8, 8, NJ_E_FORMAT, "no multiple of 32"},
        {"token_embd.weight", 24, 8, 32, NJ_E_FORMAT, "overlap"},
        {"token_embd.weight", 24, 8, (uint64_t)-32, NJ_E_FORMAT, "the file is cut short"},
        {"u32", -11, 8, 1 << 16, NJ_E_FORMAT, "a metadata key has 65536 bytes; at most 65535"},
        {"token_embd.weight", -25, 8, 64, NJ_E_FORMAT, "a tensor's name has 64 bytes; at most 63"},
        {"token_embd.weight", -25, 8, 0, NJ_E_FORMAT, "a tensor's name is empty or holds a zero"},
        {"token_embd.weight", -10, 1, 0, NJ_E_FORMAT, "a tensor's name is empty or holds a zero"},
    };
    size_t bytes;
    unsigned char *data = sound(&bytes), lying[1 << 13];
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const char *after = lies[i].after;
        const size_t from =
            (after ? find(data, bytes, after) + strlen(after) : 0) + (size_t)lies[i].offset;
        memcpy(lying, data, bytes);
        for (size_t k = 0; k < lies[i].bytes; k++)
            lying[from + k] = (unsigned char)(lies[i].value >> (8 * k));
        check_refused(open_bytes(lying, bytes), lies[i].code, lies[i].message, lies[i].message);
    }
    free(data);
}

/* The numbers of tensor_type.h differ from those in files. */
static void only_types_of_ggml_are_written(void **state)
{
    (void)state;
    for (int type = 0; type < NJ_TYPES; type++) {
        const struct st_declared tensor = {
            "output_norm.weight", (enum nj_tensor_type)type, 1, {256}};
        struct gguf_writer *w;
        check_ok(gguf_write_begin(at("types.gguf"), &w), "types.gguf");
        const int rc = gguf_write_tensors(w, &tensor, 1);
        if (type <= NJ_TYPE_IQ4_XS || type == NJ_TYPE_MXFP4)
            check_ok(rc, tensor_type_name(tensor.dtype));
        else
            check_refused(rc, NJ_E_ARG, "GGUF has no type", tensor_type_name(tensor.dtype));
        gguf_write_abort(w);
    }
}

static void gguf_names_come_once(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *data = sound(&bytes);
    memcpy(data + find(data, bytes, "u32"), "f32", 3);
    check_refused(open_bytes(data, bytes), NJ_E_FORMAT, "the metadata key f32 is there twice",
                  "gguf");
    free(data);
    struct gguf_writer *w;
    const struct st_declared twice[] = {{"a", NJ_TYPE_F32, 1, {1}}, {"a", NJ_TYPE_F32, 1, {1}}};
    check_ok(gguf_write_begin(at("twice.gguf"), &w), "begin");
    check_ok(gguf_write_tensors(w, twice, 2), "declare");
    check_ok(gguf_write_data(w, (float[2]){1, 2}, 8), "data");
    check_refused(gguf_write_end(w), NJ_E_FORMAT, "tensor a is there twice", "what is written");
    assert_false(gguf_is(at("twice.gguf")));
}

/* Text of a foreign file must be safe to print on a terminal. */
static void sentences_about_gguf_files_are_printable(void **state)
{
    (void)state;
    static const char *const names[] = {"\x1b]0;x\a", "\xff\xfe", "\xe2\x80\xae"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct gguf_writer *w;
        char key[2000];
        size_t bytes;
        memset(key, 'k', sizeof key);
        memcpy(key, names[i], strlen(names[i]));
        key[sizeof key - 1] = '\0';
        check_ok(gguf_write_begin(at("names.gguf"), &w), "begin");
        gguf_put_u32(w, key, 1);
        key[200] = '2';
        gguf_put_u32(w, key, 1);
        check_ok(gguf_write_tensors(w, NULL, 0), "declare");
        check_ok(gguf_write_end(w), "end");
        unsigned char *data = (unsigned char *)read_bytes(at("names.gguf"), &bytes);
        *(char *)memchr(data, '2', bytes) = 'k'; /* the second key becomes the first */
        check_refused(open_bytes(data, bytes), NJ_E_FORMAT, "is there twice; fetch the file",
                      "key");
        for (const char *c = fail_text(); *c; c++)
            assert_in_range((unsigned char)*c, ' ', '~');
        free(data);
    }
}

/* Integers of every width, and numbers that do not fit. */
static void gguf_numbers_have_any_width(void **state)
{
    (void)state;
    static const struct {
        enum gguf_type type;
        uint64_t bits;
        int64_t value;
        bool fits; /* fits 32 bits */
    } numbers[] = {
        {GGUF_U8, 255, 255, true},
        {GGUF_I8, 255, -1, true},
        {GGUF_U16, 65535, 65535, true},
        {GGUF_I16, 32768, -32768, true},
        {GGUF_U32, UINT32_MAX, UINT32_MAX, false},
        {GGUF_I32, UINT32_MAX, -1, true},
        {GGUF_U64, 7, 7, true},
        {GGUF_U64, UINT64_MAX, -1, false}, /* which does not fit */
        {GGUF_U64, INT64_MAX, INT64_MAX, false},
        {GGUF_I64, UINT64_MAX, -1, true},
        {GGUF_I64, (uint64_t)1 << 63, INT64_MIN, false},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct gguf_value v = {.key = {"n", 1},
                               .type = numbers[i].type,
                               .count = 1,
                               .data = (const unsigned char *)&numbers[i].bits};
        const struct gguf g = {.path = "g", .value = &v, .values = 1};
        int64_t whole;
        int32_t *ints = NULL;
        double number = 0;
        size_t count;
        const int rc = gguf_int(&g, "n", 0, &whole);
        if (numbers[i].type == GGUF_U64 && numbers[i].value < 0) {
            check_refused(rc, NJ_E_FORMAT, "n is 18446744073709551615, which is too large", "u64");
        } else {
            check_ok(rc, "n");
            assert_true(whole == numbers[i].value);
            check_ok(gguf_number(&g, "n", 0, &number), "n");
            assert_true(number == (double)numbers[i].value);
        }
        check_refused(gguf_ints(&g, "n", &ints, &count), NJ_E_FORMAT, "not an array", "one");
        v.array = true;
        check_refused(gguf_int(&g, "n", 0, &whole), NJ_E_FORMAT, "n is an array of", "array");
        const int many = gguf_ints(&g, "n", &ints, &count);
        if (numbers[i].fits) {
            check_ok(many, "ints");
            assert_true(count == 1 && ints[0] == numbers[i].value);
        } else {
            check_refused(many, NJ_E_FORMAT, "element 0 of n does not fit in 32 bits", "ints");
            assert_null(ints);
        }
        free(ints);
    }
}

/* 2 is neither true nor false, and a text is no number. */
static void other_gguf_types_are_refused(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *data = sound(&bytes);
    struct gguf g;
    bool flag;
    double number;
    int32_t *ints;
    struct gguf_text text, *texts;
    size_t count;
    data[find(data, bytes, "bool") + 4 + 4] = 2;
    write_bytes(at("bad.gguf"), data, bytes);
    free(data);
    check_ok(gguf_open(at("bad.gguf"), &g), "open");
    check_refused(gguf_bool(&g, "bool", true, &flag), NJ_E_FORMAT, "not true or false", "2");
    check_refused(gguf_bool(&g, "u32", true, &flag), NJ_E_FORMAT, "u32 is u32, not true", "u32");
    check_refused(gguf_number(&g, "bool", 0, &number), NJ_E_FORMAT, "not a number", "bool");
    check_refused(gguf_ints(&g, "strings", &ints, &count), NJ_E_FORMAT, "not an array", "strings");
    check_refused(gguf_strings(&g, "ints", &texts, &count), NJ_E_FORMAT, "not an array", "ints");
    check_refused(gguf_string(&g, "u32", &text), NJ_E_FORMAT, "u32 is u32, not text", "u32");
    check_ok(gguf_bool(&g, "absent", true, &flag), "absent");
    assert_true(flag);
    gguf_close(&g);
}

/* Tensors may lie in any order, with gaps, at any power of two. */
static void gguf_tensors_lie_anywhere(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *data = sound(&bytes);
    const size_t norm = find(data, bytes, "output_norm.weight") + 18 + 4 + 8 + 4;
    const size_t up = find(data, bytes, "blk.0.ffn_up.weight") + 19 + 4 + 16 + 4;
    data = realloc(data, bytes + 64);
    assert_non_null(data);
    memset(data + bytes, 0, 64);
    data[up] = data[norm]; /* moved to the place of the other, which goes to the end */
    data[up + 1] = 0;
    data[norm] = 832 & 0xff;
    data[norm + 1] = 832 >> 8;
    check_ok(open_bytes(data, bytes + 64), "swapped");
    data[norm] = 840 & 0xff;
    check_refused(open_bytes(data, bytes + 64), NJ_E_FORMAT, "begins at byte 840 of the data",
                  "8 of 32");
    data[find(data, bytes, "general.alignment") + 17 + 4] = 8;
    check_ok(open_bytes(data, bytes + 64), "8 of 8");
    free(data);
}

/* ---- files that others change ---- */

static void a_text_made_longer_is_told(void **state)
{
    (void)state;
    size_t bytes;
    struct gguf_text text, *texts = NULL;
    size_t count;
    struct gguf g;
    unsigned char *data = sound(&bytes);
    check_ok(gguf_open(at("a.gguf"), &g), "open");
    const int fd = open(at("a.gguf"), O_WRONLY);
    const size_t one = find(data, bytes, "general.architecture") + 20 + 4;
    const size_t many = find(data, bytes, "strings") + 7 + 4 + 4 + 8;
    assert_true(fd >= 0 && pwrite(fd, "\xff\xff\xff\xff\xff\xff\xff\x7f", 8, (off_t)one) == 8 &&
                pwrite(fd, "\x40", 1, (off_t)many) == 1);
    close(fd);
    check_refused(gguf_string(&g, "general.architecture", &text), NJ_E_IO,
                  "a.gguf: the file was changed while in use", "text");
    check_refused(gguf_strings(&g, "strings", &texts, &count), NJ_E_IO, "changed while in use",
                  "texts");
    assert_null(texts);
    gguf_close(&g);
    free(data);
}

/* ---- what is written ---- */

static int entries(const char *dir)
{
    int count = -2;
    DIR *d = opendir(dir);
    assert_non_null(d);
    while (readdir(d))
        count++;
    closedir(d);
    return count;
}

static void a_full_disk_leaves_no_gguf_file(void **state)
{
    (void)state;
    struct rlimit before, limit;
    make_folder("full");
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    for (rlim_t most = 0; most < 1200; most += 100) {
        limit.rlim_cur = most;
        setrlimit(RLIMIT_FSIZE, &limit);
        const int rc = write_file(at("full/a.gguf"), 100);
        setrlimit(RLIMIT_FSIZE, &before);
        check_refused(rc, NJ_E_IO, "full/a.gguf: cannot write it: File too large", "full");
        assert_int_equal(entries(at("full")), 0);
    }
    check_ok(write_file(at("full/a.gguf"), 100), "room");
    assert_int_equal(entries(at("full")), 1);
}

static void gguf_data_are_as_many_as_declared(void **state)
{
    (void)state;
    const struct st_declared one = {"a", NJ_TYPE_F32, 1, {2}};
    const float data[3] = {1, 2, 3};
    struct gguf_writer *w;
    make_folder("count");
    check_ok(gguf_write_begin(at("count/a.gguf"), &w), "begin");
    check_ok(gguf_write_tensors(w, &one, 1), "declare");
    check_refused(gguf_write_data(w, data, 12), NJ_E_ARG, "more data than was declared", "more");
    gguf_write_abort(w);
    check_ok(gguf_write_begin(at("count/a.gguf"), &w), "begin");
    check_ok(gguf_write_tensors(w, &one, 1), "declare");
    check_ok(gguf_write_data(w, data, 4), "part");
    check_refused(gguf_write_end(w), NJ_E_ARG, "less data than was declared", "less");
    gguf_write_abort(NULL);
    assert_int_equal(entries(at("count")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gguf_files_come_back),
        cmocka_unit_test(the_package_writes_the_same_bytes),
        cmocka_unit_test(values_of_the_package_are_read),
        cmocka_unit_test(parts_of_the_package_are_read),
        cmocka_unit_test(every_truncated_gguf_file_is_refused),
        cmocka_unit_test(lying_gguf_files_are_refused),
        cmocka_unit_test(only_types_of_ggml_are_written),
        cmocka_unit_test(gguf_names_come_once),
        cmocka_unit_test(sentences_about_gguf_files_are_printable),
        cmocka_unit_test(gguf_numbers_have_any_width),
        cmocka_unit_test(other_gguf_types_are_refused),
        cmocka_unit_test(gguf_tensors_lie_anywhere),
        cmocka_unit_test(a_text_made_longer_is_told),
        cmocka_unit_test(a_full_disk_leaves_no_gguf_file),
        cmocka_unit_test(gguf_data_are_as_many_as_declared),
    };
    return cmocka_run_group_tests_name("gguf", tests, scratch_begin, scratch_end);
}
