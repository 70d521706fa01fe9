/* SPDX-License-Identifier: Apache-2.0
 *
 * f8_weights.c: matrices of a model as e4m3. They go to the device as T, in pieces of whole rows,
 * and are quantised there, or stay so where FP8 GEMMs are refused.
 */
#include "weights/f8_weights.h"

#include "io/error.h"
#include "nojit_ops.h"

#include <math.h>

/* Where a tensor lies: rows of a matrix, from `row` on. */
struct place {
    const struct f8_matrix *matrix; /* NULL: not among them */
    int row;
};

static const struct f8_matrix *matrix_of(const struct net *n, const struct tensor_spec *s)
{
    const int k = net_matrix(n, s);
    return k < 0 ? NULL : &n->f8[k];
}

/* What shares a matrix comes in a run. */
static struct place place_of(const struct net *n, size_t spec)
{
    struct place at = {.matrix = matrix_of(n, &n->p.spec[spec])};
    for (; at.matrix && spec > 0 && matrix_of(n, &n->p.spec[spec - 1]) == at.matrix; spec--)
        at.row += (int)n->p.spec[spec - 1].shape[0];
    return at;
}

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
    OP(r, nj_quantize_rows(r->s, i->T, i->to + first * columns, i->scale + first, NULL,
                           e->mem.staging, (int)count, columns));
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

bool f8_item(struct engine *e, size_t spec, const struct tensor *t, struct load_item *out)
{
    static const struct load_way rows = {"quantising weights", true, fill, send, NULL};
    static const struct load_way plain = {LOADING_WEIGHTS, false, fill_plain, send_plain,
                                          refuse_plain};
    const struct net *n = &e->teacher.net;
    const struct place at = place_of(n, spec);
    const struct f8_matrix *m = at.matrix;
    if (!m)
        return false;
    const size_t row_bytes = (size_t)m->columns * dtype_bytes(n->T);
    *out = (struct load_item){.way = m->plain ? &plain : &rows,
                              .tensor = t,
                              .units = t->shape[0],
                              .unit_bytes = row_bytes,
                              .to = m->q +
                                    (size_t)at.row * (m->plain ? row_bytes : (size_t)m->columns),
                              .T = n->T,
                              .scale = m->plain ? NULL : m->scale + at.row};
    return true;
}

static int scan(struct engine *e, size_t spec, bool *finite)
{
    const struct net *n = &e->teacher.net;
    const float *scale = (const float *)(void *)e->mem.transfer;
    const int64_t rows = n->p.spec[spec].shape[0];
    const struct place at = place_of(n, spec);
    if (!at.matrix || at.matrix->plain) /* which is looked at as it is read */
        return 0;
    int rc = nj_copy(e->stream, e->mem.transfer, at.matrix->scale + at.row,
                     (size_t)rows * sizeof *scale);
    if (rc == 0)
        rc = nj_stream_sync(e->stream);
    for (int64_t k = 0; rc == 0 && *finite && k < rows; k++)
        *finite = isfinite(scale[k]);
    return rc;
}

int f8_scan(struct engine *e, const char **name)
{
    const struct net *n = &e->teacher.net;
    bool finite = true;
    int rc = 0;
    *name = NULL;
    for (size_t i = 0; rc == 0 && finite && i < n->p.specs; i++) {
        if (!(n->shard && n->p.spec[i].layer >= 0))
            rc = scan(e, i, &finite);
        if (!finite)
            *name = n->p.spec[i].name;
    }
    return rc;
}

int f8_check(struct engine *e, const char *dir, int layer)
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
