/* SPDX-License-Identifier: Apache-2.0
 *
 * unpack.h: packed bytes: files of gzip and Zstandard as they are read, and blocks of a known size, as Parquet has
 * them.
 */
#ifndef NOJIT_TRAINER_UNPACK_H
#define NOJIT_TRAINER_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

enum packing_of_bytes { BYTES_PLAIN, BYTES_GZIP, BYTES_ZSTD, BYTES_SNAPPY, BYTES_LZ4 };

/* A stream of BYTES_GZIP or BYTES_ZSTD, which may be several, one after the other. */
struct unpacker;
/* Returns NULL without memory. */
struct unpacker *unpacker_open(enum packing_of_bytes kind);
void unpacker_close(struct unpacker *u); /* NULL is fine */
/* Unpacks from in[0 .. bytes), of which *used are past then, to at most `room` bytes, of which *made are written.
 * Returns 0, NJ_E_NOMEM, or NJ_E_FORMAT; says nothing. */
int unpack(struct unpacker *u, const void *in, size_t bytes, size_t *used, void *out, size_t room,
           size_t *made);
/* Whether the packed bytes may end here. */
bool unpacker_whole(const struct unpacker *u);

/* Unpacks a block that makes exactly `room` bytes. Returns 0, NJ_E_NOMEM, or NJ_E_FORMAT if it does not; says
 * nothing. */
int unpack_block(enum packing_of_bytes kind, const void *in, size_t bytes, void *out, size_t room);

/* Bytes that a packed file may make: more of them would be a trap, not text. */
size_t unpack_most(size_t packed_bytes);

#endif
