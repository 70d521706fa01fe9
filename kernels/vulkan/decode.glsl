// SPDX-License-Identifier: Apache-2.0
//
// decode.glsl: partial results of attention over chunks of a slot's keys: D sums of values, the largest score times
// log2(e), and the sum of exponentials.
const int CHUNK = 256, STATS = 2;
const float LOG2_E = 1.44269504, LN_2 = 0.693147181;

// First position that a row sees.
int first_position(int position)
{
    return window > 0 ? max(0, position - window + 1) : 0;
}

struct part_stats {
    float top, sum;
};

// Return the sum of all weights of a head: with a sink, the score of a key whose value is 0, that and the sink's.
float with_sink(part_stats total, int head)
{
    return given(sink) ? total.sum + nj_exp(get(sink, head) - total.top * LN_2) : total.sum;
}

// Add the statistics of the next part, and return the factors by which both parts' sums must be multiplied to be
// relative to the larger maximum.
void part_add(inout part_stats total, part_stats next, out float old, out float its)
{
    const float top = max(total.top, next.top);
    old = nj_exp((total.top - top) * LN_2);
    its = nj_exp((next.top - top) * LN_2);
    total.sum = total.sum * old + next.sum * its;
    total.top = top;
}
