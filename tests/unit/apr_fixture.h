/* SPDX-License-Identifier: Apache-2.0
 *
 * apr_fixture.h: writes a Hugging Face folder as an APR file, laid out as aprender does it, optionally with faults.
 * Layout, checksum and the format's own blocks are implemented here again, so that the reader is not compared with
 * itself.
 */
#ifndef NOJIT_TESTS_APR_FIXTURE_H
#define NOJIT_TESTS_APR_FIXTURE_H

#include "base/float16.h"
#include "formats/gguf.h"
#include "formats/quantize.h"
#include "formats/safetensors.h"
#include "io/error.h"
#include "model/config.h"
#include "model/tensor_names.h"
#include "plain_layers.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum apr_dtype {
    APR_FILE_F32 = 0,
    APR_FILE_F16 = 1,
    APR_FILE_Q4_K = 12,
    APR_FILE_Q6_K = 14,
    APR_FILE_BF16 = 30,
    APR_FILE_Q4 = 128,
    APR_FILE_Q8 = 129,
};

struct apr_form {
    int dtype;             /* type of the matrices; all others are F32 */
    bool halves;           /* heads rotate their halves, also for llama */
    bool copies_head;      /* a tied head is written out as a tensor */
    bool head_apart;       /* the written head differs from the embedding */
    float scale;           /* scale of APR_Q8; 0: the usual one */
    int names;             /* names of tensors: 0: Hugging Face's; 1: without "model."; 2: GGUF's */
    unsigned flags;        /* extra flags in the header */
    const char *change;    /* JSON: metadata keys with other values; null removes a key */
    const char *drop;      /* tensor to leave out */
    const char *extra;     /* tensor to add, F32 with value 1 */
    const float *divisors; /* rope_freqs.weight, head_dim / 2 numbers */
    /* file whose tokenizer is taken over, as aprender does; NULL: none */
    const struct gguf *tokenizer;
};

struct apr_bytes {
    unsigned char *data;
    size_t bytes, room;
};

static inline void apr_put(struct apr_bytes *b, const void *data, size_t bytes)
{
    if (b->bytes + bytes + 64 > b->room) {
        b->room = 2 * (b->bytes + bytes + 64);
        b->data = realloc(b->data, b->room);
    }
    if (!b->data)
        abort();
    if (bytes > 0)
        memcpy(b->data + b->bytes, data, bytes);
    b->bytes += bytes;
}

static inline void apr_put_number(struct apr_bytes *b, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        apr_put(b, &(unsigned char){(unsigned char)(i < 8 ? x >> 8 * i : 0)}, 1);
}

static inline void apr_pad(struct apr_bytes *b)
{
    while (b->bytes % 64 != 0)
        apr_put(b, "", 1);
}

static inline uint32_t apr_crc(const unsigned char *data, size_t bytes)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    return ~crc;
}

/* ---- the file from its sections ---- */

/* Write both checksums again, after a change. */
static inline void apr_seal(unsigned char *data, size_t bytes)
{
    unsigned char covered[60];
    memcpy(covered, data, 40);
    memcpy(covered + 40, data + 44, 20);
    const uint32_t head = apr_crc(covered, sizeof covered);
    for (int i = 0; i < 4; i++)
        data[40 + i] = (unsigned char)(head >> 8 * i);
    const uint32_t all = apr_crc(data, bytes - 4);
    for (int i = 0; i < 4; i++)
        data[bytes - 4 + (size_t)i] = (unsigned char)(all >> 8 * i);
}

static inline struct apr_bytes apr_file(unsigned flags, const char *metadata, unsigned tensors,
                                        const struct apr_bytes *index, const struct apr_bytes *data)
{
    const size_t text = strlen(metadata), at = 64 + (text + 63) / 64 * 64;
    struct apr_bytes b = {0};
    apr_put(&b, "APR\0\2\0", 6);
    apr_put_number(&b, 1024 | flags, 2);
    apr_put_number(&b, tensors, 4);
    apr_put_number(&b, 64, 8);
    apr_put_number(&b, text, 4);
    apr_put_number(&b, at, 8);
    apr_put_number(&b, at + (index->bytes + 63) / 64 * 64, 8);
    apr_put_number(&b, 0, 24);
    apr_put(&b, metadata, text);
    apr_pad(&b);
    apr_put(&b, index->data, index->bytes);
    apr_pad(&b);
    apr_put(&b, data->data, data->bytes);
    apr_put_number(&b, 0, 4);
    apr_seal(b.data, b.bytes);
    return b;
}

/* ---- metadata ---- */

