/* SPDX-License-Identifier: Apache-2.0
 *
 * edit_distance.h: edit distance of two words, for messages that suggest the word that was probably meant.
 */
#ifndef NOJIT_EDIT_DISTANCE_H
#define NOJIT_EDIT_DISTANCE_H

#include <string.h>

enum { EDIT_WORD_MAX = 95 }; /* characters of a word that are compared */

/* Return how many characters have to be inserted, deleted or replaced to turn a into b (Levenshtein). */
static inline int edit_distance(const char *a, const char *b)
{
    /* distances of the part of a read so far from each beginning of b */
    int row[EDIT_WORD_MAX + 1];
    const int a_length = (int)strnlen(a, EDIT_WORD_MAX), b_length = (int)strnlen(b, EDIT_WORD_MAX);
    for (int j = 0; j <= b_length; j++)
        row[j] = j;
    for (int i = 1; i <= a_length; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= b_length; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_length];
}

#endif
