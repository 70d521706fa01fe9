/* SPDX-License-Identifier: Apache-2.0
 *
 * notes.h: sentences on what was read otherwise than a file says, for the user. Readers add them, whoever runs
 * a command
 * decides where they go. Each is said once.
 */
#ifndef NOJIT_TRAINER_NOTES_H
#define NOJIT_TRAINER_NOTES_H

/* Says a sentence unless it was said before; like fail(), of at most 1,023 bytes. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Sets who hears of notes; without, nobody does. Forgets what was said. */
void notes_to(void (*say)(const char *sentence));

#endif
