/* SPDX-License-Identifier: Apache-2.0
 *
 * harness.h: the harness over the kernel table: every key that gen lists, run on a device and
 * compared with its reference in double.
 *
 *   harness.c           options, the order of cases, crashes, the report; cases: runtime/selftest
 *   harness_selftest.c  wrong ops, each of which must fail
 */
#ifndef NOJIT_HARNESS_H
#define NOJIT_HARNESS_H

#include <stdio.h>
#include <stdlib.h>

#include "selftest/cases.h"

struct options {
    enum nj_device_kind device;
    const char *filter; /* glob on keys */
    uint64_t seed;
    double most_flops; /* operations of the largest case; the smallest of a key always runs */
    int list, self_test;
    const char *json; /* file, or NULL */
};

/* Zeroed; ends the program when there is no memory. */
static inline void *allocate(size_t count, size_t bytes)
{
    void *p = nj_case_allocate(count, bytes);
    if (!p) {
        fprintf(stderr, "harness: no memory for %zu x %zu bytes\n", count, bytes);
        exit(1);
    }
    return p;
}

/* ---- harness_selftest.c: exit status ---- */
int run_self_test(void);

/* ---- harness.c ---- */
/* Runs cases[0..count) of one key in children, so that a crash is that case's failure. */
void run_in_children(const struct subject *subjects, uint32_t count, uint64_t seed,
                     struct result *shared);
struct result *shared_results(uint32_t count);

#endif
