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
#include "weights/block_scales.h"

#include <math.h>

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
         "shared_expert_intermediate_size is 64; shared experts are not"},
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
    struct model_config c;
    struct tensors w = {.count = 3, .tensor = calloc(3, sizeof *w.tensor)};
    assert_non_null(w.tensor);
    check_ok(read_json("{" SMALL ",\"num_local_experts\":2,\"num_experts\":2}", &c), "read");
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
    check_ok(folder_experts_split("a folder", &c, &w), "split");
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

#define OSS                                                                                        \
    OF("gpt_oss")                                                                                  \
    ",\"head_dim\":64,\"num_local_experts\":8,\"num_experts_per_tok\":2,"                          \
    "\"rope_theta\":150000,\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":32.0,"              \
    "\"truncate\":false,\"original_max_position_embeddings\":4096}"

static void gpt_oss_has_the_numbers_of_its_fields(void **state)
{
    (void)state;
    enum { BIASES = FEATURE_BIT(FEATURE_QKV_BIAS) | FEATURE_BIT(FEATURE_O_BIAS) };
    struct model_config c;
    check_ok(read_json("{" OSS ",\"experts_per_token\":2,\"initial_context_length\":4096,"
                       "\"quantization_config\":{\"quant_method\":\"mxfp4\"}}",
                       &c),
             "fields");
    for (int l = 0; l < 2; l++) {
        const struct block *a = arch_block(&c.arch, l, BLOCK_ATTENTION);
        const struct block *b = arch_block(&c.arch, l, BLOCK_EXPERTS);
        assert_int_equal(a->window, l == 0 ? 128 : 0);
        assert_int_equal(a->features, NORMED_BEFORE | BIASES | FEATURE_BIT(FEATURE_SINKS));
        assert_true(b->experts == 8 && b->experts_used == 2 && b->ffn_size == 256);
        assert_true(b->router == NJ_ROUTE_TOP_SOFTMAX && block_has(b, FEATURE_MLP_BIAS));
        assert_true(b->glu_limit == 7 && b->glu_alpha == 1.702f);
    }
    assert_true(!c.arch.rope[0].truncate && c.arch.rope[0].rule == ROPE_YARN);
    check_ok(preset_config(preset_find("gpt-oss-20b"), &c), "preset");
    assert_int_equal(config_parameters(&c), 20914757184); /* as the page of the model says */
    static const struct refused_fields rows[] = {
        {OSS ",\"experts_per_token\":4", NJ_E_FORMAT,
         "experts_per_token is 4; num_experts_per_tok"},
        {OSS ",\"swiglu_limit\":0", NJ_E_FORMAT, "swiglu_limit is 0"},
        {OSS ",\"moe_intermediate_size\":64", NJ_E_UNSUPPORTED,
         "moe_intermediate_size is 64; this"},
        {OSS ",\"num_experts\":8,\"norm_topk_prob\":true", NJ_E_UNSUPPORTED,
         "norm_topk_prob is true"},
        {OF("gpt_oss") ",\"num_local_experts\":8", NJ_E_FORMAT, "rope_parameters is missing"},
        {OF("gpt_oss") ",\"num_local_experts\":12,\"rope_scaling\":{\"rope_type\":\"default\"}",
         NJ_E_UNSUPPORTED, "num_experts is 12; where routers have biases it must be a multiple"},
    };
    check_fields_refused(rows, sizeof rows / sizeof *rows);
    check_ok(read_json("{" OSS "}", &c), "read");
    check_refused(config_write(scratch, &c, "bfloat16"), NJ_E_UNSUPPORTED,
                  "models of gpt_oss are read, not written", "written");
}

/* The matrix of expert e of 8 has, in row r and column c, code (e + r + 3 c) % 16 and exponent e - 1 in its first
 * block, 2 in its second. Rows 2 i are gates, rows 2 i + 1 ups. */
enum { CODE_ROWS = 4, CODE_COLUMNS = 64, CODE_BLOCKS = 2 };

static int code_at(int e, int r, int c)
{
    return (e + r + 3 * c) % 16;
}

