/* SPDX-License-Identifier: Apache-2.0
 *
 * train.h: a training run from its inputs to its model: the loop around engine_step().
 */
#ifndef NOJIT_TRAINER_TRAIN_H
#define NOJIT_TRAINER_TRAIN_H

#include "options/settings.h"

/* Run `nojit distill` or `nojit train`, which c names, with settings that are complete. With --gpus it forks the
 * processes of the run, and returns in each of them. */
int train_run(const struct settings *s, const struct command_info *c);

#endif
