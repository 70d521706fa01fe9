/* SPDX-License-Identifier: Apache-2.0
 *
 * problems.h: what a check found wrong, each with the key and arch it concerns.
 */
#ifndef NOJIT_TOOLS_REPORT_H
#define NOJIT_TOOLS_REPORT_H

#include <stdint.h>
#include <stdio.h>

enum { WHY_BYTES = 256 }; /* room for one sentence */

/* Writes the sentence and returns -1, for `return fail(why, ...)`. */
int fail(char why[WHY_BYTES], const char *format, ...) __attribute__((format(printf, 2, 3)));

struct problem {
    char key[64], arch[16]; /* "": not about one key or arch */
    char text[WHY_BYTES];
};

struct report {
    struct problem *problems;
    uint32_t count;
    size_t capacity;
    uint32_t lost; /* problems there was no memory to keep: count as well */
};

void report_add(struct report *r, const char *key, const char *arch, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
uint32_t report_count(const struct report *r);
/* A line a problem: "PROGRAM: KEY ARCH: TEXT". */
void report_print(const struct report *r, FILE *to, const char *program);
void report_free(struct report *r);

#endif
