/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.h: the lock that lets one run at a time write into a folder: OUT/lock, locked by the kernel for as long as the
 * process lives. Its content tells people which run holds it.
 */
#ifndef NOJIT_TRAINER_LOCK_H
#define NOJIT_TRAINER_LOCK_H

#include <stdbool.h>

struct lock {
    char path[4200]; /* path of the lock; "": none was taken */
    int fd;
    /* whether the lock is held; false: this file system has no locks, and `why` says so */
    bool held;
    char why[128]; /* answer of the file system, or "" */
};

/* Refuse a folder in which a run is under way. */
int lock_check(const char *dir);
/* Take the lock, or refuse with host and process of the run that has it. */
int lock_take(struct lock *l, const char *dir);
/* Release the lock and remove the file. */
void lock_release(struct lock *l);

#endif
