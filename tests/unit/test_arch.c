/* SPDX-License-Identifier: Apache-2.0
 *
 * test_arch.c: models whose layers differ: their tensors, their number of parameters, and selections of their layers.
 */
#include "model/arch.h"
#include "model/tensor_names.h"
#include "unit.h"

/* A model whose layer 1 is a gated MLP only, and whose layer 2 has fewer heads, a wider MLP and no norms of queries and
 * keys. */
static struct model_config mixed(void)
{
    struct model_config c = {.hidden_size = 32,
                             .layers = 3,
                             .vocab_size = 10,
                             .tied = true,
                             CONFIG_PLAIN(4, 2, 8, 48, 0)};
    struct layer *kind = c.arch.kind;
    kind[0].block[0].features = NORMED_BEFORE | FEATURE_BIT(FEATURE_QK_NORM);
    kind[1] = (struct layer){1, {{BLOCK_GLU, NORMED_BEFORE, .ffn_size = 16}}};
    kind[2] =
        (struct layer){2,
                       {{BLOCK_ATTENTION, NORMED_BEFORE, .heads = 2, .kv_heads = 1, .head_dim = 8},
                        {BLOCK_GLU, NORMED_BEFORE, .ffn_size = 64}}};
    for (int l = 0; l < c.layers; l++)
        c.arch.kind_of[l] = (uint8_t)l;
    return c;
}

static void tensors_are_those_of_the_blocks_of_each_layer(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t rows, columns;
    } want[] = {
        {"model.embed_tokens.weight", 10, 32},
        {"model.layers.0.input_layernorm.weight", 32, 1},
        {"model.layers.0.self_attn.q_proj.weight", 32, 32},
        {"model.layers.0.self_attn.k_proj.weight", 16, 32},
        {"model.layers.0.self_attn.v_proj.weight", 16, 32},
        {"model.layers.0.self_attn.q_norm.weight", 8, 1},
        {"model.layers.0.self_attn.k_norm.weight", 8, 1},
        {"model.layers.0.self_attn.o_proj.weight", 32, 32},
        {"model.layers.0.post_attention_layernorm.weight", 32, 1},
        {"model.layers.0.mlp.gate_proj.weight", 48, 32},
        {"model.layers.0.mlp.up_proj.weight", 48, 32},
        {"model.layers.0.mlp.down_proj.weight", 32, 48},
        {"model.layers.1.post_attention_layernorm.weight", 32, 1},
        {"model.layers.1.mlp.gate_proj.weight", 16, 32},
        {"model.layers.1.mlp.up_proj.weight", 16, 32},
        {"model.layers.1.mlp.down_proj.weight", 32, 16},
        {"model.layers.2.input_layernorm.weight", 32, 1},
        {"model.layers.2.self_attn.q_proj.weight", 16, 32},
        {"model.layers.2.self_attn.k_proj.weight", 8, 32},
        {"model.layers.2.self_attn.v_proj.weight", 8, 32},
        {"model.layers.2.self_attn.o_proj.weight", 32, 16},
        {"model.layers.2.post_attention_layernorm.weight", 32, 1},
        {"model.layers.2.mlp.gate_proj.weight", 64, 32},
        {"model.layers.2.mlp.up_proj.weight", 64, 32},
        {"model.layers.2.mlp.down_proj.weight", 32, 64},
        {"model.norm.weight", 32, 1},
    };
    const struct model_config c = mixed();
    struct tensor_spec *spec;
    size_t count;
    int64_t elements = 0;
    check_ok(tensor_specs(&c, &spec, &count), "specs");
    assert_int_equal(count, sizeof want / sizeof *want);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(spec[i].name, want[i].name);
        assert_int_equal(spec[i].shape[0], want[i].rows);
        assert_int_equal(spec[i].shape[1], want[i].columns);
        elements += want[i].rows * want[i].columns;
    }
    assert_int_equal(config_parameters(&c), elements);
    free(spec);
}

