/* SPDX-License-Identifier: Apache-2.0
 *
 * random.h: counter-based random bits: a number is a function of its position, so order and
 * threads do not matter.
 */
#ifndef NOJIT_TRAINER_RANDOM_H
#define NOJIT_TRAINER_RANDOM_H

#include <stdint.h>

/* Apply the finalizer of SplitMix64 (Steele, Lea and Flood 2014): a bijection that spreads every
 * bit of x over the result. */
static inline uint64_t random_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

#endif
