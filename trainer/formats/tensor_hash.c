/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_hash.c: see tensor_hash.h.
 */
#include "formats/tensor_hash.h"

#include "formats/mapped.h"
#include "io/error.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PASS_BYTES ((size_t)256 << 10) /* bytes per pass: half of a core's L2 cache */

/* Number of chunk hashes that are combined at a time. */
enum { GROUP = 256 };

static size_t chunks_of(size_t bytes)
{
    return (bytes + TENSOR_CHUNK_BYTES - 1) / TENSOR_CHUNK_BYTES;
}

size_t tensor_chunks(const struct tensor *t)
{
    size_t chunks = 0;
    if (!t->packed)
        return chunks_of(t->bytes);
    for (int i = 0; i < PACKED_PARTS; i++)
        chunks += chunks_of(t->packed->part[i].bytes);
    return chunks;
}

int tensor_hashes_begin(const struct tensors *w, struct tensor_hashes *out)
{
    size_t chunks = 0;
    *out = (struct tensor_hashes){.w = w};
    for (size_t i = 0; i < w->count; i++)
        chunks += tensor_chunks(&w->tensor[i]);
    out->first = calloc(w->count + 1, sizeof *out->first);
    out->begun = calloc(w->count + 1, sizeof *out->begun);
    out->part = calloc(chunks + 1, sizeof *out->part);
    if (!out->first || !out->begun || !out->part) {
        tensor_hashes_end(out);
        return fail(NJ_E_NOMEM, "no host memory for the hashes of %zu tensors; free some",
                    w->count);
    }
    for (size_t i = 0; i < w->count; i++)
        out->first[i + 1] = out->first[i] + tensor_chunks(&w->tensor[i]);
    return 0;
}

/* Return the bytes of a chunk, which for a packed tensor are in one of its parts. */
static const unsigned char *chunk_data(const struct tensor *t, size_t chunk, size_t *bytes)
{
    const unsigned char *data = t->data;
    size_t all = t->bytes;
    for (int i = 0; t->packed && i < PACKED_PARTS; i++) {
        const size_t chunks = chunks_of(t->packed->part[i].bytes);
        data = t->packed->part[i].data;
        all = t->packed->part[i].bytes;
        if (chunk < chunks)
            break;
        chunk -= chunks;
    }
    const size_t rest = all - chunk * TENSOR_CHUNK_BYTES;
    *bytes = rest < TENSOR_CHUNK_BYTES ? rest : TENSOR_CHUNK_BYTES;
    return data + chunk * TENSOR_CHUNK_BYTES;
}

void tensor_hashes_chunk(const struct tensor_hashes *h, size_t tensor, size_t chunk,
                         tensor_passed *passed, void *user)
{
    size_t bytes;
    const unsigned char *data = chunk_data(&h->w->tensor[tensor], chunk, &bytes);
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    for (size_t at = 0; at < bytes; at += PASS_BYTES) {
        const size_t n = bytes - at < PASS_BYTES ? bytes - at : PASS_BYTES;
        XXH3_64bits_update(&state, data + at, n);
        if (passed)
            passed(user, at + n, bytes);
    }
    h->part[h->first[tensor] + chunk] = XXH3_64bits_digest(&state);
    mapped_passed(data, bytes);
}

/* ---- the value ---- */

static uint64_t hash_parts(const uint64_t *part, size_t count, uint64_t h)
{
    for (size_t group = 0; group < count; group += GROUP) {
        const size_t n = count - group < GROUP ? count - group : GROUP;
        h = XXH3_64bits_withSeed(part + group, n * sizeof *part, h);
    }
    return h;
}

/* Hash the name, type, order of rows, shape and `added` of one tensor with the preceding hash. */
static uint64_t hash_head(const struct tensor *t, uint64_t before)
{
    uint64_t h = XXH3_64bits_withSeed(t->name, strlen(t->name) + 1, before);
    int64_t shape[6] = {t->dtype | (int64_t)t->pairs << 32, t->rank};
    memcpy(shape + 2, t->shape, sizeof t->shape);
    h = XXH3_64bits_withSeed(shape, sizeof shape, h);
    return t->added == 0 ? h : XXH3_64bits_withSeed(&t->added, sizeof t->added, h);
}

static uint64_t hash_packed(const struct packed *p, const uint64_t *part, uint64_t h)
{
    const int64_t numbers[] = {p->zero_more, p->group_rows, p->group_columns};
    h = XXH3_64bits_withSeed(numbers, sizeof numbers, h);
    for (int i = 0; i < PACKED_PARTS; i++) {
        const size_t chunks = chunks_of(p->part[i].bytes);
        h = hash_parts(part, chunks, h);
        part += chunks;
    }
    return h;
}

uint64_t tensor_hashes_value(const struct tensor_hashes *h)
{
    uint64_t value = 0;
    for (size_t i = 0; i < h->w->count; i++) {
        const struct tensor *t = &h->w->tensor[i];
        const uint64_t *part = h->part + h->first[i];
        value = hash_head(t, value);
        value = t->packed ? hash_packed(t->packed, part, value)
                          : hash_parts(part, h->first[i + 1] - h->first[i], value);
    }
    return value;
}

void tensor_hashes_end(struct tensor_hashes *h)
{
    free(h->first);
    free(h->part);
    free(h->begun);
    *h = (struct tensor_hashes){0};
}
