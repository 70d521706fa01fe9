// SPDX-License-Identifier: Apache-2.0
const int COLUMNS = 2048; // columns of a block

// Return tanh(x) = (e^2x - 1) / (e^2x + 1); beyond +-10 it is +-1 to float32.
float nj_tanh(float x)
{
    const float e = nj_expm1(2.0 * clamp(x, -10.0, 10.0));
    return is_nan(x) ? x : e / (e + 2.0);
}

void nj_softcap()
{
    const int begin = block_y() * COLUMNS, end = min(V, begin + COLUMNS);
    nj_t row = from_t(y, int64_t(block_x()) * Vs);
    for (int v = begin + thread(); v < end; v += NJ_THREADS)
        put(row, v, cap * nj_tanh(get(row, v) / cap));
}
