/* SPDX-License-Identifier: Apache-2.0
 *
 * problems.h: the problems that a check found, each with its key and arch.
 */
#ifndef NOJIT_TOOLS_REPORT_H
#define NOJIT_TOOLS_REPORT_H

#include <stdint.h>
#include <stdio.h>

enum { WHY_BYTES = 256 }; /* room for one sentence */

/* Write the sentence and return -1, for `return fail(why, ...)`. */
int fail(char why[WHY_BYTES], const char *format, ...) __attribute__((format(printf, 2, 3)));

struct problem {
    char key[64], arch[16]; /* "": it concerns no single key or arch */
    char text[WHY_BYTES];
};

struct report {
    struct problem *problems;
    uint32_t count;
    size_t capacity;
    uint32_t lost; /* number of problems that memory ran out for; they count as well */
};

void report_add(struct report *r, const char *key, const char *arch, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
uint32_t report_count(const struct report *r);
/* Print one line per problem: "PROGRAM: KEY ARCH: TEXT". */
void report_print(const struct report *r, FILE *to, const char *program);
void report_free(struct report *r);

#endif
