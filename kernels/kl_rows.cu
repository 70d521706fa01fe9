// SPDX-License-Identifier: Apache-2.0
#include "kd_head.cuh"

// Sums of one of the two models over the columns that a thread has seen, relative to a shift that is at most the margin
// below its largest logit.
struct kl_side {
    float shift = LOWEST;
    float sum = 0;  // exp(x/tau)
    float mean = 0; // x exp(x/tau)
    float diff = 0; // (t - s) exp(x/tau)
    scan_max max;

    __device__ __forceinline__ void move(float to, float per_tau)
    {
        const float factor = exp2_fast((shift - to) * per_tau);
        sum *= factor;
        mean *= factor;
        diff *= factor;
        shift = to;
    }
    template <typename V_T>
    __device__ __forceinline__ void follow(V_T &x, int c, int V, float per_tau, float margin)
    {
        const float top = max.take(x, c, V);
        if (top > shift + margin)
            move(top, per_tau);
    }
    template <typename V_T>
    __device__ __forceinline__ void add(const V_T &x, const V_T &s, const V_T &t, float per_tau)
    {
        const float offset = -shift * per_tau;
#pragma unroll
        for (int i = 0; i < V_T::N; i++) {
            const float e = exp2_fast(fmaf(x.v[i], per_tau, offset));
            sum += e;
            mean = fmaf(e, x.v[i], mean);
            diff = fmaf(e, t.v[i] - s.v[i], diff);
        }
    }
};

template <typename T>
static __device__ __forceinline__ void
kl_rows(float *forward, float *reverse, float *entropy, float *counted, const T *s, const T *t,
        const int *target, int M, int V, int Vs, int Vt, float tau)
{
    const int64_t m = blockIdx.x;
    if (target[m] < 0) {
        if (threadIdx.x == 0)
            forward[m] = reverse[m] = entropy[m] = counted[m] = 0;
        return;
    }
    const float per_tau = KD_LOG2E / tau;
    const float margin = 16 * fminf(1, tau); // exp(16) times the columns is far from overflow
    kl_side a, b;
    kd_each<T, KD_ANY_TAU>(s + m * Vs, t + m * Vt, V, [&](vec<T> &x, vec<T> &y, int c) {
        a.follow(x, c, V, per_tau, margin);
        b.follow(y, c, V, per_tau, margin);
        a.add(x, x, y, per_tau);
        b.add(y, x, y, per_tau);
    });
    const float s_top = block_max<T>(a.max.top), t_top = block_max<T>(b.max.top);
    a.move(s_top, per_tau);
    b.move(t_top, per_tau);
    float all[5] = {a.sum, a.mean, a.diff, b.sum, b.diff};
    block_sums<T>(all);
    if (threadIdx.x > 0)
        return;
    const float s_log = logf(all[0]), gap = (t_top - s_top) / tau + (logf(all[3]) - s_log);
    forward[m] = all[4] / (all[3] * tau) - gap;
    reverse[m] = gap - all[2] / (all[0] * tau);
    entropy[m] = (s_top - all[1] / all[0]) / tau + s_log;
    counted[m] = 1;
}