/* Copy the lists of a GGUF file's tokenizer into the metadata. */
static inline void apr_put_tokenizer(json_t *m, const struct gguf *g)
{
    static const char *const texts[][2] = {{"tokenizer.ggml.model", "tokenizer.model"},
                                           {"tokenizer.ggml.pre", "tokenizer.pre_type"},
                                           {"tokenizer.chat_template", "chat_template"}};
    static const char *const ids[][2] = {
        {"tokenizer.ggml.bos_token_id", "tokenizer.bos_token_id"},
        {"tokenizer.ggml.eos_token_id", "tokenizer.eos_token_id"},
        {"tokenizer.ggml.padding_token_id", "tokenizer.padding_token_id"}};
    static const char *const lists[][2] = {{"tokenizer.ggml.tokens", "tokenizer.vocabulary"},
                                           {"tokenizer.ggml.merges", "tokenizer.merges"}};
    json_t *types = json_array();
    struct gguf_text text, *list;
    int32_t *type;
    size_t count;
    int64_t id;
    bool flag;
    for (size_t i = 0; i < 3; i++)
        if (gguf_string(g, texts[i][0], &text) == 0 && text.text)
            json_object_set_new(m, texts[i][1], json_stringn(text.text, text.bytes));
    for (size_t i = 0; i < 3; i++)
        if (gguf_int(g, ids[i][0], -1, &id) == 0 && id >= 0)
            json_object_set_new(m, ids[i][1], json_integer(id));
    for (size_t i = 0; i < 2; i++) {
        json_t *to = json_array();
        if (gguf_strings(g, lists[i][0], &list, &count) != 0)
            abort();
        for (size_t k = 0; k < count; k++)
            json_array_append_new(to, json_stringn(list[k].text, list[k].bytes));
        json_object_set_new(m, lists[i][1], to);
        free(list);
    }
    if (gguf_ints(g, "tokenizer.ggml.token_type", &type, &count) != 0)
        abort();
    for (size_t k = 0; k < count; k++)
        json_array_append_new(types, json_integer(type[k]));
    json_object_set_new(m, "tokenizer.token_type", types);
    free(type);
    if (gguf_bool(g, "tokenizer.ggml.add_bos_token", false, &flag) == 0 &&
        gguf_find(g, "tokenizer.ggml.add_bos_token"))
        json_object_set_new(m, "tokenizer.add_bos_token", json_boolean(flag));
}

static inline bool apr_has_pairs(const struct apr_form *f, const struct model_config *c)
{
    return !f->halves &&
           (strcmp(c->model_type, "llama") == 0 || strcmp(c->model_type, "mistral") == 0);
}

/* Return the metadata as text; the caller frees it. */
static inline char *apr_metadata(const struct apr_form *f, const struct model_config *c)
{
    json_t *m =
        json_pack("{s:s,s:s,s:n,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:f,s:f,s:i}", "model_type", "Auto",
                  "architecture", c->model_type, "license", "hidden_size", c->hidden_size,
                  "num_layers", c->layers, "num_heads", ATTENTION(c).heads, "num_kv_heads",
                  ATTENTION(c).kv_heads, "vocab_size", c->vocab_size, "intermediate_size",
                  GLU(c).ffn_size, "max_position_embeddings", c->max_positions, "rope_type",
                  apr_has_pairs(f, c) ? 0 : 2, "rope_theta", c->arch.rope[0].theta, "rms_norm_eps",
                  (double)c->rms_eps, "head_dim", ATTENTION(c).head_dim);
    json_t *change = f->change ? json_loads(f->change, 0, NULL) : json_object(), *value;
    const char *key;
    if (!m || !change)
        abort();
    if (apr_has_pairs(f, c))
        json_object_set_new(m, "original_format", json_string("gguf"));
    if (f->copies_head)
        json_object_set_new(m, "tied_embeddings", json_true());
    if (c->eos_id >= 0)
        json_object_set_new(m, "tokenizer.eos_token_id", json_integer(c->eos_id));
    if (f->tokenizer)
        apr_put_tokenizer(m, f->tokenizer);
    json_object_foreach(change, key, value)
    {
        if (json_is_null(value))
            json_object_del(m, key);
        else
            json_object_set(m, key, value);
    }
    char *text = json_dumps(m, JSON_COMPACT);
    json_decref(change);
    json_decref(m);
    return text;
}

/* ---- tensors ---- */

