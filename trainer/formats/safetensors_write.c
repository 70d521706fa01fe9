/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors_write.c: writes weights to disk (verified_file.h).
 */
#include "formats/safetensors.h"

#include "io/error.h"
#include "io/json_text.h"
#include "io/path.h"
#include "io/verified_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct st_writer {
    struct verified_file file;
    uint64_t data_bytes, written; /* bytes of tensor data: declared, and written so far */
};

size_t st_declared_bytes(const struct st_declared *t)
{
    int64_t elements = 1;
    for (int i = 0; i < t->rank; i++)
        elements *= t->shape[i];
    return st_type_bytes(t->dtype, elements);
}

/* ---- header ---- */

static json_t *entry_of(const struct st_declared *t, uint64_t begin)
{
    json_t *shape = json_array();
    for (int i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer(t->shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", st_type_name(t->dtype), "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)(begin + st_declared_bytes(t)));
}

/* Return the header as text, padded with spaces so that the data starts at a multiple of 8;
 * malloc'ed. */
static char *header_text(const struct st_declared *tensors, size_t count, size_t *bytes,
                         uint64_t *data_bytes)
{
    json_memory_begin(); /* otherwise a shape may lack a number */
    json_t *root = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    *data_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        json_object_set_new(root, tensors[i].name, entry_of(&tensors[i], *data_bytes));
        *data_bytes += st_declared_bytes(&tensors[i]);
    }
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    if (json_memory_end()) {
        free(text);
        text = NULL;
    }
    if (!text)
        return NULL;
    size_t length = strlen(text);
    *bytes = (length + 7) / 8 * 8;
    char *padded = realloc(text, *bytes + 1);
    if (!padded) {
        free(text);
        return NULL;
    }
    memset(padded + length, ' ', *bytes - length);
    return padded;
}

/* ---- one file ---- */

static int begin(struct st_writer *w, const char *path, const struct st_declared *tensors,
                 size_t count)
{
    size_t bytes;
    TRY(verified_begin(&w->file, path));
    char *text = header_text(tensors, count, &bytes, &w->data_bytes);
    if (!text)
        return fail(NJ_E_NOMEM, "%s: out of memory for a header of %zu tensors", path, count);
    uint64_t length = bytes;
    int rc = verified_put(&w->file, &length, sizeof length);
    if (rc == 0)
        rc = verified_put(&w->file, text, bytes);
    free(text);
    return rc;
}

int st_write_begin(const char *path, const struct st_declared *tensors, size_t count,
                   struct st_writer **out)
{
    *out = NULL;
    struct st_writer *w = calloc(1, sizeof *w);
    if (!w)
        return fail(NJ_E_NOMEM, "%s: out of memory", path);
    int rc = begin(w, path, tensors, count);
    if (rc != 0) {
        st_write_abort(w);
        return rc;
    }
    *out = w;
    return 0;
}

int st_write_data(struct st_writer *w, const void *data, size_t bytes)
{
    if (bytes > w->data_bytes - w->written)
        return fail(NJ_E_ARG, "%s: %" PRIu64 " bytes of data were declared, more are written",
                    w->file.path, w->data_bytes);
    w->written += bytes;
    return verified_put(&w->file, data, bytes);
}

static int finish(struct st_writer *w)
{
    if (!w->file.error && w->written != w->data_bytes)
        return fail(NJ_E_ARG, "%s: %" PRIu64 " bytes of data were declared, %" PRIu64 " written",
                    w->file.path, w->data_bytes, w->written);
    TRY(verified_check(&w->file));
    return verified_publish(&w->file);
}

int st_write_end(struct st_writer *w)
{
    int rc = finish(w);
    st_write_abort(w);
    return rc;
}

void st_write_abort(struct st_writer *w)
{
    if (!w)
        return;
    verified_abort(&w->file);
    free(w);
}

/* ---- a folder ---- */

struct st_folder_writer {
    char dir[PATH_BYTES - 80]; /* leaves room for a shard's name */
    const struct st_declared *tensor;
    size_t count;
    size_t *first;      /* first tensor of each shard; first[shards] is count */
    size_t shards, now; /* now: index of the open shard */
    size_t left;        /* bytes that the open shard still takes */
    struct st_writer *writer;
};

static void shard_name(const struct st_folder_writer *w, size_t shard, char *out, size_t bytes)
{
    if (w->shards == 1)
        snprintf(out, bytes, "model.safetensors");
    else
        snprintf(out, bytes, "model-%05zu-of-%05zu.safetensors", shard + 1, w->shards);
}

