// SPDX-License-Identifier: Apache-2.0
//
// rope.glsl: RoPE of one pair of elements, which lie half a head apart.

// Compute sine and cosine of the angle, which is the product of position and frequency, rounded to float32; both times
// the amplitude, which a pair with frequency 0 does not have.
void rope_turn(int position, int i, out float sin_a, out float cos_a)
{
    const precise float angle = float(position) * inv_freq.v[i];
    nj_sincos(angle, sin_a, cos_a);
    if (inv_freq.v[i] != 0.0) {
        precise float sin_long = amplitude * sin_a, cos_long = amplitude * cos_a;
        sin_a = sin_long;
        cos_a = cos_long;
    }
}

// Rotate pair i of a head forward, with bitwise identical results in rope_fwd and in the decoder.
void rope_pair(inout float lo, inout float hi, int position, int i)
{
    float sin_a, cos_a;
    rope_turn(position, i, sin_a, cos_a);
    const precise float turned_lo = lo * cos_a - hi * sin_a, turned_hi = hi * cos_a + lo * sin_a;
    lo = turned_lo;
    hi = turned_hi;
}
