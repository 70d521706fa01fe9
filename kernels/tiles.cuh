// SPDX-License-Identifier: Apache-2.0
//
// tiles.cuh: a tensor map, as kernels get one for each argument of their contract that has a tile. Its address goes to
// cp.async.bulk.tensor.
#ifndef NOJIT_TILES_CUH
#define NOJIT_TILES_CUH

struct alignas(64) nj_tiles {
    unsigned long long bits[16];
};

#endif
