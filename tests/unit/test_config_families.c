/* SPDX-License-Identifier: Apache-2.0
 *
 * test_config_families.c: what the fields of each family mean: which layers have a window, which rotate and by which
 * table, and the numbers that are multiplied with. Expectations are those of the classes of transformers 5.24.
 */
#include "config_fixture.h"

#include <math.h>

#define GEMMA EIGHT("gemma3_text") ",\"head_dim\":64"
#define HYBRID                                                                                     \
    OF("granitemoehybrid")                                                                         \
    ",\"shared_intermediate_size\":64,\"layer_types\":[\"attention\","                             \
    "\"full_attention\"]"
#define DENSE HYBRID ",\"num_local_experts\":0,\"position_embedding_type\":\"rope\""

/* Write a letter for each layer: w has a window, f has none, c is a convolution, d a delta rule; upper case does not
 * rotate; 2 follows the other table. */
static const char *layers_text(const struct model_config *c)
{
    static char text[4 * LAYERS_MOST];
    char *at = text;
    for (int l = 0; l < c->layers; l++) {
        const struct block *b = arch_block(&c->arch, l, BLOCK_ATTENTION);
        if (!b) {
            *at++ = arch_block(&c->arch, l, BLOCK_CONV) ? 'c' : 'd';
            continue;
        }
        const bool still = c->arch.rope[b->rope].rule == ROPE_NONE;
        *at++ = (char)((b->window > 0 ? 'w' : 'f') - (still ? 'a' - 'A' : 0));
        if (b->rope == 1 && !still)
            *at++ = '2';
    }
    *at = '\0';
    return text;
}

