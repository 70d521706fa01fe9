/* SPDX-License-Identifier: Apache-2.0
 *
 * row_logits.h: logits on their way to the host.
 */
#ifndef NOJIT_TRAINER_ROW_LOGITS_H
#define NOJIT_TRAINER_ROW_LOGITS_H

#include "state/engine_struct.h"

/* The first `count` rows of [rows, ld] on the device, of which the common tokens go to `to`. */
void logits_to_host(struct work *r, const struct engine *e, const char *logits, int count,
                    float *const *to);

#endif
