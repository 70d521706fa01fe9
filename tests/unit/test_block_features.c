/* SPDX-License-Identifier: Apache-2.0
 *
 * test_block_features.c: each feature of a block, and each factor of a model, alone: rows and logits are those of a
 * reference in double, gradients are derivatives, what is recomputed has the same bits, and a decoder continues.
 */
#include "net_reference.h"

/* A model of two plain layers. */
static struct model_config plain(void)
{
    struct model_config c = {.model_type = "llama",
                             .hidden_size = NET_HIDDEN,
                             .layers = 2,
                             .vocab_size = VOCABULARY,
                             .max_positions = 64,
                             .rms_eps = 1e-5f,
                             CONFIG_PLAIN(2, 1, 64, 40, 0),
                             CONFIG_ROPE(1e4)};
    return c;
}

static struct block *attention_of(struct model_config *c)
{
    return &c->arch.kind[0].block[PLAIN_ATTENTION];
}

static struct block *glu_of(struct model_config *c)
{
    return &c->arch.kind[0].block[PLAIN_GLU];
}

static void compare(const char *what, int row, const float *got, const double *want, int count)
{
    double largest = 0;
    for (int i = 0; i < count; i++)
        largest = fmax(largest, fabs(want[i]));
    for (int i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= 1e-4 * largest))
            fail_msg("%s of row %d, element %d: %g, expected %g", what, row, i, (double)got[i],
                     want[i]);
}

/* Compare hidden rows, and the logits of a decoder's steps. */
static void check_reference(struct model *m)
{
    static reference_rows want;
    double logits[VOCABULARY];
    loss(m);
    reference_hidden(&m->n, &m->rows, want);
    const float *got = (const float *)(const void *)m->a.y;
    for (int i = 0; i < ROWS; i++)
        compare("hidden rows", i, got + (ptrdiff_t)i * NET_HIDDEN, want[i], NET_HIDDEN);
    prefill(m);
    for (int i = SECOND + PROMPT; i < ROWS; i++) {
        reference_logits(&m->n, want[i], logits);
        compare("logits", i, step_row(m, i), logits, VOCABULARY);
    }
}

/* Return the loss of the reference, of whose double difference quotients nothing is lost. */
static double reference_loss(struct model *m)
{
    static reference_rows hidden;
    double sum = 0;
    reference_hidden(&m->n, &m->rows, hidden);
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < NET_HIDDEN; c++)
            sum += hidden[i][c] * (double)m->slope[i * NET_HIDDEN + c];
    return sum;
}

static void check_model(const struct model_config *c)
{
    struct model m;
    open_model(&m, c, RECOMPUTE_NONE);
    check_reference(&m);
    check_derivatives(&m, reference_loss, 1e-3f);
    close_model(&m);
    check_recomputed(c);
}

static void plain_layers_agree_with_the_reference(void **state)
{
    (void)state;
    const struct model_config c = plain();
    check_model(&c);
}

/* The layers of Gemma 3, of OLMo 2, and a layer whose blocks differ. */
static void norms_stand_before_blocks_or_after_them(void **state)
{
    (void)state;
    static const unsigned places[][2] = {
        {NORMED_BEFORE | NORMED_AFTER, NORMED_BEFORE | NORMED_AFTER},
        {NORMED_AFTER, NORMED_AFTER},
        {NORMED_AFTER, NORMED_BEFORE},
        {NORMED_BEFORE, NORMED_AFTER},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct model_config c = plain();
        attention_of(&c)->features = places[i][0];
        glu_of(&c)->features = places[i][1];
        check_model(&c);
    }
}

static void fused_tensors_are_the_same_matrices(void **state)
{
    (void)state;
    struct model_config c = plain();
    attention_of(&c)->features |= FEATURE_BIT(FEATURE_FUSED_QKV);
    glu_of(&c)->features |= FEATURE_BIT(FEATURE_FUSED_GATE_UP);
    check_model(&c);
}

