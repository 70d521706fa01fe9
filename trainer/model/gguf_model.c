/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_model.c: see gguf_model.h.
 */
#include "model/gguf_model.h"

#include "base/families.h"
#include "base/try.h"
#include "formats/gguf.h"
#include "io/error.h"
#include "model/config_from.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONVERT "fetch or convert the model again"

/* ---- tables ---- */

/* Names of tensors, after "blk.N." for those of a layer. */
static const struct role_name {
    const char *name;
    const char *fused; /* tensor that may hold it, after those before it */
} names[ROLE_COUNT] = {
    [ROLE_EMBED] = {"token_embd.weight", NULL},
    [ROLE_INPUT_NORM] = {"attn_norm.weight", NULL},
    [ROLE_Q_WEIGHT] = {"attn_q.weight", "attn_qkv.weight"},
    [ROLE_K_WEIGHT] = {"attn_k.weight", "attn_qkv.weight"},
    [ROLE_V_WEIGHT] = {"attn_v.weight", "attn_qkv.weight"},
    [ROLE_Q_BIAS] = {"attn_q.bias", "attn_qkv.bias"},
    [ROLE_K_BIAS] = {"attn_k.bias", "attn_qkv.bias"},
    [ROLE_V_BIAS] = {"attn_v.bias", "attn_qkv.bias"},
    [ROLE_Q_NORM] = {"attn_q_norm.weight", NULL},
    [ROLE_K_NORM] = {"attn_k_norm.weight", NULL},
    [ROLE_O_WEIGHT] = {"attn_output.weight", NULL},
    [ROLE_FFN_NORM] = {"ffn_norm.weight", NULL},
    [ROLE_GATE_WEIGHT] = {"ffn_gate.weight", NULL},
    [ROLE_UP_WEIGHT] = {"ffn_up.weight", NULL},
    [ROLE_DOWN_WEIGHT] = {"ffn_down.weight", NULL},
    [ROLE_FINAL_NORM] = {"output_norm.weight", NULL},
    [ROLE_HEAD] = {"output.weight", NULL},
};

const char *gguf_arch(const char *model_type)
{
    const struct family *family = family_find(model_type);
    return family ? family->gguf : NULL;
}

static void name_in_layer(int layer, const char *name, char out[128])
{
    if (layer >= 0)
        snprintf(out, 128, "blk.%d.%s", layer, name);
    else
        snprintf(out, 128, "%s", name);
}

void gguf_tensor_name(const struct tensor_spec *spec, char out[128])
{
    name_in_layer(spec->layer, names[spec->role].name, out);
}

bool gguf_rotates_pairs(const struct model_config *c)
{
    const struct family *family = family_find(c->model_type);
    return family && family->gguf_pairs;
}

int gguf_pairs(const struct model_config *c, const struct tensor_spec *spec)
{
    const bool q = spec->role == ROLE_Q_WEIGHT || spec->role == ROLE_Q_BIAS;
    const bool k = spec->role == ROLE_K_WEIGHT || spec->role == ROLE_K_BIAS;
    if (!(q || k) || !gguf_rotates_pairs(c))
        return 0;
    const struct block *b = arch_block(&c->arch, spec->layer, BLOCK_ATTENTION);
    return q ? b->heads : b->kv_heads;
}

void gguf_rope_freqs(const struct model_config *c, float *divisors)
{
    const int count = config_frequencies(c, 1);
    for (int i = 0; i < count; i++)
        divisors[i] = (float)(1 / rope_slowing(&c->arch.rope[0], 2 * count, i, c->max_positions));
}

/* ---- metadata ---- */

struct fields {
    const struct gguf *g;
    const char *arch;
};

/* Write the key of a field: "llama.block_count". */
static const char *key_of(const struct fields *f, const char *name, char out[128])
{
    snprintf(out, 128, "%s.%s", f->arch, name);
    return out;
}

