/* SPDX-License-Identifier: Apache-2.0
 *
 * test_teacher.c: a step knows a teacher by the functions of its kind alone: which of them it calls, and when, and that
 * a teacher which gives stored logits teaches as the model that they are from.
 */
#include "engine_fixture.h"

enum { LENGTH = 12, MICRO = 6 };

/* Write six documents of a row each; that of micro-batch `silent` has no loss. */
static void write_documents(const char *name, int silent)
{
    enum { EACH = LENGTH + 1, ALL = MICRO * EACH };
    int32_t head[256] = {0, 0, 2, 4, ALL, VOCAB, 1};
    int32_t ids[ALL];
    uint8_t mask[ALL / 8 + 1] = {0};
    memcpy(head, "BIN.TOK\n", 8);
    for (int i = 0; i < ALL; i++) {
        ids[i] = i % EACH == LENGTH ? END_OF_TEXT : (7 * i + i / EACH) % END_OF_TEXT;
        if (i / EACH != silent)
            mask[i / 8] = (uint8_t)(mask[i / 8] | 1 << i % 8);
    }
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(head, sizeof head, 1, f), 1);
    assert_int_equal(fwrite(ids, sizeof ids, 1, f), 1);
    assert_int_equal(fwrite(mask, sizeof mask, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

/* Calls of the functions of a teacher, a letter each, and the logits that it gave. */
static const struct teacher_ops *live;
static struct {
    char calls[128];
    char *logits;
    size_t chunk, bytes, taken;
} seen;

static void note_call(char which)
{
    const size_t at = strlen(seen.calls);
    assert_true(at + 1 < sizeof seen.calls);
    seen.calls[at] = which;
}

static void spy_send(struct work *r, struct teacher *t, const struct rows *staged, int at,
                     int count)
{
    note_call('s');
    live->send(r, t, staged, at, count);
}

static void spy_forward(struct work *r, struct teacher *t, const struct rows *rows, int count)
{
    note_call(count > 1 ? 'P' : 'F');
    live->forward(r, t, rows, count);
}

static void spy_take(struct work *r, struct teacher *t, int at)
{
    note_call((char)('0' + at));
    live->take(r, t, at);
}

static void spy_keep(struct work *r, struct teacher *t, const struct rows *rows)
{
    note_call('k');
    live->keep(r, t, rows);
}

static void *spy_logits(struct work *r, struct teacher *t, int first)
{
    void *logits = live->logits(r, t, first);
    if (first == 0)
        note_call('l');
    ok(r->rc);
    seen.logits = realloc(seen.logits, seen.bytes + seen.chunk);
    assert_non_null(seen.logits);
    memcpy(seen.logits + seen.bytes, logits, seen.chunk);
    seen.bytes += seen.chunk;
    return logits;
}

/* Watch the calls of an engine's teacher. */
static void watch(struct engine *e, struct teacher_ops *spy)
{
    live = e->teacher.ops;
    *spy = *live;
    spy->send = spy_send;
    spy->forward = spy_forward;
    spy->take = spy_take;
    spy->keep = spy_keep;
    spy->logits = spy_logits;
    e->teacher.ops = spy;
    free(seen.logits);
    memset(&seen, 0, sizeof seen);
    seen.chunk = (size_t)e->shape.chunk * (size_t)e->shape.ld * dtype_bytes(e->student.T);
}

static struct train_options options(void)
{
    struct train_options o = small_options;
    o.batch_size = 1;
    o.seq_len = LENGTH + 2;
    o.grad_accum = MICRO;
    return o;
}

/* Each micro-batch of a pass is sent before it; its results are taken one after another. A pass also runs over a
 * micro-batch without a target, which is left out where each has a pass of its own. */
static void a_step_follows_the_schedule(void **state)
{
    (void)state;
    const struct train_options o = options();
    write_documents("documents.bin", MICRO / 2);
    for (int alone = 0; alone < 2; alone++) {
        struct engine *e = open_engine("teacher", "qwen2", &o);
        struct batch_source *d = open_rows("documents.bin", &o, PACKING_NONE, false);
        struct teacher_ops spy;
        struct step_result r;
        assert_int_equal(teacher_batches(&e->teacher), MICRO / 2);
        if (alone)
            e->teacher.schedule = (struct teacher_schedule){0};
        watch(e, &spy);
        ok(engine_step(e, d, &r));
        assert_string_equal(seen.calls,
                            alone ? "sFklsFklsFklsFklsFkl" : "sssP0kl1kl2klsssP0k1kl2kl");
        batches_close(d);
        engine_destroy(e);
    }
}

static void an_evaluation_runs_each_batch_by_itself(void **state)
{
    (void)state;
    const struct train_options o = options();
    write_documents("documents.bin", -1);
    struct engine *e = open_engine("teacher", "qwen2", &o);
    struct batch_source *d = open_rows("documents.bin", &o, PACKING_NONE, true);
    struct teacher_ops spy;
    struct eval_result r;
    watch(e, &spy);
    ok(engine_eval(e, d, &r));
    assert_string_equal(seen.calls, "sFklsFklsFklsFklsFklsFkl");
    batches_close(d);
    engine_destroy(e);
}

/* ---- a teacher whose logits are stored ---- */

static void send_nothing(struct work *r, struct teacher *t, const struct rows *staged, int at,
                         int count)
{
    (void)r, (void)t, (void)staged, (void)at, (void)count;
}

static void run_nothing(struct work *r, struct teacher *t, const struct rows *rows, int count)
{
    (void)r, (void)t, (void)rows, (void)count;
}

static void keep_nothing(struct work *r, struct teacher *t, const struct rows *rows)
{
    (void)r, (void)t, (void)rows;
}

static void *stored_logits(struct work *r, struct teacher *t, int first)
{
    (void)r, (void)t, (void)first;
    assert_true(seen.taken + seen.chunk <= seen.bytes);
    seen.taken += seen.chunk;
    return seen.logits + seen.taken - seen.chunk;
}

static const struct teacher_ops stored = {
    .send = send_nothing, .forward = run_nothing, .keep = keep_nothing, .logits = stored_logits};

static void stored_logits_teach_as_the_model_does(void **state)
{
    (void)state;
    const struct train_options o = options();
    struct step_result r[2];
    float *w[2];
    size_t bytes = 0;
    write_documents("documents.bin", MICRO / 2);
    for (int k = 0; k < 2; k++) {
        struct engine *e = open_engine("teacher", "qwen2", &o);
        struct batch_source *d = open_rows("documents.bin", &o, PACKING_NONE, false);
        struct teacher_ops spy;
        const struct teacher_ops *opened = e->teacher.ops;
        if (k == 0) {
            watch(e, &spy);
        } else {
            e->teacher.ops = &stored;
            e->teacher.schedule = (struct teacher_schedule){0};
        }
        for (int step = 0; step < 3; step++)
            ok(engine_step(e, d, &r[k]));
        bytes = (size_t)e->student.p.count * sizeof(float);
        w[k] = malloc(bytes);
        assert_non_null(w[k]);
        memcpy(w[k], e->mem.master, bytes);
        e->teacher.ops = opened;
        batches_close(d);
        engine_destroy(e);
    }
    assert_true(seen.bytes > 0);
    assert_int_equal(seen.taken, seen.bytes);
    assert_true(r[0].kd_loss > 0 && r[0].loss == r[1].loss);
    assert_memory_equal(w[0], w[1], bytes);
    free(w[0]);
    free(w[1]);
}

static int close_all(void **state)
{
    free(seen.logits);
    return fixture_close(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_follows_the_schedule),
        cmocka_unit_test(an_evaluation_runs_each_batch_by_itself),
        cmocka_unit_test(stored_logits_teach_as_the_model_does),
    };
    return cmocka_run_group_tests(tests, fixture_open, close_all);
}
