// SPDX-License-Identifier: Apache-2.0
//
// kd_head.cuh: the rows of kd_head, kd_head_e5m2 and tv_head, one block per row of logits. The first pass computes
// every sum that the losses and the gradient need; the last writes the gradient. The last pass runs backwards, so that
// it starts with the data that is still in the caches. Between them, the mixture (0 < beta < 1) and the total variation
// distance need one more pass, because they take normalized probabilities.
#ifndef NOJIT_KD_HEAD_CUH
#define NOJIT_KD_HEAD_CUH

#include "argmax.cuh"

enum kd_mode {
    KD_NONE,    // no teacher
    KD_ANY_TAU, // KL(teacher || student), with separate exponentials for tau and 1
    KD_TAU_TWO, // the same for tau = 2, with exp(s) = exp(s/2)^2
    KD_REVERSE, // KL(student || teacher)
    KD_MIXED,   // divergences of both from their mixture
    KD_TV,      // total variation distance
};

#define KD_LOG2E 1.44269504f
#define KD_LN2 0.693147181f
#define KD_BATCH 2 // accesses in flight for each array

// Sums over the columns that a thread has seen, relative to a shift that is at most the margin below the largest logit.
template <int MODE> struct kd_sums {
    static constexpr bool FORWARD = MODE == KD_ANY_TAU || MODE == KD_TAU_TWO;
    float s_shift = LOWEST, t_shift = LOWEST;
    float s_one = 0, s_tau = 0; // exp(s), exp(s/tau)
    float t_tau = 0;            // exp(t/tau)
    float diff = 0;             // (t - s) exp(t/tau), or exp(s/tau) for KD_REVERSE
    float t_mean = 0;           // exp(t/tau) t
    scan_max s_max, t_max;

    __device__ __forceinline__ void shift_student(float shift, float tau)
    {
        s_one *= exp2_fast((s_shift - shift) * KD_LOG2E);
        const float factor = exp2_fast((s_shift - shift) * (KD_LOG2E / tau));
        s_tau *= factor;
        if (MODE == KD_REVERSE)
            diff *= factor;
        s_shift = shift;
    }
    __device__ __forceinline__ void shift_teacher(float shift, float tau)
    {
        const float factor = exp2_fast((t_shift - shift) * (KD_LOG2E / tau));
        t_tau *= factor;
        if (FORWARD)
            diff *= factor;
        t_mean *= factor;
        t_shift = shift;
    }
    template <typename V_T>
    __device__ __forceinline__ void take(V_T &s, V_T &t, int c, int V, float tau, float margin)
    {
        const float s_top = s_max.take(s, c, V);
        if (s_top > s_shift + margin)
            shift_student(s_top, tau);
        if (MODE != KD_NONE) {
            const float t_top = t_max.take(t, c, V);
            if (t_top > t_shift + margin)
                shift_teacher(t_top, tau);
        }
        const float per_tau = KD_LOG2E / tau, s_tau_off = -s_shift * per_tau;
        const float s_one_off = -s_shift * KD_LOG2E, t_tau_off = -t_shift * per_tau;
#pragma unroll
        for (int i = 0; i < V_T::N; i++) {
            if (MODE == KD_NONE) {
                s_one += exp2_fast(fmaf(s.v[i], KD_LOG2E, s_one_off));
                continue;
            }
            const float e = exp2_fast(fmaf(s.v[i], per_tau, s_tau_off));
            s_tau += e;
            s_one = MODE == KD_TAU_TWO ? fmaf(e, e, s_one)
                                       : s_one + exp2_fast(fmaf(s.v[i], KD_LOG2E, s_one_off));
            const float p = exp2_fast(fmaf(t.v[i], per_tau, t_tau_off));
            t_tau += p;
            if (FORWARD)
                diff = fmaf(p, t.v[i] - s.v[i], diff);
            if (MODE == KD_REVERSE)
                diff = fmaf(e, t.v[i] - s.v[i], diff);
            t_mean = fmaf(p, t.v[i], t_mean);
        }
    }
};