static void a_fused_tensor_has_one_adapter(void **state)
{
    (void)state;
    struct lora_config o = {.rank = 4, .alpha = 8}, read;
    struct lora adapters;
    struct net n = {.c = plain(), .T = NJ_F32};
    attention_of(&n.c)->features |= FEATURE_BIT(FEATURE_FUSED_QKV);
    check_ok(lora_targets_add(&o, "qkv_proj,down_proj"), "targets");
    check_ok(net_layout(&n, &o, NULL, &adapters), "adapters");
    assert_int_equal(adapters.p.specs, 2 * 2 * n.c.layers);
    const struct tensor_spec *b = &adapters.p.spec[1];
    assert_string_equal(b->name,
                        "base_model.model.model.layers.0.self_attn.qkv_proj.lora_B.weight");
    assert_int_equal(b->shape[0], block_qkv_size(attention_of(&n.c)));
    assert_int_equal(net_matrix(&n, 0, BLOCK_ATTENTION, ATTENTION_QKV)->adapters, 1);
    check_ok(lora_config_write(scratch, &o, &n.c, "base"), "config");
    size_t bytes;
    char *written = read_bytes(at("adapter_config.json"), &bytes);
    assert_non_null(strstr(written, "\"qkv_proj\""));
    assert_null(strstr(written, "\"q_proj\""));
    free(written);
    check_ok(lora_config_read(scratch, &read), "config");
    assert_memory_equal(read.target, o.target, sizeof o.target);
    lora_free(&adapters);
    net_free(&n);
    o.target[LORA_K] = false;
    assert_int_equal(net_layout(&n, &o, NULL, &adapters), NJ_E_UNSUPPORTED);
    assert_non_null(strstr(fail_text(), "qkv_proj is one matrix"));
    net_free(&n);
}

static void adapters_have_the_names_of_their_family(void **state)
{
    (void)state;
    struct lora_config o = {.rank = 4, .alpha = 8}, read;
    struct model_config c = plain();
    config_plain_layers(&c, "granitemoehybrid");
    check_ok(lora_targets_add(&o, "input_linear,output_linear"), "targets");
    assert_true(o.target[LORA_GATE] && o.target[LORA_UP] && o.target[LORA_DOWN]);
    assert_false(o.target[LORA_O]);
    check_ok(lora_config_write(scratch, &o, &c, "base"), "config");
    size_t bytes;
    char *written = read_bytes(at("adapter_config.json"), &bytes);
    assert_non_null(strstr(written, "\"input_linear\""));
    assert_non_null(strstr(written, "\"output_linear\""));
    assert_null(strstr(written, "down_proj"));
    free(written);
    check_ok(lora_config_read(scratch, &read), "config");
    assert_memory_equal(read.target, o.target, sizeof o.target);
}

static void a_factor_multiplies_what_blocks_add(void **state)
{
    (void)state;
    struct model_config c = plain();
    c.residual_scale = 0.22f;
    check_model(&c);
}

static void gains_have_an_offset(void **state)
{
    (void)state;
    struct model_config c = plain();
    c.gain_offset = 0.5f;
    attention_of(&c)->gain_offset = 1;
    attention_of(&c)->features = NORMED_BEFORE | NORMED_AFTER;
    glu_of(&c)->gain_offset = -0.25f;
    check_model(&c);
}

static void norms_of_heads_have_offsets_and_may_be_last(void **state)
{
    (void)state;
    struct model_config c = plain();
    attention_of(&c)->features |= FEATURE_BIT(FEATURE_QK_NORM);
    attention_of(&c)->gain_offset = 1;
    check_model(&c);
    attention_of(&c)->features |= FEATURE_BIT(FEATURE_QK_GAIN_LAST);
    check_model(&c);
}

static void norms_of_heads_may_lack_gains(void **state)
{
    (void)state;
    struct model_config c = plain();
    attention_of(&c)->features |= FEATURE_BIT(FEATURE_QK_NORM) | FEATURE_BIT(FEATURE_QK_NO_GAIN);
    attention_of(&c)->gain_offset = 1;
    check_model(&c);
}

static void norms_after_blocks_have_their_eps(void **state)
{
    (void)state;
    struct model_config c = plain();
    c.after_eps = 0.01f;
    attention_of(&c)->features |= NORMED_AFTER;
    glu_of(&c)->features |= NORMED_AFTER;
    check_model(&c);
}

static void rows_of_the_embedding_are_normed(void **state)
{
    (void)state;
    struct model_config c = plain();
    c.embed_normed = true;
    check_model(&c);
    c.embedding_scale = 0.02f; /* so that eps counts */
    attention_of(&c)->features = NORMED_AFTER;
    check_model(&c);
}

