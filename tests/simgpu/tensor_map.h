/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_map.h: what the simulated driver makes of a tensor map, and the machine's copy engine reads.
 */
#ifndef NOJIT_SIM_TENSOR_MAP_H
#define NOJIT_SIM_TENSOR_MAP_H

/* The arguments of the driver's call. */
struct sim_tensor_map {
    unsigned long long address, sizes[2], row_bytes;
    unsigned box[2], steps[2];
    int type, rank, interleave, swizzle, promotion, fill;
    unsigned char unused[56];
};
_Static_assert(sizeof(struct sim_tensor_map) == 128, "a tensor map has 128 bytes");

/* The only form of map that kernels of this tree take. */
enum {
    MAP_RANK = 2,
    MAP_ELEMENT_BYTES = 2,
    MAP_SWIZZLE_128B = 3,
    MAP_SWIZZLED_BYTES = 128,
    MAP_BOX_MAX = 256
};

#endif
