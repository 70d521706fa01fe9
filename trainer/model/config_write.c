/* SPDX-License-Identifier: Apache-2.0
 *
 * config_write.c: the config.json of a model, for transformers 4 and 5.
 */
#include "base/families.h"
#include "base/try.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/path.h"
#include "model/config_composite.h"
#include "model/config_experts.h"
#include "model/config_from.h"
#include "model/config_put.h"
#include "model/config_recurrent.h"

#include <stdio.h>

static json_t *token_or_null(int id)
{
    return id < 0 ? json_null() : json_integer(id);
}

/* Return the fields of a config.json. torch_dtype is read by transformers 4, dtype by later ones. */
static json_t *config_object(const struct model_config *c, const struct family *family,
                             const char *dtype)
{
    const struct block *attention = arch_attention(&c->arch, c->layers);
    const int ffn_size = config_dense_size(c);
    json_t *root =
        json_pack("{s:[s], s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "architectures",
                  family->architecture, "model_type", c->model_type, "torch_dtype", dtype,
                  family_act_field(family), hidden_acts[arch_mlp(&c->arch, 0)->act].name,
                  "hidden_size", c->hidden_size, "intermediate_size", ffn_size, "num_hidden_layers",
                  c->layers, "num_attention_heads", attention->heads, "num_key_value_heads",
                  attention->kv_heads, "head_dim", attention->head_dim, "vocab_size", c->vocab_size,
                  "max_position_embeddings", c->max_positions);
    json_object_set_new(root, family_ffn_field(family), json_integer(ffn_size));
    if (family_has_no_dense(family))
        json_object_del(root, family_ffn_field(family));
    if (family->fields & FIELDS_GLM) /* layers that predict further tokens are left out */
        json_object_set_new(root, "num_nextn_predict_layers", json_integer(0));
    json_object_set_new(root, "dtype", json_string(dtype));
    json_object_set_new(root, family_eps_field(family), real_of_float(c->rms_eps));
    json_object_set_new(root, "tie_word_embeddings", json_boolean(c->tied));
    json_object_set_new(root, "bos_token_id", token_or_null(c->bos_id));
    json_object_set_new(root, "eos_token_id", token_or_null(c->eos_id));
    json_object_set_new(root, "initializer_range", json_real(0.02));
    json_object_set_new(root, "use_cache", json_true());
    config_put_numbers(root, c, family);
    config_put_ropes(root, c, family);
    config_put_window(root, c, family);
    config_put_layers(root, c, family);
    config_put_experts(root, c, family);
    config_put_recurrent(root, c, family);
    return root;
}

/* Return whether the tables of both models have the same frequencies in sequences of so many positions. */
static bool rotate_alike(const struct model_config *a, const struct model_config *b, int positions)
{
    float x[ROPES_MOST * ROPE_PAIRS_MOST] = {0}, y[ROPES_MOST * ROPE_PAIRS_MOST] = {0};
    bool alike = true;
    config_inv_freq(a, positions, x);
    config_inv_freq(b, positions, y);
    for (int i = 0; i < ROPES_MOST * ROPE_PAIRS_MOST; i++)
        alike = alike && x[i] == y[i];
    return alike;
}

/* Return whether both models have the same layers, and tables that rotate alike. */
static bool are_alike(const struct model_config *a, const struct model_config *b)
{
    for (int l = 0; l < a->layers; l++)
        if (!layers_are_alike(arch_layer(&a->arch, l), arch_layer(&b->arch, l)))
            return false;
    for (int i = 0; i < ROPES_MOST; i++)
        if (a->arch.rope[i].neighbors != b->arch.rope[i].neighbors ||
            rope_amplitude(&a->arch.rope[i]) != rope_amplitude(&b->arch.rope[i]))
            return false;
    return rotate_alike(a, b, 1) && rotate_alike(a, b, a->max_positions);
}

static int refuse_layers(const struct model_config *c, const char *path)
{
    return fail(NJ_E_UNSUPPORTED,
                "%s: config.json of a %s cannot describe these layers, by their sizes, windows or "
                "rotations; use a model whose layers are those of its family",
                path, c->model_type);
}

