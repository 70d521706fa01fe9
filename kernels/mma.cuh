// SPDX-License-Identifier: Apache-2.0
//
// mma.cuh: matrix products of the attention kernels. A warp owns 16 rows; with g = lane/4, t = lane%4 a lane works on
// rows g and g+8, in both element types:
//
//    rows16  16 rows, D wide: the left factor, kept throughout (lp: registers; float: read again)
//    scores  s = rows tile^T; s[n][0..1] are columns 8n+2t, 8n+2t+1 of row g, s[n][2..3] of row g+8
//    acc16   16 rows, D wide, of sums: acc += p tile, with p laid out like s
//
// lp runs on tensor cores and rounds p to lp; float runs on plain multiply-adds.
#ifndef NOJIT_MMA_CUH
#define NOJIT_MMA_CUH

#include "ptx.cuh"

static __device__ __forceinline__ int lane_id()
{
    return threadIdx.x % 32;
}

// Store 16 bytes in one access; the compiler would make four of some.
static __device__ __forceinline__ void global_store16(void *to, const uint32_t (&w)[4])
{
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w[0]), "r"(w[1]),
                 "r"(w[2]), "r"(w[3])
                 : "memory");
}

// Exchange b of the lanes without this bit with a of the lanes with it.
static __device__ __forceinline__ void exchange(uint32_t &a, uint32_t &b, int bit)
{
    const bool mine = lane_id() & bit;
    const uint32_t other = __shfl_xor_sync(0xffffffffu, mine ? a : b, bit);
    a = mine ? other : a;
    b = mine ? b : other;
}

// Transpose four words of each of four neighbouring lanes: lane t gets the t-th word of each.
static __device__ __forceinline__ void quad_transpose(uint32_t (&w)[4])
{
    exchange(w[0], w[2], 2);
    exchange(w[1], w[3], 2);
    exchange(w[0], w[1], 1);
    exchange(w[2], w[3], 1);
}

// Return the offset of 16-byte chunk `chunk` of a row of a tile in shared memory. Eight rows of one chunk, as ldmatrix
// reads them, lie in different banks.
template <typename T, int D> static __device__ __forceinline__ int tile_at(int row, int chunk)
{
    if constexpr (sizeof(T) == 4)
        return row * D + chunk * 4;
    else
        return row * D + (chunk ^ (row & 7)) * 8;
}

// Return the address for ldmatrix where a lane steps through the chunks of one row: the address of chunk 2k + half
// (half is 0 or 1) is tile_row(...) ^ 32 k. Tiles lie at multiples of 512 bytes.
template <typename T, int D>
static __device__ __forceinline__ uint32_t tile_row(const T *tile, int row, int half)
{
    return shared_address(tile + tile_at<T, D>(row, half));
}

// Start the copy of rows [row, row + ROWS) of src into a tile; rows from `limit` on become zero.
template <typename T, int D, int ROWS>
static __device__ __forceinline__ void tile_load(T *tile, const T *src, int ld, int row, int limit)
{
    constexpr int N = vec<T>::N, CHUNKS = D / N;
    static_assert(NJ_THREADS % CHUNKS == 0, "a thread copies the same chunk of each of its rows");
    const int chunk = threadIdx.x % CHUNKS;
#pragma unroll
    for (int i = 0; i < (ROWS * CHUNKS + NJ_THREADS - 1) / NJ_THREADS; i++) {
        const int r = threadIdx.x / CHUNKS + i * (NJ_THREADS / CHUNKS);
        if (ROWS * CHUNKS % NJ_THREADS != 0 && r >= ROWS)
            break;
        cp16(tile + tile_at<T, D>(r, chunk),
             src + (int64_t)min(row + r, limit - 1) * ld + chunk * N, row + r < limit);
    }
}

// 16 rows in registers. Rows beyond the limit repeat the last one: their results are finite and are never stored.
template <typename T, int D> struct rows16 {
    uint32_t a[D / 16][4];

    __device__ __forceinline__ void load(const T *src, int ld, int row, int limit)
    {
        const int g = lane_id() / 4, t = lane_id() % 4;
        const T *p0 = src + (int64_t)min(row + g, limit - 1) * ld + 2 * t;
        const T *p1 = src + (int64_t)min(row + g + 8, limit - 1) * ld + 2 * t;
#pragma unroll
        for (int k = 0; k < D / 16; k++) {
            a[k][0] = *reinterpret_cast<const uint32_t *>(p0 + 16 * k);
            a[k][1] = *reinterpret_cast<const uint32_t *>(p1 + 16 * k);
            a[k][2] = *reinterpret_cast<const uint32_t *>(p0 + 16 * k + 8);
            a[k][3] = *reinterpret_cast<const uint32_t *>(p1 + 16 * k + 8);
        }
    }
    __device__ __forceinline__ void get(uint32_t (&out)[4], int k) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
            out[i] = a[k][i];
    }
};

