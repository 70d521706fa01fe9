// SPDX-License-Identifier: Apache-2.0

// Return the total weight of the tokens whose logit is at least `value`: 1 each, or with a temperature their
// probability relative to that of the most probable.
float measure(nj_t row, float value, float least, float top, float temperature)
{
    float sum = 0.0;
    for (int v = thread(); v < V; v += NJ_THREADS) {
        const float logit = is_nan(get(row, v)) ? MINUS_INFINITY : get(row, v);
        if (logit >= value && logit >= least)
            sum += temperature == 0.0 || logit == top ? 1.0 : nj_exp((logit - top) / temperature);
    }
    return block_sum(sum);
}

// Return the value with a given rank in the order of all floats; ranks beyond the infinities give infinity.
float value_at(uint place)
{
    const uint bits = (place >> 31) != 0u ? place ^ 0x80000000u : ~place;
    const float value = uintBitsToFloat(bits);
    return !is_nan(value) ? value : (place >> 31) != 0u ? -MINUS_INFINITY : MINUS_INFINITY;
}

// Return the highest value such that the tokens from it upwards weigh `enough`, one bit of its rank at a time.
float highest(nj_t row, float least, float top, float temperature, float enough)
{
    uint place = 0u;
    for (uint bit = 0x80000000u; bit != 0u; bit >>= 1)
        if (measure(row, value_at(place | bit), least, top, temperature) >= enough)
            place |= bit;
    return value_at(place);
}

float row_cut(nj_t row, float top)
{
    float least = MINUS_INFINITY;
    if (top_k > 0 && top_k < V)
        least = highest(row, least, top, 0.0, float(top_k));
    float lower = least;
    if (top_p < 1.0)
        lower =
            highest(row, least, top, tau, top_p * measure(row, MINUS_INFINITY, least, top, tau));
    if (min_p > 0.0)
        lower = max(lower, top + tau * nj_log(min_p));
    return min(lower, top);
}

#include "best.glsl"

void nj_sample_cut()
{
    const int m = block_x();
    nj_t row = from_t(x, int64_t(m) * ld);
    float top = MINUS_INFINITY, value;
    int at = 0;
    for (int v = thread(); v < V; v += NJ_THREADS)
        top = get(row, v) > top ? get(row, v) : top;
    block_best(top, at);
    value = top;
    if (slot.v[m] < 0)
        value = -MINUS_INFINITY;
    else if (tau != 0.0)
        value = row_cut(row, top);
    if (thread() == 0)
        cut.v[m] = value;
}
