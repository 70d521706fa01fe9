/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.h: the weights of a model as files hold them, whatever the format of the files. Names are those of
 * Hugging Face.
 */
#ifndef NOJIT_TRAINER_TENSORS_H
#define NOJIT_TRAINER_TENSORS_H

#include "base/tensor_type.h"

#include <stddef.h>
#include <stdint.h>

struct tensor {
    char name[128];
    enum nj_tensor_type dtype;
    int rank;
    int64_t shape[4];
    const void *data; /* in the mapped file; little-endian, row-major; may be unaligned */
    size_t bytes;
    const struct packed
        *packed; /* NULL: data holds the rows; else blocks are made while they are read */
    int pairs; /* 0: rows lie in Hugging Face's order; else in so many heads, of each of which the rows of the
                  two halves alternate (query and key of GGUF's llama, which rotates neighbours) */
};

/* A quantised tensor that its files hold in a layout of their own: numbers, scales and the like apart. Of type F32
 * where no type of blocks has its numbers. */
enum { PACKED_PARTS = 6 };
struct packed {
    /* The block of this row that begins at this column. */
    void (*block)(const struct packed *p, int64_t row, int64_t column, unsigned char *to);
    struct packed_part {
        const unsigned char *data; /* in the mapped file; may be unaligned. NULL: absent */
        size_t bytes;
        int type;
    } part[PACKED_PARTS];
    const char *type; /* what the file calls numbers that become F32; NULL of blocks */
    int elements;     /* of a block */
    int zero_more;    /* what is added to the stored number that stands for 0 */
    int64_t rows, columns;
    int64_t group_rows, group_columns; /* so many share a scale */
    int64_t nested;                    /* scales that share a scale, where they are quantised */
    float offset;                      /* what is added to each of those */
};

struct tensors {
    struct tensor *tensor; /* sorted by name */
    struct packed *packed; /* what some of them are made from */
    size_t count;
    struct tensor_map *map; /* mapped files */
    size_t map_count;
};

struct tensor_map {
    void *base; /* NULL: not mapped */
    size_t bytes;
};

void tensors_close(struct tensors *w);
const struct tensor *tensors_find(const struct tensors *w, const char *name); /* NULL: absent */
/* The type that its weights are written as elsewhere: BF16 where they are quantised, else their own. */
enum nj_tensor_type tensor_expanded(const struct tensor *t);
/* Reading is in Hugging Face's order of rows. Copies `count` rows of whole blocks, as the file has them, from row
 * `first` on. */
void tensor_rows(const struct tensor *t, int64_t first, int64_t count, void *dst);
/* Converts `count` elements from `first` on into dst (float, or 16-bit patterns). Rounds to nearest even, once:
 * the values of quantised types are those of ggml in float32. */
void tensor_to_f32(const struct tensor *t, int64_t first, int64_t count, float *dst);
void tensor_to_16(const struct tensor *t, int64_t first, int64_t count, int to_f16, uint16_t *dst);

/* "F32", "Q4_K", ...; a type by its name, or -1. */
const char *tensor_type_name(enum nj_tensor_type type);
int tensor_type_find(const char *name);
/* Of F32, BF16 and F16, as config.json calls them. */
const char *tensor_type_torch(enum nj_tensor_type type);
/* Elements of a block: 1 of the three that are not quantised. */
int tensor_type_block(enum nj_tensor_type type);
/* Bytes of so many elements, which are whole blocks. */
size_t tensor_type_bytes(enum nj_tensor_type type, int64_t elements);

#endif
