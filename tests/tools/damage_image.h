/* SPDX-License-Identifier: Apache-2.0
 *
 * damage_image.h: the kernels of two keys, taken apart so that a fault can be planted, and put
 * together again.
 */
#ifndef NOJIT_TESTS_DAMAGE_IMAGE_H
#define NOJIT_TESTS_DAMAGE_IMAGE_H

#include "image/problems.h"
#include "image/span.h"
#include "index.h"

enum { MAX_ENTRIES = 4, MAX_ARCHS = 32, MAX_PARAMS = 64, STRING_BYTES = 64 };

struct bytes {
    uint8_t *data;
    size_t bytes;
};

struct entry {
    struct nji_entry e;
    struct nji_record records[MAX_ARCHS];
    struct nji_param params[MAX_PARAMS];
    char key[STRING_BYTES], name[STRING_BYTES];
    uint8_t *container;
    size_t bytes;
    struct bytes spare;
};

struct image {
    struct nji_arch archs[MAX_ARCHS];
    uint32_t arch_count, entry_count;
    struct entry entries[MAX_ENTRIES]; /* ascending hash */
    char assemblers[MAX_ARCHS][STRING_BYTES];
    struct bytes index, blobs, keys; /* what is written */
    uint32_t sm, other_sm;
    struct entry *key, *other;
    const char *extra;         /* seed or file */
    const char *extra_section; /* name of a section more */
    struct span overlay;       /* after the end of the ELF file */
    uint32_t segment_flags, segment_shift;
    uint16_t machine;
};

/* The entry of one cubin in a container. */
struct place {
    size_t header, payload, end; /* in the container */
};

_Noreturn void die(const char *what);
void *allocate(size_t bytes); /* zeroed, and one byte more */
void image_read(struct image *m, struct span file, const char *key, const char *other);
/* Make the container of a key its spare one, and the other way round. */
void image_swap_spare(struct entry *k);
/* All zero if the container has no code for the SM. */
struct place image_find(const struct entry *k, uint32_t sm);
/* Makes the container's header say its size. */
void image_fit(struct entry *k);
/* Replaces bytes [from, to) of the container. */
void image_splice(struct entry *k, size_t from, size_t to, struct span with);
void image_replace_code(struct entry *k, uint32_t sm, struct span code);
/* Puts blobs and index together, with hashes that fit. */
void image_build(struct image *m);
/* One read-only segment that maps everything, four or five sections. */
void image_write(const struct image *m, const char *path);
void image_free(struct image *m);
/* The whole binary as it is, but for a key whose entry has no code, with an index hash that fits. */
void binary_empty_entry(struct span file, const char *key, const char *path);

#endif
