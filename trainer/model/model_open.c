/* SPDX-License-Identifier: Apache-2.0
 *
 * model_open.c: see model_open.h.
 */
#include "model/model_open.h"

#include "base/try.h"
#include "formats/apr.h"
#include "formats/gguf.h"
#include "formats/side_files.h"
#include "io/error.h"
#include "model/apr_model.h"
#include "model/gguf_model.h"
#include "model/quantized_folder.h"
#include "model/tensor_names.h"
#include "text/gguf_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool any(const char *path)
{
    (void)path;
    return true;
}

/* Kinds of models; the first that fits counts. */
static const struct kind {
    bool (*is)(const char *path);
    bool folder;
    int (*config)(const char *path, struct model_config *out);
    int (*tensors)(const char *path, struct tensors *out);
    int (*check)(const char *path, const struct tensors *w); /* check of all bytes; NULL: none */
    int (*side_files)(const char *path, const char *dir);
    int (*check_side_files)(const char *path);
} kinds[] = {
    {gguf_is, false, gguf_config, gguf_tensors, NULL, gguf_tokenizer_copy, gguf_tokenizer_check},
    {apr_is, false, apr_config, apr_tensors, apr_check, gguf_tokenizer_copy, gguf_tokenizer_check},
    {any, true, folder_config, folder_tensors, NULL, side_files_copy, side_files_check},
};

static const struct kind *kind_of(const char *path)
{
    const struct kind *k = kinds;
    while (!k->is(path))
        k++;
    return k;
}

int source_config(const char *path, struct model_config *out)
{
    return kind_of(path)->config(path, out);
}

int source_tensors_again(const char *path, struct tensors *out)
{
    return kind_of(path)->tensors(path, out);
}

int source_tensors(const char *path, struct tensors *out)
{
    const struct kind *k = kind_of(path);
    int rc = k->tensors(path, out);
    if (rc != 0 || !k->check)
        return rc;
    rc = k->check(path, out);
    if (rc != 0)
        tensors_close(out);
    return rc;
}

bool source_is_folder(const char *path)
{
    return kind_of(path)->folder;
}

int source_may_be_quantized(const char *path, bool *out)
{
    *out = true;
    return source_is_folder(path) ? folder_is_quantized(path, out) : 0;
}

int source_write_config(const char *path, const char *dir, const struct model_config *c,
                        const char *dtype)
{
    return source_is_folder(path) ? config_copy(path, dir, c, dtype) : config_write(dir, c, dtype);
}

int source_side_files(const char *path, const char *dir)
{
    return kind_of(path)->side_files(path, dir);
}

int source_check_side_files(const char *path)
{
    return kind_of(path)->check_side_files(path);
}

int source_types(const char *path, const struct model_config *c, unsigned char **out)
{
    struct tensor_spec *spec;
    struct tensors w;
    size_t count;
    bool quantized = false;
    *out = NULL;
    int rc = source_tensors_again(path, &w);
    if (rc != 0)
        return rc;
    rc = tensor_specs(c, &spec, &count);
    unsigned char *types = rc ? NULL : calloc(count, sizeof *types);
    if (rc == 0 && !types)
        rc = fail(NJ_E_NOMEM, "out of memory for the types of %zu tensors", count);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct tensor *t = tensors_find(&w, spec[i].name);
        rc = weights_check(path, &spec[i], t);
        types[i] = rc ? 0 : (unsigned char)t->dtype;
        quantized = quantized || tensor_type_block((enum nj_tensor_type)types[i]) > 1;
    }
    free(spec);
    tensors_close(&w);
    if (rc == 0 && quantized)
        *out = types;
    else
        free(types);
    return rc;
}

static void append(const char *name, char *out, size_t bytes)
{
    const size_t used = strlen(out);
    snprintf(out + used, bytes - used, "%s%s", used ? ", " : "", name);
}

int source_quantized(const char *path, char *out, size_t bytes)
{
    bool found[NJ_TYPES] = {false};
    struct tensors w;
    *out = '\0';
    TRY(source_tensors_again(path, &w));
    for (size_t i = 0; i < w.count; i++)
        found[w.tensor[i].dtype] = true;
    for (int t = 0; t < NJ_TYPES; t++)
        if (found[t] && tensor_type_block((enum nj_tensor_type)t) > 1)
            append(tensor_type_name((enum nj_tensor_type)t), out, bytes);
    for (size_t i = 0; i < w.count; i++) {
        const struct packed *p = w.tensor[i].packed;
        if (p && p->type && !strstr(out, p->type))
            append(p->type, out, bytes);
    }
    tensors_close(&w);
    return 0;
}
