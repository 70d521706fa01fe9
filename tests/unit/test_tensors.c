/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tensors.c: rows of a tensor whose file holds them in the order of pairs.
 */
#include "base/float16.h"
#include "formats/tensors.h"
#include "hash_tensors.h"
#include "unit.h"

enum { HEADS = 3, HEAD_DIM = 8, ROWS = HEADS * HEAD_DIM, COLUMNS = 64 };

/* Return the place at which llama.cpp puts row s * D / 2 + j of a head. */
static int64_t place(int64_t row)
{
    const int64_t h = row / HEAD_DIM, s = row % HEAD_DIM / (HEAD_DIM / 2);
    return h * HEAD_DIM + 2 * (row % (HEAD_DIM / 2)) + s;
}

static void rows_of_pairs_come_in_order(void **state)
{
    (void)state;
    const enum nj_tensor_type types[] = {NJ_TYPE_F32, NJ_TYPE_F16, NJ_TYPE_Q8_0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t row_bytes = tensor_type_bytes(types[i], COLUMNS);
        unsigned char file[ROWS * COLUMNS * 4], rows[ROWS * COLUMNS * 4];
        for (size_t b = 0; b < row_bytes * ROWS; b++)
            file[b] = (unsigned char)(b * 7 + b / row_bytes);
        struct tensor t = {.dtype = types[i], .rank = 2, .shape = {ROWS, COLUMNS}, .data = file};
        tensor_rows(&t, 5, ROWS - 5, rows);
        assert_memory_equal(rows, file + 5 * row_bytes, row_bytes * (ROWS - 5));
        t.pairs = HEADS;
        tensor_rows(&t, 5, ROWS - 5, rows);
        for (int64_t r = 5; r < ROWS; r++)
            assert_memory_equal(rows + (size_t)(r - 5) * row_bytes,
                                file + (size_t)place(r) * row_bytes, row_bytes);
    }
}

/* Ranges begin and end in the middle of rows. */
static void elements_of_pairs_come_in_order(void **state)
{
    (void)state;
    for (int rank = 1; rank <= 2; rank++) {
        const int64_t columns = rank == 2 ? COLUMNS : 1, all = ROWS * columns;
        float file[ROWS * COLUMNS], wide[ROWS * COLUMNS];
        uint16_t half[ROWS * COLUMNS];
        for (int64_t k = 0; k < all; k++)
            file[k] = (float)k;
        const struct tensor t = {.dtype = NJ_TYPE_F32,
                                 .rank = rank,
                                 .shape = {ROWS, columns},
                                 .data = file,
                                 .pairs = HEADS};
        for (int64_t first = 0; first < all; first += all / 3 - 1) {
            tensor_to_f32(&t, first, all - first, wide);
            tensor_to_16(&t, first, all - first, 1, half);
            for (int64_t k = first; k < all; k++) {
                const float want = file[place(k / columns) * columns + k % columns];
                assert_float_equal(wide[k - first], want, 0);
                assert_int_equal(half[k - first], f16_from_f32(want));
            }
        }
    }
}

/* Blocks of Q8_0 with scale 1/2: ranges begin and end in the middle of a block, also in the order of pairs. */
static void quantized_elements_are_expanded(void **state)
{
    (void)state;
    enum { BLOCK = 34, BLOCKS = ROWS * COLUMNS / 32, ALL = ROWS * COLUMNS };
    static unsigned char file[BLOCKS * BLOCK];
    static float wide[ALL];
    static uint16_t half[ALL];
    for (int b = 0; b < BLOCKS; b++) {
        file[b * BLOCK + 1] = 0x38;
        for (int e = 0; e < 32; e++)
            file[b * BLOCK + 2 + e] = (unsigned char)(b * 3 + e * 7);
    }
    for (int pairs = 0; pairs <= HEADS; pairs += HEADS) {
        const struct tensor t = {.dtype = NJ_TYPE_Q8_0,
                                 .rank = 2,
                                 .shape = {ROWS, COLUMNS},
                                 .data = file,
                                 .bytes = sizeof file,
                                 .pairs = pairs};
        for (int first = 0; first < ALL; first += 333) {
            tensor_to_f32(&t, first, ALL - first, wide);
            tensor_to_16(&t, first, ALL - first, 0, half);
            for (int k = first; k < ALL; k++) {
                const int64_t row = pairs ? place(k / COLUMNS) : k / COLUMNS;
                const int64_t from = row * COLUMNS + k % COLUMNS;
                const float want = 0.5f * (float)(int8_t)file[from / 32 * BLOCK + 2 + from % 32];
                assert_float_equal(wide[k - first], want, 0);
                assert_int_equal(half[k - first], bf16_from_f32(want));
            }
        }
    }
}

