/* SPDX-License-Identifier: Apache-2.0
 *
 * test_lora_config.c: which adapter_config.json is read, and what is said of others.
 */
#include "engine_fixture.h"
#include "lora_folder.h"
#include "net/lora.h"

static void foreign_adapters_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *fields, *says;
        int rc;
    } cases[] = {
        {", \"target_modules\": [\"q_proj\"]", NULL, 0},
        {", \"target_modules\": \"all-linear\", \"use_dora\": false, \"bias\": \"none\"", NULL, 0},
        {", \"target_modules\": [\"q_proj\"], \"rank_pattern\": {}, \"modules_to_save\": null",
         NULL, 0},
        {", \"target_modules\": [\"q_proj\"], \"use_dora\": true", "use_dora", NJ_E_UNSUPPORTED},
        {", \"target_modules\": [\"q_proj\"], \"later_field\": {\"x\": 1}", "later_field",
         NJ_E_UNSUPPORTED},
        {", \"target_modules\": [\"q_proj\"], \"use_bdlora\": {\"nblocks\": 2}", "use_bdlora",
         NJ_E_UNSUPPORTED},
        {", \"target_modules\": [\"q_proj\"], \"later_field\": null, \"megatron_core\": \"m\", "
         "\"qalora_group_size\": 16, \"corda_config\": {\"x\": 1}, \"inference_mode\": true",
         NULL, 0},
        {", \"target_modules\": [\"q_proj\"], \"init_lora_weights\": \"gaussian\"", NULL, 0},
        {", \"target_modules\": [\"q_proj\"], \"init_lora_weights\": false", NULL, 0},
        {", \"target_modules\": [\"q_proj\"], \"init_lora_weights\": \"eva\"", NULL, 0},
        {", \"target_modules\": [\"q_proj\"], \"init_lora_weights\": \"pissa_niter_16\"",
         "init_lora_weights is pissa_niter_16", NJ_E_UNSUPPORTED},
        {", \"target_modules\": [\"q_proj\"], \"init_lora_weights\": \"olora\"",
         "init_lora_weights is olora", NJ_E_UNSUPPORTED},
        {", \"target_modules\": [\"q_proj\"], \"init_lora_weights\": \"lora_ga\"",
         "init_lora_weights is lora_ga", NJ_E_UNSUPPORTED},
        {", \"target_modules\": [\"q_proj\"], \"init_lora_weights\": \"start of tomorrow\"",
         "init_lora_weights is start of tomorrow", NJ_E_UNSUPPORTED},
        {", \"target_modules\": [\"q_proj\"], \"bias\": \"all\"", "bias", NJ_E_UNSUPPORTED},
        {", \"target_modules\": [\"q_proj\"], \"rank_pattern\": {\"q_proj\": 2}", "rank_pattern",
         NJ_E_UNSUPPORTED},
        {", \"target_modules\": [\"q_proj\"], \"modules_to_save\": [\"lm_head\"]",
         "modules_to_save", NJ_E_UNSUPPORTED},
        {", \"target_modules\": [\"model.layers.0.self_attn.q_proj\"]", NULL, 0},
        {", \"target_modules\": [\"lm_head\"]", "lm_head", NJ_E_UNSUPPORTED},
        {", \"target_modules\": \".*_proj\"", "patterns", NJ_E_UNSUPPORTED},
        {"", "target_modules", NJ_E_UNSUPPORTED},
        {", \"target_modules\": [\"q_proj\"], \"lora_dropout\": 1.5", "lora_dropout", NJ_E_FORMAT},
    };
    struct lora_config c;
    make_folder("config");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_config("config", cases[i].fields);
        assert_int_equal(lora_config_read(path_of("config"), &c), cases[i].rc);
        if (cases[i].says && !strstr(fail_text(), cases[i].says))
            fail_msg("'%s' does not name %s", fail_text(), cases[i].says);
    }
    assert_int_equal(lora_config_read(path_of("absent"), &c), NJ_E_IO);
    fclose(fopen(path_of("config/adapter_model.bin"), "w"));
    struct tensors w;
    assert_int_equal(lora_weights_open(path_of("config"), &w), NJ_E_UNSUPPORTED);
    assert_non_null(strstr(fail_text(), "adapter_model.bin: PyTorch pickles are not read"));
    c = (struct lora_config){0};
    assert_int_equal(lora_targets_add(&c, "q_proj,lm_head"), NJ_E_ARG);
    assert_int_equal(lora_targets_add(&c, ""), NJ_E_ARG);
}

/* Queries, keys and values are one tensor of this model, and adapters of a part of it are refused. */
static void refused_targets_leave_no_adapter(void **state)
{
    (void)state;
    struct net n = {.c = qwen2};
    struct lora adapters = {0};
    struct lora_config o = {.rank = 2, .alpha = 4};
    config_plain_layers(&n.c, "phi3");
    n.c.arch.kind[0].block[PLAIN_ATTENTION] = ATTENTION(&qwen2);
    n.c.arch.kind[0].block[PLAIN_ATTENTION].features =
        NORMED_BEFORE | FEATURE_BIT(FEATURE_FUSED_QKV);
    GLU(&n.c).ffn_size = GLU(&qwen2).ffn_size;
    ok(lora_targets_add(&o, "down_proj,q_proj"));
    assert_int_equal(net_layout(&n, &o, NULL, &adapters), NJ_E_UNSUPPORTED);
    assert_non_null(strstr(fail_text(), "qkv_proj is one matrix of this model"));
    for (int i = 0; i < n.matrices; i++)
        assert_true(n.matrix[i].adapters == 0 && !n.matrix[i].adapter);
    assert_true(!n.lora && !adapters.adapter);
    net_free(&n);
}

static void names_of_outputs_are_those_of_the_family(void **state)
{
    (void)state;
    static const struct {
        const char *family, *name;
        bool attention, conv, delta;
    } cases[] = {
        {"lfm2", "out_proj", true, true, true},
        {"lfm2", "o_proj", true, true, false},
        {"qwen3_5_text", "out_proj", false, true, true},
        {"qwen3_5_text", "o_proj", true, false, false},
        {"qwen3_5_text", "all-linear", true, true, true},
    };
    static const enum tensor_role roles[] = {ROLE_O_WEIGHT, ROLE_CONV_OUT_WEIGHT,
                                             ROLE_DELTA_OUT_WEIGHT};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool want[] = {cases[i].attention, cases[i].conv, cases[i].delta};
        struct lora_config c = {.rank = 2};
        ok(lora_targets_add(&c, cases[i].name));
        for (int k = 0; k < 3; k++) {
            bool wanted;
            ok(lora_wants(&c, cases[i].family, roles[k], &wanted));
            assert_int_equal(wanted, want[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_targets_leave_no_adapter),
        cmocka_unit_test(names_of_outputs_are_those_of_the_family),
        cmocka_unit_test(foreign_adapters_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
