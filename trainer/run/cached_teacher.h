/* SPDX-License-Identifier: Apache-2.0
 *
 * cached_teacher.h: the cache of a run: as its teacher, or as what it makes.
 */
#ifndef NOJIT_TRAINER_CACHED_TEACHER_H
#define NOJIT_TRAINER_CACHED_TEACHER_H

#include "run/run.h"
#include "teacher/teacher_cache.h"

/* Open the cache that --teacher names, on every rank; do nothing if that is a model. Refuse one that does not fit the
 * options of the run, which run_engine_options() has set. */
int run_open_cache(struct run *r);
/* Open the cache that --teacher names for a plan, which has no device; do nothing if that is a model. */
int run_plan_cache(struct run *r);
/* Refuse a cache that lacks passages of the data, which is open, and say how many and how to add them. held_out: --data
 * is read as text to evaluate. */
int run_check_cache(struct run *r, bool held_out);

/* The functions below are for a run that makes a cache: its student is the teacher. */

/* Set the facts that are known before the model is read. */
int cache_facts_plan(const struct run *r, struct cache_facts *out);
/* Create the cache in --out, or open the one that is there, unless it is another teacher's. The engine is open. */
int cache_folder_take(struct run *r, struct cache_facts *facts, struct teacher_cache **out);

#endif
