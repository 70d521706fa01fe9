/* SPDX-License-Identifier: Apache-2.0
 *
 * test_apr.c: the container of APR files: what is written is read back, and false statements are refused.
 */
#include "apr_fixture.h"
#include "base/float16.h"
#include "formats/apr.h"
#include "formats/crc32.h"
#include "unit.h"

#include <omp.h>

enum { ROWS = 4, COLUMNS = 256, ALL = ROWS * COLUMNS };

static float number_of(size_t tensor, int64_t i)
{
    return (float)((i * 37 + (int64_t)tensor * 11) % 251 - 125) / 64;
}

/* One tensor of each type, in the order of names. */
static const struct {
    const char *name, *type; /* name in nojit */
    int dtype;
    int64_t columns;
} tensors[] = {
    {"a", "BF16", APR_FILE_BF16, COLUMNS}, {"b", "F16", APR_FILE_F16, COLUMNS},
    {"c", "F32", APR_FILE_F32, COLUMNS},   {"d", "Q4_0", APR_FILE_Q4, COLUMNS},
    {"e", "F32", APR_FILE_Q4, 200},        {"f", "Q4_K", APR_FILE_Q4_K, COLUMNS},
    {"g", "Q6_K", APR_FILE_Q6_K, COLUMNS}, {"h", "F32", APR_FILE_Q8, COLUMNS},
    {"i", "Q8_0", APR_FILE_Q8, COLUMNS},   {"j", "F32", APR_FILE_Q8, 200},
};
enum { TENSORS = sizeof tensors / sizeof *tensors };

static struct tensor_spec spec_of(size_t t)
{
    return (struct tensor_spec){.rank = 2, .shape = {ROWS, tensors[t].columns}};
}

/* A file with tensor t. The scales of types i and j are exact in float16. */
static struct apr_form form_of(size_t t)
{
    return (struct apr_form){.scale = tensors[t].name[0] >= 'i' ? 0x1p-6f : 0};
}

static struct apr_bytes values_of(size_t t)
{
    struct apr_bytes out = {0};
    const struct apr_form form = form_of(t);
    const struct tensor_spec spec = spec_of(t);
    float x[ALL];
    for (int64_t i = 0; i < ALL; i++)
        x[i] = number_of(t, i);
    apr_put_values(&out, &form, tensors[t].dtype, x, &spec);
    return out;
}

static struct apr_bytes sound(void)
{
    struct apr_bytes index = {0}, data = {0};
    for (size_t t = 0; t < TENSORS; t++) {
        const int64_t shape[] = {ROWS, tensors[t].columns};
        struct apr_bytes values = values_of(t);
        apr_entry(&index, tensors[t].name, tensors[t].dtype, 2, shape, data.bytes, values.bytes);
        apr_put(&data, values.data, values.bytes);
        apr_pad(&data);
        free(values.data);
    }
    const struct apr_bytes out =
        apr_file(512, "{\"key\":1,\"key\":2,\"none\":null}", TENSORS, &index, &data);
    free(index.data);
    free(data.data);
    return out;
}

/* Return an element by the format's own formulas. */
static float expected(size_t t, const struct apr_bytes *values, int64_t i)
{
    const unsigned char *at = values->data;
    uint16_t half;
    float scale;
    if (tensors[t].dtype == APR_FILE_Q8) {
        memcpy(&scale, at, sizeof scale);
        return (float)(int8_t)at[4 + i] * scale;
    }
    memcpy(&half, at + i / 32 * 18, sizeof half);
    const int number = at[i / 32 * 18 + 2 + i % 32 / 2] >> (i % 2 ? 4 : 0) & 15;
    return (float)(number - 8) * f32_from_f16(half);
}

static void check_own_blocks(size_t t, const struct tensor *found, const struct apr_bytes *values)
{
    const int64_t all = ROWS * tensors[t].columns;
    float x[ALL];
    uint16_t half[ALL];
    for (int64_t first = 0; first < all; first += 77) {
        tensor_to_f32(found, first, all - first, x);
        tensor_to_16(found, first, all - first, 0, half);
        for (int64_t i = first; i < all; i++) {
            assert_true(x[i - first] == expected(t, values, i));
            assert_int_equal(half[i - first], bf16_from_f32(expected(t, values, i)));
        }
    }
}

/* Check a tensor: blocks of ggml's types lie in the file unchanged, those of APR's own types are made while it is
 * read. */
