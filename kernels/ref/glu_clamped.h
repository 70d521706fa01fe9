/* SPDX-License-Identifier: Apache-2.0
 *
 * glu_clamped.h: SwiGLU, and its form with bounds.
 */
#ifndef NOJIT_REF_GLU_CLAMPED_H
#define NOJIT_REF_GLU_CLAMPED_H

#include "sigmoid.h"

static inline real glu_clamped(real gate, real up, float limit, float alpha)
{
    const real most = (real)limit;
    if (limit > 0) {
        gate = gate > most ? most : gate;
        up = up > most ? most : up < -most ? -most : up;
        return gate * sigmoid((real)alpha * gate) * (up + 1);
    }
    return gate * up * sigmoid(gate);
}

#endif
