/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf.h: little-endian GGUF files, versions 2 and 3, whole or split: metadata and tensors.
 * docs/formats.md describes the part of the format that is read.
 */
#ifndef NOJIT_TRAINER_GGUF_H
#define NOJIT_TRAINER_GGUF_H

#include "formats/tensors.h"
#include "io/path.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types of metadata, with the numbers that files use. */
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

/* String in the mapped file, not NUL-terminated. */
struct gguf_text {
    const char *text;
    size_t bytes;
};
/* Return the number of bytes of a string that a sentence shows. */
static inline int gguf_shown(struct gguf_text x)
{
    return x.bytes < 64 ? (int)x.bytes : 64;
}

struct gguf_value {
    struct gguf_text key;
    const char *name;    /* name of the key in the file; NULL: the same as key */
    enum gguf_type type; /* type of the value; of an array, that of its elements */
    bool array;
    uint64_t count;            /* number of elements; 1 if the value is not an array */
    const unsigned char *data; /* data in the mapped file, unaligned */
    size_t bytes;              /* size of data */
};

struct gguf {
    char path[PATH_BYTES];
    struct gguf_value *value; /* values sorted by key; of a split file, those of the first part */
    size_t values;
    bool apr;               /* whether the metadata are those of an APR file (text/metadata.h) */
    struct tensors tensors; /* tensors of all parts; GGUF's names, PyTorch's order of sizes */
};

/* Map the file, and all parts of a split one; path must be that of the first part. Nothing stays
 * open on failure. Return 0, NJ_E_IO, NJ_E_FORMAT, NJ_E_UNSUPPORTED, NJ_E_NOMEM. */
int gguf_open(const char *path, struct gguf *out);
void gguf_close(struct gguf *g);
/* Return whether path is a regular file that begins as a GGUF file does. */
bool gguf_is(const char *path);

/* Look up metadata. For an absent key the result is `missing`, or NULL; a value of another type
 * than requested is NJ_E_FORMAT. Integers and numbers may have any width. */
const struct gguf_value *gguf_find(const struct gguf *g, const char *key);
int gguf_int(const struct gguf *g, const char *key, int64_t missing, int64_t *out);
int gguf_number(const struct gguf *g, const char *key, double missing, double *out);
int gguf_bool(const struct gguf *g, const char *key, bool missing, bool *out);
int gguf_string(const struct gguf *g, const char *key, struct gguf_text *out);
/* Read arrays, which the caller frees with free(); in one of whole numbers true is 1. */
int gguf_strings(const struct gguf *g, const char *key, struct gguf_text **out, size_t *count);
int gguf_ints(const struct gguf *g, const char *key, int32_t **out, size_t *count);
int gguf_floats(const struct gguf *g, const char *key, float **out, size_t *count);

/* Return the number that files use for a tensor type (-1: none), and the bytes of one element of
 * a metadata type (0: strings, arrays). */
int gguf_tensor_type(enum nj_tensor_type type);
size_t gguf_type_bytes(enum gguf_type type);

#endif