static void numbers_of_4_bits_are_read(void **state)
{
    (void)state;
    static const float values[] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
    static unsigned char blocks[8][CODE_ROWS][CODE_BLOCKS][16], scales[8][CODE_ROWS][CODE_BLOCKS];
    struct model_config c;
    struct tensors w = {.count = 2, .tensor = calloc(2, sizeof *w.tensor)};
    assert_non_null(w.tensor);
    for (int e = 0; e < 8; e++)
        for (int r = 0; r < CODE_ROWS; r++)
            for (int at = 0; at < CODE_COLUMNS; at += 2) {
                blocks[e][r][at / 32][at % 32 / 2] =
                    (unsigned char)(code_at(e, r, at) | code_at(e, r, at + 1) << 4);
                scales[e][r][at / 32] = (unsigned char)(127 + (at < 32 ? e - 1 : 2));
            }
    scales[7][0][1] = 255; /* NaN, in the first gate of the last expert */
    check_ok(read_json("{" OSS "}", &c), "read");
    w.tensor[0] = (struct tensor){.name = "model.layers.0.mlp.experts.gate_up_proj_blocks",
                                  .dtype = (enum nj_tensor_type)ST_U8,
                                  .rank = 4,
                                  .shape = {8, CODE_ROWS, CODE_BLOCKS, 16},
                                  .data = blocks,
                                  .bytes = sizeof blocks};
    w.tensor[1] = (struct tensor){.name = "model.layers.0.mlp.experts.gate_up_proj_scales",
                                  .dtype = (enum nj_tensor_type)ST_U8,
                                  .rank = 3,
                                  .shape = {8, CODE_ROWS, CODE_BLOCKS},
                                  .data = scales,
                                  .bytes = sizeof scales};
    check_ok(folder_experts_split("a folder", &c, &w), "split");
    assert_int_equal(w.count, 16);
    for (int e = 0; e < 8; e++)
        for (int k = 0; k < 2; k++) {
            char name[128];
            float x[CODE_ROWS / 2 * CODE_COLUMNS];
            unsigned char kept[CODE_ROWS / 2 * CODE_BLOCKS * 17];
            snprintf(name, sizeof name, "model.layers.0.mlp.experts.%d.%s_proj.weight", e,
                     k == 0 ? "gate" : "up");
            const struct tensor *t = tensors_find(&w, name);
            assert_non_null(t);
            assert_true(t->shape[0] == CODE_ROWS / 2 && t->shape[1] == CODE_COLUMNS);
            tensor_to_f32(t, 0, CODE_ROWS / 2 * CODE_COLUMNS, x);
            assert_true(t->dtype == NJ_TYPE_MXFP4 && t->bytes == sizeof kept);
            tensor_rows(t, 0, CODE_ROWS / 2, kept);
            assert_true(block_scales_finite(t->dtype, kept, sizeof kept) == (e < 7 || k > 0));
            for (int i = 0; i < CODE_ROWS / 2 * CODE_COLUMNS; i++) {
                const int column = i % CODE_COLUMNS;
                const int code = code_at(e, 2 * (i / CODE_COLUMNS) + k, column);
                const float size = ldexpf(values[code % 8], column < 32 ? e - 1 : 2);
                const bool broken = e == 7 && k == 0 && i / CODE_COLUMNS == 0 && column >= 32;
                assert_true(broken || x[i] == (code < 8 ? size : -size));
            }
        }
    tensors_close(&w);
}

static void experts_that_are_there_twice_are_refused(void **state)
{
    (void)state;
    static float x[8 * 8 * 32];
    struct model_config c;
    struct tensors w = {.count = 2, .tensor = calloc(2, sizeof *w.tensor)};
    assert_non_null(w.tensor);
    check_ok(read_json("{" MOE ",\"num_experts\":8}", &c), "read");
    w.tensor[0] = (struct tensor){.name = "model.layers.0.mlp.experts.3.down_proj.weight",
                                  .rank = 2,
                                  .shape = {8, 32},
                                  .data = x,
                                  .bytes = 8 * 32 * sizeof *x};
    w.tensor[1] = (struct tensor){.name = "model.layers.0.mlp.experts.down_proj",
                                  .rank = 3,
                                  .shape = {8, 8, 32},
                                  .data = x,
                                  .bytes = sizeof x};
    check_refused(folder_experts_split("a folder", &c, &w), NJ_E_FORMAT,
                  "experts.3.down_proj.weight is there twice", "twice");
    tensors_close(&w);
}

static void stacks_of_another_shape_are_refused(void **state)
{
    (void)state;
    static float x[8 * 24];
    static const struct {
        const char *name;
        int rank, shape[4];
    } rows[] = {
        {"mlp.experts.gate_up_proj", 3, {7, 8, 2}},
        {"mlp.experts.gate_up_proj", 3, {8, 8, 3}},
        {"mlp.experts.gate_up_proj", 3, {8, 12, 2}},
        {"mlp.experts.gate_up_proj", 2, {8, 8}},
        {"mlp.experts.gate_up_proj_bias", 2, {8, 24}},
        {"mlp.experts.gate_up_proj_blocks", 3, {8, 8, 2}},
    };
    struct model_config c;
    check_ok(read_json("{" OSS "}", &c), "read");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tensors w = {.count = 1, .tensor = calloc(1, sizeof *w.tensor)};
        assert_non_null(w.tensor);
        *w.tensor = (struct tensor){.rank = rows[i].rank, .data = x, .bytes = sizeof x};
        snprintf(w.tensor->name, sizeof w.tensor->name, "model.layers.0.%s", rows[i].name);
        for (int d = 0; d < 4; d++)
            w.tensor->shape[d] = rows[i].shape[d];
        check_refused(folder_experts_split("a folder", &c, &w), NJ_E_FORMAT,
                      "has not the shape or the type of the weights of 8 experts", rows[i].name);
        assert_int_equal(w.count, 1);
        tensors_close(&w);
    }
}

