/* SPDX-License-Identifier: Apache-2.0
 *
 * temp.c: see temp.h.
 */
#include "io/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/unfinished.h"

enum { PROCESSES = 1 << 22, TRIES = 100 }; /* maximum process number of Linux */

static int make_file(const char *temp)
{
    return open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); /* O_EXCL follows no link */
}

static int make_folder(const char *temp)
{
    return mkdir(temp, 0777);
}

static int make(const char *path, char *temp, size_t bytes, int (*make_one)(const char *temp))
{
    int made = -1;
    errno = EEXIST;
    for (long n = 0; made < 0 && n < TRIES && errno == EEXIST; n++) {
        if (snprintf(temp, bytes, "%s.tmp-%ld", path, getpid() + n * PROCESSES) < (int)bytes)
            made = unfinished_make(temp, make_one);
        else
            errno = ENAMETOOLONG;
    }
    if (made < 0)
        temp[0] = '\0';
    return made;
}

int temp_file(const char *path, char *temp, size_t bytes)
{
    return make(path, temp, bytes, make_file);
}

int temp_folder(const char *path, char *temp, size_t bytes)
{
    return make(path, temp, bytes, make_folder);
}

long temp_process(long n)
{
    return n % PROCESSES;
}
