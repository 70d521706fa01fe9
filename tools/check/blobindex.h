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
    void *copy;                       /* aligned copy, which the pointers point into */
    const struct nji_entry **by_hash; /* all entries, in the order that they should have */
};

/* Read the index and check it by itself: layout, hash, order, strings, archs, and that each arch names a version of the
 * compiler ("ptxas "). Problems that do not prevent reading go to the report. Return 0, or -1 with a sentence; free in
 * both cases. */
int index_read(struct span section, const char *compiler, struct blob_index *out, struct report *r,
               char why[WHY_BYTES]);
void index_free(struct blob_index *x);
/* Return the string at an offset, or NULL if there is none. */
const char *index_string(const struct blob_index *x, uint32_t off);
/* Return the compiler of an arch and its version, "ptxas 13.0.88"; "" if no key has code for it. */
const char *index_assembler(const struct blob_index *x, uint32_t arch);
/* Return the entry of a key, or NULL. */
const struct nji_entry *index_find(const struct blob_index *x, const char *key);
/* Compare an entry with the block that the launcher of the key expects. */
void index_check_entry(const struct blob_index *x, const struct nji_entry *e, const struct key *k,
                       struct report *r);

#endif
