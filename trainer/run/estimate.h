/* SPDX-License-Identifier: Apache-2.0
 *
 * estimate.h: the time of a step on a GPU that is not here. docs/planning.md has the model, and its error beside
 * what was measured.
 */
#ifndef NOJIT_TRAINER_ESTIMATE_H
#define NOJIT_TRAINER_ESTIMATE_H

#include "engine/engine.h"
#include "record/gpus.h"

struct estimate {
    double seconds;   /* time of a step */
    double low, high; /* range in which the time is expected */
};

/* Estimate a step of training on each of the GPUs that share it, without what they exchange. */
struct estimate estimate_step(const struct gpu *g, enum nj_dtype dtype, const struct step_work *w);

#endif
