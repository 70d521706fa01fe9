/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(e4m3_top)(real *top, const real *scale, int32_t R)
{
    real most = 0;
    for (int32_t r = 0; r < R; r++)
        if (!(scale[r] <= most)) /* takes a NaN, and nothing after it */
            most = isnan(most) ? most : scale[r];
    *top = most;
}