// The logarithms of a token's probabilities q (student) and p (teacher) over m = beta p + (1 - beta) q, from log2(p /
// q). All stay finite when p or q underflows to 0.
struct kd_mixture {
    float q_log, p_log; // log2(q / m), log2(p / m)

    __device__ __forceinline__ kd_mixture(float log_ratio, float small, float beta)
    {
        const float lighter = log_ratio > 0 ? 1 - beta : beta; // weight of the smaller of p and q
        // m over the larger of p and q: 1 where they are equal, and never below the weight of the larger one
        const float m = fmaxf(fmaf(lighter, small - 1, 1.0f), fminf(beta, 1 - beta));
        const float m_log = __log2f(m);
        q_log = fminf(-log_ratio, 0.0f) - m_log;
        p_log = fminf(log_ratio, 0.0f) - m_log;
    }
};

// Return the derivative of a logit z = cap tanh(y / cap) by y. Rounding may have raised z above the cap.
static __device__ __forceinline__ float cap_slope(float z, float per_cap)
{
    const float r = z * per_cap;
    return fmaxf(fmaf(-r, r, 1.0f), 0.0f);
}

// Values that the later passes need: exponents are s * log2(e) / tau + offset, and so on.
struct kd_grad {
    float hard, soft; // weights of the cross-entropy and of the divergence
    float per_tau, s_one_off, s_tau_off, t_tau_off;
    float square; // KD_TAU_TWO: softmax(s) = softmax(s/2)^2 square
    float beta;
    // mean of h, below; KD_REVERSE, KD_MIXED: KL(student || teacher or mixture) in bits
    float mean;
    int target;
    // The student's logits are bounded by a cap: 1 / cap, and hard times the slope of the target's logit; without a cap
    // the latter is hard.
    float per_cap, hot;

    // Return log2 of the teacher's probability over the student's.
    __device__ __forceinline__ float log_ratio(float s, float t) const
    {
        return fmaf(t - s, per_tau, t_tau_off - s_tau_off);
    }
    // Return the derivative of the divergence by s / tau, over soft: q - p, or q (h - mean of h).
    template <int MODE> __device__ __forceinline__ float slope(float q, float s, float t) const
    {
        if (MODE == KD_REVERSE)
            return q * (-log_ratio(s, t) - mean);
        if (MODE == KD_MIXED) {
            const float d = log_ratio(s, t);
            return q * (kd_mixture(d, exp2_fast(-fabsf(d)), beta).q_log - mean);
        }
        const float p = exp2_fast(fmaf(t, per_tau, t_tau_off));
        return MODE == KD_TV ? q * ((p > q ? -1.0f : 0.0f) - mean) : q - p;
    }

    // Replace logits by their gradient; CAPPED: by that of the logits before the cap.
    template <int MODE, bool CAPPED, typename V_T>
    __device__ __forceinline__ void apply(V_T &s, const V_T &t, int c, int V) const
    {
#pragma unroll
        for (int i = 0; i < V_T::N; i++) {
            const float through = CAPPED ? cap_slope(s.v[i], per_cap) : 1.0f;
            if (MODE == KD_NONE) {
                s.v[i] = through * (hard * exp2_fast(fmaf(s.v[i], KD_LOG2E, s_one_off)));
                continue;
            }
            const float q = exp2_fast(fmaf(s.v[i], per_tau, s_tau_off));
            const float one =
                MODE == KD_TAU_TWO ? q * q * square : exp2_fast(fmaf(s.v[i], KD_LOG2E, s_one_off));
            s.v[i] = through * (hard * one + soft * slope<MODE>(q, s.v[i], t.v[i]));
        }
        if (target >= c && target < c + V_T::N)
#pragma unroll
            for (int i = 0; i < V_T::N; i++)
                s.v[i] -= c + i == target ? hot : 0.0f;
        if (c + V_T::N > V)
#pragma unroll
            for (int i = 0; i < V_T::N; i++)
                s.v[i] = c + i < V ? s.v[i] : 0.0f;
    }
};

