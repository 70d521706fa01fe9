/* SPDX-License-Identifier: Apache-2.0
 *
 * adapters.c: adapters between the files of PEFT and the arenas, and merged into their model.
 * Saved adapters are the master weights, in float32: loaded again they are the same bits.
 */
#include "engine_impl.h"

#include "error.h"
#include "folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int adapter_file(const char *dir, char *path, size_t bytes)
{
    if (snprintf(path, bytes, "%s/adapter_model.safetensors", dir) < (int)bytes)
        return 0;
    return fail(NJ_E_ARG, "%.80s...: path too long; use a shorter one", dir);
}

/* ---- reading ---- */

static int draw(struct engine *e, enum nj_dtype T, char *arena)
{
    const struct params *p = &e->lora.p;
    const int64_t room = (int64_t)(e->mem.transfer_bytes / sizeof(float));
    float *piece = (float *)(void *)e->mem.transfer;
    if (T != NJ_F32)
        return fail(NJ_E_ARG, "new adapters are for training; name a folder of trained ones");
    for (size_t i = 0; i < p->specs; i++) {
        const int64_t elements = tensor_elements(&p->spec[i]);
        for (int64_t at = 0; at < elements; at += room) {
            const int64_t n = elements - at < room ? elements - at : room;
            lora_fill(&e->lora, e->o.seed, i, at, n, piece);
            int rc = nj_copy(e->stream, arena + (size_t)(p->first[i] + at) * sizeof *piece, piece,
                             (size_t)n * sizeof *piece);
            if (rc == 0)
                rc = nj_stream_sync(e->stream);
            if (rc != 0)
                return engine_fail(e, rc, "sending new adapters");
        }
    }
    return 0;
}

int adapters_load(struct engine *e, const char *dir)
{
    const bool train = e->shape.train;
    const enum nj_dtype T = train ? NJ_F32 : e->o.dtype;
    char path[4096], *arena = train ? (char *)e->mem.master : e->mem.trained;
    struct st_weights w;
    if (!dir)
        return draw(e, T, arena);
    int rc = adapter_file(dir, path, sizeof path);
    if (rc == 0)
        rc = st_open_file(path, &w);
    if (rc != 0)
        return rc;
    rc = weights_read(e, dir, &w, &e->lora.p, T, arena);
    st_close(&w);
    return rc;
}

/* ---- writing ---- */

static int put(void *file, const void *data, size_t bytes)
{
    return st_write_data(file, data, bytes);
}

int adapters_save(struct engine *e, const char *dir)
{
    const struct params *p = &e->lora.p;
    struct st_writer *w = NULL;
    char path[4096];
    if (!e->shape.train)
        return fail(NJ_E_ARG, "saving adapters needs an engine that trains (steps above 0)");
    int rc = adapter_file(dir, path, sizeof path);
    if (rc != 0)
        return rc;
    struct st_declared *declared = calloc(p->specs, sizeof *declared);
    if (!declared)
        return fail(NJ_E_NOMEM, "no host memory to list %zu tensors; free some", p->specs);
    weights_declare(p, ST_F32, declared);
    rc = st_write_begin(path, declared, p->specs, &w);
    if (rc != 0)
        goto done;
    for (size_t i = 0; rc == 0 && i < p->specs; i++)
        rc = weights_download(e, (const char *)(e->mem.master + p->first[i]),
                              (size_t)tensor_elements(&p->spec[i]) * sizeof(float), put, w);
    if (rc == 0)
        rc = st_write_end(w);
    else
        st_write_abort(w);
    if (rc == 0)
        rc = lora_config_write(dir, &e->lora.o, e->o.base_name ? e->o.base_name : e->student_dir);
done:
    free(declared);
    return rc;
}