/* ---- roles in a run ---- */

/* transformers adds it if output_router_logits is true. Models other than the student have none. */
static void the_loss_that_balances_experts_is_that_of_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        float coefficient;
    } rows[] = {
        {SMALL, 0},
        {SMALL ",\"router_aux_loss_coef\":0.5", 0},
        {SMALL ",\"router_aux_loss_coef\":0.5,\"output_router_logits\":false", 0},
        {SMALL ",\"output_router_logits\":true", 0.001f},
        {SMALL ",\"router_aux_loss_coef\":0.5,\"output_router_logits\":true", 0.5f},
    };
    static const struct refused_fields refused[] = {
        {SMALL ",\"router_aux_loss_coef\":-1", NJ_E_FORMAT, "router_aux_loss_coef is -1; it must"},
        {SMALL ",\"router_aux_loss_coef\":\"no\"", NJ_E_FORMAT, "router_aux_loss_coef is \"no\""},
        {SMALL ",\"output_router_logits\":1", NJ_E_FORMAT, "output_router_logits is 1"},
    };
    struct train_options o = {.steps = 1, .grad_accum = 1, .balance = -1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        char json[1024];
        snprintf(json, sizeof json, "{%s}", rows[i].json);
        check_ok(read_json(json, &c), json);
        assert_true(c.balance == rows[i].coefficient);
        assert_true(train_balance(&o, &c) == rows[i].coefficient);
        check_written(&c, json);
        o.balance = 0.25f;
        assert_true(train_balance(&o, &c) == 0.25f);
        o.steps = 0;
        assert_true(train_balance(&o, &c) == 0);
        o.balance = -1;
        o.steps = 1;
    }
    check_fields_refused(refused, sizeof refused / sizeof *refused);
}

static void experts_that_cannot_be_trained_are_refused(void **state)
{
    (void)state;
    struct model_config moe, dense, oss, gelu;
    struct plan plan;
    const struct train_options o = {.batch_size = 1, .seq_len = 16, .grad_accum = 1, .steps = 1};
    struct train_options other = o;
    check_ok(read_json("{" SMALL "}", &moe), "read");
    check_ok(read_json("{" OF("qwen3") ",\"head_dim\":64}", &dense), "read");
    check_ok(read_json("{" OSS "}", &oss), "read");
    check_ok(read_json("{" SMALL ",\"hidden_act\":\"gelu\"}", &gelu), "read");
    check_ok(plan_make(&moe, NULL, &o, &plan), "student");
    check_refused(plan_make(&oss, NULL, &o, &plan), NJ_E_UNSUPPORTED,
                  "the student is a gpt_oss, for whose experts nojit has no gradients", "biases");
    check_refused(plan_make(&gelu, NULL, &o, &plan), NJ_E_UNSUPPORTED,
                  "it can be a teacher only: choose another student", "activation");
    check_ok(plan_make(&dense, &moe, &o, &plan), "teacher");
    other.lora = (struct lora_config){.rank = 4, .alpha = 8, .target = {true}};
    check_refused(plan_make(&moe, NULL, &other, &plan), NJ_E_UNSUPPORTED,
                  "adapters are not supported for models with experts", "adapters");
    check_ok(plan_make(&dense, NULL, &other, &plan), "adapters");
    other = o;
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
        cmocka_unit_test(gpt_oss_has_the_numbers_of_its_fields),
        cmocka_unit_test(numbers_of_4_bits_are_read),
        cmocka_unit_test(experts_that_are_there_twice_are_refused),
        cmocka_unit_test(stacks_of_another_shape_are_refused),
        cmocka_unit_test(the_loss_that_balances_experts_is_that_of_the_file),
        cmocka_unit_test(experts_that_cannot_be_trained_are_refused),
        cmocka_unit_test(a_teacher_costs_the_experts_that_a_token_takes),
    };
    return cmocka_run_group_tests_name("mixtures", tests, scratch_begin, scratch_end);
}