/* Read the one value of an array that has it for each layer. */
static int read_equal(const struct fields *f, const char *key, int64_t *out)
{
    int32_t *each = NULL;
    size_t count = 0;
    int rc = gguf_ints(f->g, key, &each, &count);
    if (rc == 0 && count == 0)
        rc = fail(NJ_E_FORMAT, "%s: %s is empty; fetch the file again", f->g->path, key);
    for (size_t i = 1; i < count && rc == 0; i++)
        if (each[i] != each[0])
            rc = fail(NJ_E_UNSUPPORTED,
                      "%s: %s is %d for layer 0 and %d for layer %zu; use a model whose layers are "
                      "alike",
                      f->g->path, key, each[0], each[i], i);
    if (rc == 0)
        *out = each[0];
    free(each);
    return rc;
}

/* Read a whole number from 1 to INT_MAX. missing 0: the key is required. */
static int read_int(const struct fields *f, const char *name, int missing, int *out)
{
    char key[128];
    const struct gguf_value *v = gguf_find(f->g, key_of(f, name, key));
    int64_t value = missing;
    if (!v && missing == 0)
        return fail(NJ_E_FORMAT, "%s: %s is missing; " CONVERT, f->g->path, key);
    TRY(v && v->array ? read_equal(f, key, &value) : gguf_int(f->g, key, missing, &value));
    if (value < 1 || value > INT_MAX)
        return fail(NJ_E_FORMAT, "%s: %s is %lld; it must be a whole number above 0", f->g->path,
                    key, (long long)value);
    *out = (int)value;
    return 0;
}

/* Read a number above 0, in float32 too; missing NAN: the key is required. */
static int read_number(const struct fields *f, const char *name, double missing, double *out)
{
    char key[128];
    TRY(gguf_number(f->g, key_of(f, name, key), missing, out));
    if (!gguf_find(f->g, key) && isnan(missing))
        return fail(NJ_E_FORMAT, "%s: %s is missing; " CONVERT, f->g->path, key);
    if (!((float)*out > 0) || !isfinite((float)*out))
        return fail(NJ_E_FORMAT, "%s: %s is %g; it must be a number above 0 that float32 can hold",
                    f->g->path, key, *out);
    return 0;
}

/* Find the first family that files of this architecture are read as. */
static int read_arch(const struct gguf *g, const struct family **out)
{
    char supported[NAMES_BYTES] = "";
    struct gguf_text arch;
    TRY(gguf_string(g, "general.architecture", &arch));
    for (int i = 0; i < FAMILIES && arch.text; i++)
        if (strlen(families[i].gguf) == arch.bytes &&
            memcmp(families[i].gguf, arch.text, arch.bytes) == 0) {
            *out = &families[i];
            return 0;
        }
    for (int i = 0; i < FAMILIES; i++)
        if (i == 0 || strcmp(families[i].gguf, families[i - 1].gguf) != 0)
            name_append(supported, families[i].gguf, i, FAMILIES);
    if (!arch.text)
        return fail(NJ_E_FORMAT, "%s: general.architecture is missing; %s", g->path, supported);
    return fail(NJ_E_UNSUPPORTED, "%s: general.architecture is %.*s; %s", g->path, gguf_shown(arch),
                arch.text, supported);
}

static int read_sizes(const struct fields *f, struct model_config *c, struct block *blocks)
{
    struct block *attention = &blocks[PLAIN_ATTENTION];
    TRY(read_int(f, "context_length", 0, &c->max_positions));
    TRY(read_int(f, "embedding_length", 0, &c->hidden_size));
    TRY(read_int(f, "block_count", 0, &c->layers));
    TRY(read_int(f, "feed_forward_length", 0, &blocks[PLAIN_GLU].ffn_size));
    TRY(read_int(f, "attention.head_count", 0, &attention->heads));
    TRY(read_int(f, "attention.head_count_kv", attention->heads, &attention->kv_heads));
    if (c->hidden_size < attention->heads)
        return fail(NJ_E_FORMAT, "%s: embedding_length is %d, less than attention.head_count %d",
                    f->g->path, c->hidden_size, attention->heads);
    return read_int(f, "attention.key_length", c->hidden_size / attention->heads,
                    &attention->head_dim);
}

