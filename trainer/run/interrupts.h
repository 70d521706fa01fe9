/* SPDX-License-Identifier: Apache-2.0
 *
 * interrupts.h: signals that end a run after its step.
 */
#ifndef NOJIT_TRAINER_INTERRUPTS_H
#define NOJIT_TRAINER_INTERRUPTS_H

#include <stdbool.h>

/* The first SIGINT, SIGTERM, SIGHUP or SIGXCPU asks the loop to stop after the step, a further SIGINT
 * or SIGTERM ends the process; not one that a supervisor ends: what is sent to all processes, as scancel does, comes
 * again from there. */
void interrupts_catch(bool supervised);
bool interrupted(void);
/* From here on a reader of the output who goes away does not end the process: writing fails. */
void pipes_may_close(void);

#endif
