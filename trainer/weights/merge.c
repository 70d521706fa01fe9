/* SPDX-License-Identifier: Apache-2.0
 *
 * merge.c: see merge.h. It works on files alone, a block of rows at a time: no device, no engine.
 */
#include "weights/merge.h"

#include "base/float16.h"
#include "base/try.h"
#include "formats/side_files.h"
#include "io/error.h"
#include "io/model_folder.h"
#include "io/path.h"
#include "model/file_rows.h"
#include "model/model_open.h"
#include "net/lora.h"
#include "weights/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SHARD_BYTES ((int64_t)5000000000)
#define BLOCK ((int64_t)1 << 22)

struct merge {
    const char *base_dir, *adapter_dir;
    struct net net;
    struct lora lora;
    struct tensors base, adapters;
    struct st_folder_writer *writer;
    float *block;      /* rows of a sum */
    uint16_t *rounded; /* the same rows in 16 bits */
    float *a, *b;      /* A and B of one adapter */
};

/* Read the whole A and B of an adapter. */
static int read_adapter(struct merge *m, const struct adapter *ad)
{
    float **const to[2] = {&m->a, &m->b};
    const int64_t first[2] = {ad->a, ad->b};
    for (int k = 0; k < 2; k++) {
        size_t i = 0;
        while (m->lora.p.first[i] != first[k])
            i++;
        const struct tensor_spec *spec = &m->lora.p.spec[i];
        const struct tensor *t = tensors_find(&m->adapters, spec->name);
        TRY(weights_check(m->adapter_dir, spec, t));
        free(*to[k]);
        *to[k] = malloc((size_t)tensor_elements(spec) * sizeof(float));
        if (!*to[k])
            return fail(NJ_E_NOMEM, "no host memory for %s; free some", spec->name);
        tensor_to_f32(t, 0, tensor_elements(spec), *to[k]);
    }
    return 0;
}

/* Add alpha / r B A to the block, for rows from `first` on. */
static void add_product(const struct merge *m, const struct adapter *ad, int64_t first,
                        int64_t rows)
{
    const int rank = m->lora.o.rank;
    const float scale = (float)(m->lora.o.alpha / rank);
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        float *w = m->block + row * ad->in;
        for (int k = 0; k < rank; k++) {
            const float factor = scale * m->b[(first + row) * rank + k];
            const float *a = m->a + (int64_t)k * ad->in;
            for (int i = 0; i < ad->in; i++)
                w[i] += factor * a[i];
        }
    }
}

static int write_rows(struct merge *m, int64_t count, enum nj_tensor_type dtype)
{
    if (dtype == NJ_TYPE_F32)
        return st_folder_data(m->writer, m->block, (size_t)count * sizeof *m->block);
    for (int64_t i = 0; i < count; i++)
        m->rounded[i] =
            dtype == NJ_TYPE_BF16 ? bf16_from_f32(m->block[i]) : f16_from_f32(m->block[i]);
    return st_folder_data(m->writer, m->rounded, (size_t)count * sizeof *m->rounded);
}

/* Write rows of one of the model's tensors, with its adapter, or without (NULL). */
static int merge_rows(struct merge *m, const struct tensor *t, const struct adapter *ad,
                      int64_t first, int64_t rows, int64_t columns)
{
    const int64_t most = BLOCK / columns > 0 ? BLOCK / columns : 1;
    for (int64_t end = first + rows; first < end; first += most) {
        const int64_t n = end - first < most ? end - first : most;
        tensor_to_f32(t, first * columns, n * columns, m->block);
        if (ad)
            add_product(m, ad, first, n);
        TRY(write_rows(m, n * columns, tensor_expanded(t)));
    }
    return 0;
}

/* Write a tensor of the folder, a run of rows at a time. Two tensors of the model that share it have an adapter of one
 * A each, or none. */
static int merge_tensor(struct merge *m, const struct file_tensor *f)
{
    const struct tensor_spec *spec = m->net.p.spec;
    const struct adapter *read = NULL;
    struct file_run run;
    for (int64_t row = 0; row < f->spec.shape[0]; row += run.count) {
        run = file_run(&m->net.c, f, spec, row);
        const struct tensor *t = tensors_find(&m->base, spec[run.spec].name);
        const struct adapter *ad = lora_of(&m->lora, &spec[run.spec]);
        if (!ad && t->dtype == tensor_expanded(t) && tensor_is_as_stored(t))
            return st_folder_data(m->writer, t->data, t->bytes);
        if (ad && ad != read)
            TRY(read_adapter(m, ad));
        read = ad;
        TRY(merge_rows(m, t, ad, run.row, run.count, file_columns(&f->spec)));
    }
    return 0;
}

