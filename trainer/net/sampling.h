/* SPDX-License-Identifier: Apache-2.0
 *
 * sampling.h: how tokens are drawn.
 */
#ifndef NOJIT_TRAINER_SAMPLING_H
#define NOJIT_TRAINER_SAMPLING_H

#include <stdint.h>

/* How tokens are drawn. */
struct decode_sampling {
    float temperature; /* 0 takes the likeliest token */
    int top_k;         /* of the others only the most probable ones; 0: all; */
    float top_p;       /* of these the fewest that make up so much; 0, 1: all; */
    float
        min_p; /* of these none that is less probable than so many times the most probable one; 0: all */
    float
        repetition; /* divides logits above 0, and multiplies those below, of tokens that the text has had; 0, 1: off */
    uint64_t seed;
};

#endif
