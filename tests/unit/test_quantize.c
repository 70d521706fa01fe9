/* SPDX-License-Identifier: Apache-2.0
 *
 * test_quantize.c: blocks against those of ggml, byte for byte (tests/golden/quantized.txt; make_quantized.py, which
 * writes it, describes it and makes the same rows).
 */
#include "formats/quantize.h"
#include "formats/tensors.h"
#include "unit.h"

#include <math.h>
#include <omp.h>

enum { COLUMNS = 1024, KINDS = 17 };

/* Return SplitMix64's output function. */
static uint64_t mixed(uint64_t n)
{
    uint64_t z = (n + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static float bell(uint64_t i, uint64_t seed)
{
    const uint64_t r = mixed(i + (seed << 32));
    int64_t sum = -131070;
    for (int k = 0; k < 64; k += 16)
        sum += (int64_t)(r >> k & 0xffff);
    return (float)sum;
}

/* Return value i of a kind of row, as make_quantized.py does. */
static float value(const char *kind, uint64_t i, uint64_t seed)
{
    const float b = bell(i, seed), normal = b * 1e-6f;
    const uint64_t u = mixed(mixed(i + (seed << 32)));
    const float zero = u & 1 ? -0.0f : 0;
    const struct {
        const char *name;
        float x;
    } kinds[KINDS] = {
        {"normal", normal},
        {"heavy", b / (1 + (float)(u & 0xffff))},
        {"constant", bell(i - i % 256, seed) * 1e-6f},
        {"zero", zero},
        {"spike", mixed(i / 256) % 256 == i % 256 ? normal : 0},
        {"tiny", b * 1e-35f},
        {"scale_zero", b * 1e-13f},
        {"denormal", b * 0x1p-149f},
        {"denormal_scale", b * 0x1p-143f},
        {"large", b * 0.25f},
        {"negative", -fabsf(normal)},
        {"positive", fabsf(normal)},
        {"offset", 100 + normal},
        {"near", -1 + b * 1e-12f},
        {"ties", ((float)(u % 509) - 254) * 0.5f},
        {"sparse", u % 20 == 0 ? normal : zero},
        {"scales", normal * ldexpf(1, -(int)(mixed(i / 16) % 40))},
    };
    for (int k = 0; k < KINDS; k++)
        if (strcmp(kinds[k].name, kind) == 0)
            return kinds[k].x;
    fail_msg("%s: no such kind", kind);
    return 0;
}

static void fill(float *x, int64_t count, const char *kind, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = value(kind, (uint64_t)i, seed);
}

static uint32_t crc_32(const unsigned char *data, size_t bytes)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void hexadecimal(const unsigned char *data, size_t bytes, char *out)
{
    for (size_t i = 0; i < bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", data[i]);
}

/* Check every line with that type; NOJIT_QUANTIZED names another table. */
static void equal_ggml(enum nj_tensor_type type)
{
    const char *path = getenv("NOJIT_QUANTIZED");
    FILE *table = fopen(path ? path : "tests/golden/quantized.txt", "r");
    assert_non_null(table);
    unsigned long long seed;
    int rows, lines = 0;
    assert_int_equal(fscanf(table, "%llu %d", &seed, &rows), 2);
    const int64_t count = (int64_t)rows * COLUMNS;
    float *x = malloc((size_t)count * sizeof *x);
    unsigned char *blocks = malloc(tensor_type_bytes(type, count));
    char name[8], kind[32], want[512], got[512];
    unsigned crc;
    while (fscanf(table, "%7s %31s %x %511s", name, kind, &crc, want) == 4) {
        if (strcmp(name, tensor_type_name(type)) != 0)
            continue;
        fill(x, count, kind, seed);
        assert_int_equal(quantize_rows(type, x, rows, COLUMNS, blocks), 0);
        hexadecimal(blocks, tensor_type_bytes(type, tensor_type_block(type)), got);
        if (strcmp(want, "-") != 0)
            assert_string_equal(got, want);
        if (crc_32(blocks, tensor_type_bytes(type, count)) != crc)
            fail_msg("%s, %s: other blocks than ggml's", name, kind);
        lines++;
    }
    assert_int_equal(lines, KINDS);
    free(blocks);
    free(x);
    fclose(table);
}

#define EQUAL(type)                                                                                \
    static void type##_is_ggmls(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        equal_ggml(NJ_TYPE_##type);                                                                \
    }
EQUAL(Q8_0)
EQUAL(Q4_0)
EQUAL(Q4_1)
EQUAL(Q5_0)
EQUAL(Q5_1)
EQUAL(Q4_K)
EQUAL(Q5_K)
EQUAL(Q6_K)

static void threads_do_not_matter(void **state)
{
    (void)state;
    enum { ROWS = 37 };
    static float x[ROWS * COLUMNS];
    static unsigned char one[sizeof x], more[sizeof x];
    fill(x, ROWS * COLUMNS, "heavy", 3);
    for (int type = 0; type < NJ_TYPES; type++) {
        if (!quantize_supports(type))
            continue;
        const size_t bytes = tensor_type_bytes(type, ROWS * COLUMNS);
        omp_set_num_threads(1);
        assert_int_equal(quantize_rows(type, x, ROWS, COLUMNS, one), 0);
        for (int threads = 2; threads < 9; threads += 3) {
            omp_set_num_threads(threads);
            memset(more, 0, bytes);
            assert_int_equal(quantize_rows(type, x, ROWS, COLUMNS, more), 0);
            assert_memory_equal(one, more, bytes);
        }
    }
}

static void sixteen_bits_are_rounded_to_nearest(void **state)
{
    (void)state;
    float x[COLUMNS];
    uint16_t got[COLUMNS], want[COLUMNS];
    fill(x, COLUMNS, "heavy", 5);
    const struct tensor t = {.dtype = NJ_TYPE_F32, .rank = 1, .shape = {COLUMNS}, .data = x};
    for (int f16 = 0; f16 < 2; f16++) {
        tensor_to_16(&t, 0, COLUMNS, f16, want);
        assert_int_equal(quantize_rows(f16 ? NJ_TYPE_F16 : NJ_TYPE_BF16, x, 1, COLUMNS, got), 0);
        assert_memory_equal(got, want, sizeof want);
    }
}

/* One value among ordinary ones, at any place of any row. */
static void what_no_block_holds_is_refused(void **state)
{
    (void)state;
    enum { ROWS = 3 };
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY, 3.4e38f, 1e30f, -1e10f, 3e8f};
    static float x[ROWS * COLUMNS];
    static unsigned char blocks[sizeof x];
    for (int type = 0; type < NJ_TYPES; type++) {
        if (!quantize_supports(type))
            continue;
        const bool wide = type == NJ_TYPE_F32 || type == NJ_TYPE_BF16;
        for (size_t b = 0; b < (wide ? 4 : sizeof bad / sizeof *bad); b++) {
            fill(x, ROWS * COLUMNS, "normal", 7);
            x[(size_t)(type * 997 + (int)b * 501) % (ROWS * COLUMNS)] = bad[b];
            if (quantize_rows(type, x, ROWS, COLUMNS, blocks) != NJ_E_FORMAT)
                fail_msg("%s takes %g", tensor_type_name(type), (double)bad[b]);
        }
    }
    x[0] = 3.4e38f;
    assert_int_equal(quantize_rows(NJ_TYPE_F32, x, 1, COLUMNS, blocks), 0);
    x[0] = 3.4e38f * 1.0008f; /* the next bfloat16 value is infinity */
    assert_int_equal(quantize_rows(NJ_TYPE_BF16, x, 1, COLUMNS, blocks), NJ_E_FORMAT);
}

static void broken_blocks_and_other_types_are_refused(void **state)
{
    (void)state;
    float x[COLUMNS] = {0};
    unsigned char blocks[sizeof x];
    assert_int_equal(quantize_rows(NJ_TYPE_Q4_K, x, 1, 128, blocks), NJ_E_ARG);
    assert_int_equal(quantize_rows(NJ_TYPE_Q8_0, x, 1, 48, blocks), NJ_E_ARG);
    assert_int_equal(quantize_rows(NJ_TYPE_Q2_K, x, 1, 256, blocks), NJ_E_ARG);
    assert_int_equal(quantize_rows(NJ_TYPE_Q8_0, x, 0, 32, blocks), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(Q8_0_is_ggmls),
        cmocka_unit_test(Q4_0_is_ggmls),
        cmocka_unit_test(Q4_1_is_ggmls),
        cmocka_unit_test(Q5_0_is_ggmls),
        cmocka_unit_test(Q5_1_is_ggmls),
        cmocka_unit_test(Q4_K_is_ggmls),
        cmocka_unit_test(Q5_K_is_ggmls),
        cmocka_unit_test(Q6_K_is_ggmls),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(sixteen_bits_are_rounded_to_nearest),
        cmocka_unit_test(what_no_block_holds_is_refused),
        cmocka_unit_test(broken_blocks_and_other_types_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
