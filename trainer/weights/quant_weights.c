/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_weights.c: loads blocks to the device as they lie in the file, in pieces of whole rows; floats in a file are
 * quantized on the way if the options say so.
 */
#include "weights/quant_weights.h"

#include "base/try.h"
#include "formats/quantize.h"
#include "io/error.h"
#include "net/quant.h"
#include "nojit_ops.h"
#include "weights/block_scales.h"
#include "weights/weights.h"

#include <stdlib.h>

enum { ROWS_AT_ONCE = 16 };

/* Convert a few rows to blocks of `type`: as the file has them, or quantized. Return 0, NJ_E_FORMAT if they are not
 * finite, or NJ_E_NOMEM. */
static int rows_as(enum nj_tensor_type type, const struct tensor *t, int64_t first, int64_t rows,
                   char *to)
{
    const int64_t columns = t->shape[1];
    if (t->dtype == type) {
        tensor_rows(t, first, rows, to);
        return block_scales_finite(type, to, tensor_type_bytes(type, rows * columns)) ? 0
                                                                                      : NJ_E_FORMAT;
    }
    float *x = malloc((size_t)(rows * columns) * sizeof *x);
    if (!x)
        return NJ_E_NOMEM;
    tensor_to_f32(t, first * columns, rows * columns, x);
    const int rc = quantize_rows(type, x, rows, columns, to);
    free(x);
    return rc;
}

/* Return the type of rows in the staging buffer: blocks that the device keeps as T are expanded there. */
static enum nj_tensor_type staged_as(const struct tensor *t, enum nj_tensor_type kept)
{
    return tensor_type_block(kept) == 1 && tensor_type_block(t->dtype) > 1 ? t->dtype : kept;
}

static int fill(struct engine *e, const struct load_item *i, int64_t first, int64_t count,
                char *staged)
{
    const struct tensor *t = i->tensor;
    const enum nj_tensor_type type = staged_as(t, i->type);
    const int64_t columns = t->shape[1];
    if (tensor_type_block(type) == 1) {
        loading_convert(e, t, first * columns, count * columns, i->T, staged);
        return loading_finite(e, staged, count * columns, i->T) ? 0 : NJ_E_FORMAT;
    }
    for (int64_t r = 0; r < count; r += ROWS_AT_ONCE) {
        const int64_t n = count - r < ROWS_AT_ONCE ? count - r : ROWS_AT_ONCE;
        TRY(rows_as(type, t, first + r, n, staged + (size_t)r * i->unit_bytes));
    }
    return 0;
}

static int refuse(const struct engine *e, const char *path, const struct load_item *i, int rc)
{
    const struct tensor *t = i->tensor;
    const enum nj_tensor_type staged = staged_as(t, i->type);
    const bool plain = tensor_type_block(staged) == 1;
    if (rc == NJ_E_NOMEM)
        return fail(rc, "%s: no host memory to quantize tensor %s; free some", path, t->name);
    if (t->dtype == staged && !plain)
        return fail(rc,
                    "%s: tensor %s holds a scale that is not finite; use another release of the "
                    "model",
                    path, t->name);
    return fail(rc,
                "%s: tensor %s holds NaN, infinity or numbers too large for %s; use another "
                "release of the model",
                path, t->name, tensor_type_name(plain ? weights_dtype(e) : staged));
}

static void send_rows(struct work *r, struct engine *e, const struct load_item *i, int64_t first,
                      int64_t count, const char *staged)
{
    (void)e;
    OP(r,
       nj_copy(r->s, i->to + (size_t)first * i->unit_bytes, staged, (size_t)count * i->unit_bytes));
}

/* Blocks that the device keeps as T are copied to the memory of the activations, and expanded from there. */
static void send_blocks(struct work *r, struct engine *e, const struct load_item *i, int64_t first,
                        int64_t count, const char *staged)
{
    const int rows = (int)count, columns = (int)i->tensor->shape[1];
    char *to = i->to + (size_t)(first * columns) * dtype_bytes(i->T);
    OP(r, nj_copy(r->s, e->mem.staging, staged, (size_t)count * i->unit_bytes));
    OP(r,
       nj_dequantize(r->s, i->T, (int)i->tensor->dtype,
                     &(struct nj_dequantize){.dst = to,
                                             .data = (const int32_t *)(const void *)e->mem.staging,
                                             .M = rows,
                                             .R = rows,
                                             .C = columns}));
}

void quant_item(const struct matrix *m, int row, const struct tensor *t, struct load_item *out)
{
    static const struct load_way kept = {LOADING_WEIGHTS, false, fill, send_rows, refuse};
    static const struct load_way expanded = {LOADING_WEIGHTS, true, fill, send_blocks, refuse};
    const bool plain = m->format == &matrix_plain;
    const int part = plain ? 0 : quant_part_of(m, &row);
    char *to = plain ? m->data : m->quant.part[part].data;
    const enum nj_tensor_type type = m->quant.part[part].type, staged = staged_as(t, type);
    *out = (struct load_item){.way = staged == type ? &kept : &expanded,
                              .tensor = t,
                              .units = t->shape[0],
                              .unit_bytes = tensor_type_block(staged) == 1
                                                ? quant_rows_bytes(m, part, 1)
                                                : tensor_type_bytes(staged, t->shape[1]),
                              .to = to + quant_rows_bytes(m, part, row),
                              .T = m->T,
                              .type = type};
}
