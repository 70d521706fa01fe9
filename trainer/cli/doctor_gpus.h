/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_gpus.h: `nojit doctor --gpus`: the GPUs of a run, and how fast they exchange what it would.
 */
#ifndef NOJIT_TRAINER_DOCTOR_GPUS_H
#define NOJIT_TRAINER_DOCTOR_GPUS_H

#include "options/settings.h"

/* Fork a process per GPU, or join those that a launcher has started, and run the test. */
int doctor_gpus(const struct settings *s);

#endif
