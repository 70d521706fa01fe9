// SPDX-License-Identifier: Apache-2.0
void nj_add()
{
    for (int64_t i = flat_thread(); i < n; i += flat_threads())
        put(from_t(y, i), 0, get(from_t(a, i), 0) + get(from_t(b, i), 0));
}
