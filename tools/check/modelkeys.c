/* SPDX-License-Identifier: Apache-2.0
 *
 * modelkeys.c: finds the keys that a model uses. Most ops serve every model; the key list says which need a feature.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/families.h"
#include "base/features.h"
#include "base/python_json.h"
#include "check/blobcheck.h"
#include "check/gguf_keys.h"

static int integer(const json_t *config, const char *field)
{
    json_int_t value = json_integer_value(json_object_get(config, field));
    return value > 0 && value < 1 << 30 ? (int)value : 0;
}

/* Return the object with the fields of the language model, and its family's name; NULL: the file names none. */
static const json_t *language_model(const json_t *config, const char **type)
{
    *type = json_string_value(json_object_get(config, "model_type"));
    const struct composite *composite = *type ? composite_find(*type) : NULL;
    const json_t *text = json_object_get(config, "text_config");
    if (!composite || !json_is_object(text))
        return config;
    *type = json_string_value(json_object_get(text, "model_type"));
    *type = *type ? *type : composite->text;
    return text;
}

static bool is_on(const json_t *config, const char *field, bool missing)
{
    const json_t *value = json_object_get(config, field);
    return json_is_boolean(value) ? json_is_true(value) : missing;
}

/* Return the size of the heads that kernels compute with, some of whose elements may be zeros; 0: heads are larger. */
static int padded(int head_dim)
{
    static const int sizes[] = {64, 128, 256};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        if (head_dim <= sizes[i])
            return sizes[i];
    return 0;
}

/* Return the features of all blocks: those of the family, with those that fields switch. */
static unsigned features_of(const json_t *config, const struct family *family, bool padding)
{
    const bool biased = is_on(config, "attention_bias", (family->attention & family->biases) != 0);
    const bool mlp_bias = (family->fields & FIELDS_MLP_BIAS) && is_on(config, "mlp_bias", false);
    const bool capped = json_number_value(json_object_get(config, "final_logit_softcapping")) > 0;
    const double given = json_number_value(json_object_get(config, "partial_rotary_factor"));
    const double part = given > 0 ? given : family->rotary > 0 ? family->rotary : 1;
    const unsigned biases = biased ? family->biases : 0;
    return (family->attention & ~family->biases) | biases | family->mlp | family->recurrent |
           (mlp_bias ? FEATURE_BIT(FEATURE_MLP_BIAS) : 0) |
           (capped ? FEATURE_BIT(FEATURE_SOFTCAP) : 0) |
           (padding || family->neighbors || part != 1 ? FEATURE_BIT(FEATURE_HEAD_MAP) : 0);
}

static int read_head_dim(const json_t *config, const struct family *family, int *out)
{
    const int heads = integer(config, "num_attention_heads");
    *out = integer(config, "head_dim");
    if (!*out)
        *out = family->head_dim;
    if (!*out && heads)
        *out = integer(config, "hidden_size") / heads;
    return *out ? 0 : -1;
}

static int read_config(const json_t *file, struct model_keys *out, char why[WHY_BYTES])
{
    char supported[NAMES_BYTES];
    const char *type;
    const json_t *config = language_model(file, &type);
    const struct family *family = type ? family_find(type) : NULL;
    if (!family)
        return fail(why, "model_type is %.40s; %s", type ? type : "missing",
                    families_supported(supported));
    const char *field = family_act_field(family);
    const char *act = json_string_value(json_object_get(config, field));
    const char *missing = family->act ? family->act : hidden_acts[0].name;
    const int hidden_act = hidden_act_find(act ? act : missing);
    if (hidden_act < 0)
        return fail(why, "%s is %.40s; %s", field, act, hidden_acts_supported(supported));
    snprintf(out->model_type, sizeof(out->model_type), "%s", type);
    out->activation = (int)hidden_acts[hidden_act].kernels;
    if (read_head_dim(config, family, &out->head_dim))
        return fail(why, "gives neither head_dim nor hidden_size and num_attention_heads");
    out->kernel_dim = padded(out->head_dim);
    out->features = features_of(config, family, out->kernel_dim != out->head_dim) |
                    (out->activation == NJ_SILU ? FEATURE_BIT(FEATURE_SILU) : 0);
    return 0;
}