/* Refuse sizes other than head_dim where they can only be head_dim. */
static int refuse_other_heads(const struct fields *f, int head_dim)
{
    static const struct {
        const char *name, *remedy;
    } same[] = {
        {"attention.value_length", "use a model whose keys and values are of one size"},
        {"rope.dimension_count", "use a model that rotates whole heads"},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        int size;
        TRY(read_int(f, same[i].name, head_dim, &size));
        if (size != head_dim)
            return fail(NJ_E_UNSUPPORTED, "%s: %s.%s is %d, and heads are of %d; %s", f->g->path,
                        f->arch, same[i].name, size, head_dim, same[i].remedy);
    }
    return 0;
}

/* Refuse numbers that llama.cpp computes with, unless they change nothing. */
static int refuse_numbers(const struct fields *f)
{
    static const struct {
        const char *name;
        double neutral;
    } rows[] = {{"logit_scale", 1},     {"final_logit_softcapping", 0},
                {"residual_scale", 1},  {"rope.scaling.attn_factor", 1},
                {"embedding_scale", 1}, {"attention.scale", 0}};
    char key[128];
    double value;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TRY(gguf_number(f->g, key_of(f, rows[i].name, key), rows[i].neutral, &value));
        if (value != rows[i].neutral)
            return fail(NJ_E_UNSUPPORTED,
                        "%s: %s is %g, and models are computed with %g; use another model",
                        f->g->path, key, value, rows[i].neutral);
    }
    return 0;
}

/* Refuse a file of adapters or of an importance matrix, which is no model. */
static int refuse_kind(const struct gguf *g)
{
    struct gguf_text type;
    TRY(gguf_string(g, "general.type", &type));
    if (!type.text || (type.bytes == 5 && memcmp(type.text, "model", 5) == 0))
        return 0;
    return fail(NJ_E_UNSUPPORTED, "%s: general.type is %.*s; name the file of a model", g->path,
                gguf_shown(type), type.text);
}

/* Read the window; files with one are read as the family that has windows. */
static int read_window(const struct fields *f, struct model_config *c, struct block *attention)
{
    char key[128];
    int64_t window;
    const struct family *family = family_of_windows(f->arch);
    TRY(gguf_int(f->g, key_of(f, "attention.sliding_window", key), 0, &window));
    if (window < 1 || window >= c->max_positions)
        return 0;
    if (!family)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is %lld; sliding windows are not supported for this architecture; use "
                    "a model without one",
                    f->g->path, key, (long long)window);
    snprintf(c->model_type, sizeof c->model_type, "%s", family->model_type);
    attention->window = (int)window;
    return 0;
}

static int refuse_features(const struct fields *f)
{
    char key[128];
    int64_t experts;
    bool causal;
    TRY(refuse_numbers(f));
    TRY(gguf_bool(f->g, key_of(f, "attention.causal", key), true, &causal));
    if (!causal)
        return fail(NJ_E_UNSUPPORTED, "%s: %s is false; use a causal model", f->g->path, key);
    TRY(gguf_int(f->g, key_of(f, "expert_count", key), 0, &experts));
    if (experts > 1)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is %lld; mixtures of experts are not supported; use a dense model",
                    f->g->path, key, (long long)experts);
    return 0;
}

/* Read an id of tokenizer.ggml; -1 if there is none. */
static int read_token(const struct gguf *g, const char *key, int *out)
{
    int64_t id;
    TRY(gguf_int(g, key, -1, &id));
    if (id < -1 || id > INT_MAX)
        return fail(NJ_E_FORMAT, "%s: %s is %lld, not a token id; fetch the file again", g->path,
                    key, (long long)id);
    *out = (int)id;
    return 0;
}

static int read_vocab(const struct fields *f, struct model_config *c)
{
    const struct tensor *embed = tensors_find(&f->g->tensors, names[ROLE_EMBED].name);
    const int64_t rows = embed ? embed->shape[0] : 0;
    if (rows < 1 || rows > INT_MAX)
        return fail(NJ_E_FORMAT, "%s: tensor %s is missing; fetch the file again", f->g->path,
                    names[ROLE_EMBED].name);
    c->tied = !tensors_find(&f->g->tensors, names[ROLE_HEAD].name);
    return read_int(f, "vocab_size", (int)rows, &c->vocab_size);
}

