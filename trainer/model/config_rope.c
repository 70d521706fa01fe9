/* SPDX-License-Identifier: Apache-2.0
 *
 * config_rope.c: see config_rope.h. Which object counts, and what a key does, is as in modeling_rope_utils.py of
 * transformers 5.24.
 */
#include "model/config_rope.h"

#include "base/try.h"
#include "io/error.h"
#include "io/notes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* One table as it is read. */
struct reading {
    const struct fields *f; /* fields of the model */
    struct fields in;       /* keys of the table's object */
    const char *name;       /* name of the object */
    bool nested;            /* whether the object is one of several */
    const struct family *family;
    struct model_config *c;
    struct rope *out;
};

/* ---- keys ---- */

/* Keys that transformers reads from the object, for these types or for others. */
static const struct rope_key {
    const char *name;
    unsigned group; /* group of fields that a family must have for it; 0: all have it */
} rope_keys[] = {
    {"rope_type", 0},
    {"type", 0},
    {"rope_theta", 0},
    {"partial_rotary_factor", 0},
    {"factor", 0},
    {"low_freq_factor", 0},
    {"high_freq_factor", 0},
    {"original_max_position_embeddings", 0},
    {"attention_factor", 0},
    {"beta_fast", 0},
    {"beta_slow", 0},
    {"short_factor", 0},
    {"long_factor", 0},
    {"truncate", 0},
    {"mscale", 0},
    {"mscale_all_dim", 0},
    {"alpha", FIELDS_HUNYUAN},
    {"llama_4_scaling_beta", FIELDS_BETA},
    /* images have three positions for a row; those of text are equal */
    {"mrope_interleaved", FIELDS_DELTA},
    {"mrope_section", FIELDS_DELTA},
    {"max_position_embeddings", FIELDS_BETA},
};

static bool is_key(const struct family *family, const char *name)
{
    for (size_t i = 0; i < sizeof rope_keys / sizeof *rope_keys; i++)
        if (strcmp(rope_keys[i].name, name) == 0)
            return (rope_keys[i].group & ~family->fields) == 0;
    return false;
}

static int refuse_key(const struct reading *r, int code, const char *key, const json_t *value,
                      const char *remedy)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", r->name, key);
    return field_refuse(r->f, code, name, value, remedy);
}

static int refuse_keys(const struct reading *r)
{
    const char *key;
    json_t *value;
    json_object_foreach(r->in.object, key, value)
    {
        if (!is_key(r->family, key))
            return refuse_key(r, NJ_E_UNSUPPORTED, key, value,
                              "this key is not known; use a model without it");
    }
    return 0;
}

/* Read the number of positions of the original model. The object and the model may both have it, then it is the same.
 * missing 0: one of them must. */
static int read_original(const struct reading *r, int missing)
{
    static const char name[] = "original_max_position_embeddings";
    int *out = &r->out->scaling.original_positions, outer;
    json_t *said = field_get(r->f, name);
    const int family = r->family->original_positions;
    const bool fixed = said || family > 0;
    if (fixed)
        TRY(field_int(r->f, name, family, &missing));
    TRY(field_int(&r->in, name, missing, out));
    outer = fixed ? missing : *out;
    if (outer == *out)
        return 0;
    return field_refuse(r->f, NJ_E_FORMAT, name, said ? said : field_get(&r->in, name),
                        said ? "the scaling of positions has another; keep one of them"
                             : "the model must have the same field beside the scaling");
}

/* ---- types ---- */

static int read_factor(const struct reading *r, double missing, double *out)
{
    TRY(field_number(&r->in, "factor", missing, out));
    r->out->scaling.factor = (float)*out;
    return 0;
}

static int read_linear(const struct reading *r)
{
    double factor;
    return read_factor(r, NAN, &factor);
}

/* Read a scaling that grows with sequences beyond max_position_embeddings, which are refused: there is none. With alpha
 * it is the same for all sequences. */
static int read_dynamic(const struct reading *r)
{
    const json_t *value = field_get(&r->in, "alpha");
    double factor, alpha;
    if (!value || (json_is_number(value) && json_number_value(value) == 0))
        return field_number(&r->in, "factor", NAN, &factor);
    TRY(field_number(&r->in, "alpha", NAN, &alpha));
    r->out->rule = ROPE_NTK;
    r->out->alpha = (float)alpha;
    return 0;
}

