/* SPDX-License-Identifier: Apache-2.0
 *
 * watchdog.h: ends the process when a step does not: a GPU that hangs keeps whoever waits for it
 * from doing anything at all.
 */
#ifndef NOJIT_TRAINER_WATCHDOG_H
#define NOJIT_TRAINER_WATCHDOG_H

#include <stdint.h>

/* From now on `step` has this many seconds; 0: as many as it wants. */
void deadline_begin(int64_t step, int64_t seconds);
/* It has ended. */
void deadline_end(void);

#endif
