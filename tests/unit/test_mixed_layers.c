/* SPDX-License-Identifier: Apache-2.0
 *
 * test_mixed_layers.c: a model whose layers differ in their blocks and sizes: its gradients are derivatives, what is
 * recomputed has the same bits, and a decoder continues what a pass over whole sequences began.
 */
#include "base/checked.h"
#include "base/families.h"
#include "model/config.h"
#include "net/backward.h"
#include "net/decoder.h"
#include "net/forward.h"
#include "unit.h"

#include <math.h>

/* The second document begins at row SECOND; all but three of its tokens are a prompt. */
enum { ROWS = 24, SECOND = 10, PROMPT = ROWS - 3 - SECOND, VOCABULARY = 40, KINDS = 3 };

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
                             .hidden_size = 72,
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

struct model {
    nj_context *ctx;
    nj_stream *stream;
    struct net n;
    struct rows rows;
    struct acts a;
    struct decoder d;
    char *memory[4];
    float slope[ROWS * 72]; /* gradient of the loss by the normed rows */
};

static void *zeros(struct model *m, int i, size_t bytes)
{
    m->memory[i] = aligned_alloc(CARVE_ALIGN, size_up(bytes, CARVE_ALIGN));
    assert_non_null(m->memory[i]);
    return memset(m->memory[i], 0, bytes);
}

static float random_number(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(int32_t)*seed * 0x1p-31f;
}

/* Two documents; each id occurs more than once. */
static void fill_rows(const struct rows *rows)
{
    enum { IDS = 11 };
    int at = 0, run = 0;
    for (int i = 0; i < ROWS; i++) {
        rows->ids[i] = i * 7 % IDS;
        rows->doc_start[i] = i < SECOND ? 0 : SECOND;
        rows->pos[i] = i - rows->doc_start[i];
    }
    for (; run < IDS; run++) {
        rows->runs[run] = at;
        for (int i = 0; i < ROWS; i++)
            if (rows->ids[i] == run)
                rows->order[at++] = i;
    }
    for (; run <= ROWS; run++)
        rows->runs[run] = at;
}

static void prepare(struct model *m)
{
    struct work r = {.ctx = m->ctx, .s = m->stream, .prepare = true};
    net_forward(&r, &m->n, &m->a, &m->rows);
    net_backward(&r, &m->n, &m->a, &m->rows);
    decoder_prefill(&r, &m->d, PROMPT);
    decoder_logits(&r, &m->d, 1, 1);
    check_ok(r.rc, "GEMMs");
}

static void open_model(struct model *m, enum recompute recompute)
{
    const struct nj_options options = {.device = NJ_DEVICE_CPU};
    struct carve counted = {0}, c;
    uint32_t seed = 5;
    *m = (struct model){.n = {.c = mixed(), .T = NJ_F32, .recompute = recompute}};
    struct net *n = &m->n;
    check_ok(nj_context_create(&m->ctx, &options), "context");
    check_ok(nj_stream_create(m->ctx, &m->stream), "stream");
    check_ok(net_place(n, PARAMS_ALL), "net");
    n->trained = &n->p;
    float *w = zeros(m, 0, (size_t)n->p.count * sizeof *w);
    net_connect(n, (char *)w, zeros(m, 1, (size_t)n->p.count * sizeof *w));
    for (size_t i = 0; i < n->p.specs; i++)
        for (int64_t k = 0; k < tensor_elements(&n->p.spec[i]); k++)
            w[n->p.first[i] + k] = n->p.spec[i].rank == 2 ? 0.2f * random_number(&seed)
                                                          : 1 + 0.3f * random_number(&seed);
    n->inv_freq = zeros(m, 2, (size_t)config_frequencies(&n->c, ROPES_MOST) * sizeof(float));
    config_inv_freq(&n->c, n->c.max_positions, n->inv_freq);
    const struct decoder_size size = {.rows = 2, .positions = ROWS};
    acts_carve(n, 1, ROWS, ACTS_TRAIN, &counted, &m->a);
    rows_carve(ROWS, ROWS, USE_FORWARD | USE_STEP, &counted, &m->rows);
    decoder_carve(n, &size, VOCABULARY, VOCABULARY, &counted, &m->d);
    c = (struct carve){.base = zeros(m, 3, counted.used)};
    acts_carve(n, 1, ROWS, ACTS_TRAIN, &c, &m->a);
    rows_carve(ROWS, ROWS, USE_FORWARD | USE_STEP, &c, &m->rows);
    decoder_carve(n, &size, VOCABULARY, VOCABULARY, &c, &m->d);
    assert_int_equal(c.used, counted.used);
    fill_rows(&m->rows);
    for (size_t i = 0; i < sizeof m->slope / sizeof *m->slope; i++)
        m->slope[i] = random_number(&seed);
    prepare(m);
}