// Sum K values over the block, the same in every thread. All threads must call it. T has the meaning it has in
// block_max().
template <typename T, int K> static __device__ __forceinline__ void block_sums(float (&x)[K])
{
    constexpr int WARPS = NJ_THREADS / 32;
    __shared__ float part[K][WARPS];
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < K; k++) {
        x[k] = warp_sum(x[k]);
        if (lane == 0)
            part[k][threadIdx.x / 32] = x[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; k++)
        x[k] = warp_sum(lane < WARPS ? part[k][lane] : 0.0f);
}

// Call take(student's vec, teacher's vec, first column) over the thread's share of V columns.
template <typename T, int MODE, typename F>
static __device__ __forceinline__ void kd_each(const T *s, const T *t, int V, F take)
{
    constexpr int N = vec<T>::N, STEP = NJ_THREADS * N;
    for (int first = threadIdx.x * N; first < V; first += KD_BATCH * STEP) {
        typename vec<T>::raw s_raw[KD_BATCH], t_raw[KD_BATCH];
#pragma unroll
        for (int k = 0; k < KD_BATCH; k++)
            if (first + k * STEP < V) {
                s_raw[k] = vec<T>::read(s + first + k * STEP);
                if (MODE != KD_NONE)
                    t_raw[k] = vec<T>::read(t + first + k * STEP);
            }
#pragma unroll
        for (int k = 0; k < KD_BATCH; k++)
            if (first + k * STEP < V) {
                vec<T> a, b;
                a.set(s_raw[k]);
                if (MODE != KD_NONE)
                    b.set(t_raw[k]);
                take(a, b, first + k * STEP);
            }
    }
}

template <typename T, int MODE>
static __device__ __forceinline__ kd_sums<MODE> kd_scan(const T *s, const T *t, int V, float tau)
{
    // exp(16) times the number of columns is far from overflow
    const float margin = 16 * fminf(1, tau);
    kd_sums<MODE> sums;
    kd_each<T, MODE>(s, t, V,
                     [&](vec<T> &a, vec<T> &b, int c) { sums.take(a, b, c, V, tau, margin); });
    return sums;
}

// Compute KL(student || mixture) and KL(teacher || mixture) in bits, the same in every thread.
template <typename T>
static __device__ __forceinline__ void kd_mix(const T *s, const T *t, const kd_grad &grad, int V,
                                              float (&kl)[2])
{
    kl[0] = kl[1] = 0;
    kd_each<T, KD_MIXED>(s, t, V, [&](vec<T> &a, vec<T> &b, int c) {
#pragma unroll
        for (int i = 0; i < vec<T>::N; i++) {
            const float d = grad.log_ratio(a.v[i], b.v[i]), small = exp2_fast(-fabsf(d));
            const float q = exp2_fast(fmaf(a.v[i], grad.per_tau, grad.s_tau_off));
            const float p = exp2_fast(fmaf(b.v[i], grad.per_tau, grad.t_tau_off));
            const kd_mixture m(d, small, grad.beta);
            kl[0] += c + i < V ? q * m.q_log : 0.0f;
            kl[1] += c + i < V ? p * m.p_log : 0.0f;
        }
    });
    block_sums<T>(kl);
}