static void layers_that_are_kept_keep_their_blocks(void **state)
{
    (void)state;
    static const int layers[] = {2, 0};
    struct model_config c = mixed();
    const struct arch before = c.arch;
    arch_keep(&c.arch, layers, 2);
    assert_ptr_equal(arch_layer(&c.arch, 0), &c.arch.kind[2]);
    assert_ptr_equal(arch_layer(&c.arch, 1), &c.arch.kind[0]);
    assert_memory_equal(c.arch.kind, before.kind, sizeof before.kind);
}

static void a_block_is_found_by_its_kind(void **state)
{
    (void)state;
    const struct model_config c = mixed();
    assert_int_equal(arch_block(&c.arch, 2, BLOCK_ATTENTION)->heads, 2);
    assert_int_equal(arch_block(&c.arch, 1, BLOCK_GLU)->ffn_size, 16);
    assert_null(arch_block(&c.arch, 1, BLOCK_ATTENTION));
}

static void sizes_of_a_block_are_counted(void **state)
{
    (void)state;
    const struct model_config c = mixed();
    const struct block *attention = arch_block(&c.arch, 2, BLOCK_ATTENTION);
    const struct block *glu = arch_block(&c.arch, 2, BLOCK_GLU);
    assert_int_equal(block_qkv_size(attention), 32);
    assert_int_equal(block_qkv_size(glu), 0);
    assert_true(block_attention_flops(attention, 9) == 4.0 * 2 * 8 * 5);
    assert_true(block_attention_flops(glu, 9) == 0);
}

/* Queries of a sequence of 8 see 1, 2, 3, 3, 3, 3, 3 and 3 keys in a window of 3, and 4.5 on average without one. */
static void a_window_bounds_the_work_of_attention(void **state)
{
    (void)state;
    static const struct {
        int window;
        double keys;
    } rows[] = {{0, 4.5}, {1, 1}, {3, 21 / 8.0}, {8, 4.5}, {9, 4.5}};
    const struct model_config c = mixed();
    struct block b = *arch_block(&c.arch, 2, BLOCK_ATTENTION);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        b.window = rows[i].window;
        assert_true(block_attention_flops(&b, 8) == 4.0 * 2 * 8 * rows[i].keys);
    }
}

static void further_layers_repeat_the_first_ones(void **state)
{
    (void)state;
    struct model_config c = mixed();
    arch_repeat(&c.arch, 3, 8);
    for (int l = 0; l < 8; l++)
        assert_int_equal(c.arch.kind_of[l], l % 3);
    arch_repeat(&c.arch, 3, 2);
    arch_repeat(&c.arch, 3, LAYERS_MOST + 1);
    assert_int_equal(c.arch.kind_of[LAYERS_MOST - 1], (LAYERS_MOST - 1) % 3);
}

static void an_op_serves_the_features_that_its_contract_names(void **state)
{
    (void)state;
    const unsigned normed = FEATURE_BIT(FEATURE_QK_NORM);
    assert_true(features_meet(normed, "qk_norm") && !features_meet(0, "qk_norm"));
    assert_true(features_meet(0, "not qk_norm") && !features_meet(normed, "not qk_norm"));
    assert_true(!features_meet(normed, "silu") && features_meet(normed, "not silu"));
    assert_true(!features_meet(normed, "unknown") && !features_meet(normed, "not unknown"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_those_of_the_blocks_of_each_layer),
        cmocka_unit_test(layers_that_are_kept_keep_their_blocks),
        cmocka_unit_test(a_block_is_found_by_its_kind),
        cmocka_unit_test(sizes_of_a_block_are_counted),
        cmocka_unit_test(a_window_bounds_the_work_of_attention),
        cmocka_unit_test(further_layers_repeat_the_first_ones),
        cmocka_unit_test(an_op_serves_the_features_that_its_contract_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
