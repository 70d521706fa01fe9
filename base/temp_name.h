/* SPDX-License-Identifier: Apache-2.0
 *
 * temp_name.h: names of files and folders that are being written: PATH.tmp-N, where N stands for this process. A
 * process that was killed leaves them behind, and in a container the next process may have its number: then another N
 * is used.
 */
#ifndef NOJIT_TEMP_NAME_H
#define NOJIT_TEMP_NAME_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

enum { TEMP_PROCESSES = 1 << 22, TEMP_TRIES = 100 }; /* maximum process number of Linux */

/* Write the name of the turn-th try, and return whether it fits. */
static inline bool temp_name(const char *path, int turn, char *temp, size_t bytes)
{
    const long n = getpid() + (long)turn * TEMP_PROCESSES;
    const int length = snprintf(temp, bytes, "%s.tmp-%ld", path, n);
    return length > 0 && (size_t)length < bytes;
}

/* Return the process that N stands for. */
static inline long temp_process(long n)
{
    return n % TEMP_PROCESSES;
}

/* Make a file or folder under the first free name, which is written to temp. make_one() returns -1 with errno where it
 * makes none. Return what it returned last, with an empty name if that is -1. */
static inline int temp_make(const char *path, char *temp, size_t bytes,
                            int (*make_one)(const char *temp))
{
    int made = -1;
    errno = EEXIST;
    for (int turn = 0; made < 0 && turn < TEMP_TRIES && errno == EEXIST; turn++) {
        if (temp_name(path, turn, temp, bytes))
            made = make_one(temp);
        else
            errno = ENAMETOOLONG;
    }
    if (made < 0)
        temp[0] = '\0';
    return made;
}

/* Create a new file, open for writing; O_EXCL follows no link. */
static inline int temp_new_file(const char *temp)
{
    return open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* Create a new file that this user alone may read. */
static inline int temp_new_private_file(const char *temp)
{
    return open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

#endif
