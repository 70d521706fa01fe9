/* SPDX-License-Identifier: Apache-2.0
 *
 * falsifier.h: a claim of a contract, and what holds it. One reader for gen and for contractcheck;
 * docs/contracts.md says what each field means.
 */
#ifndef GEN_FALSIFIER_H
#define GEN_FALSIFIER_H

#include "yaml.h"

/* A mutation: one edit of one file. */
struct mutant {
    const char *file, *replace, *with;
    int line;
};

/* A claim that is either bound (test and mutant) or open (why nothing holds it yet). */
struct falsifier {
    const char *contract; /* contract file that has the claim */
    int line;
    const char *id, *claim, *test, *open;
    struct mutant mutant;
};

/* Read one item of `falsifiers`; false after problem(). */
bool falsifier_read(const char *contract, const struct node *n, struct falsifier *out);

#endif