static inline void apr_put_q4(struct apr_bytes *b, const float *x, size_t count)
{
    for (size_t first = 0; first < count; first += 32) {
        float most = 0;
        for (size_t i = first; i < first + 32 && i < count; i++)
            most = fmaxf(most, fabsf(x[i]));
        const float scale = most == 0 ? 1 : most / 7;
        unsigned char packed[16] = {0};
        for (size_t i = 0; i < 32 && first + i < count; i++) {
            const int q = (int)fminf(fmaxf(roundf(x[first + i] / scale), -8), 7) + 8;
            packed[i / 2] |= (unsigned char)(q << (i % 2 ? 4 : 0));
        }
        apr_put_number(b, f16_from_f32(scale), 2);
        apr_put(b, packed, sizeof packed);
    }
}

static inline void apr_put_q8(struct apr_bytes *b, const float *x, size_t count, float scale)
{
    float most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(x[i]));
    if (scale == 0)
        scale = most == 0 ? 1 : most / 127;
    apr_put(b, &scale, sizeof scale);
    for (size_t i = 0; i < count; i++) {
        const int q = (int)fminf(fmaxf(roundf(x[i] / scale), -127), 127);
        apr_put(b, &(signed char){(signed char)q}, 1);
    }
}

static inline void apr_put_values(struct apr_bytes *b, const struct apr_form *f, int dtype,
                                  const float *x, const struct tensor_spec *s)
{
    const size_t count = (size_t)tensor_elements(s);
    if (dtype == APR_FILE_Q4) {
        apr_put_q4(b, x, count);
    } else if (dtype == APR_FILE_Q8) {
        apr_put_q8(b, x, count, f->scale);
    } else {
        const enum nj_tensor_type type = dtype == APR_FILE_F16    ? NJ_TYPE_F16
                                         : dtype == APR_FILE_BF16 ? NJ_TYPE_BF16
                                         : dtype == APR_FILE_Q4_K ? NJ_TYPE_Q4_K
                                         : dtype == APR_FILE_Q6_K ? NJ_TYPE_Q6_K
                                                                  : NJ_TYPE_F32;
        const int64_t columns = s->rank == 2 ? s->shape[1] : s->shape[0];
        const int64_t rows = s->rank == 2 ? s->shape[0] : 1;
        const size_t bytes = tensor_type_bytes(type, rows * columns);
        char *blocks = malloc(bytes);
        if (!blocks || quantize_rows(type, x, rows, columns, blocks) != 0)
            abort();
        apr_put(b, blocks, bytes);
        free(blocks);
    }
}

/* Return the elements as the file has them: where RoPE rotates neighbours, the rows of a head's halves alternate. */
static inline float *apr_values(const struct apr_form *f, const struct model_config *c,
                                const struct tensor_spec *s, const struct tensor *t)
{
    const bool q_or_k = s->role == ROLE_Q_WEIGHT || s->role == ROLE_K_WEIGHT;
    const int64_t columns = s->shape[1], D = ATTENTION(c).head_dim;
    float *x = malloc((size_t)tensor_elements(s) * sizeof *x);
    if (!x)
        abort();
    for (int64_t r = 0; r < s->shape[0]; r++) {
        const int64_t h = r / D, j = r % D / 2, half = r % 2;
        const int64_t from = q_or_k && apr_has_pairs(f, c) ? h * D + half * D / 2 + j : r;
        tensor_to_f32(t, from * columns, columns, x + r * columns);
    }
    return x;
}

static inline void apr_entry(struct apr_bytes *index, const char *name, int dtype, int rank,
                             const int64_t *shape, size_t offset, size_t bytes)
{
    apr_put_number(index, strlen(name), 2);
    apr_put(index, name, strlen(name));
    apr_put_number(index, (uint64_t)dtype, 1);
    apr_put_number(index, (uint64_t)rank, 1);
    for (int i = 0; i < rank; i++)
        apr_put_number(index, (uint64_t)shape[i], 8);
    apr_put_number(index, offset, 8);
    apr_put_number(index, bytes, 8);
}

struct apr_tensor {
    char name[128];
    struct tensor_spec spec;
    const struct tensor *from; /* NULL: the values below */
    const float *values;
};

static inline int apr_by_name(const void *a, const void *b)
{
    return strcmp(((const struct apr_tensor *)a)->name, ((const struct apr_tensor *)b)->name);
}

