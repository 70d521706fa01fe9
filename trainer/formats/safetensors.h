/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.h: weights of a Hugging Face folder, in one file or sharded.
 */
#ifndef NOJIT_TRAINER_SAFETENSORS_H
#define NOJIT_TRAINER_SAFETENSORS_H

#include "formats/tensors.h"

#include <stdbool.h>

/* Map DIR/model.safetensors, or the shards that DIR/model.safetensors.index.json names. Check
 * header length, JSON, dtypes, shapes against offsets, overlaps, holes, end of file and
 * duplicate names. Nothing stays open on failure. Return 0, NJ_E_IO, NJ_E_FORMAT,
 * NJ_E_UNSUPPORTED, NJ_E_NOMEM. */
int st_open(const char *dir, struct tensors *out);
/* Types that the parts of a quantized tensor may have, too. st_open_parts() opens a folder as
 * st_open() does and accepts them, for code that assembles tensors from parts. */
enum st_part_type {
    ST_U8 = NJ_TYPES,
    ST_I8,
    ST_F8_E4M3,
    ST_I32,
    ST_I64,
    ST_BOOL,
    ST_F8_E5M2,
    ST_I16,
    ST_U16,
    ST_U32,
    ST_U64,
    ST_F64,
    ST_TYPES
};
/* Return the name of any of these types, and the size of the given number of elements. */
const char *st_type_name(enum nj_tensor_type type);
size_t st_type_bytes(enum nj_tensor_type type, int64_t elements);
int st_open_parts(const char *dir, struct tensors *out);
/* Ask the system to read the mapped files ahead. */
void st_read_ahead(const struct tensors *w);
/* Return whether the folder has a file that st_open() begins with. */
bool st_is_there(const char *dir);
/* Open one file as st_open() and st_open_parts() open a folder. */
int st_open_file(const char *path, struct tensors *out);
int st_open_file_parts(const char *path, struct tensors *out);

/* Write a file: declare every tensor, then stream the data in the same order. The file appears
 * under its name only after st_write_end() has flushed it, read it back and checked its length
 * and hash. */
struct st_writer;
struct st_declared {
    const char *name;
    enum nj_tensor_type dtype;
    int rank;
    int64_t shape[4];
};
int st_write_begin(const char *path, const struct st_declared *tensors, size_t count,
                   struct st_writer **out);
int st_write_data(struct st_writer *w, const void *data, size_t bytes);
int st_write_end(struct st_writer *w);    /* frees w, also on failure (then no file is left) */
void st_write_abort(struct st_writer *w); /* w may be NULL */

/* Write to a folder in the same way: DIR/model.safetensors, or numbered shards of at most
 * shard_bytes of data (at least one tensor each) and their index. `tensors` must stay valid
 * until the end; data may be split anywhere. */
struct st_folder_writer;
int st_folder_begin(const char *dir, const struct st_declared *tensors, size_t count,
                    int64_t shard_bytes, struct st_folder_writer **out);
int st_folder_data(struct st_folder_writer *w, const void *data, size_t bytes);
int st_folder_end(
    struct st_folder_writer *w); /* frees w; on failure the shards of this call are removed */
void st_folder_abort(struct st_folder_writer *w); /* removes the shards, frees w; w may be NULL */

/* Return the size of a declared tensor's data. */
size_t st_declared_bytes(const struct st_declared *t);

#endif
