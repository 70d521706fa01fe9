/* SPDX-License-Identifier: Apache-2.0
 *
 * day.h: the day that chat templates write: today, unless --template-date says another; of a resumed run, the one on
 * which it began.
 */
#ifndef NOJIT_TRAINER_DAY_H
#define NOJIT_TRAINER_DAY_H

#include "run/run.h"

/* Have templates write a day given as YYYY-MM-DD, or today (NULL). */
int day_use(const char *given, char day[DAY_BYTES]);
/* Choose the day of a run, r->day, which is the same on all ranks. */
int run_take_day(struct run *r);
/* Print the run's date if the chat template writes it. */
int run_say_day(struct run *r);

#endif
