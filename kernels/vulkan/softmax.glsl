// SPDX-License-Identifier: Apache-2.0
//
// softmax.glsl: softmax(x / tau) of a row as log probabilities: (x - max) / tau - log_sum.

#include "best.glsl"

struct softmax {
    float top, tau, log_sum;
    int argmax; // the lowest index among equals
};

// Find the largest element and its index; log_sum is not computed yet.
softmax row_top(nj_t x, int count)
{
    softmax r = softmax(get(x, 0), 1.0, 0.0, 0);
    for (int v = thread(); v < count; v += NJ_THREADS)
        if (is_before(get(x, v), v, r.top, r.argmax)) {
            r.top = get(x, v);
            r.argmax = v;
        }
    block_best(r.top, r.argmax);
    return r;
}

// Return the softmax of the same row at a temperature.
softmax row_softmax(softmax r, nj_t x, int count, float tau)
{
    float sum = 0.0;
    for (int v = thread(); v < count; v += NJ_THREADS)
        sum += nj_exp((get(x, v) - r.top) / tau);
    r.tau = tau;
    r.log_sum = nj_log(block_sum(sum));
    return r;
}

float log_prob(softmax r, float x)
{
    return (x - r.top) / r.tau - r.log_sum;
}

// Return the derivative of a logit z = cap tanh(y / cap) by y; 1 without a cap. Rounding may have raised z above the
// cap.
float cap_slope(float z, float bound)
{
    const float r = bound > 0.0 ? z / bound : 0.0;
    return max(1.0 - r * r, 0.0);
}

// Return p (log p - log m), where 0 log 0 is 0.
float kl_term(float p, float log_p, float log_m)
{
    return p > 0.0 ? p * (log_p - log_m) : 0.0;
}
