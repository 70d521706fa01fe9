// SPDX-License-Identifier: Apache-2.0
//
// tiles.cuh: a tensor map. A kernel gets one for each argument whose contract gives a tile, and passes its address to
// cp.async.bulk.tensor.
#ifndef NOJIT_TILES_CUH
#define NOJIT_TILES_CUH

struct alignas(64) nj_tiles {
    unsigned long long bits[16];
};

#endif