static void norms_may_be_those_of_whole_rows(void **state)
{
    (void)state;
    struct model_config c = plain();
    attention_of(&c)->features = NORMED_AFTER | FEATURE_BIT(FEATURE_QK_NORM_ROW);
    attention_of(&c)->kv_heads = 2;
    check_model(&c);
    attention_of(&c)->head_dim = 80;
    check_model(&c);
    c.arch.rope[0].rotary = 24;
    check_model(&c);
}

/* Heads of all kinds: partial rotation, neighbors, both, sizes that kernels do not have, some without rotation. */
static void heads_have_other_sizes_and_rotations(void **state)
{
    (void)state;
    static const struct {
        int head_dim, rotary;
        bool neighbors;
        enum rope_rule rule;
        float amplitude;
    } kinds[] = {{64, 48, false, ROPE_DEFAULT, 1.2f}, {64, 0, true, ROPE_DEFAULT, 0},
                 {80, 0, false, ROPE_DEFAULT, 0},     {40, 24, true, ROPE_DEFAULT, 0},
                 {96, 0, false, ROPE_NONE, 0},        {64, 32, true, ROPE_NONE, 0}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct model_config c = plain();
        struct rope *r = &c.arch.rope[0];
        attention_of(&c)->head_dim = kinds[i].head_dim;
        attention_of(&c)->heads = 4;
        attention_of(&c)->kv_heads = 2;
        attention_of(&c)->features |=
            kinds[i].rule == ROPE_DEFAULT ? FEATURE_BIT(FEATURE_QKV_BIAS) : 0;
        *r = (struct rope){.theta = 1e4,
                           .rule = kinds[i].rule,
                           .rotary = kinds[i].rotary,
                           .neighbors = kinds[i].neighbors,
                           .amplitude = kinds[i].amplitude};
        check_model(&c);
    }
}

static void heads_have_sinks(void **state)
{
    (void)state;
    struct model_config c = plain();
    attention_of(&c)->features |= FEATURE_BIT(FEATURE_SINKS) | FEATURE_BIT(FEATURE_O_BIAS);
    attention_of(&c)->window = 6;
    check_model(&c);
    attention_of(&c)->head_dim = 80;
    check_model(&c);
}

static void outputs_of_attention_are_gated(void **state)
{
    (void)state;
    struct model_config c = plain();
    attention_of(&c)->features |= FEATURE_BIT(FEATURE_GATE) | FEATURE_BIT(FEATURE_QK_NORM);
    check_model(&c);
    attention_of(&c)->features = NORMED_AFTER | FEATURE_BIT(FEATURE_GATE);
    check_model(&c);
}

static void embeddings_have_a_factor(void **state)
{
    (void)state;
    struct model_config c = plain();
    c.embedding_scale = 6;
    check_model(&c);
}

static void outputs_and_mlps_have_biases(void **state)
{
    (void)state;
    struct model_config c = plain();
    attention_of(&c)->features |= FEATURE_BIT(FEATURE_O_BIAS) | FEATURE_BIT(FEATURE_QKV_BIAS);
    glu_of(&c)->features |= FEATURE_BIT(FEATURE_MLP_BIAS);
    check_model(&c);
}

static void logits_have_a_factor(void **state)
{
    (void)state;
    struct model_config c = plain();
    c.logit_scale = 0.125f;
    check_model(&c);
}

static void logits_are_bounded(void **state)
{
    (void)state;
    struct model_config c = plain();
    c.logit_cap = 0.7f;
    check_model(&c);
}

static void rotated_heads_have_an_amplitude(void **state)
{
    (void)state;
    struct model_config c = plain();
    c.arch.rope[0].amplitude = 1.3f;
    check_model(&c);
}

static void scores_have_a_factor_of_their_own(void **state)
{
    (void)state;
    struct model_config c = plain();
    attention_of(&c)->score_scale = 0.3f;
    check_model(&c);
}

static void some_layers_do_not_rotate(void **state)
{
    (void)state;
    struct model_config c = plain();
    c.arch.kind[1] = c.arch.kind[0];
    c.arch.kind[1].block[PLAIN_ATTENTION].rope = 1;
    c.arch.rope[1] = (struct rope){.theta = 1e4, .rule = ROPE_NONE};
    c.arch.kind_of[1] = 1;
    check_model(&c);
}