static int64_t block_elements(const struct params *p)
{
    int64_t most = BLOCK;
    for (size_t i = 0; i < p->specs; i++)
        most = p->spec[i].shape[1] > most ? p->spec[i].shape[1] : most;
    return most;
}

static int merge_tensors(struct merge *m, const char *out)
{
    const struct params *p = &m->net.p;
    struct st_declared *declared = calloc(p->specs, sizeof *declared);
    struct file_tensor *file = NULL;
    size_t files = 0;
    m->block = malloc((size_t)block_elements(p) * sizeof *m->block);
    m->rounded = malloc((size_t)block_elements(p) * sizeof *m->rounded);
    int rc = 0;
    if (!declared || !m->block || !m->rounded)
        rc = fail(NJ_E_NOMEM, "no host memory to merge %zu tensors; free some", p->specs);
    for (size_t i = 0; rc == 0 && i < p->specs; i++)
        rc = weights_check(m->base_dir, &p->spec[i], tensors_find(&m->base, p->spec[i].name));
    if (rc == 0)
        rc = file_tensors(&m->net.c, p->spec, p->specs, &file, &files);
    for (size_t i = 0; i < files; i++) {
        const struct tensor *t = tensors_find(&m->base, p->spec[file[i].part[0]].name);
        declared[i] = weights_declared(&file[i].spec, tensor_expanded(t));
    }
    if (rc == 0)
        rc = st_folder_begin(out, declared, files, SHARD_BYTES, &m->writer);
    for (size_t i = 0; rc == 0 && i < files; i++)
        rc = merge_tensor(m, &file[i]);
    if (rc == 0)
        rc = st_folder_end(m->writer);
    else
        st_folder_abort(m->writer);
    free(file);
    free(declared);
    return rc;
}

static int open_inputs(struct merge *m)
{
    struct lora_config o;
    TRY(source_config(m->base_dir, &m->net.c));
    TRY(lora_config_read(m->adapter_dir, &o));
    TRY(net_layout(&m->net, &o, NULL, &m->lora));
    TRY(source_tensors(m->base_dir, &m->base));
    TRY(lora_weights_open(m->adapter_dir, &m->adapters));
    TRY(file_rows_of(m->adapter_dir, &m->net.c, m->lora.p.spec, m->lora.p.specs, &m->adapters));
    if (m->adapters.count == m->lora.p.specs)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: holds %zu tensors where its adapter_config.json describes %zu; use adapters "
                "of the projections of %s alone",
                m->adapter_dir, m->adapters.count, m->lora.p.specs, m->base_dir);
}

static int write_config(const struct merge *m, const char *dir)
{
    const struct tensor *embed = tensors_find(&m->base, m->net.p.spec[0].name);
    return source_write_config(m->base_dir, dir, &m->net.c,
                               tensor_type_torch(tensor_expanded(embed)));
}

/* Copy generation_config.json of the adapters, if they have one, over the base model's. */
static int take_generation(const char *adapters, const char *dir)
{
    static const char name[] = "generation_config.json";
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", adapters, name);
    if (access(path, F_OK) != 0)
        return 0;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
    return side_file_copy(adapters, dir, name);
}

int merge_adapters(const char *base, const char *adapters, const char *out, size_t *merged)
{
    struct merge m = {.base_dir = base, .adapter_dir = adapters};
    struct folder folder;
    int rc = open_inputs(&m);
    *merged = 0;
    for (size_t i = 0; i < m.lora.p.specs; i++)
        *merged += m.lora.p.spec[i].role == ROLE_COUNT; /* an A each */
    if (rc == 0)
        rc = folder_begin(&folder, out);
    if (rc != 0)
        goto done;
    rc = merge_tensors(&m, folder.temp);
    if (rc == 0)
        rc = write_config(&m, folder.temp);
    if (rc == 0)
        rc = source_side_files(base, folder.temp);
    if (rc == 0)
        rc = take_generation(adapters, folder.temp);
    if (rc == 0)
        rc = folder_commit(&folder);
    else
        folder_abort(&folder);
done:
    tensors_close(&m.base);
    tensors_close(&m.adapters);
    net_free(&m.net);
    lora_free(&m.lora);
    free(m.block);
    free(m.rounded);
    free(m.a);
    free(m.b);
    return rc;
}
