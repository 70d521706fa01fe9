// SPDX-License-Identifier: Apache-2.0
void nj_cast_to_f32()
{
    for (int64_t i = flat_thread(); i < n; i += flat_threads())
        from(dst, i).v[0] = get(from_t(src, i), 0);
}
