/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_rope.c: see gguf_rope.h.
 */
#include "model/gguf_rope.h"

#include "base/try.h"
#include "io/error.h"
#include "model/gguf_recurrent.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables ---- */

struct gguf_tables gguf_rope_tables(const struct model_config *c)
{
    struct gguf_tables t = {-1, -1, 0};
    for (int l = 0; l < c->layers; l++) {
        const struct block *b = arch_block(&c->arch, l, BLOCK_ATTENTION);
        if (!b || c->arch.rope[b->rope].rule == ROPE_NONE)
            continue;
        t.full = t.full < 0 || b->rope < t.full ? b->rope : t.full;
        t.windowed = b->rope > t.windowed ? b->rope : t.windowed;
        t.head_dim = b->head_dim;
    }
    if (t.windowed == t.full)
        t.windowed = -1;
    return t;
}

static const struct rope *full_table(const struct model_config *c)
{
    return &c->arch.rope[gguf_rope_tables(c).full];
}

int gguf_rope_count(const struct model_config *c)
{
    const struct gguf_tables t = gguf_rope_tables(c);
    return t.full < 0 ? 0 : rope_rotary(&c->arch.rope[t.full], t.head_dim) / 2;
}

/* ---- Llama 3's rule ---- */

void gguf_rope_freqs(const struct model_config *c, float *divisors)
{
    const int count = gguf_rope_count(c);
    for (int i = 0; i < count; i++)
        divisors[i] = (float)(1 / rope_slowing(full_table(c), 2 * count, i, c->max_positions));
}

/* Factors of Llama 3 that no file gives, and the original context if the divisors leave it open. */
enum { LOW_FREQ_FACTOR = 1, HIGH_FREQ_FACTOR = 4, ORIGINAL_POSITIONS = 8192 };

/* Return the original context from a divisor between 1 and factor, each of which belongs to one context alone. */
static int original_positions(const struct model_config *c, const float *divisor, double factor)
{
    const int count = gguf_rope_count(c);
    for (int i = 0; i < count; i++) {
        if (!(divisor[i] > 1 && divisor[i] < factor))
            continue;
        const double blend = (1 / (double)divisor[i] - 1 / factor) / (1 - 1 / factor);
        const double turns = LOW_FREQ_FACTOR + blend * (HIGH_FREQ_FACTOR - LOW_FREQ_FACTOR);
        const double positions =
            turns * 6.283185307179586 / rope_frequency(full_table(c), 2 * count, i);
        return positions < CONFIG_SIZE_MOST ? (int)lround(positions) : CONFIG_SIZE_MOST;
    }
    return ORIGINAL_POSITIONS;
}

/* Let the table have Llama 3's rule; llama.cpp reads it for no architecture that has two. */
static void set_llama3(struct model_config *c, const struct rope_scaling *scaling)
{
    struct rope *r = &c->arch.rope[gguf_rope_tables(c).full];
    r->rule = ROPE_LLAMA3;
    r->scaling = *scaling;
}

/* Largest relative difference of divisors. They were computed in float32: 1e-6 of a frequency is at most 1e-5 of its
 * divisor, at factor 32. */
#define AGREEMENT 1e-4

int gguf_read_rope_freqs(const char *path, const struct tensors *w, struct model_config *c)
{
    float divisor[ROPE_PAIRS_MOST], rule[ROPE_PAIRS_MOST], factor = 1;
    const int count = gguf_rope_count(c);
    const struct tensor *t = tensors_find(w, GGUF_ROPE_FREQS);
    if (!t)
        return 0;
    if (t->dtype != NJ_TYPE_F32 || t->rank != 1 || t->shape[0] != count)
        return fail(NJ_E_FORMAT,
                    "%s: tensor " GGUF_ROPE_FREQS " is not %d numbers of F32; fetch "
                    "the file again",
                    path, count);
    const enum rope_rule found = count > 0 ? full_table(c)->rule : ROPE_DEFAULT;
    if (found != ROPE_DEFAULT && found != ROPE_LLAMA3)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tensor " GGUF_ROPE_FREQS
                    " and the metadata both scale positions; use another model",
                    path);
    tensor_to_f32(t, 0, count, divisor);
    for (int i = 0; i < count; i++)
        factor = divisor[i] > factor ? divisor[i] : factor;
    if (factor > 1 && found == ROPE_DEFAULT) {
        const int positions = original_positions(c, divisor, (double)factor);
        set_llama3(c, &(struct rope_scaling){factor, LOW_FREQ_FACTOR, HIGH_FREQ_FACTOR, positions});
    }
    gguf_rope_freqs(c, rule);
    for (int i = 0; i < count; i++)
        if (!(fabs((double)divisor[i] / (double)rule[i] - 1) <= AGREEMENT))
            return fail(NJ_E_UNSUPPORTED,
                        "%s: tensor " GGUF_ROPE_FREQS
                        " divides frequency %d by %g, where Llama 3's "
                        "rule has %g; other scaled positions are not supported: use another model",
                        path, i, (double)divisor[i], (double)rule[i]);
    return 0;
}

