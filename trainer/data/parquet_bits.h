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
    unsigned width; /* bits of a value, up to 32 */
    uint32_t left;  /* number of values left in the run */
    bool packed;
    uint32_t value; /* value of a run of one value */
    uint64_t bit;   /* bit offset of the next value of a packed run, from `packed_at` on */
    const unsigned char *packed_at;
};
/* Read the next value; false where the bytes end. */
bool hybrid_next(struct hybrid *h, uint32_t *out);

/* State of the DELTA_BINARY_PACKED encoding. */
struct delta {
    const unsigned char *at, *end;
    uint64_t per_mini, minis; /* values of a miniblock; miniblocks of a block */
    uint64_t left;            /* number of values that are still to come */
    uint64_t value;           /* next value, where `known` */
    bool known;
    uint64_t least; /* number that is added to each difference of the block */
    const unsigned char *widths;
    /* position in the block, in miniblocks; position in the miniblock, in values */
    uint64_t mini, used;
};
bool delta_begin(struct delta *d, const unsigned char *at, const unsigned char *end);
bool delta_next(struct delta *d, int64_t *out);
/* Find where the encoding of the values that are left ends; NULL where the bytes end first. */
const unsigned char *delta_end(const struct delta *d);

#endif
