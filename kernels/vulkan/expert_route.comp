// SPDX-License-Identifier: Apache-2.0
//
// A group of WIDTH threads has a row. The experts of thread t are t, t + WIDTH, ...; a set of them is a mask, whose
// bit i is expert t + WIDTH i.
const int WIDTH = 32, EACH = 16, MOST = WIDTH * EACH;
const int SOFTMAX = 0, TOP_SOFTMAX = 1, SIGMOID = 2; // base/route.h

shared float nj_keys[NJ_THREADS * EACH];
shared float nj_top[NJ_THREADS];
shared int nj_top_at[NJ_THREADS];

struct candidate {
    float key;
    int e;
};

// Return the better of what the threads of a group have: the larger key; of equals, the lower expert.
candidate best_of_group(candidate mine)
{
    const int lane = thread() % WIDTH;
    barrier(); // the last result may still be read
    nj_top[thread()] = mine.key;
    nj_top_at[thread()] = mine.e;
    for (int half_of = WIDTH / 2; half_of > 0; half_of /= 2) {
        barrier();
        const int other = thread() + half_of;
        if (lane < half_of &&
            (nj_top[other] > nj_top[thread()] ||
             nj_top[other] == nj_top[thread()] && nj_top_at[other] < nj_top_at[thread()])) {
            nj_top[thread()] = nj_top[other];
            nj_top_at[thread()] = nj_top_at[other];
        }
    }
    barrier();
    return candidate(nj_top[thread() - lane], nj_top_at[thread() - lane]);
}

// Return the best expert of those that the threads allow; if there are none, its number is MOST.
candidate best_expert(uint allowed)
{
    candidate mine = candidate(MINUS_INFINITY, MOST);
    for (int i = 0; i < EACH; i++) {
        const float key = nj_keys[thread() * EACH + i];
        if ((allowed >> i & 1u) != 0u && (mine.e == MOST || key > mine.key))
            mine = candidate(key, thread() % WIDTH + WIDTH * i);
    }
    return best_of_group(mine);
}

uint bit_of(int e)
{
    return e % WIDTH == thread() % WIDTH && e < MOST ? 1u << e / WIDTH : 0u;
}

uint of_group(int g, int size)
{
    uint its = 0u;
    for (int i = 0; i < EACH; i++)
        its |= (thread() % WIDTH + WIDTH * i) / size == g ? 1u << i : 0u;
    return its;
}

// Return which of the thread's experts belong to the best groups.
uint best_groups(uint all)
{
    const int size = E / G;
    candidate mine = candidate(MINUS_INFINITY, MOST); // thread g has group g
    for (int g = 0; g < G; g++) {
        const uint its = of_group(g, size) & all;
        const candidate best = best_expert(its);
        float sum = best.key;
        if (size > 1)
            sum += best_expert(its & ~bit_of(best.e)).key;
        if (thread() % WIDTH == g)
            mine = candidate(is_nan(sum) ? MINUS_INFINITY : sum, g);
    }
    uint kept = 0u;
    for (int k = 0; k < groups_used; k++) {
        const candidate best = best_of_group(mine);
        if (mine.e == best.e)
            mine = candidate(MINUS_INFINITY, MOST);
        kept |= of_group(best.e, size);
    }
    return kept & all;
}

float score_of(float logit, float top)
{
    return rule == SIGMOID ? sigmoid(logit) : rule == TOP_SOFTMAX ? logit : nj_exp(logit - top);
}

float below_all(float x)
{
    return is_nan(x) ? MINUS_INFINITY : x;
}

void nj_expert_route()
{
    const int lane = thread() % WIDTH, n = block_x() * (NJ_THREADS / WIDTH) + thread() / WIDTH;
    nj_f32 row = from(logits, int64_t(min(n, N - 1)) * E);
    uint allowed = 0u;
    float most = MINUS_INFINITY, sum = 0.0;
    for (int e = lane; e < E; e += WIDTH) {
        allowed |= 1u << e / WIDTH;
        most = max(most, below_all(row.v[e]));
    }
    const float top = best_of_group(candidate(most, 0)).key;
    for (int e = lane; e < E && rule == SOFTMAX; e += WIDTH)
        sum += score_of(row.v[e], top);
    sum = group_sum(sum, WIDTH);
    const float part = rule == SOFTMAX ? 1.0 / sum : 1.0;
    for (int e = lane; e < E; e += WIDTH)
        nj_keys[thread() * EACH + e / WIDTH] =
            below_all(score_of(row.v[e], top) * part + (given(bias) ? bias.v[e] : 0.0));
    if (G > 1)
        allowed = best_groups(allowed);
    for (int e = lane; e < E && !given(bias); e += WIDTH) // scores that are rounded may be equal
        nj_keys[thread() * EACH + e / WIDTH] = below_all(row.v[e]);

    // Thread j of the group keeps the j-th expert.
    int its = 0;
    for (int j = 0; j < J; j++) {
        const candidate best = best_expert(allowed);
        allowed &= ~bit_of(best.e);
        its = lane == j ? best.e : its;
    }
    const float logit = lane < J ? row.v[its] : MINUS_INFINITY;
    const float chosen_top = best_of_group(candidate(below_all(logit), 0)).key;
    float share = rule == TOP_SOFTMAX ? nj_exp(logit - chosen_top) : score_of(logit, top) * part;
    const float total = group_sum(lane < J ? share : 0.0, WIDTH);
    if (renormalize != 0 || rule == TOP_SOFTMAX)
        share /= total + eps;
    if (lane < J && n < N) {
        from_i32(chosen, int64_t(n) * J).v[lane] = its;
        from(weight, int64_t(n) * J).v[lane] = scale * share;
    }
}
