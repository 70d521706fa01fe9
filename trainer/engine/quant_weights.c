/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_weights.c: blocks go to the device as they lie in the file, in pieces of whole rows; what the file has as
 * floats is quantised on the way where the options say so. Bad importance matrices have left files with scales that
 * are not finite, which would make every logit NaN.
 */
#include "engine/quant_weights.h"

#include "engine/quant.h"
#include "engine/ranks.h"
#include "engine/teacher_shard.h"
#include "engine/weights.h"
#include "io/error.h"
#include "io/quantize.h"
#include "model/source.h"
#include "nojit_ops.h"

#include <stdlib.h>

enum { ROWS_AT_ONCE = 16 };

/* How a scale is written: float16, float, or as byte 3 of an I4 block says. */
enum form { HALF, SINGLE, BY_KIND };

/* The bytes of a block where its scales lie; the second is -1 where it has one. */
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
};

/* Of a float the upper half says it, which is a bfloat16. */
static bool is_finite(enum form form, const unsigned char *scale)
{
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

/* A few rows as blocks of `type`: as the file has them, or quantised. Returns 0, NJ_E_FORMAT if they are not
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

/* A piece of a tensor to the transfer buffer, as the device keeps it. */
static int stage(struct engine *e, const struct tensor *t, enum nj_tensor_type type, int64_t first,
                 int64_t rows)
{
    const enum nj_dtype T = e->teacher.net.T;
    const int64_t columns = t->shape[1];
    int rc = 0;
    if (tensor_type_block(type) == 1) {
        weights_convert(e, t, first * columns, rows * columns, T);
        return weights_finite(e, e->mem.transfer, rows * columns, T) ? 0 : NJ_E_FORMAT;
    }
    const size_t row_bytes = tensor_type_bytes(type, columns);
#pragma omp parallel for schedule(dynamic)
    for (int64_t r = 0; r < rows; r += ROWS_AT_ONCE) {
        const int64_t n = rows - r < ROWS_AT_ONCE ? rows - r : ROWS_AT_ONCE;
        const int failed = rows_as(type, t, first + r, n, e->mem.transfer + (size_t)r * row_bytes);
        if (failed) {
#pragma omp atomic write
            rc = failed;
        }
    }
    return rc;
}

static int refuse(int rc, const char *path, const struct tensor *t, enum nj_tensor_type type)
{
    if (rc == NJ_E_NOMEM)
        return fail(rc, "%s: no host memory to quantise tensor %s; free some", path, t->name);
    if (t->dtype == type && tensor_type_block(type) > 1)
        return fail(rc,
                    "%s: tensor %s holds a scale that is not finite; use another release of the "
                    "model",
                    path, t->name);
    return fail(rc,
                "%s: tensor %s holds NaN, infinity or numbers too large for %s; use another "
                "release of the model",
                path, t->name, tensor_type_name(type));
}

/* As in the transfer buffer, to the device; blocks that it keeps as T go where activations will be, and are expanded
 * from there. */
static int put(struct engine *e, const struct tensor *t, enum nj_tensor_type staged, char *to,
               int64_t rows, bool expand)
{
    const struct memory *m = &e->mem;
    struct work w = engine_work(e);
    const enum nj_dtype T = e->teacher.net.T;
    const int64_t columns = t->shape[1];
    const size_t bytes = tensor_type_block(staged) > 1 ? tensor_type_bytes(staged, columns)
                                                       : (size_t)columns * dtype_bytes(T);
    OP(&w, nj_copy(w.s, expand ? m->staging : to, m->transfer, (size_t)rows * bytes));
    if (expand)
        OP(&w, nj_dequantize(w.s, T, (int)staged, to, (const int32_t *)(const void *)m->staging,
                             NULL, (int)rows, (int)rows, (int)columns));
    OP(&w, nj_stream_sync(w.s));
    return w.rc == 0 ? 0 : engine_fail(e, w.rc, "loading weights");
}

static int send(struct engine *e, const char *path, const struct tensor *t,
                enum nj_tensor_type type, char *to, size_t row_bytes)
{
    const struct memory *m = &e->mem;
    const bool plain = tensor_type_block(type) == 1;
    const bool expand = plain && tensor_type_block(t->dtype) > 1;
    const enum nj_tensor_type staged = expand ? t->dtype : type;
    const size_t most =
        expand && m->staging_bytes < m->transfer_bytes ? m->staging_bytes : m->transfer_bytes;
    const int64_t room = (int64_t)(most / row_bytes), rows = t->shape[0];
    for (int64_t first = 0; first < rows; first += room) {
        const int64_t count = rows - first < room ? rows - first : room;
        int rc = stage(e, t, staged, first, count);
        if (rc != 0)
            return refuse(rc, path, t, plain && !expand ? weights_dtype(e) : staged);
        rc = put(e, t, staged, to + (size_t)first * row_bytes, count, expand);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* What is kept here of a tensor, which is all of it or nothing. */
static int load_matrix(struct engine *e, const char *path, size_t spec, const struct tensor *t)
{
    const struct net *n = &e->teacher.net;
    int part, row, rc = 0;
    const struct quant_matrix *m = quant_place(n, spec, &part, &row);
    if (!m)
        return 0;
    if (e->o.given || teacher_shard_keeps(n, (int)(m - n->quant)))
        rc = send(e, path, t, m->part[part].type,
                  m->part[part].data + quant_rows_bytes(n, m, part, row),
                  quant_rows_bytes(n, m, part, 1));
    weights_seen(e, t);
    return rc;
}

int quant_load(struct engine *e, const char *path)
{
    const struct params *p = &e->teacher.net.p;
    struct tensors w;
    int rc = source_tensors_again(path, &w);
    if (rc != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < p->specs; i++) {
        const struct tensor *t = tensors_find(&w, p->spec[i].name);
        rc = weights_check(path, &p->spec[i], t);
        if (rc == 0)
            rc = load_matrix(e, path, i, t);
        if (rc == 0 && weights_ends_layer(p, i))
            rc = ranks_send_layer(e, p->spec[i].layer);
    }
    tensors_close(&w);
    return rc;
}
