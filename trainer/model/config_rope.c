/* SPDX-License-Identifier: Apache-2.0
 *
 * config_rope.c: see config_rope.h.
 */
#include "model/config_rope.h"

#include "base/try.h"
#include "io/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int refuse_rope_type(const struct fields *f, const char *object_name, const json_t *object,
                            const json_t *type)
{
    char name[64], remedy[REMEDY_BYTES];
    snprintf(name, sizeof name, "%s.%s", object_name,
             type == json_object_get(object, "rope_type") ? "rope_type" : "type");
    return field_refuse(
        f, NJ_E_UNSUPPORTED, name, type,
        field_supported(f, "default and llama3 are supported",
                        strcmp(object_name, "rope_parameters") == 0
                            ? "without scaling, set it to default and stay within the original "
                              "positions"
                            : "without scaling, set rope_scaling to null and stay within the "
                              "original positions",
                        remedy));
}

int config_check_rotary(const struct fields *f)
{
    const json_t *part = field_get(f, "partial_rotary_factor");
    if (!part || json_number_value(part) == 1.0)
        return 0;
    return field_refuse(f, NJ_E_UNSUPPORTED, "partial_rotary_factor", part,
                        "only 1 is supported: use a model that rotates whole heads");
}

/* Keys that transformers reads from the object, for these types or for others. */
static const char *const rope_keys[] = {"rope_type",        "type",
                                        "rope_theta",       "partial_rotary_factor",
                                        "factor",           "low_freq_factor",
                                        "high_freq_factor", "original_max_position_embeddings",
                                        "attention_factor", "beta_fast",
                                        "beta_slow",        "short_factor",
                                        "long_factor",      "truncate",
                                        "mscale",           "mscale_all_dim"};

static int refuse_rope_keys(const struct fields *scaling, const char *object_name)
{
    const char *key;
    json_t *value;
    char name[64];
    json_object_foreach(scaling->object, key, value)
    {
        bool known = false;
        for (size_t i = 0; i < sizeof rope_keys / sizeof *rope_keys; i++)
            known = known || strcmp(key, rope_keys[i]) == 0;
        snprintf(name, sizeof name, "%s.%s", object_name, key);
        if (!known)
            return field_refuse(scaling, NJ_E_UNSUPPORTED, name, value,
                                "this key is not known; use a model without it");
    }
    return 0;
}

/* Return the object that counts: transformers 4 has rope_theta and rope_scaling side by side, 5 puts both into
 * rope_parameters, or into an object in it for each type of layer, but still prefers rope_scaling. */
static json_t *rope_object(const struct fields *f, const char **name)
{
    json_t *scaling = field_get(f, "rope_scaling"), *parameters = field_get(f, "rope_parameters");
    const bool empty = json_is_object(scaling) && json_object_size(scaling) == 0;
    *name = scaling && !empty ? "rope_scaling" : "rope_parameters";
    json_t *object = scaling && !empty ? scaling : parameters;
    json_t *full = json_object_get(object, "full_attention");
    return json_is_object(full) ? full : object;
}

static int read_llama3(const struct fields *f, const struct fields *scaling, const char *name,
                       struct rope *rope)
{
    struct rope_scaling *out = &rope->scaling;
    double factor, low, high;
    int positions;
    TRY(field_number(scaling, "factor", NAN, &factor));
    TRY(field_number(scaling, "low_freq_factor", NAN, &low));
    TRY(field_number(scaling, "high_freq_factor", NAN, &high));
    TRY(field_int(scaling, "original_max_position_embeddings", 0, &out->original_positions));
    TRY(field_int(f, "original_max_position_embeddings", out->original_positions, &positions));
    rope->rule = ROPE_LLAMA3;
    out->factor = (float)factor;
    out->low_freq_factor = (float)low;
    out->high_freq_factor = (float)high;
    if (positions != out->original_positions)
        return field_refuse(f, NJ_E_FORMAT, "original_max_position_embeddings",
                            field_get(f, "original_max_position_embeddings"),
                            "the scaling of positions has another; keep one of them");
    if (!(high > low))
        return field_refuse(f, NJ_E_FORMAT, name, scaling->object,
                            "high_freq_factor must be above low_freq_factor");
    return 0;
}

int config_rope(const struct fields *f, double theta, struct rope *out)
{
    struct fields scaling = *f;
    const char *name;
    json_t *object = scaling.object = rope_object(f, &name);
    if (object && !json_is_object(object))
        return field_refuse(f, NJ_E_FORMAT, name, object, "it must be an object or null");
    TRY(field_number(f, "rope_theta", theta, &out->theta));
    if (!object)
        return 0;
    TRY(field_number(&scaling, "rope_theta", out->theta, &out->theta));
    TRY(config_check_rotary(&scaling));
    TRY(refuse_rope_keys(&scaling, name));
    json_t *type = field_get(&scaling, "rope_type");
    if (!type)
        type = field_get(&scaling, "type");
    const char *type_name = type ? json_string_value(type) : "default";
    if (type_name && strcmp(type_name, "default") == 0)
        return 0;
    if (!type_name || strcmp(type_name, "llama3") != 0)
        return refuse_rope_type(f, name, object, type);
    return read_llama3(f, &scaling, name, out);
}