/* ---- rotary positions ---- */

/* Refuse scaling that is named; only Llama 3's rule comes as a tensor. */
static int refuse_scaling(const struct fields *f)
{
    char key[128];
    struct gguf_text type;
    double factor;
    TRY(gguf_string(f->g, key_of(f, "rope.scaling.type", key), &type));
    if (type.text && type.bytes == 4 && memcmp(type.text, "none", 4) == 0)
        return 0;
    const bool linear = !type.text || (type.bytes == 6 && memcmp(type.text, "linear", 6) == 0);
    TRY(gguf_number(f->g, key_of(f, "rope.scale_linear", key), 0, &factor));
    TRY(gguf_number(f->g, key_of(f, "rope.scaling.factor", key), factor, &factor));
    if (linear && (factor == 0 || factor == 1))
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: %s.rope.scaling is %.*s, factor %g; of scaled positions only those of Llama 3 "
                "are supported: use a file of the model without scaling",
                f->g->path, f->arch, linear ? 6 : gguf_shown(type), linear ? "linear" : type.text,
                factor);
}

/* Factors of Llama 3 that no file gives, and the original context if the divisors leave it open. */
enum { LOW_FREQ_FACTOR = 1, HIGH_FREQ_FACTOR = 4, ORIGINAL_POSITIONS = 8192 };

/* Return the original context from a divisor between 1 and factor, each of which belongs to one context alone. */
static int original_positions(const struct model_config *c, const float *divisor, double factor)
{
    const int count = config_frequencies(c, 1);
    for (int i = 0; i < count; i++) {
        if (!(divisor[i] > 1 && divisor[i] < factor))
            continue;
        const double blend = (1 / (double)divisor[i] - 1 / factor) / (1 - 1 / factor);
        const double turns = LOW_FREQ_FACTOR + blend * (HIGH_FREQ_FACTOR - LOW_FREQ_FACTOR);
        const double positions =
            turns * 6.283185307179586 / rope_frequency(&c->arch.rope[0], 2 * count, i);
        return positions < CONFIG_SIZE_MOST ? (int)lround(positions) : CONFIG_SIZE_MOST;
    }
    return ORIGINAL_POSITIONS;
}

/* Largest relative difference of divisors. They were computed in float32: 1e-6 of a frequency is at most 1e-5 of its
 * divisor, at factor 32. */
#define AGREEMENT 1e-4

int gguf_read_rope_freqs(const char *path, const struct tensors *w, struct model_config *c)
{
    float divisor[CONFIG_HEAD_DIM_MOST / 2], rule[CONFIG_HEAD_DIM_MOST / 2], factor = 1;
    const int count = config_frequencies(c, 1);
    const struct tensor *t = tensors_find(w, GGUF_ROPE_FREQS);
    if (!t)
        return 0;
    if (t->dtype != NJ_TYPE_F32 || t->rank != 1 || t->shape[0] != count)
        return fail(NJ_E_FORMAT,
                    "%s: tensor " GGUF_ROPE_FREQS " is not %d numbers of F32; fetch "
                    "the file again",
                    path, count);
    tensor_to_f32(t, 0, count, divisor);
    for (int i = 0; i < count; i++)
        factor = divisor[i] > factor ? divisor[i] : factor;
    if (factor > 1) {
        const int positions = original_positions(c, divisor, (double)factor);
        c->arch.rope[0].rule = ROPE_LLAMA3;
        c->arch.rope[0].scaling =
            (struct rope_scaling){factor, LOW_FREQ_FACTOR, HIGH_FREQ_FACTOR, positions};
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

/* ---- a model's configuration ---- */

/* Check that the file has biases of queries, keys and values exactly if the family has: they depend on the family here,
 * and on the file in GGUF. */
static int check_biases(const struct gguf *g, const struct family *family)
{
    const struct role_name *q = &names[ROLE_Q_BIAS];
    char name[128], fused[128];
    name_in_layer(0, q->name, name);
    name_in_layer(0, q->fused, fused);
    const bool there = tensors_find(&g->tensors, name) || tensors_find(&g->tensors, fused);
    const bool wanted = (family->attention & FEATURE_BIT(FEATURE_QKV_BIAS)) != 0;
    if (there && !wanted)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tensor %s: biases of this family are not supported; use a model without "
                    "them",
                    g->path, name);
    if (!there && wanted)
        return fail(NJ_E_FORMAT, "%s: tensor %s is missing; " CONVERT, g->path, name);
    return 0;
}

/* Return GGUF's name for a field of a config.json. */
static struct config_name name_of(const void *of, const char *field)
{
    static const char *const known[][2] = {
        {"hidden_size", "embedding_length"},
        {"intermediate_size", "feed_forward_length"},
        {"num_hidden_layers", "block_count"},
        {"num_attention_heads", "attention.head_count"},
        {"num_key_value_heads", "attention.head_count_kv"},
        {"head_dim", "attention.key_length"},
        {"max_position_embeddings", "context_length"},
        {"vocab_size", "vocab_size"},
        {"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
        {"rope_theta", "rope.freq_base"},
    };
    const struct fields *f = of;
    struct config_name out;
    snprintf(out.text, sizeof out.text, "tokenizer.ggml.%s", field);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i][0], field) == 0)
            snprintf(out.text, sizeof out.text, "%s.%s", f->arch, known[i][1]);
    return out;
}

