/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ranks.c: a step that several ranks share gives what the ranks would give, each on its own, added in their order.
 */
#include "engine/ranks.h"

#include "engine/micro_batch.h"
#include "engine/step.h"
#include "engine_fixture.h"

enum { STEPS = 3 };

static struct train_options shared(int ranks, int micro)
{
    struct train_options o = small_options;
    o.ranks = ranks;
    o.grad_accum = ranks * micro;
    return o;
}

static size_t gradient_bytes(const struct engine *e)
{
    return (size_t)engine_trained(e)->count * sizeof(float);
}

/* Fetches the micro-batches of a step that belong to a rank, into the slots of an engine without ranks. *valid: the
 * targets of the step, counted where it is 0. */
static void stage_rank(struct engine *e, struct data *d, int rank, int ranks, int64_t *valid)
{
    int64_t all = 0;
    struct batch b;
    data_seek(d, &(struct data_state){0});
    for (int micro = 0; micro < ranks * e->o.grad_accum; micro++) {
        if (micro % ranks == rank) {
            ok(stage_next(e, d, micro / ranks));
        } else {
            ok(data_next(d, &b));
            all += b.valid;
        }
    }
    all += e->valid;
    *valid = *valid ? *valid : all;
    e->valid = *valid;
}

/* Gradients and losses of all ranks, added in the order of ranks, from an engine that computes one of them. */
static void sum_of_ranks(const char *teacher, int ranks, int micro, float **grad, float *sums)
{
    const struct train_options o = shared(1, micro);
    struct engine *e = open_engine("qwen2", teacher, &o);
    struct data *d = open_tokens("masked.bin", &o, false);
    const int64_t count = engine_trained(e)->count;
    int64_t valid = 0;
    *grad = calloc((size_t)count, sizeof **grad);
    assert_non_null(*grad);
    for (int rank = 0; rank < ranks; rank++) {
        e->valid = 0;
        stage_rank(e, d, rank, ranks, &valid);
        ok(step_gradients(e));
        ok(nj_stream_sync(e->stream));
        for (int64_t i = 0; i < count; i++)
            (*grad)[i] = rank == 0 ? e->mem.grad[i] : (*grad)[i] + e->mem.grad[i];
        for (int i = 0; i < LOSS_SUMS; i++)
            sums[i] = rank == 0 ? e->mem.sums[i] : sums[i] + e->mem.sums[i];
    }
    data_close(d);
    engine_destroy(e);
}

/* With one micro-batch a rank, and with several, which the teacher runs over at once. */
static void gradients_are_added_in_order(void **state)
{
    (void)state;
    static const struct {
        int ranks, micro;
        const char *teacher;
    } cases[] = {{2, 1, NULL}, {3, 1, "teacher"}, {3, 2, "teacher"}, {4, 3, "teacher"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct train_options o = shared(cases[k].ranks, cases[k].micro);
        struct engine *e = open_engine("qwen2", cases[k].teacher, &o);
        struct data *d = open_tokens("masked.bin", &o, false);
        float *grad, sums[LOSS_SUMS];
        sum_of_ranks(cases[k].teacher, cases[k].ranks, cases[k].micro, &grad, sums);
        e->valid = 0;
        for (int micro = 0; micro < o.grad_accum; micro++)
            ok(stage_next(e, d, micro));
        ok(step_gradients(e));
        ok(nj_stream_sync(e->stream));
        assert_memory_equal(e->mem.total, grad, gradient_bytes(e));
        assert_memory_equal(e->mem.total_sums, sums, sizeof sums);
        free(grad);
        data_close(d);
        engine_destroy(e);
    }
}

/* What a micro-batch draws from does not depend on who computes it. */
static void micro_batches_are_the_same(void **state)
{
    (void)state;
    const struct train_options one = shared(1, 6), three = shared(3, 2);
    struct engine *a = open_engine("qwen2", NULL, &one), *b = open_engine("qwen2", NULL, &three);
    struct data *d = open_tokens("masked.bin", &one, false);
    const size_t bytes = a->mem.rows_bytes;
    bool used[6] = {false};
    for (int k = 0; k < 2; k++) {
        data_seek(d, &(struct data_state){0});
        for (int micro = 0; micro < 6; micro++)
            ok(stage_next(k == 0 ? a : b, d, micro));
    }
    for (int micro = 0; micro < 6; micro++) {
        const int slot = ranks_slot(&b->shape, micro);
        assert_int_equal(slot / 2, micro % 3);
        assert_int_equal(ranks_micro(&b->shape, slot), micro);
        assert_false(used[slot]);
        used[slot] = true;
        assert_memory_equal(b->mem.batches + (size_t)slot * bytes,
                            a->mem.batches + (size_t)micro * bytes, bytes);
    }
    data_close(d);
    engine_destroy(a);
    engine_destroy(b);
}

static struct step_result train(struct engine *e)
{
    struct data *d = open_tokens("masked.bin", &e->o, false);
    struct step_result r;
    for (int i = 0; i < STEPS; i++)
        ok(engine_step(e, d, &r));
    data_close(d);
    return r;
}

/* Only the order of sums differs: losses and norm agree to rounding, for shards of any number. */
static void ranks_change_rounding_alone(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 12; ranks = ranks < 4 ? ranks + 1 : 3 * ranks) {
        struct train_options o = shared(ranks, 12 / ranks), plain = shared(0, 1);
        plain.grad_accum = 12;
        struct engine *a = open_engine("qwen3", "teacher", &o);
        struct engine *b = open_engine("qwen3", "teacher", &plain);
        const struct step_result x = train(a), y = train(b);
        assert_int_equal(x.valid_tokens, y.valid_tokens);
        assert_true(fabs(x.loss - y.loss) < 1e-6 * y.loss);
        assert_true(fabs(x.grad_norm - y.grad_norm) < 1e-5 * y.grad_norm);
        if (ranks == 1)
            assert_memory_equal(a->mem.master, b->mem.master, gradient_bytes(a));
        engine_destroy(a);
        engine_destroy(b);
    }
}

