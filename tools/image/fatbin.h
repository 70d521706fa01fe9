/* SPDX-License-Identifier: Apache-2.0
 *
 * fatbin.h: the entries of a fatbin container, as `fatbinary` writes it.
 */
#ifndef NOJIT_TOOLS_FATBIN_H
#define NOJIT_TOOLS_FATBIN_H

#include "image/problems.h"
#include "image/span.h"

/* Kinds of entries: those that `fatbinary` and nvcc of CUDA 13.0, 13.3 and 13.5 write. */
enum { FATBIN_PTX = 1, FATBIN_ELF = 2, FATBIN_NVVM = 8, FATBIN_TILE_IR = 128 };

struct fatbin { /* A container, and how far it has been read. */
    struct span container;
    size_t at;
};

struct fatbin_entry {
    uint16_t kind;
    uint32_t sm;
    char suffix; /* suffix of the arch: 0, 'a' or 'f' */
    uint64_t flags;
    struct span payload; /* the bytes as they are stored */
    uint64_t code_bytes; /* size of the code, uncompressed */
    bool zstd;
};

/* Return the name of the contents of an entry that a driver compiles ("Tile IR"), or NULL. */
const char *fatbin_compiled(uint16_t kind);
/* Open a container, which must fill the span exactly. Return 0, or -1 with a sentence. */
int fatbin_open(struct span container, struct fatbin *out, char why[WHY_BYTES]);
/* Return 1 with the next entry, 0 at the end, -1 with a sentence. If the entry is not ELF, only kind, arch and payload
 * are valid. */
int fatbin_next(struct fatbin *f, struct fatbin_entry *out, char why[WHY_BYTES]);
/* Get the code of an entry. Free *owned afterwards; it is NULL if the code lies in the container. */
int fatbin_code(const struct fatbin_entry *e, struct span *code, void **owned, char why[WHY_BYTES]);

#endif
