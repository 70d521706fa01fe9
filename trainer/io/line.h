/* SPDX-License-Identifier: Apache-2.0
 *
 * line.h: the lines of a file that a run wrote, one at a time. /
 */
#ifndef NOJIT_TRAINER_LINE_H
#define NOJIT_TRAINER_LINE_H

#include <stddef.h>
#include <stdio.h>

struct line {
    char *text; /* text with its line ending, if it has one, and a NUL; the caller frees it */
    size_t bytes, capacity;
    size_t number; /* number of the line, counted from 1 */
};

/* Read the next line; bytes is 0 at the end of the file. A line of 16 MiB or more is
 * NJ_E_FORMAT. */
int line_read(FILE *f, const char *path, struct line *l);

#endif