static int read_llama3(const struct reading *r)
{
    struct rope_scaling *out = &r->out->scaling;
    double factor, low, high;
    TRY(read_factor(r, NAN, &factor));
    TRY(field_number(&r->in, "low_freq_factor", NAN, &low));
    TRY(field_number(&r->in, "high_freq_factor", NAN, &high));
    TRY(read_original(r, 0));
    out->low_freq_factor = (float)low;
    out->high_freq_factor = (float)high;
    if (!(high > low))
        return field_refuse(r->f, NJ_E_FORMAT, r->name, r->in.object,
                            "high_freq_factor must be above low_freq_factor");
    return 0;
}

/* Read the factor that turns longer: attention_factor, or what follows from the other keys. */
static int read_amplitude(const struct reading *r, double missing)
{
    static const char name[] = "attention_factor";
    double amplitude;
    TRY(field_number(&r->in, name, missing, &amplitude));
    r->out->amplitude = (float)amplitude;
    if (r->out->amplitude > 0 && isfinite(r->out->amplitude))
        return 0;
    return field_refuse(r->f, NJ_E_FORMAT, r->name, r->in.object,
                        "no attention_factor follows from it; correct its numbers");
}

/* Read a weight of YaRN's temperature; 0: there is none. */
static int read_weight(const struct reading *r, const char *name, double *out)
{
    json_t *value = field_get(&r->in, name);
    *out = json_number_value(value);
    if (!value || (json_is_number(value) && *out >= 0))
        return 0;
    return refuse_key(r, NJ_E_FORMAT, name, value, "it must be a number, 0 or more");
}

/* YaRN's temperature with a weight, 0.1 m ln(factor) + 1. */
static double temperature(double factor, double m)
{
    return factor > 1 ? 0.1 * m * log(factor) + 1 : 1;
}

static int read_yarn(const struct reading *r)
{
    double factor, fast, slow, amplitude, m, all;
    TRY(read_factor(r, NAN, &factor));
    TRY(read_original(r, r->c->max_positions));
    TRY(field_number(&r->in, "beta_fast", 32, &fast));
    TRY(field_number(&r->in, "beta_slow", 1, &slow));
    TRY(read_weight(r, "mscale", &m));
    TRY(read_weight(r, "mscale_all_dim", &all));
    TRY(field_bool(&r->in, "truncate", true, &r->out->truncate));
    if (!r->out->truncate && r->nested)
        return refuse_key(
            r, NJ_E_UNSUPPORTED, "truncate", json_false(),
            "transformers reads it of a scaling for all layers alone; set it to true");
    amplitude = (double)rope_natural_amplitude(r->out);
    if (m != 0 && all != 0)
        amplitude = temperature(factor, m) / temperature(factor, all);
    r->out->beta_fast = (float)fast;
    r->out->beta_slow = (float)slow;
    return read_amplitude(r, amplitude);
}

static int read_divisors(const struct reading *r, const char *name, float *out)
{
    const int pairs = rope_rotary(r->out, r->c->arch.kind[0].block[PLAIN_ATTENTION].head_dim) / 2;
    json_t *list = field_get(&r->in, name);
    char remedy[96];
    snprintf(remedy, sizeof remedy, "it must be a list of %d numbers above 0", pairs);
    if (!json_is_array(list) || json_array_size(list) != (size_t)pairs || pairs > ROPE_PAIRS_MOST)
        return refuse_key(r, NJ_E_FORMAT, name, list, remedy);
    for (int i = 0; i < pairs; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        out[i] = (float)json_number_value(value);
        if (!(out[i] > 0) || !isfinite(out[i]))
            return refuse_key(r, NJ_E_FORMAT, name, value, remedy);
    }
    return 0;
}

static int read_longrope(const struct reading *r)
{
    double factor;
    TRY(read_original(r, r->c->max_positions));
    TRY(read_factor(r, (double)r->c->max_positions / r->out->scaling.original_positions, &factor));
    TRY(read_divisors(r, "short_factor", r->out->short_factor));
    TRY(read_divisors(r, "long_factor", r->out->long_factor));
    return read_amplitude(r, (double)rope_natural_amplitude(r->out));
}

