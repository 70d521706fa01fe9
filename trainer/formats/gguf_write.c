/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_write.c: see gguf_write.h. ggml's reader requires each tensor to start where the one
 * before it ends, rounded up to the alignment.
 */
#include "formats/gguf_write.h"

#include "base/checked.h"
#include "base/grow.h"
#include "io/error.h"
#include "io/model_folder.h"
#include "io/verified_file.h"

#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 32 };

struct gguf_writer {
    struct verified_file file;
    char *meta; /* keys and values, followed by the list of tensors */
    size_t meta_bytes, room;
    bool no_memory; /* whether memory ran out for any of it */
    uint64_t values;
    const struct st_declared *tensor;
    size_t count, now; /* number of tensors; index of the one whose data come next */
    size_t left;       /* bytes of its data that are left */
};

int gguf_write_begin(const char *path, struct gguf_writer **out)
{
    struct gguf_writer *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return fail(NJ_E_NOMEM, "%s: out of memory", path);
    const int rc = verified_begin(&w->file, path);
    if (rc != 0) {
        gguf_write_abort(w);
        return rc;
    }
    *out = w;
    return 0;
}

/* ---- metadata ---- */

static void put(struct gguf_writer *w, const void *data, size_t bytes)
{
    if (w->no_memory || !GROW(w->meta, w->room, size_add(w->meta_bytes, bytes))) {
        w->no_memory = true;
        return;
    }
    if (bytes > 0)
        memcpy(w->meta + w->meta_bytes, data, bytes);
    w->meta_bytes += bytes;
}

/* Append a little-endian number. */
static void put_number(struct gguf_writer *w, uint64_t x, size_t bytes)
{
    unsigned char number[8];
    for (size_t i = 0; i < bytes; i++)
        number[i] = (unsigned char)(x >> (8 * i));
    put(w, number, bytes);
}

static void put_text(struct gguf_writer *w, struct gguf_text x)
{
    put_number(w, x.bytes, 8);
    put(w, x.text, x.bytes);
}

static void put_key(struct gguf_writer *w, const char *key, enum gguf_type type)
{
    put_text(w, (struct gguf_text){key, strlen(key)});
    put_number(w, type, 4);
    w->values++;
}

static void put_array(struct gguf_writer *w, const char *key, enum gguf_type type, size_t count)
{
    put_key(w, key, GGUF_ARRAY);
    put_number(w, type, 4);
    put_number(w, count, 8);
}

void gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t x)
{
    put_key(w, key, GGUF_U32);
    put_number(w, x, 4);
}

void gguf_put_f32(struct gguf_writer *w, const char *key, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_key(w, key, GGUF_F32);
    put_number(w, bits, 4);
}

void gguf_put_bool(struct gguf_writer *w, const char *key, bool x)
{
    put_key(w, key, GGUF_BOOL);
    put_number(w, x, 1);
}

void gguf_put_text(struct gguf_writer *w, const char *key, struct gguf_text x)
{
    put_key(w, key, GGUF_STRING);
    put_text(w, x);
}

void gguf_put_string(struct gguf_writer *w, const char *key, const char *x)
{
    gguf_put_text(w, key, (struct gguf_text){x, strlen(x)});
}

void gguf_put_strings(struct gguf_writer *w, const char *key, const struct gguf_text *x,
                      size_t count)
{
    put_array(w, key, GGUF_STRING, count);
    for (size_t i = 0; i < count; i++)
        put_text(w, x[i]);
}

void gguf_put_i32s(struct gguf_writer *w, const char *key, const int32_t *x, size_t count)
{
    put_array(w, key, GGUF_I32, count);
    for (size_t i = 0; i < count; i++)
        put_number(w, (uint32_t)x[i], 4);
}

void gguf_put_bools(struct gguf_writer *w, const char *key, const bool *x, size_t count)
{
    put_array(w, key, GGUF_BOOL, count);
    for (size_t i = 0; i < count; i++)
        put_number(w, x[i], 1);
}

