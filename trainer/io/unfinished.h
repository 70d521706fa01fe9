/* SPDX-License-Identifier: Apache-2.0
 *
 * unfinished.h: files and folders that are being written. A signal that ends the process removes them first.
 */
#ifndef NOJIT_TRAINER_UNFINISHED_H
#define NOJIT_TRAINER_UNFINISHED_H

/* From here on SIGINT, SIGTERM, SIGHUP, SIGPIPE and SIGXCPU remove what is unfinished and then end the process as they
 * always do; a file that would grow beyond the limit of file size (SIGXFSZ) is an error of the write. */
void unfinished_catch(void);
/* Makes a file or folder by make_one(), which returns -1 with errno where it cannot, and has signals remove it until
 * unfinished_done(): it is whole, has another name, or is gone. Returns what make_one() returns. */
int unfinished_make(const char *path, int (*make_one)(const char *path));
void unfinished_done(const char *path);
/* Removes all of them. It may be called by a signal handler. */
void unfinished_remove(void);

#endif