static inline void apr_name(const struct apr_form *f, const struct tensor_spec *s, char out[128])
{
    static const char *const gguf[ROLE_COUNT] = {
        [ROLE_EMBED] = "token_embd.weight",     [ROLE_INPUT_NORM] = "attn_norm.weight",
        [ROLE_Q_WEIGHT] = "attn_q.weight",      [ROLE_K_WEIGHT] = "attn_k.weight",
        [ROLE_V_WEIGHT] = "attn_v.weight",      [ROLE_Q_BIAS] = "attn_q.bias",
        [ROLE_K_BIAS] = "attn_k.bias",          [ROLE_V_BIAS] = "attn_v.bias",
        [ROLE_Q_NORM] = "attn_q_norm.weight",   [ROLE_K_NORM] = "attn_k_norm.weight",
        [ROLE_O_WEIGHT] = "attn_output.weight", [ROLE_FFN_NORM] = "ffn_norm.weight",
        [ROLE_GATE_WEIGHT] = "ffn_gate.weight", [ROLE_UP_WEIGHT] = "ffn_up.weight",
        [ROLE_DOWN_WEIGHT] = "ffn_down.weight", [ROLE_FINAL_NORM] = "output_norm.weight",
        [ROLE_HEAD] = "output.weight"};
    const size_t skip = f->names == 1 && strncmp(s->name, "model.", 6) == 0 ? 6 : 0;
    if (f->names == 2 && s->layer >= 0)
        snprintf(out, 128, "blk.%d.%s", s->layer, gguf[s->role]);
    else
        snprintf(out, 128, "%s", f->names == 2 ? gguf[s->role] : s->name + skip);
}

static inline size_t apr_list(const struct apr_form *f, const struct model_config *c,
                              const struct tensors *from, const struct tensor_spec *spec,
                              size_t specs, struct apr_tensor *out)
{
    static const float one = 1;
    size_t count = 0;
    for (size_t i = 0; i < specs; i++)
        out[count++] = (struct apr_tensor){"", spec[i], tensors_find(from, spec[i].name), NULL};
    if (f->copies_head) {
        out[count] = out[0];
        snprintf(out[count].spec.name, sizeof out->spec.name, "lm_head.weight");
        out[count].spec.role = ROLE_HEAD;
        count++;
    }
    for (size_t i = 0; i < count; i++)
        apr_name(f, &out[i].spec, out[i].name);
    if (f->divisors)
        out[count++] = (struct apr_tensor){"rope_freqs.weight",
                                           {.rank = 1, .shape = {ATTENTION(c).head_dim / 2, 1}},
                                           NULL,
                                           f->divisors};
    if (f->extra) {
        out[count] = (struct apr_tensor){"", {.rank = 1, .shape = {1, 1}}, NULL, &one};
        snprintf(out[count++].name, sizeof out->name, "%s", f->extra);
    }
    for (size_t i = 0; f->drop && i < count; i++)
        if (strcmp(out[i].name, f->drop) == 0)
            out[i] = out[--count];
    qsort(out, count, sizeof *out, apr_by_name);
    return count;
}

static inline void apr_put_tensor(const struct apr_form *f, const struct model_config *c,
                                  const struct apr_tensor *t, struct apr_bytes *index,
                                  struct apr_bytes *data)
{
    const int dtype = t->from && t->spec.rank == 2 ? f->dtype : APR_FILE_F32;
    const size_t offset = data->bytes;
    float *x = t->from ? apr_values(f, c, &t->spec, t->from) : NULL;
    if (x && f->head_apart && t->spec.role == ROLE_HEAD)
        x[0] += 1;
    apr_put_values(data, f, dtype, x ? x : t->values, &t->spec);
    free(x);
    apr_entry(index, t->name, dtype, t->spec.rank, t->spec.shape, offset, data->bytes - offset);
    apr_pad(data);
}

/* Return the bytes of the file for the model in the folder `from`; the caller frees them. */
static inline struct apr_bytes apr_of(const char *from, const struct apr_form *f)
{
    struct model_config c;
    struct tensors tensors = {0};
    struct tensor_spec *spec = NULL;
    struct apr_bytes index = {0}, data = {0};
    size_t specs;
    if (config_read(from, &c) != 0 || st_open(from, &tensors) != 0 ||
        tensor_specs(&c, &spec, &specs) != 0) {
        fprintf(stderr, "%s\n", fail_text());
        abort();
    }
    struct apr_tensor *list = calloc(specs + 3, sizeof *list);
    char *metadata = apr_metadata(f, &c);
    if (!list || !metadata)
        abort();
    const size_t count = apr_list(f, &c, &tensors, spec, specs, list);
    for (size_t i = 0; i < count; i++)
        apr_put_tensor(f, &c, &list[i], &index, &data);
    const struct apr_bytes out = apr_file(f->flags, metadata, (unsigned)count, &index, &data);
    free(metadata);
    free(list);
    free(index.data);
    free(data.data);
    free(spec);
    tensors_close(&tensors);
    return out;
}

static inline int apr_write(const char *path, struct apr_bytes b)
{
    FILE *file = fopen(path, "wb");
    const bool sound = file && fwrite(b.data, 1, b.bytes, file) == b.bytes;
    free(b.data);
    return file && fclose(file) == 0 && sound ? 0 : -1;
}

#endif
