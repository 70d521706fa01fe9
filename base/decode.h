/* SPDX-License-Identifier: Apache-2.0
 *
 * decode.h: layout that the kernels of the KV cache share with their callers. The keys of a row are cut into chunks of
 * DECODE_CHUNK positions of its slot. A partial result holds head_dim floats, the weighted sum of the values before
 * division, followed by DECODE_TOP and DECODE_SUM.
 */
#ifndef NOJIT_DECODE_H
#define NOJIT_DECODE_H

enum {
    DECODE_CHUNK = 256,
    DECODE_TOP = 0,  /* largest scaled score, times log2(e) */
    DECODE_SUM = 1,  /* sum of exp(score - largest) */
    DECODE_STATS = 2 /* floats that follow the values */
};

/* Largest level in an 8-bit cache: an element is a level from -127 to 127 times the scale of its position. */
enum { KV_LEVELS = 127 };

/* Positions per block of values. The values of a slot's key head lie as [P / CACHE_BLOCK][D][CACHE_BLOCK], position
 * fastest, so that attention reads a whole block from consecutive addresses. Keys lie as [P][D]. Position j has the
 * place j % P. With a window, positions may exceed P if P >= window + CACHE_BLOCK - 1: then the block with the oldest
 * key that a row sees is never the one in which its own key is stored, and blocks of threads may do both at once. */
enum { CACHE_BLOCK = 32 };

#endif
