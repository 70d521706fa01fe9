/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_index.c: the index of kernels, as the runtime reads it: the index, as many bytes as its
 * header says, then the code. A hash of 0 in the file stands for the right one, so that what lies
 * behind a hash is reached.
 */
#include "assemblers.h"
#include "fuzz.h"
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void fill_hashes(unsigned char *index, size_t index_bytes, const unsigned char *blobs,
                        size_t blobs_bytes)
{
    struct nji_header *h = (void *)index;
    for (uint64_t i = 0; i < h->entry_count; i++) {
        const uint64_t at = h->entries_off + i * sizeof(struct nji_entry);
        struct nji_entry e;
        if (at + sizeof e > index_bytes)
            break;
        memcpy(&e, index + at, sizeof e);
        const uint64_t key = (uint64_t)h->strings_off + e.key_str;
        const void *end = key < index_bytes ? memchr(index + key, 0, index_bytes - key) : NULL;
        if (e.key_hash == 0 && end)
            e.key_hash =
                XXH3_64bits(index + key, (size_t)((const unsigned char *)end - index) - key);
        if (e.blob_hash == 0 && e.blob_off <= blobs_bytes &&
            e.blob_bytes <= blobs_bytes - e.blob_off)
            e.blob_hash = XXH3_64bits(blobs + e.blob_off, e.blob_bytes);
        if (e.spare_hash == 0 && e.spare_off <= blobs_bytes &&
            e.spare_bytes <= blobs_bytes - e.spare_off)
            e.spare_hash = XXH3_64bits(blobs + e.spare_off, e.spare_bytes);
        memcpy(index + at, &e, sizeof e);
    }
    if (h->index_hash == 0)
        h->index_hash = XXH3_64bits(index, index_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct nji_header h = {0};
    struct nj_index x;
    char why[NJ_SENTENCE_BYTES] = "", list[64];
    memcpy(&h, data, bytes < sizeof h ? bytes : sizeof h);
    const size_t index_bytes = h.index_bytes < bytes ? h.index_bytes : bytes;
    const size_t blobs_bytes = bytes - index_bytes;
    unsigned char *index = malloc(index_bytes + 1), *blobs = malloc(blobs_bytes + 1);
    FUZZ_CHECK(index && blobs);
    memcpy(index, data, index_bytes);
    memcpy(blobs, data + index_bytes, blobs_bytes);
    if (index_bytes >= sizeof h)
        fill_hashes(index, index_bytes, blobs, blobs_bytes);
    const int rc = nj_index_open(index, index_bytes, blobs, blobs_bytes, &x, why);
    fuzz_verdict(rc == 0, why);
    if (rc == 0) {
        for (uint32_t i = 0; i < x.header->entry_count; i++)
            FUZZ_CHECK(nj_index_find(&x, x.strings + x.entries[i].key_str));
        FUZZ_CHECK(!nj_index_find(&x, "no such key"));
        FUZZ_CHECK(nj_index_arch_for(&x, 90) < (int)x.header->arch_count);
        nj_arch_list(&x, list, sizeof list);
        nji_assemblers(x.archs, x.header->arch_count, x.strings, list, sizeof list);
    }
    free(index);
    free(blobs);
    return 0;
}
