// SPDX-License-Identifier: Apache-2.0
#include "philox.cuh"
#include "ptx.cuh"

constexpr int TOKENS = 8;       // tokens of a group
constexpr int CALL = 4;         // groups whose noise comes from one call of Philox
constexpr int TILE = 32 * CALL; // groups that a warp takes at a time
constexpr float LOG_2 = 0.69314718f;
constexpr unsigned ALL = 0xffffffffu;
constexpr float LOWEST = -3.40282347e38f; // no finite score is lower

// The logits of a group as they are in memory.
template <typename T> struct sample_bits {
    typedef vec<T> part;
    static constexpr int PARTS = TOKENS / part::N;
    typename part::raw of[PARTS];

    __device__ __forceinline__ void read(const T *p)
    {
#pragma unroll
        for (int i = 0; i < PARTS; i++)
            of[i] = part::read(p + i * part::N);
    }
};

struct sample_group {
    float x[TOKENS];

    template <typename T>
    explicit __device__ __forceinline__ sample_group(const sample_bits<T> &bits)
    {
        constexpr int N = vec<T>::N;
#pragma unroll
        for (int i = 0; i < TOKENS; i++)
            x[i] = vec<T>::of(bits.of[i / N]).v[i % N];
    }
    __device__ __forceinline__ float largest() const
    {
        float m = x[0];
#pragma unroll
        for (int i = 1; i < TOKENS; i++)
            m = fmaxf(m, x[i]);
        return m;
    }
};

// Return -log(u) for u = 1 - (w + 1/2)/2^32, by a series for small w and by a logarithm otherwise.
static __device__ __forceinline__ float exponential(uint32_t w)
{
    const float y = ((float)w + 0.5f) * 0x1p-32f, u = ((float)~w + 0.5f) * 0x1p-32f;
    const float series = y * (1 + y * (0.5f + y * (0.33333333f + y * (0.25f + y * 0.2f))));
    return y < 0.1f ? series : -LOG_2 * lg2(u);
}

// Return an upper bound of log(s) - log(-log(u)): s is at most 8, and -log(u) at least w/2^32. 0.001 covers rounding.
static __device__ __forceinline__ float most_noise(uint32_t w)
{
    constexpr float LOG_8 = 2.0794415f;
    return fmaf(-LOG_2, lg2((float)w), LOG_8 + 32 * LOG_2 + 0.001f);
}

// A row, and the parameters of sampling. At tau 0 scores have no noise, and only the largest token of a group has a
// weight.
template <typename T> struct sample_row {
    const T *x;
    int V;
    float least, tau, inv_tau, factor; // factor: log2(e) / tau
    uint32_t pos, number;
    uint2 seed;

    __device__ __forceinline__ uint4 words(int counter, uint32_t stream) const
    {
        return philox(make_uint4(counter, pos, number, stream), seed);
    }
    __device__ __forceinline__ void read(sample_bits<T> &bits, int q) const
    {
        bits.read(x + q * TOKENS);
    }
    // Return an upper bound of the scores of the group. The largest logit may be one beyond V, which only loosens the
    // bound.
    __device__ __forceinline__ float bound(float largest, uint32_t w) const
    {
        const float noise = tau == 0 ? 0 : most_noise(w);
        return largest >= least ? fmaf(largest, inv_tau, noise) : -INFINITY;
    }
    // Return the logits of the tokens that take part, -inf for others.
    __device__ __forceinline__ sample_group candidates(int q) const
    {
        sample_bits<T> bits;
        read(bits, q);
        sample_group g(bits);
#pragma unroll
        for (int i = 0; i < TOKENS; i++)
            g.x[i] = q * TOKENS + i < V && g.x[i] >= least ? g.x[i] : -INFINITY;
        return g;
    }
    __device__ __forceinline__ float weight(float logit, float largest) const
    {
        return logit == largest ? 1.0f : ex2((logit - largest) * factor);
    }
    __device__ __forceinline__ float sum(const sample_group &g, float largest) const
    {
        float s = 0;
#pragma unroll
        for (int i = 0; i < TOKENS; i++)
            s += weight(g.x[i], largest);
        return s;
    }
    __device__ __forceinline__ float score(int q, uint32_t w) const
    {
        const sample_group g = candidates(q);
        const float largest = g.largest();
        const float noise = tau == 0 ? 0 : LOG_2 * (lg2(sum(g, largest)) - lg2(exponential(w)));
        return fmaf(largest, inv_tau, noise);
    }
    // Draw a token of the group by weight.
    __device__ __forceinline__ int draw(int q) const
    {
        constexpr uint32_t OF_TOKEN = 0x746f6b6eu;
        const sample_group g = candidates(q);
        const float largest = g.largest();
        const float u = ((float)words(q, OF_TOKEN).x + 0.5f) * 0x1p-32f;
        const float wanted = tau == 0 ? 1 : u * sum(g, largest);
        float s = 0;
        int at = 0;
#pragma unroll
        for (int i = 0; i < TOKENS; i++) {
            at = s < wanted ? i : at;
            s += weight(g.x[i], largest);
        }
        return q * TOKENS + at;
    }
};

