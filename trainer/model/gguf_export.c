/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_export.c: see gguf_export.h. Keys, names and the order of rows are those of llama.cpp's converter; rows are
 * quantized in pieces, so that a model larger than memory can be written.
 */
#include "model/gguf_export.h"

#include "base/try.h"
#include "formats/gguf_write.h"
#include "formats/quantize.h"
#include "io/error.h"
#include "io/notes.h"
#include "model/file_rows.h"
#include "model/gguf_describe.h"
#include "model/gguf_names.h"
#include "model/gguf_rope.h"
#include "model/model_open.h"
#include "text/gguf_tokenizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_ELEMENTS = 1 << 22, QUANTIZATION_VERSION = 2 };

/* A tensor of the file, and the model's tensors that have its rows: one, two that are one in folders, too, or those of
 * all experts. */
struct piece {
    struct gguf_part part;
    const struct tensor_spec *of;    /* [experts], one after another */
    struct file_tensor joined;       /* parts as in a folder */
    int experts;                     /* 0: it is not one of experts */
    float added;                     /* number added to the elements of a folder */
    bool negated_exp;                /* whether the file has -exp(x) for each element x */
    struct head_tiles rows, columns; /* orders of heads */
};

struct writing {
    const char *from;
    struct model_config c;
    struct tensors tensors;
    struct tensor_spec *spec;
    size_t specs;
    struct file_tensor *file; /* tensors of a folder */
    size_t files;
    struct piece *piece;
    size_t pieces;
    struct st_declared *declared;
    struct gguf_writer *w;
    float *rows;  /* rows as float32 */
    void *room;   /* a row */
    void *blocks; /* rows as they are written */
    const struct export_options *o;
    double done, total; /* number of bytes of weights */
};

/* Tensors of divisors of the frequencies; llama.cpp uses the same ones in every layer. */
struct divisors {
    const char *name;
    float values[ROPE_PAIRS_MOST];
};
enum { DIVISORS_MOST = 2 };

/* Compute the tensors of divisors that a model has. Return their number. */
static int divisors_of(const struct model_config *c, struct divisors out[DIVISORS_MOST])
{
    const struct rope *r = &c->arch.rope[gguf_rope_tables(c).full];
    if (r->rule == ROPE_LLAMA3) {
        out[0].name = GGUF_ROPE_FREQS;
        gguf_rope_freqs(c, out[0].values);
        return 1;
    }
    if (r->rule != ROPE_LONGROPE)
        return 0;
    out[0].name = GGUF_ROPE_LONG;
    out[1].name = GGUF_ROPE_SHORT;
    memcpy(out[0].values, r->long_factor, sizeof out[0].values);
    memcpy(out[1].values, r->short_factor, sizeof out[1].values);
    return 2;
}

/* ---- metadata ---- */

static void put_model(const struct writing *x)
{
    const char *name = strrchr(x->o->name, '/');
    gguf_put_string(x->w, "general.architecture", gguf_arch(x->c.model_type)->name);
    gguf_put_string(x->w, "general.type", "model");
    gguf_put_string(x->w, "general.name", name && name[1] ? name + 1 : x->o->name);
    gguf_put_u32(x->w, "general.file_type", (uint32_t)x->o->ftype->file_type);
    gguf_put_u32(x->w, "general.quantization_version", QUANTIZATION_VERSION);
    gguf_describe(x->w, &x->c);
}

static int put_tokenizer(const struct writing *x)
{
    struct tokenizer t;
    int rc = tokenizer_open_as(x->from, x->o->tokenizer, &t);
    if (rc != 0)
        return rc;
    rc = gguf_put_tokenizer(x->w, &t, x->c.vocab_size);
    tokenizer_close(&t);
    return rc;
}

/* ---- weights ---- */

/* Return the row that becomes row r of the file's tensor, and set *t to the model's tensor that has it. */
static int64_t row_of(const struct writing *x, const struct piece *p, int64_t r,
                      const struct tensor **t)
{
    if (p->joined.parts > 1 || file_order(&x->c, p->of).heads > 0) {
        const struct file_run run = file_run(&x->c, &p->joined, x->spec, r);
        *t = tensors_find(&x->tensors, x->spec[run.spec].name);
        return run.row;
    }
    if (p->rows.each > 1)
        return head_tiles_place(&p->rows, r);
    const int pairs = gguf_pairs(&x->c, &p->part.spec);
    const int64_t D = pairs > 0 ? p->part.spec.shape[0] / pairs : 1, in_head = r % D;
    return p->part.first + (pairs == 0 ? r : r - in_head + in_head / 2 + in_head % 2 * (D / 2));
}

