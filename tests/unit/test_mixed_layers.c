/* SPDX-License-Identifier: Apache-2.0
 *
 * test_mixed_layers.c: a model whose layers differ in their blocks and sizes: its gradients are derivatives, what is
 * recomputed has the same bits, and a decoder continues what a pass over whole sequences began.
 */
#include "base/families.h"
#include "net_fixture.h"

enum { KINDS = 3 };

/* Two kinds of attention, with biases or norms of heads, a rotation each, and another number of heads and width; and a
 * layer of an MLP alone. */
static struct model_config mixed(void)
{
    static const int order[] = {0, 1, 2, 0, 1};
    static const struct layer kinds[KINDS] = {
        LAYER_PLAIN(2, 1, 64, 96, FEATURE_BIT(FEATURE_QKV_BIAS)),
        LAYER_PLAIN(4, 4, 64, 160, FEATURE_BIT(FEATURE_QK_NORM)),
        {1, {{BLOCK_GLU, NORMED_BEFORE, .ffn_size = 32}}},
    };
    struct model_config c = {.model_type = "llama",
                             .hidden_size = NET_HIDDEN,
                             .layers = sizeof order / sizeof *order,
                             .vocab_size = VOCABULARY,
                             .max_positions = 64,
                             .rms_eps = 1e-5f};
    memcpy(c.arch.kind, kinds, sizeof kinds);
    c.arch.kind[1].block[0].rope = 1;
    c.arch.kind[1].block[1].act = hidden_act_find("gelu");
    c.arch.rope[0].theta = 1e4;
    c.arch.rope[1].theta = 50;
    for (int l = 0; l < c.layers; l++)
        c.arch.kind_of[l] = (uint8_t)order[l];
    check_ok(config_check(&c, "mixed"), "configuration");
    return c;
}

static void gradients_of_mixed_layers_are_derivatives(void **state)
{
    (void)state;
    const struct model_config c = mixed();
    struct model m;
    open_model(&m, &c, RECOMPUTE_NONE);
    check_derivatives(&m, loss, 4e-3f);
    close_model(&m);
}

static void recomputed_mixed_layers_have_the_same_bits(void **state)
{
    (void)state;
    const struct model_config c = mixed();
    check_recomputed(&c);
}

static void logits_of(struct model *m, int row, float out[VOCABULARY])
{
    const struct net *n = &m->n;
    const int C = n->c.hidden_size;
    const float *y = (const float *)(const void *)m->a.y + (ptrdiff_t)row * C;
    const float *head = net_weight(n, n->p.head);
    for (int v = 0; v < VOCABULARY; v++) {
        out[v] = 0;
        for (int i = 0; i < C; i++)
            out[v] += y[i] * head[(ptrdiff_t)v * C + i];
    }
}

/* The last three tokens of the second document come in steps. */
static void a_decoder_of_mixed_layers_continues(void **state)
{
    (void)state;
    const struct model_config c = mixed();
    struct model m;
    float want[VOCABULARY], largest = 0;
    open_model(&m, &c, RECOMPUTE_NONE);
    loss(&m);
    prefill(&m);
    for (int i = SECOND + PROMPT; i < ROWS; i++) {
        const float *got = step_row(&m, i);
        logits_of(&m, i, want);
        for (int v = 0; v < VOCABULARY; v++)
            largest = fmaxf(largest, fabsf(want[v]));
        for (int v = 0; v < VOCABULARY; v++)
            if (!(fabsf(got[v] - want[v]) <= 1e-4f * largest))
                fail_msg("row %d, token %d: %g, expected %g", i, v, (double)got[v],
                         (double)want[v]);
    }
    close_model(&m);
}

/* The second table, which one kind of layers has, is behind the first. */
static void blocks_are_rotated_by_their_own_tables(void **state)
{
    (void)state;
    const struct model_config c = mixed();
    struct model m;
    double sums[3];
    open_model(&m, &c, RECOMPUTE_NONE);
    sums[0] = loss(&m);
    for (int rope = 1; rope >= 0; rope--) {
        memset(m.n.inv_freq + config_frequencies(&m.n.c, rope), 0, 32 * sizeof(float));
        sums[2 - rope] = loss(&m);
    }
    assert_true(fabs(sums[1] - sums[0]) > 1e-3 && fabs(sums[2] - sums[1]) > 1e-3);
    close_model(&m);
}

/* Each array is as large as its own layer asks for. */
static void memory_follows_the_sizes_of_each_layer(void **state)
{
    (void)state;
    const struct model_config c = mixed();
    struct model m;
    open_model(&m, &c, RECOMPUTE_NONE);
    const struct net *n = &m.n;
    size_t heads = 0;
    for (int l = 0; l < n->c.layers; l++) {
        const struct layer_cache at = cache_layer(n, &m.d.cache, l);
        const size_t each = (size_t)m.d.cache.slots * (size_t)m.d.cache.positions * 64;
        const struct block *b = arch_block(&n->c.arch, l, BLOCK_ATTENTION);
        assert_ptr_equal(at.keys, m.d.cache.keys + heads * each * sizeof(float));
        heads += b ? (size_t)b->kv_heads : 0;
        assert_int_equal(net_matrix(n, l, BLOCK_GLU, GLU_DOWN)->cols,
                         arch_block(&n->c.arch, l, BLOCK_GLU)->ffn_size);
    }
    assert_int_equal(heads, 1 + 4 + 1 + 4);
    assert_int_equal(net_widest_input(n), 256);
    assert_int_equal(config_frequencies(&n->c, ROPES_MOST), 64);
    for (int b = 0; b < 2; b++) {
        const struct block_acts first = acts_block(n, &m.a, 0, b), last = acts_block(n, &m.a, 3, b);
        const size_t bytes = b == 0 ? ROWS * 4 * 64 * sizeof(float) : ROWS * 2 * 96 * sizeof(float);
        assert_ptr_equal(last.kept[0], (char *)first.kept[0] + bytes);
    }
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_mixed_layers_are_derivatives),
        cmocka_unit_test(recomputed_mixed_layers_have_the_same_bits),
        cmocka_unit_test(a_decoder_of_mixed_layers_continues),
        cmocka_unit_test(blocks_are_rotated_by_their_own_tables),
        cmocka_unit_test(memory_follows_the_sizes_of_each_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