/* A layer with a convolution in the place of attention, before one with attention. */
static struct model_config with_convolution(void)
{
    struct model_config c = plain();
    c.arch.kind[1] = c.arch.kind[0];
    c.arch.kind[1].block[0] = (struct block){BLOCK_CONV, NORMED_BEFORE | FEATURE_BIT(FEATURE_CONV),
                                             .channels = NET_HIDDEN, .taps = 4};
    c.arch.kind_of[0] = 1;
    return c;
}

static void convolutions_take_the_place_of_attention(void **state)
{
    (void)state;
    struct model_config c = with_convolution();
    check_model(&c);
    c.residual_scale = 0.6f;
    check_model(&c);
}

/* A layer with the gated delta rule, before one with attention. */
static struct model_config with_delta_rule(void)
{
    struct model_config c = plain();
    c.arch.kind[1] = c.arch.kind[0];
    c.arch.kind[1].block[0] =
        (struct block){BLOCK_DELTA,    NORMED_BEFORE | FEATURE_BIT(FEATURE_DELTA),
                       .heads = 4,     .kv_heads = 2,
                       .head_dim = 64, .taps = 4};
    c.arch.kind_of[0] = 1;
    return c;
}

static void delta_rules_take_the_place_of_attention(void **state)
{
    (void)state;
    struct model_config c = with_delta_rule();
    check_model(&c);
    c.arch.kind[1].block[0].gain_offset = 1; /* the norm of heads has none */
    check_model(&c);
}

/* Check that a model computes the same bits for a document whatever comes before it, and that a slot begins anew with
 * another sequence. */
static void check_memory(const struct model_config *c)
{
    enum { SAME = (ROWS - SECOND) * NET_HIDDEN };
    static reference_rows hidden;
    float before[SAME];
    double want[VOCABULARY];
    struct model m;
    open_model(&m, c, RECOMPUTE_NONE);
    const float *got = (const float *)(const void *)m.a.y + (ptrdiff_t)SECOND * NET_HIDDEN;
    loss(&m);
    memcpy(before, got, sizeof before);
    for (int i = 0; i < SECOND; i++)
        m.rows.ids[i] = (m.rows.ids[i] + 1 + i) % VOCABULARY;
    loss(&m);
    assert_memory_equal(got, before, sizeof before);
    reference_hidden(&m.n, &m.rows, hidden);
    prefill(&m);
    for (int i = SECOND + PROMPT; i < ROWS; i++)
        step_row(&m, i);
    for (int i = SECOND; i < ROWS; i++) {
        reference_logits(&m.n, hidden[i], want);
        compare("logits in a slot that was used", i, step_row(&m, i), want, VOCABULARY);
    }
    close_model(&m);
}

static void recurrent_layers_begin_anew_with_a_document(void **state)
{
    (void)state;
    const struct model_config conv = with_convolution(), delta = with_delta_rule();
    check_memory(&conv);
    check_memory(&delta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_layers_agree_with_the_reference),
        cmocka_unit_test(norms_stand_before_blocks_or_after_them),
        cmocka_unit_test(fused_tensors_are_the_same_matrices),
        cmocka_unit_test(a_fused_tensor_has_one_adapter),
        cmocka_unit_test(adapters_have_the_names_of_their_family),
        cmocka_unit_test(a_factor_multiplies_what_blocks_add),
        cmocka_unit_test(gains_have_an_offset),
        cmocka_unit_test(norms_of_heads_have_offsets_and_may_be_last),
        cmocka_unit_test(norms_of_heads_may_lack_gains),
        cmocka_unit_test(norms_after_blocks_have_their_eps),
        cmocka_unit_test(rows_of_the_embedding_are_normed),
        cmocka_unit_test(norms_may_be_those_of_whole_rows),
        cmocka_unit_test(heads_have_other_sizes_and_rotations),
        cmocka_unit_test(heads_have_sinks),
        cmocka_unit_test(outputs_of_attention_are_gated),
        cmocka_unit_test(embeddings_have_a_factor),
        cmocka_unit_test(outputs_and_mlps_have_biases),
        cmocka_unit_test(logits_have_a_factor),
        cmocka_unit_test(logits_are_bounded),
        cmocka_unit_test(rotated_heads_have_an_amplitude),
        cmocka_unit_test(scores_have_a_factor_of_their_own),
        cmocka_unit_test(some_layers_do_not_rotate),
        cmocka_unit_test(convolutions_take_the_place_of_attention),
        cmocka_unit_test(delta_rules_take_the_place_of_attention),
        cmocka_unit_test(recurrent_layers_begin_anew_with_a_document),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