// The same rows left in a tile in shared memory, where registers are scarce.
template <typename T, int D> struct rows16_shared {
    const T *tile;

    __device__ __forceinline__ void get(uint32_t (&out)[4], int k) const
    {
        ldmatrix4(out, tile_row<T, D>(tile, lane_id() & 15, lane_id() >> 4) ^ 32 * k);
    }
};

template <int D> struct rows16<float, D> {
    const float *p[2];

    __device__ __forceinline__ void load(const float *src, int ld, int row, int limit)
    {
        const int g = lane_id() / 4;
        p[0] = src + (int64_t)min(row + g, limit - 1) * ld;
        p[1] = src + (int64_t)min(row + g + 8, limit - 1) * ld;
    }
};

static __device__ __forceinline__ float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

static __device__ __forceinline__ float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

static __device__ __forceinline__ float dot4(float4 a, float4 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

// Compute s = rows tile^T over N rows of the tile.
template <typename T, int D, int N, typename Rows>
static __device__ __forceinline__ void scores(float (&s)[N / 8][4], const Rows &rows, const T *tile)
{
    const int lane = lane_id();
#pragma unroll
    for (int n = 0; n < N / 8; n++)
        s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0;
    if constexpr (sizeof(T) == 2) {
        const uint32_t p = tile_row<T, D>(tile, (lane & 7) + (lane >> 4) * 8, lane >> 3 & 1);
#pragma unroll
        for (int k = 0; k < D / 16; k++) {
            uint32_t a[4];
            rows.get(a, k);
#pragma unroll
            for (int n = 0; n < N / 16; n++) {
                uint32_t b[4];
                ldmatrix4(b, (p ^ 32 * k) + n * 16 * D * sizeof(T)); // 16 rows, two chunks
                mma16816(s[2 * n], a, b[0], b[1]);
                mma16816(s[2 * n + 1], a, b[2], b[3]);
            }
        }
    } else {
        const int t = lane % 4; // this lane's columns: chunks t, t+4, ...
#pragma unroll
        for (int n = 0; n < N / 8; n++) {
            float part[8][2] = {};
#pragma unroll 1
            for (int k = 0; k < D / 16; k++) {
                const int chunk = t + 4 * k;
                const float4 x0 = reinterpret_cast<const float4 *>(rows.p[0])[chunk];
                const float4 x1 = reinterpret_cast<const float4 *>(rows.p[1])[chunk];
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    const float4 y =
                        *reinterpret_cast<const float4 *>(tile + tile_at<T, D>(8 * n + j, chunk));
                    part[j][0] += dot4(x0, y);
                    part[j][1] += dot4(x1, y);
                }
            }
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const float s0 = quad_sum(part[j][0]), s1 = quad_sum(part[j][1]);
                if (j / 2 == t) {
                    s[n][j % 2] = s0;
                    s[n][2 + j % 2] = s1;
                }
            }
        }
    }
}

template <typename T, int D> struct acc16 {
    // lp: c[n] has the layout of mma, for columns from 8n on.
    // float: c[r * D/16 + k] is chunk t + 4k of row g + 8r.
    float c[D / 8][4];

    // Return which of the lane's two rows c[n][e] belongs to.
    static __device__ __forceinline__ constexpr int row_of(int n, int e)
    {
        return sizeof(T) == 4 ? n / (D / 16) : e / 2;
    }
    __device__ __forceinline__ void zero()
    {
#pragma unroll
        for (int n = 0; n < D / 8; n++)
            c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
    }
    __device__ __forceinline__ void multiply(float f0, float f1)
    {
#pragma unroll
        for (int n = 0; n < D / 8; n++) {
#pragma unroll
            for (int e = 0; e < 4; e++)
                c[n][e] *= row_of(n, e) ? f1 : f0;
        }
    }
    // Store those of the rows row + 0..15 that lie below the limit.
    __device__ __forceinline__ void store(T *dst, int ld, int row, int limit) const
    {
        const int g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const bool inside = row + g + 8 * r < limit;
            T *p = dst + (int64_t)(row + g + 8 * r) * ld;
            if constexpr (sizeof(T) == 2) {
                // whole sectors of 32 bytes: a lane stores eight neighbouring columns
#pragma unroll
                for (int q = 0; q < D / 32; q++) {
                    uint32_t w[4];
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        w[j] = pack2(c[4 * q + j][2 * r], c[4 * q + j][2 * r + 1]);
                    quad_transpose(w);
                    if (inside)
                        global_store16(p + 32 * q + 8 * t, w);
                }
            } else if (inside) {
#pragma unroll
                for (int k = 0; k < D / 16; k++) {
                    const float *v = c[r * (D / 16) + k];
                    reinterpret_cast<float4 *>(p)[t + 4 * k] = make_float4(v[0], v[1], v[2], v[3]);
                }
            }
        }
    }
};