/* ---- keys ---- */

static bool is_text(struct gguf_text text, const char *name)
{
    return text.text && text.bytes == strlen(name) && memcmp(text.text, name, text.bytes) == 0;
}

/* Set a field of the scaling to a key's number, if the file has the key. */
static int put_number(const struct gguf_source *s, json_t *scaling, const char *name,
                      const char *field)
{
    char key[128];
    double value;
    if (!gguf_find(s->g, gguf_key(s, name, key)))
        return 0;
    TRY(gguf_positive(s, name, NAN, &value));
    json_object_set_new(scaling, field, json_real(value));
    return 0;
}

static const char original[] = "original_max_position_embeddings";

/* Set the number of positions before scaling, all of them unless the file says otherwise. */
static int put_original(const struct gguf_source *s, json_t *scaling)
{
    char key[128];
    int64_t positions;
    const json_int_t all = json_integer_value(json_object_get(s->out, "max_position_embeddings"));
    TRY(gguf_int(s->g, gguf_key(s, "rope.scaling.original_context_length", key), (int64_t)all,
                 &positions));
    json_object_set_new(scaling, original, json_integer((json_int_t)positions));
    return 0;
}

/* Set the factor of rotated elements. By llama.cpp it is 1 + 0.1 ln(factor), times attn_factor; with a multiplier m of
 * the logarithm, that divided by 1 + 0.1 m ln(factor), as transformers has it where mscale is 1. */
static int put_amplitude(const struct gguf_source *s, json_t *scaling, double factor)
{
    char key[128];
    double more;
    TRY(gguf_positive(s, "rope.scaling.attn_factor", 1, &more));
    if (more != 1)
        json_object_set_new(scaling, "attention_factor", json_real(more * (1 + 0.1 * log(factor))));
    else
        TRY(put_number(s, scaling, "rope.scaling.yarn_attn_factor", "attention_factor"));
    if (!gguf_find(s->g, gguf_key(s, "rope.scaling.yarn_log_multiplier", key)))
        return 0;
    if (json_object_get(scaling, "attention_factor"))
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s and a factor of the attention are both there; " GGUF_CONVERT,
                    s->g->path, key);
    json_object_set_new(scaling, "mscale", json_real(1));
    return put_number(s, scaling, "rope.scaling.yarn_log_multiplier", "mscale_all_dim");
}

static int put_yarn(const struct gguf_source *s, json_t *scaling)
{
    char key[128];
    double factor, extrapolation;
    TRY(gguf_positive(s, "rope.scaling.factor", NAN, &factor));
    TRY(gguf_number(s->g, gguf_key(s, "rope.scaling.yarn_ext_factor", key), 1, &extrapolation));
    if (extrapolation != 1)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is %g, and models are computed with 1; use another model", s->g->path,
                    key, extrapolation);
    json_object_set_new(scaling, "rope_type", json_string("yarn"));
    json_object_set_new(scaling, "factor", json_real(factor));
    if (s->arch->unrounded)
        json_object_set_new(scaling, "truncate", json_false());
    TRY(put_original(s, scaling));
    TRY(put_number(s, scaling, "rope.scaling.yarn_beta_fast", "beta_fast"));
    TRY(put_number(s, scaling, "rope.scaling.yarn_beta_slow", "beta_slow"));
    TRY(put_number(s, scaling, TEMPERATURE_KEY, "llama_4_scaling_beta"));
    return put_amplitude(s, scaling, factor);
}

static int put_divisors(const struct gguf_source *s, json_t *scaling, const char *name,
                        const char *field)
{
    float divisor[ROPE_PAIRS_MOST];
    const struct tensor *t = tensors_find(&s->g->tensors, name);
    if (!t || t->dtype != NJ_TYPE_F32 || t->rank != 1 || t->shape[0] > ROPE_PAIRS_MOST)
        return fail(NJ_E_FORMAT, "%s: tensor %s is not at most %d numbers of F32; " GGUF_CONVERT,
                    s->g->path, name, ROPE_PAIRS_MOST);
    tensor_to_f32(t, 0, t->shape[0], divisor);
    json_t *list = json_array();
    for (int64_t i = 0; i < t->shape[0]; i++)
        if (isfinite(divisor[i]))
            json_array_append_new(list, json_real((double)divisor[i]));
    const bool whole = json_array_size(list) == (size_t)t->shape[0];
    json_object_set_new(scaling, field, list);
    return whole ? 0
                 : fail(NJ_E_FORMAT, "%s: tensor %s has a number that is not finite; " GGUF_CONVERT,
                        s->g->path, name);
}

