/* SPDX-License-Identifier: Apache-2.0
 *
 * unpack.h: decompression: files of gzip and Zstandard as they are read, and blocks of a known
 * size, as in Parquet.
 */
#ifndef NOJIT_TRAINER_UNPACK_H
#define NOJIT_TRAINER_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

enum packing_of_bytes { BYTES_PLAIN, BYTES_GZIP, BYTES_ZSTD, BYTES_SNAPPY, BYTES_LZ4 };

/* Stream of BYTES_GZIP or BYTES_ZSTD, which may be several streams in sequence. */
struct unpacker;
/* Return NULL if memory runs out. */
struct unpacker *unpacker_open(enum packing_of_bytes kind);
void unpacker_close(struct unpacker *u); /* u may be NULL */
/* Decompress in[0 .. bytes), of which *used are consumed, to at most `room` bytes, of which
 * *made are written. Return 0, NJ_E_NOMEM or NJ_E_FORMAT, without an error sentence. */
int unpack(struct unpacker *u, const void *in, size_t bytes, size_t *used, void *out, size_t room,
           size_t *made);
/* Return whether the compressed bytes may end here. */
bool unpacker_whole(const struct unpacker *u);

/* Decompress a block to exactly `room` bytes. Return 0, NJ_E_NOMEM, or NJ_E_FORMAT if that
 * fails, without an error sentence. */
int unpack_block(enum packing_of_bytes kind, const void *in, size_t bytes, void *out, size_t room);

/* Return the maximum size of a decompressed file: a larger one would be a decompression bomb,
 * not text. */
size_t unpack_most(size_t packed_bytes);

#endif
