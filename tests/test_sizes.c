/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sizes.c: sizes that stem from files and options: what cannot be addressed is refused, and nothing
 * wraps on the way there. tests/fuzz/fuzz_plan.c holds plans against a sum in 128 bits.
 */
#include "checked.h"
#include "engine_impl.h"
#include "init.h"
#include "unit.h"

static void sums_and_products_stick(void **state)
{
    (void)state;
    const size_t half = (size_t)1 << 63, root = (size_t)1 << 32;
    assert_int_equal(size_add(SIZE_MAX - 1, 1), SIZE_MAX);
    assert_int_equal(size_add(half, half), SIZE_MAX);
    assert_int_equal(size_add(3, 4), 7);
    assert_int_equal(size_mul(root, root), SIZE_MAX);
    assert_int_equal(size_mul(root, root - 1), (root - 1) << 32);
    assert_int_equal(size_mul(SIZE_MAX, 0), 0);
    assert_int_equal(size_product(root, 8, root / 8 - 1), root * 8 * (root / 8 - 1));
    assert_int_equal(size_product(root, 8, root / 8, 1), SIZE_MAX);
    assert_int_equal(size_sub(SIZE_MAX, 256), SIZE_MAX);
    assert_int_equal(size_sub(512, 256), 256);
    assert_int_equal(size_up(257, 256), 512);
    assert_int_equal(size_up(SIZE_MAX - 255, 256), SIZE_MAX - 255);
    assert_int_equal(size_up(SIZE_MAX - 254, 256), SIZE_MAX);
}

/* The largest model and batch that pass by themselves. */
static const struct model_config widest = {
    .model_type = "qwen2",
    .hidden_size = 1 << 24,
    .intermediate_size = 1 << 24,
    .layers = 1024,
    .heads = 1,
    .kv_heads = 1,
    .head_dim = 64,
    .vocab_size = 8,
    .max_positions = 1 << 12,
    .bos_id = -1,
    .eos_id = -1,
    .rms_eps = 1e-6f,
    .rope_theta = 1e4,
    .tied = true,
};
static const struct train_options most = {
    .batch_size = 1 << 12, .seq_len = 1 << 12, .grad_accum = 1, .steps = 1, .dtype = NJ_F32};

static void plans_beyond_all_addresses_are_refused(void **state)
{
    (void)state;
    struct train_options o = most;
    struct plan p;
    check_ok(config_check(&widest, "widest"), "config");
    check_refused(plan_make(&widest, NULL, &o, &p), NJ_E_NOMEM, "more memory than can be addressed",
                  "widest");
    o.batch_size = 1;
    o.seq_len = 8;
    check_ok(plan_make(&widest, NULL, &o, &p), "one sequence");
    assert_true(p.total_bytes > (size_t)1 << 63);
    o = most;
    o.seq_len++;
    check_refused(plan_make(&widest, NULL, &o, &p), NJ_E_ARG, "is too large; lower one", "rows");
}

/* What a plan has no room to list makes it too large, and nothing is written after its end. */
static void regions_are_counted(void **state)
{
    (void)state;
    struct {
        struct plan plan;
        unsigned char after[sizeof(struct plan_region)];
    } full = {.plan = {.count = PLAN_REGIONS}};
    const unsigned char zeros[sizeof full.after] = {0};
    struct net n = {.c = preset_find("nojit-tiny")->config, .T = NJ_F32};
    struct lora none = {0};
    struct memory m;
    const struct train_options o = {
        .batch_size = 1, .seq_len = 8, .grad_accum = 1, .dtype = NJ_F32};
    check_ok(net_layout(&n, &o.lora, &none), "layout");
    plan_layout(&n, NULL, &o, NULL, NULL, &m, &full.plan);
    assert_int_equal(full.plan.count, PLAN_REGIONS);
    assert_int_equal(full.plan.total_bytes, SIZE_MAX);
    assert_memory_equal(full.after, zeros, sizeof zeros);
    params_free(&n.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products_stick),
        cmocka_unit_test(plans_beyond_all_addresses_are_refused),
        cmocka_unit_test(regions_are_counted),
    };
    return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}
