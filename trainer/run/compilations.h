/* SPDX-License-Identifier: Apache-2.0
 *
 * compilations.h: how much was compiled for the GPU during a run.
 */
#ifndef NOJIT_TRAINER_COMPILATIONS_H
#define NOJIT_TRAINER_COMPILATIONS_H

#include <jansson.h>

#include "run/run.h"

/* Return, for the receipt at the end of a run, the numbers of compilations at_start and in_steps, null where they
 * are not known, and in `observed` how they were counted. */
json_t *compilations_json(const struct run *r);

#endif
