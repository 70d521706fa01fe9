/* SPDX-License-Identifier: Apache-2.0
 *
 * sampling.h: how tokens are drawn.
 */
#ifndef NOJIT_TRAINER_SAMPLING_H
#define NOJIT_TRAINER_SAMPLING_H

#include <stdint.h>

/* How tokens are drawn. */
struct decode_sampling {
    float temperature; /* temperature of the softmax; 0: take the likeliest token */
    int top_k;         /* number of most probable tokens to draw from; 0: all */
    /* Top-p: probability that the fewest tokens to draw from reach together; 0, 1: all. */
    float top_p;
    float
        min_p; /* min-p: least probability of a token drawn, as a multiple of the most probable one's; 0: all */
    float
        repetition; /* repetition penalty of tokens that the text has had, which divides logits above 0 and multiplies
                     * those below; 0, 1: off */
    uint64_t seed;
};

#endif
