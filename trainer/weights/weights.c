/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.c: weights between models and the arenas, through one pinned buffer.
 */
#include "weights/weights.h"

#include "base/try.h"
#include "io/error.h"
#include "io/notes.h"
#include "model/model_open.h"
#include "net/teacher_shard.h"
#include "nojit_ops.h"
#include "state/ranks.h"
#include "weights/block_scales.h"
#include "weights/fp8_weights.h"
#include "weights/loading.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

/* Return whether a tensor is a stored copy of values that the engine computes or shares. */
static bool may_be_extra(const struct params *p, const char *name)
{
    return p->head == p->embed && strcmp(name, "lm_head.weight") == 0;
}

static int refuse_extra(const char *dir, const char *name)
{
    const bool adapter = strstr(name, ".lora_") || strstr(name, ".base_layer.");
    return fail(NJ_E_UNSUPPORTED,
                "%s: tensor %s is not part of the model that config.json describes; %s", dir, name,
                adapter ? "adapters are in the weights: merge them with PEFT, or save them apart "
                          "and give them as --adapter"
                        : "use the config.json that the weights were saved with, or another model");
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Make the sorted list of the names of a model's tensors; the caller frees it. */
static const char **names_of(const struct params *p)
{
    const char **names = calloc(p->specs + 1, sizeof *names);
    for (size_t i = 0; names && i < p->specs; i++)
        names[i] = p->spec[i].name;
    if (names)
        qsort(names, p->specs, sizeof *names, compare_names);
    return names;
}

static int refuse_extras(const char *dir, const struct params *p, const struct tensors *w)
{
    const char **names = names_of(p);
    int rc = 0;
    if (!names)
        return fail(NJ_E_NOMEM, "no host memory for the names of %zu tensors; free some", p->specs);
    for (size_t i = 0; rc == 0 && i < w->count; i++) {
        const char *name = w->tensor[i].name;
        if (!may_be_extra(p, name) &&
            !bsearch(&name, names, p->specs, sizeof *names, compare_names))
            rc = refuse_extra(dir, name);
    }
    free(names);
    return rc;
}

/* Refuse missing and extra tensors. */
static int check_tensors(const char *dir, const struct params *p, const struct tensors *w)
{
    TRY(refuse_extras(dir, p, w));
    for (size_t i = 0; i < p->specs; i++)
        TRY(weights_check(dir, &p->spec[i], tensors_find(w, p->spec[i].name)));
    return 0;
}

/* Say that a tensor holds a number that is not finite, once for a model. */
static void say_finite(const struct load_item *i, bool finite)
{
    if (i->path && !finite && !atomic_flag_test_and_set(i->told))
        note("%s: tensor %s contains NaN or infinity: runs and exports of this model will fail; "
             "fetch the model again or use an earlier checkpoint",
             i->path, i->tensor->name);
}

static int fill_elements(struct engine *e, const struct load_item *i, int64_t first, int64_t count,
                         char *staged)
{
    loading_convert(e, i->tensor, first, count, i->T, staged);
    say_finite(i, loading_finite(e, staged, count, i->T));
    return 0;
}

static void send_elements(struct work *r, struct engine *e, const struct load_item *i,
                          int64_t first, int64_t count, const char *staged)
{
    (void)e;
    OP(r,
       nj_copy(r->s, i->to + (size_t)first * i->unit_bytes, staged, (size_t)count * i->unit_bytes));
}

static const struct load_way as_elements = {LOADING_WEIGHTS, false, fill_elements, send_elements,
                                            NULL};

/* Rows of a quantized matrix: blocks are copied to the memory of the activations, and expanded from there. */
static int fill_blocks(struct engine *e, const struct load_item *i, int64_t first, int64_t count,
                       char *staged)
{
    (void)e;
    tensor_rows(i->tensor, first, count, staged);
    say_finite(i, block_scales_finite(i->tensor->dtype, staged, (size_t)count * i->unit_bytes));
    return 0;
}

static void send_blocks(struct work *r, struct engine *e, const struct load_item *i, int64_t first,
                        int64_t count, const char *staged)
{
    const int n = (int)count, columns = (int)i->tensor->shape[1];
    char *to = i->to + (size_t)(first * columns) * dtype_bytes(i->T);
    OP(r, nj_copy(r->s, e->mem.staging, staged, (size_t)count * i->unit_bytes));
    OP(r,
       nj_dequantize(r->s, i->T, (int)i->tensor->dtype,
                     &(struct nj_dequantize){.dst = to,
                                             .data = (const int32_t *)(const void *)e->mem.staging,
                                             .M = n,
                                             .R = n,
                                             .C = columns}));
}

static const struct load_way as_blocks = {"expanding weights", true, fill_blocks, send_blocks,
                                          NULL};

/* Describe the way of a tensor to the arena. */
static struct load_item item_of(const struct tensor *t, int64_t elements, enum nj_dtype T, char *to)
{
    struct load_item i = {.tensor = t, .to = to, .T = T};
    const bool quantized = tensor_type_block(t->dtype) > 1;
    i.way = quantized ? &as_blocks : &as_elements;
    i.units = quantized ? t->shape[0] : elements;
    i.unit_bytes = quantized ? tensor_type_bytes(t->dtype, t->shape[1]) : dtype_bytes(T);
    return i;
}

/* Tensors of a model in their order, from `at` to before `end`. */
struct reading {
    struct engine *e;
    const char *dir;
    const struct tensors *w;
    const struct params *p;
    const struct net *net; /* net that they belong to; NULL: they are adapters */
    enum nj_dtype T;
    char *arena;
    weights_matrix *matrix;
    size_t at, end;
    bool in_arena; /* tensor `at` has been returned for the arena */
    atomic_flag told;
};

/* Return the type of a tensor in an arena of T. */
static enum nj_dtype stored_as(const struct tensor_spec *s, enum nj_dtype T)
{
    return tensor_is_wide(s->role) ? NJ_F32 : T;
}

/* Return the next tensor. A tied embedding belongs to the arena and to the head's matrix. */
static bool next_tensor(void *user, struct load_item *out)
{
    struct reading *r = user;
    while (r->at < r->end) {
        const size_t spec = r->at;
        const struct tensor_spec *s = &r->p->spec[spec];
        const struct tensor *t = tensors_find(r->w, s->name);
        const int64_t first = r->p->first[spec];
        if (first >= 0 && !r->in_arena) {
            r->in_arena = true;
            *out = item_of(t, tensor_elements(s), stored_as(s, r->T),
                           r->arena + (size_t)first * dtype_bytes(r->T));
            out->path = r->dir;
            out->told = &r->told;
            return true;
        }
        r->in_arena = false;
        r->at++;
        if (r->net && r->matrix(r->net, spec, t, out))
            return true;
    }
    return false;
}

/* Return whether a tensor is the last of a layer that leaves its place before the next one is read. */
static bool ends_stretch(const struct reading *r, size_t spec)
{
    const struct params *p = r->p;
    const int layer = p->spec[spec].layer;
    return r->net && !teacher_shard_here(r->net, layer) &&
           (spec + 1 == p->specs || p->spec[spec + 1].layer != layer);
}

static int share_layer(const struct reading *r, const char *dir, int layer)
{
    TRY(fp8_check(r->e, dir, layer));
    return ranks_share_layer(r->e, layer);
}

/* Read all tensors at once, or up to the end of each layer that is shared out before the next one is read. */
static int run_all(struct loading *l, struct reading *r)
{
    for (size_t last = 0; last < r->p->specs; last++) {
        const bool shares = ends_stretch(r, last);
        if (!shares && last + 1 < r->p->specs)
            continue;
        r->end = last + 1;
        TRY(loading_run(l, next_tensor, r));
        if (shares)
            TRY(share_layer(r, l->path, r->p->spec[last].layer));
    }
    return 0;
}

static int64_t widest(const struct params *p)
{
    int64_t columns = 1;
    for (size_t i = 0; i < p->specs; i++)
        if (p->spec[i].rank == 2 && p->spec[i].shape[1] > columns)
            columns = p->spec[i].shape[1];
    return columns;
}

/* Read all tensors. hash: NULL, or the hash of all tensors of w. */
static int read_tensors(const char *dir, struct reading *r, uint64_t *hash)
{
    struct loading l;
    TRY(check_tensors(dir, r->p, r->w));
    int rc = loading_begin(&l, r->e, dir, hash ? r->w : NULL, widest(r->p));
    if (rc == 0)
        rc = run_all(&l, r);
    return loading_end(&l, rc, hash);
}

int weights_read(struct engine *e, const char *dir, const struct tensors *w, const struct params *p,
                 enum nj_dtype T, void *arena)
{
    struct reading r = {.e = e, .dir = dir, .w = w, .p = p, .T = T, .arena = arena};
    return read_tensors(dir, &r, NULL);
}

static void begin_reading(struct engine *e, const struct tensors *w)
{
    e->load_seen = e->load_bytes = 0;
    for (size_t i = 0; i < w->count; i++)
        e->load_bytes += (double)w->tensor[i].bytes;
    if (e->o.loaded)
        e->o.loaded(e->o.loaded_user, 0, e->load_bytes);
}

int weights_load(struct engine *e, const char *dir, const struct net *n, struct updated to,
                 weights_matrix *matrix, uint64_t *hash)
{
    struct tensors w;
    TRY(source_tensors(dir, &w));
    begin_reading(e, &w);
    struct reading r = {.e = e,
                        .dir = dir,
                        .w = &w,
                        .p = &n->p,
                        .net = n,
                        .T = to.T,
                        .arena = to.w,
                        .matrix = matrix,
                        .told = ATOMIC_FLAG_INIT};
    const int rc = read_tensors(dir, &r, hash);
    tensors_close(&w);
    return rc;
}

/* ---- numbers that are not finite ---- */

int weights_scan(struct engine *e, const struct params *p, enum nj_dtype T, const void *arena,
                 const char **name)
{
    *name = NULL;
    TRY(engine_join(e));
    for (size_t i = 0; i < p->specs; i++) {
        const enum nj_dtype stored = stored_as(&p->spec[i], T);
        const size_t bytes = dtype_bytes(stored);
        const char *first = (const char *)arena + (size_t)p->first[i] * dtype_bytes(T);
        int64_t elements = p->first[i] < 0 ? 0 : tensor_elements(&p->spec[i]);
        int64_t room = (int64_t)(e->mem.transfer_bytes / bytes);
        for (int64_t at = 0; at < elements; at += room) {
            int64_t n = elements - at < room ? elements - at : room;
            TRY(nj_copy(e->stream, e->mem.transfer, first + (size_t)at * bytes, (size_t)n * bytes));
            TRY(nj_stream_sync(e->stream));
            if (!loading_finite(e, e->mem.transfer, n, stored)) {
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
        TRY(put(file, e->mem.transfer, n));
    }
    return 0;
}

int weights_round(struct engine *e)
{
    const struct updated u = engine_updated(e);
    struct work r = engine_work(e);
    if (u.w == e->mem.trained)
        return 0;
    OP(&r, nj_cast_to_lp(r.s, NJ_LP,
                         &(struct nj_cast_to_lp){.dst = e->mem.trained,
                                                 .src = (const float *)(const void *)u.w,
                                                 .n = engine_trained(e)->count}));
    if (engine_gathers(e))
        ranks_keep(&r, e, e->mem.master, sizeof(float));
    return r.rc;
}

struct st_declared weights_declared(const struct tensor_spec *s, enum nj_tensor_type dtype)
{
    return (struct st_declared){.name = s->name,
                                .dtype = dtype,
                                .rank = s->rank,
                                .shape = {s->shape[0], s->shape[1], s->shape[2]}};
}

void weights_declare(const struct params *p, enum nj_tensor_type dtype, struct st_declared *out)
{
    for (size_t i = 0; i < p->specs; i++)
        out[i] = weights_declared(&p->spec[i], dtype);
}