static void shard_path(const struct st_folder_writer *w, size_t shard, char *out, size_t bytes)
{
    char name[64];
    shard_name(w, shard, name, sizeof name);
    snprintf(out, bytes, "%s/%s", w->dir, name);
}

/* Fill shards with one tensor after the other; a tensor is never split. */
static void divide(struct st_folder_writer *w, int64_t shard_bytes)
{
    size_t used = 0;
    w->shards = 1;
    for (size_t i = 0; i < w->count; i++) {
        size_t bytes = st_declared_bytes(&w->tensor[i]);
        if (used > 0 && used + bytes > (size_t)shard_bytes) {
            w->first[w->shards++] = i;
            used = 0;
        }
        used += bytes;
    }
    w->first[w->shards] = w->count;
}

static int open_shard(struct st_folder_writer *w)
{
    char path[PATH_BYTES];
    const size_t first = w->first[w->now], count = w->first[w->now + 1] - first;
    shard_path(w, w->now, path, sizeof path);
    w->left = 0;
    for (size_t i = 0; i < count; i++)
        w->left += st_declared_bytes(&w->tensor[first + i]);
    return st_write_begin(path, w->tensor + first, count, &w->writer);
}

static int close_shard(struct st_folder_writer *w)
{
    struct st_writer *writer = w->writer;
    w->writer = NULL;
    TRY(st_write_end(writer));
    w->now++;
    return 0;
}

int st_folder_begin(const char *dir, const struct st_declared *tensors, size_t count,
                    int64_t shard_bytes, struct st_folder_writer **out)
{
    *out = NULL;
    struct st_folder_writer *w = calloc(1, sizeof *w);
    size_t *first = calloc(count + 2, sizeof *first);
    if (!w || !first) {
        free(w);
        free(first);
        return fail(NJ_E_NOMEM, "%s: out of memory", dir);
    }
    w->first = first;
    w->tensor = tensors;
    w->count = count;
    int rc = snprintf(w->dir, sizeof w->dir, "%s", dir) < (int)sizeof w->dir
                 ? 0
                 : fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
    if (rc == 0) {
        divide(w, shard_bytes);
        rc = open_shard(w);
    }
    if (rc != 0) {
        st_folder_abort(w);
        return rc;
    }
    *out = w;
    return 0;
}

int st_folder_data(struct st_folder_writer *w, const void *data, size_t bytes)
{
    const char *from = data;
    while (bytes > 0) {
        if (w->left == 0) {
            if (w->now + 1 == w->shards)
                return fail(NJ_E_ARG, "%s: more data than was declared", w->dir);
            int rc = close_shard(w);
            if (rc == 0)
                rc = open_shard(w);
            if (rc != 0)
                return rc;
        }
        size_t part = bytes < w->left ? bytes : w->left;
        TRY(st_write_data(w->writer, from, part));
        from += part;
        bytes -= part;
        w->left -= part;
    }
    return 0;
}

static int write_index(const struct st_folder_writer *w)
{
    char path[PATH_BYTES], name[64];
    uint64_t total = 0;
    json_memory_begin();
    json_t *map = json_object();
    for (size_t s = 0; s < w->shards; s++) {
        shard_name(w, s, name, sizeof name);
        for (size_t i = w->first[s]; i < w->first[s + 1]; i++) {
            json_object_set_new(map, w->tensor[i].name, json_string(name));
            total += st_declared_bytes(&w->tensor[i]);
        }
    }
    json_t *root =
        json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)total, "weight_map", map);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", w->dir);
    return json_write_file(path, root, JSON_INDENT(2) | JSON_SORT_KEYS);
}

int st_folder_end(struct st_folder_writer *w)
{
    int rc = 0;
    if (!w->writer || w->now + 1 != w->shards)
        rc = fail(NJ_E_ARG, "%s: less data than was declared", w->dir);
    if (rc == 0)
        rc = close_shard(w);
    if (rc == 0 && w->shards > 1)
        rc = write_index(w);
    if (rc != 0) {
        st_folder_abort(w);
        return rc;
    }
    free(w->first);
    free(w);
    return 0;
}

void st_folder_abort(struct st_folder_writer *w)
{
    if (!w)
        return;
    st_write_abort(w->writer);
    for (size_t s = 0; s < w->now; s++) {
        char path[PATH_BYTES];
        shard_path(w, s, path, sizeof path);
        unlink(path);
    }
    free(w->first);
    free(w);
}