// Map the bits of a float to an integer with the order of the floats, and back.
static __device__ __forceinline__ int in_order(int bits)
{
    return bits ^ (bits >> 31 & 0x7fffffff);
}

// The best group so far. Groups come in no particular order: among equal scores the lowest group wins.
struct sample_best {
    float top;
    int group;

    __device__ __forceinline__ void offer(float score, int q)
    {
        const bool wins = score > top || (score == top && (unsigned)q < (unsigned)group);
        top = wins ? score : top;
        group = wins ? q : group;
    }
    // Return the highest score that the block has seen. It may be out of date: it only decides which groups are
    // examined, not which one wins.
    __device__ __forceinline__ float seen(int *bar) const
    {
        const float warp = warp_max(top);
        int before = 0;
        if (threadIdx.x % 32 == 0)
            before = atomicMax(bar, in_order(__float_as_int(warp)));
        return fmaxf(warp, __int_as_float(in_order(__shfl_sync(ALL, before, 0))));
    }
    __device__ __forceinline__ void merge_lanes()
    {
#pragma unroll
        for (int d = 16; d > 0; d /= 2)
            offer(__shfl_xor_sync(ALL, top, d), __shfl_xor_sync(ALL, group, d));
    }
};

// Score 128 neighbouring groups, of which those from first to last - 1 count. A lane reads every 32nd, and examines
// those that may beat the best that the block has seen, the most promising first. One call makes the noise of 4
// neighbours.
template <typename T>
static __device__ __forceinline__ void sample_tile(sample_best &best, float &top, int *bar,
                                                   uint4 *words, const sample_row<T> &row, int base,
                                                   int first, int last)
{
    constexpr uint32_t OF_GROUP = 0x73616d70u;
    const int lane = threadIdx.x % 32;
    const uint32_t *word = reinterpret_cast<const uint32_t *>(words) + lane;
    sample_bits<T> bits[CALL];
    bool inside[CALL];
#pragma unroll
    for (int i = 0; i < CALL; i++) {
        const int q = base + 32 * i + lane;
        inside[i] = (unsigned)(q - first) < (unsigned)(last - first);
        if (inside[i])
            row.read(bits[i], q);
    }
    __syncwarp();
    words[lane] = row.words(base / CALL + lane, OF_GROUP);
    __syncwarp();
    float bound[CALL];
#pragma unroll
    for (int i = 0; i < CALL; i++) {
        const float most = row.bound(sample_group(bits[i]).largest(), word[32 * i]);
        bound[i] = inside[i] ? most : -INFINITY;
    }
    float high = fmaxf(fmaxf(bound[0], bound[1]), fmaxf(bound[2], bound[3]));
    while (__any_sync(ALL, high >= top)) {
        top = best.seen(bar);
        if (high >= top) {
            int at = 0;
#pragma unroll
            for (int i = 1; i < CALL; i++)
                at = bound[i] == high ? i : at;
            const int q = base + 32 * at + lane;
            best.offer(row.score(q, word[32 * at]), q);
#pragma unroll
            for (int i = 0; i < CALL; i++)
                bound[i] = i == at ? -INFINITY : bound[i];
            high = fmaxf(fmaxf(bound[0], bound[1]), fmaxf(bound[2], bound[3]));
        }
    }
}

// Sample a part of a row in each block.
template <typename T>
static __device__ __forceinline__ void sample(float *score, int *best, const T *x, const float *cut,
                                              const int32_t *slot, const int32_t *number,
                                              const int32_t *pos, int R, int V, int ld, int PARTS,
                                              float tau, int seed_low, int seed_high)
{
    constexpr int WARPS = NJ_THREADS / 32;
    __shared__ uint4 words[WARPS][32];
    __shared__ sample_best of_warp[WARPS];
    __shared__ int bar;
    const int m = blockIdx.x, part = blockIdx.y, warp = threadIdx.x / 32;
    const int groups = (V - 1) / TOKENS + 1, length = ((V - 1) / PARTS + TOKENS) / TOKENS;
    const int first = min(groups, part * length);
    const int last = slot[m] < 0 ? first : min(groups, first + length);
    const sample_row<T> row = {x + (int64_t)m * ld,
                               V,
                               cut ? cut[m] : -INFINITY,
                               tau,
                               tau == 0 ? 1 : 1 / tau,
                               LOG2_E / tau,
                               (uint32_t)pos[m],
                               (uint32_t)number[m],
                               make_uint2(seed_low, seed_high)};
    sample_best mine = {LOWEST, -1};
    float top = LOWEST;
    if (threadIdx.x == 0)
        bar = in_order(__float_as_int(LOWEST));
    __syncthreads();
    for (int base = first / CALL * CALL + warp * TILE; base < last; base += WARPS * TILE)
        sample_tile(mine, top, &bar, words[warp], row, base, first, last);
    mine.merge_lanes();
    if (threadIdx.x % 32 == 0)
        of_warp[warp] = mine;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int i = 1; i < WARPS; i++)
        mine.offer(of_warp[i].top, of_warp[i].group);
    score[(int64_t)m * PARTS + part] = mine.group < 0 ? -INFINITY : mine.top;
    best[(int64_t)m * PARTS + part] = mine.group < 0 ? -1 : row.draw(mine.group);
}