/* Logits go in the chunks in which a rank that is alone would have them. */
static void shapes_are_those_of_a_rank(void **state)
{
    (void)state;
    struct model_config c = qwen3;
    struct net n = {.T = NJ_LP};
    struct lora lora = {0};
    struct train_options o = small_options, all = shared(4, 1);
    struct shape a, b;
    c.hidden_size = c.intermediate_size = 1024;
    o.batch_size = all.batch_size = 4;
    o.seq_len = all.seq_len = 1024;
    o.head_chunk = all.head_chunk = 0;
    n.c = c;
    ok(net_layout(&n, &o.lora, &lora));
    plan_shape(&n, NULL, &o, &a);
    plan_shape(&n, NULL, &all, &b);
    assert_int_equal(a.chunk, 4096);
    assert_int_equal(b.chunk, a.chunk);
    assert_true(a.logits_in_gradients && b.logits_in_gradients);
    params_free(&n.p);
    lora_free(&lora);
}

/* Every element is in one shard, also where there are more shards than elements fill. */
static void shards_hold_everything(void **state)
{
    (void)state;
    for (int64_t count = 1; count < 3000; count += 61)
        for (int ranks = 1; ranks < 40; ranks++) {
            const int64_t shard = ranks_shard(count, ranks);
            assert_true(shard * ranks >= count && shard % 64 == 0);
            assert_true(shard - 64 < (count + ranks - 1) / ranks);
        }
}

static void a_tensor_that_breaks_is_named(void **state)
{
    (void)state;
    const struct train_options o = shared(2, 1);
    struct engine *e = open_engine("qwen2", NULL, &o);
    struct data *d = open_tokens("masked.bin", &o, false);
    struct step_result r;
    e->mem.master[e->student.p.first[0]] = NAN;
    assert_int_equal(engine_step(e, d, &r), NJ_E_FORMAT);
    assert_non_null(strstr(fail_text(), "weight of the student"));
    data_close(d);
    engine_destroy(e);
}

static void uneven_shares_are_refused(void **state)
{
    (void)state;
    struct train_options o = shared(4, 1);
    struct plan p;
    o.grad_accum = 6;
    assert_int_equal(plan_make(&qwen2, NULL, &o, &p), NJ_E_ARG);
    assert_non_null(strstr(fail_text(), "gradient accumulation is 6 and 4 ranks"));
    o.ranks = o.grad_accum = PLAN_RANKS_MOST + 1;
    assert_int_equal(plan_make(&qwen2, NULL, &o, &p), NJ_E_ARG);
    o.ranks = -1;
    assert_int_equal(plan_make(&qwen2, NULL, &o, &p), NJ_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_added_in_order),
        cmocka_unit_test(micro_batches_are_the_same),
        cmocka_unit_test(ranks_change_rounding_alone),
        cmocka_unit_test(shards_hold_everything),
        cmocka_unit_test(shapes_are_those_of_a_rank),
        cmocka_unit_test(a_tensor_that_breaks_is_named),
        cmocka_unit_test(uneven_shares_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
