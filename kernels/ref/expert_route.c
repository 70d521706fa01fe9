/* SPDX-License-Identifier: Apache-2.0 */
#include "sigmoid.h"

#include "base/route.h"

/* Return the expert in [0, count) with the largest key of those that are not taken; of equals the lowest. */
static int32_t best_of(const real *key, const unsigned char *taken, int32_t count)
{
    int32_t best = -1;
    for (int32_t e = 0; e < count; e++)
        if (!taken[e] && (best < 0 || key[e] > key[best]))
            best = e;
    return best;
}

/* Return the sum of the two largest keys of a group. */
static real group_score(const real *key, int32_t size)
{
    real first = -INFINITY, second = -INFINITY;
    for (int32_t e = 0; e < size; e++) {
        if (key[e] > first) {
            second = first;
            first = key[e];
        } else if (key[e] > second) {
            second = key[e];
        }
    }
    return size > 1 ? first + second : first;
}

/* Take the experts of all groups but the best. */
static void take_groups(unsigned char *taken, const real *key, int32_t E, int32_t G, int32_t used)
{
    real score[NJ_CHOSEN_MAX];
    unsigned char kept[NJ_CHOSEN_MAX] = {0};
    const int32_t size = E / G;
    for (int32_t g = 0; g < G; g++)
        score[g] = group_score(key + g * size, size);
    for (int32_t i = 0; i < used; i++)
        kept[best_of(score, kept, G)] = 1;
    for (int32_t e = 0; e < E; e++)
        taken[e] = !kept[e / size];
}

/* Compute the score of each expert. */
static void scores_of(real *score, const real *row, int32_t E, int32_t rule)
{
    real top = row[0], sum = 0;
    for (int32_t e = 1; e < E; e++)
        top = row[e] > top ? row[e] : top;
    for (int32_t e = 0; e < E; e++) {
        score[e] = rule == NJ_ROUTE_SIGMOID   ? sigmoid(row[e])
                   : rule == NJ_ROUTE_SOFTMAX ? exp(row[e] - top)
                                              : row[e];
        sum += score[e];
    }
    for (int32_t e = 0; e < E && rule == NJ_ROUTE_SOFTMAX; e++)
        score[e] /= sum;
}

void NJ_REF(expert_route)(int32_t *chosen, real *weight, const real *logits, const real *bias,
                          int32_t N, int32_t E, int32_t J, int32_t G, int32_t groups_used,
                          int32_t rule, int32_t renormalize, float scale, float eps)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const real *row = logits + (int64_t)n * E;
        real score[NJ_EXPERTS_MAX], key[NJ_EXPERTS_MAX], part[NJ_CHOSEN_MAX], sum = 0;
        unsigned char taken[NJ_EXPERTS_MAX] = {0};
        int32_t *out = chosen + (int64_t)n * J, top = 0;
        scores_of(score, row, E, rule);
        for (int32_t e = 0; e < E; e++) {
            key[e] = score[e] + (bias ? bias[e] : 0);
            key[e] = key[e] == key[e] ? key[e] : -INFINITY;
        }
        if (G > 1)
            take_groups(taken, key, E, G, groups_used);
        for (int32_t e = 0; e < E && !bias; e++) /* scores that are rounded may be equal */
            key[e] = row[e] == row[e] ? row[e] : -INFINITY;
        for (int32_t j = 0; j < J; j++) {
            out[j] = best_of(key, taken, E);
            taken[out[j]] = 1;
            top = j == 0 || row[out[j]] > row[top] ? out[j] : top;
        }
        for (int32_t j = 0; j < J; j++) {
            part[j] = rule == NJ_ROUTE_TOP_SOFTMAX ? exp(row[out[j]] - row[top]) : score[out[j]];
            sum += part[j];
        }
        for (int32_t j = 0; j < J; j++) {
            const real share =
                renormalize || rule == NJ_ROUTE_TOP_SOFTMAX ? part[j] / (sum + (real)eps) : part[j];
            weight[(int64_t)n * J + j] = (real)scale * share;
        }
    }
}