/* Put the heads of a row into the order of the file. */
static void order_columns(const struct writing *x, const struct piece *p, char *row,
                          enum nj_tensor_type type)
{
    const struct head_tiles *h = &p->columns;
    if (h->each < 2)
        return;
    const int64_t columns = p->part.spec.shape[1];
    const size_t head = tensor_type_bytes(type, h->D);
    memcpy(x->room, row, tensor_type_bytes(type, columns));
    for (int64_t c = 0; c < columns; c += h->D)
        memcpy(row + (size_t)(head_tiles_element(h, c) / h->D) * head,
               (const char *)x->room + (size_t)(c / h->D) * head, head);
}

/* Copy rows as they are in the source, which has the wanted type. */
static void copy_rows(struct writing *x, const struct piece *p, const struct tensor *t,
                      int64_t first, int64_t rows)
{
    const size_t bytes = tensor_type_bytes(t->dtype, p->part.spec.shape[1]);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t row = row_of(x, p, first + r, &t);
        tensor_rows(t, row, 1, (char *)x->blocks + (size_t)r * bytes);
        order_columns(x, p, (char *)x->blocks + (size_t)r * bytes, t->dtype);
    }
}

static int quantize_part(struct writing *x, const struct piece *p, const struct tensor *t,
                         enum nj_tensor_type type, int64_t first, int64_t rows)
{
    const int64_t columns = p->part.spec.shape[1];
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        const struct tensor *from = t;
        const int64_t row = row_of(x, p, first + r, &from);
        tensor_to_f32(from, row * columns, columns, x->rows + r * columns);
    }
    for (int64_t r = 0; r < rows; r++)
        order_columns(x, p, (char *)(x->rows + r * columns), NJ_TYPE_F32);
    for (int64_t i = 0; p->added != 0 && i < rows * columns; i++)
        x->rows[i] += p->added;
    for (int64_t i = 0; p->negated_exp && i < rows * columns; i++)
        x->rows[i] = (float)-exp((double)x->rows[i]);
    const int rc = quantize_rows(type, x->rows, rows, columns, x->blocks);
    return rc != NJ_E_FORMAT
               ? rc
               : fail(NJ_E_FORMAT,
                      "%s: tensor %s holds a number that is not finite, or too large for "
                      "%s; check the weights",
                      x->from, p->of->name, tensor_type_name(type));
}

/* Write the rows of one of the model's tensors. */
static int write_rows(struct writing *x, const struct piece *p, const struct tensor *t,
                      enum nj_tensor_type type)
{
    const bool same = t->dtype == type && t->added + p->added == 0 && !p->negated_exp;
    /* A bias has one row in the file, and as many here as it has elements. */
    const int64_t columns = p->part.spec.shape[1], all = p->part.spec.shape[0],
                  most = columns > PIECE_ELEMENTS ? 1 : PIECE_ELEMENTS / columns;
    for (int64_t first = 0; first < all; first += most) {
        const int64_t rows = all - first < most ? all - first : most;
        if (same)
            copy_rows(x, p, t, first, rows);
        else
            TRY(quantize_part(x, p, t, type, first, rows));
        TRY(gguf_write_data(x->w, x->blocks, tensor_type_bytes(type, rows * columns)));
        x->done += (double)tensor_type_bytes(type, rows * columns);
        x->o->written(x->o->user, x->done, x->total);
    }
    return 0;
}

static int count_of(const struct piece *p)
{
    return p->experts > 0 ? p->experts : 1;
}

static int write_tensor(struct writing *x, size_t i)
{
    const struct piece *p = &x->piece[i];
    for (int e = 0; e < count_of(p); e++)
        TRY(write_rows(x, p, tensors_find(&x->tensors, p->of[e].name), x->declared[i].dtype));
    return 0;
}

static int write_divisors(struct writing *x)
{
    struct divisors d[DIVISORS_MOST];
    const int count = divisors_of(&x->c, d);
    for (int i = 0; i < count; i++)
        TRY(gguf_write_data(x->w, d[i].values,
                            (size_t)gguf_rope_count(&x->c) * sizeof d[i].values[0]));
    return 0;
}

