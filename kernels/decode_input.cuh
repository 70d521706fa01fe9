// SPDX-License-Identifier: Apache-2.0
//
// decode_input.cuh: the new row of a sequence, as the GEMM of queries, keys and values leaves it. A bias is added, and
// RoPE is applied to queries and the key, bitwise identical to rope_fwd. Each block computes the part that it needs, so
// none waits for another.
#ifndef NOJIT_DECODE_INPUT_CUH
#define NOJIT_DECODE_INPUT_CUH

#include "mma.cuh"
#include "rope.cuh"

// Keep the loads before this call before it: the compiler would move each to its use, so that one would wait for
// another.
static __device__ __forceinline__ void loads_first()
{
    asm volatile("" ::: "memory");
}

// Return the lane as a number unknown to the compiler, so that values derived from it are computed where they are used
// and do not occupy a register throughout a loop.
static __device__ __forceinline__ int lane_here()
{
    int lane = lane_id();
    asm volatile("" : "+r"(lane));
    return lane;
}

// Returns the position of the first key that a row sees, likewise.
static __device__ __forceinline__ int oldest_here(int pos, int window)
{
    asm volatile("" : "+r"(pos));
    return first_seen(0, pos, window);
}

template <typename T, int D> struct decode_input {
    const T *row, *bias;   // row of all heads; bias is NULL if there is none
    const float *inv_freq; // NULL: RoPE has been applied to the row already
    float amplitude;       // factor of the pairs that RoPE rotates
    int key, value;        // columns of the block's key head

    // Return the bias, or something else that can be read in its place without a branch.
    __device__ __forceinline__ const T *offset() const { return bias ? bias : row; }
    __device__ __forceinline__ float frequency(int i) const { return inv_freq ? inv_freq[i] : 0; }
    // Add the bias b by a select: behind a branch, b would be loaded too late.
    template <int N> __device__ __forceinline__ void sum(float (&x)[N], const float (&b)[N]) const
    {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = bias ? x[i] + b[i] : x[i];
    }
};

// The angles of a row, which each warp computes for itself: each lane computes some, and all go to shared memory.
template <typename T, int D> struct decode_turns {
    float frequency[D / 64];

    __device__ __forceinline__ void ask(const decode_input<T, D> &in)
    {
#pragma unroll
        for (int i = 0; i < D / 64; i++)
            frequency[i] = in.frequency(lane_id() + 32 * i);
    }
    // Return the warp's cosines, followed by their sines.
    static __device__ __forceinline__ float *its()
    {
        __shared__ __align__(16) float all[NJ_THREADS / 32][D];
        return all[threadIdx.x / 32];
    }
    __device__ __forceinline__ void take(const decode_input<T, D> &in, int pos) const
    {
        float *lane = its() + lane_id();
#pragma unroll
        for (int i = 0; i < D; i += 64)
            turn((float)pos, frequency[i / 64], in.amplitude, lane[D / 2 + i / 2], lane[i / 2]);
        __syncwarp();
    }
};

// Add the bias b to elements of a query head and rotate them; four at a time, since registers are scarce.
template <typename T, int D>
static __device__ __forceinline__ void decode_finish(const decode_input<T, D> &in, head_piece<T> &x,
                                                     const head_piece<T> &b, const float *turns)
{
    typedef vec<T, 4> four;
    typedef typename four::raw raw;
    raw *lo = reinterpret_cast<raw *>(&x.lo), *hi = reinterpret_cast<raw *>(&x.hi);
    const raw *b_lo = reinterpret_cast<const raw *>(&b.lo);
    const raw *b_hi = reinterpret_cast<const raw *>(&b.hi);
#pragma unroll
    for (int i = 0; i < vec<T>::N / 4; i++) {
        four x_lo = four::of(lo[i]), x_hi = four::of(hi[i]);
        in.sum(x_lo.v, four::of(b_lo[i]).v);
        in.sum(x_hi.v, four::of(b_hi[i]).v);
        if (in.inv_freq) {
            rotation<4> by;
            by.load(turns + 4 * i, D / 2);
            by.apply(x_lo.v, x_hi.v);
        }
        lo[i] = x_lo.bits();
        hi[i] = x_hi.bits();
    }
}

// N pieces of query heads for a lane, STEP columns apart. They are loaded together with the row's slot and position, so
// that a block waits once.
template <typename T, int D, int STEP, int N> struct decode_queries {
    head_piece<T> x[N], b[N];
    decode_turns<T, D> turns;

    __device__ __forceinline__ void ask(const decode_input<T, D> &in, int column)
    {
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[i].read(in.row + column + STEP * i, D / 2);
            b[i].read(in.offset() + column + STEP * i, D / 2);
        }
        turns.ask(in);
    }
    // Finish the pieces; the first takes the angles from `angle` on.
    __device__ __forceinline__ void take(const decode_input<T, D> &in, int pos, int angle)
    {
        turns.take(in, pos);
        const float *angles = decode_turns<T, D>::its() + angle;
#pragma unroll
        for (int i = 0; i < N; i++)
            decode_finish(in, x[i], b[i], angles + STEP * i);
    }
};

// The new key and value, in shared memory, as words of one or two elements.
template <typename T, int D> struct decode_newest {
    static constexpr int N = 4 / sizeof(T), WORDS = D / N;
    alignas(16) uint32_t k[WORDS], v[WORDS];

    // Compute them. The one warp that reaches the newest position calls this for itself, after it has taken its angles.
    __device__ __forceinline__ void begin(const decode_input<T, D> &in)
    {
        constexpr int HALF = WORDS / 2;
        const int lane = lane_here();
        const uint32_t *x = reinterpret_cast<const uint32_t *>(in.row);
        const uint32_t *b = reinterpret_cast<const uint32_t *>(in.offset());
#pragma unroll
        for (int i = lane; i < HALF; i += 32) {
            const int key = in.key / N + i, value = in.value / N + i;
            const uint32_t row[4] = {x[key], x[key + HALF], x[value], x[value + HALF]};
            const uint32_t bias[4] = {b[key], b[key + HALF], b[value], b[value + HALF]};
            float y[4][N];
            loads_first();
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float its[N];
                widen(y[e], row[e], T());
                widen(its, bias[e], T());
                in.sum(y[e], its);
            }
            if (in.inv_freq) {
                rotation<N> by;
                const float *angles = decode_turns<T, D>::its() + N * i;
#pragma unroll
                for (int n = 0; n < N; n++) {
                    by.cos_a[n] = angles[n];
                    by.sin_a[n] = angles[D / 2 + n];
                }
                by.apply(y[0], y[1]);
            }
            k[i] = narrow(y[0], T());
            k[HALF + i] = narrow(y[1], T());
            v[i] = narrow(y[2], T());
            v[HALF + i] = narrow(y[3], T());
        }
        __syncwarp();
    }
};

#endif
