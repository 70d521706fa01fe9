// SPDX-License-Identifier: Apache-2.0
//
// gain.glsl: gains of a norm.

// Return the gain of channel c, which is the offset alone if w is NULL.
float gain(int c)
{
    return (given(w) ? get(w, c) : 0.0) + offset;
}
