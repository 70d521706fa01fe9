/* SPDX-License-Identifier: Apache-2.0
 *
 * config_layers.c: see config_layers.h. Where layer_types is missing, layers have the types that the configuration
 * classes of transformers 5.24 give them.
 */
#include "model/config_layers.h"

#include "base/check.h"
#include "base/try.h"
#include "io/error.h"
#include "model/config_experts.h"
#include "model/config_recurrent.h"
#include "model/config_rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Row of arch.rope for layers whose rotation differs from that of the others. */
enum { ROPE_OTHER = 1 };

/* Layers as they are read. */
struct reading {
    const struct fields *f;
    const struct family *family;
    struct model_config *c;
    int window;                  /* 0: none */
    bool windowed[LAYERS_MOST];  /* whether a layer has the window */
    bool unrotated[LAYERS_MOST]; /* whether it does not rotate */
    bool other[LAYERS_MOST];     /* whether it follows the second table */
    bool sparse[LAYERS_MOST];    /* whether it has `experts` in place of its MLP */
    bool recurrent[LAYERS_MOST]; /* whether it has `mixer` in place of attention */
    struct block experts, mixer;
};

/* ---- windows ---- */

static bool is_switched(const struct family *family)
{
    return family->windows == WINDOW_FROM || family->windows == WINDOW_UNROTATED;
}

/* Return whether some layers may have a window, and others not. */
static bool can_have_window(const struct reading *r)
{
    return r->family->windows != WINDOW_NONE && r->family->windows != WINDOW_ALL;
}

/* Refuse a window of a family that has none, unless it is switched off. */
static int refuse_window(const struct fields *f, json_t *window)
{
    if (!window || json_is_false(field_get(f, "use_sliding_window")))
        return 0;
    return field_refuse(f, NJ_E_UNSUPPORTED, "sliding_window", window,
                        "models of this family have no windows; set it to null if the model is the "
                        "same without it");
}

/* Read the window. Only null is no window where it is not switched; an absent field has the family's value. */
static int read_window(struct reading *r)
{
    static const char name[] = "sliding_window";
    const struct family *family = r->family;
    json_t *value = json_object_get(r->f->object, name);
    bool on = true;
    if (family->windows == WINDOW_NONE)
        return refuse_window(r->f, field_get(r->f, name));
    if (is_switched(family))
        TRY(field_bool(r->f, "use_sliding_window", false, &on));
    if (!on || (json_is_null(value) && family->rotation != ROTATION_BY_WINDOW))
        return 0;
    r->window = family->window;
    if (!value)
        return 0;
    const json_int_t window = json_integer_value(value);
    if (!json_is_integer(value) || window < 1)
        return field_refuse(r->f, NJ_E_FORMAT, name, value,
                            json_is_null(value) ? "it must be a whole number above 0"
                                                : "it must be a whole number above 0, or null");
    r->window = window < r->c->max_positions ? (int)window : r->c->max_positions;
    return 0;
}

/* Read how many layers a pattern of windows has: a number, or as many letters, of which the last is that of the layer
 * without a window. */
static int read_period(const struct reading *r, int *out)
{
    static const char *const names[] = {"sliding_window_pattern", "_sliding_window_pattern"};
    const char *name = field_get(r->f, names[0]) ? names[0] : names[1];
    json_t *value = field_get(r->f, name);
    const char *letters = json_string_value(value);
    *out = r->family->period;
    if (!(r->family->fields & FIELDS_PATTERN))
        return 0;
    if (!letters)
        return field_int(r->f, name, r->family->period, out);
    *out = (int)strnlen(letters, LAYERS_MOST);
    if (*out > 0 && strspn(letters, "L") + 1 == (size_t)*out && letters[*out - 1] == 'G' &&
        r->c->layers % *out == 0)
        return 0;
    return field_refuse(r->f, NJ_E_UNSUPPORTED, name, value,
                        "it must be a number, or L for each layer with a window and G for the last "
                        "of the pattern, and the layers must be a multiple; list them in "
                        "layer_types");
}

/* Read from which layer on the layers have the window; it may be 0. */
static int read_first(const struct reading *r, int *out)
{
    enum { FIRST = 28 }; /* default of Qwen2 and Qwen3 */
    static const char name[] = "max_window_layers";
    json_t *value = field_get(r->f, name);
    *out = 0;
    if (json_is_integer(value) && json_integer_value(value) == 0)
        return 0;
    return field_int(r->f, name, FIRST, out);
}

static bool follows_period(const struct family *family)
{
    return family->windows == WINDOW_BUT_LAST || family->windows == WINDOW_BUT_FIRST ||
           family->windows == WINDOW_TO_LAST;
}

/* Set which layers have the window where nothing lists them. */
static int follow_rule(struct reading *r)
{
    int period = 1, first = 0;
    if (follows_period(r->family))
        TRY(read_period(r, &period));
    if (r->family->windows == WINDOW_FROM)
        TRY(read_first(r, &first));
    for (int l = 0; l < r->c->layers && r->window > 0; l++)
        r->windowed[l] = r->family->windows == WINDOW_BUT_LAST    ? (l + 1) % period != 0
                         : r->family->windows == WINDOW_BUT_FIRST ? l % period != 0
                         : r->family->windows == WINDOW_TO_LAST
                             ? (r->c->layers - 1 - l) % period != 0
                         : r->family->windows == WINDOW_UNROTATED ? r->unrotated[l]
                                                                  : l >= first;
    return 0;
}

