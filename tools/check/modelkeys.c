/* SPDX-License-Identifier: Apache-2.0
 *
 * modelkeys.c: which keys a model uses. Most ops serve every model; the tables here say what
 * depends on a switch.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "check/blobcheck.h"

static const struct {
    const char *model_type;
    bool qkv_bias, qk_norm;
    int head_dim; /* when config.json leaves it out; 0: hidden_size / num_attention_heads */
} families[] = {
    {"llama", false, false, 0},
    {"mistral", false, false, 0},
    {"qwen2", true, false, 0},
    {"qwen3", false, true, 128},
};

enum op_condition { WITH_QK_NORM, WITHOUT_QK_NORM };

/* Ops that only some models use. */
static const struct {
    const char *op;
    enum op_condition when;
} conditional_ops[] = {
    {"qknorm_rope_bwd", WITH_QK_NORM},
    {"qknorm_rope_fwd", WITH_QK_NORM},
    {"rope_bwd", WITHOUT_QK_NORM},
    {"rope_fwd", WITHOUT_QK_NORM},
};

static int integer(const json_t *config, const char *field)
{
    json_int_t value = json_integer_value(json_object_get(config, field));
    return value > 0 && value < 1 << 30 ? (int)value : 0;
}

static int read_config(const json_t *config, struct model_keys *out, char why[WHY_BYTES])
{
    const size_t count = sizeof(families) / sizeof(*families);
    const char *type = json_string_value(json_object_get(config, "model_type"));
    size_t i = 0;
    while (i < count && (!type || strcmp(families[i].model_type, type) != 0))
        i++;
    if (i == count)
        return fail(why, "model_type is %.40s; known are llama, mistral, qwen2, qwen3",
                    type ? type : "missing");
    snprintf(out->model_type, sizeof(out->model_type), "%s", type);
    out->qkv_bias = families[i].qkv_bias;
    out->qk_norm = families[i].qk_norm;
    out->head_dim = integer(config, "head_dim");
    if (!out->head_dim)
        out->head_dim = families[i].head_dim;
    int heads = integer(config, "num_attention_heads");
    if (!out->head_dim && heads)
        out->head_dim = integer(config, "hidden_size") / heads;
    if (!out->head_dim)
        return fail(why, "gives neither head_dim nor hidden_size and num_attention_heads");
    return 0;
}

static bool op_applies(const struct model_keys *m, const char *op, size_t op_bytes)
{
    const bool holds[] = {[WITH_QK_NORM] = m->qk_norm, [WITHOUT_QK_NORM] = !m->qk_norm};
    for (size_t i = 0; i < sizeof(conditional_ops) / sizeof(*conditional_ops); i++)
        if (strlen(conditional_ops[i].op) == op_bytes &&
            !memcmp(conditional_ops[i].op, op, op_bytes))
            return holds[conditional_ops[i].when];
    return true;
}

/* Head size in a key ("attn_fwd.lp.d64": 64), 0 if it has none. */
static int key_head_dim(const char *key)
{
    const char *d = strstr(key, ".d");
    return d ? (int)strtol(d + 2, NULL, 10) : 0;
}

static void mark_keys(struct model_keys *m, const struct key_table *keys, struct report *r)
{
    for (uint32_t i = 0; i < keys->count;) {
        const char *op = keys->keys[i].key;
        size_t op_bytes = strcspn(op, ".");
        bool applies = op_applies(m, op, op_bytes), found = false;
        for (; i < keys->count && strcspn(keys->keys[i].key, ".") == op_bytes &&
               !memcmp(keys->keys[i].key, op, op_bytes);
             i++) {
            int head_dim = key_head_dim(keys->keys[i].key);
            m->used[i] = applies && (!head_dim || head_dim == m->head_dim);
            found = found || m->used[i];
        }
        if (applies && !found)
            report_add(r, "", "", "%.*s has no key for head size %d", (int)op_bytes, op,
                       m->head_dim);
    }
}

/* Jansson does not say when memory runs out, and trips over some of what it could not store: after
 * the first refusal come others. */
static bool refused;
static void *allocate(size_t bytes)
{
    void *block = refused ? NULL : malloc(bytes);
    refused = !block;
    return block;
}

static json_t *load_config(const char *path, char why[WHY_BYTES])
{
    json_error_t error;
    refused = false;
    json_set_alloc_funcs(allocate, free);
    json_t *config = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (refused) {
        json_decref(config);
        config = NULL;
        fail(why, "%.100s: no memory to read it", path);
    } else if (!config) {
        fail(why, "%.100s: %.140s", path, error.line < 0 ? strerror(errno) : error.text);
    }
    return config;
}

int model_keys_read(const char *dir, const struct key_table *keys, struct model_keys *out,
                    struct report *r, char why[WHY_BYTES])
{
    char path[4096], reason[WHY_BYTES];
    *out = (struct model_keys){0};
    snprintf(path, sizeof(path), "%s/config.json", dir);
    json_t *config = load_config(path, why);
    if (!config)
        return -1;
    int rc = read_config(config, out, reason);
    json_decref(config);
    if (rc)
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
