/* SPDX-License-Identifier: Apache-2.0 */
#include "e4m3.h"

void NJ_REF(e4m3_top)(real *top, const real *scale, int32_t R)
{
    *top = 0;
    keep_top(top, scale, R);
}
