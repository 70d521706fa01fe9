/* SPDX-License-Identifier: Apache-2.0
 *
 * test_dequantize.c: blocks of every quantized type, as each device expands them, against the values of ggml's Python
 * package or of a formula in numpy (tests/golden/make_blocks.py, which describes the file).
 */
#include "device_fixture.h"

#include "base/tensor_type.h"
#include "nojit_ops.h"

#include <math.h>

/* the number in make_blocks.py */
enum { BLOCKS = 6 };
enum { FIRST = NJ_TYPE_Q8_0, BYTES_MOST = BLOCKS * 210, ELEMENTS_MOST = BLOCKS * 256 };

static const char *const names[] = {
#define NAME(name, elements, bytes) #name,
    NJ_TENSOR_TYPES(NAME)
#undef NAME
};
static const int block_elements[] = {
#define ELEMENTS(name, elements, bytes) elements,
    NJ_TENSOR_TYPES(ELEMENTS)
#undef ELEMENTS
};

static struct golden {
    unsigned char blocks[BYTES_MOST];
    float values[ELEMENTS_MOST];
} golden[NJ_TYPES];

static size_t block_bytes(int type)
{
    return (size_t)nj_row_bytes(type, block_elements[type]);
}

static int read_golden(void **state)
{
    (void)state;
    FILE *f = fopen("tests/golden/blocks.bin", "rb");
    assert_non_null(f);
    for (int type = FIRST; type < NJ_TYPES; type++) {
        const size_t values = (size_t)BLOCKS * (size_t)block_elements[type];
        assert_int_equal(fread(golden[type].blocks, block_bytes(type), BLOCKS, f), BLOCKS);
        assert_int_equal(fread(golden[type].values, sizeof(float), values, f), values);
    }
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    return 0;
}

/* Expand the type's golden blocks on the device: M of R rows, by index if there is one. */
static void expand(struct device *d, enum nj_dtype T, int type, int M, int R, const int32_t *index,
                   void *host, size_t bytes)
{
    const int C = BLOCKS / R * block_elements[type];
    void *dst, *data, *rows = NULL;
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, bytes, &dst), 0);
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, BYTES_MOST, &data), 0);
    assert_int_equal(nj_copy(d->s, data, golden[type].blocks, BYTES_MOST), 0);
    if (index) {
        assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, (size_t)M * sizeof *index, &rows), 0);
        assert_int_equal(nj_copy(d->s, rows, index, (size_t)M * sizeof *index), 0);
    }
    assert_int_equal(
        nj_dequantize(d->s, T, type,
                      &(struct nj_dequantize){
                          .dst = dst, .data = data, .index = rows, .M = M, .R = R, .C = C}),
        0);
    assert_int_equal(nj_copy(d->s, host, dst, bytes), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    nj_free(d->ctx, NJ_MEM_DEVICE, dst);
    nj_free(d->ctx, NJ_MEM_DEVICE, data);
    nj_free(d->ctx, NJ_MEM_DEVICE, rows);
}

static void assert_same_bits(int type, const float *got, const float *want, int count)
{
    for (int i = 0; i < count; i++)
        if (memcmp(got + i, want + i, sizeof *got) != 0)
            fail_msg("%s, element %d of block %d: %a, not %a", names[type],
                     i % block_elements[type], i / block_elements[type], (double)got[i],
                     (double)want[i]);
}

static void values_have_the_bits_of_the_formula(void **state)
{
    struct device *d = need(state);
    for (int type = FIRST; type < NJ_TYPES; type++) {
        float got[ELEMENTS_MOST];
        const int count = BLOCKS * block_elements[type];
        expand(d, NJ_F32, type, 1, 1, NULL, got, (size_t)count * sizeof *got);
        assert_same_bits(type, got, golden[type].values, count);
    }
}

static void an_index_names_rows(void **state)
{
    static const int32_t index[] = {2, -1, 0, 2, 1};
    enum { M = sizeof index / sizeof *index, R = 3 };
    struct device *d = need(state);
    for (int type = FIRST; type < NJ_TYPES; type++) {
        float got[M * ELEMENTS_MOST / R];
        static const float zeros[ELEMENTS_MOST / R];
        const int C = BLOCKS / R * block_elements[type];
        expand(d, NJ_F32, type, M, R, index, got, (size_t)(M * C) * sizeof *got);
        for (int m = 0; m < M; m++)
            assert_same_bits(type, got + m * C,
                             index[m] < 0 ? zeros : golden[type].values + index[m] * C, C);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_the_bits_of_the_formula),
        cmocka_unit_test(an_index_names_rows),
    };
    read_golden(NULL);
    return RUN_ON_DEVICES(tests);
}
