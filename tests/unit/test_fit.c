/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fit.c: the batch size that --batch-size auto chooses, compared with a search through all sizes; and memory that
 * other trainers got wrong.
 */
#include "engine/engine.h"
#include "model/init.h"
#include "net/lora.h"
#include "net/net.h"
#include "plain_layers.h"
#include "state/plan_layout.h"
#include "unit.h"

static const struct model_config *shape(const char *name)
{
    const struct preset *p = preset_find(name);
    assert_non_null(p);
    return &p->config;
}

static const struct train_options training = {.batch_size = 1,
                                              .seq_len = 2048,
                                              .grad_accum = 1,
                                              .steps = 1,
                                              .dtype = NJ_LP,
                                              .workspace_bytes = NJ_CUDA_WORKSPACE_BYTES};

static size_t planned(const struct model_config *s, const struct model_config *t,
                      const struct train_options *o, int batch)
{
    struct train_options one = *o;
    struct plan p;
    one.batch_size = batch;
    check_ok(plan_make(s, t, &one, &p), "plan");
    return p.total_bytes;
}

/* If memory followed the model's limit of 32,768 tokens instead of the run's 2,048, it would be several times as
 * large. */
static void half_a_billion_at_2048_needs_13_gb(void **state)
{
    (void)state;
    const struct model_config *c = shape("qwen2.5-0.5b");
    assert_int_equal(c->max_positions, 32768);
    assert_true(planned(c, c, &training, 1) <= 13000000000u);
}

/* Heads are normalized in place if their values before the norm are not needed later. Norms then need only their
 * weights, and a root per row and head, instead of another 134 MB. */
static void an_evaluation_norms_heads_in_place(void **state)
{
    (void)state;
    const struct model_config *normed = shape("qwen3-0.6b");
    struct model_config plain = *normed;
    struct train_options o = training;
    ATTENTION(&plain).features = 0;
    const size_t rows = 8 * (size_t)o.seq_len;
    const size_t roots =
        rows * (size_t)(ATTENTION(&plain).heads + ATTENTION(&plain).kv_heads) * sizeof(float);
    o.steps = 0;
    assert_in_range(planned(normed, NULL, &o, 8) - planned(&plain, NULL, &o, 8), roots, 2 * roots);
}

static struct plan_region find_region(const char *name, struct train_options o)
{
    struct plan p;
    check_ok(plan_make(shape("qwen2.5-0.5b"), shape("qwen2.5-1.5b"), &o, &p), "plan");
    for (int i = 0; i < p.count; i++)
        if (strcmp(p.region[i].name, name) == 0)
            return p.region[i];
    fail_msg("the plan has no %s", name);
    return (struct plan_region){0};
}

static size_t region_of(const char *name, struct train_options o)
{
    return find_region(name, o).bytes;
}

/* While the head runs, the gradients of the layers are unused if a step is one micro-batch. If the student's logits fit
 * there, they lie there, as the plan shows, and chunks have twice the rows. */
static void logits_lie_in_idle_gradients(void **state)
{
    (void)state;
    const struct model_config *c = shape("qwen2.5-0.5b");
    const struct block *b = &ATTENTION(c);
    const int qkv = (int)block_qkv_size(b);
    const size_t matrices = (size_t)c->layers * (size_t)c->hidden_size *
                            (size_t)(qkv + b->heads * b->head_dim + 3 * GLU(c).ffn_size);
    const size_t row = (size_t)c->vocab_size * sizeof(uint16_t);
    const size_t most = matrices * sizeof(float) / row;
    struct train_options o = training;
    o.batch_size = 8;
    o.seq_len = 1024;
    assert_int_equal(region_of("head.logits", o), 0);
    assert_string_equal(find_region("head.logits", o).within, "student.gradients");
    assert_int_equal(region_of("teacher.logits", o), 4096 * row);
    o.head_chunk = (int)most;
    assert_int_equal(region_of("head.logits", o), 0);
    o.head_chunk = (int)most + 1;
    assert_int_equal(region_of("head.logits", o), (most + 1) * row);
    assert_null(find_region("head.logits", o).within);

    o.head_chunk = 0;
    struct train_options several = o, adapters = o, none = o;
    several.grad_accum = 2;
    adapters.lora = (struct lora_config){.rank = 4, .alpha = 8};
    check_ok(lora_targets_add(&adapters.lora, "all-linear"), "targets");
    none.steps = 0;
    const struct train_options *const without[] = {&several, &adapters, &none};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(region_of("head.logits", *without[i]), 2048 * row);
        assert_int_equal(region_of("teacher.logits", *without[i]), 2048 * row);
    }
}

/* Logits may use the gradients of the layers' matrices, all of them, but not those of the embedding or of a separate
 * head. */
