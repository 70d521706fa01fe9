// SPDX-License-Identifier: Apache-2.0
#include "blocks.glsl"

void nj_dequantize()
{
    const int elements = elements_of[TYPE];
    const int64_t row_bytes = int64_t(C / elements) * bytes_of[TYPE];
    for (int64_t i = flat_thread(); i < int64_t(M) * C; i += flat_threads()) {
        const int m = int(i / C), c = int(i - int64_t(m) * C), row = given(index) ? index.v[m] : m;
        nj_block_at = row * row_bytes + c / elements * bytes_of[TYPE];
        put(from_t(dst, i), 0, row < 0 ? 0.0 : block_element(c % elements));
    }
}
