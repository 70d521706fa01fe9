/* SPDX-License-Identifier: Apache-2.0
 *
 * adapters.c: reads adapters from PEFT's files into the arenas, draws new ones, and saves them. Saved adapters are
 * the weights that are updated, in their type, so that loading them gives the same bits.
 */
#include "weights/adapters.h"

#include "base/try.h"
#include "io/error.h"
#include "io/model_folder.h"
#include "io/path.h"
#include "model/file_rows.h"
#include "state/ranks.h"
#include "weights/weights.h"

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

/* Draw new adapters. Half of the transfer buffer is for the new numbers, the other half for the same in the type
 * that is updated. */
static int draw(struct engine *e, struct updated to)
{
    const struct params *p = &e->lora.p;
    const size_t half = e->mem.transfer_bytes / 2, each = dtype_bytes(to.T);
    const int64_t room = (int64_t)(half / sizeof(float));
    float *piece = (float *)(void *)(e->mem.transfer + half);
    const struct tensor drawn = {.dtype = NJ_TYPE_F32, .data = piece};
    if (!e->shape.train)
        return fail(NJ_E_ARG, "new adapters are for training; name a folder of trained ones");
    for (size_t i = 0; i < p->specs; i++) {
        const int64_t elements = tensor_elements(&p->spec[i]);
        for (int64_t at = 0; at < elements; at += room) {
            const int64_t n = elements - at < room ? elements - at : room;
            lora_fill(&e->lora, e->o.seed, i, at, n, piece);
            loading_convert(e, &drawn, 0, n, to.T, e->mem.transfer);
            int rc = nj_copy(e->stream, to.w + (size_t)(p->first[i] + at) * each, e->mem.transfer,
                             (size_t)n * each);
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
    const struct updated to = engine_updated(e);
    struct tensors w;
    if (!e->student.lora)
        return 0;
    if (!dir)
        return draw(e, to);
    TRY(lora_weights_open(dir, &w));
    int rc = file_rows_of(dir, &e->student.c, e->lora.p.spec, e->lora.p.specs, &w);
    if (rc == 0)
        rc = weights_read(e, dir, &w, &e->lora.p, to.T, to.w);
    tensors_close(&w);
    return rc;
}

void adapters_send(struct work *r, struct engine *e)
{
    const struct updated from = engine_updated(e);
    if (e->student.lora)
        ranks_send(r, e, from.w, (size_t)e->lora.p.count * dtype_bytes(from.T));
}

/* ---- writing ---- */

static int put(void *file, const void *data, size_t bytes)
{
    return st_write_data(file, data, bytes);
}

/* Save one tensor of a file, a run of rows at a time. */
static int save_tensor(struct engine *e, const struct file_tensor *f, struct st_writer *w)
{
    const struct params *p = &e->lora.p;
    const struct updated from = engine_updated(e);
    const size_t each = dtype_bytes(from.T), row = (size_t)file_columns(&f->spec) * each;
    struct file_run run;
    for (int64_t at = 0; at < f->spec.shape[0]; at += run.count) {
        run = file_run(&e->student.c, f, p->spec, at);
        TRY(weights_download(e, from.w + (size_t)p->first[run.spec] * each + (size_t)run.row * row,
                             (size_t)run.count * row, put, w));
    }
    return 0;
}

int adapters_save(struct engine *e, const char *dir)
{
    const struct params *p = &e->lora.p;
    const enum nj_dtype T = engine_updated(e).T;
    struct file_tensor *file = NULL;
    size_t files = 0;
    struct st_writer *w = NULL;
    char path[PATH_BYTES];
    if (!e->shape.train)
        return fail(NJ_E_ARG, "saving adapters needs an engine that trains (steps above 0)");
    TRY(adapter_file(dir, path, sizeof path));
    struct st_declared *declared = calloc(p->specs, sizeof *declared);
    if (!declared)
        return fail(NJ_E_NOMEM, "no host memory to list %zu tensors; free some", p->specs);
    int rc = file_tensors(&e->student.c, p->spec, p->specs, &file, &files);
    for (size_t i = 0; i < files; i++)
        declared[i] = weights_declared(&file[i].spec, T == NJ_F32 ? NJ_TYPE_F32 : weights_dtype(e));
    if (rc == 0)
        rc = st_write_begin(path, declared, files, &w);
    if (rc != 0)
        goto done;
    for (size_t i = 0; rc == 0 && i < files; i++)
        rc = save_tensor(e, &file[i], w);
    if (rc == 0)
        rc = st_write_end(w);
    else
        st_write_abort(w);
    if (rc == 0)
        rc = lora_config_write(dir, &e->lora.o, &e->student.c,
                               e->o.base_name ? e->o.base_name : e->student_dir);
done:
    free(file);
    free(declared);
    return rc;
}
