/* SPDX-License-Identifier: Apache-2.0
 *
 * folder_experts.c: see folder_experts.h. transformers 5 computes with such tensors, and saves them where other
 * programs changed a model. Those of gpt-oss are transposed, with gate and up in turn, or MXFP4 (Rouhani et al. 2023,
 * arXiv:2310.10537): numbers of 4 bits, of which 32 of a row share a power of two.
 */
#include "model/folder_experts.h"

#include "base/families.h"
#include "base/float16.h"
#include "base/try.h"
#include "formats/safetensors.h"
#include "io/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ways in which a file holds the matrices, or biases, of all experts. */
enum form {
    BELOW,      /* [experts, rows, columns], the parts one below the other */
    TRANSPOSED, /* [experts, columns, rows], rows of the parts in turn */
    BIASES,     /* [experts, rows], those of the parts in turn */
    MXFP4       /* [experts, rows, blocks, 16], rows of the parts in turn; scales apart */
};

enum { PARTS_MOST = 2 };
static const struct stack {
    unsigned fields; /* group of fields of the families that have it */
    const char *end; /* end of its name */
    enum form form;
    const char *part[PARTS_MOST]; /* names of the parts of an expert's rows */
} stacks[] = {
    {FIELDS_EXPERTS, ".mlp.experts.gate_up_proj", BELOW, {"gate_proj.weight", "up_proj.weight"}},
    {FIELDS_EXPERTS, ".mlp.experts.down_proj", BELOW, {"down_proj.weight"}},
    {FIELDS_EXPERTS, ".feed_forward.experts.gate_up_proj", BELOW, {"w1.weight", "w3.weight"}},
    {FIELDS_EXPERTS, ".feed_forward.experts.down_proj", BELOW, {"w2.weight"}},
    {FIELDS_OSS, ".mlp.experts.gate_up_proj", TRANSPOSED, {"gate_proj.weight", "up_proj.weight"}},
    {FIELDS_OSS, ".mlp.experts.down_proj", TRANSPOSED, {"down_proj.weight"}},
    {FIELDS_OSS, ".mlp.experts.gate_up_proj_bias", BIASES, {"gate_proj.bias", "up_proj.bias"}},
    {FIELDS_OSS, ".mlp.experts.down_proj_bias", BIASES, {"down_proj.bias"}},
    {FIELDS_OSS, ".mlp.experts.gate_up_proj_blocks", MXFP4, {"gate_proj.weight", "up_proj.weight"}},
    {FIELDS_OSS, ".mlp.experts.down_proj_blocks", MXFP4, {"down_proj.weight"}},
};
enum { MXFP4_ELEMENTS = 32, MXFP4_BYTES = 16, STRIDED_ELEMENTS = 8 };

struct splitting {
    const char *dir;
    unsigned fields; /* groups of fields of the family */
    int experts;
    const struct tensors *from;
    struct tensor *to;
    struct packed *packed;
    size_t count, packs;
};

static int parts_of(const struct stack *s)
{
    return s->part[1] ? 2 : 1;
}

static bool ends(const char *name, const char *end)
{
    const size_t n = strlen(name), bytes = strlen(end);
    return n > bytes && strcmp(name + n - bytes, end) == 0;
}

/* Return the row of a tensor of all experts; NULL: it is none. */
static const struct stack *stack_of(const struct splitting *x, const struct tensor *t)
{
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
        if ((stacks[i].fields & x->fields) != 0 && ends(t->name, stacks[i].end))
            return &stacks[i];
    return NULL;
}

/* ---- elements that do not lie as they are read ---- */

static float element_at(const struct packed_part *p, int64_t i)
{
    uint16_t half;
    float x;
    if (p->type == NJ_TYPE_F32) {
        memcpy(&x, p->data + 4 * i, sizeof x);
        return x;
    }
    memcpy(&half, p->data + 2 * i, sizeof half);
    return p->type == NJ_TYPE_BF16 ? f32_from_bf16(half) : f32_from_f16(half);
}

static void strided(const struct packed *p, int64_t row, int64_t column, unsigned char *to)
{
    float x[STRIDED_ELEMENTS];
    for (int i = 0; i < STRIDED_ELEMENTS; i++)
        x[i] =
            element_at(&p->part[0], p->first + row * p->row_step + (column + i) * p->column_step);
    memcpy(to, x, sizeof x);
}