static const struct rope_type {
    const char *name;
    unsigned group; /* group of fields of the families that have this name; 0: all have it */
    enum rope_rule rule;
    int (*read)(const struct reading *r); /* NULL: nothing to read */
} types[] = {
    {"default", 0, ROPE_DEFAULT, NULL},
    {"linear", 0, ROPE_LINEAR, read_linear},
    {"dynamic", 0, ROPE_DEFAULT, read_dynamic},
    {"su", FIELDS_LONGROPE, ROPE_LONGROPE, read_longrope},
    {"yarn", FIELDS_LONGROPE, ROPE_LONGROPE, read_longrope},
    {"yarn", 0, ROPE_YARN, read_yarn},
    {"longrope", 0, ROPE_LONGROPE, read_longrope},
    {"llama3", 0, ROPE_LLAMA3, read_llama3},
};

static int refuse_type(const struct reading *r, const json_t *type)
{
    char remedy[REMEDY_BYTES];
    return refuse_key(
        r, NJ_E_UNSUPPORTED,
        type == json_object_get(r->in.object, "rope_type") ? "rope_type" : "type", type,
        field_supported(r->f, "default, linear, dynamic, yarn, longrope and llama3 are supported",
                        strcmp(r->name, "rope_scaling") == 0
                            ? "without scaling, set rope_scaling to null and stay within the "
                              "original positions"
                            : "without scaling, set it to default and stay within the original "
                              "positions",
                        remedy));
}

static int read_type(const struct reading *r)
{
    json_t *type = field_get(&r->in, "rope_type");
    if (!type)
        type = field_get(&r->in, "type");
    const char *name = type ? json_string_value(type) : "default";
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) != 0 || (types[i].group & ~r->family->fields) != 0)
            continue;
        r->out->rule = types[i].rule;
        return types[i].read ? types[i].read(r) : 0;
    }
    return refuse_type(r, type);
}

/* ---- tables ---- */

/* Read how many elements of a head rotate: a part of them, which the object says, or the model, or the family. */
static int read_rotary(const struct reading *r)
{
    static const char name[] = "partial_rotary_factor";
    const int head_dim = r->c->arch.kind[0].block[PLAIN_ATTENTION].head_dim;
    const bool inner = field_get(&r->in, name) != NULL;
    const struct fields *in = inner ? &r->in : r->f;
    double part;
    TRY(field_number(in, name, r->family->rotary > 0 ? r->family->rotary : 1, &part));
    if (part != 1 && !(r->family->fields & FIELDS_ROTARY))
        return field_refuse(in, NJ_E_UNSUPPORTED, name, field_get(in, name),
                            "only 1 is supported: use a model that rotates whole heads");
    const int rotary = part <= 1 ? (int)(head_dim * part) : 0;
    if (rotary < 2 || rotary % 2 != 0)
        return field_refuse(in, NJ_E_UNSUPPORTED, name, field_get(in, name),
                            "an even number of elements of each head must rotate");
    r->out->rotary = rotary < head_dim ? rotary : 0;
    r->out->neighbors = r->family->neighbors;
    return 0;
}

/* Read a factor of the queries that grows where positions reach a multiple of the original ones, and is 1 before. */
static int read_beta(const struct reading *r)
{
    static const char name[] = "llama_4_scaling_beta";
    json_t *beta = field_get(&r->in, name);
    const int original = r->out->scaling.original_positions;
    if (!beta || (json_is_number(beta) && json_number_value(beta) == 0))
        return 0;
    if (!json_is_number(beta) || r->out->rule != ROPE_YARN)
        return refuse_key(r, NJ_E_UNSUPPORTED, name, beta,
                          "it must be a number, and the type yarn; use a model without it");
    r->out->query_beta = (float)json_number_value(beta);
    if (original < r->c->max_positions)
        note("%s: %s is %g, which changes nothing in the first %d positions; sequences may have "
             "these",
             r->f->file->path, field_called(r->f->file, name).text, json_number_value(beta),
             original);
    return 0;
}

