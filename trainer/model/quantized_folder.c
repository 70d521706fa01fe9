/* SPDX-License-Identifier: Apache-2.0
 *
 * quantized_folder.c: see quantized_folder.h. Tensors that are not converted (embedding, head, norms, layers that the
 * configuration lists) are present under their own names and stay as they are.
 */
#include "model/quantized_folder.h"

#include "base/try.h"
#include "formats/safetensors.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/notes.h"
#include "io/path.h"
#include "model/config.h"
#include "model/file_rows.h"
#include "model/folder_experts.h"
#include "model/folder_names.h"
#include "model/quantized_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Return the quantization_config of an object; NULL: it has none. */
static json_t *quantization(const json_t *object)
{
    json_t *value = json_object_get(object, "quantization_config");
    return json_is_null(value) ? NULL : value;
}

/* Read the quantization_config of a folder, its own before that of its language model; NULL: none. It is a part of the
 * object *config, which the caller must release. */
static int read_quantized(const char *dir, char path[PATH_BYTES], json_t **config, json_t **out)
{
    *config = *out = NULL;
    if (snprintf(path, PATH_BYTES, "%s/config.json", dir) >= PATH_BYTES || access(path, F_OK) != 0)
        return 0;
    const int rc = json_read_file(path, "fetch the folder again", config);
    json_t *own = rc ? NULL : quantization(*config);
    *out = rc || own ? own : quantization(json_object_get(*config, "text_config"));
    return rc;
}

int folder_is_quantized(const char *dir, bool *out)
{
    char path[PATH_BYTES];
    json_t *config, *value;
    const int rc = read_quantized(dir, path, &config, &value);
    *out = rc == 0 && value && st_is_there(dir);
    json_decref(config);
    return rc;
}

int folder_has_mxfp4(const char *dir, bool *out)
{
    char path[PATH_BYTES];
    json_t *config, *value;
    struct quantized_scheme scheme;
    int rc = read_quantized(dir, path, &config, &value);
    if (rc == 0 && value)
        rc = quantized_scheme(path, value, &scheme);
    *out = rc == 0 && value && scheme.format == QUANTIZED_MXFP4;
    json_decref(config);
    return rc;
}

