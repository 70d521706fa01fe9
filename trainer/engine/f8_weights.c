/* SPDX-License-Identifier: Apache-2.0
 *
 * f8_weights.c: matrices of a model as e4m3. They go to the device as T, in pieces of whole rows,
 * and are quantised there.
 */
#include "engine/f8_weights.h"

#include "engine/ranks.h"
#include "engine/teacher_shard.h"
#include "engine/weights.h"
#include "io/error.h"
#include "model/source.h"
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

/* The place of spec i, from that of the one before it: what shares a matrix comes in a run. */
static void advance(const struct net *n, size_t i, struct place *at)
{
    const struct f8_matrix *m = matrix_of(n, &n->p.spec[i]);
    const bool goes_on = m && m == at->matrix;
    at->row = goes_on ? at->row + (int)n->p.spec[i - 1].shape[0] : 0;
    at->matrix = m;
}

static bool is_here(const struct net *n, const struct place *at)
{
    return at->matrix && teacher_shard_keeps(n, (int)(at->matrix - n->f8));
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int quantize(struct engine *e, const struct tensor *t, int64_t rows, const struct place *at)
{
    const struct memory *mem = &e->mem;
    const struct f8_matrix *m = at->matrix;
    const enum nj_dtype T = e->teacher.net.T;
    const size_t row_bytes = (size_t)m->columns * dtype_bytes(T);
    const int64_t room = least((int64_t)(mem->transfer_bytes / row_bytes),
                               (int64_t)(mem->staging_bytes / row_bytes));
    for (int64_t first = 0; first < rows; first += room) {
        const int64_t count = least(room, rows - first), row = at->row + first;
        weights_convert(e, t, first * m->columns, count * m->columns, T);
        struct work w = engine_work(e);
        OP(&w, nj_copy(w.s, mem->staging, mem->transfer, (size_t)count * row_bytes));
        OP(&w, nj_quantize_rows(w.s, T, m->q + row * m->columns, m->scale + row, mem->staging,
                                (int)count, m->columns));
        OP(&w, nj_stream_sync(w.s));
        if (w.rc != 0)
            return engine_fail(e, w.rc, "quantising weights");
    }
    return 0;
}

int f8_scan(struct engine *e, const char **name)
{
    const struct net *n = &e->teacher.net;
    const float *scale = (const float *)(void *)e->mem.transfer;
    struct place at = {0};
    *name = NULL;
    for (size_t i = 0; i < n->p.specs; i++) {
        const int64_t rows = n->p.spec[i].shape[0];
        advance(n, i, &at);
        if (!is_here(n, &at))
            continue;
        int rc = nj_copy(e->stream, e->mem.transfer, at.matrix->scale + at.row,
                         (size_t)rows * sizeof *scale);
        if (rc == 0)
            rc = nj_stream_sync(e->stream);
        for (int64_t k = 0; rc == 0 && k < rows; k++)
            if (!isfinite(scale[k])) {
                *name = n->p.spec[i].name;
                return 0;
            }
        if (rc != 0)
            return rc;
    }
    return 0;
}

int f8_load(struct engine *e, const char *dir)
{
    const struct net *n = &e->teacher.net;
    struct place at = {0};
    struct tensors w;
    int rc = source_tensors_again(dir, &w);
    if (rc != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < n->p.specs; i++) {
        const struct tensor *t = tensors_find(&w, n->p.spec[i].name);
        advance(n, i, &at);
        if (at.matrix)
            rc = weights_check(dir, &n->p.spec[i], t);
        if (rc == 0 && at.matrix && (e->o.given || is_here(n, &at)))
            rc = quantize(e, t, n->p.spec[i].shape[0], &at);
        if (rc == 0 && at.matrix)
            weights_seen(e, t);
        if (rc == 0 && weights_ends_layer(&n->p, i))
            rc = ranks_send_layer(e, n->p.spec[i].layer);
    }
    tensors_close(&w);
    return rc;
}

/* A layer that is not finite is told by the rank that keeps it: others would find its traces only. */
int f8_check(struct engine *e, const char *dir)
{
    const char *name;
    const int rc = f8_scan(e, &name);
    if (rc != 0)
        return engine_fail(e, rc, "checking weights");
    return !name ? 0
                 : fail(NJ_E_FORMAT,
                        "%s: tensor %s holds NaN or infinity; use another release of the model",
                        dir, name);
}
