// SPDX-License-Identifier: Apache-2.0
void nj_cast_to_lp()
{
    for (int64_t i = flat_thread(); i < n; i += flat_threads())
        put(from_t(dst, i), 0, from(src, i).v[0]);
}