/* Read a table from its object; NULL: there is none. */
static int read_table(struct reading *r, json_t *object, const char *name, double theta,
                      struct rope *out)
{
    r->in = (struct fields){r->f->file, object};
    r->name = name;
    r->out = out;
    TRY(field_number(&r->in, "rope_theta", theta, &out->theta));
    TRY(refuse_keys(r));
    TRY(read_rotary(r));
    TRY(read_type(r));
    return read_beta(r);
}

/* Get the object in a field; NULL: it is absent, or empty. */
static int get_object(const struct fields *f, const char *name, json_t **out)
{
    *out = field_get(f, name);
    if (*out && !json_is_object(*out))
        return field_refuse(f, NJ_E_FORMAT, name, *out, "it must be an object or null");
    if (json_object_size(*out) == 0)
        *out = NULL;
    return 0;
}

static const char full[] = "full_attention", windowed[] = "sliding_attention";

/* Read the one table of a model. Version 4 of transformers has rope_theta and rope_scaling side by side, 5 puts both
 * into rope_parameters, or into an object in it for each type of layer, but still prefers rope_scaling. */
static int read_one(struct reading *r, json_t *scaling, json_t *parameters, double theta)
{
    json_t *object = scaling ? scaling : parameters;
    json_t *inner = json_object_get(object, full), *other = json_object_get(object, windowed);
    const char *name = scaling ? "rope_scaling" : "rope_parameters";
    r->nested = json_is_object(inner);
    if (r->nested && other && !json_is_null(other) && !json_equal(inner, other))
        return field_refuse(r->f, NJ_E_UNSUPPORTED, name, object,
                            "layers of this family rotate alike; use a model whose layers do");
    return read_table(r, r->nested ? inner : object, name, theta, &r->c->arch.rope[0]);
}

/* Read a table for each type of layer. rope_scaling adds to that of the layers without a window. */
static int read_two(struct reading *r, json_t *scaling, json_t *parameters, double theta)
{
    static const char *const names[] = {"rope_parameters.full_attention",
                                        "rope_parameters.sliding_attention"};
    const char *key;
    json_t *value;
    double local = r->family->window_theta > 0 ? r->family->window_theta : theta;
    json_object_foreach(parameters, key, value)
    {
        if ((strcmp(key, full) != 0 && strcmp(key, windowed) != 0) ||
            !(json_is_object(value) || json_is_null(value)))
            return field_refuse(r->f, NJ_E_FORMAT, "rope_parameters", parameters,
                                "it must have an object for full_attention and one for "
                                "sliding_attention");
    }
    r->nested = true;
    TRY(field_number(r->f, "rope_local_base_freq", local, &local));
    value = json_object_get(parameters, full);
    json_t *merged = json_is_object(value) ? json_copy(value) : json_object();
    if (!merged || json_object_update(merged, scaling ? scaling : merged) != 0) {
        json_decref(merged);
        return fail(NJ_E_NOMEM, "%s: out of memory", r->f->file->path);
    }
    int rc = read_table(r, merged, scaling ? "rope_scaling" : names[0], theta, &r->c->arch.rope[0]);
    json_decref(merged);
    value = json_object_get(parameters, windowed);
    if (rc == 0)
        rc = read_table(r, json_is_object(value) ? value : NULL, names[1], local,
                        &r->c->arch.rope[1]);
    return rc;
}

int config_ropes(const struct fields *f, const struct family *family, struct model_config *c)
{
    struct reading r = {.f = f, .family = family, .c = c};
    json_t *scaling, *parameters;
    double theta;
    TRY(get_object(f, "rope_scaling", &scaling));
    TRY(get_object(f, "rope_parameters", &parameters));
    TRY(field_number(f, "rope_theta", family->rope_theta, &theta));
    if (family->rope_needed && !scaling && !parameters)
        return fail(NJ_E_FORMAT, "%s: %s is missing; %s", f->file->path,
                    field_called(f->file, "rope_parameters").text,
                    field_remedy(f->file, "add it as the model's documentation gives it"));
    return family->rotation == ROTATION_BY_WINDOW ? read_two(&r, scaling, parameters, theta)
                                                  : read_one(&r, scaling, parameters, theta);
}