/* Make a block of NJ_TYPE_MXFP4. In files element 2 i of a block is in the lower half of its byte i, in such a block
 * elements i and i + 16 share a byte. */
static void mxfp4(const struct packed *p, int64_t row, int64_t column, unsigned char *to)
{
    const int64_t block =
        (p->first + row * p->row_step) * (p->columns / MXFP4_ELEMENTS) + column / MXFP4_ELEMENTS;
    const unsigned char *codes = p->part[0].data + block * MXFP4_BYTES;
    to[0] = p->part[1].data[block];
    for (int i = 0; i < MXFP4_BYTES; i++) {
        const int shift = i % 2 * 4;
        to[1 + i] = (unsigned char)((codes[i / 2] >> shift & 15) |
                                    (codes[i / 2 + MXFP4_BYTES / 2] >> shift & 15) << 4);
    }
}

/* ---- one tensor of all experts ---- */

/* Return its part of one expert. */
static struct packed_part part_at(const struct tensor *t, int expert)
{
    const size_t bytes = t->bytes / (size_t)t->shape[0];
    return (struct packed_part){(const unsigned char *)t->data + (size_t)expert * bytes, bytes,
                                (int)t->dtype};
}

/* Describe part k of an expert: its sizes, and how it is read unless it lies BELOW. Return its rank. */
static int describe(const struct tensor *t, const struct stack *s, const struct tensor *scales,
                    int expert, int k, struct packed *p)
{
    const int64_t parts = parts_of(s);
    *p = (struct packed){
        .block = strided, .elements = STRIDED_ELEMENTS, .first = k, .row_step = parts};
    p->part[0] = part_at(t, expert);
    switch (s->form) {
    case TRANSPOSED:
        p->rows = t->shape[2] / parts;
        p->columns = t->shape[1];
        p->column_step = t->shape[2];
        return 2;
    case BIASES:
        p->rows = 1;
        p->columns = t->shape[1] / parts;
        p->column_step = parts;
        return 1;
    case BELOW:
        p->rows = t->shape[1] / parts;
        p->columns = t->shape[2];
        return 2;
    case MXFP4:
        p->part[1] = part_at(scales, expert);
        p->block = mxfp4;
        p->elements = MXFP4_ELEMENTS;
        p->rows = t->shape[1] / parts;
        p->columns = t->shape[2] * MXFP4_ELEMENTS;
    }
    return 2;
}

/* Append one tensor. Rows that lie one after another are read as they are. */
static void append(struct splitting *x, const struct tensor *t, const struct stack *s,
                   const struct tensor *scales, int expert, int k)
{
    struct packed p;
    struct tensor *to = &x->to[x->count++];
    const int before = (int)(strlen(t->name) - strlen(strrchr(t->name, '.')));
    const int rank = describe(t, s, scales, expert, k, &p);
    *to = (struct tensor){.rank = rank, .shape = {rank == 1 ? p.columns : p.rows}};
    if (rank == 2)
        to->shape[1] = p.columns;
    snprintf(to->name, sizeof to->name, "%.*s.%d.%s", before, t->name, expert, s->part[k]);
    if (s->form == BELOW) {
        to->dtype = t->dtype;
        to->bytes = p.part[0].bytes / (size_t)parts_of(s);
        to->data = p.part[0].data + (size_t)k * to->bytes;
        return;
    }
    to->dtype = s->form == MXFP4 ? NJ_TYPE_MXFP4 : NJ_TYPE_F32;
    to->bytes = tensor_type_bytes(to->dtype, p.rows * p.columns);
    to->packed = &x->packed[x->packs];
    x->packed[x->packs++] = p;
}

/* Find the scales beside blocks. */
static const struct tensor *scales_of(const struct splitting *x, const struct tensor *blocks)
{
    char name[sizeof blocks->name + 8];
    const int before = (int)(strlen(blocks->name) - strlen("blocks"));
    snprintf(name, sizeof name, "%.*sscales", before, blocks->name);
    return tensors_find(x->from, name);
}

