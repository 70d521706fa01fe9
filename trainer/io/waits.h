/* SPDX-License-Identifier: Apache-2.0
 *
 * waits.h: messages about long waits. Code that begins an operation that may take longer than a
 * few seconds names it; if nothing is printed for that long, a thread prints the name, and again
 * every minute. Shorter operations leave no trace. NOJIT_WAIT_SECONDS sets the delay (default
 * 4); 0 disables the messages.
 */
#ifndef NOJIT_TRAINER_WAITS_H
#define NOJIT_TRAINER_WAITS_H

/* Name the operation that begins here, nested in those that have begun and not ended. */
void wait_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* End the operation that began last. */
void wait_end(void);
/* Rename the current operation, or add its progress; without an operation both do nothing. */
void wait_now(const char *format, ...) __attribute__((format(printf, 1, 2)));
void wait_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Add the rank that holds up the operation, beside the detail; -1: none. */
void wait_behind(int rank);
/* Allow the operation this many more seconds before a message is due, for one that usually takes
 * that long. */
void wait_usual(double seconds);
/* Record that another message has just been printed. */
void waits_spoke(void);
/* Set a function that the thread calls several times a second and whose text is printed at once;
 * it returns NULL if there is none. */
void waits_watch(const char *(*news)(void));
/* Set the callback for messages; NULL: none. On return the previous callback is no longer
 * running. */
void waits_to(void (*say)(void *user, const char *line), void *user);

#endif
