/* SPDX-License-Identifier: Apache-2.0
 *
 * interrupts.h: signals that end a run after its step.
 */
#ifndef NOJIT_TRAINER_INTERRUPTS_H
#define NOJIT_TRAINER_INTERRUPTS_H

#include <stdbool.h>

/* Catch signals: the first SIGINT, SIGTERM, SIGHUP or SIGXCPU asks the loop to stop after the step; a further SIGINT
 * or SIGTERM ends the process. A supervised process is not ended by it: a signal sent to all processes, as scancel
 * does, reaches it again from the supervisor. */
void interrupts_catch(bool supervised);
bool interrupted(void);
/* Make writes fail from here on when the reader of the output has gone, instead of ending the process. */
void pipes_may_close(void);

#endif
