/* SPDX-License-Identifier: Apache-2.0
 *
 * fp8_weights.c: loads matrices of a model as E4M3. They go to the device as T, in pieces of whole rows, and are
 * quantized there, or stay T if FP8 GEMMs are refused.
 */
#include "weights/fp8_weights.h"

#include "base/try.h"
#include "io/error.h"
#include "net/fp8.h"
#include "net/teacher_shard.h"
#include "nojit_ops.h"

#include <math.h>

static int fill(struct engine *e, const struct load_item *i, int64_t first, int64_t count,
                char *staged)
{
    const int64_t columns = i->tensor->shape[1];
    loading_convert(e, i->tensor, first * columns, count * columns, i->T, staged);
    return 0;
}

static void send(struct work *r, struct engine *e, const struct load_item *i, int64_t first,
                 int64_t count, const char *staged)
{
    const int columns = (int)i->tensor->shape[1];
    OP(r, nj_copy(r->s, e->mem.staging, staged, (size_t)count * i->unit_bytes));
    OP(r, nj_quantize_rows(r->s, i->T,
                           &(struct nj_quantize_rows){.q = i->to + first * columns,
                                                      .scale = i->scale + first,
                                                      .x = e->mem.staging,
                                                      .N = (int)count,
                                                      .C = columns}));
}

static int fill_plain(struct engine *e, const struct load_item *i, int64_t first, int64_t count,
                      char *staged)
{
    fill(e, i, first, count, staged);
    return loading_finite(e, staged, count * i->tensor->shape[1], i->T) ? 0 : NJ_E_FORMAT;
}

static void send_plain(struct work *r, struct engine *e, const struct load_item *i, int64_t first,
                       int64_t count, const char *staged)
{
    (void)e;
    OP(r,
       nj_copy(r->s, i->to + (size_t)first * i->unit_bytes, staged, (size_t)count * i->unit_bytes));
}

static int refuse_plain(const struct engine *e, const char *path, const struct load_item *i, int rc)
{
    (void)e;
    return fail(rc, "%s: tensor %s holds NaN or infinity; use another release of the model", path,
                i->tensor->name);
}

void fp8_item(const struct matrix *m, int row, const struct tensor *t, struct load_item *out)
{
    static const struct load_way way = {"quantizing weights", true, fill, send, NULL};
    *out = (struct load_item){.way = &way,
                              .tensor = t,
                              .units = t->shape[0],
                              .unit_bytes = (size_t)m->cols * dtype_bytes(m->T),
                              .to = m->f8.q + (size_t)row * (size_t)m->cols,
                              .T = m->T,
                              .scale = m->f8.scale + row};
}

void fp8_refused_item(const struct matrix *m, int row, const struct tensor *t,
                      struct load_item *out)
{
    static const struct load_way way = {LOADING_WEIGHTS, false, fill_plain, send_plain,
                                        refuse_plain};
    const size_t row_bytes = (size_t)m->cols * dtype_bytes(m->T);
    *out = (struct load_item){.way = &way,
                              .tensor = t,
                              .units = t->shape[0],
                              .unit_bytes = row_bytes,
                              .to = m->data + (size_t)row * row_bytes,
                              .T = m->T};
}

static int scan(struct engine *e, size_t spec, bool *finite)
{
    const struct net *n = &e->teacher.net;
    const float *scale = (const float *)(void *)e->mem.transfer;
    const int64_t rows = n->p.spec[spec].shape[0];
    int row;
    const struct matrix *m = net_matrix_of(n, spec, &row);
    if (!m || m->format != &matrix_fp8) /* other tensors are checked as they are read */
        return 0;
    TRY(nj_copy(e->stream, e->mem.transfer, m->f8.scale + row, (size_t)rows * sizeof *scale));
    TRY(nj_stream_sync(e->stream));
    for (int64_t k = 0; *finite && k < rows; k++)
        *finite = isfinite(scale[k]);
    return 0;
}

int fp8_scan(struct engine *e, const char **name)
{
    const struct net *n = &e->teacher.net;
    bool finite = true;
    *name = NULL;
    for (size_t i = 0; finite && i < n->p.specs; i++) {
        if (teacher_shard_here(n, n->p.spec[i].layer))
            TRY(scan(e, i, &finite));
        if (!finite)
            *name = n->p.spec[i].name;
    }
    return 0;
}

int fp8_check(struct engine *e, const char *dir, int layer)
{
    const struct net *n = &e->teacher.net;
    bool finite = true;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n->p.specs; i++) {
        if (n->p.spec[i].layer == layer)
            rc = scan(e, i, &finite);
        if (!finite)
            return fail(NJ_E_FORMAT,
                        "%s: tensor %s holds NaN or infinity; use another release of the model",
                        dir, n->p.spec[i].name);
    }
    return rc == 0 ? 0 : engine_fail(e, rc, "checking weights");
}