static void matrices_of_the_layers_lie_together(void **state)
{
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        struct model_config c = *shape("nojit-tiny");
        struct params p;
        c.tied = tied != 0;
        check_ok(params_layout(&c, PARAMS_ALL, &p), "layout");
        const int64_t from = params_layer(&p, 0), to = from + params_matrices(&p);
        int64_t inside = 0;
        for (size_t i = 0; i < p.specs; i++) {
            const struct tensor_spec *s = &p.spec[i];
            const bool in = p.first[i] < to && p.first[i] + tensor_elements(s) > from;
            assert_int_equal(in, s->rank == 2 && s->role != ROLE_EMBED && s->role != ROLE_HEAD);
            inside += in ? tensor_elements(s) : 0;
        }
        assert_int_equal(to - from, inside);
        params_free(&p);
    }
}

/* Check the search against all batch sizes, at budgets around each plan. The plan is not monotone in the batch size,
 * since the chunks of the head are equal, and logits may or may not need a region of their own. */
static void check_largest(int vocab, bool must_fall)
{
    enum { BATCHES = 40 };
    struct model_config c = *shape("nojit-tiny");
    c.vocab_size = vocab;
    struct train_options o = training;
    o.seq_len = 512;
    size_t bytes[BATCHES + 1] = {0};
    bool falls = false;
    for (int b = 1; b <= BATCHES; b++) {
        bytes[b] = planned(&c, NULL, &o, b);
        falls = falls || bytes[b] < bytes[b - 1];
    }
    assert_true(falls || !must_fall);
    for (int at = 1; at < BATCHES / 2; at++)
        for (int off = -1; off <= 1; off++) {
            const size_t budget = bytes[at] + (size_t)off;
            int largest = 0, got;
            for (int b = 1; b <= BATCHES; b++)
                largest = bytes[b] <= budget ? b : largest;
            assert_in_range(largest, 0, BATCHES - 1);
            check_ok(plan_largest_batch(&c, NULL, &o, budget, BATCH_MOST, &got), "plan");
            assert_int_equal(got, largest);
        }
}

/* Logits never fit into gradients with a vocabulary of 60,000; with 72, those of up to 2,958 rows do. */
static void the_largest_batch_is_the_largest_that_fits(void **state)
{
    (void)state;
    check_largest(60000, true);
    check_largest(72, false);
}

static void limits_of_a_batch_hold(void **state)
{
    (void)state;
    struct train_options o = training;
    int batch;
    o.seq_len = 8192;
    check_ok(plan_largest_batch(shape("nojit-tiny"), NULL, &o, SIZE_MAX, BATCH_MOST, &batch),
             "plan");
    assert_int_equal(batch, PLAN_ROWS_MOST / 8192);
    o.seq_len = 1;
    check_ok(plan_largest_batch(shape("nojit-tiny"), NULL, &o, SIZE_MAX, BATCH_MOST, &batch),
             "plan");
    assert_int_equal(batch, BATCH_MOST);
    check_ok(
        plan_largest_batch(shape("qwen2.5-0.5b"), NULL, &training, 1000000, BATCH_MOST, &batch),
        "plan");
    assert_int_equal(batch, 0);
}

/* The plan counts the cells in which the run is laid out, so the search sees the memory as the run will. */
static void an_arena_in_cells_is_laid_out_as_planned(void **state)
{
    (void)state;
    static char nowhere[1];
    struct train_options o = training;
    struct net n = {.c = *shape("nojit-base"), .T = NJ_LP};
    struct lora lora = {0};
    struct teacher none = {0};
    struct memory first, second;
    struct plan p, once = {0}, twice = {0};
    o.grad_accum = o.ranks = 2;
    o.rank = RANKS_VIRTUAL;
    o.reduce_dtype = REDUCE_BF16;
    o.workspace_bytes = 0;
    o.cell_bytes = 64 << 20;
    check_ok(plan_make(&n.c, NULL, &o, &p), "plan");
    check_ok(net_layout(&n, &o.lora, NULL, &lora), "layout");
    for (int i = 0; i < CARVE_CELLS; i++)
        carve_place(&p.cells, i, nowhere);
    const struct carve arena = {.cells = &p.cells};
    plan_layout(&n, &none, &o, arena, NULL, &first, &once);
    plan_layout(&n, &none, &o, arena, NULL, &second, &twice);
    assert_int_equal(once.total_bytes, p.total_bytes);
    assert_int_equal(twice.total_bytes, p.total_bytes);
    assert_int_equal(second.staging_bytes, first.staging_bytes);
    assert_ptr_equal(second.received, first.received);
    assert_ptr_equal(second.state, first.state);
    net_free(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_a_billion_at_2048_needs_13_gb),
        cmocka_unit_test(an_evaluation_norms_heads_in_place),
        cmocka_unit_test(logits_lie_in_idle_gradients),
        cmocka_unit_test(matrices_of_the_layers_lie_together),
        cmocka_unit_test(the_largest_batch_is_the_largest_that_fits),
        cmocka_unit_test(limits_of_a_batch_hold),
        cmocka_unit_test(an_arena_in_cells_is_laid_out_as_planned),
    };
    return cmocka_run_group_tests_name("fit", tests, NULL, NULL);
}