/* Check that the fields describe the layers: those that are read from them must be the same. */
static int check_layers(const struct model_config *c, json_t *root, const char *path)
{
    const struct config_file file = {.path = path};
    struct model_config back;
    const int rc = config_from(&file, root, &back);
    return rc == NJ_E_NOMEM || (rc == 0 && are_alike(c, &back)) ? rc : refuse_layers(c, path);
}

/* Refuse to write a model of a family whose files have another layout than the tensors here. */
static int refuse_family(const struct model_config *c, const char *path)
{
    if (!(family_find(c->model_type)->fields & FIELDS_OSS))
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: models of %s are read, not written; keep the folder that you have", path,
                c->model_type);
}

/* Return whether each layer has attention, or a block in its place, and one MLP, of experts or not. */
static bool are_whole(const struct model_config *c)
{
    for (int l = 0; l < c->layers; l++)
        if (!arch_mixer(&c->arch, l) || !arch_mlp(&c->arch, l) ||
            arch_layer(&c->arch, l)->blocks != 2)
            return false;
    return true;
}

int config_write(const char *dir, const struct model_config *c, const char *dtype)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/config.json", dir) >= (int)sizeof path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
    TRY(config_check(c, path));
    TRY(refuse_family(c, path));
    if (!are_whole(c))
        return refuse_layers(c, path);
    json_memory_begin();
    json_t *root = config_object(c, family_find(c->model_type), dtype);
    const int rc = root ? check_layers(c, root, path) : 0;
    if (rc == 0)
        return json_write_file(path, root, JSON_INDENT(2) | JSON_SORT_KEYS);
    json_decref(root);
    return json_memory_end() ? fail(NJ_E_NOMEM, "%s: out of memory to write it", path) : rc;
}

/* Set the fields of a model that has been read and saved: it is of its family, whole, with unquantized weights. */
static void settle(json_t *root, const struct model_config *c, const char *dtype)
{
    const struct family *family = family_find(c->model_type);
    json_object_del(root, "quantization_config");
    json_object_del(root, "auto_map"); /* names files of Python code, which are not copied */
    json_object_set_new(root, "architectures", json_pack("[s]", family->architecture));
    json_object_set_new(root, "model_type", json_string(c->model_type));
    /* The older and the newer spelling; some files have both. */
    if (json_object_get(root, "dtype"))
        json_object_set_new(root, "dtype", json_string(dtype));
    if (json_object_get(root, "torch_dtype") || !json_object_get(root, "dtype"))
        json_object_set_new(root, "torch_dtype", json_string(dtype));
    if (!c->tied) /* the file may tie a head that the weights have separately */
        json_object_set_new(root, "tie_word_embeddings", json_false());
    const bool same = json_integer_value(json_object_get(root, "num_hidden_layers")) == c->layers;
    if (!same && (family->fields & FIELDS_DEPTH))
        config_put_numbers(root, c, family); /* one of them depends on the number of layers */
    json_object_set_new(root, "num_hidden_layers", json_integer(c->layers));
    config_put_layers(root, c, family);
    config_put_experts(root, c, family);
    if (family->recurrent != 0)
        config_settle_recurrent(root, c);
}

/* Read the config.json of a folder; of a composite one, what its language model would have alone. */
static int read_source(const char *path, json_t **out)
{
    const struct config_file file = {.path = path};
    json_t *text;
    TRY(json_read_file(path, "restore the file", out));
    if (!config_is_composite(*out))
        return 0;
    const int rc = config_text(&file, *out, &text);
    json_decref(*out);
    *out = text;
    return rc;
}

int config_copy(const char *from, const char *to, const struct model_config *c, const char *dtype)
{
    char path[PATH_BYTES];
    json_t *root;
    if (snprintf(path, sizeof path, "%s/config.json", from) >= (int)sizeof path)
        return fail(NJ_E_ARG, "%.80s...: path too long; use a shorter one", from);
    TRY(refuse_family(c, to));
    if (!config_experts_fit(c, family_find(c->model_type)))
        return refuse_layers(c, to);
    TRY(read_source(path, &root));
    json_memory_begin();
    settle(root, c, dtype);
    if (snprintf(path, sizeof path, "%s/config.json", to) < (int)sizeof path)
        return json_write_file(path, root, JSON_INDENT(2));
    (void)json_memory_end();
    json_decref(root);
    return fail(NJ_E_ARG, "%.80s...: path too long; use a shorter one", to);
}
