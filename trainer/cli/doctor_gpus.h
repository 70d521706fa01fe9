/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_gpus.h: `nojit doctor --gpus`: the GPUs of a run, and how fast they exchange what it would.
 */
#ifndef NOJIT_TRAINER_DOCTOR_GPUS_H
#define NOJIT_TRAINER_DOCTOR_GPUS_H

#include "options/settings.h"

/* Forks a process per GPU, or is one of those that a launcher has made. */
int doctor_gpus(const struct settings *s);

#endif