static int read_config(const struct gguf *g, struct model_config *c)
{
    const struct family *family = NULL;
    double eps;
    TRY(refuse_kind(g));
    TRY(read_arch(g, &family));
    const struct fields f = {g, family->gguf};
    *c = (struct model_config){0};
    struct block *blocks = config_plain_layers(c, family->model_type);
    TRY(read_sizes(&f, c, blocks));
    TRY(refuse_other_heads(&f, blocks[PLAIN_ATTENTION].head_dim));
    TRY(read_window(&f, c, &blocks[PLAIN_ATTENTION]));
    TRY(refuse_features(&f));
    TRY(refuse_scaling(&f));
    TRY(read_number(&f, "attention.layer_norm_rms_epsilon", NAN, &eps));
    TRY(read_number(&f, "rope.freq_base", 1e4, &c->arch.rope[0].theta));
    TRY(read_vocab(&f, c));
    TRY(check_biases(g, family));
    TRY(read_token(g, "tokenizer.ggml.bos_token_id", &c->bos_id));
    TRY(read_token(g, "tokenizer.ggml.eos_token_id", &c->eos_id));
    c->rms_eps = (float)eps;
    TRY(config_check_file(c, &(struct config_file){g->path, name_of, &f, CONVERT}));
    return gguf_read_rope_freqs(g->path, &g->tensors, c);
}

int gguf_config(const char *path, struct model_config *out)
{
    struct gguf g;
    int rc = gguf_open(path, &g);
    if (rc != 0)
        return rc;
    rc = read_config(&g, out);
    gguf_close(&g);
    return rc;
}

/* ---- its tensors ---- */

/* Cut the part for a role out of a tensor that holds q, k and v one below the other. */
static int cut(const struct gguf *g, const struct model_config *c, const struct tensor *fused,
               const struct tensor_spec *spec, struct tensor *out)
{
    const struct block *b = arch_block(&c->arch, spec->layer, BLOCK_ATTENTION);
    const int64_t rows = block_qkv_size(b);
    const bool query = spec->role == ROLE_Q_WEIGHT || spec->role == ROLE_Q_BIAS;
    const bool key = spec->role == ROLE_K_WEIGHT || spec->role == ROLE_K_BIAS;
    const int64_t before = query ? 0 : key ? b->heads : b->heads + b->kv_heads;
    if (fused->shape[0] != rows)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s has %lld rows where q, k and v have %lld; fetch or "
                    "convert the model again",
                    g->path, fused->name, (long long)fused->shape[0], (long long)rows);
    const size_t row_bytes = fused->bytes / (size_t)rows;
    *out = *fused;
    out->shape[0] = spec->shape[0];
    out->data = (const char *)fused->data + (size_t)(before * b->head_dim) * row_bytes;
    out->bytes = (size_t)spec->shape[0] * row_bytes;
    return 0;
}