/* Return whether the op of a key serves a model with these features, as its contract says under `when`. */
static bool op_applies(const struct key *k, unsigned features)
{
    return !k->when || features_meet(features, k->when);
}

/* Return whether an axis of a key ("attn_fwd.lp.d64": ".d") has this value, or the key lacks it. */
static bool key_fits(const char *key, const char *axis, int value)
{
    const char *at = strstr(key, axis);
    return !at || strtol(at + strlen(axis), NULL, 10) == value;
}

static void mark_keys(struct model_keys *m, const struct key_table *keys, struct report *r)
{
    for (uint32_t i = 0; i < keys->count;) {
        const char *op = keys->keys[i].key;
        size_t op_bytes = strcspn(op, ".");
        bool applies = op_applies(&keys->keys[i], m->features), found = false;
        for (; i < keys->count && strcspn(keys->keys[i].key, ".") == op_bytes &&
               !memcmp(keys->keys[i].key, op, op_bytes);
             i++) {
            const char *key = keys->keys[i].key;
            m->used[i] = applies && key_fits(key, ".d", m->kernel_dim) &&
                         key_fits(key, ".act", m->activation);
            found = found || m->used[i];
        }
        if (applies && !found)
            report_add(r, "", "", "%.*s has no key for head size %d", (int)op_bytes, op,
                       m->head_dim);
    }
}

/* Set once an allocation of jansson has failed. All later ones then fail, too: jansson does not report the first, and
 * fails elsewhere if it continues with incomplete objects. */
static bool refused;
static void *allocate(size_t bytes)
{
    void *block = refused ? NULL : malloc(bytes);
    refused = !block;
    return block;
}

/* Read the bytes of a file, to be freed; return NULL with errno. */
static char *read_text(const char *path, size_t *bytes)
{
    enum { MOST = 16 << 20 };
    FILE *f = fopen(path, "rbe");
    char *text = f ? malloc(MOST) : NULL;
    *bytes = text ? fread(text, 1, MOST, f) : 0;
    if (text && ferror(f)) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return text;
}

static json_t *load_json(const char *path, char why[WHY_BYTES])
{
    json_error_t error;
    size_t bytes;
    bool no_memory = false;
    char *text = read_text(path, &bytes);
    json_t *config = text ? python_json_load(text, bytes, &no_memory, &error) : NULL;
    if (!config)
        fail(why, "%.100s: %.140s", path, text && !no_memory ? error.text : strerror(errno));
    free(text);
    return config;
}

static json_t *load_config(const char *path, bool folder, char why[WHY_BYTES])
{
    refused = false;
    json_set_alloc_funcs(allocate, free);
    json_t *config = (folder ? load_json : gguf_keys_load)(path, why);
    if (refused) {
        json_decref(config);
        config = NULL;
        fail(why, "%.100s: no memory to read it", path);
    }
    return config;
}

int model_keys_read(const char *model, const struct key_table *keys, struct model_keys *out,
                    struct report *r, char why[WHY_BYTES])
{
    char path[4096], reason[WHY_BYTES];
    *out = (struct model_keys){0};
    struct stat info;
    const bool folder = stat(model, &info) != 0 || S_ISDIR(info.st_mode);
    snprintf(path, sizeof(path), "%s%s", model, folder ? "/config.json" : "");
    json_t *config = load_config(path, folder, why);
    if (!config)
        return -1;
    int rc = read_config(config, out, reason);
    json_decref(config);
    if (rc != 0)
        return fail(why, "%.100s: %.140s", path, reason);
    out->used = calloc(keys->count, sizeof(*out->used));
    if (!out->used)
        return fail(why, "no memory for the keys of the model");
    mark_keys(out, keys, r);
    return 0;
}

void model_keys_free(struct model_keys *m)
{
    free(m->used);
    *m = (struct model_keys){0};
}
