/* SPDX-License-Identifier: Apache-2.0
 *
 * test_engine_rows.c: rows without a target, padded rows, and rows that cannot be read, in a training step.
 */
#include "engine_fixture.h"

#include <unistd.h>

/* Write two documents of one row each; the second, or the first, has no loss. */
static void write_pair(const char *name, bool reversed, int32_t S)
{
    int32_t head[256] = {0, 0, 2, 4, 2 * (S + 1), VOCAB, 1};
    int32_t ids[64];
    uint8_t mask[8] = {0};
    memcpy(head, "BIN.TOK\n", 8);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i <= S; i++) {
            const bool loss = (k == 1) == reversed;
            const int at = k * (S + 1) + i;
            ids[at] = i == S ? END_OF_TEXT : (loss ? 3 * i : 2 * i + 1) % END_OF_TEXT;
            mask[at / 8] = (uint8_t)(mask[at / 8] | loss << at % 8);
        }
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(head, sizeof head, 1, f), 1);
    assert_int_equal(fwrite(ids, sizeof(int32_t), (size_t)head[4], f), head[4]);
    assert_int_equal(fwrite(mask, ((size_t)head[4] + 7) / 8, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

/* A micro-batch without a target adds nothing, whether first or last; neither does padding. */
static void empty_micro_batches_do_nothing(void **state)
{
    (void)state;
    static const struct {
        int accum, batch;
        bool reversed;
    } runs[] = {{1, 1, false}, {2, 1, false}, {2, 1, true}, {1, 2, true}};
    struct train_options o = small_options;
    float *w[4];
    double loss[4];
    size_t bytes = 0;
    o.seq_len = 14;
    o.eps = 1e-2f; /* an update must not amplify the rounding of gradients near zero */
    for (int k = 0; k < 4; k++) {
        o.grad_accum = runs[k].accum;
        o.batch_size = runs[k].batch;
        write_pair("pair.bin", runs[k].reversed, 12);
        struct engine *e = open_engine("qwen2", "teacher", &o);
        struct batch_source *d = open_rows("pair.bin", &o, PACKING_NONE, false);
        struct step_result r;
        ok(engine_step(e, d, &r));
        assert_int_equal(r.valid_tokens, 12);
        loss[k] = r.loss;
        bytes = (size_t)e->student.p.count * sizeof(float);
        w[k] = malloc(bytes);
        assert_non_null(w[k]);
        memcpy(w[k], e->mem.master, bytes);
        batches_close(d);
        engine_destroy(e);
    }
    for (int k = 1; k < 4; k++) {
        assert_true(fabs(loss[k] - loss[0]) < 1e-6);
        for (size_t i = 0; i < bytes / sizeof(float); i++)
            assert_true(fabsf(w[k][i] - w[0][i]) < 1e-6f);
        if (runs[k].batch == 1) /* the same GEMMs */
            assert_memory_equal(w[k], w[0], bytes);
    }
    for (int k = 0; k < 4; k++)
        free(w[k]);
}

/* If every document fits into a row, each token sees only its own document: the losses equal those of rows with one
 * document each. Wrapped rows cut documents, so their losses differ. */
static void packed_documents_do_not_meet(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct eval_result r[PACKING_NONE + 1];
    o.seq_len = 64;
    struct engine *e = open_engine("qwen3", "teacher", &o);
    for (enum packing kind = PACKING_WRAPPED; kind <= PACKING_NONE; kind++) {
        struct batch_source *d = open_rows("tokens.bin", &o, kind, true);
        ok(engine_eval(e, d, &r[kind]));
        batches_close(d);
    }
    const struct eval_result *none = &r[PACKING_NONE];
    for (int kind = PACKING_WRAPPED; kind <= PACKING_BFD; kind++) {
        const bool same = fabs(r[kind].ce_loss - none->ce_loss) < 1e-6 &&
                          fabs(r[kind].kd_loss - none->kd_loss) < 1e-6;
        assert_int_equal(r[kind].valid_tokens, none->valid_tokens);
        assert_int_equal(same, kind == PACKING_BFD);
    }
    engine_destroy(e);
}

/* Reading fails in the second micro-batch of the second step. When data can be read again, that step gives the result
 * that it would have had. */
static void unread_rows_leave_the_step_before(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct step_result r[2];
    struct data_state before, after;
    o.grad_accum = 3;
    for (int disturbed = 0; disturbed < 2; disturbed++) {
        write_tokens("cut.bin", 7, false, 1);
        struct engine *e = open_engine("qwen3", NULL, &o);
        struct batch_source *d = open_tokens("cut.bin", &o, false);
        ok(engine_step(e, d, &r[disturbed]));
        assert_false(engine_data_failed(e));
        if (disturbed) {
            batches_tell(d, &before);
            assert_int_equal(truncate(path_of("cut.bin"), 1024 + 9 * 16 * 4), 0);
            assert_int_equal(engine_step(e, d, &r[1]), NJ_E_IO);
            assert_true(engine_data_failed(e));
            batches_tell(d, &after);
            assert_memory_equal(&before, &after, sizeof after);
            write_tokens("cut.bin", 7, false, 1);
        }
        ok(engine_step(e, d, &r[disturbed]));
        batches_close(d);
        engine_destroy(e);
    }
    assert_true(r[0].loss == r[1].loss && r[0].grad_norm == r[1].grad_norm);
}

/* A teacher runs over several micro-batches at once, here two at a time for a step of six, and each gets its own rows.
 * GEMMs with more rows may be summed in another order. */
static void teachers_run_over_several_micro_batches(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct step_result r[2];
    float *w[2];
    int64_t count = 0;
    o.grad_accum = 6;
    o.batch_size = 1;
    o.eps = 1e-2f;
    for (int alone = 0; alone < 2; alone++) {
        struct engine *e = open_engine("teacher", "qwen2", &o);
        struct batch_source *d = open_tokens("tokens.bin", &o, false);
        assert_int_equal(e->teacher.schedule.batches, 3);
        if (alone)
            e->teacher.schedule.batches = 1;
        for (int step = 0; step < 3; step++)
            ok(engine_step(e, d, &r[alone]));
        count = e->student.p.count;
        w[alone] = malloc((size_t)count * sizeof(float));
        assert_non_null(w[alone]);
        memcpy(w[alone], e->mem.master, (size_t)count * sizeof(float));
        batches_close(d);
        engine_destroy(e);
    }
    assert_true(fabs(r[0].kd_loss - r[1].kd_loss) < 1e-6);
    for (int64_t i = 0; i < count; i++)
        assert_true(fabsf(w[0][i] - w[1][i]) < 1e-6f);
    free(w[0]);
    free(w[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_micro_batches_do_nothing),
        cmocka_unit_test(packed_documents_do_not_meet),
        cmocka_unit_test(unread_rows_leave_the_step_before),
        cmocka_unit_test(teachers_run_over_several_micro_batches),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
