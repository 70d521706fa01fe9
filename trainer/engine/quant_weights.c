/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_weights.c: blocks go to the device as they lie in the file, in pieces of whole rows. Bad importance
 * matrices have left files with scales that are not finite, which would make every logit NaN.
 */
#include "engine/quant_weights.h"

#include "engine/quant.h"
#include "engine/weights.h"
#include "io/error.h"
#include "model/source.h"

/* The bytes of a block where its float16 scales lie; the second is -1 where it has one. */
static const struct scales {
    int first, second;
} scales_of[NJ_TYPES] = {
    [NJ_TYPE_Q8_0] = {0, -1},   [NJ_TYPE_Q4_0] = {0, -1},   [NJ_TYPE_Q4_1] = {0, 2},
    [NJ_TYPE_Q5_0] = {0, -1},   [NJ_TYPE_Q5_1] = {0, 2},    [NJ_TYPE_Q2_K] = {80, 82},
    [NJ_TYPE_Q3_K] = {108, -1}, [NJ_TYPE_Q4_K] = {0, 2},    [NJ_TYPE_Q5_K] = {0, 2},
    [NJ_TYPE_Q6_K] = {208, -1}, [NJ_TYPE_IQ4_NL] = {0, -1}, [NJ_TYPE_IQ4_XS] = {0, -1},
};

static bool is_finite(const unsigned char *half)
{
    return (half[1] & 0x7c) != 0x7c;
}

static bool all_finite(enum nj_tensor_type type, const unsigned char *blocks, size_t bytes)
{
    const struct scales at = scales_of[type];
    const size_t each = tensor_type_bytes(type, tensor_type_block(type));
    for (size_t b = 0; b < bytes; b += each)
        if (!is_finite(blocks + b + at.first) ||
            (at.second >= 0 && !is_finite(blocks + b + at.second)))
            return false;
    return true;
}

/* Rows of a tensor to the transfer buffer. Returns whether their scales are finite. */
static bool stage_rows(struct engine *e, const struct tensor *t, int64_t first, int64_t rows)
{
    const size_t row_bytes = tensor_type_bytes(t->dtype, t->shape[1]);
    bool finite = true;
#pragma omp parallel for schedule(static) reduction(&& : finite)
    for (int64_t r = 0; r < rows; r++) {
        char *to = e->mem.transfer + (size_t)r * row_bytes;
        tensor_rows(t, first + r, 1, to);
        finite = finite && all_finite(t->dtype, (const unsigned char *)to, row_bytes);
    }
    return finite;
}

/* A piece of a tensor to the transfer buffer, as the device keeps it. */
static int stage(struct engine *e, const char *path, const struct tensor *t, int64_t first,
                 int64_t rows)
{
    const enum nj_dtype T = e->teacher.net.T;
    if (tensor_type_block(t->dtype) == 1) {
        weights_convert(e, t, first * t->shape[1], rows * t->shape[1], T);
        return 0;
    }
    if (stage_rows(e, t, first, rows))
        return 0;
    return fail(NJ_E_FORMAT,
                "%s: tensor %s holds a scale that is not finite; use another release of the model",
                path, t->name);
}

static int send(struct engine *e, const char *path, size_t spec, const struct tensor *t)
{
    const struct net *n = &e->teacher.net;
    int part, row;
    const struct quant_matrix *m = quant_place(n, spec, &part, &row);
    if (!m)
        return 0;
    char *to = m->part[part].data + quant_rows_bytes(n, m, part, row);
    const size_t row_bytes = quant_rows_bytes(n, m, part, 1);
    const int64_t room = (int64_t)(e->mem.transfer_bytes / row_bytes), rows = t->shape[0];
    for (int64_t first = 0; first < rows; first += room) {
        const int64_t count = rows - first < room ? rows - first : room;
        struct work w = engine_work(e);
        const int rc = stage(e, path, t, first, count);
        if (rc != 0)
            return rc;
        OP(&w, nj_copy(w.s, to + (size_t)first * row_bytes, e->mem.transfer,
                       (size_t)count * row_bytes));
        OP(&w, nj_stream_sync(w.s));
        if (w.rc != 0)
            return engine_fail(e, w.rc, "loading weights");
    }
    return 0;
}

int quant_load(struct engine *e, const char *path)
{
    const struct params *p = &e->teacher.net.p;
    struct tensors w;
    int rc = source_tensors(path, &w);
    if (rc != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < p->specs; i++) {
        const struct tensor *t = tensors_find(&w, p->spec[i].name);
        rc = weights_check(path, &p->spec[i], t);
        if (rc == 0 && e->o.teacher_types[i] != t->dtype)
            rc = fail(NJ_E_FORMAT, "%s: the type of tensor %s changed while the file was read",
                      path, t->name);
        if (rc == 0)
            rc = send(e, path, i, t);
    }
    tensors_close(&w);
    return rc;
}