static void check_tensor(size_t t, const struct tensor *found)
{
    struct apr_bytes values = values_of(t);
    const bool own = tensors[t].dtype >= APR_FILE_Q4;
    char rows[ALL * 4];
    assert_non_null(found);
    assert_string_equal(tensor_type_name(found->dtype), tensors[t].type);
    assert_true(found->rank == 2 && found->shape[0] == ROWS &&
                found->shape[1] == tensors[t].columns);
    assert_int_equal(found->bytes, tensor_type_bytes(found->dtype, ROWS * tensors[t].columns));
    if (own) {
        check_own_blocks(t, found, &values);
        assert_non_null(found->packed);
    } else {
        tensor_rows(found, 0, ROWS, rows);
        assert_int_equal(found->bytes, values.bytes);
        assert_memory_equal(rows, values.data, values.bytes);
    }
    free(values.data);
}

static int open_bytes(const unsigned char *data, size_t bytes)
{
    struct apr a;
    write_bytes(at("b.apr"), data, bytes);
    const int rc = apr_open(at("b.apr"), &a);
    if (rc == 0)
        apr_close(&a);
    return rc;
}

static void apr_files_come_back(void **state)
{
    (void)state;
    struct apr a;
    struct apr_bytes b = sound();
    write_bytes(at("a.apr"), b.data, b.bytes);
    free(b.data);
    assert_true(apr_is(at("a.apr")) && !apr_is(at("")) && !apr_is(at("absent")));
    check_ok(apr_open(at("a.apr"), &a), "open");
    check_ok(apr_check(a.path, &a.tensors), "checksum");
    assert_int_equal(json_integer_value(apr_value(&a, "key")), 2);
    assert_null(apr_value(&a, "none"));
    assert_null(apr_value(&a, "absent"));
    assert_int_equal(a.tensors.count, TENSORS);
    for (size_t t = 0; t < TENSORS; t++)
        check_tensor(t, tensors_find(&a.tensors, tensors[t].name));
    apr_close(&a);
}

/* The type numbers that an earlier version of the format used are still read. */
static void old_numbers_of_types_are_read(void **state)
{
    (void)state;
    struct apr a;
    struct apr_bytes b = sound();
    for (size_t i = 0; i + 4 < b.bytes; i++)
        for (size_t t = 0; t < TENSORS; t++)
            if (tensors[t].dtype >= APR_FILE_Q4 && b.data[i] == 1 && b.data[i + 1] == 0 &&
                b.data[i + 2] == (unsigned char)tensors[t].name[0] &&
                b.data[i + 3] == tensors[t].dtype && b.data[i + 4] == 2)
                b.data[i + 3] -= 120;
    apr_seal(b.data, b.bytes);
    write_bytes(at("old.apr"), b.data, b.bytes);
    free(b.data);
    check_ok(apr_open(at("old.apr"), &a), "old");
    for (size_t t = 0; t < TENSORS; t++)
        check_tensor(t, tensors_find(&a.tensors, tensors[t].name));
    apr_close(&a);
}

/* Checksums are correct for known bytes, and for more than a group of chunks, with any number of threads. */
static void checksums_are_those_of_zlib(void **state)
{
    (void)state;
    enum { MANY = 67 << 20 };
    assert_true(crc32_of("123456789", 9) == 0xcbf43926 && crc32_of("", 0) == 0);
    unsigned char *data = malloc(MANY);
    assert_non_null(data);
    for (size_t i = 0; i < MANY; i++)
        data[i] = (unsigned char)(i * 31 + (i >> 12));
    const uint32_t want = apr_crc(data, MANY);
    for (int threads = 1; threads <= 3; threads += 2) {
        omp_set_num_threads(threads);
        assert_true(crc32_of(data, MANY) == want);
    }
    for (size_t bytes = 1; bytes < 40; bytes++)
        assert_true(crc32_of(data + 1, bytes) == apr_crc(data + 1, bytes));
    free(data);
}

static void damaged_apr_weights_are_found(void **state)
{
    (void)state;
    struct apr a;
    struct apr_bytes b = sound();
    b.data[b.bytes - 200] ^= 1;
    write_bytes(at("damaged.apr"), b.data, b.bytes);
    free(b.data);
    check_ok(apr_open(at("damaged.apr"), &a), "open");
    check_refused(apr_check(a.path, &a.tensors), NJ_E_FORMAT, "the checksum at its end is wrong",
                  "damaged");
    apr_close(&a);
}

