/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_weights.c: loads blocks to the device as they lie in the file, in pieces of whole rows; floats in a file are
 * quantized on the way if the options say so. Bad importance matrices have left files with scales that are not
 * finite, which would make every logit NaN.
 */
#include "weights/quant_weights.h"

#include "base/try.h"
#include "formats/quantize.h"
#include "io/error.h"
#include "net/quant.h"
#include "nojit_ops.h"
#include "weights/weights.h"

#include <stdlib.h>

enum { ROWS_AT_ONCE = 16 };

/* Form of a scale: float16, float, given by byte 3 of an I4 block, or the exponent of a power of two. */
enum form { HALF, SINGLE, BY_KIND, POWER };

/* Offsets of the scales in a block; the second is -1 if it has one. */
static const struct scales {
    int first, second;
    enum form form;
} scales_of[NJ_TYPES] = {
    [NJ_TYPE_Q8_0] = {0, -1},
    [NJ_TYPE_Q4_0] = {0, -1},
    [NJ_TYPE_Q4_1] = {0, 2},
    [NJ_TYPE_Q5_0] = {0, -1},
    [NJ_TYPE_Q5_1] = {0, 2},
    [NJ_TYPE_Q2_K] = {80, 82},
    [NJ_TYPE_Q3_K] = {108, -1},
    [NJ_TYPE_Q4_K] = {0, 2},
    [NJ_TYPE_Q5_K] = {0, 2},
    [NJ_TYPE_Q6_K] = {208, -1},
    [NJ_TYPE_IQ4_NL] = {0, -1},
    [NJ_TYPE_IQ4_XS] = {0, -1},
    [NJ_TYPE_NF4] = {0, -1, SINGLE},
    [NJ_TYPE_I4_32] = {0, -1, BY_KIND},
    [NJ_TYPE_I4_64] = {0, -1, BY_KIND},
    [NJ_TYPE_I4_128] = {0, -1, BY_KIND},
    [NJ_TYPE_F8_32] = {0, -1, SINGLE},
    [NJ_TYPE_F8_128] = {0, -1, SINGLE},
    [NJ_TYPE_MXFP4] = {0, -1, POWER},
};

/* Return whether a scale is finite. The upper half of a float, which is a bfloat16, decides; the largest exponent
 * stands for NaN. */
static bool is_finite(enum form form, const unsigned char *scale)
{
    if (form == POWER)
        return *scale != 0xff;
    const unsigned char *upper = scale + (form == SINGLE ? 2 : 0);
    const bool half = form == HALF || (form == BY_KIND && scale[3] == 0);
    const unsigned char all = half ? 0x7c : 0x7f;
    return (upper[1] & all) != all || (!half && (upper[0] & 0x80) == 0);
}

bool quant_finite(enum nj_tensor_type type, const void *data, size_t bytes)
{
    const unsigned char *blocks = data;
    const struct scales at = scales_of[type];
    const size_t each = tensor_type_bytes(type, tensor_type_block(type));
    for (size_t b = 0; b < bytes; b += each)
        if (!is_finite(at.form, blocks + b + at.first) ||
            (at.second >= 0 && !is_finite(at.form, blocks + b + at.second)))
            return false;
    return true;
}

/* Convert a few rows to blocks of `type`: as the file has them, or quantized. Return 0, NJ_E_FORMAT if they are not
 * finite, or NJ_E_NOMEM. */
static int rows_as(enum nj_tensor_type type, const struct tensor *t, int64_t first, int64_t rows,
                   char *to)
{
    const int64_t columns = t->shape[1];
    if (t->dtype == type) {
        tensor_rows(t, first, rows, to);
        return quant_finite(type, to, tensor_type_bytes(type, rows * columns)) ? 0 : NJ_E_FORMAT;
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
