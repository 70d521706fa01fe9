// SPDX-License-Identifier: Apache-2.0
//
// head_gain.glsl: the gain of element i of a head: offset + w, or the offset alone if w is NULL.
float head_gain(nj_t w, int i)
{
    return given(w) ? offset + get(w, i) : offset;
}
