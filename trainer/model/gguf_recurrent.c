/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_recurrent.c: see gguf_recurrent.h. llama.cpp takes layers of lfm2 without key heads for convolutions, and those
 * of qwen35 that full_attention_interval leaves for the delta rule.
 */
#include "model/gguf_recurrent.h"

#include "base/families.h"
#include "base/try.h"
#include "io/error.h"
#include "model/config_recurrent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_INTERVAL = 4, SECTIONS = 4 };
#define HEADS_KEY "attention.head_count_kv"
#define INTERVAL_KEY "full_attention_interval"

/* ---- reading ---- */

static void put_whole(struct gguf_source *s, const char *field, int64_t value)
{
    json_object_set_new(s->out, field, json_integer((json_int_t)value));
}

/* Read the number of key heads of each layer, 0 for those that have none; free() it. */
static int read_key_heads(const struct gguf_source *s, int64_t layers, int32_t **out)
{
    char key[128];
    size_t count = 0;
    int64_t one = json_integer_value(json_object_get(s->out, "num_attention_heads"));
    const struct gguf_value *v = gguf_find(s->g, gguf_key(s, HEADS_KEY, key));
    if (v && v->array) {
        TRY(gguf_ints(s->g, key, out, &count));
        if (count >= (size_t)layers)
            return 0;
        free(*out);
        return fail(NJ_E_FORMAT, "%s: %s is not one value for each of %lld layers; " GGUF_CONVERT,
                    s->g->path, key, (long long)layers);
    }
    TRY(gguf_int(s->g, key, one, &one));
    *out = calloc((size_t)layers, sizeof **out);
    if (!*out)
        return fail(NJ_E_NOMEM, "%s: out of memory for %lld layers", s->g->path, (long long)layers);
    for (int64_t l = 0; l < layers; l++)
        (*out)[l] = one > 0 && one <= CONFIG_SIZE_MOST ? (int32_t)one : -1;
    return 0;
}

/* Set layer_types and the number of key heads that all layers with attention have. interval 0: layers without key heads
 * are recurrent. */
static int put_layers(struct gguf_source *s, int64_t layers, int64_t interval,
                      const int32_t *key_heads)
{
    const char *recurrent = config_recurrent_type(family_find(s->arch->model_type));
    json_t *types = json_array();
    int32_t heads = 0;
    int rc = 0;
    for (int64_t l = 0; l < layers && rc == 0; l++) {
        const bool other = interval > 0 ? (l + 1) % interval != 0 : key_heads[l] == 0;
        json_array_append_new(types, json_string(other ? recurrent : "full_attention"));
        heads = heads == 0 && !other ? key_heads[l] : heads;
        if (!other && (key_heads[l] != heads || heads < 1))
            rc = fail(NJ_E_UNSUPPORTED,
                      "%s: %s." HEADS_KEY " is %d for layer %lld; use a model whose layers with "
                      "attention are alike",
                      s->g->path, s->arch->name, key_heads[l], (long long)l);
    }
    json_object_set_new(s->out, "layer_types", types);
    put_whole(s, "num_key_value_heads", heads);
    return rc;
}

/* Set fields from keys that each file must have. */
static int put_required(struct gguf_source *s, const char *const (*fields)[2], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t value;
        TRY(gguf_whole(s, fields[i][0], 0, &value));
        put_whole(s, fields[i][1], value);
    }
    return 0;
}

static int put_conv(struct gguf_source *s)
{
    static const char *const fields[][2] = {{"shortconv.l_cache", "conv_L_cache"}};
    json_object_set_new(s->out, "block_auto_adjust_ff_dim", json_false());
    return put_required(s, fields, 1);
}

static int put_delta(struct gguf_source *s)
{
    static const char *const fields[][2] = {{"ssm.conv_kernel", "linear_conv_kernel_dim"},
                                            {"ssm.state_size", "linear_key_head_dim"},
                                            {"ssm.group_count", "linear_num_key_heads"},
                                            {"ssm.time_step_rank", "linear_num_value_heads"}};
    int64_t inner;
    TRY(put_required(s, fields, sizeof fields / sizeof *fields));
    const json_int_t heads = json_integer_value(json_object_get(s->out, "linear_num_value_heads"));
    TRY(gguf_whole(s, "ssm.inner_size", 0, &inner));
    if (heads < 1 || inner % heads != 0)
        return fail(NJ_E_FORMAT,
                    "%s: %s.ssm.inner_size is %lld, not a multiple of ssm.time_step_rank "
                    "%lld; " GGUF_CONVERT,
                    s->g->path, s->arch->name, (long long)inner, (long long)heads);
    put_whole(s, "linear_value_head_dim", inner / heads);
    return 0;
}

/* Read the number of layers, without those that predict further tokens. */
static int read_layers(const struct gguf_source *s, int64_t *out)
{
    int64_t all = json_integer_value(json_object_get(s->out, "num_hidden_layers")), predict = 0;
    char key[128];
    if (s->arch->predicts)
        TRY(gguf_int(s->g, gguf_key(s, "nextn_predict_layers", key), 0, &predict));
    *out = predict < 0 || predict > all ? 0 : all - predict;
    if (*out > 0 && *out <= CONFIG_LAYERS_MOST)
        return 0;
    return fail(NJ_E_FORMAT,
                "%s: %s.block_count is %lld, of which %lld layers predict further tokens; 1 to %d "
                "others are supported: use another model",
                s->g->path, s->arch->name, (long long)all, (long long)predict, CONFIG_LAYERS_MOST);
}

