/* SPDX-License-Identifier: Apache-2.0
 *
 * line.h: the lines of a file that a run wrote, one at a time.
 */
#ifndef NOJIT_TRAINER_LINE_H
#define NOJIT_TRAINER_LINE_H

#include <stddef.h>
#include <stdio.h>

struct line {
    char *text; /* with its end, if it has one, and a NUL; whoever reads frees it */
    size_t bytes, capacity;
    size_t number; /* from 1 on */
};

/* Reads the next line; bytes is 0 where there is none. One of 16 MiB or more is NJ_E_FORMAT. */
int line_read(FILE *f, const char *path, struct line *l);

#endif
