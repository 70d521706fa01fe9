/* SPDX-License-Identifier: Apache-2.0
 *
 * save_model.c: saves the model folder of a run: the student with the files that came beside its weights, or its
 * adapters.
 */
#include "base/try.h"
#include "io/error.h"
#include "io/path.h"
#include "model/file_rows.h"
#include "model/model_open.h"
#include "state/ranks.h"
#include "weights/adapters.h"
#include "weights/model_files.h"
#include "weights/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARD_BYTES ((int64_t)5000000000)

static int put(void *file, const void *data, size_t bytes)
{
    return st_folder_data(file, data, bytes);
}

/* Save one tensor of the folder, a run of rows at a time. */
static int save_tensor(struct engine *e, const struct file_tensor *f, struct st_folder_writer *w)
{
    const struct params *p = &e->student.p;
    const size_t row = (size_t)file_columns(&f->spec) * dtype_bytes(e->o.dtype);
    struct file_run run;
    for (int64_t at = 0; at < f->spec.shape[0]; at += run.count) {
        run = file_run(&e->student.c, f, p->spec, at);
        const size_t first = (size_t)p->first[run.spec] * dtype_bytes(e->o.dtype);
        TRY(weights_download(e, e->mem.weights + first + (size_t)run.row * row,
                             (size_t)run.count * row, put, w));
    }
    return 0;
}

/* Leave the tensor of the LM head alone in the list. Return the number of tensors left. */
static size_t keep_head(const struct engine *e, struct file_tensor *file, size_t files)
{
    size_t kept = 0;
    for (size_t i = 0; i < files; i++)
        if (tensor_is_head(&e->student.c, &file[i].spec))
            file[kept++] = file[i];
    return kept;
}

/* Save all tensors, or the LM head alone. */
static int save_tensors(struct engine *e, const char *dir, bool head)
{
    const struct params *p = &e->student.p;
    struct st_folder_writer *w = NULL;
    struct st_declared *declared = calloc(p->specs, sizeof *declared);
    struct file_tensor *file = NULL;
    size_t files;
    if (!declared)
        return fail(NJ_E_NOMEM, "no host memory to list %zu tensors; free some", p->specs);
    int rc = file_tensors(&e->student.c, p->spec, p->specs, &file, &files);
    if (rc != 0)
        goto done;
    if (head)
        files = keep_head(e, file, files);
    for (size_t i = 0; i < files; i++)
        declared[i] = weights_declared(&file[i].spec, weights_dtype(e));
    if ((rc = st_folder_begin(dir, declared, files, SHARD_BYTES, &w)))
        goto done;
    for (size_t i = 0; rc == 0 && i < files; i++)
        rc = save_tensor(e, &file[i], w);
    if (rc == 0)
        rc = st_folder_end(w);
    else
        st_folder_abort(w);
done:
    free(file);
    free(declared);
    return rc;
}

uint64_t engine_model_bytes(const struct engine *e)
{
    const enum nj_dtype T = e->student.lora ? engine_updated(e).T : e->o.dtype;
    return (uint64_t)engine_trained(e)->count * dtype_bytes(T);
}

/* Return whether saving has to collect shards: adapters are saved as they are updated, but every rank has the whole
 * of the weights that the model reads. */
static bool is_collected(const struct engine *e)
{
    return e->student.lora && engine_gathers(e);
}

static int collect(struct engine *e)
{
    struct work r = engine_work(e);
    ranks_collecting(e, true);
    if (is_collected(e))
        ranks_collect(&r, e, e->mem.master, sizeof(float));
    OP(&r, nj_stream_sync(r.s));
    ranks_collecting(e, false);
    return r.rc == 0 ? 0 : engine_fail(e, r.rc, "collecting the model");
}

static int release(struct engine *e)
{
    struct work r = engine_work(e);
    if (is_collected(e))
        ranks_release(&r, e);
    return r.rc == 0 ? 0 : engine_fail(e, r.rc, "collecting the model");
}

int engine_collect_model(struct engine *e)
{
    TRY(collect(e));
    return release(e);
}

static int save_adapters(struct engine *e, const char *dir)
{
    TRY(collect(e));
    TRY(adapters_save(e, dir));
    return release(e);
}

static int save_folder(struct engine *e, const char *dir, bool head)
{
    TRY(save_tensors(e, dir, head));
    TRY(source_write_config(e->student_dir, dir, &e->student.c,
                            tensor_type_torch(weights_dtype(e))));
    return source_side_files(e->student_dir, dir);
}

int engine_save_model(struct engine *e, const char *dir)
{
    return e->student.lora ? save_adapters(e, dir) : save_folder(e, dir, false);
}

int engine_save_head(struct engine *e, const char *dir)
{
    return save_folder(e, dir, true);
}
