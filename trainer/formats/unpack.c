/* SPDX-License-Identifier: Apache-2.0
 *
 * unpack.c: see unpack.h. zlib reads gzip and libzstd Zstandard; the blocks of Snappy and LZ4
 * are read here.
 */
#include "formats/unpack.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/checked.h"
#include "io/error.h"

struct unpacker {
    enum packing_of_bytes kind;
    bool whole; /* whether the position is between two streams */
    z_stream gzip;
    ZSTD_DStream *zstd;
};

struct unpacker *unpacker_open(enum packing_of_bytes kind)
{
    struct unpacker *u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    u->kind = kind;
    u->whole = true;
    if (kind == BYTES_GZIP ? inflateInit2(&u->gzip, 16 + MAX_WBITS) == Z_OK
                           : (u->zstd = ZSTD_createDStream()) != NULL)
        return u;
    free(u);
    return NULL;
}

void unpacker_close(struct unpacker *u)
{
    if (u == NULL)
        return;
    if (u->kind == BYTES_GZIP)
        inflateEnd(&u->gzip);
    ZSTD_freeDStream(u->zstd);
    free(u);
}

bool unpacker_whole(const struct unpacker *u)
{
    return u->whole;
}

static uInt at_most(size_t bytes)
{
    return bytes < UINT_MAX ? (uInt)bytes : UINT_MAX;
}

static int unpack_gzip(struct unpacker *u, const void *in, size_t bytes, size_t *used, void *out,
                       size_t room, size_t *made)
{
    z_stream *z = &u->gzip;
    z->next_in = (z_const Bytef *)(uintptr_t)in; /* zlib's type predates const */
    z->avail_in = at_most(bytes);
    z->next_out = out;
    z->avail_out = at_most(room);
    const int rc = inflate(z, Z_NO_FLUSH);
    *used = at_most(bytes) - z->avail_in;
    *made = at_most(room) - z->avail_out;
    u->whole = rc == Z_STREAM_END;
    if (u->whole)
        inflateReset(z);
    if (rc == Z_MEM_ERROR)
        return NJ_E_NOMEM;
    return rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR ? 0 : NJ_E_FORMAT;
}

/* Return the code for an error of Zstandard. */
static int zstd_code(size_t rc)
{
    if (!ZSTD_isError(rc))
        return 0;
    return ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation ? NJ_E_NOMEM : NJ_E_FORMAT;
}

static int unpack_zstd(struct unpacker *u, const void *in, size_t bytes, size_t *used, void *out,
                       size_t room, size_t *made)
{
    ZSTD_inBuffer from = {in, bytes, 0};
    ZSTD_outBuffer to = {out, room, 0};
    const size_t rc = ZSTD_decompressStream(u->zstd, &to, &from);
    *used = from.pos;
    *made = to.pos;
    u->whole = rc == 0;
    return zstd_code(rc);
}

int unpack(struct unpacker *u, const void *in, size_t bytes, size_t *used, void *out, size_t room,
           size_t *made)
{
    *used = *made = 0;
    if (bytes == 0 && u->whole)
        return 0;
    return (u->kind == BYTES_GZIP ? unpack_gzip : unpack_zstd)(u, in, bytes, used, out, room, made);
}

size_t unpack_most(size_t packed_bytes)
{
    const size_t most = size_mul(packed_bytes, 2000), least = (size_t)1 << 28;
    return most > least ? most : least;
}

/* ---- blocks ---- */

/* Block that is being decompressed. */
struct block {
    const unsigned char *in, *end;
    unsigned char *out;
    size_t made, room;
};

static bool copy_literal(struct block *b, size_t bytes)
{
    if (bytes > (size_t)(b->end - b->in) || bytes > b->room - b->made)
        return false;
    memcpy(b->out + b->made, b->in, bytes);
    b->in += bytes;
    b->made += bytes;
    return true;
}

/* Copy from `back` bytes before; the copy may read bytes that it has written. */
static bool copy_back(struct block *b, size_t back, size_t bytes)
{
    if (back == 0 || back > b->made || bytes > b->room - b->made)
        return false;
    unsigned char *to = b->out + b->made;
    const unsigned char *from = to - back;
    b->made += bytes;
    if (back >= bytes) {
        memcpy(to, from, bytes);
        return true;
    }
    while (bytes-- > 0)
        *to++ = *from++;
    return true;
}

