/* SPDX-License-Identifier: Apache-2.0
 *
 * notes.h: notes to the user about input that was read differently from what a file says.
 * Readers add notes; the code that runs a command decides where they go. Each note is given
 * once.
 */
#ifndef NOJIT_TRAINER_NOTES_H
#define NOJIT_TRAINER_NOTES_H

/* Give a note unless it was given before. Like the sentence of fail(), it has at most 1,023
 * bytes. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Set the callback that receives notes; without one, notes are dropped. Forgets which notes were
 * given. */
void notes_to(void (*say)(const char *sentence));

#endif