static int refuse_type(const struct reading *r, const char *name, const json_t *type)
{
    const char *recurrent = config_recurrent_type(r->family);
    char remedy[REMEDY_BYTES];
    if (can_have_window(r) || recurrent)
        snprintf(remedy, sizeof remedy,
                 "full_attention and %s are supported; use a model of such layers",
                 recurrent ? recurrent : "sliding_attention");
    else
        snprintf(remedy, sizeof remedy,
                 "only full_attention is supported in this family; use a model of such layers");
    return field_refuse(r->f, NJ_E_UNSUPPORTED, name, type, remedy);
}

static int read_listed(struct reading *r, json_t *types)
{
    static const char name[] = "layer_types";
    const char *recurrent = config_recurrent_type(r->family);
    const bool can = can_have_window(r);
    size_t l;
    json_t *type;
    if (!json_is_array(types) || json_array_size(types) != (size_t)r->c->layers)
        return field_refuse(r->f, NJ_E_FORMAT, name, types,
                            "it must be a list with the type of each layer");
    json_array_foreach(types, l, type)
    {
        const char *text = json_string_value(type);
        const bool windowed = text && strcmp(text, "sliding_attention") == 0;
        if (windowed && can && r->window == 0)
            return field_refuse(r->f, NJ_E_FORMAT, name, type,
                                "no window is given, or it is switched off; correct sliding_window "
                                "or use_sliding_window");
        r->recurrent[l] = text && recurrent && strcmp(text, recurrent) == 0;
        r->windowed[l] = windowed;
        if (r->recurrent[l])
            continue;
        if (!text ||
            !(windowed ? can
                       : strcmp(text, "full_attention") == 0 || strcmp(text, "attention") == 0))
            return refuse_type(r, name, type);
    }
    if (r->family->windows != WINDOW_ALL || r->window == 0)
        return 0;
    return field_refuse(r->f, NJ_E_UNSUPPORTED, name, types,
                        "in this family sliding_window is that of every layer; remove one of them");
}

static int read_windowed(struct reading *r)
{
    json_t *types = field_get(r->f, "layer_types");
    if (types)
        return read_listed(r, types);
    if (r->family->recurrent != 0)
        return config_recurrent_layers(r->f, r->family, r->c, r->recurrent);
    if (r->family->fields & FIELDS_HYBRID)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: layer_types is missing, so all layers are recurrent; use a model whose "
                    "layers are attention",
                    r->f->file->path);
    return follow_rule(r);
}

/* ---- rotations ---- */

/* Read which layers rotate; no_rope_layers has 1 for these. */
static int read_unrotated(struct reading *r)
{
    static const char name[] = "no_rope_layers";
    json_t *list = field_get(r->f, name);
    int interval;
    TRY(field_int(r->f, "no_rope_layer_interval", r->family->period, &interval));
    if (list && (!json_is_array(list) || json_array_size(list) < (size_t)r->c->layers))
        return field_refuse(r->f, NJ_E_FORMAT, name, list,
                            "it must be a list with a number for each layer");
    for (int l = 0; l < r->c->layers; l++) {
        const json_t *value = json_array_get(list, (size_t)l);
        const json_int_t rotates = list ? (json_is_integer(value) ? json_integer_value(value) : -1)
                                        : (l + 1) % interval != 0;
        if (rotates != 0 && rotates != 1)
            return field_refuse(r->f, NJ_E_FORMAT, name, value,
                                "it must be 1 for a layer that rotates, or 0");
        r->unrotated[l] = rotates == 0;
    }
    return 0;
}

/* Read whether anything rotates. */
static int read_named(struct reading *r)
{
    static const char name[] = "position_embedding_type";
    json_t *value = field_get(r->f, name);
    const char *text = json_string_value(value);
    if (value && (!text || (strcmp(text, "rope") != 0 && strcmp(text, "nope") != 0)))
        return field_refuse(r->f, NJ_E_UNSUPPORTED, name, value,
                            "rope and nope are supported; use another model");
    for (int l = 0; l < r->c->layers; l++)
        r->unrotated[l] = !value || strcmp(text, "nope") == 0;
    return 0;
}

/* Return the table with that base, which is added if there is none; ROPES_MOST: there is no room. */
static int table_of(double *bases, double base)
{
    int table = 0;
    while (table < ROPES_MOST && bases[table] > 0 && bases[table] != base)
        table++;
    if (table < ROPES_MOST)
        bases[table] = base;
    return table;
}

/* Set which layers do not rotate where nothing lists them. */
static void follow_zeros(struct reading *r)
{
    for (int l = 0; l < r->c->layers && r->family->rotation == ROTATION_ZEROS; l++)
        r->unrotated[l] = (r->c->layers - 1 - l) % r->family->period == 0;
}

