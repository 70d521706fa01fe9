// SPDX-License-Identifier: Apache-2.0
//
// rope.glsl: the rotation of one pair of elements, which lie half a head apart.

// The angle is the product of position and frequency, rounded to float32.
void rope_turn(int position, int i, out float sin_a, out float cos_a)
{
    const precise float angle = float(position) * inv_freq.v[i];
    nj_sincos(angle, sin_a, cos_a);
}
