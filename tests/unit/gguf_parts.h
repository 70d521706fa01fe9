/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_parts.h: splits a GGUF file as llama.cpp's splitter does: the metadata goes into the first part, and each part
 * describes the whole.
 */
#ifndef NOJIT_TESTS_GGUF_PARTS_H
#define NOJIT_TESTS_GGUF_PARTS_H

#include "formats/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void parts_put(FILE *f, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        putc((int)(x >> (8 * i) & 0xff), f);
}

static inline void parts_text(FILE *f, const char *text, size_t bytes)
{
    parts_put(f, bytes, 8);
    fwrite(text, 1, bytes, f);
}

static inline void parts_key(FILE *f, const char *key, enum gguf_type type, uint64_t x)
{
    parts_text(f, key, strlen(key));
    parts_put(f, type, 4);
    parts_put(f, x, (int)gguf_type_bytes(type));
}

static inline void parts_value(FILE *f, const struct gguf_value *v)
{
    parts_text(f, v->key.text, v->key.bytes);
    parts_put(f, v->array ? GGUF_ARRAY : v->type, 4);
    if (v->array) {
        parts_put(f, v->type, 4);
        parts_put(f, v->count, 8);
    }
    fwrite(v->data, 1, v->bytes, f);
}

static inline void parts_pad(FILE *f)
{
    while (ftell(f) % 32 != 0)
        putc(0, f);
}

/* Write the tensors from `first` to before `end`. */
static inline void parts_tensors(FILE *f, const struct gguf *g, size_t first, size_t end)
{
    uint64_t offset = 0;
    for (size_t i = first; i < end; i++) {
        const struct tensor *t = &g->tensors.tensor[i];
        parts_text(f, t->name, strlen(t->name));
        parts_put(f, (uint64_t)t->rank, 4);
        for (int k = t->rank - 1; k >= 0; k--)
            parts_put(f, (uint64_t)t->shape[k], 8);
        parts_put(f, (uint64_t)gguf_tensor_type(t->dtype), 4);
        parts_put(f, offset, 8);
        offset = (offset + t->bytes + 31) / 32 * 32;
    }
    parts_pad(f);
    for (size_t i = first; i < end; i++) {
        fwrite(g->tensors.tensor[i].data, 1, g->tensors.tensor[i].bytes, f);
        parts_pad(f);
    }
}

/* Write STEM-00001-of-0000N.gguf and so on; exit if that fails. */
static inline void gguf_split(const char *path, const char *stem, int parts)
{
    struct gguf g;
    if (gguf_open(path, &g) != 0)
        abort();
    const size_t count = g.tensors.count;
    for (int no = 0; no < parts; no++) {
        const size_t first = count * (size_t)no / (size_t)parts;
        const size_t end = count * ((size_t)no + 1) / (size_t)parts;
        const size_t values = no == 0 ? g.values : 0;
        char name[512];
        snprintf(name, sizeof name, "%s-%05d-of-%05d.gguf", stem, no + 1, parts);
        FILE *f = fopen(name, "wb");
        if (!f)
            abort();
        fputs("GGUF", f);
        parts_put(f, 3, 4);
        parts_put(f, end - first, 8);
        parts_put(f, values + 3, 8);
        for (size_t i = 0; i < values; i++)
            parts_value(f, &g.value[i]);
        parts_key(f, "split.no", GGUF_U16, (uint64_t)no);
        parts_key(f, "split.count", GGUF_U16, (uint64_t)parts);
        parts_key(f, "split.tensors.count", GGUF_I32, count);
        parts_tensors(f, &g, first, end);
        if (fclose(f) != 0)
            abort();
    }
    gguf_close(&g);
}

#endif