/* Set the bases of the tables. */
static int set_bases(const struct reading *r, const char *name, const json_t *list,
                     const double bases[ROPES_MOST])
{
    struct rope *rope = r->c->arch.rope;
    const bool one = bases[0] == 0 || (bases[0] == rope[0].theta && bases[ROPE_OTHER] == 0);
    if (r->family->rotation == ROTATION_ZEROS && !one)
        return field_refuse(r->f, NJ_E_UNSUPPORTED, name, list,
                            "layers of this family that rotate do so by rope_theta; use a model "
                            "with this base alone");
    for (int i = 0; i < ROPES_MOST; i++)
        if (bases[i] > 0) {
            rope[i] = rope[0];
            rope[i].theta = bases[i];
        }
    return 0;
}

/* Read the base of each layer, of which there are two at most, with 0 for layers that do not rotate. */
static int read_bases(struct reading *r)
{
    static const char name[] = "layer_rope_theta";
    json_t *list = field_get(r->f, name);
    double bases[ROPES_MOST] = {0};
    bool still = false, many = false;
    if (!list) {
        follow_zeros(r);
        return 0;
    }
    if (!json_is_array(list) || json_array_size(list) < (size_t)r->c->layers)
        return field_refuse(r->f, NJ_E_FORMAT, name, list,
                            "it must be a list with a number for each layer");
    for (int l = 0; l < r->c->layers; l++) {
        const json_t *value = json_array_get(list, (size_t)l);
        const double base = json_is_number(value) ? json_number_value(value) : -1;
        if (!(base >= 0) || !isfinite(base))
            return field_refuse(r->f, NJ_E_FORMAT, name, value,
                                "it must be the base of a layer, or 0 if it does not rotate");
        const int table = base > 0 ? table_of(bases, base) : 0;
        r->unrotated[l] = base == 0;
        r->other[l] = table == ROPE_OTHER;
        still = still || base == 0;
        many = many || table == ROPES_MOST;
    }
    if (many || (still && bases[ROPE_OTHER] > 0))
        return field_refuse(r->f, NJ_E_UNSUPPORTED, name, list,
                            "at most two different bases are supported, 0 among them; use another "
                            "model");
    return set_bases(r, name, list, bases);
}

/* Set which layers do not rotate because others have a window. */
static void leave_unrotated(struct reading *r)
{
    for (int l = 0; l < r->c->layers; l++)
        r->unrotated[l] = r->window > 0 && !r->windowed[l];
}

/* ---- kinds of layers ---- */

/* Return the row of a kind, which is added if there is none like it. */
static int kind_of(struct arch *a, const struct layer *layer, int *kinds)
{
    int k = 0;
    while (k < *kinds && !layers_are_alike(&a->kind[k], layer))
        k++;
    CHECK(k < LAYER_KINDS_MOST);
    if (k == *kinds)
        a->kind[(*kinds)++] = *layer;
    return k;
}

static void make_kinds(const struct reading *r)
{
    struct arch *a = &r->c->arch;
    const struct layer plain = a->kind[0];
    const int window = r->window < r->c->max_positions ? r->window : 0;
    const bool two = r->family->rotation == ROTATION_BY_WINDOW;
    int kinds = 0;
    for (int l = 0; l < r->c->layers; l++) {
        struct layer layer = plain;
        struct block *b = &layer.block[PLAIN_ATTENTION];
        b->window = r->windowed[l] ? window : 0;
        b->rope = r->unrotated[l] || r->other[l] || (two && r->windowed[l]) ? ROPE_OTHER : 0;
        if (r->unrotated[l])
            a->rope[ROPE_OTHER] = (struct rope){.theta = a->rope[0].theta, .rule = ROPE_NONE};
        if (r->recurrent[l])
            layer.block[PLAIN_ATTENTION] = r->mixer;
        if (r->sparse[l])
            layer.block[PLAIN_GLU] = r->experts;
        a->kind_of[l] = (uint8_t)kind_of(a, &layer, &kinds);
    }
}

int config_layers(const struct fields *f, const struct family *family, struct model_config *c)
{
    struct reading r = {.f = f, .family = family, .c = c};
    TRY(config_ropes(f, family, c));
    if (c->layers > LAYERS_MOST)
        return 0; /* config_check() refuses so many */
    if (family->rotation == ROTATION_LISTED)
        TRY(read_unrotated(&r));
    if (family->fields & FIELDS_BASES)
        TRY(read_bases(&r));
    if (family->rotation == ROTATION_NAMED)
        TRY(read_named(&r));
    TRY(read_window(&r));
    TRY(read_windowed(&r));
    if (family->rotation == ROTATION_WINDOWED)
        leave_unrotated(&r);
    if (family->mlp & FEATURE_BIT(FEATURE_EXPERTS)) {
        TRY(config_experts(f, family, c, &c->arch.kind[0].block[PLAIN_GLU], &r.experts, r.sparse));
        TRY(config_balance(f, &c->balance));
    }
    if (family->recurrent != 0)
        TRY(config_recurrent(f, family, c, &r.mixer));
    make_kinds(&r);
    return 0;
}
