/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.c: weights between Hugging Face folders and the arenas. Data goes through one pinned
 * buffer; the conversion on the way uses every core.
 */
#include "engine/engine_impl.h"

#include "io/error.h"
#include "io/json_text.h"
#include "io/model_folder.h"
#include "io/safetensors.h"
#include "io/side_files.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONVERT_BLOCK = 1 << 16 };
#define SHARD_BYTES ((int64_t)5000000000)

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

static int check_extra(const char *dir, const struct params *p, const struct st_weights *w)
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
    return 0;
}

void weights_convert(struct engine *e, const struct st_tensor *t, int64_t first, int64_t count,
                     enum nj_dtype T)
{
    const int to_f16 = nj_context_device(e->ctx)->lp_is_f16;
    char *dst = e->mem.transfer;
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < count; at += CONVERT_BLOCK) {
        int64_t n = count - at < CONVERT_BLOCK ? count - at : CONVERT_BLOCK;
        char *to = dst + (size_t)at * dtype_bytes(T);
        if (T == NJ_F32)
            st_to_f32(t, first + at, n, (float *)(void *)to);
        else
            st_to_16(t, first + at, n, to_f16, (uint16_t *)(void *)to);
    }
}

static int upload(struct engine *e, const struct st_tensor *t, int64_t elements, enum nj_dtype T,
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

int weights_read(struct engine *e, const char *dir, const struct st_weights *w,
                 const struct params *p, enum nj_dtype T, void *arena)
{
    int rc = check_extra(dir, p, w);
    for (size_t i = 0; rc == 0 && i < p->specs; i++) {
        const struct st_tensor *t = st_find(w, p->spec[i].name);
        rc = weights_check(dir, &p->spec[i], t);
        if (rc == 0 && p->first[i] >= 0)
            rc = upload(e, t, tensor_elements(&p->spec[i]), T,
                        (char *)arena + (size_t)p->first[i] * dtype_bytes(T));
    }
    return rc;
}

int weights_load(struct engine *e, const char *dir, const struct params *p, enum nj_dtype T,
                 void *arena, uint64_t *hash)
{
    struct st_weights w;
    int rc = st_open(dir, &w);
    if (rc != 0)
        return rc;
    rc = weights_read(e, dir, &w, p, T, arena);
    *hash = st_hash(&w);
    st_close(&w);
    return rc;
}

/* ---- the rare search ---- */

static bool all_finite(const char *data, int64_t count, enum nj_dtype T, int is_f16)
{
    for (int64_t i = 0; i < count; i++) {
        float x;
        uint16_t bits;
        if (T == NJ_F32) {
            memcpy(&x, data + i * 4, sizeof x);
        } else {
            memcpy(&bits, data + i * 2, sizeof bits);
            x = is_f16 ? f32_from_f16(bits) : f32_from_bf16(bits);
        }
        if (!isfinite(x))
            return false;
    }
    return true;
}

int weights_scan(struct engine *e, const struct params *p, enum nj_dtype T, const void *arena,
                 const char **name)
{
    int is_f16 = nj_context_device(e->ctx)->lp_is_f16;
    int64_t room = (int64_t)(e->mem.transfer_bytes / dtype_bytes(T));
    *name = NULL;
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
            if (!all_finite(e->mem.transfer, n, T, is_f16)) {
                *name = p->spec[i].name;
                return 0;
            }
        }
    }
    return 0;
}

/* ---- writing ---- */

enum st_dtype weights_dtype(const struct engine *e)
{
    if (e->o.dtype == NJ_F32)
        return ST_F32;
    return nj_context_device(e->ctx)->lp_is_f16 ? ST_F16 : ST_BF16;
}

int weights_download(struct engine *e, const char *from, size_t bytes, weights_put *put, void *file)
{
    for (size_t at = 0; at < bytes; at += e->mem.transfer_bytes) {
        size_t n = bytes - at < e->mem.transfer_bytes ? bytes - at : e->mem.transfer_bytes;
        int rc = nj_copy(e->stream, e->mem.transfer, from + at, n);
        if (rc == 0)
            rc = nj_stream_sync(e->stream);
        if (rc != 0)
            return engine_fail(e, rc, "saving weights");
        rc = put(file, e->mem.transfer, n);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int put(void *file, const void *data, size_t bytes)
{
    return st_folder_data(file, data, bytes);
}

void weights_declare(const struct params *p, enum st_dtype dtype, struct st_declared *out)
{
    for (size_t i = 0; i < p->specs; i++)
        out[i] = (struct st_declared){
            .name = p->spec[i].name,
            .dtype = dtype,
            .rank = p->spec[i].rank,
            .shape = {p->spec[i].shape[0], p->spec[i].shape[1]},
        };
}

static int save_tensors(struct engine *e, const char *dir)
{
    const struct params *p = &e->student.p;
    const size_t size = dtype_bytes(e->o.dtype);
    struct st_folder_writer *w = NULL;
    struct st_declared *declared = calloc(p->specs, sizeof *declared);
    if (!declared)
        return fail(NJ_E_NOMEM, "no host memory to list %zu tensors; free some", p->specs);
    weights_declare(p, weights_dtype(e), declared);
    int rc = st_folder_begin(dir, declared, p->specs, SHARD_BYTES, &w);
    if (rc != 0)
        goto done;
    for (size_t i = 0; rc == 0 && i < p->specs; i++)
        rc = weights_download(e, e->mem.weights + (size_t)p->first[i] * size,
                              (size_t)tensor_elements(&p->spec[i]) * size, put, w);
    if (rc == 0)
        rc = st_folder_end(w);
    else
        st_folder_abort(w);
done:
    free(declared);
    return rc;
}

/* The student's own config.json with the dtype of the saved weights; every other field as it was.
 */
static int save_config(struct engine *e, const char *dir)
{
    char from[4096], to[4096];
    json_t *config;
    if (snprintf(from, sizeof from, "%s/config.json", e->student_dir) >= (int)sizeof from ||
        snprintf(to, sizeof to, "%s/config.json", dir) >= (int)sizeof to)
        return fail(NJ_E_ARG, "%s: path too long; use a shorter one", dir);
    int rc = json_read_file(from, 0, "restore the file", &config);
    if (rc != 0)
        return rc;
    json_memory_begin();
    /* Older and newer spelling; some files have both. */
    const char *dtype = st_dtype_torch(weights_dtype(e));
    if (json_object_get(config, "dtype"))
        json_object_set_new(config, "dtype", json_string(dtype));
    if (json_object_get(config, "torch_dtype") || !json_object_get(config, "dtype"))
        json_object_set_new(config, "torch_dtype", json_string(dtype));
    rc = json_dump_file(config, to, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    const int error = errno;
    json_decref(config);
    if (json_memory_end())
        return fail(NJ_E_NOMEM, "%s: out of memory", to);
    if (rc != 0)
        return fail(NJ_E_IO, "%s: cannot be written: %s", to, strerror(error));
    return 0;
}

uint64_t engine_model_bytes(const struct engine *e)
{
    const struct params *p = e->student.lora ? engine_trained(e) : &e->student.p;
    const enum nj_dtype T = e->student.lora ? engine_updated(e).T : e->o.dtype;
    return (uint64_t)p->count * dtype_bytes(T);
}

int engine_save_model(struct engine *e, const char *dir)
{
    if (e->student.lora)
        return adapters_save(e, dir);
    int rc = save_tensors(e, dir);
    if (rc == 0)
        rc = save_config(e, dir);
    return rc != 0 ? rc : side_files_copy(e->student_dir, dir);
}
