/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.h: one run at a time writes into a folder: OUT/lock, locked by the kernel for as long as the process
 * lives. What it holds is for people: who the run is.
 */
#ifndef NOJIT_TRAINER_LOCK_H
#define NOJIT_TRAINER_LOCK_H

#include <stdbool.h>

struct lock {
    char path[4200]; /* "": none was taken */
    int fd;
    bool held;     /* false: this file system has no locks; why says so */
    char why[128]; /* "" or what the file system answered */
};

/* Refuses a folder in which a run is under way. */
int lock_check(const char *dir);
/* Takes the lock, or refuses with host and process of the run that has it. */
int lock_take(struct lock *l, const char *dir);
/* Gives it back and removes the file. */
void lock_release(struct lock *l);

#endif
