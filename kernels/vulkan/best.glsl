// SPDX-License-Identifier: Apache-2.0
//
// best.glsl: the largest value of the workgroup and its index, the lowest among equals.

shared int nj_places[NJ_THREADS];

bool is_before(float a, int a_at, float b, int b_at)
{
    return a > b || (a == b && a_at < b_at);
}

void block_best(inout float value, inout int at)
{
    barrier(); // earlier sums may still be read
    nj_sums[thread()] = value;
    nj_places[thread()] = at;
    for (int half_of = NJ_THREADS / 2; half_of > 0; half_of /= 2) {
        barrier();
        const int a = thread(), b = a + half_of;
        if (a < half_of && is_before(nj_sums[b], nj_places[b], nj_sums[a], nj_places[a])) {
            nj_sums[a] = nj_sums[b];
            nj_places[a] = nj_places[b];
        }
    }
    barrier();
    value = nj_sums[0];
    at = nj_places[0];
}