static int declare(struct writing *x)
{
    struct divisors d[DIVISORS_MOST];
    const int more = divisors_of(&x->c, d);
    for (size_t i = 0; i < x->pieces; i++) {
        const struct piece *p = &x->piece[i];
        const struct tensor_spec *s = &p->part.spec;
        for (int e = 0; e < count_of(p); e++)
            TRY(weights_check(x->from, &p->of[e], tensors_find(&x->tensors, p->of[e].name)));
        for (int k = 1; k < p->joined.parts; k++) {
            const struct tensor_spec *inside = &x->spec[p->joined.part[k]];
            TRY(weights_check(x->from, inside, tensors_find(&x->tensors, inside->name)));
        }
        x->declared[i] = (struct st_declared){
            s->name, gguf_ftype_type(x->o->ftype, &x->c, s), s->rank, {s->shape[0], s->shape[1]}};
        if (p->experts > 0) {
            x->declared[i].rank = 3;
            memcpy(&x->declared[i].shape[1], s->shape, sizeof s->shape);
            x->declared[i].shape[0] = p->experts;
        }
        x->total += (double)st_declared_bytes(&x->declared[i]);
    }
    for (int i = 0; i < more; i++)
        x->declared[x->pieces + (size_t)i] =
            (struct st_declared){d[i].name, NJ_TYPE_F32, 1, {gguf_rope_count(&x->c)}};
    return gguf_write_tensors(x->w, x->declared, x->pieces + (size_t)more);
}

static int write_all(struct writing *x, const char *to)
{
    TRY(gguf_write_begin(to, &x->w));
    put_model(x);
    int rc = put_tokenizer(x);
    if (rc == 0)
        rc = declare(x);
    for (size_t i = 0; rc == 0 && i < x->pieces; i++)
        rc = write_tensor(x, i);
    if (rc == 0)
        rc = write_divisors(x);
    if (rc == 0)
        return gguf_write_end(x->w);
    gguf_write_abort(x->w);
    return rc;
}

static void list_pieces(struct writing *x)
{
    struct gguf_part part[GGUF_PARTS_MOST];
    for (size_t i = 0; i < x->files; i++) {
        const struct tensor_spec *f = &x->file[i].spec, *s = &x->spec[x->file[i].part[0]];
        const bool of_expert = tensor_is_of_expert(s->role);
        const int parts = s->expert > 0 ? 0 : gguf_parts(&x->c, f, part);
        for (int k = 0; k < parts; k++)
            x->piece[x->pieces++] =
                (struct piece){.part = part[k],
                               .of = s,
                               .joined = x->file[i],
                               .experts = of_expert ? arch_mlp(&x->c.arch, s->layer)->experts : 0,
                               .added = gguf_added(&x->c, s),
                               .negated_exp = gguf_negated_exp(s),
                               .rows = gguf_row_tiles(&x->c, s),
                               .columns = gguf_column_tiles(&x->c, s)};
    }
}

static int allocate(struct writing *x)
{
    const size_t most = GGUF_PARTS_MOST * x->specs;
    size_t elements = PIECE_ELEMENTS;
    TRY(file_tensors(&x->c, x->spec, x->specs, &x->file, &x->files));
    for (size_t i = 0; i < x->specs; i++)
        if ((size_t)x->spec[i].shape[1] > elements)
            elements = (size_t)x->spec[i].shape[1];
    x->room = malloc(elements * sizeof *x->rows);
    x->piece = calloc(most, sizeof *x->piece);
    x->declared = calloc(most + DIVISORS_MOST, sizeof *x->declared);
    x->rows = malloc(elements * sizeof *x->rows);
    x->blocks = malloc(elements * sizeof *x->rows);
    return x->piece && x->declared && x->rows && x->room && x->blocks
               ? 0
               : fail(NJ_E_NOMEM, "out of memory to export %s", x->from);
}

/* Say that llama.cpp computes without a window that the file has. */
static void note_window(const struct writing *x)
{
    const struct gguf_arch *arch = gguf_arch(x->c.model_type);
    const int window = arch_attention(&x->c.arch, x->c.layers)->window;
    if (window > 0 && arch->windows == GGUF_IDLE_WINDOW)
        note("%s: llama.cpp reads no sliding window from GGUF files of architecture %s; past %d "
             "tokens it computes something else than this model",
             x->o->name, arch->name, window);
}

int gguf_export(const char *from, const char *to, const struct export_options *o, double *bytes)
{
    struct writing x = {.from = from, .o = o};
    int rc = source_config(from, &x.c);
    if (rc == 0)
        rc = gguf_check_model(&x.c, o->name);
    if (rc == 0)
        note_window(&x);
    if (rc == 0)
        rc = source_tensors(from, &x.tensors);
    if (rc == 0)
        rc = tensor_specs(&x.c, &x.spec, &x.specs);
    if (rc == 0)
        rc = allocate(&x);
    if (rc == 0) {
        list_pieces(&x);
        rc = write_all(&x, to);
    }
    *bytes = x.total;
    tensors_close(&x.tensors);
    free(x.spec);
    free(x.file);
    free(x.room);
    free(x.piece);
    free(x.declared);
    free(x.rows);
    free(x.blocks);
    return rc;
}
