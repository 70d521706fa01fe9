/* SPDX-License-Identifier: Apache-2.0
 *
 * test_file_rows.c: the rows of heads that files have in another order than kernels, or between those of another
 * tensor.
 */
#include "model/file_rows.h"
#include "unit.h"

#include <stdlib.h>

/* A model whose files hold the gates behind the queries of each of two heads of 64 elements, of which 16 rotate. */
static struct model_config gated(void)
{
    struct model_config c = {.model_type = "qwen3_5_text",
                             .hidden_size = 8,
                             .layers = 1,
                             .vocab_size = 16,
                             .max_positions = 64,
                             .rms_eps = 1e-6f,
                             CONFIG_PLAIN(2, 1, 64, 8,
                                          FEATURE_BIT(FEATURE_QK_NORM) | FEATURE_BIT(FEATURE_GATE) |
                                              FEATURE_BIT(FEATURE_GATED_Q)),
                             CONFIG_ROPE(1e4)};
    c.arch.rope[0].rotary = 16;
    return c;
}

static void elements_that_rotate_together_lie_half_a_head_apart(void **state)
{
    (void)state;
    enum { D = 64, ROTARY = 16 };
    for (int i = 0; i < D / 2; i++) {
        const int low = head_element(D, ROTARY, i), high = head_element(D, ROTARY, i + D / 2);
        if (i < ROTARY / 2)
            assert_true(low == i && high == i + ROTARY / 2);
        else
            assert_true(low >= ROTARY && high >= ROTARY);
    }
}

static void places_are_the_inverse_of_elements(void **state)
{
    (void)state;
    static const int rotary[] = {2, 16, 62, 64};
    enum { D = 64 };
    for (size_t k = 0; k < sizeof rotary / sizeof *rotary; k++)
        for (int e = 0, count; e < D; e += count) {
            const int place = head_place(D, rotary[k], e, &count);
            assert_true(count > 0 && e + count <= D);
            for (int i = 0; i < count; i++)
                assert_int_equal(head_element(D, rotary[k], place + i), e + i);
        }
}

/* Rows that are read as the model has them are written where they were. */
static void rows_are_written_where_they_were_read(void **state)
{
    (void)state;
    const struct model_config c = gated();
    struct tensor_spec *spec;
    struct file_tensor *file;
    size_t specs, files, joined = 0;
    check_ok(tensor_specs(&c, &spec, &specs), "specs");
    check_ok(file_tensors(&c, spec, specs, &file, &files), "tensors");
    assert_int_equal(files + 1, specs); /* queries and gates are one */
    for (size_t f = 0; f < files; f++) {
        struct file_run run;
        for (int64_t row = 0; row < file[f].spec.shape[0]; row += run.count) {
            run = file_run(&c, &file[f], spec, row);
            const struct head_order o = file_order(&c, &spec[run.spec]);
            for (int64_t i = 0; i < run.count && o.heads > 0; i++)
                assert_int_equal(head_order_row(&o, run.row + i), row + i);
            joined += spec[run.spec].role == ROLE_ATTENTION_GATE ? (size_t)run.count : 0;
        }
    }
    assert_int_equal(joined, 2 * 64);
    free(file);
    free(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_that_rotate_together_lie_half_a_head_apart),
        cmocka_unit_test(places_are_the_inverse_of_elements),
        cmocka_unit_test(rows_are_written_where_they_were_read),
    };
    return cmocka_run_group_tests_name("file_rows", tests, NULL, NULL);
}