static void layers_have_the_windows_of_their_family(void **state)
{
    (void)state;
    static const struct {
        const char *json, *layers;
    } rows[] = {
        {EIGHT("llama"), "ffffffff"},
        {EIGHT("mistral"), "wwwwwwww"},
        {EIGHT("mistral") ",\"sliding_window\":null", "ffffffff"},
        {EIGHT("ministral"), "wwwwwwww"},
        {EIGHT("ministral") ",\"sliding_window\":null", "ffffffff"},
        {OF("mistral") ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]", "fw"},
        {EIGHT("qwen2"), "ffffffff"},
        {EIGHT("qwen2") ",\"use_sliding_window\":true,\"max_window_layers\":3", "fffwwwww"},
        {EIGHT("qwen2") ",\"use_sliding_window\":true,\"max_window_layers\":0", "wwwwwwww"},
        {EIGHT("qwen3") ",\"use_sliding_window\":true", "ffffffff"},
        {OF("qwen3") ",\"use_sliding_window\":true,\"layer_types\":[\"sliding_attention\","
                     "\"full_attention\"]",
         "wf"},
        {GEMMA, "w2w2w2w2w2fw2w2"},
        {GEMMA ",\"sliding_window_pattern\":3", "w2w2fw2w2fw2w2"},
        {GEMMA ",\"_sliding_window_pattern\":2", "w2fw2fw2fw2f"},
        {GEMMA ",\"sliding_window\":131072", "f2f2f2f2f2ff2f2"},
        {EIGHT("olmo2"), "ffffffff"},
        {EIGHT("olmo3") ",\"max_position_embeddings\":8192", "w2w2w2fw2w2w2f"},
        {EIGHT("exaone4") ",\"max_position_embeddings\":8192", "wwwFwwwF"},
        {EIGHT("exaone4") ",\"sliding_window\":64,\"sliding_window_pattern\":\"LG\"", "wFwFwFwF"},
        {EIGHT("exaone4") ",\"sliding_window\":null,\"sliding_window_pattern\":null", "ffffffff"},
        {EIGHT("exaone4"), "fffFfffF"}, /* 4,096 keys of 2,048 positions */
        {EIGHT("smollm3"), "fffFfffF"},
        {EIGHT("smollm3") ",\"no_rope_layer_interval\":3", "ffFffFff"},
        {EIGHT("smollm3") ",\"no_rope_layers\":[1,0,0,1,1,1,1,1,0]", "fFFfffff"},
        {EIGHT("smollm3") ",\"use_sliding_window\":true,\"sliding_window\":64", "fffWfffW"},
        {EIGHT("granite"), "ffffffff"},
        {EIGHT("granite_swa"), "fwwwfwww"},
        {EIGHT("granite_swa") ",\"layer_rope_theta\":[0,1e4,1e4,1e4,0,1e4,1e4,1e4]", "FwwwFwww"},
        {OF("granite_swa") ",\"layer_rope_theta\":[5e5,1e4]", "fw2"},
        {EIGHT("muse_glimmer_text"), "wwwFwwwF"},
        {EIGHT("muse_glimmer_text") ",\"sliding_window\":64", "wwwFwwwF"},
        {EIGHT("muse_glimmer_text") ",\"sliding_window\":64,"
                                    "\"layer_rope_theta\":[0,1e4,1e4,1e4,1e4,1e4,1e4,1e4]",
         "Wwwfwwwf"},
        {OF("granite_swa") ",\"layer_rope_theta\":[0,0],\"sliding_window\":null,"
                           "\"layer_types\":[\"full_attention\",\"full_attention\"]",
         "FF"},
        {EIGHT("lfm2"), "ffffffff"},
        {EIGHT("lfm2") ",\"full_attn_idxs\":[2,5,9]", "ccfccfcc"},
        {OF("lfm2") ",\"full_attn_idxs\":[0],\"layer_types\":[\"conv\",\"full_attention\"]", "cf"},
        {EIGHT("qwen3_5_text"), "dddfdddf"},
        {EIGHT("qwen3_5_text") ",\"full_attention_interval\":3", "ddfddfdd"},
        {OF("qwen3_5_text") ",\"layer_types\":[\"full_attention\",\"linear_attention\"]", "fd"},
        {DENSE, "ff"},
        {HYBRID ",\"num_local_experts\":0", "FF"},
        {HYBRID ",\"num_local_experts\":0,\"position_embedding_type\":\"nope\"", "FF"},
        {EIGHT("phi3"), "ffffffff"},
        {EIGHT("phi3") ",\"sliding_window\":2047", "wwwwwwww"},
        {EIGHT("glm4"), "ffffffff"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        char json[1024];
        snprintf(json, sizeof json, "{%s}", rows[i].json);
        check_ok(read_json(json, &c), json);
        if (strcmp(layers_text(&c), rows[i].layers) != 0)
            fail_msg("%s: %s, expected %s", json, layers_text(&c), rows[i].layers);
        check_written(&c, json);
    }
}

static void families_have_their_features(void **state)
{
    (void)state;
    enum { Q = FEATURE_BIT(FEATURE_QKV_BIAS), O = FEATURE_BIT(FEATURE_O_BIAS) };
    enum { M = FEATURE_BIT(FEATURE_MLP_BIAS), G = FEATURE_BIT(FEATURE_FUSED_GATE_UP) };
    enum { N = FEATURE_BIT(FEATURE_QK_NORM), R = FEATURE_BIT(FEATURE_QK_NORM_ROW) };
    enum { PRE = NORMED_BEFORE, POST = NORMED_AFTER, F = FEATURE_BIT(FEATURE_FUSED_QKV) };
    static const struct {
        const char *json;
        unsigned attention, mlp;
        float gain_offset;
        const char *act;
    } rows[] = {
        {OF("llama"), PRE, PRE, 0, "silu"},
        {OF("llama") ",\"attention_bias\":true", PRE | Q | O, PRE, 0, "silu"},
        {OF("llama") ",\"mlp_bias\":true", PRE, PRE | M, 0, "silu"},
        {OF("qwen2") ",\"attention_bias\":false", PRE | Q, PRE, 0, "silu"},
        {GEMMA, PRE | POST | N, PRE | POST, 1, "gelu_pytorch_tanh"},
        {GEMMA ",\"hidden_activation\":\"gelu\"", PRE | POST | N, PRE | POST, 1, "gelu"},
        {OF("smollm3") ",\"attention_bias\":true,\"mlp_bias\":true", PRE | Q | O, PRE | M, 0,
         "silu"},
        {OF("olmo2"), POST | R, POST, 0, "silu"},
        {OF("olmo3"), POST | R, POST, 0, "silu"},
        {OF("exaone4"), POST | N, POST, 0, "silu"},
        {OF("granite"), PRE, PRE, 0, "silu"},
        {DENSE ",\"attention_bias\":true", PRE | Q | O, PRE | G, 0, "silu"},
        {OF("granite_swa"), PRE | FEATURE_BIT(FEATURE_SINKS), PRE, 0, "silu"},
        {OF("muse_glimmer_text"),
         PRE | POST | N | FEATURE_BIT(FEATURE_QK_NO_GAIN) | FEATURE_BIT(FEATURE_GATE), PRE | POST,
         1, "silu"},
        {OF("phi3"), PRE | F, PRE | G, 0, "silu"},
        {OF("hunyuan_v1_dense"), PRE | N | FEATURE_BIT(FEATURE_QK_GAIN_LAST), PRE, 0, "silu"},
        {OF("glm4"), PRE | POST | Q, PRE | POST | G, 0, "silu"},
        {OF("glm4") ",\"attention_bias\":false", PRE | POST, PRE | POST | G, 0, "silu"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        char json[1024];
        snprintf(json, sizeof json, "{%s}", rows[i].json);
        check_ok(read_json(json, &c), json);
        for (int l = 0; l < c.layers; l++) {
            const struct block *a = arch_block(&c.arch, l, BLOCK_ATTENTION);
            const struct block *m = arch_block(&c.arch, l, BLOCK_GLU);
            if (a->features != rows[i].attention || m->features != rows[i].mlp)
                fail_msg("%s: features %x and %x", json, a->features, m->features);
            assert_string_equal(hidden_acts[m->act].name, rows[i].act);
            assert_true(a->gain_offset == rows[i].gain_offset && m->gain_offset == a->gain_offset);
        }
        const bool plain = family_find(c.model_type)->plain_final;
        assert_true(c.gain_offset == (plain ? 0 : rows[i].gain_offset));
        check_written(&c, json);
    }
}

static bool is_near(float found, double wanted)
{
    return fabs((double)found - wanted) <= 1e-6 * fabs(wanted);
}

static void numbers_are_those_of_the_family(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        double embedding, residual, logits, cap, score; /* score: factor of the scores */
    } rows[] = {
        {OF("llama"), 0, 0, 0, 0, 0.125},
        {OF("granite"), 0, 0, 0, 0, 1},
        {OF("granite") ",\"embedding_multiplier\":12,\"residual_multiplier\":0.22,"
                       "\"attention_multiplier\":0.015625,\"logits_scaling\":10.0",
         12, 0.22, 0.1, 0, 0.015625},
        {DENSE ",\"embedding_multiplier\":12.0,\"residual_multiplier\":0.263,"
               "\"attention_multiplier\":0.0078125,\"logits_scaling\":4",
         12, 0.263, 0.25, 0, 0.0078125},
        {EIGHT("minicpm") ",\"scale_emb\":12,\"scale_depth\":1.4,\"dim_model_base\":256", 12,
         0.4949747468305833, 2, 0, 0.125},
        {EIGHT("minicpm"), 0, 0.35355339059327373, 0.0078125, 0, 0.125},
        {GEMMA, 11.313708498984761, 0, 0, 0, 0.0625},
        {GEMMA ",\"query_pre_attn_scalar\":168,\"final_logit_softcapping\":30.0",
         11.313708498984761, 0, 0, 30, 0.07715167498104596},
        {OF("muse_glimmer_text"), 0, 0, 0.19611613513818404, 20, 0.34206291531459274},
        {OF("muse_glimmer_text") ",\"output_multiplier\":1,\"final_logit_softcapping\":4.5,"
                                 "\"qk_scale_factor\":1.7,\"head_dim\":64",
         0, 0, 0, 4.5, 0.2125},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        char json[1024];
        snprintf(json, sizeof json, "{%s}", rows[i].json);
        check_ok(read_json(json, &c), json);
        if (!is_near(c.embedding_scale, rows[i].embedding) ||
            !is_near(c.residual_scale, rows[i].residual) ||
            !is_near(c.logit_scale, rows[i].logits) || !is_near(c.logit_cap, rows[i].cap))
            fail_msg("%s: %g %g %g %g", json, (double)c.embedding_scale, (double)c.residual_scale,
                     (double)c.logit_scale, (double)c.logit_cap);
        assert_true(is_near(block_score_scale(&ATTENTION(&c)), rows[i].score));
        check_written(&c, json);
    }
}

/* gemma-3-4b-it has no more than this; the rest is that of its class. */
static void missing_fields_are_those_of_the_class(void **state)
{
    (void)state;
    struct model_config c;
    check_ok(read_json("{\"model_type\":\"gemma3_text\",\"hidden_size\":2560,"
                       "\"intermediate_size\":10240,\"num_hidden_layers\":34,\"rope_scaling\":"
                       "{\"factor\":8.0,\"rope_type\":\"linear\"},\"sliding_window\":1024}",
                       &c),
             "gemma-3-4b");
    assert_int_equal(ATTENTION(&c).heads, 8);
    assert_int_equal(ATTENTION(&c).kv_heads, 4);
    assert_int_equal(ATTENTION(&c).head_dim, 256);
    assert_int_equal(ATTENTION(&c).window, 1024);
    assert_int_equal(c.vocab_size, 262208);
    assert_int_equal(c.max_positions, 131072);
    assert_true(c.tied && c.rms_eps == 1e-6f);
    assert_true(c.arch.rope[0].theta == 1e6 && c.arch.rope[0].scaling.factor == 8);
    assert_true(c.arch.rope[1].theta == 1e4 && c.arch.rope[1].rule == ROPE_DEFAULT);
    assert_int_equal(config_parameters(&c), 3880263168);
    check_ok(read_json("{" EIGHT("mistral") ",\"sliding_window\":64}", &c), "kv heads");
    check_ok(read_json("{\"model_type\":\"mistral\"," SIZES ",\"num_key_value_heads\":null}", &c),
             "null is as many as heads, not the 8 of the class");
    assert_int_equal(ATTENTION(&c).kv_heads, 2);
    check_ok(read_json("{" EIGHT("glm4") "}", &c), "glm4");
    assert_int_equal(ATTENTION(&c).head_dim, 128);
    assert_int_equal(c.arch.rope[0].rotary, 64);
    assert_true(c.arch.rope[0].neighbors && c.rms_eps == 1.5625e-7f);
}

/* sqrt(640) and sqrt(3072) in bfloat16. */
static void embeddings_of_gemma_are_scaled_in_their_type(void **state)
{
    (void)state;
    struct model_config c;
    check_ok(read_json("{" GEMMA ",\"hidden_size\":640}", &c), "640");
    assert_true(config_embedding_scale(&c, false) == sqrtf(640));
    assert_true(config_embedding_scale(&c, true) == 25.25f);
    check_ok(read_json("{" GEMMA ",\"hidden_size\":3072}", &c), "3072");
    assert_true(config_embedding_scale(&c, true) == 55.5f);
    check_ok(read_json("{" EIGHT("granite") ",\"embedding_multiplier\":12.3}", &c), "granite");
    assert_true(config_embedding_scale(&c, true) == 12.3f);
    check_ok(read_json("{" EIGHT("llama") "}", &c), "llama");
    assert_true(config_embedding_scale(&c, true) == 1);
}

static void norms_of_muse_glimmer_have_two_numbers(void **state)
{
    (void)state;
    struct model_config c;
    check_ok(read_json("{" OF("muse_glimmer_text") "}", &c), "defaults");
    assert_true(c.embed_normed && c.rms_eps == 1e-5f && c.after_eps == 1e-8f);
    check_ok(read_json("{" OF("muse_glimmer_text") ",\"post_norm_eps\":0.5}", &c), "given");
    assert_true(c.after_eps == 0.5f);
    check_written(&c, "given");
}

/* Layers that are kept add to the stream what they added among all layers. */
static void kept_layers_keep_their_factor(void **state)
{
    (void)state;
    struct model_config c, back;
    check_ok(read_json("{" EIGHT("minicpm") ",\"scale_depth\":1.4}", &c), "read");
    make_folder("kept");
    c.layers = 2;
    check_ok(config_copy(scratch, at("kept"), &c, "bfloat16"), "copy");
    check_ok(config_read(at("kept"), &back), "read back");
    assert_true(is_near(back.residual_scale, 0.4949747468305833));
}

/* No family has these together, or a file could ask for them. */
static void features_that_exclude_each_other_are_refused(void **state)
{
    (void)state;
    static const struct {
        unsigned features;
        int head_dim, rotary;
        float residual, offset;
        const char *part;
    } rows[] = {
        {FEATURE_BIT(FEATURE_QK_NORM), 64, 32, 0, 0, "is 64, of which 32 elements rotate; heads"},
        {FEATURE_BIT(FEATURE_GATE), 80, 0, 0, 0, "is 80, of which 80 elements rotate; heads"},
        {NORMED_AFTER, 64, 0, 0.5f, 0, "residual_multiplier is 0.5, and outputs have norms"},
        {FEATURE_BIT(FEATURE_O_BIAS), 64, 0, 0.5f, 0, "is 0.5, and outputs have biases"},
        {FEATURE_BIT(FEATURE_QK_NORM_ROW), 64, 0, 0, 1, "gains with an offset"},
        {FEATURE_BIT(FEATURE_QK_NORM_ROW), 80, 24, 0, 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        check_ok(read_json("{" OF("llama") "}", &c), "llama");
        ATTENTION(&c).features |= rows[i].features;
        ATTENTION(&c).head_dim = rows[i].head_dim;
        ATTENTION(&c).gain_offset = rows[i].offset;
        c.arch.rope[0].rotary = rows[i].rotary;
        c.residual_scale = rows[i].residual;
        if (rows[i].part)
            check_refused(config_check(&c, "model"), NJ_E_UNSUPPORTED, rows[i].part, "features");
        else
            check_ok(config_check(&c, "model"), "features");
    }
}

static const struct refused_fields refused[] = {
    {GEMMA ",\"sliding_window\":null", NJ_E_FORMAT, "sliding_window is null; it must be a whole"},
    {GEMMA ",\"attn_logit_softcapping\":50.0", NJ_E_UNSUPPORTED, "attn_logit_softcapping is 50.0"},
    {GEMMA ",\"use_bidirectional_attention\":true", NJ_E_UNSUPPORTED,
     "use_bidirectional_attention is true; only causal models"},
    {GEMMA ",\"hidden_act\":\"silu\"", NJ_E_UNSUPPORTED,
     "hidden_act is \"silu\"; this field is not"},
    {GEMMA ",\"attention_bias\":true", NJ_E_UNSUPPORTED, "attention_bias is true"},
    {GEMMA ",\"query_pre_attn_scalar\":0", NJ_E_FORMAT, "query_pre_attn_scalar is 0"},
    {GEMMA ",\"final_logit_softcapping\":-1", NJ_E_FORMAT, "final_logit_softcapping is -1"},
    {OF("granite") ",\"residual_multiplier\":0.5,\"attention_bias\":true", NJ_E_UNSUPPORTED,
     "residual_multiplier is 0.5, and outputs have biases"},
    {OF("gemma3_text") ",\"head_dim\":96", NJ_E_UNSUPPORTED,
     "is 96; 64, 128 and 256 are supported"},
    {OF("phi3") ",\"head_dim\":100", NJ_E_UNSUPPORTED, "is 100; multiples of 8 up to 256"},
    {OF("phi3") ",\"head_dim\":264", NJ_E_UNSUPPORTED, "is 264; multiples of 8 up to 256"},
    {EIGHT("exaone4") ",\"sliding_window_pattern\":\"LLG\"", NJ_E_UNSUPPORTED,
     "sliding_window_pattern is \"LLG\"; it must be a number, or L"},
    {EIGHT("exaone4") ",\"sliding_window_pattern\":\"LGLG\"", NJ_E_UNSUPPORTED, "is \"LGLG\"; it"},
    {EIGHT("exaone4") ",\"sliding_window_pattern\":\"\"", NJ_E_UNSUPPORTED, "is \"\"; it must"},
    {EIGHT("exaone4") ",\"sliding_window_pattern\":0", NJ_E_FORMAT, "sliding_window_pattern is 0"},
    {EIGHT("exaone4") ",\"no_rope_layers\":[1]", NJ_E_UNSUPPORTED, "no_rope_layers is [1]; this"},
    {EIGHT("smollm3") ",\"no_rope_layers\":[1,0]", NJ_E_FORMAT, "no_rope_layers is [1,0]; it must"},
    {OF("smollm3") ",\"no_rope_layers\":[1,2]", NJ_E_FORMAT, "no_rope_layers is 2; it must be 1"},
    {OF("smollm3") ",\"no_rope_layers\":[true,1]", NJ_E_FORMAT, "no_rope_layers is true; it must"},
    {OF("smollm3") ",\"no_rope_layer_interval\":0", NJ_E_FORMAT, "no_rope_layer_interval is 0"},
    {OF("smollm3") ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]", NJ_E_FORMAT,
     "layer_types is \"sliding_attention\"; no window is given"},
    {OF("phi3") ",\"sliding_window\":64,\"layer_types\":[\"full_attention\",\"full_attention\"]",
     NJ_E_UNSUPPORTED, "in this family sliding_window is that of every layer"},
    {OF("mistral") ",\"sliding_window\":null,\"layer_types\":[\"sliding_attention\","
                   "\"full_attention\"]",
     NJ_E_FORMAT, "layer_types is \"sliding_attention\"; no window is given"},
    {HYBRID, NJ_E_UNSUPPORTED, "num_local_experts is missing, so there are experts"},
    {HYBRID ",\"num_local_experts\":1", NJ_E_UNSUPPORTED, "num_local_experts is 1; mixtures"},
    {HYBRID ",\"num_local_experts\":0,\"position_embedding_type\":\"alibi\"", NJ_E_UNSUPPORTED,
     "position_embedding_type is \"alibi\"; rope and nope"},
    {HYBRID ",\"num_local_experts\":0,\"normalization_function\":\"layernorm\"", NJ_E_UNSUPPORTED,
     "normalization_function is \"layernorm\"; norms must be rmsnorm"},
    {OF("granitemoehybrid") ",\"shared_intermediate_size\":64,\"num_local_experts\":0",
     NJ_E_UNSUPPORTED, "layer_types is missing, so all layers are recurrent"},
    {OF("granitemoehybrid") ",\"shared_intermediate_size\":64,\"num_local_experts\":0,"
                            "\"layer_types\":[\"mamba\",\"attention\"]",
     NJ_E_UNSUPPORTED, "layer_types is \"mamba\"; only full_attention is supported"},
    {OF("granitemoehybrid") ",\"num_local_experts\":0", NJ_E_FORMAT,
     "shared_intermediate_size is missing"},
    {DENSE ",\"shared_intermediate_size\":60", NJ_E_UNSUPPORTED, "shared_intermediate_size is 60;"},
    {OF("hunyuan_v1_dense") ",\"use_cla\":true", NJ_E_UNSUPPORTED, "use_cla is true; layers must"},
    {OF("granite") ",\"logits_scaling\":1e-40", NJ_E_FORMAT, "logits_scaling is"},
    {OF("minicpm") ",\"sparse_config\":{\"topk\":64}", NJ_E_UNSUPPORTED, "sparse_config is"},
    {OF("granite") ",\"logits_scaling\":0", NJ_E_FORMAT, "logits_scaling is 0"},
    {OF("granite_swa") ",\"layer_rope_theta\":[1]", NJ_E_FORMAT,
     "layer_rope_theta is [1]; it must"},
    {OF("granite_swa") ",\"layer_rope_theta\":[1,-1]", NJ_E_FORMAT, "is -1; it must be the base"},
    {OF("granite_swa") ",\"layer_rope_theta\":[1,null]", NJ_E_FORMAT, "is null; it must be the"},
    {EIGHT("granite_swa") ",\"layer_rope_theta\":[1,2,3,1,1,1,1,1]", NJ_E_UNSUPPORTED,
     "at most two different bases"},
    {EIGHT("granite_swa") ",\"layer_rope_theta\":[1,2,0,1,1,1,1,1]", NJ_E_UNSUPPORTED,
     "at most two different bases are supported, 0 among"},
    {OF("muse_glimmer_text") ",\"layer_rope_theta\":[0,5]", NJ_E_UNSUPPORTED,
     "layers of this family that rotate do so by rope_theta"},
    {OF("muse_glimmer_text") ",\"post_norm_eps\":0", NJ_E_FORMAT, "post_norm_eps is 0"},
    {OF("muse_glimmer_text") ",\"attention_bias\":true", NJ_E_UNSUPPORTED,
     "attention_bias is true"},
    {OF("granite") ",\"layer_rope_theta\":[1,1]", NJ_E_UNSUPPORTED,
     "layer_rope_theta is [1,1]; this"},
    {OF("lfm2") ",\"conv_bias\":true", NJ_E_UNSUPPORTED, "conv_bias is true; biases"},
    {OF("lfm2") ",\"conv_L_cache\":9,\"full_attn_idxs\":[0]", NJ_E_UNSUPPORTED,
     "conv_L_cache is 9; 2 to 8"},
    {OF("lfm2") ",\"full_attn_idxs\":[]", NJ_E_UNSUPPORTED, "no layer has attention"},
    {OF("lfm2") ",\"full_attn_idxs\":1", NJ_E_FORMAT, "full_attn_idxs is 1; it must be a list"},
    {OF("lfm2") ",\"full_attn_idxs\":[-1]", NJ_E_FORMAT, "full_attn_idxs is -1; it must be the"},
    {OF("lfm2") ",\"layer_types\":[\"conv\",\"mamba\"]", NJ_E_UNSUPPORTED,
     "layer_types is \"mamba\"; full_attention and conv are"},
    {OF("lfm2") ",\"block_ffn_dim_multiplier\":1e9", NJ_E_FORMAT,
     "block_ffn_dim_multiplier is 1000000000.0; the width"},
    {OF("lfm2") ",\"rms_norm_eps\":0.5", NJ_E_UNSUPPORTED, "rms_norm_eps is 0.5; this"},
    {OF("llama") ",\"norm_eps\":0.5", NJ_E_UNSUPPORTED, "norm_eps is 0.5; this"},
    {OF("llama") ",\"layer_types\":[\"conv\",\"full_attention\"]", NJ_E_UNSUPPORTED,
     "only full_attention is supported"},
    {OF("qwen3_5_text"), NJ_E_UNSUPPORTED, "no layer has attention"},
    {EIGHT("qwen3_5_text") ",\"attn_output_gate\":false", NJ_E_UNSUPPORTED,
     "attn_output_gate is false; the"},
    {OF("llama") ",\"attn_output_gate\":true", NJ_E_UNSUPPORTED,
     "attn_output_gate is true; the output of attention is not gated"},
    {EIGHT("qwen3_5_text") ",\"attention_bias\":true", NJ_E_UNSUPPORTED,
     "attention_bias is true; biases"},
    {EIGHT("qwen3_5_text") ",\"linear_value_head_dim\":64", NJ_E_UNSUPPORTED,
     "linear_value_head_dim is 64; it must be linear_key_head_dim, which is 128"},
    {EIGHT("qwen3_5_text") ",\"linear_value_head_dim\":96,\"linear_key_head_dim\":96",
     NJ_E_UNSUPPORTED, "linear_key_head_dim is 96; 64 and 128"},
    {EIGHT("qwen3_5_text") ",\"linear_num_value_heads\":6", NJ_E_UNSUPPORTED,
     "linear_num_value_heads is 6; multiples of 4"},
    {EIGHT("qwen3_5_text") ",\"linear_num_key_heads\":5", NJ_E_FORMAT,
     "linear_num_value_heads is 32, no multiple of linear_num_key_heads 5"},
    {EIGHT("qwen3_5_text") ",\"linear_conv_kernel_dim\":1", NJ_E_UNSUPPORTED,
     "linear_conv_kernel_dim is 1; 2 to 8"},
    {EIGHT("qwen3_5_text") ",\"mamba_ssm_dtype\":\"bfloat16\"", NJ_E_UNSUPPORTED,
     "mamba_ssm_dtype is \"bfloat16\"; states"},
    {OF("olmo2") ",\"attention_multiplier\":1", NJ_E_UNSUPPORTED,
     "attention_multiplier is 1; this"},
};

static void other_values_are_refused(void **state)
{
    (void)state;
    check_fields_refused(refused, sizeof refused / sizeof *refused);
}

static void widths_of_lfm2_follow_its_rule(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int width;
    } rows[] = {
        {OF("lfm2") ",\"block_ff_dim\":6656", 4608},
        {OF("lfm2") ",\"block_ff_dim\":12288", 8192},
        {OF("lfm2") ",\"block_ff_dim\":6656,\"block_auto_adjust_ff_dim\":false", 6656},
        {OF("lfm2") ",\"block_ff_dim\":6656,\"block_multiple_of\":8", 4440},
        {OF("lfm2") ",\"block_ff_dim\":6656,\"block_multiple_of\":8,\"block_ffn_dim_multiplier\":1."
                    "5",
         6656},
        {OF("lfm2") ",\"block_ff_dim\":768,\"block_ffn_dim_multiplier\":null", 512},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model_config c;
        char json[1024];
        snprintf(json, sizeof json, "{%s}", rows[i].json);
        check_ok(read_json(json, &c), json);
        assert_int_equal(arch_mlp(&c.arch, 0)->ffn_size, rows[i].width);
        check_written(&c, json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_have_the_windows_of_their_family),
        cmocka_unit_test(families_have_their_features),
        cmocka_unit_test(numbers_are_those_of_the_family),
        cmocka_unit_test(embeddings_of_gemma_are_scaled_in_their_type),
        cmocka_unit_test(norms_of_muse_glimmer_have_two_numbers),
        cmocka_unit_test(kept_layers_keep_their_factor),
        cmocka_unit_test(missing_fields_are_those_of_the_class),
        cmocka_unit_test(features_that_exclude_each_other_are_refused),
        cmocka_unit_test(widths_of_lfm2_follow_its_rule),
        cmocka_unit_test(other_values_are_refused),
    };
    return cmocka_run_group_tests_name("config_families", tests, scratch_begin, scratch_end);
}
