/* SPDX-License-Identifier: Apache-2.0
 *
 * test_mixture_families.c: families whose layers have experts, beside qwen3_moe and gpt_oss: routers with biases and
 * groups, experts that all rows take, first layers without experts. Expectations are those of the configuration classes
 * of transformers 5.24, and of published models. test_golden_families.c holds what is computed.
 */
#include "config_fixture.h"
#include "model/init.h"
#include "net/net.h"
#include "state/plan.h"

#include <math.h>

#define QWEN EIGHT("qwen3_5_moe_text") ",\"head_dim\":64"
#define NEXT EIGHT("qwen3_next") ",\"head_dim\":64"
#define LFM                                                                                        \
    EIGHT("lfm2_moe")                                                                              \
    ",\"layer_types\":[\"conv\",\"full_attention\",\"conv\",\"conv\",\"conv\","                    \
    "\"full_attention\",\"conv\",\"conv\"]"
#define GLM EIGHT("glm4_moe") ",\"head_dim\":64,\"n_routed_experts\":16"

static const struct block *experts_of(const struct model_config *c)
{
    return arch_first(&c->arch, c->layers, BLOCK_EXPERTS);
}

static void layers_have_experts_by_the_rule_of_their_family(void **state)
{
    (void)state;
    static const struct {
        const char *json, *layers; /* e: experts, g: a gated MLP */
    } rows[] = {
        {NEXT ",\"decoder_sparse_step\":2,\"mlp_only_layers\":[1]", "gggegege"},
        {QWEN, "eeeeeeee"},
        {QWEN ",\"decoder_sparse_step\":1,\"mlp_only_layers\":[],\"norm_topk_prob\":true",
         "eeeeeeee"},
        {LFM, "ggeeeeee"},
        {LFM ",\"num_dense_layers\":0", "eeeeeeee"},
        {LFM ",\"num_dense_layers\":9", "gggggggg"},
        {GLM, "geeeeeee"},
        {GLM ",\"first_k_dense_replace\":0,\"n_group\":4,\"topk_group\":2", "eeeeeeee"},
        {GLM ",\"first_k_dense_replace\":3", "gggeeeee"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        char json[1024], found[LAYERS_MOST + 1] = "";
        snprintf(json, sizeof json, "{%s}", rows[i].json);
        check_ok(read_json(json, &c), json);
        for (int l = 0; l < c.layers; l++)
            found[l] = arch_block(&c.arch, l, BLOCK_EXPERTS) ? 'e' : 'g';
        if (strcmp(found, rows[i].layers) != 0)
            fail_msg("%s: %s, expected %s", json, found, rows[i].layers);
        check_written(&c, json);
    }
}

static void routers_and_shared_experts_have_their_numbers(void **state)
{
    (void)state;
    enum {
        SHARED = FEATURE_BIT(FEATURE_SHARED_EXPERT),
        GATED = SHARED | FEATURE_BIT(FEATURE_SHARED_GATE),
        CORRECTED = FEATURE_BIT(FEATURE_CORRECTION)
    };
    static const struct {
        const char *json;
        struct block want; /* without the width and the features that all have */
    } rows[] = {
        {QWEN,
         {.experts = 256,
          .experts_used = 8,
          .shared_size = 512,
          .renormalized = true,
          .features = GATED}},
        {NEXT ",\"norm_topk_prob\":false,\"shared_expert_intermediate_size\":24",
         {.experts = 512, .experts_used = 10, .shared_size = 24, .features = GATED}},
        {LFM,
         {.experts = 32,
          .experts_used = 4,
          .renormalized = true,
          .route_scale = 1,
          .route_eps = 1e-6f,
          .router = NJ_ROUTE_SIGMOID,
          .features = CORRECTED}},
        {LFM ",\"use_expert_bias\":false,\"routed_scaling_factor\":2.5",
         {.experts = 32,
          .experts_used = 4,
          .renormalized = true,
          .route_scale = 2.5f,
          .route_eps = 1e-6f,
          .router = NJ_ROUTE_SIGMOID}},
        {GLM ",\"n_group\":4,\"topk_group\":2,\"n_shared_experts\":2,\"moe_intermediate_size\":40,"
             "\"use_qk_norm\":false,\"num_nextn_predict_layers\":1",
         {.experts = 16,
          .experts_used = 8,
          .renormalized = true,
          .route_scale = 1,
          .groups = 4,
          .groups_used = 2,
          .shared_size = 80,
          .router = NJ_ROUTE_SIGMOID,
          .features = CORRECTED | SHARED}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        char json[1024];
        const struct block *want = &rows[i].want;
        snprintf(json, sizeof json, "{%s}", rows[i].json);
        check_ok(read_json(json, &c), json);
        const struct block *b = experts_of(&c);
        assert_true(b->experts == want->experts && b->experts_used == want->experts_used);
        assert_true(b->shared_size == want->shared_size && b->renormalized == want->renormalized);
        assert_true(b->route_scale == want->route_scale && b->route_eps == want->route_eps);
        assert_true(b->groups == want->groups && b->groups_used == want->groups_used);
        assert_int_equal(b->router, want->router);
        assert_int_equal(b->features,
                         NORMED_BEFORE | FEATURE_BIT(FEATURE_EXPERTS) | want->features);
        check_written(&c, json);
    }
}

static void other_numbers_of_these_families_are_refused(void **state)
{
    (void)state;
    static const struct refused_fields rows[] = {
        {QWEN ",\"norm_topk_prob\":false", NJ_E_UNSUPPORTED, "norm_topk_prob is false; in this"},
        {QWEN ",\"mlp_only_layers\":[1]", NJ_E_UNSUPPORTED, "mlp_only_layers is [1]; in this"},
        {QWEN ",\"decoder_sparse_step\":2", NJ_E_UNSUPPORTED, "decoder_sparse_step is 2; in this"},
        {QWEN ",\"shared_expert_intermediate_size\":20", NJ_E_UNSUPPORTED,
         "shared_expert_intermediate_size is 20; multiples of 8 up to"},
        {QWEN ",\"shared_expert_intermediate_size\":0", NJ_E_FORMAT,
         "shared_expert_intermediate_size is 0"},
        {EIGHT("lfm2_moe"), NJ_E_FORMAT, "layer_types is missing, which says which layers"},
        {LFM ",\"num_dense_layers\":-1", NJ_E_FORMAT, "num_dense_layers is -1"},
        {LFM ",\"routed_scaling_factor\":0", NJ_E_FORMAT, "routed_scaling_factor is 0"},
        {LFM ",\"block_ff_dim\":96", NJ_E_UNSUPPORTED, "block_ff_dim is 96; this field"},
        {GLM ",\"n_group\":3", NJ_E_UNSUPPORTED,
         "n_group is 3; up to 32 are supported, of which n_routed_experts 16 is a multiple"},
        {GLM ",\"n_group\":4,\"topk_group\":1", NJ_E_FORMAT,
         "topk_group is 1 of 4, which have no 8 experts"},
        {GLM ",\"n_group\":2,\"topk_group\":3", NJ_E_FORMAT, "topk_group is 3 of 2"},
        {GLM ",\"n_shared_experts\":0", NJ_E_FORMAT, "n_shared_experts is 0"},
        {GLM ",\"n_shared_experts\":1000000", NJ_E_FORMAT,
         "n_shared_experts is 1000000; the shared experts become too large"},
        {GLM ",\"use_qk_norm\":true", NJ_E_UNSUPPORTED, "use_qk_norm is true; norms of"},
        {GLM ",\"num_experts_per_tok\":17", NJ_E_FORMAT,
         "must lie between 1 and n_routed_experts 16"},
    };
    check_fields_refused(rows, sizeof rows / sizeof *rows);
}

/* Billions of parameters, in all and of a token, that the names of published models or their pages say. Some leave the
 * embedding out. */
static void presets_have_the_parameters_that_are_published(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double all, active, off;
    } rows[] = {
        {"qwen3.5-35b-a3b", 35, 3, 0.5},  {"qwen3.5-122b-a10b", 122, 10, 0.5},
        {"qwen3-next-80b-a3b", 80, 3, 1}, {"lfm2-8b-a1b", 8.3, 1.5, 0.1},
        {"glm-4.5-air", 106, 12, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        check_ok(preset_config(preset_find(rows[i].name), &c), rows[i].name);
        const double all = (double)config_parameters(&c) / 1e9;
        const double active = (double)config_active_parameters(&c) / 1e9;
        if (fabs(all - rows[i].all) > rows[i].off || fabs(active - rows[i].active) > 1.5)
            fail_msg("%s: %.2f, %.2f", rows[i].name, all, active);
    }
}

/* The first tensors of a mixture, of one expert each, with what its family calls them. */
static void tensors_have_the_names_of_their_families(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum tensor_role role;
        const char *name;
        int rows, columns;
    } rows[] = {
        {LFM, ROLE_ROUTER_WEIGHT, "model.layers.2.feed_forward.gate.weight", 32, 128},
        {LFM, ROLE_CORRECTION, "model.layers.2.feed_forward.expert_bias", 32, 1},
        {LFM, ROLE_EXPERT_GATE_WEIGHT, "model.layers.2.feed_forward.experts.0.w1.weight", 1792,
         128},
        {LFM, ROLE_EXPERT_UP_WEIGHT, "model.layers.2.feed_forward.experts.0.w3.weight", 1792, 128},
        {LFM, ROLE_EXPERT_DOWN_WEIGHT, "model.layers.2.feed_forward.experts.0.w2.weight", 128,
         1792},
        {LFM, ROLE_GATE_WEIGHT, "model.layers.0.feed_forward.w1.weight", 256, 128},
        {GLM, ROLE_CORRECTION, "model.layers.1.mlp.gate.e_score_correction_bias", 16, 1},
        {GLM, ROLE_SHARED_DOWN_WEIGHT, "model.layers.1.mlp.shared_experts.down_proj.weight", 128,
         1408},
        {NEXT, ROLE_SHARED_UP_WEIGHT, "model.layers.0.mlp.shared_expert.up_proj.weight", 512, 128},
        {NEXT, ROLE_SHARED_SWITCH, "model.layers.0.mlp.shared_expert_gate.weight", 1, 128},
        {NEXT, ROLE_DELTA_Q_WEIGHT, "model.layers.0.linear_attn.in_proj_qkvz.weight", 2048, 128},
        {NEXT, ROLE_DELTA_B_WEIGHT, "model.layers.0.linear_attn.in_proj_ba.weight", 32, 128},
        {QWEN, ROLE_DELTA_QKV_WEIGHT, "model.layers.0.linear_attn.in_proj_qkv.weight", 8192, 128},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        struct tensor_spec *spec;
        char json[1024];
        size_t specs, k = 0;
        snprintf(json, sizeof json, "{%s}", rows[i].json);
        check_ok(read_json(json, &c), json);
        check_ok(tensor_specs(&c, &spec, &specs), json);
        while (k < specs && spec[k].role != rows[i].role)
            k++;
        assert_true(k < specs);
        assert_string_equal(spec[k].name, rows[i].name);
        assert_true(spec[k].shape[0] == rows[i].rows && spec[k].shape[1] == rows[i].columns);
        free(spec);
    }
}

/* A bias of scores has room for float32, whatever the type of the others. */
static void biases_of_scores_have_room_for_float32(void **state)
{
    (void)state;
    struct net n = {.T = NJ_LP};
    /* 48 are no multiple of the alignment of tensors */
    check_ok(read_json("{" LFM ",\"num_experts\":48}", &n.c), "read");
    check_ok(net_place(&n, PARAMS_ALL), "place");
    int64_t end = -1;
    int found = 0;
    for (size_t i = 0; i < n.p.specs; i++) {
        const struct tensor_spec *s = &n.p.spec[i];
        if (s->rank != 1)
            continue;
        assert_true(n.p.first[i] >= end);
        end = n.p.first[i] + tensor_elements(s) * (s->role == ROLE_CORRECTION ? 2 : 1);
        found += s->role == ROLE_CORRECTION;
        assert_true(s->role != ROLE_CORRECTION || n.p.first[i] % 2 == 0);
    }
    assert_int_equal(found, 6);
    assert_true(end <= n.p.count);
    net_free(&n);
}

/* Shared experts, biases of scores and other sums of weights have no gradients. */
static void families_without_gradients_are_no_students(void **state)
{
    (void)state;
    static const char *const rows[] = {QWEN, NEXT, LFM, LFM ",\"use_expert_bias\":false", GLM};
    struct train_options o = {.batch_size = 1, .seq_len = 16, .grad_accum = 1, .steps = 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        struct plan plan;
        char json[1024];
        snprintf(json, sizeof json, "{%s}", rows[i]);
        check_ok(read_json(json, &c), json);
        o.steps = 1;
        check_refused(plan_make(&c, NULL, &o, &plan), NJ_E_UNSUPPORTED,
                      "for whose experts nojit has no gradients; it can be a teacher only", json);
        o.steps = 0;
        check_ok(plan_make(&c, NULL, &o, &plan), json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_without_gradients_are_no_students),
        cmocka_unit_test(layers_have_experts_by_the_rule_of_their_family),
        cmocka_unit_test(routers_and_shared_experts_have_their_numbers),
        cmocka_unit_test(other_numbers_of_these_families_are_refused),
        cmocka_unit_test(presets_have_the_parameters_that_are_published),
        cmocka_unit_test(tensors_have_the_names_of_their_families),
        cmocka_unit_test(biases_of_scores_have_room_for_float32),
    };
    return cmocka_run_group_tests_name("mixture_families", tests, scratch_begin, scratch_end);
}
