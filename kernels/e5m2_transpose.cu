// SPDX-License-Identifier: Apache-2.0
#include "transpose.cuh"

template <typename T>
static __device__ __forceinline__ void e5m2_transpose(uint8_t *q, const uint8_t *x, int R, int C,
                                                      int X)
{
    const byte_tile tile = byte_tile::own();
    uint32_t raw[tile.PARTS][4];
    tile.load(raw, x, R, C, X);
    tile.store(q, raw, R, C, [](uint32_t(&out)[4], const uint32_t(&in)[4]) {
        const uint32_t low01 = __byte_perm(in[0], in[1], 0x5140); // columns 0 and 1 of both rows
        const uint32_t low23 = __byte_perm(in[2], in[3], 0x5140);
        const uint32_t high01 = __byte_perm(in[0], in[1], 0x7362);
        const uint32_t high23 = __byte_perm(in[2], in[3], 0x7362);
        out[0] = __byte_perm(low01, low23, 0x5410);
        out[1] = __byte_perm(low01, low23, 0x7632);
        out[2] = __byte_perm(high01, high23, 0x5410);
        out[3] = __byte_perm(high01, high23, 0x7632);
    });
}
