/* SPDX-License-Identifier: Apache-2.0 */
#include "philox.h"

enum { OF_GROUP = 0x73616d70, OF_TOKEN = 0x746f6b6e, TOKENS = 8, GROUPS_OF_A_CALL = 4 };

/* A row of logits. Logits below `least` and those from `end` on take no part. */
struct row {
    const real *x;
    real least;
    int64_t end;
    float tau;
    uint32_t pos, number, seed_low, seed_high;
};

/* Weights of the tokens of a group. They and the scores are double even in the float build: the noise of a likely group
 * is -log of a small number. */
struct weights {
    double of[TOKENS], sum, largest;
};

static uint32_t word_of(const struct row *r, int64_t block, uint32_t stream, int which)
{
    uint32_t w[4];
    philox((uint64_t)block | (uint64_t)r->pos << 32, r->number, stream, r->seed_low, r->seed_high,
           w);
    return w[which];
}

/* Return exp((x - largest) / tau); its limit if tau is 0, which is 1 for the largest. */
static double weight_of(double x, double largest, float tau)
{
    if (x == largest)
        return 1;
    return tau == 0 ? 0 : exp((x - largest) / (double)tau);
}

/* Return whether a logit takes part; NaN does not. */
static int takes_part(const struct row *r, real x)
{
    return x >= r->least;
}

static struct weights weigh(const struct row *r, int64_t q)
{
    struct weights w = {.largest = -INFINITY};
    const real *x = r->x + q * TOKENS;
    const int64_t left = r->end - q * TOKENS;
    const int count = left < TOKENS ? (int)left : TOKENS;
    for (int i = 0; i < count; i++)
        if (takes_part(r, x[i]) && (double)x[i] > w.largest)
            w.largest = (double)x[i];
    for (int i = 0; i < count && w.largest > -INFINITY; i++) {
        w.of[i] = takes_part(r, x[i]) ? weight_of((double)x[i], w.largest, r->tau) : 0;
        w.sum += w.of[i];
    }
    return w;
}

static double score_of(const struct row *r, int64_t q, const struct weights *w)
{
    if (r->tau == 0 || !(w->sum > 0))
        return w->largest;
    const uint32_t word = word_of(r, q / GROUPS_OF_A_CALL, OF_GROUP, (int)(q % GROUPS_OF_A_CALL));
    const double noise = -log(-log(1 - ((double)word + 0.5) * 0x1p-32));
    return w->largest / (double)r->tau + log(w->sum) + noise;
}

/* Draw a token of the group by weight; at tau 0 the first of the largest. */
static int32_t draw(const struct row *r, int64_t q)
{
    const struct weights w = weigh(r, q);
    const double u = ((double)word_of(r, q, OF_TOKEN, 0) + 0.5) * 0x1p-32;
    const double wanted = r->tau == 0 ? 1 : u * w.sum;
    double sum = 0;
    int at = 0;
    for (int i = 0; i < TOKENS && sum < wanted; i++) {
        sum += w.of[i];
        at = i;
    }
    return (int32_t)(q * TOKENS + at);
}

void NJ_REF(sample)(real *score, int32_t *best, const real *x, const real *cut, const int32_t *slot,
                    const int32_t *number, const int32_t *pos, int32_t R, int32_t V, int32_t ld,
                    int32_t PARTS, float tau, int32_t seed_low, int32_t seed_high)
{
    const int64_t whole = ((int64_t)V + PARTS - 1) / PARTS;
    const int64_t length = (whole + TOKENS - 1) / TOKENS,
                  groups = ((int64_t)V + TOKENS - 1) / TOKENS;
#pragma omp parallel for collapse(2)
    for (int32_t m = 0; m < R; m++) {
        for (int32_t p = 0; p < PARTS; p++) {
            const struct row r = {
                .x = x + (int64_t)m * ld,
                .least = cut ? cut[m] : -INFINITY,
                .end = V,
                .tau = tau,
                .pos = (uint32_t)pos[m],
                .number = (uint32_t)number[m],
                .seed_low = (uint32_t)seed_low,
                .seed_high = (uint32_t)seed_high,
            };
            const int64_t end = (p + 1) * length < groups ? (p + 1) * length : groups;
            double top = -INFINITY;
            int64_t group = -1;
            for (int64_t q = p * length; q < end && slot[m] >= 0; q++) {
                const struct weights w = weigh(&r, q);
                const double s = score_of(&r, q, &w);
                if (s > top) {
                    top = s;
                    group = q;
                }
            }
            score[(int64_t)m * PARTS + p] = (real)top;
            best[(int64_t)m * PARTS + p] = group < 0 ? -1 : draw(&r, group);
        }
    }
}