/* The same bytes in another order of rows are different weights. */
static void the_order_of_elements_is_hashed(void **state)
{
    (void)state;
    float file[ROWS] = {0};
    struct tensor t = {.name = "q", .rank = 1, .shape = {ROWS}, .data = file, .bytes = sizeof file};
    struct tensors w = {.tensor = &t, .count = 1};
    const uint64_t plain = hash_tensors(&w);
    t.pairs = HEADS;
    assert_true(hash_tensors(&w) != plain);
    t.pairs = 0;
    t.added = -1;
    assert_true(hash_tensors(&w) != plain);
}

/* Gains of 1 + w, where w has 8 bits, give w back, whatever type they are read as. */
static void a_number_is_added_to_each_element(void **state)
{
    (void)state;
    float stored[ROWS], wide[ROWS];
    uint16_t half[ROWS], brain[ROWS];
    for (int i = 0; i < ROWS; i++)
        stored[i] = 1 + f32_from_bf16(bf16_from_f32(0.37f * (float)(i - ROWS / 2)));
    struct tensor t = {
        .dtype = NJ_TYPE_F32, .rank = 1, .shape = {ROWS}, .data = stored, .added = -1};
    assert_false(tensor_is_as_stored(&t));
    tensor_to_f32(&t, 1, ROWS - 1, wide);
    tensor_to_16(&t, 1, ROWS - 1, 1, half);
    tensor_to_16(&t, 1, ROWS - 1, 0, brain);
    for (int i = 1; i < ROWS; i++) {
        const float want = f32_from_bf16(bf16_from_f32(0.37f * (float)(i - ROWS / 2)));
        assert_float_equal(wide[i - 1], want, 0);
        assert_int_equal(half[i - 1], f16_from_f32(want));
        assert_int_equal(brain[i - 1], bf16_from_f32(want));
    }
    for (int i = 0; i < ROWS; i++)
        brain[i] = bf16_from_f32(1.5f);
    t = (struct tensor){
        .dtype = NJ_TYPE_BF16, .rank = 1, .shape = {ROWS}, .data = brain, .added = -1};
    tensor_to_16(&t, 0, ROWS, 0, half);
    assert_int_equal(half[ROWS - 1], bf16_from_f32(0.5f));
    t.added = 0;
    assert_true(tensor_is_as_stored(&t));
}

/* Receipts and runs that are resumed contain the hash, so it is the same in all releases. */
static void the_hash_of_tensors_stays(void **state)
{
    (void)state;
    const size_t bytes = ((size_t)5 << 20) + 12;
    unsigned char *file = malloc(bytes);
    assert_non_null(file);
    uint32_t seed = 1;
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        file[i] = (unsigned char)(seed >> 24);
    }
    struct tensor t[] = {{"a", NJ_TYPE_F32, 1, {(int64_t)bytes / 4}, .data = file, .bytes = bytes},
                         {"b", NJ_TYPE_BF16, 2, {2, 3}, .data = file + 1, .bytes = 12}};
    const struct tensors w = {.tensor = t, .count = 2};
    assert_true(hash_tensors(&w) == 0x5a5a8cec5fb8e02e);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_pairs_come_in_order),
        cmocka_unit_test(elements_of_pairs_come_in_order),
        cmocka_unit_test(quantized_elements_are_expanded),
        cmocka_unit_test(the_order_of_elements_is_hashed),
        cmocka_unit_test(a_number_is_added_to_each_element),
        cmocka_unit_test(the_hash_of_tensors_stays),
    };
    return cmocka_run_group_tests_name("tensors", tests, NULL, NULL);
}
