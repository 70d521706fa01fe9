/* SPDX-License-Identifier: Apache-2.0
 *
 * config_recurrent.c: see config_recurrent.h. Defaults and the order in which fields count are those of the classes of
 * transformers 5.24.
 */
#include "model/config_recurrent.h"

#include "base/try.h"
#include "io/error.h"

#include <math.h>

static bool has_conv(const struct family *family)
{
    return (family->fields & FIELDS_CONV) != 0;
}

static bool has_delta(const struct family *family)
{
    return (family->fields & FIELDS_DELTA) != 0;
}

const char *config_recurrent_type(const struct family *family)
{
    return has_conv(family) ? "conv" : has_delta(family) ? "linear_attention" : NULL;
}

/* ---- reading ---- */

/* Return the width that a rule makes of the one in the file. multiplier 0: there is none, and no multiple either. */
static double adjusted(int size, double multiplier, int multiple)
{
    const double part = floor(2.0 * size / 3);
    if (multiplier == 0)
        return part;
    return ceil(floor(multiplier * part) / multiple) * multiple;
}

int config_recurrent_sizes(const struct fields *f, const struct family *family, struct block *mlp)
{
    static const char factor[] = "block_ffn_dim_multiplier";
    int multiple;
    double multiplier = 0;
    bool adjust;
    if (!(family->fields & FIELDS_ADJUST))
        return 0;
    TRY(field_int(f, "block_ff_dim", mlp->ffn_size, &mlp->ffn_size));
    TRY(field_bool(f, "block_auto_adjust_ff_dim", true, &adjust));
    TRY(field_int(f, "block_multiple_of", 256, &multiple));
    if (!json_is_null(json_object_get(f->object, factor)))
        TRY(field_number(f, factor, 1, &multiplier));
    const double size = adjust ? adjusted(mlp->ffn_size, multiplier, multiple) : mlp->ffn_size;
    if (size > CONFIG_SIZE_MOST)
        return field_refuse(f, NJ_E_FORMAT, factor, field_get(f, factor),
                            "the width of the MLP becomes too large");
    mlp->ffn_size = (int)size;
    return 0;
}

int config_tied(const struct fields *f, const struct family *family, bool *out)
{
    TRY(field_bool(f, "tie_word_embeddings", family->tied, out));
    return family->fields & FIELDS_CONV ? field_bool(f, "tie_embedding", *out, out) : 0;
}

/* Refuse attention without a gate, which no model of these families has. */
static int check_gate(const struct fields *f)
{
    static const char name[] = "attn_output_gate";
    json_t *gate = field_get(f, name);
    if (!gate || json_is_true(gate))
        return 0;
    return field_refuse(f, NJ_E_UNSUPPORTED, name, gate,
                        "the output of attention must be gated; use a model in which it is");
}

static int read_delta(const struct fields *f, struct block *out)
{
    static const char name[] = "linear_value_head_dim";
    int values;
    out->kind = BLOCK_DELTA;
    TRY(check_gate(f));
    TRY(field_int(f, "linear_num_value_heads", 32, &out->heads));
    TRY(field_int(f, "linear_num_key_heads", 16, &out->kv_heads));
    TRY(field_int(f, "linear_key_head_dim", 128, &out->head_dim));
    TRY(field_int(f, name, 128, &values));
    TRY(field_int(f, "linear_conv_kernel_dim", 4, &out->taps));
    if (values == out->head_dim)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: %s is %d; it must be %s, which is %d: use a model whose heads have one size",
                f->file->path, field_called(f->file, name).text, values,
                field_called(f->file, "linear_key_head_dim").text, out->head_dim);
}

int config_recurrent(const struct fields *f, const struct family *family,
                     const struct model_config *c, struct block *out)
{
    *out = (struct block){
        .kind = BLOCK_CONV, .features = family->recurrent, .gain_offset = family->gain_offset};
    if (has_delta(family))
        return read_delta(f, out);
    out->channels = c->hidden_size;
    return field_int(f, "conv_L_cache", 3, &out->taps);
}

/* Set that all layers but the last of each period are recurrent. */
static int follow_interval(const struct fields *f, const struct family *family,
                           const struct model_config *c, bool *recurrent)
{
    int interval;
    TRY(field_int(f, "full_attention_interval", family->period, &interval));
    for (int l = 0; l < c->layers; l++)
        recurrent[l] = (l + 1) % interval != 0;
    return 0;
}

int config_recurrent_layers(const struct fields *f, const struct family *family,
                            const struct model_config *c, bool *recurrent)
{
    static const char name[] = "full_attn_idxs";
    json_t *list = field_get(f, name), *value;
    size_t i;
    if (has_delta(family))
        return follow_interval(f, family, c, recurrent);
    if (!(family->fields & FIELDS_ADJUST))
        return fail(NJ_E_FORMAT,
                    "%s: %s is missing, which says which layers have attention; fetch the file "
                    "again",
                    f->file->path, field_called(f->file, "layer_types").text);
    if (list && !json_is_array(list))
        return field_refuse(f, NJ_E_FORMAT, name, list, "it must be a list of layers");
    for (int l = 0; l < c->layers; l++)
        recurrent[l] = list != NULL;
    json_array_foreach(list, i, value)
    {
        const json_int_t layer = json_integer_value(value);
        if (!json_is_integer(value) || layer < 0)
            return field_refuse(f, NJ_E_FORMAT, name, value, "it must be the number of a layer");
        if (layer < c->layers)
            recurrent[layer] = false;
    }
    return 0;
}

/* ---- writing ---- */

static void put_conv(json_t *root, const struct model_config *c, const struct family *family)
{
    const struct block *b = arch_first(&c->arch, c->layers, BLOCK_CONV);
    if (family->fields & FIELDS_ADJUST)
        json_object_set_new(root, "block_auto_adjust_ff_dim", json_false());
    json_object_set_new(root, "conv_bias", json_false());
    if (b)
        json_object_set_new(root, "conv_L_cache", json_integer(b->taps));
}

static void put_delta(json_t *root, const struct model_config *c)
{
    const struct block *b = arch_first(&c->arch, c->layers, BLOCK_DELTA);
    if (!b)
        return;
    json_object_set_new(root, "linear_num_value_heads", json_integer(b->heads));
    json_object_set_new(root, "linear_num_key_heads", json_integer(b->kv_heads));
    json_object_set_new(root, "linear_key_head_dim", json_integer(b->head_dim));
    json_object_set_new(root, "linear_value_head_dim", json_integer(b->head_dim));
    json_object_set_new(root, "linear_conv_kernel_dim", json_integer(b->taps));
}

void config_put_recurrent(json_t *root, const struct model_config *c, const struct family *family)
{
    if (has_conv(family))
        put_conv(root, c, family);
    if (has_delta(family))
        put_delta(root, c);
}

void config_settle_recurrent(json_t *root, const struct model_config *c)
{
    json_object_del(root, "full_attn_idxs");
    json_object_del(root, "full_attention_interval");
    if (!c->tied)
        json_object_del(root, "tie_embedding");
}