static void close_model(struct model *m)
{
    net_free(&m->n);
    nj_stream_destroy(m->stream);
    nj_context_destroy(m->ctx);
    for (int i = 0; i < 4; i++)
        free(m->memory[i]);
}

static double loss(struct model *m)
{
    struct work r = {.ctx = m->ctx, .s = m->stream};
    const float *y = (const float *)(const void *)m->a.y;
    double sum = 0;
    net_forward(&r, &m->n, &m->a, &m->rows);
    check_ok(r.rc, "forward");
    for (size_t i = 0; i < sizeof m->slope / sizeof *m->slope; i++)
        sum += (double)y[i] * (double)m->slope[i];
    return sum;
}

static void backward(struct model *m)
{
    struct work r = {.ctx = m->ctx, .s = m->stream};
    loss(m);
    memcpy(m->a.branch, m->slope, sizeof m->slope);
    net_backward(&r, &m->n, &m->a, &m->rows);
    check_ok(r.rc, "backward");
}

static void gradients_of_mixed_layers_are_derivatives(void **state)
{
    (void)state;
    struct model m;
    open_model(&m, RECOMPUTE_NONE);
    backward(&m);
    float *w = (float *)(void *)m.n.w;
    for (size_t i = 0; i < m.n.p.specs; i++) {
        int64_t at = m.n.p.first[i];
        if (m.n.p.spec[i].role == ROLE_HEAD)
            continue;
        for (int64_t k = 0; k < tensor_elements(&m.n.p.spec[i]); k++)
            if (fabsf(m.n.grad[m.n.p.first[i] + k]) > fabsf(m.n.grad[at]))
                at = m.n.p.first[i] + k;
        const float before = w[at];
        double slope[2];
        for (int k = 0; k < 2; k++) {
            volatile float up = before + 4e-3f * (float)(k + 1);
            volatile float down = before - 4e-3f * (float)(k + 1);
            w[at] = up;
            const double above = loss(&m);
            w[at] = down;
            slope[k] = (above - loss(&m)) / ((double)up - (double)down);
        }
        w[at] = before;
        const double want = (4 * slope[0] - slope[1]) / 3, got = (double)m.n.grad[at];
        if (!(fabs(got - want) <= 0.01 * fabs(want)) || !(fabs(want) > 0.05))
            fail_msg("%s: gradient %.7g, difference quotient %.7g", m.n.p.spec[i].name, got, want);
    }
    close_model(&m);
}

static void recomputed_mixed_layers_have_the_same_bits(void **state)
{
    (void)state;
    struct model all, fewer;
    open_model(&all, RECOMPUTE_NONE);
    backward(&all);
    for (int k = RECOMPUTE_MLP; k <= RECOMPUTE_BLOCK; k++) {
        open_model(&fewer, (enum recompute)k);
        backward(&fewer);
        assert_memory_equal(fewer.n.grad, all.n.grad, (size_t)all.n.p.count * sizeof(float));
        close_model(&fewer);
    }
    close_model(&all);
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

/* The second slot holds the second document, whose last three tokens come in steps. */
static void a_decoder_of_mixed_layers_continues(void **state)
{
    (void)state;
    struct model m;
    open_model(&m, RECOMPUTE_NONE);
    struct work r = {.ctx = m.ctx, .s = m.stream};
    const struct rows *rows = &m.rows, *prompts = &m.d.prompts;
    float want[VOCABULARY], largest = 0;
    loss(&m);
    for (int i = 0; i < PROMPT; i++) {
        prompts->ids[i] = rows->ids[SECOND + i];
        prompts->pos[i] = i;
        prompts->slot[i] = 1;
        prompts->doc_start[i] = 0;
    }
    decoder_prefill(&r, &m.d, PROMPT);
    for (int i = SECOND + PROMPT; i < ROWS; i++) {
        m.d.now.id[0] = rows->ids[i];
        m.d.now.pos[0] = i - SECOND;
        m.d.now.slot[0] = 1;
        decoder_logits(&r, &m.d, 1, 1);
        check_ok(r.rc, "step");
        logits_of(&m, i, want);
        for (int v = 0; v < VOCABULARY; v++)
            largest = fmaxf(largest, fabsf(want[v]));
        for (int v = 0; v < VOCABULARY; v++) {
            const float got = ((const float *)(const void *)m.d.logits)[v];
            if (!(fabsf(got - want[v]) <= 1e-4f * largest))
                fail_msg("row %d, token %d: %g, expected %g", i, v, (double)got, (double)want[v]);
        }
    }
    close_model(&m);
}

/* The second table, which one kind of layers has, is behind the first. */
static void blocks_are_rotated_by_their_own_tables(void **state)
{
    (void)state;
    struct model m;
    double sums[3];
    open_model(&m, RECOMPUTE_NONE);
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
    struct model m;
    open_model(&m, RECOMPUTE_NONE);
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
