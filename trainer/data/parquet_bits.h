/* SPDX-License-Identifier: Apache-2.0
 *
 * parquet_bits.h: inside of the Parquet reader: integers in runs of bits, one at a time, so that a run of any length
 * takes no memory.
 */
#ifndef NOJIT_TRAINER_PARQUET_BITS_H
#define NOJIT_TRAINER_PARQUET_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Levels, indices and booleans: runs of one value, or of values of `width` bits. */
struct hybrid {
    const unsigned char *at, *end;
    unsigned width; /* up to 32 */
    uint32_t left;  /* values of the run */
    bool packed;
    uint32_t value; /* of a run of one */
    uint64_t bit;   /* of a packed run: the place of the next value, from `packed_at` on */
    const unsigned char *packed_at;
};
/* false where the bytes end. */
bool hybrid_next(struct hybrid *h, uint32_t *out);

/* DELTA_BINARY_PACKED. */
struct delta {
    const unsigned char *at, *end;
    uint64_t per_mini, minis; /* values of a miniblock; miniblocks of a block */
    uint64_t left;            /* values that are still to come */
    uint64_t value;           /* the next one, where `known` */
    bool known;
    uint64_t least; /* added to each difference of the block */
    const unsigned char *widths;
    uint64_t mini, used; /* of the block; of the miniblock */
};
bool delta_begin(struct delta *d, const unsigned char *at, const unsigned char *end);
bool delta_next(struct delta *d, int64_t *out);
/* Finds where the encoding of those that are left ends; NULL where the bytes do first. */
const unsigned char *delta_end(const struct delta *d);

#endif
