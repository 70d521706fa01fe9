/* SPDX-License-Identifier: Apache-2.0
 *
 * test_lora_config.c: which adapter_config.json is read, and what is said of others.
 */
#include "engine_fixture.h"
#include "lora_folder.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(foreign_adapters_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
