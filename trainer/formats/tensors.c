/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.c: see tensors.h.
 */
#include "formats/tensors.h"

#include "formats/mapped.h"

#include <stdlib.h>
#include <string.h>

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

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

const struct tensor *tensors_sort(struct tensor *t, size_t count)
{
    qsort(t, count, sizeof *t, by_name);
    for (size_t i = 1; i < count; i++)
        if (by_name(&t[i - 1], &t[i]) == 0)
            return &t[i];
    return NULL;
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
