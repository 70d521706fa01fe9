/* SPDX-License-Identifier: Apache-2.0
 *
 * waits.h: messages about long waits. Code that begins something that may take longer than a few seconds names it; if
 * nothing is said for that long, a thread says what is being done, and then again every minute. What is done sooner
 * leaves no trace. NOJIT_WAIT_SECONDS is how long (4); 0: never.
 */
#ifndef NOJIT_TRAINER_WAITS_H
#define NOJIT_TRAINER_WAITS_H

/* Names what is being done from here on, within what was named before and has not ended. */
void wait_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends what began last. */
void wait_end(void);
/* Names it otherwise, or adds how far it is; nothing where nothing has begun. */
void wait_now(const char *format, ...) __attribute__((format(printf, 1, 2)));
void wait_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Adds the rank that it is held up by, beside the detail; -1: none. */
void wait_behind(int rank);
/* Gives it so many more seconds before a word is due, as where it has always taken as long. */
void wait_usual(double seconds);
/* Notes that something else has been said just now. */
void waits_spoke(void);
/* Sets a function that the thread calls several times a second: what it returns is said at once; NULL: nothing is. */
void waits_watch(const char *(*news)(void));
/* Sets the callback for messages; NULL: none. On return the previous callback is no longer running. */
void waits_to(void (*say)(void *user, const char *line), void *user);

#endif