static bool holds_adapters(const char *dir)
{
    char path[PATH_BYTES];
    return snprintf(path, sizeof path, "%s/adapter_config.json", dir) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

int folder_config(const char *dir, struct model_config *out)
{
    bool own = false;
    TRY(config_read(dir, out));
    if (st_is_there(dir) && holds_adapters(dir))
        note("%s: holds adapters beside the model, which is read without them; --adapter %s reads "
             "them",
             dir, dir);
    if (out->tied && st_is_there(dir))
        TRY(folder_has_own_head(dir, &own));
    if (!own)
        return 0;
    out->tied = false;
    note("%s: config.json ties the head to the embedding table, and the weights hold a head of its "
         "own, which is used (as in transformers 5)",
         dir);
    return 0;
}

/* ---- the matrices of a folder ---- */

struct reading {
    const char *dir;
    const struct model_config *config;
    const struct quantized_scheme *scheme;
    const struct tensors *from; /* tensors as the files have them */
    struct tensor_spec *spec;   /* tensors of the model, as its folders have them */
    size_t specs;
    bool *used;        /* whether each tensor of the files was used */
    struct tensors to; /* tensors under the names of the model, with room for all */
};

static const struct tensor *take(const struct reading *r, const char *name)
{
    const struct tensor *t = tensors_find(r->from, name);
    if (t)
        r->used[t - r->from->tensor] = true;
    return t;
}

static bool is_plain(const struct tensor *t)
{
    return (int)t->dtype < NJ_TYPES;
}

/* Return whether the model has a tensor of that name. */
static bool is_of_model(const struct reading *r, const char *name)
{
    for (size_t i = 0; i < r->specs; i++)
        if (strcmp(r->spec[i].name, name) == 0)
            return true;
    return false;
}

/* Drop the bias of zeros that some releases have for each layer without one. */
static void drop_bias(const struct reading *r, const struct tensor_spec *spec, int module)
{
    char name[sizeof spec->name + 8];
    snprintf(name, sizeof name, "%.*sbias", module, spec->name);
    const struct tensor *t = tensors_find(r->from, name);
    bool zero = t && t->rank == 1 && is_plain(t) && !is_of_model(r, name);
    for (int64_t i = 0; zero && i < t->shape[0]; i++) {
        float x;
        tensor_to_f32(t, i, 1, &x);
        zero = x == 0;
    }
    if (zero)
        take(r, name);
}

/* Take the parts of a matrix, if the folder has them. */
static int take_matrix(struct reading *r, const struct tensor_spec *spec)
{
    const struct quantized_layout *layout = quantized_layout(r->scheme->format);
    const int module = (int)(strlen(spec->name) - strlen("weight"));
    struct quantized_matrix m = {.dir = r->dir, .spec = spec, .scheme = r->scheme};
    struct tensor *t = &r->to.tensor[r->to.count];
    struct packed *p = &r->to.packed[r->to.count];
    char name[sizeof spec->name + 64];
    snprintf(name, sizeof name, "%.*s%s", module, spec->name, layout->part[0]);
    const struct tensor *first = tensors_find(r->from, name);
    if (!first || is_plain(first))
        return 0;
    *p = (struct packed){
        .rows = spec->shape[0], .columns = spec->shape[1], .zero_more = r->scheme->zero_more};
    for (int i = 0; i < PACKED_PARTS && layout->part[i]; i++) {
        snprintf(name, sizeof name, "%.*s%s", module, spec->name, layout->part[i]);
        m.part[i] = take(r, name);
        if (m.part[i])
            p->part[i] =
                (struct packed_part){m.part[i]->data, m.part[i]->bytes, (int)m.part[i]->dtype};
    }
    *t = (struct tensor){.rank = 2, .shape = {p->rows, p->columns}, .packed = p};
    snprintf(t->name, sizeof t->name, "%s", spec->name);
    TRY(layout->open(&m, p, t));
    t->bytes = tensor_type_bytes(t->dtype, p->rows * p->columns);
    r->to.count++;
    drop_bias(r, spec, module);
    return 0;
}

/* Take tensors that are not part of a matrix. The model may lack them, which the code that loads it checks. */
static int take_rest(struct reading *r)
{
    struct tensor *end = r->to.tensor + r->to.count;
    tensors_sort(r->to.tensor, r->to.count);
    for (size_t i = 0; i < r->from->count; i++) {
        const struct tensor *t = &r->from->tensor[i];
        if (r->used[i])
            continue;
        if (!is_plain(t))
            return fail(NJ_E_UNSUPPORTED,
                        "%s: tensor %s is not part of weights that are quantized as config.json "
                        "says; use another release of the model",
                        r->dir, t->name);
        if (tensors_find(&r->to, t->name))
            return fail(NJ_E_FORMAT,
                        "%s: tensor %s is there both quantized and not; use another release of the "
                        "model",
                        r->dir, t->name);
        *end++ = *t;
    }
    r->to.count = (size_t)(end - r->to.tensor);
    tensors_sort(r->to.tensor, r->to.count);
    return 0;
}

/* List the tensors of the folder. */
static int list_specs(struct reading *r)
{
    struct file_tensor *file = NULL;
    size_t files = 0;
    TRY(tensor_specs(r->config, &r->spec, &r->specs));
    const int rc = file_tensors(r->config, r->spec, r->specs, &file, &files);
    for (size_t i = 0; i < files; i++)
        r->spec[i] = file[i].spec;
    r->specs = files;
    free(file);
    return rc;
}

static int take_all(struct reading *r)
{
    int rc = list_specs(r);
    if (rc != 0) {
        free(r->spec);
        return rc;
    }
    r->used = calloc(r->from->count + 1, sizeof *r->used);
    /* A matrix has one part at least, and each tensor is a part of one matrix at most. */
    r->to.tensor = calloc(r->from->count + 1, sizeof *r->to.tensor);
    r->to.packed = calloc(r->from->count + 1, sizeof *r->to.packed);
    if (!r->used || !r->to.tensor || !r->to.packed)
        rc =
            fail(NJ_E_NOMEM, "%s: out of memory for a list of %zu tensors", r->dir, r->from->count);
    for (size_t i = 0; i < r->specs && rc == 0; i++)
        rc = r->spec[i].rank == 2 ? take_matrix(r, &r->spec[i]) : 0;
    if (rc == 0)
        rc = take_rest(r);
    free(r->used);
    free(r->spec);
    return rc;
}

/* Open the tensors of a folder, of all types, under the names of the model. */
static int open_settled(const char *dir, const struct model_config *c, struct tensors *out)
{
    int rc = st_open_parts(dir, out);
    if (rc != 0)
        return rc;
    st_read_ahead(out);
    rc = folder_names_settle(dir, out);
    if (rc != 0)
        tensors_close(out);
    else
        folder_names_cut(dir, c, out);
    return rc;
}

/* Open the tensors of a folder whose weights are stored unquantized. */
static int plain_tensors(const char *dir, struct tensors *out)
{
    struct model_config config;
    int rc = folder_config(dir, &config);
    if (rc != 0 || (rc = open_settled(dir, &config, out)))
        return rc;
    if (config.tied)
        rc = folder_names_share(dir, out);
    if (rc == 0 && arch_first(&config.arch, config.layers, BLOCK_EXPERTS))
        rc = folder_experts_split(dir, &config, out);
    if (rc == 0)
        rc = file_rows_split(dir, &config, out);
    if (rc == 0)
        rc = folder_names_check(dir, out);
    if (rc != 0)
        tensors_close(out);
    return rc;
}

static int quantized_tensors(const char *dir, const struct quantized_scheme *scheme,
                             struct tensors *out)
{
    struct model_config config;
    struct tensors from;
    int rc = config_read(dir, &config);
    if (rc != 0 || (rc = open_settled(dir, &config, &from)))
        return rc;
    struct reading r = {.dir = dir, .config = &config, .scheme = scheme, .from = &from};
    rc = take_all(&r);
    if (rc != 0) {
        tensors_close(&r.to);
        tensors_close(&from);
        return rc;
    }
    *out = r.to;
    out->map = from.map;
    out->map_count = from.map_count;
    free(from.tensor);
    rc = file_rows_split(dir, &config, out);
    if (rc != 0)
        tensors_close(out);
    return rc;
}

int folder_tensors(const char *dir, struct tensors *out)
{
    char path[PATH_BYTES];
    json_t *config, *value;
    struct quantized_scheme scheme;
    *out = (struct tensors){0};
    int rc = read_quantized(dir, path, &config, &value);
    if (rc == 0 && value)
        rc = quantized_scheme(path, value, &scheme);
    const bool plain = !value || scheme.format == QUANTIZED_MXFP4;
    json_decref(config);
    if (rc != 0)
        return rc;
    return plain ? plain_tensors(dir, out) : quantized_tensors(dir, &scheme, out);
}
