/* SPDX-License-Identifier: Apache-2.0
 *
 * screen.h: text of a model on a terminal.
 */
#ifndef NOJIT_TRAINER_SCREEN_H
#define NOJIT_TRAINER_SCREEN_H

#include <stdio.h>

/* Open a stream that passes text on to `to`, replacing characters that would control a terminal by question marks;
 * newlines and tabs stay. A character may come in several writes. Closing it leaves `to` open. NULL: no memory. */
FILE *screen_open(FILE *to);

#endif
