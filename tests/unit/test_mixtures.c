/* SPDX-License-Identifier: Apache-2.0
 *
 * test_mixtures.c: models with experts: their configurations, tensors, sizes and refusals. test_golden_families.c holds
 * what they compute. Expectations are those of Qwen3MoeConfig of transformers 5.24, and of published models.
 */
#include "config_fixture.h"
#include "engine/engine.h"
#include "formats/safetensors.h"
#include "model/folder_experts.h"
#include "model/init.h"
#include "net/net.h"
#include "state/cost.h"

#define MOE EIGHT("qwen3_moe") ",\"head_dim\":64"
#define SMALL                                                                                      \
    OF("qwen3_moe")                                                                                \
    ",\"head_dim\":64,\"num_experts\":6,\"num_experts_per_tok\":2,"                                \
    "\"moe_intermediate_size\":24"

static const struct block *experts_of(const struct model_config *c)
{
    return arch_first(&c->arch, c->layers, BLOCK_EXPERTS);
}

static void layers_have_experts_as_their_fields_say(void **state)
{
    (void)state;
    static const struct {
        const char *json, *layers; /* e: experts, g: a gated MLP */
    } rows[] = {
        {MOE, "eeeeeeee"},
        {MOE ",\"decoder_sparse_step\":2", "gegegege"},
        {MOE ",\"decoder_sparse_step\":3,\"mlp_only_layers\":[2]", "gggggegg"},
        {MOE ",\"mlp_only_layers\":[0,7,9]", "geeeeeeg"},
        {MOE ",\"mlp_only_layers\":[0,1,2,3,4,5,6,7]", "gggggggg"},
        {MOE ",\"mlp_only_layers\":null", "eeeeeeee"},
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

static void experts_have_the_numbers_of_their_fields(void **state)
{
    (void)state;
    struct model_config c;
    check_ok(read_json("{" MOE "}", &c), "defaults");
    const struct block *b = experts_of(&c);
    assert_true(b->experts == 128 && b->experts_used == 8 && b->ffn_size == 768);
    assert_true(b->router == NJ_ROUTE_SOFTMAX && !b->renormalized);
    assert_int_equal(b->features, NORMED_BEFORE | FEATURE_BIT(FEATURE_EXPERTS));
    check_ok(read_json("{" MOE ",\"num_local_experts\":16,\"num_experts_per_tok\":4,"
                       "\"moe_intermediate_size\":40,\"norm_topk_prob\":true,"
                       "\"mlp_only_layers\":[3],\"router_aux_loss_coef\":0.0,"
                       "\"output_router_logits\":true,\"shared_expert_intermediate_size\":0,"
                       "\"qkv_bias\":false,\"use_qk_norm\":true}",
                       &c),
             "fields");
    b = experts_of(&c);
    assert_true(b->experts == 16 && b->experts_used == 4 && b->ffn_size == 40 && b->renormalized);
    const struct block *glu = arch_block(&c.arch, 3, BLOCK_GLU);
    assert_true(glu->ffn_size == 256 && glu->features == NORMED_BEFORE && glu->experts == 0);
    check_written(&c, "fields");
}

static void other_numbers_of_experts_are_refused(void **state)
{
    (void)state;
    static const struct refused_fields rows[] = {
        {MOE ",\"num_experts\":0", NJ_E_FORMAT, "num_experts is 0; it must be"},
        {MOE ",\"num_experts\":513", NJ_E_UNSUPPORTED, "num_experts is 513; 1 to 512"},
        {MOE ",\"num_experts\":8,\"num_local_experts\":6", NJ_E_FORMAT,
         "num_local_experts is 6; num_experts is another number"},
        {MOE ",\"num_experts_per_tok\":33", NJ_E_UNSUPPORTED, "num_experts_per_tok is 33; 1 to 32"},
        {MOE ",\"num_experts\":4,\"num_experts_per_tok\":5", NJ_E_FORMAT,
         "num_experts_per_tok is 5; it must lie between 1 and num_experts 4"},
        {MOE ",\"moe_intermediate_size\":20", NJ_E_UNSUPPORTED,
         "is 20; it must be a multiple of 8"},
        {MOE ",\"moe_intermediate_size\":131080", NJ_E_FORMAT,
         "moe_intermediate_size is 131080; it must lie between 1 and 131072"},
        {MOE ",\"mlp_only_layers\":1", NJ_E_FORMAT, "mlp_only_layers is 1; it must be a list"},
        {MOE ",\"mlp_only_layers\":[true]", NJ_E_FORMAT, "mlp_only_layers is true; it must be the"},
        {MOE ",\"decoder_sparse_step\":0", NJ_E_FORMAT, "decoder_sparse_step is 0"},
        {MOE ",\"norm_topk_prob\":1", NJ_E_FORMAT, "norm_topk_prob is 1"},
        {MOE ",\"shared_expert_intermediate_size\":64", NJ_E_UNSUPPORTED,
         "shared_expert_intermediate_size is 64; experts that all rows take"},
        {MOE ",\"n_routed_experts\":8", NJ_E_UNSUPPORTED, "n_routed_experts is 8"},
        {MOE ",\"routed_scaling_factor\":2", NJ_E_UNSUPPORTED, "routed_scaling_factor is 2; this"},
        {OF("qwen3") ",\"num_experts\":8", NJ_E_UNSUPPORTED, "num_experts is 8; mixtures"},
        {OF("qwen3") ",\"norm_topk_prob\":true", NJ_E_UNSUPPORTED, "norm_topk_prob is true; this"},
    };
    check_fields_refused(rows, sizeof rows / sizeof *rows);
}

/* Parameters of the published model: 30.5 and 3.3 billion, as its page says. */
static void a_token_uses_the_experts_that_it_takes(void **state)
{
    (void)state;
    struct model_config c;
    check_ok(preset_config(preset_find("qwen3-30b-a3b"), &c), "preset");
    const int64_t expert = 3LL * 768 * 2048, idle = 48LL * 120 * expert;
    assert_int_equal(config_parameters(&c), 30532122624);
    assert_int_equal(config_active_parameters(&c), 30532122624 - idle);
    assert_int_equal(block_ffn_used(experts_of(&c)), 8 * 768);
    assert_int_equal(config_dense_size(&c), 6144);
}

/* ---- tensors ---- */

static void tensors_of_experts_are_rows_of_one_matrix(void **state)
{
    (void)state;
    struct net n = {.T = NJ_F32};
    check_ok(read_json("{" SMALL ",\"mlp_only_layers\":[0]}", &n.c), "read");
    check_ok(net_place(&n, PARAMS_ALL), "place");
    const struct matrix *gate_up = net_matrix(&n, 1, BLOCK_EXPERTS, EXPERTS_GATE_UP);
    const struct matrix *down = net_matrix(&n, 1, BLOCK_EXPERTS, EXPERTS_DOWN);
    assert_true(gate_up->rows == 2 * 6 * 24 && gate_up->cols == 128);
    assert_true(down->rows == 6 * 128 && down->cols == 24);
    size_t found = 0;
    for (size_t i = 0; i < n.p.specs; i++) {
        const struct tensor_spec *s = &n.p.spec[i];
        char name[TENSOR_NAME_BYTES];
        int row;
        if (!tensor_is_of_expert(s->role))
            continue;
        const bool gate = s->role == ROLE_EXPERT_GATE_WEIGHT, up = s->role == ROLE_EXPERT_UP_WEIGHT;
        snprintf(name, sizeof name, "model.layers.1.mlp.experts.%d.%s_proj.weight", s->expert,
                 gate ? "gate"
                 : up ? "up"
                      : "down");
        assert_string_equal(s->name, name);
        const struct matrix *m = net_matrix_of(&n, i, &row);
        assert_ptr_equal(m, gate || up ? gate_up : down);
        assert_int_equal(row, s->expert * (int)s->shape[0] + (up ? 6 * 24 : 0));
        assert_int_equal(n.p.first[i], m->first + (int64_t)row * m->cols);
        found++;
    }
    assert_int_equal(found, 3 * 6);
    net_free(&n);
}

/* Experts 0 and 1, of 2 x 3 gates, as many ups, and 3 x 2 outputs. */
static void stacked_experts_are_taken_apart(void **state)
{
    (void)state;
    static float x[24], y[12];
    for (int i = 0; i < 24; i++)
        x[i] = (float)i;
    for (int i = 0; i < 12; i++)
        y[i] = (float)(100 + i);
    struct tensors w = {.count = 3, .tensor = calloc(3, sizeof *w.tensor)};
    assert_non_null(w.tensor);
    w.tensor[0] = (struct tensor){.name = "model.layers.0.mlp.experts.down_proj",
                                  .rank = 3,
                                  .shape = {2, 3, 2},
                                  .data = y,
                                  .bytes = sizeof y};
    w.tensor[1] = (struct tensor){.name = "model.layers.0.mlp.experts.gate_up_proj",
                                  .rank = 3,
                                  .shape = {2, 4, 3},
                                  .data = x,
                                  .bytes = sizeof x};
    w.tensor[2] = (struct tensor){.name = "model.norm.weight", .rank = 1, .shape = {3}};
    check_ok(folder_experts_split("a folder", &w), "split");
    static const struct {
        const char *name;
        int rows, columns;
        float first;
    } wanted[] = {
        {"model.layers.0.mlp.experts.0.down_proj.weight", 3, 2, 100},
        {"model.layers.0.mlp.experts.0.gate_proj.weight", 2, 3, 0},
        {"model.layers.0.mlp.experts.0.up_proj.weight", 2, 3, 6},
        {"model.layers.0.mlp.experts.1.down_proj.weight", 3, 2, 106},
        {"model.layers.0.mlp.experts.1.gate_proj.weight", 2, 3, 12},
        {"model.layers.0.mlp.experts.1.up_proj.weight", 2, 3, 18},
    };
    assert_int_equal(w.count, 7);
    for (int i = 0; i < 6; i++) {
        float first;
        assert_string_equal(w.tensor[i].name, wanted[i].name);
        assert_true(w.tensor[i].rank == 2 && w.tensor[i].shape[0] == wanted[i].rows &&
                    w.tensor[i].shape[1] == wanted[i].columns);
        assert_int_equal(w.tensor[i].bytes, 6 * sizeof(float));
        tensor_to_f32(&w.tensor[i], 0, 1, &first);
        assert_true(first == wanted[i].first);
    }
    tensors_close(&w);
}

/* ---- roles in a run ---- */

static void experts_are_not_trained(void **state)
{
    (void)state;
    struct model_config moe, dense;
    struct plan plan;
    const struct train_options o = {.batch_size = 1, .seq_len = 16, .grad_accum = 1, .steps = 1};
    struct train_options other = o;
    check_ok(read_json("{" SMALL "}", &moe), "read");
    check_ok(read_json("{" OF("qwen3") ",\"head_dim\":64}", &dense), "read");
    check_refused(plan_make(&moe, NULL, &o, &plan), NJ_E_UNSUPPORTED,
                  "the student is a mixture of experts, which can be a teacher only", "student");
    check_ok(plan_make(&dense, &moe, &o, &plan), "teacher");
    other.steps = 0;
    check_ok(plan_make(&moe, NULL, &other, &plan), "evaluation");
    other = o;
    other.teacher_fp8 = 1;
    check_refused(plan_make(&dense, &moe, &other, &plan), NJ_E_UNSUPPORTED,
                  "an fp8 teacher cannot have experts", "fp8");
}

static void a_teacher_costs_the_experts_that_a_token_takes(void **state)
{
    (void)state;
    struct net s = {.T = NJ_F32}, t = {.T = NJ_F32};
    const struct train_options o = {.batch_size = 1, .seq_len = 1, .grad_accum = 1, .steps = 1};
    check_ok(read_json("{" OF("qwen3") ",\"head_dim\":64}", &s.c), "read");
    check_ok(read_json("{" SMALL "}", &t.c), "read");
    check_ok(net_place(&s, PARAMS_ALL), "place");
    check_ok(net_place(&t, PARAMS_ALL), "place");
    s.trained = &s.p;
    const struct step_flops f = step_flops_count(&s, &t, &o, false);
    const double weights = (double)(config_active_parameters(&t.c) - 264 * 128);
    /* and for each of two layers 4 H D of attention to one key */
    assert_true(f.teacher == 2 * weights + 2 * 4 * 2 * 64);
    net_free(&s);
    net_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_have_experts_as_their_fields_say),
        cmocka_unit_test(experts_have_the_numbers_of_their_fields),
        cmocka_unit_test(other_numbers_of_experts_are_refused),
        cmocka_unit_test(a_token_uses_the_experts_that_it_takes),
        cmocka_unit_test(tensors_of_experts_are_rows_of_one_matrix),
        cmocka_unit_test(stacked_experts_are_taken_apart),
        cmocka_unit_test(experts_are_not_trained),
        cmocka_unit_test(a_teacher_costs_the_experts_that_a_token_takes),
    };
    return cmocka_run_group_tests_name("mixtures", tests, scratch_begin, scratch_end);
}