// Add p tile to acc, over N rows of the tile; of tiles wider than acc, over the columns that begin at `tile`.
template <typename T, int D, int N, int W>
static __device__ __forceinline__ void accumulate(acc16<T, W> &acc, const float (&p)[N / 8][4],
                                                  const T *tile)
{
    const int lane = lane_id();
    if constexpr (sizeof(T) == 2) {
        const uint32_t y = tile_row<T, D>(tile, lane & 15, lane >> 4);
#pragma unroll
        for (int k = 0; k < N / 16; k++) {
            const uint32_t a[4] = {pack2(p[2 * k][0], p[2 * k][1]), pack2(p[2 * k][2], p[2 * k][3]),
                                   pack2(p[2 * k + 1][0], p[2 * k + 1][1]),
                                   pack2(p[2 * k + 1][2], p[2 * k + 1][3])};
#pragma unroll
            for (int n = 0; n < W / 16; n++) {
                uint32_t b[4];
                ldmatrix4_trans(b, (y ^ 32 * n) + k * 16 * D * sizeof(T));
                mma16816(acc.c[2 * n], a, b[0], b[1]);
                mma16816(acc.c[2 * n + 1], a, b[2], b[3]);
            }
        }
    } else {
        const int t = lane % 4;
#pragma unroll
        for (int j = 0; j < N; j++) {
            const int owner = (lane & 28) + j % 8 / 2;
            const float p0 = __shfl_sync(0xffffffffu, p[j / 8][j % 2], owner);
            const float p1 = __shfl_sync(0xffffffffu, p[j / 8][2 + j % 2], owner);
#pragma unroll
            for (int k = 0; k < W / 16; k++) {
                const float *y = tile + tile_at<T, D>(j, t + 4 * k);
                const float4 v = *reinterpret_cast<const float4 *>(y);
                float *c0 = acc.c[k], *c1 = acc.c[W / 16 + k];
                c0[0] += p0 * v.x, c0[1] += p0 * v.y, c0[2] += p0 * v.z, c0[3] += p0 * v.w;
                c1[0] += p1 * v.x, c1[1] += p1 * v.y, c1[2] += p1 * v.z, c1[3] += p1 * v.w;
            }
        }
    }
}

// Return the first key that row i sees, in a document from `start` on. A window is a number of keys, the row's own
// among them; 0: none.
static __device__ __forceinline__ int first_seen(int start, int i, int window)
{
    return window > 0 ? max(start, i - window + 1) : start;
}

// The first key that each row of sequence b sees; rows beyond S repeat the last one.
struct key_starts {
    const int32_t *doc_start; // NULL: a document for each sequence
    int b, S, window;

    __device__ __forceinline__ int operator()(int i) const
    {
        i = min(i, S - 1);
        return first_seen(doc_start ? doc_start[(int64_t)b * S + i] : 0, i, window);
    }
};

// Return the first query whose window has no key before `end`; S: there is none.
static __device__ __forceinline__ int window_end(int end, int window, int S)
{
    return window > 0 && window <= S - end ? end - 1 + window : S;
}

// Columns of the heads in a fused row: H query heads, K key heads, K value heads, each D wide.
template <int D> struct heads {
    int row;     // elements of a row
    int q, k, v; // columns of the query head and of its key and value head

    __device__ __forceinline__ heads(int H, int K, int head)
    {
        const int kv = head / (H / K);
        row = (H + 2 * K) * D;
        q = head * D;
        k = (H + kv) * D;
        v = (H + K + kv) * D;
    }
};

#endif
