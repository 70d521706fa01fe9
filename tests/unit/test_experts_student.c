/* SPDX-License-Identifier: Apache-2.0
 *
 * test_experts_student.c: students that are mixtures of experts: they learn, recomputation changes no bit, and a loss
 * balances their experts. test_golden_families.c holds their gradients to those of transformers.
 */
#include "engine_fixture.h"

#include <sys/stat.h>

enum { STEPS = 12, EXPERTS = 6 };

static struct model_config moe_config(void)
{
    struct model_config c;
    char path[600];
    mkdir(path_of("fields"), 0700);
    snprintf(path, sizeof path, "%s/config.json", path_of("fields"));
    FILE *f = fopen(path, "w");
    assert_true(f &&
                fprintf(f,
                        "{\"model_type\":\"qwen3_moe\",\"hidden_size\":128,"
                        "\"intermediate_size\":160,\"num_hidden_layers\":3,"
                        "\"vocab_size\":%d,\"num_attention_heads\":2,"
                        "\"num_key_value_heads\":1,\"head_dim\":64,\"eos_token_id\":%d,"
                        "\"max_position_embeddings\":128,\"num_experts\":%d,"
                        "\"num_experts_per_tok\":2,\"moe_intermediate_size\":24,"
                        "\"norm_topk_prob\":true,\"mlp_only_layers\":[1]}",
                        VOCAB, END_OF_TEXT, EXPERTS) > 0 &&
                fclose(f) == 0);
    ok(config_read(path_of("fields"), &c));
    return c;
}

/* Return the results of the first and the last of so many steps of the student. */
static struct step_result run(const struct train_options *o, int steps, enum packing packing,
                              struct step_result *first)
{
    struct engine *e = open_engine("moe", "teacher", o);
    struct batch_source *d = open_rows("tokens.bin", o, packing, false);
    struct step_result r = {0};
    for (int i = 0; i < steps; i++) {
        ok(engine_step(e, d, &r));
        if (i == 0 && first)
            *first = r;
    }
    batches_close(d);
    engine_destroy(e);
    return r;
}

static int open_moe(void **state)
{
    if (fixture_open(state) != 0)
        return -1;
    const struct model_config c = moe_config();
    ok(init_model(path_of("moe"), &c, 5, NJ_TYPE_F32, 1 << 30, NULL));
    return 0;
}

static void students_with_experts_learn(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct step_result first;
    const double last = run(&o, STEPS, PACKING_WRAPPED, &first).loss;
    if (!(last < first.loss - 0.1) || first.balanced)
        fail_msg("from %g to %g", first.loss, last);
    /* rounding changes the choice of some rows, whose experts stay in T */
    o.student_fp8 = 1;
    const double rounded = run(&o, STEPS, PACKING_WRAPPED, NULL).loss;
    if (!(rounded != last && rounded < first.loss - 0.1))
        fail_msg("FP8: from %g to %g", first.loss, rounded);
    struct engine *e = open_engine("moe", NULL, &o);
    for (int i = 0; i <= EXPERTS_DOWN; i++)
        assert_ptr_equal(net_matrix(&e->student, 0, BLOCK_EXPERTS, i)->format, &matrix_plain);
    engine_destroy(e);
}

static void recomputation_changes_no_bit_of_experts(void **state)
{
    (void)state;
    for (int balanced = 0; balanced < 2; balanced++) {
        struct train_options o = small_options;
        o.balance = (float)balanced;
        o.grad_accum = 2;
        const struct step_result kept = run(&o, STEPS, PACKING_WRAPPED, NULL);
        for (o.recompute = RECOMPUTE_MLP; o.recompute <= RECOMPUTE_BLOCK; o.recompute++) {
            const struct step_result again = run(&o, STEPS, PACKING_WRAPPED, NULL);
            assert_true(again.loss == kept.loss && again.grad_norm == kept.grad_norm);
            assert_true(again.balance_loss == kept.balance_loss && again.balanced == balanced);
        }
    }
}

/* The loss is least with even experts, the number of experts that a row takes, if probabilities follow the choice. */
static void a_loss_balances_experts(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct step_result first;
    o.balance = 1e-9f;
    const double alone = run(&o, 3 * STEPS, PACKING_WRAPPED, &first).balance_loss;
    assert_true(first.balanced && first.balance_loss > 2);
    o.balance = 5;
    const struct step_result r = run(&o, 3 * STEPS, PACKING_WRAPPED, &first);
    assert_true(fabs(r.balance_loss - 2) < 0.5 * fabs(alone - 2));
    assert_true(
        fabs(first.loss - 5 * first.balance_loss - (first.kd_loss * 2 + first.ce_loss / 2)) < 1e-5);
}

/* Sequences that end later are the same documents with more padding. */
static void padding_is_not_balanced(void **state)
{
    (void)state;
    struct train_options o = small_options;
    struct step_result few, many;
    o.balance = 1;
    o.seq_len = 32;
    run(&o, 1, PACKING_NONE, &few);
    o.seq_len = 64;
    run(&o, 1, PACKING_NONE, &many);
    assert_true(few.valid_tokens == many.valid_tokens && few.tokens < many.tokens);
    assert_true(fabs(few.balance_loss - many.balance_loss) < 1e-6 * few.balance_loss);
    assert_true(fabs(few.grad_norm - many.grad_norm) < 1e-5 * few.grad_norm);
}

/* A micro-batch belongs to one rank, and so do the counts of its experts. */
static void ranks_balance_experts_as_one_does(void **state)
{
    (void)state;
    struct train_options o = small_options;
    o.balance = 1;
    o.grad_accum = 2;
    const struct step_result one = run(&o, 2, PACKING_WRAPPED, NULL);
    o.ranks = 2;
    o.rank = RANKS_VIRTUAL;
    const struct step_result two = run(&o, 2, PACKING_WRAPPED, NULL);
    assert_true(fabs(one.balance_loss - two.balance_loss) < 1e-6 * one.balance_loss);
    assert_true(fabs(one.loss - two.loss) < 1e-6 * one.loss);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(students_with_experts_learn),
        cmocka_unit_test(recomputation_changes_no_bit_of_experts),
        cmocka_unit_test(a_loss_balances_experts),
        cmocka_unit_test(padding_is_not_balanced),
        cmocka_unit_test(ranks_balance_experts_as_one_does),
    };
    return cmocka_run_group_tests_name("experts_student", tests, open_moe, fixture_close);
}
