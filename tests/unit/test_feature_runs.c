/* SPDX-License-Identifier: Apache-2.0
 *
 * test_feature_runs.c: runs of models with many features: they learn, in the memory of their plan, and recomputation,
 * adapters, FP8 and quantized teachers have the effects on them that they have on plain models.
 */
#include "engine_fixture.h"
#include "run/teacher_types.h"

#include <sys/stat.h>

enum { STEPS = 12 };

#define SIZES                                                                                      \
    "\"hidden_size\":128,\"intermediate_size\":160,\"num_hidden_layers\":2,\"vocab_size\":61,"     \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":64,\"eos_token_id\":60,"     \
    "\"max_position_embeddings\":128"

/* The fields of a model of each family, which have these features. */
static const char *const models[] = {
    /* norms before and after blocks, norms of heads, gains with an offset, embeddings with a factor, windows */
    "\"model_type\":\"gemma3_text\",\"sliding_window\":8,\"query_pre_attn_scalar\":64,"
    "\"layer_types\":[\"sliding_attention\",\"full_attention\"],"
    "\"hidden_activation\":\"gelu_pytorch_tanh\"," SIZES,
    /* fused tensors, rotations of a part */
    "\"model_type\":\"phi3\",\"partial_rotary_factor\":0.75,\"pad_token_id\":0," SIZES,
    /* biases of all products */
    "\"model_type\":\"llama\",\"attention_bias\":true,\"mlp_bias\":true," SIZES,
    /* norms after blocks alone, norms of whole rows */
    "\"model_type\":\"olmo2\"," SIZES,
    /* rotations of neighbors, biases of queries, keys and values, fused gate and up */
    "\"model_type\":\"glm4\",\"attention_bias\":true,\"pad_token_id\":0," SIZES,
    /* factors of embeddings, blocks, scores and logits */
    "\"model_type\":\"granite\",\"embedding_multiplier\":5,\"residual_multiplier\":0.5,"
    "\"attention_multiplier\":0.1,\"logits_scaling\":2," SIZES,
};
enum { MODELS = sizeof models / sizeof *models };

static struct model_config model_of(int i)
{
    struct model_config c;
    char path[300], text[1200];
    snprintf(text, sizeof text, "{%s}", models[i]);
    snprintf(path, sizeof path, "%s/config.json", path_of("fields"));
    mkdir(path_of("fields"), 0700);
    FILE *f = fopen(path, "w");
    assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
    ok(config_read(path_of("fields"), &c));
    return c;
}

static void open_models(int i, struct model_config c[2])
{
    c[0] = c[1] = model_of(i);
    ok(init_model(path_of("features"), &c[0], 5, NJ_TYPE_F32, 1 << 30, NULL));
    ok(init_model(path_of("features-teacher"), &c[1], 6, NJ_TYPE_F32, 1 << 30, NULL));
}

static void close_models(void)
{
    nftw(path_of("features"), remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    nftw(path_of("features-teacher"), remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Return the loss of the last of so many steps. */
static double loss_after(const struct train_options *o, int steps)
{
    struct engine *e = open_engine("features", "features-teacher", o);
    struct batch_source *d = open_tokens("tokens.bin", o, false);
    struct step_result r = {0};
    for (int i = 0; i < steps; i++)
        ok(engine_step(e, d, &r));
    batches_close(d);
    engine_destroy(e);
    return r.loss;
}

/* Rounding to 8 bits may change a tenth of what is learned: a wrong product changes most of it. */
static void check_near(const char *what, int model, double got, double first, double last)
{
    if (!(got != last && fabs(got - last) < 0.1 * (first - last)))
        fail_msg("model %d, %s: from %g to %g, expected %g", model, what, first, got, last);
}

static void check_runs(int i)
{
    struct model_config c[2];
    struct train_options o = small_options;
    unsigned char *types;
    open_models(i, c);
    o.given = c;
    const double first = loss_after(&o, 1), last = loss_after(&o, STEPS);
    if (!(last < first - 0.1))
        fail_msg("model %d: from %g to %g", i, first, last);
    for (o.recompute = RECOMPUTE_MLP; o.recompute <= RECOMPUTE_BLOCK; o.recompute++)
        assert_true(loss_after(&o, STEPS) == last);
    o.recompute = RECOMPUTE_NONE;
    o.student_fp8 = 1;
    check_near("FP8 student", i, loss_after(&o, STEPS), first, last);
    o.student_fp8 = 0;
    o.teacher_fp8 = 1;
    check_near("FP8 teacher", i, loss_after(&o, STEPS), first, last);
    o.teacher_fp8 = 0;
    ok(teacher_types_as(&c[1], TEACHER_Q8_0, &types));
    o.teacher_types = types;
    check_near("quantized teacher", i, loss_after(&o, STEPS), first, last);
    free(types);
    o.teacher_types = NULL;
    o.lora = (struct lora_config){.rank = 4, .alpha = 16};
    ok(lora_targets_add(&o.lora, "all-linear"));
    o.lr = 2e-2f;
    const double adapted = loss_after(&o, STEPS);
    if (!(adapted < first - 0.02))
        fail_msg("model %d, adapters: from %g to %g", i, first, adapted);
    close_models();
}

static void models_with_features_learn_as_plain_ones_do(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++)
        check_runs(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_with_features_learn_as_plain_ones_do),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
