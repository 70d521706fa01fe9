/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_loop.h: a conversation with a model, by lines.
 */
#ifndef NOJIT_TRAINER_CHAT_LOOP_H
#define NOJIT_TRAINER_CHAT_LOOP_H

#include "run/run.h"

/* Answer each line of standard input, a user's message, on standard output, until the input ends. A line `/new`
 * begins a new conversation. Opens the engine. */
int chat_loop(struct run *r);

#endif