int gguf_put_recurrent(struct gguf_source *s)
{
    int64_t layers, interval = 0;
    int32_t *key_heads = NULL;
    TRY(read_layers(s, &layers));
    put_whole(s, "num_hidden_layers", layers);
    if (s->arch->interval) {
        TRY(gguf_whole(s, INTERVAL_KEY, DEFAULT_INTERVAL, &interval));
        if (interval < 1)
            return fail(NJ_E_FORMAT, "%s: %s." INTERVAL_KEY " is %lld; it must be above 0",
                        s->g->path, s->arch->name, (long long)interval);
    }
    TRY(read_key_heads(s, layers, &key_heads));
    const int rc = put_layers(s, layers, interval, key_heads);
    free(key_heads);
    if (rc != 0)
        return rc;
    return family_find(s->arch->model_type)->fields & FIELDS_DELTA ? put_delta(s) : put_conv(s);
}

/* Return whether a pair of a head rotates by one of the first three coordinates, which are a text's position; the
 * fourth is 0 for texts. Pairs take turns of the three, as long as the section of each lasts. */
static bool by_position(const int32_t sections[SECTIONS], int64_t all, int64_t pair)
{
    const int64_t sector = pair % all;
    return sector < 3 * (int64_t)sections[sector % 3];
}

int gguf_check_sections(const struct gguf_source *s)
{
    char key[128];
    int32_t *list = NULL, each[SECTIONS] = {0};
    size_t count = 0;
    int64_t all = 0, rotary;
    const int64_t head_dim = json_integer_value(json_object_get(s->out, "head_dim"));
    TRY(gguf_int(s->g, gguf_key(s, "rope.dimension_count", key), head_dim, &rotary));
    TRY(gguf_ints(s->g, gguf_key(s, "rope.dimension_sections", key), &list, &count));
    for (size_t i = 0; i < count && i < SECTIONS; i++)
        each[i] = list[i];
    free(list);
    bool whole = count == SECTIONS;
    for (int i = 0; i < SECTIONS; i++) {
        whole = whole && each[i] >= 0;
        all += each[i];
    }
    for (int64_t pair = 0; whole && all > 0 && pair < rotary / 2 && pair < all; pair++)
        whole = by_position(each, all, pair);
    if (whole && all > 0)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: %s is not four sections by which all pairs of a head rotate in a text; use "
                "another model",
                s->g->path, key);
}

/* ---- writing ---- */

/* Return the interval that says which layers have attention; 0: none does. */
static int interval_of(const struct model_config *c)
{
    int first = 0;
    while (first < c->layers && !arch_block(&c->arch, first, BLOCK_ATTENTION))
        first++;
    for (int l = 0; l < c->layers; l++)
        if ((arch_recurrent(&c->arch, l) == NULL) != ((l + 1) % (first + 1) == 0))
            return 0;
    return first + 1;
}

static const struct block *first_recurrent(const struct model_config *c)
{
    int l = 0;
    while (l < c->layers && !arch_recurrent(&c->arch, l))
        l++;
    return l < c->layers ? arch_recurrent(&c->arch, l) : NULL;
}

const char *gguf_recurrent_differs(const struct gguf_arch *a, const struct model_config *c)
{
    const struct family *family = family_find(a->model_type);
    const struct block *first = first_recurrent(c);
    if (!a->recurrent)
        return first ? "layers are recurrent" : NULL;
    if (!first)
        return "no layer is recurrent";
    if (a->interval && interval_of(c) == 0)
        return "layers with attention are not each last one of an equal number of layers";
    for (int l = 0; l < c->layers; l++) {
        const struct block *b = arch_recurrent(&c->arch, l);
        if (b && (b->features & ~family->recurrent) != 0)
            return "recurrent layers have another feature beside those of the family";
        if (b && (b->heads != first->heads || b->kv_heads != first->kv_heads ||
                  b->head_dim != first->head_dim || b->taps != first->taps ||
                  b->channels != first->channels))
            return "recurrent layers differ in their sizes";
    }
    return NULL;
}

static void put_key(struct gguf_writer *w, const struct gguf_arch *a, const char *name, int value)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", a->name, name);
    gguf_put_u32(w, key, (uint32_t)value);
}

/* Write key heads by layer, or one number for all where an interval tells the layers. */
static void describe_layers(struct gguf_writer *w, const struct gguf_arch *a,
                            const struct model_config *c)
{
    int32_t each[CONFIG_LAYERS_MOST];
    char key[128];
    if (a->interval) {
        put_key(w, a, INTERVAL_KEY, interval_of(c));
        put_key(w, a, HEADS_KEY, arch_attention(&c->arch, c->layers)->kv_heads);
        return;
    }
    for (int l = 0; l < c->layers; l++) {
        const struct block *b = arch_block(&c->arch, l, BLOCK_ATTENTION);
        each[l] = b ? b->kv_heads : 0;
    }
    snprintf(key, sizeof key, "%s." HEADS_KEY, a->name);
    gguf_put_i32s(w, key, each, (size_t)c->layers);
}

void gguf_describe_recurrent(struct gguf_writer *w, const struct gguf_arch *a,
                             const struct model_config *c)
{
    static const int32_t sections[SECTIONS] = {11, 11, 10, 0}; /* published models have these */
    const struct block *b = first_recurrent(c);
    char key[128];
    describe_layers(w, a, c);
    if (b->kind == BLOCK_CONV) {
        put_key(w, a, "shortconv.l_cache", b->taps);
        return;
    }
    put_key(w, a, "ssm.conv_kernel", b->taps);
    put_key(w, a, "ssm.state_size", b->head_dim);
    put_key(w, a, "ssm.group_count", b->kv_heads);
    put_key(w, a, "ssm.time_step_rank", b->heads);
    put_key(w, a, "ssm.inner_size", b->heads * b->head_dim);
    snprintf(key, sizeof key, "%s.rope.dimension_sections", a->name);
    gguf_put_i32s(w, key, sections, SECTIONS);
}
