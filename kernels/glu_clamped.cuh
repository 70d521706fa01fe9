// SPDX-License-Identifier: Apache-2.0
//
// glu_clamped.cuh: SwiGLU, and its form with bounds.
#ifndef NOJIT_GLU_CLAMPED_CUH
#define NOJIT_GLU_CLAMPED_CUH

#include "common.cuh"

// Return gate sigmoid(alpha gate) (up + 1), where gate is at most `limit` and up within +-limit; with limit = 0,
// gate sigmoid(gate) up. NaN stays NaN.
static __device__ __forceinline__ float glu_clamped(float gate, float up, float limit, float alpha)
{
    if (limit > 0) {
        gate = gate > limit ? limit : gate;
        up = up > limit ? limit : up < -limit ? -limit : up;
        return gate * sigmoid(alpha * gate) * (up + 1);
    }
    return gate * sigmoid(gate) * up;
}

#endif
