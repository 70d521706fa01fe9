/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

/* The tokens of a row that count, and their weights. */
struct counted {
    const real *x;
    int32_t V;
    real least, top; /* lowest logit that counts; largest logit */
    float tau;       /* 0: each token counts 1; otherwise exp((x - top) / tau) */
};

/* Return the value with a given rank in the order of all floats; ranks beyond the infinities give infinity. */
static real value_at(uint32_t place)
{
    const uint32_t bits = place >> 31 ? place ^ UINT32_C(0x80000000) : ~place;
    float value;
    memcpy(&value, &bits, sizeof value);
    if (value != value)
        return place >> 31 ? INFINITY : -INFINITY;
    return (real)value;
}

/* Return the total weight of the tokens whose logit is at least `value`. */
static double measure(const struct counted *c, real value)
{
    double sum = 0; /* double in both builds: V may be 150,000 */
    for (int32_t v = 0; v < c->V; v++) {
        const real x = c->x[v] == c->x[v] ? c->x[v] : -INFINITY;
        if (x >= value && x >= c->least)
            sum += c->tau == 0 || x == c->top ? 1 : (double)exp((x - c->top) / (real)c->tau);
    }
    return sum;
}

/* Return the highest value such that the tokens from it upwards weigh `enough`, one bit of its rank at a time. */
static real highest(const struct counted *c, double enough)
{
    uint32_t place = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit; bit >>= 1)
        if (measure(c, value_at(place | bit)) >= enough)
            place |= bit;
    return value_at(place);
}

void NJ_REF(sample_cut)(real *cut, const real *x, const int32_t *slot, int32_t R, int32_t V,
                        int32_t ld, float tau, int32_t top_k, float top_p, float min_p)
{
#pragma omp parallel for schedule(dynamic, 1)
    for (int32_t m = 0; m < R; m++) {
        const real *row = x + (int64_t)m * ld;
        real top = -INFINITY;
        for (int32_t v = 0; v < V; v++)
            top = row[v] > top ? row[v] : top;
        if (slot[m] < 0 || tau == 0) {
            cut[m] = slot[m] < 0 ? INFINITY : top;
            continue;
        }
        const struct counted all = {row, V, -INFINITY, top, 0};
        struct counted c = {row, V, -INFINITY, top, tau};
        if (top_k > 0 && top_k < V)
            c.least = highest(&all, top_k);
        real lower = c.least;
        if (top_p < 1)
            lower = highest(&c, (double)top_p * measure(&c, -INFINITY));
        if (min_p > 0 && top + (real)tau * log((real)min_p) > lower)
            lower = top + (real)tau * log((real)min_p);
        cut[m] = lower > top ? top : lower;
    }
}
