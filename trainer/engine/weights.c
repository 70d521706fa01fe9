/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.c: weights between models and the arenas. Data goes through one pinned
 * buffer; the conversion on the way uses every core.
 */
#include "engine/weights.h"

#include "engine/ranks.h"
#include "io/error.h"
#include "model/source.h"
#include "nojit_ops.h"

#include <math.h>
#include <string.h>

enum { CONVERT_BLOCK = 1 << 16 };

/* ---- reading ---- */

/* Stored copies of what the engine computes or shares. */
static bool may_be_extra(const struct params *p, const char *name)
{
    static const char frequencies[] = "rotary_emb.inv_freq";
    size_t n = strlen(name), f = sizeof frequencies - 1;
    if (n >= f && strcmp(name + n - f, frequencies) == 0)
        return true;
    return p->head == p->embed && strcmp(name, "lm_head.weight") == 0;
}

/* Nothing is missing, nothing is left over. */
static int check_tensors(const char *dir, const struct params *p, const struct tensors *w)
{
    for (size_t i = 0; i < w->count; i++) {
        const char *name = w->tensor[i].name;
        bool known = may_be_extra(p, name);
        for (size_t k = 0; !known && k < p->specs; k++)
            known = strcmp(p->spec[k].name, name) == 0;
        if (!known)
            return fail(
                NJ_E_UNSUPPORTED,
                "%s: tensor %s is not part of the model that config.json describes; it would be "
                "ignored, so remove it or use another model",
                dir, name);
    }
    for (size_t i = 0; i < p->specs; i++) {
        const int rc = weights_check(dir, &p->spec[i], tensors_find(w, p->spec[i].name));
        if (rc != 0)
            return rc;
    }
    return 0;
}

void weights_convert(struct engine *e, const struct tensor *t, int64_t first, int64_t count,
                     enum nj_dtype T)
{
    const int to_f16 = nj_context_device(e->ctx)->lp_is_f16;
    char *dst = e->mem.transfer;
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < count; at += CONVERT_BLOCK) {
        int64_t n = count - at < CONVERT_BLOCK ? count - at : CONVERT_BLOCK;
        char *to = dst + (size_t)at * dtype_bytes(T);
        if (T == NJ_F32)
            tensor_to_f32(t, first + at, n, (float *)(void *)to);
        else
            tensor_to_16(t, first + at, n, to_f16, (uint16_t *)(void *)to);
    }
}

static int upload(struct engine *e, const struct tensor *t, int64_t elements, enum nj_dtype T,
                  char *to)
{
    int64_t room = (int64_t)(e->mem.transfer_bytes / dtype_bytes(T));
    for (int64_t at = 0; at < elements; at += room) {
        int64_t n = elements - at < room ? elements - at : room;
        weights_convert(e, t, at, n, T);
        int rc = nj_copy(e->stream, to + (size_t)at * dtype_bytes(T), e->mem.transfer,
                         (size_t)n * dtype_bytes(T));
        if (rc == 0)
            rc = nj_stream_sync(e->stream);
        if (rc != 0)
            return engine_fail(e, rc, "loading weights");
    }
    return 0;
}

/* Rows of a quantised matrix: the blocks go where activations will be, and are expanded from there. */
static int upload_blocks(struct engine *e, const struct tensor *t, enum nj_dtype T, char *to)
{
    const struct memory *m = &e->mem;
    const int64_t rows = t->shape[0], columns = t->shape[1];
    const size_t row_bytes = tensor_type_bytes(t->dtype, columns);
    const size_t most = m->transfer_bytes < m->staging_bytes ? m->transfer_bytes : m->staging_bytes;
    const int64_t room = (int64_t)(most / row_bytes);
    for (int64_t first = 0; first < rows; first += room) {
        const int n = (int)(rows - first < room ? rows - first : room);
        struct work w = engine_work(e);
        tensor_rows(t, first, n, m->transfer);
        OP(&w, nj_copy(w.s, m->staging, m->transfer, (size_t)n * row_bytes));
        OP(&w, nj_dequantize(w.s, T, (int)t->dtype, to + (size_t)(first * columns) * dtype_bytes(T),
                             (const int32_t *)(const void *)m->staging, NULL, n, n, (int)columns));
        OP(&w, nj_stream_sync(w.s));
        if (w.rc != 0)
            return engine_fail(e, w.rc, "expanding weights");
    }
    return 0;
}

int weights_read(struct engine *e, const char *dir, const struct tensors *w, const struct params *p,
                 enum nj_dtype T, void *arena)
{
    int rc = check_tensors(dir, p, w);
    for (size_t i = 0; rc == 0 && i < p->specs; i++) {
        const struct tensor *t = tensors_find(w, p->spec[i].name);
        if (p->first[i] < 0)
            continue;
        char *to = (char *)arena + (size_t)p->first[i] * dtype_bytes(T);
        if (tensor_type_block(t->dtype) > 1)
            rc = upload_blocks(e, t, T, to);
        else
            rc = upload(e, t, tensor_elements(&p->spec[i]), T, to);
        weights_seen(e, t);
    }
    return rc;
}

