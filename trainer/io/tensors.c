/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.c: see tensors.h.
 */
#include "io/tensors.h"

#include "io/mapped.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define ROW(name, elements, bytes) {#name, elements, bytes},
static const struct type_row {
    const char *name;
    int elements;
    size_t bytes;
} types[NJ_TYPES] = {NJ_TENSOR_TYPES(ROW)};
#undef ROW

const char *tensor_type_name(enum nj_tensor_type type)
{
    return types[type].name;
}

const char *tensor_type_torch(enum nj_tensor_type type)
{
    return type == NJ_TYPE_F32 ? "float32" : type == NJ_TYPE_BF16 ? "bfloat16" : "float16";
}

int tensor_type_find(const char *name)
{
    for (int i = 0; i < NJ_TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return i;
    return -1;
}

int tensor_type_block(enum nj_tensor_type type)
{
    return types[type].elements;
}

enum nj_tensor_type tensor_expanded(const struct tensor *t)
{
    return types[t->dtype].elements > 1 || t->packed ? NJ_TYPE_BF16 : t->dtype;
}

size_t tensor_type_bytes(enum nj_tensor_type type, int64_t elements)
{
    return (size_t)(elements / types[type].elements) * types[type].bytes;
}

void tensors_close(struct tensors *w)
{
    for (size_t i = 0; i < w->map_count; i++)
        mapped_end(w->map[i].base);
    free(w->map);
    free(w->tensor);
    free(w->packed);
    memset(w, 0, sizeof *w);
}

const struct tensor *tensors_find(const struct tensors *w, const char *name)
{
    size_t low = 0, high = w->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, w->tensor[middle].name);
        if (order == 0)
            return &w->tensor[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- content hash ---- */

#define CHUNK_BYTES ((size_t)4 << 20)

static uint64_t hash_chunk(const char *data, size_t bytes, size_t c)
{
    const size_t begin = c * CHUNK_BYTES;
    return XXH3_64bits(data + begin, bytes - begin < CHUNK_BYTES ? bytes - begin : CHUNK_BYTES);
}

/* Chunks are hashed side by side, a group at a time, and combined in their order. */
static uint64_t hash_data(const char *data, size_t bytes, uint64_t h)
{
    const size_t chunks = (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    for (size_t group = 0; group < chunks; group += 256) {
        uint64_t part[256] = {0};
        const size_t n = chunks - group < 256 ? chunks - group : 256;
#pragma omp parallel for schedule(dynamic)
        for (size_t c = 0; c < n; c++)
            part[c] = hash_chunk(data, bytes, group + c);
        h = XXH3_64bits_withSeed(part, n * sizeof *part, h);
    }
    return h;
}

/* Name, type, order of rows and shape of one tensor, hashed with what came before. */
static uint64_t hash_head(const struct tensor *t, uint64_t before)
{
    uint64_t h = XXH3_64bits_withSeed(t->name, strlen(t->name) + 1, before);
    int64_t shape[6] = {t->dtype | (int64_t)t->pairs << 32, t->rank};
    memcpy(shape + 2, t->shape, sizeof t->shape);
    return XXH3_64bits_withSeed(shape, sizeof shape, h);
}

static uint64_t hash_packed(const struct packed *p, uint64_t h)
{
    const int64_t numbers[] = {p->zero_more, p->group_rows, p->group_columns};
    h = XXH3_64bits_withSeed(numbers, sizeof numbers, h);
    for (int i = 0; i < PACKED_PARTS; i++)
        h = hash_data((const char *)p->part[i].data, p->part[i].bytes, h);
    return h;
}

uint64_t tensors_hash(const struct tensors *w, void (*seen)(void *user, const struct tensor *t),
                      void *user)
{
    uint64_t h = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct tensor *t = &w->tensor[i];
        h = hash_head(t, h);
        h = t->packed ? hash_packed(t->packed, h) : hash_data(t->data, t->bytes, h);
        if (seen)
            seen(user, t);
    }
    return h;
}
