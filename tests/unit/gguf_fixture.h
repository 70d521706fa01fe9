/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_fixture.h: writes a Hugging Face folder as a GGUF file, laid out as llama.cpp's converter does it, optionally
 * with faults. The order of rows is implemented here again, so that it is not compared with itself.
 */
#ifndef NOJIT_TESTS_GGUF_FIXTURE_H
#define NOJIT_TESTS_GGUF_FIXTURE_H

#include "formats/gguf_write.h"
#include "formats/quantize.h"
#include "io/error.h"
#include "model/gguf_ftype.h"
#include "model/gguf_names.h"
#include "model/tensor_names.h"
#include "plain_layers.h"
#include "text/gguf_tokenizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A key that is left out or gets another value. */
struct gguf_change {
    const char *key; /* NULL ends the list */
    enum { CHANGE_DROP, CHANGE_U32, CHANGE_F32, CHANGE_TEXT, CHANGE_I32S, CHANGE_BOOL } to;
    double number;
    const char *text;
    int32_t ints[4];
};

struct gguf_form {
    enum nj_tensor_type dtype;         /* type of the matrices; all others are F32 */
    const struct gguf_ftype *ftype;    /* file type that gives the types of matrices, or NULL */
    bool fused;                        /* q, k and v in one tensor */
    bool vocab_size;                   /* write the key, as llama's files have it */
    const struct tokenizer *tokenizer; /* NULL: only the ids of config.json */
    const struct gguf_change *change;  /* NULL: none */
    const char *drop, *extra;          /* tensor to leave out, tensor to add */
    const float *divisors;             /* divisors other than those of the model's scaling */
    int divisor_count;
};

static bool gguf_is_changed(const struct gguf_form *f, const char *key)
{
    for (const struct gguf_change *c = f->change; c && c->key; c++)
        if (strcmp(c->key, key) == 0)
            return true;
    return false;
}

static void gguf_put_changes(struct gguf_writer *w, const struct gguf_form *f)
{
    for (const struct gguf_change *c = f->change; c && c->key; c++) {
        if (c->to == CHANGE_BOOL)
            gguf_put_bool(w, c->key, c->number != 0);
        else if (c->to == CHANGE_U32)
            gguf_put_u32(w, c->key, (uint32_t)c->number);
        else if (c->to == CHANGE_F32)
            gguf_put_f32(w, c->key, (float)c->number);
        else if (c->to == CHANGE_TEXT)
            gguf_put_string(w, c->key, c->text);
        else if (c->to == CHANGE_I32S)
            gguf_put_i32s(w, c->key, c->ints, (size_t)c->number);
    }
}

static void gguf_put_model(struct gguf_writer *w, const struct gguf_form *f,
                           const struct model_config *c)
{
    const char *arch = gguf_arch(c->model_type)->name;
    const struct {
        const char *name;
        int value;
    } whole[] = {{"context_length", c->max_positions},
                 {"embedding_length", c->hidden_size},
                 {"block_count", c->layers},
                 {"feed_forward_length", GLU(c).ffn_size},
                 {"attention.head_count", ATTENTION(c).heads},
                 {"attention.head_count_kv", ATTENTION(c).kv_heads},
                 {"attention.key_length", ATTENTION(c).head_dim},
                 {"attention.value_length", ATTENTION(c).head_dim},
                 {"vocab_size", f->vocab_size ? c->vocab_size : -1}};
    char key[128];
    if (!gguf_is_changed(f, "general.architecture"))
        gguf_put_string(w, "general.architecture", arch);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        snprintf(key, sizeof key, "%s.%s", arch, whole[i].name);
        if (!gguf_is_changed(f, key) && whole[i].value >= 0)
            gguf_put_u32(w, key, (uint32_t)whole[i].value);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", arch);
    if (!gguf_is_changed(f, key))
        gguf_put_f32(w, key, c->rms_eps);
    snprintf(key, sizeof key, "%s.rope.freq_base", arch);
    if (!gguf_is_changed(f, key))
        gguf_put_f32(w, key, (float)c->arch.rope[0].theta);
    if (c->bos_id >= 0 && !f->tokenizer)
        gguf_put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)c->bos_id);
    if (c->eos_id >= 0 && !f->tokenizer && !gguf_is_changed(f, "tokenizer.ggml.eos_token_id"))
        gguf_put_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)c->eos_id);
    gguf_put_changes(w, f);
}

