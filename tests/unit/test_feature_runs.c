/* SPDX-License-Identifier: Apache-2.0
 *
 * test_feature_runs.c: runs of models with many features: they learn, in the memory of their plan, and recomputation,
 * adapters, FP8 and quantized teachers have the effects on them that they have on plain models.
 */
#include "engine_fixture.h"
#include "run/teacher_types.h"

enum { MODELS = 5, STEPS = 12 };

/* The features that blocks of each model have. */
static const struct {
    unsigned attention, glu;
    float gain_offset;
    int rotary; /* 0: all */
} features[MODELS] = {
    {NORMED_BEFORE | NORMED_AFTER | FEATURE_BIT(FEATURE_QK_NORM), NORMED_BEFORE | NORMED_AFTER, 0,
     0},
    {NORMED_AFTER | FEATURE_BIT(FEATURE_FUSED_QKV),
     NORMED_AFTER | FEATURE_BIT(FEATURE_FUSED_GATE_UP), 0, 0},
    {NORMED_BEFORE | FEATURE_BIT(FEATURE_O_BIAS) | FEATURE_BIT(FEATURE_QKV_BIAS),
     NORMED_BEFORE | FEATURE_BIT(FEATURE_MLP_BIAS), 1, 0},
    {NORMED_AFTER | FEATURE_BIT(FEATURE_QK_NORM_ROW), NORMED_AFTER, 0, 0},
    {NORMED_BEFORE | FEATURE_BIT(FEATURE_QKV_BIAS), NORMED_BEFORE, 0, 48},
};

static struct model_config model_of(int i)
{
    struct model_config c = teacher_config;
    c.vocab_size = VOCAB;
    c.tied = i % 2;
    c.logit_scale = 0.5f;
    c.logit_cap = 8;
    c.embedding_scale = 5;
    c.gain_offset = ATTENTION(&c).gain_offset = GLU(&c).gain_offset = features[i].gain_offset;
    ATTENTION(&c).features = features[i].attention;
    GLU(&c).features = features[i].glu;
    c.arch.rope[0].rotary = features[i].rotary;
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

static void check_near(const char *what, int model, double got, double first, double last)
{
    if (!(got != last && fabs(got - last) < 0.05 * (first - last)))
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
