/* SPDX-License-Identifier: Apache-2.0
 *
 * config_write.c: the config.json of a model, for transformers 4 and 5.
 */
#include "base/families.h"
#include "base/try.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/path.h"
#include "model/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return a float as the shortest decimal that reads back as the same float, so that 1e-6f is written as 1e-06. */
static json_t *real_of_float(float value)
{
    char text[32];
    snprintf(text, sizeof text, "%.7g", (double)value);
    if (strtof(text, NULL) != value)
        snprintf(text, sizeof text, "%.9g", (double)value);
    return json_real(strtod(text, NULL));
}

static json_t *token_or_null(int id)
{
    return id < 0 ? json_null() : json_integer(id);
}

/* Return the object of Llama 3's scaling, or null. */
static json_t *scaling_object(const struct rope *r)
{
    const struct rope_scaling *s = &r->scaling;
    if (r->rule != ROPE_LLAMA3)
        return json_null();
    return json_pack("{s:s, s:o, s:o, s:o, s:i}", "rope_type", "llama3", "factor",
                     real_of_float(s->factor), "low_freq_factor", real_of_float(s->low_freq_factor),
                     "high_freq_factor", real_of_float(s->high_freq_factor),
                     "original_max_position_embeddings", s->original_positions);
}

/* Return the fields of a config.json. rope_theta and rope_scaling are read by transformers 4 and 5; torch_dtype by 4,
 * dtype by later ones. */
static json_t *config_object(const struct model_config *c, const struct family *family,
                             const char *dtype)
{
    const struct block *attention = arch_block(&c->arch, 0, BLOCK_ATTENTION);
    const struct block *glu = arch_block(&c->arch, 0, BLOCK_GLU);
    const struct rope *rope = &c->arch.rope[attention->rope];
    json_t *root = json_pack(
        "{s:[s], s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "architectures",
        family->architecture, "model_type", c->model_type, "torch_dtype", dtype, "hidden_act",
        hidden_acts[glu->act].name, "hidden_size", c->hidden_size, "intermediate_size",
        glu->ffn_size, "num_hidden_layers", c->layers, "num_attention_heads", attention->heads,
        "num_key_value_heads", attention->kv_heads, "head_dim", attention->head_dim, "vocab_size",
        c->vocab_size, "max_position_embeddings", c->max_positions);
    json_object_set_new(root, "dtype", json_string(dtype));
    json_object_set_new(root, "rms_norm_eps", real_of_float(c->rms_eps));
    json_object_set_new(root, "rope_theta", json_real(rope->theta));
    json_object_set_new(root, "rope_scaling", scaling_object(rope));
    if (family->window > 0)
        json_object_set_new(root, "sliding_window",
                            attention->window > 0 ? json_integer(attention->window) : json_null());
    json_object_set_new(root, "tie_word_embeddings", json_boolean(c->tied));
    json_object_set_new(root, "bos_token_id", token_or_null(c->bos_id));
    json_object_set_new(root, "eos_token_id", token_or_null(c->eos_id));
    json_object_set_new(root, "initializer_range", json_real(0.02));
    json_object_set_new(root, "use_cache", json_true());
    return root;
}

/* Refuse layers that a config.json of these families cannot describe: all have the same blocks and sizes, and a window
 * only if the family has one. */
static int refuse_layers(const struct model_config *c, const char *path)
{
    const struct block *attention = arch_block(&c->arch, 0, BLOCK_ATTENTION);
    if (attention && arch_block(&c->arch, 0, BLOCK_GLU) &&
        (attention->window == 0 || family_find(c->model_type)->window > 0) &&
        arch_is_uniform(&c->arch, c->layers))
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: the layers of %s differ, or have a window, which config.json of this family "
                "cannot say; use a model whose layers are alike",
                path, c->model_type);
}

int config_write(const char *dir, const struct model_config *c, const char *dtype)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/config.json", dir) >= (int)sizeof path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
    TRY(config_check(c, path));
    TRY(refuse_layers(c, path));
    json_memory_begin();
    json_t *root = config_object(c, family_find(c->model_type), dtype);
    return json_write_file(path, root, JSON_INDENT(2) | JSON_SORT_KEYS);
}

/* Set the fields of the layers, which may be some of those that the file describes. */
static void set_layers(json_t *root, int layers)
{
    json_object_set_new(root, "num_hidden_layers", json_integer(layers));
    if (!json_is_array(json_object_get(root, "layer_types")))
        return;
    json_t *types = json_array();
    for (int i = 0; i < layers; i++)
        json_array_append_new(types, json_string("full_attention"));
    json_object_set_new(root, "layer_types", types);
}

/* Set the fields of a model that has been read and saved: it is of its family, whole, with unquantized weights. */
static void settle(json_t *root, const struct model_config *c, const char *dtype)
{
    const char *architecture = family_find(c->model_type)->architecture;
    json_object_del(root, "quantization_config");
    json_object_del(root, "auto_map"); /* names files of Python code, which are not copied */
    json_object_set_new(root, "architectures", json_pack("[s]", architecture));
    /* The older and the newer spelling; some files have both. */
    if (json_object_get(root, "dtype"))
        json_object_set_new(root, "dtype", json_string(dtype));
    if (json_object_get(root, "torch_dtype") || !json_object_get(root, "dtype"))
        json_object_set_new(root, "torch_dtype", json_string(dtype));
    if (!c->tied) /* the file may tie a head that the weights have separately */
        json_object_set_new(root, "tie_word_embeddings", json_false());
    set_layers(root, c->layers);
}

int config_copy(const char *from, const char *to, const struct model_config *c, const char *dtype)
{
    char path[PATH_BYTES];
    json_t *root;
    if (snprintf(path, sizeof path, "%s/config.json", from) >= (int)sizeof path)
        return fail(NJ_E_ARG, "%.80s...: path too long; use a shorter one", from);
    TRY(json_read_file(path, "restore the file", &root));
    json_memory_begin();
    settle(root, c, dtype);
    if (snprintf(path, sizeof path, "%s/config.json", to) < (int)sizeof path)
        return json_write_file(path, root, JSON_INDENT(2));
    (void)json_memory_end();
    json_decref(root);
    return fail(NJ_E_ARG, "%.80s...: path too long; use a shorter one", to);
}
