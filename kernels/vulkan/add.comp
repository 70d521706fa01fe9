// SPDX-License-Identifier: Apache-2.0
void nj_add()
{
    for (int64_t i = flat_thread(); i < n; i += flat_threads())
        from(y, i).v[0] = from(a, i).v[0] + from(b, i).v[0];
}