// Sum, over the tokens to which the teacher gives the higher probability, p - q, which is the distance, and q; both are
// the same in every thread.
template <typename T>
static __device__ __forceinline__ void kd_distance(const T *s, const T *t, const kd_grad &grad,
                                                   int V, float (&sum)[2])
{
    sum[0] = sum[1] = 0;
    kd_each<T, KD_TV>(s, t, V, [&](vec<T> &a, vec<T> &b, int c) {
#pragma unroll
        for (int i = 0; i < vec<T>::N; i++) {
            const float q = exp2_fast(fmaf(a.v[i], grad.per_tau, grad.s_tau_off));
            const float p = exp2_fast(fmaf(b.v[i], grad.per_tau, grad.t_tau_off));
            const bool more = p > q && c + i < V;
            sum[0] += more ? p - q : 0.0f;
            sum[1] += more ? q : 0.0f;
        }
    });
    block_sums<T>(sum);
}

template <typename T, int MODE, bool CAPPED>
static __device__ __forceinline__ void kd_write(T *s, const T *t, const kd_grad &grad, int V,
                                                int Vs)
{
    constexpr int N = vec<T>::N, STEP = NJ_THREADS * N;
    const int begin = threadIdx.x * N, turns = begin < Vs ? (Vs - 1 - begin) / STEP + 1 : 0;
    for (int last = turns - 1; last >= 0; last -= KD_BATCH) {
        typename vec<T>::raw s_raw[KD_BATCH], t_raw[KD_BATCH];
#pragma unroll
        for (int k = 0; k < KD_BATCH; k++) {
            const int c = begin + (last - k) * STEP;
            s_raw[k] = t_raw[k] = {};
            if (last >= k && c < V) {
                s_raw[k] = vec<T>::read(s + c);
                if (MODE != KD_NONE)
                    t_raw[k] = vec<T>::read(t + c);
            }
        }
#pragma unroll
        for (int k = 0; k < KD_BATCH; k++)
            if (last >= k) {
                const int c = begin + (last - k) * STEP;
                vec<T> a, b;
                a.set(s_raw[k]);
                b.set(t_raw[k]);
                grad.apply<MODE, CAPPED>(a, b, c, V);
                __stcs(reinterpret_cast<typename vec<T>::raw *>(s + c), a.bits());
            }
    }
}

// Writer of the gradient in place of the logits. If `on` is false, the logits stay as they are.
template <typename T> struct kd_in_place {
    T *s;
    const T *t;
    int V, Vs;
    bool on;

    template <int MODE, bool CAPPED>
    __device__ __forceinline__ void write(const kd_grad &grad, bool) const
    {
        if (on)
            kd_write<T, MODE, CAPPED>(s, t, grad, V, Vs);
    }
    __device__ __forceinline__ void zero() const
    {
        constexpr int N = vec<T>::N;
        vec<T> none;
        none.set({});
        for (int c = threadIdx.x * N; on && c < Vs; c += NJ_THREADS * N)
            none.store(s + c);
    }
};

// The arrays for the losses of a row, and the parameters of the objective; cap: 0 if the student's logits have none.
struct kd_losses {
    float *kd, *ce, *entropy, *agree;
};
struct kd_how {
    float scale, tau, ratio, beta, cap;
};

