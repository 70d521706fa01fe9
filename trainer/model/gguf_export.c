/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_export.c: see gguf_export.h. Keys, names and the order of rows are those of llama.cpp's converter; rows are
 * quantized in pieces, so that a model larger than memory can be written.
 */
#include "model/gguf_export.h"

#include "base/families.h"
#include "base/try.h"
#include "formats/gguf_write.h"
#include "formats/quantize.h"
#include "io/error.h"
#include "io/notes.h"
#include "model/gguf_model.h"
#include "model/model_open.h"
#include "text/gguf_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_ELEMENTS = 1 << 22, QUANTIZATION_VERSION = 2 };

struct writing {
    const char *from;
    struct model_config c;
    struct tensors tensors;
    struct tensor_spec *spec;
    size_t specs;
    struct st_declared *declared;
    char (*names)[128];
    struct gguf_writer *w;
    float *piece; /* rows as float32 */
    void *blocks; /* rows as they are written */
    const struct export_options *o;
    double done, total; /* number of bytes of weights */
};

static bool is_scaled(const struct model_config *c)
{
    return c->arch.rope[0].rule == ROPE_LLAMA3;
}

/* ---- metadata ---- */

static void put_model(const struct writing *x)
{
    const struct model_config *c = &x->c;
    const struct block *attention = arch_block(&c->arch, 0, BLOCK_ATTENTION);
    const char *arch = gguf_arch(c->model_type);
    const struct {
        const char *name;
        int value;
    } whole[] = {
        {"context_length", c->max_positions},
        {"embedding_length", c->hidden_size},
        {"block_count", c->layers},
        {"feed_forward_length", arch_block(&c->arch, 0, BLOCK_GLU)->ffn_size},
        {"attention.head_count", attention->heads},
        {"attention.head_count_kv", attention->kv_heads},
        {"attention.key_length", attention->head_dim},
        {"attention.value_length", attention->head_dim},
        {"attention.sliding_window", attention->window}, /* 0: none, and no key */
        {"rope.dimension_count", attention->head_dim},
        {"vocab_size", c->vocab_size},
    };
    char key[128];
    const char *name = strrchr(x->o->name, '/');
    gguf_put_string(x->w, "general.architecture", arch);
    gguf_put_string(x->w, "general.type", "model");
    gguf_put_string(x->w, "general.name", name && name[1] ? name + 1 : x->o->name);
    gguf_put_u32(x->w, "general.file_type", (uint32_t)x->o->ftype->file_type);
    gguf_put_u32(x->w, "general.quantization_version", QUANTIZATION_VERSION);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        if (whole[i].value == 0)
            continue;
        snprintf(key, sizeof key, "%s.%s", arch, whole[i].name);
        gguf_put_u32(x->w, key, (uint32_t)whole[i].value);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", arch);
    gguf_put_f32(x->w, key, c->rms_eps);
    snprintf(key, sizeof key, "%s.rope.freq_base", arch);
    gguf_put_f32(x->w, key, (float)c->arch.rope[0].theta);
}

static int put_tokenizer(const struct writing *x)
{
    struct tokenizer t;
    int rc = tokenizer_open(x->from, &t);
    if (rc != 0)
        return rc;
    rc = gguf_put_tokenizer(x->w, &t, x->c.vocab_size);
    tokenizer_close(&t);
    return rc;
}

/* ---- weights ---- */

/* Return the row of Hugging Face's order that becomes row r of the file. */
static int64_t row_of(const struct writing *x, const struct tensor_spec *s, int64_t r)
{
    const int pairs = gguf_pairs(&x->c, s);
    const int64_t D = pairs > 0 ? s->shape[0] / pairs : 1, in_head = r % D;
    return pairs == 0 ? r : r - in_head + in_head / 2 + in_head % 2 * (D / 2);
}

/* Copy rows as they are in the source, which has the wanted type. */
static void copy_rows(struct writing *x, const struct tensor_spec *s, const struct tensor *t,
                      int64_t first, int64_t rows)
{
    const size_t bytes = tensor_type_bytes(t->dtype, s->shape[1]);
    for (int64_t r = 0; r < rows; r++)
        tensor_rows(t, row_of(x, s, first + r), 1, (char *)x->blocks + (size_t)r * bytes);
}

static int quantize_part(struct writing *x, const struct tensor_spec *s, const struct tensor *t,
                         enum nj_tensor_type type, int64_t first, int64_t rows)
{
    const int64_t columns = s->shape[1];
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < rows; r++)
        tensor_to_f32(t, row_of(x, s, first + r) * columns, columns, x->piece + r * columns);
    const int rc = quantize_rows(type, x->piece, rows, columns, x->blocks);
    return rc != NJ_E_FORMAT
               ? rc
               : fail(NJ_E_FORMAT,
                      "%s: tensor %s holds a number that is not finite, or too large for "
                      "%s; check the weights",
                      x->from, s->name, tensor_type_name(type));
}

