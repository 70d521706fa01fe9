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

/* A model whose files hold the rows of its delta rule by key head: of two, each with `values` value heads. */
static struct model_config grouped(int values)
{
    struct model_config c = gated();
    c.layers = 2;
    c.arch.kind[1] = c.arch.kind[0];
    c.arch.kind_of[0] = 1;
    c.arch.kind[1].block[0] = (struct block){
        .kind = BLOCK_DELTA,
        .features = NORMED_BEFORE | FEATURE_BIT(FEATURE_DELTA) | FEATURE_BIT(FEATURE_GROUPED_DELTA),
        .heads = 2 * values,
        .kv_heads = 2,
        .head_dim = 64,
        .taps = 4};
    return c;
}

/* A file has for each key head its query, its key, its value heads, and as many rows of z; then b and a of each. */
static void rows_of_key_heads_lie_together(void **state)
{
    (void)state;
    enum { D = 64 };
    for (int values = 1; values <= 3; values++) {
        const struct model_config c = grouped(values);
        const int head = 2 * (1 + values) * D;
        const struct {
            enum tensor_role role;
            int row, want;
        } rows[] = {
            {ROLE_DELTA_Q_WEIGHT, 0, 0},
            {ROLE_DELTA_Q_WEIGHT, D + 3, head + 3},
            {ROLE_DELTA_K_WEIGHT, D, head + D},
            {ROLE_DELTA_V_WEIGHT, values * D - 1, (2 + values) * D - 1},
            {ROLE_DELTA_V_WEIGHT, values * D, head + 2 * D},
            {ROLE_DELTA_Z_WEIGHT, values * D + 5, head + (2 + values) * D + 5},
            {ROLE_DELTA_B_WEIGHT, values, 2 * values},
            {ROLE_DELTA_A_WEIGHT, 2 * values - 1, 4 * values - 1},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const struct tensor_spec s = {.role = rows[i].role};
            const struct head_order o = file_order(&c, &s);
            assert_int_equal(head_order_row(&o, rows[i].row), rows[i].want);
        }
    }
}

/* Check that rows that are read as the model has them are written where they were. Return how many tensors of the
 * model are in those of others. */
static size_t check_written_rows(const struct model_config *c)
{
    struct tensor_spec *spec;
    struct file_tensor *file;
    size_t specs, files;
    check_ok(tensor_specs(c, &spec, &specs), "specs");
    check_ok(file_tensors(c, spec, specs, &file, &files), "tensors");
    for (size_t f = 0; f < files; f++) {
        struct file_run run;
        for (int64_t row = 0; row < file[f].spec.shape[0]; row += run.count) {
            run = file_run(c, &file[f], spec, row);
            const struct head_order o = file_order(c, &spec[run.spec]);
            assert_true(run.count > 0);
            for (int64_t i = 0; i < run.count && o.heads > 0; i++)
                assert_int_equal(head_order_row(&o, run.row + i), row + i);
        }
    }
    free(file);
    free(spec);
    return specs - files;
}

static void rows_of_key_heads_are_written_where_they_were_read(void **state)
{
    (void)state;
    for (int values = 1; values <= 3; values++) {
        const struct model_config c = grouped(values);
        assert_int_equal(check_written_rows(&c), 1 + 3 + 1); /* the gate; k, v and z; a */
    }
}

static void rows_are_written_where_they_were_read(void **state)
{
    (void)state;
    const struct model_config c = gated();
    assert_int_equal(check_written_rows(&c), 1); /* queries and gates are one */
}

static void rows_that_are_there_twice_are_refused(void **state)
{
    (void)state;
    static const float x[4 * 8];
    const struct model_config c = grouped(1);
    struct tensors w = {.count = 2, .tensor = calloc(2, sizeof *w.tensor)};
    assert_non_null(w.tensor);
    w.tensor[0] = (struct tensor){.name = "model.layers.0.linear_attn.in_proj_a.weight",
                                  .rank = 2,
                                  .shape = {2, 8},
                                  .data = x,
                                  .bytes = sizeof x / 2};
    w.tensor[1] = (struct tensor){.name = "model.layers.0.linear_attn.in_proj_b.weight",
                                  .rank = 2,
                                  .shape = {4, 8},
                                  .data = x,
                                  .bytes = sizeof x};
    check_refused(file_rows_split("a folder", &c, &w), NJ_E_FORMAT,
                  "in_proj_a.weight is there twice, by itself and among the rows", "twice");
    tensors_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_that_rotate_together_lie_half_a_head_apart),
        cmocka_unit_test(places_are_the_inverse_of_elements),
        cmocka_unit_test(rows_are_written_where_they_were_read),
        cmocka_unit_test(rows_of_key_heads_lie_together),
        cmocka_unit_test(rows_of_key_heads_are_written_where_they_were_read),
        cmocka_unit_test(rows_that_are_there_twice_are_refused),
    };
    return cmocka_run_group_tests_name("file_rows", tests, NULL, NULL);
}
