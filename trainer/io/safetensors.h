/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.h: weights of a Hugging Face folder, one file or sharded.
 */
#ifndef NOJIT_TRAINER_SAFETENSORS_H
#define NOJIT_TRAINER_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

enum st_dtype { ST_F32, ST_BF16, ST_F16 };

struct st_tensor {
    char name[128];
    enum st_dtype dtype;
    int rank;
    int64_t shape[4];
    const void *data; /* in the mapped file; little-endian, row-major; may be unaligned */
    size_t bytes;
};

struct st_weights {
    struct st_tensor *tensor; /* sorted by name */
    size_t count;
    uint64_t hash;      /* 0 until st_hash() */
    struct st_map *map; /* mapped files */
    size_t map_count;
};

/* Maps DIR/model.safetensors, or the shards that DIR/model.safetensors.index.json names. Checks
 * header length, JSON, dtypes, shapes against offsets, overlaps, holes, end of file, duplicate
 * names. Nothing stays open on failure. Returns 0, NJ_E_IO, NJ_E_FORMAT, NJ_E_UNSUPPORTED,
 * NJ_E_NOMEM. */
int st_open(const char *dir, struct st_weights *out);
/* The same of one file. */
int st_open_file(const char *path, struct st_weights *out);
void st_close(struct st_weights *w);
const struct st_tensor *st_find(const struct st_weights *w, const char *name); /* NULL: absent */
/* XXH3-64 over names, dtypes, shapes and the hashes of 4 MiB chunks of the data, in name order: the
 * same weights give the same value however they are sharded and however many cores work on it. */
uint64_t st_hash(struct st_weights *w);
/* Converts `count` elements from `first` on into dst (float, or 16-bit patterns). Rounds to nearest
 * even. */
void st_to_f32(const struct st_tensor *t, int64_t first, int64_t count, float *dst);
void st_to_16(const struct st_tensor *t, int64_t first, int64_t count, int to_f16, uint16_t *dst);

/* Writing: declare every tensor, then stream the data in the same order. The file appears under its
 * name only after st_write_end() has flushed it, read it back and checked its length and hash. */
struct st_writer;
struct st_declared {
    const char *name;
    enum st_dtype dtype;
    int rank;
    int64_t shape[4];
};
int st_write_begin(const char *path, const struct st_declared *tensors, size_t count,
                   struct st_writer **out);
int st_write_data(struct st_writer *w, const void *data, size_t bytes);
int st_write_end(struct st_writer *w);    /* frees w, also on failure (then no file is left) */
void st_write_abort(struct st_writer *w); /* NULL is fine */

/* The same into a folder: DIR/model.safetensors, or numbered shards of at most shard_bytes of data
 * (one tensor at least) and their index. `tensors` must stay valid until the end; data may be cut
 * anywhere. */
struct st_folder_writer;
int st_folder_begin(const char *dir, const struct st_declared *tensors, size_t count,
                    int64_t shard_bytes, struct st_folder_writer **out);
int st_folder_data(struct st_folder_writer *w, const void *data, size_t bytes);
int st_folder_end(
    struct st_folder_writer *w); /* frees w; on failure the shards of this call are removed */
void st_folder_abort(struct st_folder_writer *w); /* the same, without an error; NULL is fine */

/* Bytes of a declared tensor's data. */
size_t st_declared_bytes(const struct st_declared *t);
/* "F32", "BF16", "F16" in files; "float32", "bfloat16", "float16" in config.json. */
const char *st_dtype_name(enum st_dtype dtype);
const char *st_dtype_torch(enum st_dtype dtype);
size_t st_dtype_bytes(enum st_dtype dtype);

/* 16-bit conversions, to nearest even; shared by everything that converts on the host. */
uint16_t bf16_from_f32(float x);
float f32_from_bf16(uint16_t x);
uint16_t f16_from_f32(float x);
float f32_from_f16(uint16_t x);

#endif
