/* SPDX-License-Identifier: Apache-2.0
 *
 * cached.h: a teacher whose hidden states are in a cache. Its LM head alone is a model of this process.
 */
#ifndef NOJIT_TRAINER_TEACHER_CACHED_H
#define NOJIT_TRAINER_TEACHER_CACHED_H

#include "teacher/teacher.h"
#include "teacher/teacher_cache.h"

/* Place the LM head of the teacher of this configuration. teacher_close() comes in any case, before cache_close(). */
int cached_open(struct teacher *t, const struct model_config *config, enum nj_dtype T,
                const struct teacher_cache *cache);

#endif