static int put_longrope(const struct gguf_source *s, json_t *scaling)
{
    json_object_set_new(scaling, "rope_type", json_string("longrope"));
    TRY(put_divisors(s, scaling, GGUF_ROPE_SHORT, "short_factor"));
    TRY(put_divisors(s, scaling, GGUF_ROPE_LONG, "long_factor"));
    TRY(put_original(s, scaling));
    /* Phi-3 has it beside the scaling, MiniCPM in it. */
    json_object_set(s->out, original, json_object_get(scaling, original));
    return put_number(s, scaling, "rope.scaling.attn_factor", "attention_factor");
}

/* Set the scaling; the object stays empty where positions are not scaled. */
static int put_scaling(const struct gguf_source *s, json_t *scaling)
{
    char key[128];
    struct gguf_text type;
    double factor, amplitude;
    TRY(gguf_string(s->g, gguf_key(s, "rope.scaling.type", key), &type));
    if (is_text(type, "yarn"))
        return put_yarn(s, scaling);
    if (is_text(type, "longrope") || tensors_find(&s->g->tensors, GGUF_ROPE_LONG))
        return put_longrope(s, scaling);
    if (type.text && !is_text(type, "linear") && !is_text(type, "none"))
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is %.*s; none, linear, yarn and longrope are read: use another model",
                    s->g->path, key, gguf_shown(type), type.text);
    TRY(gguf_number(s->g, gguf_key(s, "rope.scaling.attn_factor", key), 1, &amplitude));
    if (amplitude != 1)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is %g, and models are computed with 1; use another model", s->g->path,
                    key, amplitude);
    TRY(gguf_number(s->g, gguf_key(s, "rope.scale_linear", key), 0, &factor));
    TRY(gguf_number(s->g, gguf_key(s, "rope.scaling.factor", key), factor, &factor));
    if (is_text(type, "none") || factor == 0 || factor == 1)
        return 0;
    TRY(gguf_positive(s, "rope.scaling.factor", factor, &factor));
    json_object_set_new(scaling, "rope_type", json_string("linear"));
    json_object_set_new(scaling, "factor", json_real(factor));
    return 0;
}

/* Refuse another theta of layers with a window, where the family has one for all layers; and positions of several
 * dimensions. */
static int refuse_others(const struct gguf_source *s, double theta)
{
    char key[128];
    double other;
    int32_t *each = NULL;
    size_t count = 0;
    bool several = false;
    TRY(gguf_number(s->g, gguf_key(s, "rope.freq_base_swa", key), theta, &other));
    if (other != theta && !json_object_get(s->out, "rope_local_base_freq"))
        return fail(NJ_E_UNSUPPORTED, "%s: %s is %g, and rope.freq_base %g; use another model",
                    s->g->path, key, other, theta);
    if (s->arch->sections)
        return gguf_check_sections(s);
    TRY(gguf_ints(s->g, gguf_key(s, "rope.dimension_sections", key), &each, &count));
    for (size_t i = 0; i < count; i++)
        several = several || each[i] != 0;
    free(each);
    return several ? fail(NJ_E_UNSUPPORTED,
                          "%s: %s says that positions have several dimensions; only those of text "
                          "are supported: use a language model",
                          s->g->path, key)
                   : 0;
}

/* Set the share of a head that rotates. */
static int put_partial(struct gguf_source *s)
{
    char key[128];
    int64_t rotary;
    const int64_t head_dim = (int64_t)json_integer_value(json_object_get(s->out, "head_dim"));
    TRY(gguf_int(s->g, gguf_key(s, "rope.dimension_count", key), head_dim, &rotary));
    if (rotary < 2 || rotary > head_dim || rotary % 2 != 0)
        return fail(NJ_E_FORMAT, "%s: %s is %lld; it must be an even number up to %lld", s->g->path,
                    key, (long long)rotary, (long long)head_dim);
    json_object_set_new(s->out, "partial_rotary_factor",
                        json_real((double)rotary / (double)head_dim));
    return 0;
}

int gguf_put_rope(struct gguf_source *s)
{
    double theta;
    TRY(gguf_positive(s, "rope.global.freq_base", 1e4, &theta)); /* as Ollama writes Gemma 3 */
    TRY(gguf_positive(s, "rope.freq_base", theta, &theta));
    json_object_set_new(s->out, "rope_theta", json_real(theta));
    TRY(refuse_others(s, theta));
    if (s->arch->partial)
        TRY(put_partial(s));
    json_t *scaling = json_object();
    const int rc = put_scaling(s, scaling);
    if (rc == 0 && json_object_size(scaling) > 0)
        json_object_set(s->out, "rope_scaling", scaling);
    json_decref(scaling);
    return rc;
}
