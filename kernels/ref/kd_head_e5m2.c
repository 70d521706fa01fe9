/* SPDX-License-Identifier: Apache-2.0 */
#include "e5m2.h"
#include "kd_row.h"
#include "philox.h"

enum { STREAM = 3, COLUMNS_OF_A_CALL = 16 };

/* Return the scale of all rows: 2^-8 of the least power of two that is at least x. */
static real scale_of_gradient(real x)
{
    int exponent;
    const real fraction = frexp(x, &exponent); /* in [1/2, 1) */
    return ldexp((real)1, (fraction == (real)0.5 ? exponent - 1 : exponent) - 8);
}

/* Round the gradient of a row, from the last column to the first: g may lie at the end of s. */
static void round_row(e5m2 *g, const real *s, int32_t row, int32_t Vs, const int32_t *key)
{
    uint32_t random[4];
    for (int32_t v = Vs - 1; v >= 0; v--) {
        const int32_t at = v % COLUMNS_OF_A_CALL;
        if (at == COLUMNS_OF_A_CALL - 1)
            philox((uint64_t)(v / COLUMNS_OF_A_CALL) | (uint64_t)(uint32_t)row << 32, 0, STREAM,
                   (uint32_t)key[0], (uint32_t)key[1], random);
        const real x = s[v];
        g[v] = to_e5m2_at_random(x, random[at / 4] >> (8 * (at % 4)) & 255);
    }
}

void NJ_REF(kd_head_e5m2)(e5m2 *g, real *g_scale, real *kd, real *ce, real *entropy, real *agree,
                          real *s, const real *t, const int32_t *target, const real *state,
                          const int32_t *key, int32_t M, int32_t V, int32_t Vs, int32_t Vt,
                          int32_t G, int32_t first, float tau, float ratio, float beta, float cap)
{
    const real whole = state[NJ_STEP_INV_VALID] * state[NJ_STEP_LOSS_SCALE];
    const real scale = scale_of_gradient(whole);
    const struct how how = {.tau = (real)tau,
                            .ratio = (real)ratio,
                            .beta = (real)beta,
                            .cap = (real)cap,
                            .scale = whole / scale};
    *g_scale = scale;
#pragma omp parallel for
    for (int32_t m = 0; m < M; m++) {
        real *row = s + (int64_t)m * Vs;
        const struct distilled r =
            distil_row(row, t ? t + (int64_t)m * Vt : NULL, target[m], V, Vs, &how);
        round_row(g + (int64_t)m * G, row, first + m, Vs, key);
        kd[m] = (real)r.kd;
        ce[m] = r.ce;
        entropy[m] = (real)r.entropy;
        agree[m] = r.agree;
    }
}
