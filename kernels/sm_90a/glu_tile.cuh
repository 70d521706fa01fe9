// SPDX-License-Identifier: Apache-2.0
//
// glu_tile.cuh: tiles of a GEMM of which one half is gate and the other up, stored as activations.
#ifndef NOJIT_GLU_TILE_CUH
#define NOJIT_GLU_TILE_CUH

#include "../glu.cuh"
#include "gemm.cuh"

constexpr int WIDTH = TILE_N / 2; // columns of act in a tile: one half of b is gate, the other up

// Return the activation for two columns. Gate and up are rounded first, as if they were stored in between.
template <int ACT> static __device__ __forceinline__ uint32_t gated2(uint32_t gate, uint32_t up)
{
    float g[2], u[2];
    widen(g, gate, lp());
    widen(u, up, lp());
    const auto weight = activation<ACT>::weight;
    return pack2(g[0] * weight(g[0]) * u[0], g[1] * weight(g[1]) * u[1]);
}

// Store 16 rows of a tile per warp; `rows` and `columns` of the tile lie in the arrays.
template <int ACT>
static __device__ __forceinline__ void store(lp *act, lp *gu, const float (&d)[TILE_N / 8][4],
                                             int I, int rows, int columns)
{
    const auto gate = [&](int n, int e) { return pack2(d[n][e], d[n][e + 1]); };
    const auto up = [&](int n, int e) { return gate(n + WIDTH / 8, e); };
    const auto both = [&](int n, int e) { return gated2<ACT>(gate(n, e), up(n, e)); };
#pragma unroll
    for (int q = 0; q < WIDTH / 32; q++) {
        store32(act, I, q, rows, columns, both);
        if (gu) {
            store32(gu, 2 * I, q, rows, columns, gate);
            store32(gu + I, 2 * I, q, rows, columns, up);
        }
    }
}

#endif