static int write_tensor(struct writing *x, size_t i)
{
    const struct tensor_spec *s = &x->spec[i];
    const struct tensor *t = tensors_find(&x->tensors, s->name);
    const enum nj_tensor_type type = x->declared[i].dtype;
    /* A bias has one row in the file, and as many here as it has elements. */
    const int64_t columns = s->shape[1],
                  most = columns > PIECE_ELEMENTS ? 1 : PIECE_ELEMENTS / columns;
    for (int64_t first = 0; first < s->shape[0]; first += most) {
        const int64_t rows = s->shape[0] - first < most ? s->shape[0] - first : most;
        int rc = 0;
        if (t->dtype == type)
            copy_rows(x, s, t, first, rows);
        else
            rc = quantize_part(x, s, t, type, first, rows);
        if (rc == 0)
            rc = gguf_write_data(x->w, x->blocks, tensor_type_bytes(type, rows * columns));
        if (rc != 0)
            return rc;
        x->done += (double)tensor_type_bytes(type, rows * columns);
        x->o->written(x->o->user, x->done, x->total);
    }
    return 0;
}

/* Write the divisors of the frequencies once: llama.cpp uses the same tensor in every layer. */
static int write_rope_freqs(struct writing *x)
{
    float divisors[CONFIG_HEAD_DIM_MOST / 2];
    gguf_rope_freqs(&x->c, divisors);
    return gguf_write_data(x->w, divisors, (size_t)config_frequencies(&x->c, 1) * sizeof *divisors);
}

static int declare(struct writing *x)
{
    const bool scaled = is_scaled(&x->c);
    for (size_t i = 0; i < x->specs; i++) {
        const struct tensor_spec *s = &x->spec[i];
        const struct tensor *t = tensors_find(&x->tensors, s->name);
        TRY(weights_check(x->from, s, t));
        gguf_tensor_name(s, x->names[i]);
        x->declared[i] = (struct st_declared){x->names[i],
                                              gguf_ftype_type(x->o->ftype, &x->c, s),
                                              s->rank,
                                              {s->shape[0], s->shape[1]}};
        x->total += (double)st_declared_bytes(&x->declared[i]);
    }
    x->declared[x->specs] =
        (struct st_declared){GGUF_ROPE_FREQS, NJ_TYPE_F32, 1, {config_frequencies(&x->c, 1)}};
    return gguf_write_tensors(x->w, x->declared, x->specs + scaled);
}

static int write_all(struct writing *x, const char *to)
{
    int rc = gguf_write_begin(to, &x->w);
    if (rc != 0)
        return rc;
    put_model(x);
    rc = put_tokenizer(x);
    if (rc == 0)
        rc = declare(x);
    for (size_t i = 0; rc == 0 && i < x->specs; i++)
        rc = write_tensor(x, i);
    if (rc == 0 && is_scaled(&x->c))
        rc = write_rope_freqs(x);
    if (rc == 0)
        return gguf_write_end(x->w);
    gguf_write_abort(x->w);
    return rc;
}

static int allocate(struct writing *x)
{
    size_t elements = PIECE_ELEMENTS;
    for (size_t i = 0; i < x->specs; i++)
        if ((size_t)x->spec[i].shape[1] > elements)
            elements = (size_t)x->spec[i].shape[1];
    x->declared = calloc(x->specs + 1, sizeof *x->declared);
    x->names = calloc(x->specs, sizeof *x->names);
    x->piece = malloc(elements * sizeof *x->piece);
    x->blocks = malloc(elements * sizeof *x->piece);
    return x->declared && x->names && x->piece && x->blocks
               ? 0
               : fail(NJ_E_NOMEM, "out of memory to export %s", x->from);
}

/* Architecture with scaled positions: llama.cpp computes the activation of the architecture, and reads GGUF_ROPE_FREQS
 * for this one alone of ours. */
static const char scales[] = "llama";

int gguf_check_model(const struct model_config *c, const char *where)
{
    const char *arch = gguf_arch(c->model_type);
    const struct hidden_act *act = &hidden_acts[arch_block(&c->arch, 0, BLOCK_GLU)->act];
    if (act->kernels != NJ_SILU)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: hidden_act is %s, and llama.cpp computes silu for GGUF files of "
                    "architecture %s; keep the Hugging Face folder",
                    where, act->name, arch);
    if (is_scaled(c) && strcmp(arch, scales) != 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: positions are scaled (llama3), and llama.cpp reads no scale from GGUF "
                    "files of architecture %s; keep the Hugging Face folder",
                    where, arch);
    return 0;
}

int gguf_export(const char *from, const char *to, const struct export_options *o, double *bytes)
{
    struct writing x = {.from = from, .o = o};
    int rc = source_config(from, &x.c);
    if (rc == 0)
        rc = gguf_check_model(&x.c, o->name);
    const int window = rc ? 0 : arch_block(&x.c.arch, 0, BLOCK_ATTENTION)->window;
    if (window > 0)
        note("%s: llama.cpp reads no sliding window from GGUF files of architecture %s; past %d "
             "tokens it computes something else than this model",
             o->name, gguf_arch(x.c.model_type), window);
    if (rc == 0)
        rc = source_tensors(from, &x.tensors);
    if (rc == 0)
        rc = tensor_specs(&x.c, &x.spec, &x.specs);
    if (rc == 0)
        rc = allocate(&x);
    if (rc == 0)
        rc = write_all(&x, to);
    *bytes = x.total;
    tensors_close(&x.tensors);
    free(x.spec);
    free(x.declared);
    free(x.names);
    free(x.piece);
    free(x.blocks);
    return rc;
}
