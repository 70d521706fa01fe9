/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

enum { STOPS = 8 };

static int32_t best_of(const real *score, const int32_t *best, int64_t at, int32_t PARTS)
{
    real top = -INFINITY;
    int32_t id = -1;
    for (int32_t p = 0; p < PARTS; p++) {
        const real s = score[at + p];
        if (best[at + p] >= 0 && (id < 0 || s > top || (s == top && best[at + p] < id))) {
            top = s;
            id = best[at + p];
        }
    }
    return id;
}

static int is_last(int32_t id, const int32_t *stop)
{
    int last = id < 0;
    for (int i = 0; i < STOPS; i++)
        last |= id == stop[i];
    return last;
}

void NJ_REF(sample_next)(int32_t *out, int32_t *ids, int32_t *pos, int32_t *left, int32_t *slot,
                         int32_t *counter, const real *score, const int32_t *best,
                         const int32_t *stop, int32_t R, int32_t PARTS, int32_t W)
{
    const int32_t step = counter[0]++;
    for (int32_t m = 0; m < R; m++) {
        const int32_t id = slot[m] < 0 ? -1 : best_of(score, best, (int64_t)m * PARTS, PARTS);
        if (step >= 0 && step < W)
            out[(int64_t)step * R + m] = id;
        if (slot[m] < 0)
            continue;
        if (is_last(id, stop) || left[m] <= 1) {
            slot[m] = -1;
        } else {
            ids[m] = id;
            pos[m]++;
            left[m]--;
        }
    }
}
