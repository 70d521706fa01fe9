/* SPDX-License-Identifier: Apache-2.0
 *
 * config_composite.c: see config_composite.h. The fields of a file itself that are known are those of Gemma3Config,
 * Mistral3Config, MuseGlimmerConfig, Qwen3_5Config and Qwen3_5MoeConfig in transformers 5.24 and of their base classes.
 */
#include "model/config_composite.h"

#include "base/families.h"
#include "io/error.h"

#include <stdio.h>
#include <string.h>

static const char nested[] = "text_config";

/* Fields of the language model that a file may have beside text_config; there they count, as in transformers. */
static const char *const outer_fields[] = {
    "bos_token_id",        "dtype",       "eos_token_id",        "pad_token_id",
    "quantization_config", "torch_dtype", "tie_word_embeddings",
};

/* Fields of the other parts, and of the file. */
static const char *const other_fields[] = {
    "_name_or_path",
    "architectures",
    "boi_token_id",
    "boi_token_index",
    "eoi_token_id",
    "eoi_token_index",
    "image_token_id",
    "image_token_index",
    "initializer_range",
    "mm_tokens_per_image",
    "model_type",
    "multimodal_projector_bias",
    "name_or_path",
    "out_hidden_size",
    "projector_hidden_act",
    "projector_hidden_size",
    "spatial_merge_size",
    "text_config",
    "transformers_version",
    "transformers_weights",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
    "video_token_id",
    "vision_config",
    "vision_end_token_id",
    "vision_feature_layer",
    "vision_start_token_id",
};

#define ROWS(table) (sizeof(table) / sizeof *(table))

static bool is_in(const char *const *list, size_t rows, const char *name)
{
    for (size_t i = 0; i < rows; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

static const struct composite *composite_of(const json_t *root)
{
    const char *type = json_string_value(json_object_get(root, "model_type"));
    return type ? composite_find(type) : NULL;
}

bool config_is_composite(const json_t *root)
{
    return composite_of(root) != NULL;
}

/* Return the value of a field of the file itself; NULL: it is absent or null. */
static json_t *outer(const json_t *root, const char *name)
{
    json_t *value =
        is_in(outer_fields, ROWS(outer_fields), name) ? json_object_get(root, name) : NULL;
    return json_is_null(value) ? NULL : value;
}

struct config_name config_text_name(const void *root, const char *field)
{
    struct config_name out;
    snprintf(out.text, sizeof out.text, "%s%s%s", outer(root, field) ? "" : nested,
             outer(root, field) ? "" : ".", field);
    return out;
}

int config_text(const struct config_file *f, json_t *root, json_t **out)
{
    const struct composite *composite = composite_of(root);
    const struct fields fields = {f, root};
    json_t *text = field_get(&fields, nested), *value;
    const char *name;
    *out = NULL;
    if (!json_is_object(text))
        return text ? field_refuse(&fields, NJ_E_FORMAT, nested, text, "it must be an object")
                    : fail(NJ_E_FORMAT, "%s: %s is missing; fetch the file again", f->path, nested);
    json_object_foreach(root, name, value)
    {
        if (!json_is_null(value) && !is_in(outer_fields, ROWS(outer_fields), name) &&
            !is_in(other_fields, ROWS(other_fields), name))
            return field_refuse(
                &fields, NJ_E_UNSUPPORTED, name, value,
                "this field is not known beside text_config, and may change what "
                "the model computes; remove it if the model is the same without it");
    }
    *out = json_copy(text);
    bool whole = *out != NULL;
    for (size_t i = 0; i < ROWS(outer_fields) && whole; i++)
        if (outer(root, outer_fields[i]))
            whole = json_object_set(*out, outer_fields[i], outer(root, outer_fields[i])) == 0;
    if (whole && !json_object_get(text, "model_type"))
        whole = json_object_set_new(*out, "model_type", json_string(composite->text)) == 0;
    if (whole && !json_object_get(*out, "tie_word_embeddings"))
        whole =
            json_object_set_new(*out, "tie_word_embeddings", json_boolean(composite->tied)) == 0;
    if (whole)
        return 0;
    json_decref(*out);
    *out = NULL;
    return fail(NJ_E_NOMEM, "%s: out of memory for its %s", f->path, nested);
}
