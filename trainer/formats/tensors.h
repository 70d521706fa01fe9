/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.h: the weights of a model as its files hold them, in any file format. Names are those
 * of Hugging Face.
 */
#ifndef NOJIT_TRAINER_TENSORS_H
#define NOJIT_TRAINER_TENSORS_H

#include "base/head_rows.h"
#include "base/tensor_type.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tensor {
    char name[128];
    enum nj_tensor_type dtype;
    int rank;
    int64_t shape[4];
    const void *data; /* data in the mapped file; little-endian, row-major; may be unaligned */
    size_t bytes;
    /* source of blocks that are made while they are read; NULL: data holds the rows */
    const struct packed *packed;
    /* number of heads in each of which the rows of the two halves alternate (query and key of
     * GGUF's llama, which rotates neighbors); 0: rows are in Hugging Face's order */
    int pairs;
    /* order of the rows of heads in the file, and which of its rows these are */
    struct head_order order;
    /* order of the heads in the rows and in the columns of the file */
    struct head_tiles row_tiles, column_tiles;
    /* number added to each element of an unquantized tensor (-1: GGUF files hold the gain of a norm
     * where folders hold the gain - 1) */
    float added;
    bool negated_exp; /* whether the file holds -exp(x) for each element x */
};

/* Quantized tensor that its files hold in a layout of their own: numbers, scales and the like
 * apart. Its type is F32 if no block type has its numbers. */
enum { PACKED_PARTS = 6 };
struct packed {
    /* Make the block at this row that begins at this column. */
    void (*block)(const struct packed *p, int64_t row, int64_t column, unsigned char *to);
    struct packed_part {
        const unsigned char *data; /* data in the mapped file; may be unaligned. NULL: absent */
        size_t bytes;
        int type;
    } part[PACKED_PARTS];
    const char *type; /* the file's name for numbers that become F32; NULL for blocks */
    int elements;     /* elements of a block */
    int zero_more;    /* number added to the stored number that stands for 0 */
    int64_t rows, columns;
    int64_t group_rows, group_columns; /* rows and columns of a group that shares a scale */
    int64_t nested;                    /* number of quantized scales that share a scale */
    struct head_tiles tiles;           /* order of the heads in the columns */
    float offset;                      /* number added to each of those scales */
    /* For rows that are not contiguous: place of the first element, and how far the next row and column are */
    int64_t first, row_step, column_step;
};

struct tensors {
    struct tensor *tensor; /* tensors, sorted by name */
    struct packed *packed; /* sources from which some tensors are made */
    size_t count;
    struct tensor_map *map; /* mapped files */
    size_t map_count;
};

struct tensor_map {
    void *base; /* start of the mapping; NULL: not mapped */
    size_t bytes;
};

void tensors_close(struct tensors *w);
const struct tensor *tensors_find(const struct tensors *w, const char *name); /* NULL: absent */
/* Sort tensors by name, as tensors_find() needs them. Return one whose name is there twice, or NULL. */
const struct tensor *tensors_sort(struct tensor *t, size_t count);
/* Return the type in which other formats store the weights: BF16 if they are quantized, else
 * their own. */
enum nj_tensor_type tensor_expanded(const struct tensor *t);
/* Return whether `data` holds the elements in Hugging Face's order and form. */
bool tensor_is_as_stored(const struct tensor *t);
/* Copy `count` rows of whole blocks, as the file has them, from row `first` on. This and the
 * functions below read rows in Hugging Face's order. */
void tensor_rows(const struct tensor *t, int64_t first, int64_t count, void *dst);
/* Convert `count` elements from `first` on into dst (float, or 16-bit patterns), rounded to
 * nearest even once: the values of quantized types are those of ggml in float32. */
void tensor_to_f32(const struct tensor *t, int64_t first, int64_t count, float *dst);
void tensor_to_16(const struct tensor *t, int64_t first, int64_t count, int to_f16, uint16_t *dst);

/* Return the name of a type ("F32", "Q4_K", ...), and the type with a name, or -1. */
const char *tensor_type_name(enum nj_tensor_type type);
int tensor_type_find(const char *name);
/* Return the name that config.json has for F32, BF16 or F16. */
const char *tensor_type_torch(enum nj_tensor_type type);
/* Return the number of elements of a block: 1 for the three unquantized types. */
int tensor_type_block(enum nj_tensor_type type);
/* Return the size of the given number of elements, which are whole blocks. */
size_t tensor_type_bytes(enum nj_tensor_type type, int64_t elements);

#endif