/* ---- tensors ---- */

static void put_tensor(struct gguf_writer *w, const struct st_declared *t, size_t offset)
{
    put_text(w, (struct gguf_text){t->name, strlen(t->name)});
    put_number(w, (uint64_t)t->rank, 4);
    for (int i = t->rank - 1; i >= 0; i--)
        put_number(w, (uint64_t)t->shape[i], 8);
    put_number(w, (uint64_t)gguf_tensor_type(t->dtype), 4);
    put_number(w, offset, 8);
}

static int put_padding(struct gguf_writer *w)
{
    static const char zeros[ALIGNMENT];
    const size_t rest = (size_t)(w->file.bytes % ALIGNMENT);
    return rest == 0 ? 0 : verified_put(&w->file, zeros, ALIGNMENT - rest);
}

/* Write magic, version and counts, which precede meta. */
static int put_head(struct gguf_writer *w)
{
    unsigned char head[24] = {'G', 'G', 'U', 'F', 3};
    for (int i = 0; i < 8; i++) {
        head[8 + i] = (unsigned char)((uint64_t)w->count >> (8 * i));
        head[16 + i] = (unsigned char)(w->values >> (8 * i));
    }
    return verified_put(&w->file, head, sizeof head);
}

int gguf_write_tensors(struct gguf_writer *w, const struct st_declared *tensors, size_t count)
{
    size_t offset = 0;
    w->tensor = tensors;
    w->count = count;
    w->left = count > 0 ? st_declared_bytes(&tensors[0]) : 0;
    for (size_t i = 0; i < count; i++) {
        if (gguf_tensor_type(tensors[i].dtype) < 0)
            return fail(NJ_E_ARG, "%s: tensor %s: GGUF has no type %s; write it as another",
                        w->file.path, tensors[i].name, tensor_type_name(tensors[i].dtype));
        put_tensor(w, &tensors[i], offset);
        offset = size_up(size_add(offset, st_declared_bytes(&tensors[i])), ALIGNMENT);
    }
    if (w->no_memory)
        return fail(NJ_E_NOMEM, "%s: out of memory for the metadata", w->file.path);
    TRY(put_head(w));
    TRY(verified_put(&w->file, w->meta, w->meta_bytes));
    return put_padding(w);
}

static int next_tensor(struct gguf_writer *w)
{
    w->now++;
    w->left = w->now < w->count ? st_declared_bytes(&w->tensor[w->now]) : 0;
    return put_padding(w);
}

int gguf_write_data(struct gguf_writer *w, const void *data, size_t bytes)
{
    const char *from = data;
    while (bytes > 0) {
        if (w->now == w->count)
            return fail(NJ_E_ARG, "%s: more data than was declared", w->file.path);
        const size_t part = bytes < w->left ? bytes : w->left;
        int rc = verified_put(&w->file, from, part);
        w->left -= part;
        if (rc == 0 && w->left == 0)
            rc = next_tensor(w);
        if (rc != 0)
            return rc;
        from += part;
        bytes -= part;
    }
    return 0;
}

/* Open the file as any reader does. */
static int open_again(const struct gguf_writer *w)
{
    struct gguf g;
    TRY(gguf_open(w->file.temp, &g));
    gguf_close(&g);
    return 0;
}

static int finish(struct gguf_writer *w)
{
    if (!w->file.error && w->now != w->count)
        return fail(NJ_E_ARG, "%s: less data than was declared", w->file.path);
    char folder[PATH_BYTES];
    memcpy(folder, w->file.path, sizeof folder);
    TRY(verified_check(&w->file));
    TRY(open_again(w));
    TRY(verified_publish(&w->file));
    return folder_flush_names(dirname(folder));
}

int gguf_write_end(struct gguf_writer *w)
{
    const int rc = finish(w);
    gguf_write_abort(w);
    return rc;
}

void gguf_write_abort(struct gguf_writer *w)
{
    if (!w)
        return;
    free(w->meta);
    verified_abort(&w->file);
    free(w);
}
