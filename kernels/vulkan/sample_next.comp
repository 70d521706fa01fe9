// SPDX-License-Identifier: Apache-2.0
const int STOPS = 8;

int best_of(int64_t at)
{
    float top = MINUS_INFINITY;
    int id = -1;
    for (int p = 0; p < PARTS; p++) {
        const float s = from(score, at).v[p];
        const int token = from_i32(best, at).v[p];
        if (token >= 0 && (id < 0 || s > top || (s == top && token < id))) {
            top = s;
            id = token;
        }
    }
    return id;
}

bool is_last(int id)
{
    bool last = id < 0;
    for (int i = 0; i < STOPS; i++)
        last = last || id == stop.v[i];
    return last;
}

void take(int m, int step)
{
    const int id = slot.v[m] < 0 ? -1 : best_of(int64_t(m) * PARTS);
    if (step >= 0 && step < W)
        from_i32(out_, int64_t(step) * R).v[m] = id;
    if (slot.v[m] < 0)
        return;
    if (is_last(id) || left.v[m] <= 1) {
        slot.v[m] = -1;
    } else {
        ids.v[m] = id;
        pos.v[m] += 1;
        left.v[m] -= 1;
    }
}

void nj_sample_next()
{
    const int step = counter.v[0];
    for (int m = thread(); m < R; m += NJ_THREADS)
        take(m, step);
    barrier(); // all threads have read the step
    if (thread() == 0)
        counter.v[0] = step + 1;
}