/* Compute the divisors as the converter does, in float32. */
static inline void gguf_llama3_divisors(const struct model_config *c, float *out)
{
    const struct rope_scaling *s = &c->arch.rope[0].scaling;
    const float old = (float)s->original_positions, pi = 3.14159265358979f;
    for (int i = 0; i < ATTENTION(c).head_dim / 2; i++) {
        const float exponent = (float)(2 * i) / (float)ATTENTION(c).head_dim;
        const float wave = 2 * pi * powf((float)c->arch.rope[0].theta, exponent);
        const float smooth =
            (old / wave - s->low_freq_factor) / (s->high_freq_factor - s->low_freq_factor);
        out[i] = wave < old / s->high_freq_factor  ? 1
                 : wave > old / s->low_freq_factor ? s->factor
                                                   : 1 / ((1 - smooth) / s->factor + smooth);
    }
}

/* Write a tensor as the file has it: in some architectures the rows of a head's halves alternate. */
static inline int gguf_write_tensor(struct gguf_writer *w, const struct model_config *c,
                                    const struct tensor_spec *spec, const struct tensor *t,
                                    enum nj_tensor_type dtype)
{
    const int64_t rows = spec->shape[0], columns = spec->shape[1], D = ATTENTION(c).head_dim;
    const bool q_or_k = spec->role == ROLE_Q_WEIGHT || spec->role == ROLE_K_WEIGHT ||
                        spec->role == ROLE_Q_BIAS || spec->role == ROLE_K_BIAS;
    const bool alternate = q_or_k && strcmp(gguf_arch(c->model_type)->name, "llama") == 0;
    float *row = malloc((size_t)columns * sizeof *row);
    const size_t bytes = tensor_type_bytes(dtype, columns);
    char *blocks = malloc(bytes);
    int rc = 0;
    if (!row || !blocks)
        abort();
    for (int64_t r = 0; r < rows && rc == 0; r++) {
        const int64_t h = r / D, j = r % D / 2, s = r % 2;
        tensor_to_f32(t, (alternate ? h * D + s * D / 2 + j : r) * columns, columns, row);
        rc = quantize_rows(dtype, row, 1, columns, blocks);
        if (rc == 0)
            rc = gguf_write_data(w, blocks, bytes);
    }
    free(row);
    free(blocks);
    return rc;
}

static inline enum nj_tensor_type gguf_type_of(const struct gguf_form *f,
                                               const struct model_config *c,
                                               const struct tensor_spec *spec)
{
    if (f->ftype)
        return gguf_ftype_type(f->ftype, c, spec);
    return spec->rank == 2 ? f->dtype : NJ_TYPE_F32;
}

