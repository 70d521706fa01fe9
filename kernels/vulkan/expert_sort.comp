// SPDX-License-Identifier: Apache-2.0
//
// A thread has a stretch of the pairs. It counts those of lower experts and those of the block's expert, and when all
// threads have done so, it gives each of the latter its place.
shared int nj_lower[NJ_THREADS], nj_equal[NJ_THREADS];

void nj_expert_sort()
{
    const int mine = block_x(), pairs = N * J, stretch = ceil_div(pairs, NJ_THREADS);
    const int begin = min(pairs, thread() * stretch), end = min(pairs, begin + stretch);
    int less = 0, same = 0;
    for (int p = begin; p < end; p++) {
        const int e = chosen.v[p];
        less += e >= 0 && e < mine ? 1 : 0;
        same += e == mine ? 1 : 0;
        if (mine == 0 && e < 0)
            place.v[p] = -1;
    }
    nj_lower[thread()] = less;
    nj_equal[thread()] = same;
    // Each becomes the sum of all up to it.
    for (int by = 1; by < NJ_THREADS; by *= 2) {
        barrier();
        const int before = thread() >= by ? nj_lower[thread() - by] : 0;
        const int equal_before = thread() >= by ? nj_equal[thread() - by] : 0;
        barrier();
        nj_lower[thread()] += before;
        nj_equal[thread()] += equal_before;
    }
    barrier();
    const int start = nj_lower[NJ_THREADS - 1], all = start + nj_equal[NJ_THREADS - 1];
    if (thread() == 0)
        first.v[mine] = start;
    int at = start + nj_equal[thread()] - same;
    for (int p = begin; p < end; p++)
        if (chosen.v[p] == mine) {
            place.v[p] = at;
            row.v[at] = p / J;
            at++;
        }
    if (mine < E - 1)
        return;
    if (thread() == 0)
        first.v[E] = all;
    for (int p = all + thread(); p < pairs; p += NJ_THREADS)
        row.v[p] = -1;
}
