/* SPDX-License-Identifier: Apache-2.0
 *
 * blobindex.h: the index of a binary, read without trust (format: runtime/index.h).
 */
#ifndef NOJIT_TOOLS_BLOBINDEX_H
#define NOJIT_TOOLS_BLOBINDEX_H

#include "pack/keyfile.h"

struct blob_index {
    struct nji_header header;
    const struct nji_arch *archs;
    const struct nji_entry *entries;
    const struct nji_record *records;
    const struct nji_param *params;
    struct span strings;
    void *copy;                       /* aligned, what the pointers lead into */
    const struct nji_entry **by_hash; /* all entries, in the order that they should have */
};

/* Reads the index and checks it by itself: layout, hash, order, strings, archs, and that each arch names a
 * version of the compiler ("ptxas "). A problem that does not keep the rest from being read goes to
 * the report. Returns 0, or -1 with a sentence; free in both cases. */
int index_read(struct span section, const char *compiler, struct blob_index *out, struct report *r,
               char why[WHY_BYTES]);
void index_free(struct blob_index *x);
/* The string, or NULL if there is none at that offset. */
const char *index_string(const struct blob_index *x, uint32_t off);
/* Return the compiler of an arch and its version, "ptxas 13.0.88"; "" if no key has code for it. */
const char *index_assembler(const struct blob_index *x, uint32_t arch);
/* The entry of a key, or NULL. */
const struct nji_entry *index_find(const struct blob_index *x, const char *key);
/* Compares an entry with what the launcher of the key asks for. */
void index_check_entry(const struct blob_index *x, const struct nji_entry *e, const struct key *k,
                       struct report *r);

#endif