/* Read a number of n bytes, the lowest first. */
static bool read_number(struct block *b, size_t n, size_t *out)
{
    *out = 0;
    if (n > (size_t)(b->end - b->in))
        return false;
    for (size_t i = 0; i < n; i++)
        *out |= (size_t)*b->in++ << 8 * i;
    return true;
}

/* Read one element of Snappy: a tag, whose two lowest bits are its kind, and its data. */
static bool snappy_element(struct block *b)
{
    const unsigned tag = *b->in++;
    size_t length = tag >> 2, more;
    if (tag % 4 == 0) {
        if (length >= 60 && !read_number(b, length - 59, &length))
            return false;
        return copy_literal(b, length + 1);
    }
    if (tag % 4 == 1)
        return read_number(b, 1, &more) &&
               copy_back(b, (size_t)(tag >> 5) << 8 | more, (length & 7) + 4);
    return read_number(b, tag % 4 == 2 ? 2 : 4, &more) && copy_back(b, more, length + 1);
}

static bool unpack_snappy(struct block *b)
{
    size_t declared = 0, byte = 0x80;
    for (unsigned shift = 0; byte & 0x80; shift += 7) {
        if (shift > 28 || !read_number(b, 1, &byte))
            return false;
        declared |= (byte & 0x7f) << shift;
    }
    bool good = declared == b->room;
    while (good && b->in < b->end)
        good = snappy_element(b);
    return good;
}

/* Read a length of LZ4: four bits, then, if all are set, bytes up to the first that is not 255. */
static bool lz4_length(struct block *b, size_t bits, size_t *out)
{
    size_t byte = 255;
    *out = bits;
    while (bits == 15 && byte == 255) {
        if (!read_number(b, 1, &byte))
            return false;
        *out += byte;
    }
    return true;
}

static bool unpack_lz4(struct block *b)
{
    while (b->in < b->end) {
        const unsigned token = *b->in++;
        size_t bytes, back;
        if (!lz4_length(b, token >> 4, &bytes) || !copy_literal(b, bytes))
            return false;
        if (b->in == b->end)
            return true;
        if (!read_number(b, 2, &back) || !lz4_length(b, token & 15, &bytes) ||
            !copy_back(b, back, bytes + 4))
            return false;
    }
    return true;
}

/* Decompress a block, which may be several streams of gzip, as some writers leave it. */
static int unpack_streams(const void *in, size_t bytes, void *out, size_t room)
{
    struct unpacker *u = unpacker_open(BYTES_GZIP);
    size_t at = 0, used = 1, made = 1, done = 0;
    int rc = u != NULL ? 0 : NJ_E_NOMEM;
    while (rc == 0 && done < room && used + made > 0) {
        rc = unpack(u, (const char *)in + at, bytes - at, &used, (char *)out + done, room - done,
                    &made);
        at += used;
        done += made;
    }
    unpacker_close(u);
    return rc == 0 && done < room ? NJ_E_FORMAT : rc;
}

static int unpack_whole_zstd(const void *in, size_t bytes, void *out, size_t room)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context == NULL)
        return NJ_E_NOMEM;
    const size_t made = ZSTD_decompressDCtx(context, out, room, in, bytes);
    ZSTD_freeDCtx(context);
    return ZSTD_isError(made) || made == room ? zstd_code(made) : NJ_E_FORMAT;
}

int unpack_block(enum packing_of_bytes kind, const void *in, size_t bytes, void *out, size_t room)
{
    struct block b = {in, (const unsigned char *)in + bytes, out, 0, room};
    if (kind == BYTES_GZIP)
        return unpack_streams(in, bytes, out, room);
    if (kind == BYTES_ZSTD)
        return unpack_whole_zstd(in, bytes, out, room);
    const bool plain = kind == BYTES_PLAIN;
    const bool good = plain                  ? copy_literal(&b, bytes)
                      : kind == BYTES_SNAPPY ? unpack_snappy(&b)
                                             : unpack_lz4(&b);
    return good && b.made == room ? 0 : NJ_E_FORMAT;
}