/* Check that a tensor has the rank and the type of its form, and that its rows can be divided. */
static int check(const struct splitting *x, const struct tensor *t, const struct stack *s,
                 const struct tensor *scales)
{
    static const int ranks[] = {[BELOW] = 3, [TRANSPOSED] = 3, [BIASES] = 2, [MXFP4] = 4};
    const bool blocks = s->form == MXFP4;
    const int64_t rows = t->shape[s->form == TRANSPOSED ? 2 : 1];
    bool right = t->rank == ranks[s->form] && t->shape[0] == x->experts && rows > 0 &&
                 rows % parts_of(s) == 0 &&
                 (blocks ? (int)t->dtype == ST_U8 : (int)t->dtype < NJ_TYPES);
    if (right && s->form == TRANSPOSED)
        right = t->shape[1] % STRIDED_ELEMENTS == 0;
    if (right && s->form == BIASES)
        right = rows / parts_of(s) % STRIDED_ELEMENTS == 0;
    if (right && blocks)
        right = t->shape[3] == MXFP4_BYTES && t->shape[2] > 0 && scales && scales->rank == 3 &&
                (int)scales->dtype == ST_U8 &&
                memcmp(scales->shape, t->shape, 3 * sizeof rows) == 0;
    if (right)
        return 0;
    return fail(NJ_E_FORMAT,
                "%s: tensor %s has not the shape or the type of the weights of %d experts%s; use "
                "another release of the model",
                x->dir, t->name, x->experts, blocks ? ", or their scales are missing" : "");
}

static int divide(struct splitting *x, const struct tensor *t, const struct stack *s)
{
    const struct tensor *scales = s->form == MXFP4 ? scales_of(x, t) : NULL;
    TRY(check(x, t, s, scales));
    for (int e = 0; e < x->experts; e++)
        for (int k = 0; k < parts_of(s); k++)
            append(x, t, s, scales, e, k);
    return 0;
}

/* Return whether a tensor has the scales of blocks that are there. */
static bool is_scales(const struct splitting *x, const struct tensor *t)
{
    char name[sizeof t->name + 8];
    if (!(x->fields & FIELDS_OSS) || !(ends(t->name, ".mlp.experts.gate_up_proj_scales") ||
                                       ends(t->name, ".mlp.experts.down_proj_scales")))
        return false;
    snprintf(name, sizeof name, "%.*sblocks", (int)(strlen(t->name) - strlen("scales")), t->name);
    return tensors_find(x->from, name) != NULL;
}

/* ---- all of them ---- */

/* Sort the tensors by name. Refuse two of one name: weights of an expert that stand there twice. */
static int sort_all(struct splitting *x)
{
    const struct tensor *twice = tensors_sort(x->to, x->count);
    if (twice)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s is there twice, by itself and in a tensor of all experts; "
                    "use another release of the model",
                    x->dir, twice->name);
    return 0;
}

static int divide_all(struct splitting *x)
{
    for (size_t i = 0; i < x->from->count; i++) {
        const struct tensor *t = &x->from->tensor[i];
        const struct stack *s = stack_of(x, t);
        if (s)
            TRY(divide(x, t, s));
        else if (!is_scales(x, t))
            x->to[x->count++] = *t;
    }
    return 0;
}

int folder_experts_split(const char *dir, const struct model_config *c, struct tensors *w)
{
    const struct block *b = arch_first(&c->arch, c->layers, BLOCK_EXPERTS);
    struct splitting x = {.dir = dir, .experts = b->experts, .from = w};
    size_t more = 0;
    x.fields = family_find(c->model_type)->fields;
    for (size_t i = 0; i < w->count; i++)
        more += stack_of(&x, &w->tensor[i]) ? PARTS_MOST * (size_t)b->experts : 0;
    if (more == 0)
        return 0;
    x.to = calloc(w->count + more, sizeof *x.to);
    x.packed = calloc(more, sizeof *x.packed);
    int rc = x.to && x.packed
                 ? divide_all(&x)
                 : fail(NJ_E_NOMEM, "%s: out of memory for a list of %zu tensors", dir, more);
    if (rc == 0)
        rc = sort_all(&x);
    if (rc != 0) {
        free(x.to);
        free(x.packed);
        return rc;
    }
    free(w->tensor);
    free(w->packed);
    w->tensor = x.to;
    w->packed = x.packed;
    w->count = x.count;
    return 0;
}
