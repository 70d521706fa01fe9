/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(loss_reduce)(real *sums, const real *kd, const real *ce, const real *entropy,
                         const real *agree, int32_t M)
{
    const real *rows[4] = {kd, ce, entropy, agree};
    for (int k = 0; k < 4; k++) {
        real sum = 0;
        for (int32_t m = 0; m < M; m++)
            sum += rows[k][m];
        sums[k] += sum;
    }
}
