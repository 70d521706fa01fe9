// SPDX-License-Identifier: Apache-2.0
#include "conv.cuh"

// Arrays from the thread's channels on; those of optional arguments may be NULL.
template <typename T> struct conv_gradients {
    T *dx, *dgate_in, *dgate_out;
    const T *dy, *gate_out;
    int rows, X;
};

// The thread's channels of a row.
template <typename T> struct conv_row {
    channels<T> u, dy, gate;

    __device__ __forceinline__ void read(const conv_input<T> &in, const conv_gradients<T> &g, int n)
    {
        const int64_t at = min(n, g.rows - 1);
        u = in.at(at);
        dy.load(g.dy + at * g.X);
        if (g.gate_out)
            gate.load(g.gate_out + at * in.ld);
    }
};

// Write the gradients of row n, for whose convolution's input du is the gradient.
template <typename T>
static __device__ __forceinline__ void
finish_row(const conv_input<T> &in, const conv_gradients<T> &g, const float (&du)[4], int64_t n)
{
    channels<T> dx;
#pragma unroll
    for (int i = 0; i < 4; i++)
        dx.v[i] = du[i];
    if (in.gate_in) {
        channels<T> x, gate;
        x.load(in.x + n * in.ld);
        gate.load(in.gate_in + n * in.ld);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            x.v[i] *= du[i];
            dx.v[i] *= gate.v[i];
        }
        x.store(g.dgate_in + n * in.ld);
    }
    dx.store(g.dx + n * in.ld);
}

// A thread has the rows of its block's partial sum, for four channels, and the L - 1 rows behind them, which see the
// last of them. du[d] is what the rows up to n give to the gradient of row n - d.
template <typename T, int L>
static __device__ __forceinline__ void
conv_back(const conv_input<T> &in, const conv_gradients<T> &g, float *dw_part, float *dbias_part,
          const T *w, const T *bias, int c, int P, int act)
{
    const int rows = g.rows, each = (rows + P - 1) / P;
    const int first = min((int)blockIdx.x * each, rows), end = min(first + each, rows);
    conv_taps<T, L> taps;
    taps.load(w, bias, c);
    float du[L][4] = {}, dw[L][4] = {}, dbias[4] = {};
    conv_row<T> next;
    int s = first % in.S;
    if (first < end) {
        in.before(taps, first);
        next.read(in, g, first);
    }
#pragma unroll 1
    for (int n = first; n < end + L - 1 && first < end; n++) {
        const conv_row<T> row = next;
        next.read(in, g, n + 1);
        int age = L; // rows of the document before this one
        if (n < rows) {
            in.take(taps, row.u.v, n, s);
            age = s - in.starts(n, s);
        }
        s = s + 1 < in.S ? s + 1 : 0;
        channels<T> dgate;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float h = taps.sum(i), z = sigmoid(h), dy = n < rows ? row.dy.v[i] : 0;
            dgate.v[i] = dy * (act ? h * z : h);
            const float dh =
                dy * (g.gate_out ? row.gate.v[i] : 1.0f) * (act ? z * fmaf(h, 1 - z, 1.0f) : 1.0f);
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
    const int64_t at = (int64_t)blockIdx.x * g.X + c;
#pragma unroll
    for (int i = 0; i < 4; i++) {
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
    const int c = (blockIdx.y * NJ_THREADS + threadIdx.x) * 4;
    if (c >= X)
        return;
    const conv_input<T> in = {x + c, gate_in ? gate_in + c : nullptr, doc_start, S, ld};
    const conv_gradients<T> g = {
        dx + c, dgate_in ? dgate_in + c : nullptr, dgate_out ? dgate_out + c : nullptr,
        dy + c, gate_out ? gate_out + c : nullptr, B * S,
        X};
    with_taps(L, [&](auto count) {
        conv_back<T, count.value>(in, g, dw_part, dbias_part, w, bias, c, P, act);
    });
}
