/* SPDX-License-Identifier: Apache-2.0
 *
 * index.c: reads the index of embedded kernels. nj_index_open() proves once that every offset,
 * string and hash holds; whoever gets a struct nj_index may follow it without looking again.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "assemblers.h"
#include "internal.h"

/* Symbols defined by blobs.S. They are weak: a program for the CPU only links without it. */
extern const unsigned char nj_index_start[] __attribute__((weak, visibility("hidden")));
extern const unsigned char nj_index_end[] __attribute__((weak, visibility("hidden")));
extern const unsigned char nj_blobs_start[] __attribute__((weak, visibility("hidden")));
extern const unsigned char nj_blobs_end[] __attribute__((weak, visibility("hidden")));
extern const unsigned char nj_shader_index_start[] __attribute__((weak, visibility("hidden")));
extern const unsigned char nj_shader_index_end[] __attribute__((weak, visibility("hidden")));
extern const unsigned char nj_shaders_start[] __attribute__((weak, visibility("hidden")));
extern const unsigned char nj_shaders_end[] __attribute__((weak, visibility("hidden")));

__attribute__((format(printf, 2, 3))) static int damaged(char *why, const char *format, ...)
{
    va_list args;
    int n;

    n = snprintf(why, NJ_SENTENCE_BYTES, "embedded kernel index: ");
    va_start(args, format);
    vsnprintf(why + n, NJ_SENTENCE_BYTES - (size_t)n, format, args);
    va_end(args);
    return NJ_E_INDEX;
}

/* Return whether an array lies inside the index, aligned for its elements. */
static int array_fits(const struct nji_header *h, uint32_t off, uint64_t count, uint64_t element,
                      uint32_t align)
{
    return off >= sizeof *h && off % align == 0 && off <= h->index_bytes &&
           count * element <= h->index_bytes - off;
}

static int check_header(const void *index, size_t index_bytes, size_t blobs_bytes, char *why)
{
    const struct nji_header *h = index;
    XXH64_hash_t hash;
    XXH3_state_t state;
    const uint64_t zero = 0;

    if (index_bytes < sizeof *h || (uintptr_t)index % 8 != 0)
        return damaged(why, "%zu bytes are not a header", index_bytes);
    if (h->magic != NJI_MAGIC)
        return damaged(why, "wrong magic %016" PRIx64, h->magic);
    if (h->version != NJI_VERSION)
        return damaged(why, "version %u, this runtime reads %d", h->version, NJI_VERSION);
    if (h->index_bytes != index_bytes)
        return damaged(why, "says %u bytes, has %zu", h->index_bytes, index_bytes);
    if (h->blobs_bytes != blobs_bytes)
        return damaged(why, "expects %" PRIu64 " bytes of code, found %zu", h->blobs_bytes,
                       blobs_bytes);
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, index, offsetof(struct nji_header, index_hash));
    XXH3_64bits_update(&state, &zero, sizeof zero);
    XXH3_64bits_update(&state, h + 1, index_bytes - sizeof *h);
    hash = XXH3_64bits_digest(&state);
    if (hash != h->index_hash)
        return damaged(why, "hash %016" PRIx64 ", expected %016" PRIx64, hash, h->index_hash);
    if (!array_fits(h, h->archs_off, h->arch_count, sizeof(struct nji_arch), 4) ||
        !array_fits(h, h->entries_off, h->entry_count, sizeof(struct nji_entry), 8) ||
        !array_fits(h, h->records_off, h->record_count, sizeof(struct nji_record), 8) ||
        !array_fits(h, h->params_off, h->param_count, sizeof(struct nji_param), 2) ||
        !array_fits(h, h->strings_off, 1, 1, 1))
        return damaged(why, "an array lies outside of it");
    if (((const char *)index)[index_bytes - 1] != '\0')
        return damaged(why, "strings do not end");
    return 0;
}

static int check_archs(const struct nj_index *x, char *why)
{
    for (uint32_t i = 0; i < x->header->arch_count; i++)
        if (x->archs[i].assembler_str >= x->header->index_bytes - x->header->strings_off)
            return damaged(why, "the assembler of arch %u lies outside of it", i);
    return 0;
}

/* Check that a container lies in the section and has its hash. */
static int check_code(const struct nj_index *x, uint64_t off, uint64_t bytes, uint64_t hash,
                      const char *key, char *why)
{
    if (off > x->header->blobs_bytes || bytes > x->header->blobs_bytes - off)
        return damaged(why, "code of %s lies outside of the section", key);
    if (bytes && XXH3_64bits(x->blobs + off, bytes) != hash)
        return damaged(why, "code of %s does not have the hash that was recorded", key);
    return 0;
}

static int check_entry(const struct nj_index *x, uint32_t i, char *why)
{
    const struct nji_header *h = x->header;
    const struct nji_entry *e = &x->entries[i];
    uint32_t string_bytes = h->index_bytes - h->strings_off;
    const char *key;

    if (e->key_str >= string_bytes || e->entry_str >= string_bytes)
        return damaged(why, "entry %u has a name outside of it", i);
    key = x->strings + e->key_str;
    if (XXH3_64bits(key, strlen(key)) != e->key_hash)
        return damaged(why, "entry %u (%s) has the hash of another key", i, key);
    if (i > 0 && e->key_hash <= x->entries[i - 1].key_hash)
        return damaged(why, "entry %u (%s) is out of order", i, key);
    if (e->first_record > h->record_count || e->record_count > h->record_count - e->first_record)
        return damaged(why, "records of %s lie outside of it", key);
    if (e->first_param > h->param_count || e->param_count > h->param_count - e->first_param)
        return damaged(why, "parameters of %s lie outside of it", key);
    for (uint32_t r = 0; r < e->record_count; r++)
        if (x->records[e->first_record + r].arch >= h->arch_count)
            return damaged(why, "%s names an arch that is not listed", key);
    if ((e->blob_bytes == 0) != (e->record_count == 0) || (e->spare_bytes && !e->blob_bytes))
        return damaged(why, "%s has code without records or records without code", key);
    TRY(check_code(x, e->blob_off, e->blob_bytes, e->blob_hash, key, why));
    return check_code(x, e->spare_off, e->spare_bytes, e->spare_hash, key, why);
}

