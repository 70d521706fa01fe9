/* SPDX-License-Identifier: Apache-2.0
 *
 * passages.h: passages. A passage is what the teacher reads to predict some targets: the part of a document within
 * one sequence, from its first token there to the last one that precedes a target. Its key is a hash of its tokens and
 * of the places of its targets, so that it does not depend on the order of the data, on the batch, or on what else is
 * in the sequence.
 */
#ifndef NOJIT_TRAINER_PASSAGES_H
#define NOJIT_TRAINER_PASSAGES_H

#include "net/rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct passage_key {
    uint64_t low, high;
};
struct passage {
    struct passage_key key;
    int start, tokens;  /* its first position in the micro-batch, and number of its tokens */
    int first, targets; /* its first target among those of the micro-batch, and number of them */
};
/* The rows of a micro-batch that passages are found in. */
struct passage_rows {
    const int32_t *ids, *doc_start; /* as in struct rows */
    const int32_t *valid;           /* positions of targets, ascending */
    int targets; /* number of elements of `valid`, which ends before at one below 0 */
    int S;       /* positions of a sequence */
};
/* Return the rows of a batch. at: room for all of its positions. */
struct passage_rows passages_of(const struct batch *b, int32_t *at);
/* Advance to the next passage; start from a zeroed one. Return false when there is none left. */
bool passage_next(const struct passage_rows *rows, struct passage *p);

/* A set of passages, numbered in the order in which they were added; zeros are an empty one. */
struct passage_set {
    struct passage_key *key;
    size_t count, room;
    size_t *table; /* [slots] number of a key + 1, or 0, from the slot of the key on */
    size_t slots;  /* a power of two, at least twice the count; or 0 */
};
/* Return the number of a passage; -1: it is not in the set. */
int64_t passage_set_find(const struct passage_set *s, struct passage_key key);
/* Add a passage. Return 1, or 0 if it is there already, or NJ_E_NOMEM. */
int passage_set_add(struct passage_set *s, struct passage_key key);
void passage_set_free(struct passage_set *s);

#endif
