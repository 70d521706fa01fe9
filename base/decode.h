/* SPDX-License-Identifier: Apache-2.0
 *
 * decode.h: what the kernels of the cache and who calls them agree on. The keys of a row are cut
 * into chunks of DECODE_CHUNK positions of its slot; a partial result is head_dim floats of values,
 * weighted but not divided, then DECODE_TOP and DECODE_SUM behind them.
 */
#ifndef NOJIT_DECODE_H
#define NOJIT_DECODE_H

enum {
    DECODE_CHUNK = 256,
    DECODE_TOP = 0,  /* largest scaled score, times log2(e) */
    DECODE_SUM = 1,  /* sum of exp(score - largest) */
    DECODE_STATS = 2 /* floats behind the values */
};

/* Of a cache of bytes: an element is a level of -127 to 127 times the scale of its position. */
enum { KV_LEVELS = 127 };

/* Values of a slot's key head lie as [P / CACHE_BLOCK][D][CACHE_BLOCK], position fastest: attention reads a whole
 * block at once, from addresses that follow each other. Keys lie as [P][D]. */
enum { CACHE_BLOCK = 32 };

#endif