void weights_seen(struct engine *e, const struct tensor *t)
{
    e->load_seen += (double)t->bytes / 2;
    if (e->o.loaded)
        e->o.loaded(e->o.loaded_user, e->load_seen, e->load_bytes);
}

bool weights_ends_layer(const struct params *p, size_t spec)
{
    const int layer = p->spec[spec].layer;
    return layer >= 0 && (spec + 1 == p->specs || p->spec[spec + 1].layer != layer);
}

static void hashed(void *e, const struct tensor *t)
{
    weights_seen(e, t);
}

static void begin_reading(struct engine *e, const struct tensors *w)
{
    e->load_seen = e->load_bytes = 0;
    for (size_t i = 0; i < w->count; i++)
        e->load_bytes += (double)w->tensor[i].bytes;
    if (e->o.loaded)
        e->o.loaded(e->o.loaded_user, 0, e->load_bytes);
}

int weights_load(struct engine *e, const char *dir, const struct params *p, enum nj_dtype T,
                 void *arena, uint64_t *hash)
{
    struct tensors w;
    int rc = source_tensors(dir, &w);
    if (rc != 0)
        return rc;
    rc = check_tensors(dir, p, &w);
    if (rc == 0) {
        begin_reading(e, &w);
        *hash = tensors_hash(&w, hashed, e); /* first: whoever waits for a disk is told */
        rc = weights_read(e, dir, &w, p, T, arena);
    }
    tensors_close(&w);
    return rc;
}

/* ---- the rare search ---- */

bool weights_finite(const struct engine *e, const char *data, int64_t count, enum nj_dtype T)
{
    const int is_f16 = nj_context_device(e->ctx)->lp_is_f16;
    bool finite = true;
#pragma omp parallel for schedule(static) reduction(&& : finite)
    for (int64_t i = 0; i < count; i++) {
        float x;
        uint16_t bits;
        if (T == NJ_F32) {
            memcpy(&x, data + i * 4, sizeof x);
        } else {
            memcpy(&bits, data + i * 2, sizeof bits);
            x = is_f16 ? f32_from_f16(bits) : f32_from_bf16(bits);
        }
        finite = finite && isfinite(x);
    }
    return finite;
}

int weights_scan(struct engine *e, const struct params *p, enum nj_dtype T, const void *arena,
                 const char **name)
{
    int64_t room = (int64_t)(e->mem.transfer_bytes / dtype_bytes(T));
    const int joined = engine_join(e);
    *name = NULL;
    if (joined != 0)
        return joined;
    for (size_t i = 0; i < p->specs; i++) {
        int64_t elements = p->first[i] < 0 ? 0 : tensor_elements(&p->spec[i]);
        for (int64_t at = 0; at < elements; at += room) {
            int64_t n = elements - at < room ? elements - at : room;
            const char *from = (const char *)arena + (size_t)(p->first[i] + at) * dtype_bytes(T);
            int rc = nj_copy(e->stream, e->mem.transfer, from, (size_t)n * dtype_bytes(T));
            if (rc == 0)
                rc = nj_stream_sync(e->stream);
            if (rc != 0)
                return rc;
            if (!weights_finite(e, e->mem.transfer, n, T)) {
                *name = p->spec[i].name;
                return 0;
            }
        }
    }
    return 0;
}

/* ---- writing ---- */

enum nj_tensor_type weights_dtype(const struct engine *e)
{
    if (e->o.dtype == NJ_F32)
        return NJ_TYPE_F32;
    return nj_context_device(e->ctx)->lp_is_f16 ? NJ_TYPE_F16 : NJ_TYPE_BF16;
}

int weights_download(struct engine *e, const char *from, size_t bytes, weights_put *put, void *file)
{
    struct work r = engine_work(e);
    for (size_t at = 0; at < bytes; at += e->mem.transfer_bytes) {
        size_t n = bytes - at < e->mem.transfer_bytes ? bytes - at : e->mem.transfer_bytes;
        OP(&r, nj_copy(r.s, e->mem.transfer, from + at, n));
        OP(&r, nj_stream_sync(r.s));
        if (r.rc != 0)
            return engine_fail(e, r.rc, "saving weights");
        const int rc = put(file, e->mem.transfer, n);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int weights_round(struct engine *e)
{
    const struct updated u = engine_updated(e);
    struct work r = engine_work(e);
    if (u.w == e->mem.trained)
        return 0;
    OP(&r, nj_cast_to_lp(r.s, NJ_LP, e->mem.trained, (const float *)(const void *)u.w,
                         engine_trained(e)->count));
    if (engine_gathers(e))
        ranks_keep(&r, e, e->mem.master, sizeof(float));
    return r.rc;
}

void weights_declare(const struct params *p, enum nj_tensor_type dtype, struct st_declared *out)
{
    for (size_t i = 0; i < p->specs; i++)
        out[i] = (struct st_declared){
            .name = p->spec[i].name,
            .dtype = dtype,
            .rank = p->spec[i].rank,
            .shape = {p->spec[i].shape[0], p->spec[i].shape[1]},
        };
}
