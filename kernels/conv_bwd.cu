// SPDX-License-Identifier: Apache-2.0
#include "conv.cuh"

// Arrays from the thread's channels on; those of optional arguments may be NULL.
template <typename T, int W> struct conv_gradients {
    T *dx, *dgate_in, *dgate_out;
    const T *dy, *gate_out;
    int rows, X;

    __device__ __forceinline__ conv_gradients from(int c) const
    {
        return {dx + c, dgate_in ? dgate_in + c : nullptr, dgate_out ? dgate_out + c : nullptr,
                dy + c, gate_out ? gate_out + c : nullptr, rows,
                X};
    }
};

// The thread's channels of a row as they are in memory, and the first row of its document.
template <typename T, int W> struct conv_row {
    typedef channels<T, W> of;
    typename of::raw x, gate_in, dy, gate_out;
    int start;

    __device__ __forceinline__ void read(const conv_input<T, W> &in, const conv_gradients<T, W> &g,
                                         int n)
    {
        const int64_t at = min(n, g.rows - 1);
        start = in.starts(at);
        x = of::read(in.x + at * in.ld);
        dy = of::read(g.dy + at * g.X);
        if (in.gate_in)
            gate_in = of::read(in.gate_in + at * in.ld);
        if (g.gate_out)
            gate_out = of::read(g.gate_out + at * in.ld);
    }
    // Return the row of the convolution's input.
    __device__ __forceinline__ of input(bool gated) const
    {
        of u = of::of(x);
        if (gated) {
            const of gate = of::of(gate_in);
#pragma unroll
            for (int i = 0; i < W; i++)
                u.v[i] *= gate.v[i];
        }
        return u;
    }
};

// Write the gradients of row n, for whose convolution's input du is the gradient.
template <typename T, int W>
static __device__ __forceinline__ void finish_row(const conv_input<T, W> &in,
                                                  const conv_gradients<T, W> &g,
                                                  const float (&du)[W], int64_t n)
{
    channels<T, W> dx;
#pragma unroll
    for (int i = 0; i < W; i++)
        dx.v[i] = du[i];
    if (in.gate_in) {
        channels<T, W> x, gate;
        x.load(in.x + n * in.ld);
        gate.load(in.gate_in + n * in.ld);
#pragma unroll
        for (int i = 0; i < W; i++) {
            x.v[i] *= du[i];
            dx.v[i] *= gate.v[i];
        }
        x.store(g.dgate_in + n * in.ld);
    }
    dx.store(g.dx + n * in.ld);
}

// A thread has the rows of its block's partial sum, for W channels, and the L - 1 rows behind them, which see the
// last of them; BATCH rows are in flight. du[d] is what the rows up to n give to the gradient of row n - d.
template <typename T, int L, int W>
static __device__ __forceinline__ void
conv_back(const conv_input<T, W> &in, const conv_gradients<T, W> &g, float *dw_part,
          float *dbias_part, const T *w, const T *bias, int c, int P, int act)
{
    constexpr int BATCH = 8 / sizeof(T);
    const int rows = g.rows, each = (rows + P - 1) / P;
    const int first = min((int)blockIdx.x * each, rows), end = min(first + each, rows);
    conv_taps<T, L, W> taps;
    taps.load(w, bias, c);
    float du[L][W] = {}, dw[L][W] = {}, dbias[W] = {};
    const int seen = first < end ? end + L - 1 : first;
    int s = first % in.S;
    if (first < end)
        in.before(taps, first);
#pragma unroll 1
    for (int from = first; from < seen; from += BATCH) {
        conv_row<T, W> batch[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            batch[k].read(in, g, from + k);
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            const conv_row<T, W> &row = batch[k];
            const int n = from + k;
            if (n >= seen)
                break;
            int age = L; // rows of the document before this one
            if (n < rows) {
                taps.take(row.input(in.gate_in).v, s == row.start);
                age = s - row.start;
            }
            s = s + 1 < in.S ? s + 1 : 0;
            const channels<T, W> grad = channels<T, W>::of(row.dy);
            channels<T, W> dgate, gate;
            if (g.gate_out)
                gate.set(row.gate_out);
#pragma unroll
            for (int i = 0; i < W; i++) {
                const float h = taps.sum(i), z = sigmoid(h), dy = n < rows ? grad.v[i] : 0;
                dgate.v[i] = dy * (act ? h * z : h);
                const float dh =
                    dy * (g.gate_out ? gate.v[i] : 1.0f) * (act ? z * fmaf(h, 1 - z, 1.0f) : 1.0f);
#pragma unroll
                for (int d = L - 1; d > 0; d--)
                    du[d][i] = fmaf(taps.w[L - 1 - d][i], d <= age ? dh : 0.0f, du[d - 1][i]);
                du[0][i] = taps.w[L - 1][i] * dh;
                if (n < end) {
                    dbias[i] += dh;
#pragma unroll
                    for (int t = 0; t < L; t++)
                        dw[t][i] = fmaf(dh, taps.u[t][i], dw[t][i]);
                }
            }
            if (g.gate_out && n < end)
                dgate.store(g.dgate_out + (int64_t)n * in.ld);
            if (n - L + 1 >= first)
                finish_row(in, g, du[L - 1], n - L + 1);
        }
    }
    const int64_t at = (int64_t)blockIdx.x * g.X + c;
#pragma unroll
    for (int i = 0; i < W; i++) {
#pragma unroll
        for (int t = 0; t < L; t++)
            dw_part[(at + i) * L + t] = dw[t][i];
        if (dbias_part)
            dbias_part[at + i] = dbias[i];
    }
}

template <typename T>
static __device__ __forceinline__ void
conv_bwd(T *dx, T *dgate_in, T *dgate_out, float *dw_part, float *dbias_part, const T *dy,
         const T *x, const T *w, const T *bias, const T *gate_in, const T *gate_out,
         const int32_t *doc_start, int B, int S, int X, int L, int ld, int P, int act)
{
    with_taps(L, [&](auto count) {
        constexpr int W = count.value > 4 ? 2 : 4;
        const conv_input<T, W> in = {x, gate_in, doc_start, S, ld};
        const conv_gradients<T, W> g = {dx, dgate_in, dgate_out, dy, gate_out, B * S, X};
#pragma unroll 1
        for (int pass = 0; pass < 4 / W; pass++) {
            const int c = blockIdx.y * NJ_THREADS * 4 + (pass * NJ_THREADS + threadIdx.x) * W;
            if (c < X)
                conv_back<T, count.value, W>(in.from(c), g.from(c), dw_part, dbias_part, w, bias, c,
                                             P, act);
        }
    });
}
