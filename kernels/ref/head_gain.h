/* SPDX-License-Identifier: Apache-2.0
 *
 * head_gain.h: code shared by the references of qknorm_rope_fwd and qknorm_rope_bwd: gains of a head.
 */
#ifndef NOJIT_REF_HEAD_GAIN_H
#define NOJIT_REF_HEAD_GAIN_H

#include "rope.h"

enum { HEAD_MAX = 256 };

/* Factors of a head's elements before the rotation, and after it: one of them is the gain, the other 1. */
struct head_gain {
    real before[HEAD_MAX], after[HEAD_MAX];
};

/* Return the gains offset + w, or offset if w is NULL. */
static inline struct head_gain head_gain(const real *w, int32_t D, float offset, int32_t last)
{
    struct head_gain gain = {{0}, {0}};
    for (int32_t i = 0; i < D; i++) {
        const real g = w ? (real)offset + w[i] : (real)offset;
        gain.before[i] = last ? 1 : g;
        gain.after[i] = last ? g : 1;
    }
    return gain;
}

#endif