/* Declare the tensors in the converter's order of sizes; the parts of a fused tensor are neighbours. */
static inline size_t gguf_declare(const struct gguf_form *f, const struct model_config *c,
                                  const struct tensor_spec *spec, size_t specs,
                                  struct st_declared *out, char (*names)[128])
{
    size_t count = 0;
    for (size_t i = 0; i < specs; i++) {
        const bool first = spec[i].role == ROLE_Q_WEIGHT || spec[i].role == ROLE_Q_BIAS;
        const bool later = spec[i].role == ROLE_K_WEIGHT || spec[i].role == ROLE_V_WEIGHT ||
                           spec[i].role == ROLE_K_BIAS || spec[i].role == ROLE_V_BIAS;
        if (f->fused && later) {
            out[count - 1].shape[0] += spec[i].shape[0];
            continue;
        }
        gguf_tensor_name(gguf_arch(c->model_type), &spec[i], names[count]);
        if (f->fused && first)
            snprintf(names[count], 128, "blk.%d.attn_qkv.%s", spec[i].layer,
                     spec[i].rank == 2 ? "weight" : "bias");
        if (f->drop && strcmp(f->drop, names[count]) == 0)
            continue;
        out[count] = (struct st_declared){names[count],
                                          gguf_type_of(f, c, &spec[i]),
                                          spec[i].rank,
                                          {spec[i].shape[0], spec[i].shape[1]}};
        count++;
    }
    if (c->arch.rope[0].rule == ROPE_LLAMA3 || f->divisors)
        out[count++] =
            (struct st_declared){"rope_freqs.weight",
                                 NJ_TYPE_F32,
                                 1,
                                 {f->divisors ? f->divisor_count : ATTENTION(c).head_dim / 2}};
    if (f->extra)
        out[count++] = (struct st_declared){f->extra, NJ_TYPE_F32, 1, {1}};
    return count;
}

/* Write all tensors and end the writer. */
static inline int gguf_write_all(struct gguf_writer *w, const struct gguf_form *f,
                                 const struct model_config *c, const struct tensors *from,
                                 const struct tensor_spec *spec, size_t specs)
{
    struct st_declared *declared = calloc(specs + 2, sizeof *declared);
    char(*names)[128] = calloc(specs, sizeof *names);
    char name[128];
    float divisors[CONFIG_HEAD_DIM_MOST / 2] = {0};
    if (!declared || !names)
        abort();
    int rc = gguf_write_tensors(w, declared, gguf_declare(f, c, spec, specs, declared, names));
    for (size_t i = 0; i < specs && rc == 0; i++) {
        gguf_tensor_name(gguf_arch(c->model_type), &spec[i], name);
        if (!f->drop || strcmp(f->drop, name) != 0)
            rc = gguf_write_tensor(w, c, &spec[i], tensors_find(from, spec[i].name),
                                   gguf_type_of(f, c, &spec[i]));
    }
    gguf_llama3_divisors(c, divisors);
    if (rc == 0 && f->divisors)
        rc = gguf_write_data(w, f->divisors, (size_t)f->divisor_count * sizeof *f->divisors);
    else if (rc == 0 && c->arch.rope[0].rule == ROPE_LLAMA3)
        rc = gguf_write_data(w, divisors, (size_t)ATTENTION(c).head_dim / 2 * sizeof *divisors);
    if (rc == 0 && f->extra)
        rc = gguf_write_data(w, divisors, sizeof *divisors);
    if (rc == 0)
        rc = gguf_write_end(w);
    else
        gguf_write_abort(w);
    free(declared);
    free(names);
    return rc;
}

/* Write the file at `path` for the model in the folder `from`. */
static inline int gguf_of(const char *from, const char *path, const struct gguf_form *f)
{
    struct model_config c;
    struct tensors tensors = {0};
    struct tensor_spec *spec = NULL;
    struct gguf_writer *w = NULL;
    size_t specs;
    int rc = config_read(from, &c);
    if (rc == 0)
        rc = st_open(from, &tensors);
    if (rc == 0)
        rc = tensor_specs(&c, &spec, &specs);
    if (rc == 0)
        rc = gguf_write_begin(path, &w);
    if (rc == 0) {
        gguf_put_model(w, f, &c);
        if (f->tokenizer)
            rc = gguf_put_tokenizer(w, f->tokenizer, c.vocab_size);
        if (rc == 0)
            rc = gguf_write_all(w, f, &c, &tensors, spec, specs);
        else
            gguf_write_abort(w);
    }
    free(spec);
    tensors_close(&tensors);
    return rc;
}

#endif