int nj_index_open(const void *index, size_t index_bytes, const void *blobs, size_t blobs_bytes,
                  struct nj_index *out, char *why)
{
    const unsigned char *base = index;
    const struct nji_header *h = index;
    TRY(check_header(index, index_bytes, blobs_bytes, why));
    out->header = h;
    out->archs = (const void *)(base + h->archs_off);
    out->entries = (const void *)(base + h->entries_off);
    out->records = (const void *)(base + h->records_off);
    out->params = (const void *)(base + h->params_off);
    out->strings = (const char *)(base + h->strings_off);
    out->blobs = blobs;
    TRY(check_archs(out, why));
    for (uint32_t i = 0; i < h->entry_count; i++)
        TRY(check_entry(out, i, why));
    return 0;
}

int nj_index_embedded(struct nj_index *out, char *why)
{
    if (!nj_index_start || !nj_index_end || !nj_blobs_start || !nj_blobs_end) {
        snprintf(why, NJ_SENTENCE_BYTES,
                 "this program was linked without machine code for any GPU; link blobs.o");
        return NJ_E_NO_CODE;
    }
    return nj_index_open(nj_index_start, (size_t)(nj_index_end - nj_index_start), nj_blobs_start,
                         (size_t)(nj_blobs_end - nj_blobs_start), out, why);
}

int nj_shaders_embedded(struct nj_index *out, char *why)
{
    if (!nj_shader_index_start || !nj_shader_index_end || !nj_shaders_start || !nj_shaders_end) {
        snprintf(why, NJ_SENTENCE_BYTES,
                 "this program was linked without shaders for Vulkan; link shaders.o");
        return NJ_E_NO_CODE;
    }
    return nj_index_open(nj_shader_index_start,
                         (size_t)(nj_shader_index_end - nj_shader_index_start), nj_shaders_start,
                         (size_t)(nj_shaders_end - nj_shaders_start), out, why);
}

const struct nji_entry *nj_index_find(const struct nj_index *index, const char *key)
{
    uint64_t hash = XXH3_64bits(key, strlen(key));
    uint32_t low = 0, high = index->header->entry_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (index->entries[middle].key_hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == index->header->entry_count || index->entries[low].key_hash != hash ||
        strcmp(index->strings + index->entries[low].key_str, key) != 0)
        return NULL;
    return &index->entries[low];
}

int nj_index_arch_for(const struct nj_index *index, int sm)
{
    int best = -1;

    for (uint32_t i = 0; i < index->header->arch_count; i++) {
        const struct nji_arch *arch = &index->archs[i];

        if (arch->sm / 10 != sm / 10 || arch->sm > sm || (arch->suffix == 'a' && arch->sm != sm))
            continue;
        if (best < 0 || arch->sm > index->archs[best].sm)
            best = (int)i;
    }
    return best;
}

void nj_arch_name(const struct nji_arch *arch, char *out)
{
    const char suffix[2] = {(char)arch->suffix, '\0'};

    snprintf(out, 16, "sm_%u%s", arch->sm, suffix);
}

void nj_arch_list(const struct nj_index *index, char *out, size_t bytes)
{
    size_t used = 0;
    char name[16];

    out[0] = '\0';
    for (uint32_t i = 0; i < index->header->arch_count && used < bytes; i++) {
        nj_arch_name(&index->archs[i], name);
        used += (size_t)snprintf(out + used, bytes - used, "%s%s", i ? ", " : "", name);
    }
}

static int read_embedded(struct nj_embedded *out)
{
    char why[NJ_SENTENCE_BYTES];
    struct nj_index index;

    TRY(nj_index_embedded(&index, why));
    for (uint32_t i = 0; i < index.header->entry_count; i++)
        out->keys += index.entries[i].blob_bytes > 0;
    out->archs = index.header->arch_count;
    out->index_hash = index.header->index_hash;
    for (uint32_t i = 0; i < out->archs && i < sizeof out->arch / sizeof *out->arch; i++) {
        nj_arch_name(&index.archs[i], out->arch[i]);
        snprintf(out->assembler[i], sizeof out->assembler[i], "%s",
                 index.strings + index.archs[i].assembler_str);
        out->spare[i] = index.archs[i].spare;
    }
    nji_assemblers(index.archs, out->archs, index.strings, out->toolkit, sizeof out->toolkit);
    for (uint32_t i = 0; i < index.header->record_count; i++)
        out->code_bytes += index.records[i].code_bytes;
    for (uint32_t i = 0; i < index.header->entry_count; i++)
        out->spare_bytes += index.entries[i].spare_bytes;
    return 0;
}

int nj_embedded_read_sized(struct nj_embedded *out, size_t bytes)
{
    struct nj_embedded found = {.keys = 0};
    const int rc = read_embedded(&found);

    TRY(nj_sized_write(out, bytes, &found, sizeof found));
    return rc;
}

const char *nj_embedded_assembler(const struct nj_embedded *e, const char *arch)
{
    for (uint32_t i = 0; i < e->archs && i < sizeof e->arch / sizeof *e->arch; i++)
        if (strcmp(e->arch[i], arch) == 0)
            return e->assembler[i];
    return e->toolkit;
}