// Compute the losses of a row. gradient.write<MODE, CAPPED>(grad, broken) makes the last pass; `broken` says that a sum
// was not finite.
template <typename T, int MODE, typename GRADIENT>
static __device__ __forceinline__ void kd_row(const T *s, const T *t, const kd_losses &to,
                                              const kd_how &how, int target, int V,
                                              const GRADIENT &gradient)
{
    const float scale = how.scale, tau = how.tau, ratio = how.ratio, beta = how.beta;
    kd_sums<MODE> sums = kd_scan<T, MODE>(s, t, V, tau);
    const float s_target = to_f32(s[target]); // read before a barrier, written after it
    float s_top, t_top = 0;
    const int s_best = block_argmax(sums.s_max, s, V, s_top);
    const int t_best = MODE == KD_NONE ? -1 : block_argmax(sums.t_max, t, V, t_top);
    sums.shift_student(s_top, tau);
    sums.shift_teacher(t_top, tau);
    float all[5] = {sums.s_one, sums.s_tau, sums.t_tau, sums.diff, sums.t_mean};
    block_sums<T>(all);
    const float s_one = all[0], s_tau = all[1], t_tau = all[2], diff = all[3], t_mean = all[4];

    if (threadIdx.x == 0) {
        to.ce[blockIdx.x] = s_top - s_target + logf(s_one);
        to.entropy[blockIdx.x] =
            MODE == KD_NONE ? 0.0f : (t_top - t_mean / t_tau) / tau + logf(t_tau);
        to.agree[blockIdx.x] = s_best == t_best ? 1.0f : 0.0f;
    }
    kd_grad grad = {};
    grad.hard = scale * (MODE == KD_NONE ? 1 : 1 - ratio);
    grad.hot = grad.hard;
    grad.soft = scale * ratio * tau;
    grad.target = target;
    grad.s_one_off = -s_top * KD_LOG2E - log2f(s_one);
    float gap = 0, loss = 0;
    if (MODE != KD_NONE) {
        grad.per_tau = KD_LOG2E / tau;
        grad.s_tau_off = -s_top * grad.per_tau - log2f(s_tau);
        grad.t_tau_off = -t_top * grad.per_tau - log2f(t_tau);
        grad.square = s_tau * s_tau / s_one;
        gap = (t_top - s_top) / tau + (logf(t_tau) - logf(s_tau));
        loss = diff / (t_tau * tau) - gap;
    }
    if (MODE == KD_REVERSE) {
        loss = gap - diff / (s_tau * tau);
        grad.mean = loss * KD_LOG2E;
        grad.soft *= KD_LN2;
    }
    if (MODE == KD_MIXED) {
        float kl[2];
        grad.beta = beta;
        kd_mix(s, t, grad, V, kl);
        loss = KD_LN2 * (beta * kl[1] + (1 - beta) * kl[0]);
        grad.mean = kl[0];
        grad.soft *= KD_LN2 * (1 - beta);
    }
    if (MODE == KD_TV) {
        float sum[2];
        kd_distance(s, t, grad, V, sum);
        loss = sum[0];
        grad.mean = -sum[1];
    }
    if (threadIdx.x == 0)
        to.kd[blockIdx.x] = loss;
    const bool broken = !isfinite(s_one + loss);
    if (how.cap > 0) {
        grad.per_cap = 1 / how.cap;
        grad.hot *= cap_slope(s_target, grad.per_cap);
        gradient.template write<MODE, true>(grad, broken);
    } else {
        gradient.template write<MODE, false>(grad, broken);
    }
}

// Handle a row without a target: its losses and its gradient are 0.
template <typename GRADIENT>
static __device__ __forceinline__ void kd_ignored(const kd_losses &to, const GRADIENT &gradient)
{
    gradient.zero();
    if (threadIdx.x == 0)
        to.kd[blockIdx.x] = to.ce[blockIdx.x] = to.entropy[blockIdx.x] = to.agree[blockIdx.x] = 0;
}

// Compute a row of kd_head, or of a kernel that writes the gradient elsewhere.
template <typename T, typename GRADIENT>
static __device__ __forceinline__ void kd_head_row(const T *s, const T *t, const kd_losses &to,
                                                   const kd_how &how, int target, int V,
                                                   const GRADIENT &gradient)
{
    if (target < 0)
        kd_ignored(to, gradient);
    else if (!t)
        kd_row<T, KD_NONE>(s, t, to, how, target, V, gradient);
    else if (how.beta >= 1)
        kd_row<T, KD_REVERSE>(s, t, to, how, target, V, gradient);
    else if (how.beta > 0)
        kd_row<T, KD_MIXED>(s, t, to, how, target, V, gradient);
    else if (how.tau == 2)
        kd_row<T, KD_TAU_TWO>(s, t, to, how, target, V, gradient);
    else
        kd_row<T, KD_ANY_TAU>(s, t, to, how, target, V, gradient);
}

#endif
