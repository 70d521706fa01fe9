/* SPDX-License-Identifier: Apache-2.0
 *
 * micro_batch.h: the host's part of a micro-batch.
 */
#ifndef NOJIT_TRAINER_MICRO_BATCH_H
#define NOJIT_TRAINER_MICRO_BATCH_H

#include "engine/engine_struct.h"

/* Pulls a batch into slot `micro` of the pinned batches. 1: the data is over. */
int stage_next(struct engine *e, struct data *d, int micro);
int send_batch(struct engine *e, int micro);
/* What the teacher reads of the micro-batches of a pass, from `micro` on. */
int send_pass(struct engine *e, int micro);

#endif