/* Every cut before the end of the data is noticed without the checksum. */
static void cut_apr_files_are_refused(void **state)
{
    (void)state;
    struct apr_bytes b = sound();
    for (size_t bytes = 0; bytes + 68 < b.bytes; bytes += bytes < 1200 ? 1 : 97) {
        const int rc = open_bytes(b.data, bytes);
        if (rc != NJ_E_FORMAT || strstr(fail_text(), "again") == NULL)
            fail_msg("%zu bytes: %d \"%s\"", bytes, rc, fail_text());
    }
    free(b.data);
}

static size_t find(const struct apr_bytes *b, const char *name)
{
    const size_t bytes = strlen(name);
    for (size_t i = 64; i + bytes < b->bytes; i++)
        if (b->data[i - 2] == bytes && b->data[i - 1] == 0 && memcmp(b->data + i, name, bytes) == 0)
            return i + bytes;
    fail_msg("%s is not there", name);
    return 0;
}

/* Bytes are changed at a place, and the checksums corrected. */
static void lying_apr_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *after; /* name of a tensor; NULL: the start of the file */
        long offset;
        size_t bytes;
        uint64_t value;
        int code;
        const char *message;
    } lies[] = {
        {NULL, 0, 3, 0x585858, NJ_E_FORMAT, "not an APR file"},
        {NULL, 3, 1, 'N', NJ_E_UNSUPPORTED, "APR version 1; import the model again"},
        {NULL, 4, 1, 1, NJ_E_UNSUPPORTED, "APR version 1; write the model as version 2"},
        {NULL, 4, 1, 3, NJ_E_UNSUPPORTED, "APR version 3; write the model as version 2"},
        {NULL, 6, 2, 1025, NJ_E_UNSUPPORTED, "the file is compressed (LZ4); write it again"},
        {NULL, 6, 2, 1026, NJ_E_UNSUPPORTED, "the file is compressed (Zstandard); write it"},
        {NULL, 6, 2, 1028, NJ_E_UNSUPPORTED, "the file is encrypted; decrypt it first"},
        {NULL, 6, 2, 1040, NJ_E_UNSUPPORTED, "the file is one of several shards; write"},
        {NULL, 6, 2, 3072, NJ_E_UNSUPPORTED, "the file is laid out by columns; import"},
        {NULL, 8, 4, UINT32_MAX, NJ_E_FORMAT, "the list of tensors has"},
        {NULL, 8, 4, 60, NJ_E_FORMAT, "a tensor's name has"},
        {NULL, 12, 8, 8, NJ_E_FORMAT, "the metadata has"},
        {NULL, 12, 8, UINT64_MAX, NJ_E_FORMAT, "the metadata has"},
        {NULL, 20, 4, UINT32_MAX, NJ_E_FORMAT, "bytes of metadata; at most 16777216"},
        {NULL, 20, 4, 1 << 24, NJ_E_FORMAT, "the metadata has 16777216 bytes from byte 64"},
        {NULL, 20, 4, 5, NJ_E_FORMAT, "(metadata):1"},
        {NULL, 24, 8, 0, NJ_E_FORMAT, "the list of tensors has"},
        {NULL, 24, 8, (uint64_t)1 << 60, NJ_E_FORMAT, "the list of tensors has"},
        {NULL, 32, 8, (uint64_t)1 << 60, NJ_E_FORMAT, "it may be cut short"},
        {NULL, 32, 8, 129, NJ_E_FORMAT, "the data begin at byte 129, no multiple of 64"},
        {NULL, 32, 8, 64, NJ_E_FORMAT, "the data begin at byte 64, before the metadata"},
        {NULL, 32, 8, UINT64_MAX - 63, NJ_E_FORMAT, "it may be cut short"},
        {"a", -3, 2, 0, NJ_E_FORMAT, "a tensor's name has 0 bytes"},
        {"a", -3, 2, 128, NJ_E_FORMAT, "a tensor's name has 128 bytes; 1 to 127"},
        {"a", -1, 1, 0, NJ_E_FORMAT, "a tensor's name holds a zero byte"},
        {"a", -1, 1, 'b', NJ_E_FORMAT, "tensor b follows b, out of order"},
        {"a", -1, 1, 'z', NJ_E_FORMAT, "tensor b follows z, out of order"},
        {"a", 0, 1, 2, NJ_E_FORMAT, "has the type 2, which APR does not know"},
        {"a", 0, 1, 3, NJ_E_UNSUPPORTED, "tensor a is F64, which is not supported"},
        {"a", 0, 1, 7, NJ_E_UNSUPPORTED, "tensor a is U8, which is not supported"},
        {"a", 0, 1, 39, NJ_E_UNSUPPORTED, "tensor a is MXFP4, which is not supported"},
        {"a", 0, 1, 40, NJ_E_UNSUPPORTED, "tensor a is NVFP4, which is not supported"},
        {"a", 0, 1, 0, NJ_E_FORMAT, "tensor a has 2048 bytes, where F32 of its shape has 4096"},
        {"a", 0, 1, 8, NJ_E_FORMAT, "tensor a has 2048 bytes, where APR_Q4 of its shape has 576"},
        {"a", 1, 1, 0, NJ_E_FORMAT, "has 0 dimensions"},
        {"a", 1, 1, 5, NJ_E_FORMAT, "has 5 dimensions"},
        {"a", 2, 8, 0, NJ_E_FORMAT, "its shape is empty or too large"},
        {"a", 2, 8, UINT64_MAX, NJ_E_FORMAT, "its shape is empty or too large"},
        {"a", 10, 8, (uint64_t)1 << 55, NJ_E_FORMAT, "its shape is empty or too large"},
        {"a", 18, 8, 32, NJ_E_FORMAT, "begins at byte 32 of the data, no multiple of 64"},
        {"a", 18, 8, (uint64_t)1 << 63, NJ_E_FORMAT, "it may be cut short"},
        {"a", 18, 8, (uint64_t)-64, NJ_E_FORMAT, "it may be cut short"},
        {"a", 18, 8, 2048, NJ_E_FORMAT, "overlap"},
        {"a", 26, 8, UINT64_MAX, NJ_E_FORMAT, "has 18446744073709551615 bytes, where BF16"},
        {"f", 10, 8, 255, NJ_E_UNSUPPORTED, "rows of 255 elements, which are not whole blocks"},
        {"h", 26, 8, 1027, NJ_E_FORMAT, "has 1027 bytes, where APR_Q8 of its shape has 1028"},
    };
    struct apr_bytes b = sound();
    unsigned char *lying = malloc(b.bytes);
    assert_non_null(lying);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const size_t from = (lies[i].after ? find(&b, lies[i].after) : 0) + (size_t)lies[i].offset;
        memcpy(lying, b.data, b.bytes);
        for (size_t k = 0; k < lies[i].bytes; k++)
            lying[from + k] = (unsigned char)(lies[i].value >> 8 * k);
        apr_seal(lying, b.bytes);
        check_refused(open_bytes(lying, b.bytes), lies[i].code, lies[i].message, lies[i].message);
    }
    memcpy(lying, b.data, b.bytes);
    lying[50] ^= 1;
    check_refused(open_bytes(lying, b.bytes), NJ_E_FORMAT, "the header's checksum is wrong", "50");
    free(lying);
    free(b.data);
}

