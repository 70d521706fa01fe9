/* SPDX-License-Identifier: Apache-2.0
 *
 * sampling.h: parameters of sampling.
 */
#ifndef NOJIT_TRAINER_SAMPLING_H
#define NOJIT_TRAINER_SAMPLING_H

#include <stdint.h>

/* The distribution that tokens are drawn from. */
struct decode_sampling {
    float temperature; /* temperature of the softmax; 0: the most probable token */
    int top_k;         /* number of most probable tokens to draw from; 0: all */
    /* Top-p: least sum of probabilities of the tokens to draw from, which are the fewest that reach it; 0, 1: all. */
    float top_p;
    /* Min-p: least probability of a token to draw from, relative to the most probable one; 0: all. */
    float min_p;
    /* Repetition penalty: divisor of logits above 0, and factor of those below, for tokens that the text has already;
     * 0, 1: off. */
    float repetition;
    uint64_t seed;
};

#endif
