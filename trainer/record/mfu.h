/* SPDX-License-Identifier: Apache-2.0
 *
 * mfu.h: model FLOP utilization: the time that a step's operations take at the device's peak, divided by the time that
 * the step took.
 */
#ifndef NOJIT_TRAINER_MFU_H
#define NOJIT_TRAINER_MFU_H

#include "engine/engine.h"

/* Seconds of one step at the peak; NaN: the peak is unknown. */
struct ideal_seconds {
    double student, teacher;
};
/* Return the seconds of a step at the peaks of the vendors' data sheets, dense; e4m3 products have their own. */
struct ideal_seconds mfu_ideal(const struct nj_device_info *d, enum nj_dtype dtype,
                               const struct step_flops *f);

#endif