/* One row of 4 elements, where quantization needs 256. */
static void apr_lists_are_not_quantized(void **state)
{
    (void)state;
    static const int types[] = {APR_FILE_Q4_K, APR_FILE_Q6_K, APR_FILE_Q4, APR_FILE_Q8};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct apr_bytes index = {0}, data = {0};
        apr_entry(&index, "norm", types[i], 1, (const int64_t[]){256}, 0, 64);
        apr_put_number(&data, 0, 64);
        struct apr_bytes b = apr_file(0, "{}", 1, &index, &data);
        check_refused(open_bytes(b.data, b.bytes), NJ_E_UNSUPPORTED,
                      "norms and biases must be F32, F16 or BF16", "norm");
        free(b.data);
        free(index.data);
        free(data.data);
    }
}

static void apr_metadata_are_an_object(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {{"[1]", "the metadata are not a JSON object"},
               {"{\"a\":}", "(metadata):1"},
               {"", "(metadata)"},
               {"{\"a\":\"\xff\"}", "(metadata):1"}};
    const struct apr_bytes none = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct apr_bytes b = apr_file(0, bad[i].text, 0, &none, &none);
        check_refused(open_bytes(b.data, b.bytes), NJ_E_FORMAT, bad[i].message, bad[i].text);
        free(b.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(apr_files_come_back),
        cmocka_unit_test(old_numbers_of_types_are_read),
        cmocka_unit_test(checksums_are_those_of_zlib),
        cmocka_unit_test(damaged_apr_weights_are_found),
        cmocka_unit_test(cut_apr_files_are_refused),
        cmocka_unit_test(lying_apr_files_are_refused),
        cmocka_unit_test(apr_lists_are_not_quantized),
        cmocka_unit_test(apr_metadata_are_an_object),
    };
    return cmocka_run_group_tests_name("apr", tests, scratch_begin, scratch_end);
}