/* Find the tensor of that name, or the one that it may be a part of; NULL: neither is present. */
static int find(const struct gguf *g, const struct tensor_spec *spec, const char *name, bool *part,
                const struct tensor **out)
{
    char whole[128];
    const char *fused = names[spec->role].fused;
    name_in_layer(spec->layer, fused ? fused : "", whole);
    const struct tensor *own = tensors_find(&g->tensors, name);
    const struct tensor *all = fused ? tensors_find(&g->tensors, whole) : NULL;
    if (own && all)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tensors %s and %s hold the same weights; fetch or convert the model again",
                    g->path, name, whole);
    *part = all != NULL;
    *out = all ? all : own;
    return 0;
}

/* Take the tensor of a spec, under Hugging Face's name. */
static int take(const struct gguf *g, const struct model_config *c, const struct tensor_spec *spec,
                bool *used, struct tensor *out)
{
    struct tensor_spec named = *spec;
    const struct tensor *t = NULL;
    struct tensor part;
    bool is_part = false;
    gguf_tensor_name(spec, named.name);
    int rc = find(g, spec, named.name, &is_part, &t);
    if (rc == 0 && t)
        used[t - g->tensors.tensor] = true;
    if (rc == 0 && is_part) {
        rc = cut(g, c, t, spec, &part);
        t = &part;
    }
    if (rc == 0)
        rc = weights_check(g->path, &named, t);
    if (rc != 0)
        return rc;
    if (spec->rank == 1 && tensor_type_block(t->dtype) > 1)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tensor %s is %s; norms and biases must be F32, F16 or BF16: convert the "
                    "model again",
                    g->path, named.name, tensor_type_name(t->dtype));
    *out = *t;
    memcpy(out->name, spec->name, sizeof out->name);
    out->pairs = gguf_pairs(c, spec);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

static int refuse_rest(const struct gguf *g, const bool *used)
{
    for (size_t i = 0; i < g->tensors.count; i++)
        if (!used[i] && strcmp(g->tensors.tensor[i].name, GGUF_ROPE_FREQS) != 0)
            return fail(NJ_E_UNSUPPORTED,
                        "%s: tensor %s is not part of the model that the metadata describes; it "
                        "would be ignored, so use another model",
                        g->path, g->tensors.tensor[i].name);
    return 0;
}

/* Take all tensors; *out: `count` tensors, malloc()'d. */
static int take_all(const struct gguf *g, const struct model_config *c,
                    const struct tensor_spec *spec, size_t count, struct tensor **out)
{
    struct tensor *list = calloc(count, sizeof *list);
    bool *used = calloc(g->tensors.count, sizeof *used);
    int rc = list && used
                 ? 0
                 : fail(NJ_E_NOMEM, "%s: out of memory for a list of %zu tensors", g->path, count);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = take(g, c, &spec[i], used, &list[i]);
    if (rc == 0)
        rc = refuse_rest(g, used);
    free(used);
    if (rc != 0) {
        free(list);
        return rc;
    }
    qsort(list, count, sizeof *list, by_name);
    *out = list;
    return 0;
}

int gguf_tensors(const char *path, struct tensors *out)
{
    struct model_config c;
    struct tensor_spec *spec = NULL;
    struct tensor *list;
    struct gguf g;
    size_t count;
    *out = (struct tensors){0};
    int rc = gguf_open(path, &g);
    if (rc != 0)
        return rc;
    if (!(rc = read_config(&g, &c)) && !(rc = tensor_specs(&c, &spec, &count)) &&
        !(rc = take_all(&g, &c, spec, count, &list))) {
        *out = g.tensors; /* with the mappings */
        g.tensors = (struct tensors){0};
        free(out->tensor);
        out->tensor = list;
        out->count = count;
    }
    free(spec);
    gguf_close(&g);
    return rc;
}
