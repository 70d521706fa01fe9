/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf.h: GGUF files, versions 2 and 3 of little-endian machines, whole or split: metadata and tensors.
 * docs/formats.md has what is read of the format.
 */
#ifndef NOJIT_TRAINER_GGUF_H
#define NOJIT_TRAINER_GGUF_H

#include "formats/tensors.h"
#include "io/path.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By their numbers in files. */
enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
};

/* Not terminated, in the mapped file. */
struct gguf_text {
    const char *text;
    size_t bytes;
};
/* Bytes of it that a sentence shows. */
static inline int gguf_shown(struct gguf_text x)
{
    return x.bytes < 64 ? (int)x.bytes : 64;
}

struct gguf_value {
    struct gguf_text key;
    const char *name;    /* of the key in the file; NULL: the same */
    enum gguf_type type; /* of the elements, of an array */
    bool array;
    uint64_t count;            /* elements; 1 of what is no array */
    const unsigned char *data; /* in the mapped file, unaligned */
    size_t bytes;              /* of data */
};

struct gguf {
    char path[PATH_BYTES];
    struct gguf_value *value; /* sorted by key; of a split file, those of the first part */
    size_t values;
    bool apr;               /* metadata of an APR file (text/metadata.h) */
    struct tensors tensors; /* of all parts; GGUF's names, PyTorch's order of sizes (rows first) */
};

/* Maps the file, and all parts of a split one, whose first part path must be. Nothing stays open on failure.
 * Returns 0, NJ_E_IO, NJ_E_FORMAT, NJ_E_UNSUPPORTED, NJ_E_NOMEM. */
int gguf_open(const char *path, struct gguf *out);
void gguf_close(struct gguf *g);
/* A regular file that begins as a GGUF file does. */
bool gguf_is(const char *path);

/* Metadata. Absent: `missing`, or NULL; another type than asked for: NJ_E_FORMAT. Integers may have any width, and
 * so may numbers. */
const struct gguf_value *gguf_find(const struct gguf *g, const char *key);
int gguf_int(const struct gguf *g, const char *key, int64_t missing, int64_t *out);
int gguf_number(const struct gguf *g, const char *key, double missing, double *out);
int gguf_bool(const struct gguf *g, const char *key, bool missing, bool *out);
int gguf_string(const struct gguf *g, const char *key, struct gguf_text *out);
/* Arrays; free() them. */
int gguf_strings(const struct gguf *g, const char *key, struct gguf_text **out, size_t *count);
int gguf_ints(const struct gguf *g, const char *key, int32_t **out, size_t *count);
int gguf_floats(const struct gguf *g, const char *key, float **out, size_t *count);

/* The number that files have for a type (-1: none), and bytes of a value's element (0: strings, arrays). */
int gguf_tensor_type(enum nj_tensor_type type);
size_t gguf_type_bytes(enum gguf_type type);

#endif
