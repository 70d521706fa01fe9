// SPDX-License-Identifier: Apache-2.0
//
// expert_gemm_dw_wgmma.cu: sums over the places of an expert, by the ring of gemm.cuh. A stage has 64 places: two
// panels of 64 columns of dy, and four of x. The first warpgroup copies them with cp.async, because rows are named by
// an index and end with the expert. Each of the others has one of the panels of dy, whose columns are the rows of its
// result, so it reads them across, into registers.
#include "expert_gemm.cuh"

constexpr int PANEL_BYTES = TILE_K * 128;

// Tile i of the gradients, 128 rows and 256 columns of the matrices of an expert.
struct gradient_tile {
    int expert, row, column, begin, end; // and the expert's places

    __device__ __forceinline__ gradient_tile(const int *first, int i, int rows, int C)
    {
        const int down = (rows + TILE_M - 1) / TILE_M, across = (C + TILE_N - 1) / TILE_N;
        expert = i / (down * across);
        row = i / across % down * TILE_M;
        column = i % across * TILE_N;
        begin = first[expert];
        end = first[expert + 1];
    }
    __device__ __forceinline__ int steps() const { return (end - begin + TILE_K - 1) / TILE_K; }
};

// Start the copies of a stage's panels of an array with `columns` columns, from column c on. The places of the thread
// begin at p, 16 apart.
template <int PANELS>
static __device__ __forceinline__ void copy_panels(uint32_t to, const lp *of, const int *index,
                                                   int columns, int c, int p, int end)
{
    const int chunk = threadIdx.x % 8, mine = threadIdx.x / 8;
#pragma unroll
    for (int i = 0; i < TILE_K / 16; i++) {
        const bool there = p + 16 * i < end;
        const int64_t row = !there ? 0 : index ? index[p + 16 * i] : p + 16 * i;
        const lp *const from = of + row * columns + c + chunk * 8;
#pragma unroll
        for (int n = 0; n < PANELS; n++) {
            const bool valid = there && c + n * PANEL + chunk * 8 < columns;
            cp16_at(to + n * PANEL_BYTES + tile_at<lp, PANEL>(mine + 16 * i, chunk) * 2,
                    valid ? from + n * PANEL : of, valid);
        }
    }
}

// Add up a panel of dy, times the four of x, over the stages of a tile.
static __device__ __forceinline__ void sum_places(float (&d)[TILE_N / 8][4], ring &r, int steps)
{
    const int lane = lane_id(), warp = threadIdx.x % WARPGROUP / 32;
    const int row = lane % 8 + lane / 16 * 8, chunk = 2 * warp + lane / 8 % 2;
    const uint32_t at =
        (warpgroup_id() - 1) * PANEL_BYTES + tile_at<lp, PANEL>(row, chunk) * sizeof(lp);
#pragma unroll
    for (int n = 0; n < TILE_N / 8; n++)
        d[n][0] = d[n][1] = d[n][2] = d[n][3] = 0;
    for (int k = 0; k < steps; k++, r.next()) {
        uint32_t a[TILE_K / 16][4];
        barrier_wait(r.full(), r.phase);
#pragma unroll
        for (int i = 0; i < TILE_K / 16; i++)
            ldmatrix4_trans(a[i], r.a() + at + i * 16 * 128);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < TILE_K / 16; i++)
            wgmma<1>(d, a[i], part_of_b<1>(r.b(), i), true);
        wgmma_commit();
        wgmma_wait<0>();
        keep(d);
        __syncwarp();
        if (lane == 0) // other warps say themselves what they have read into registers
            barrier_arrive(r.empty(), 0);
    }
}

// Store two rows of a warp's sums, 8 apart; row: the first of the warp in the matrices of an expert.
static __device__ __forceinline__ void store_sums(float *dw, const gradient_tile &t, int row, int E,
                                                  int M, int rows, int C, bool add,
                                                  const float (&d)[TILE_N / 8][4])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int k = row + lane_id() / 4 + 8 * h, c = t.column + lane_id() % 4 * 2;
        const int64_t at = k < M ? (int64_t)t.expert * M + k : ((int64_t)E + t.expert - 1) * M + k;
        float2 *const to = reinterpret_cast<float2 *>(dw + at * C + c);
#pragma unroll
        for (int n = 0; n < TILE_N / 8; n++) {
            float2 out = make_float2(d[n][2 * h], d[n][2 * h + 1]);
            if (k >= rows || c + 8 * n >= C)
                continue;
            if (add) {
                out.x += to[4 * n].x;
                out.y += to[4 * n].y;
            }
            to[4 * n] = out;
        }
    }
}

template <typename T>
static __device__ __forceinline__ void
expert_gemm_dw_wgmma(float *dw, const T *dy, const int *dy_row, const T *x, const int *x_row,
                     const int *first, int, int, int, int E, int M, int C, int Q, int, int add)
{
    extern __shared__ unsigned char shared[];
    ring r(shared, warpgroup_id() == 0);
    const int rows = Q * M;
    const int tiles = E * ((rows + TILE_M - 1) / TILE_M) * ((C + TILE_N - 1) / TILE_N);
    if (threadIdx.x == 0)
        r.init<1>(WARPGROUP / 32, 2 * WARPGROUP / 32);
    __syncthreads();
    if (warpgroup_id() == 0) {
        int filled = 0;
        registers_fewer();
        for (int i = blockIdx.x; i < tiles; i += gridDim.x) {
            const gradient_tile t(first, i, rows, C);
            for (int p = t.begin; p < t.end; p += TILE_K, r.next(), filled++) {
                const int mine = p + threadIdx.x / 8;
                barrier_wait(r.empty(), r.phase);
                copy_panels<2>(r.a(), dy, dy_row, rows, t.row, mine, t.end);
                copy_panels<4>(r.b(), x, x_row, C, t.column, mine, t.end);
                panels_commit();
                if (filled >= BEHIND)
                    rows_arrived<BEHIND>(r.full_of((r.stage + STAGES - BEHIND) % STAGES));
            }
        }
        for (int n = min(filled, BEHIND); n > 0; n--)
            rows_arrived<0>(r.full_of((r.stage + STAGES - n) % STAGES));
        return;
    }
    registers_more();
    for (int i = blockIdx.x; i < tiles; i += gridDim.x) {
        const gradient_tile t(first, i, rows, C);
        float d[TILE_N / 8][4];
        sum_places(d, r, t.steps());
        store_sums(dw, t, t.row + (threadIdx.x - WARPGROUP) / 32 * 16, E, M, rows, C, add, d);
    }
}
