// SPDX-License-Identifier: Apache-2.0
//
// glu.glsl: gated activations other than SiLU, by the numbers of base/activation.h. Each is x times a weight of x; here
// are that weight and the derivative of the product.
const int GELU_TANH = 2;

// Return 1 - erf(x) for x >= 0: below 2 by the series whose terms are all positive, otherwise by the continued
// fraction. Errors are below 1e-7, relative to 1 and to the tail.
float tail(float x)
{
    const float gauss = nj_exp(-x * x);
    if (x >= 2.0) {
        float below = x;
        for (int k = 24; k > 0; k--)
            below = x + 0.5 * float(k) / below;
        return gauss * 0.564189584 / below;
    }
    float term = x, sum = x;
    for (int k = 1; k < 30; k++) {
        term *= 2.0 * x * x / float(2 * k + 1);
        sum += term;
    }
    return 1.0 - 1.12837917 * gauss * sum;
}

float glu_weight(float x)
{
    if (ACT == GELU_TANH)
        return sigmoid(x * (1.59576912 + 0.0713548163 * x * x));
    const float t = 0.5 * tail(abs(x) * 0.707106781);
    return x < 0.0 ? t : 1.0 - t;
}

// Return the derivative of x glu_weight(x), where z is the weight of x.
float glu_slope(float x, float z)
{
    if (ACT == GELU_TANH)
        return z + x * z * (1.0 - z) * (1.59576912 + 3.0 * 0.0713548163 * min(x * x, 400.0));
    return z + x * 0.398942280 * nj_exp(x * x * -0.5);
}
