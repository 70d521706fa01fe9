// SPDX-License-Identifier: Apache-2.0
//
// conv.glsl: causal convolution of one channel at one row of all sequences, for shaders that have these.

// Return the first row of the document of row n.
int document_first(int n)
{
    return n / S * S + (given(doc_start) ? doc_start.v[n] : 0);
}

// Return the input of the taps in row n.
float conv_input(int n, int c)
{
    const int64_t at = int64_t(n) * ld;
    const float u = get(from_t(x, at), c);
    return given(gate_in) ? u * get(from_t(gate_in, at), c) : u;
}

// Return the argument of the activation in row n.
float conv_sum(int n, int c)
{
    const int first = document_first(n);
    nj_t taps = from_t(w, int64_t(c) * L);
    float sum = given(bias) ? get(bias, c) : 0.0;
    for (int t = max(0, first - n + L - 1); t < L; t++)
        sum += get(taps, t) * conv_input(n - L + 1 + t, c);
    return sum;
}
