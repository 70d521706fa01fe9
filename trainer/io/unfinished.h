/* SPDX-License-Identifier: Apache-2.0
 *
 * unfinished.h: files and folders that are being written. A signal that ends the process removes
 * them first.
 */
#ifndef NOJIT_TRAINER_UNFINISHED_H
#define NOJIT_TRAINER_UNFINISHED_H

/* Install signal handlers: from here on SIGINT, SIGTERM, SIGHUP, SIGPIPE and SIGXCPU remove
 * unfinished files and then end the process as usual; a file that would exceed the file size
 * limit (SIGXFSZ) makes the write fail. */
void unfinished_catch(void);
/* Create a file or folder with make_one(), which returns -1 with errno on failure, and have
 * signals remove it until unfinished_done() reports that it is complete, renamed or removed.
 * Return the result of make_one(). */
int unfinished_make(const char *path, int (*make_one)(const char *path));
void unfinished_done(const char *path);
/* Remove all unfinished files and folders. May be called by a signal handler. */
void unfinished_remove(void);

#endif
