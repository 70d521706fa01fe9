// SPDX-License-Identifier: Apache-2.0
//
// glu_clamped.glsl: SwiGLU, and its form with bounds, as in kernels/glu_clamped.cuh.
float glu_clamped(float gate, float up)
{
    if (limit <= 0.0)
        return gate * sigmoid(gate) * up;
    gate = gate > limit ? limit : gate;
    up = up > limit ? limit : up < -limit ? -limit : up;
    return gate * sigmoid(alpha * gate) * (up + 1.0);
}
