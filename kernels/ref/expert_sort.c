/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

#include "base/route.h"

void NJ_REF(expert_sort)(int32_t *first, int32_t *row, int32_t *place, const int32_t *chosen,
                         int32_t N, int32_t E, int32_t J)
{
    const int64_t pairs = (int64_t)N * J;
    int32_t at[NJ_EXPERTS_MAX + 1] = {0}; /* next place of each expert */
    for (int64_t p = 0; p < pairs; p++)
        if (chosen[p] >= 0)
            at[chosen[p] + 1]++;
    for (int32_t e = 0; e < E; e++)
        at[e + 1] += at[e];
    memcpy(first, at, ((size_t)E + 1) * sizeof *first);
    for (int64_t p = 0; p < pairs; p++) {
        if (chosen[p] >= 0) {
            place[p] = at[chosen[p]]++;
            row[place[p]] = (int32_t)(p / J);
        } else {
            place[p] = -1;
        }
    }
    for (int64_t p = first[E]; p < pairs; p++)
        row[p] = -1;
}
