/* SPDX-License-Identifier: Apache-2.0
 *
 * make_cache.h: `nojit cache`: the hidden states of a teacher at all targets of some data, stored.
 */
#ifndef NOJIT_TRAINER_MAKE_CACHE_H
#define NOJIT_TRAINER_MAKE_CACHE_H

#include "run/run.h"

/* Part of the sequences that one of several processes takes: the number-th of `of`. */
struct cache_part {
    int number, of;
};
/* Read --part; NULL: all. */
int cache_part_read(const char *text, struct cache_part *out);
/* Compute what the cache in --out lacks, and add it. The run's student is the teacher. */
int make_cache(struct run *r, const struct cache_part *part);

#endif
