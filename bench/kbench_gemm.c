/* SPDX-License-Identifier: Apache-2.0
 *
 * kbench_gemm.c: times GEMMs of all kinds and types of a device, square ones and those of a model's layers, with their
 * share of the device's peak in float32.
 */
#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kbench.h"

#include "base/clock.h"

enum { ROWS_OF_GPU = 4096, ROWS_OF_CPU = 64 };

/* TFLOP/s in float32 without matrix units, at the boost clock of the data sheet. More specific names first. */
static const struct {
    const char *name;
    double tflops;
} peaks[] = {
    {"H200", 66.9}, {"H100 PCIe", 51.2}, {"H100", 66.9},      {"A100", 19.5},     {"L40S", 91.6},
    {"L4", 30.3},   {"RTX 4090", 82.6},  {"RTX 5090", 104.8}, {"RTX 3090", 35.6}, {"T4", 8.1},
};

/* Inputs and outputs of the layers of Qwen2.5. */
static const struct {
    const char *name;
    int32_t in, out;
} layers[] = {
    {"0.5B qkv", 896, 1152},       {"0.5B o", 896, 896},      {"0.5B gate_up", 896, 9728},
    {"0.5B down", 4864, 896},      {"1.5B qkv", 1536, 2048},  {"1.5B o", 1536, 1536},
    {"1.5B gate_up", 1536, 17920}, {"1.5B down", 8960, 1536},
};

static const char *const kind_names[] = {
    [NJ_GEMM_NT] = "NT", [NJ_GEMM_NN] = "NN", [NJ_GEMM_TN] = "TN"};

/* Return the peak rate, 0 if it is not known. GEMMs in 16 bits by matrix units have another peak. */
static double peak_of(const struct bench *b, const struct nj_gemm *g)
{
    const struct nj_device_info *info = nj_context_device(b->ctx);
    if (g->ab_dtype != NJ_F32 && strcmp(info->backend, "vulkan") != 0)
        return 0;
    for (size_t i = 0; i < sizeof peaks / sizeof peaks[0]; i++)
        if (strstr(info->name, peaks[i].name))
            return peaks[i].tflops;
    return 0;
}

static int time_one(struct bench *b, const char *name, struct nj_gemm g)
{
    const double operations = 2.0 * g.M * g.N * g.K, peak = peak_of(b, &g);
    struct timing t;
    g.lda = g.kind == NJ_GEMM_TN ? g.M : g.K;
    g.ldb = g.kind == NJ_GEMM_NT ? g.K : g.N;
    g.ldc = g.N;
    int rc = bench_gemm(b, &g, &t);
    if (rc)
        return rc;
    printf("%-14s %-2s %-7s %6d %6d %6d %11.1f %9.4g TFLOP/s", name, kind_names[g.kind],
           g.ab_dtype == NJ_F32  ? "f32"
           : g.c_dtype == NJ_F32 ? "lp, f32"
                                 : "lp",
           g.M, g.N, g.K, t.median, operations / t.median * 1e-6);
    if (peak > 0)
        printf("  %5.1f %%", operations / t.median * 1e-4 / peak);
    putchar('\n');
    fflush(stdout);
    return 0;
}

/* Time the GEMM with each type that the device has. A gradient of weights is float32, and is added to. */
static int time_types(struct bench *b, const char *name, struct nj_gemm g)
{
    const int sums = g.kind == NJ_GEMM_TN;
    g.beta = sums ? 1 : 0;
    int rc = time_one(b, name, g);
    if (rc || !nj_context_device(b->ctx)->lp)
        return rc;
    g.ab_dtype = NJ_LP;
    g.c_dtype = sums ? NJ_F32 : NJ_LP;
    return time_one(b, name, g);
}

static int time_shape(struct bench *b, const char *name, int32_t M, int32_t N, int32_t K)
{
    int rc = 0;
    for (int kind = NJ_GEMM_NT; kind <= NJ_GEMM_TN && !rc; kind++)
        rc = time_types(b, name,
                        (struct nj_gemm){.kind = (enum nj_gemm_kind)kind, .M = M, .N = N, .K = K});
    return rc;
}

/* Time the GEMMs of a layer: forward, the gradient of the input, that of the weights. */
static int time_layer(struct bench *b, const char *name, int32_t rows, int32_t in, int32_t out)
{
    int rc =
        time_types(b, name, (struct nj_gemm){.kind = NJ_GEMM_NT, .M = rows, .N = out, .K = in});
    if (!rc)
        rc =
            time_types(b, name, (struct nj_gemm){.kind = NJ_GEMM_NN, .M = rows, .N = in, .K = out});
    return rc ? rc
              : time_types(b, name,
                           (struct nj_gemm){.kind = NJ_GEMM_TN, .M = out, .N = in, .K = rows});
}

int gemm_shape(const char *text, int32_t shape[3])
{
    static const char names[] = "MNK";
    char name[32], value[32];
    int more;
    memset(shape, 0, 3 * sizeof(*shape));
    while ((more = shape_next(&text, name, value)) > 0) {
        const char *at = name[1] ? NULL : strchr(names, name[0]);
        if (!at)
            return -1;
        char *end;
        const long size = strtol(value, &end, 10);
        if (*end || size < 1 || size > INT32_MAX)
            return -1;
        shape[at - names] = (int32_t)size;
    }
    return more < 0 || shape[0] < 1 || shape[1] < 1 || shape[2] < 1 ? -1 : 0;
}

/* Return GFLOP/s of one large GEMM by one thread, which OpenBLAS divides as it likes: the fastest of several runs. */
static double large_gflops(void)
{
    enum { N = 1024, RUNS = 5 };
    const int threads = omp_get_max_threads();
    float *a = allocate(3 * (size_t)N * N, sizeof(*a)), *b = a + N * N, *c = b + N * N;
    double best = 0;
    for (int i = 0; i < 2 * N * N; i++)
        a[i] = (float)(i % 13 - 6);
    omp_set_num_threads(1);
    for (int i = 0; i < RUNS; i++) {
        const double from = clock_seconds();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, N, N, N, 1, a, N, b, N, 0, c, N);
        const double rate = 2.0 * N * N * N / (clock_seconds() - from) * 1e-9;
        best = rate > best ? rate : best;
    }
    omp_set_num_threads(threads);
    free(a);
    return best;
}

/* Compare the speed of a tile, as the CPU backend gives one to a thread, with that of a large GEMM. If the tile is much
 * slower, the backend wastes the speed of its library. The tile is timed first, since a large GEMM speeds up the ones
 * after it. */
static int compare_tile(struct bench *b)
{
    const struct nj_gemm tile = {
        .kind = NJ_GEMM_NT, .M = 256, .N = 256, .K = 512, .lda = 512, .ldb = 512, .ldc = 256};
    struct timing t;
    int rc = bench_gemm(b, &tile, &t);
    if (rc)
        return rc;
    const double gflops = 2.0 * tile.M * tile.N * tile.K / t.p10 * 1e-3, large = large_gflops();
    printf("\none thread: a tile of %d x %d x %d %.1f GFLOP/s, a large product %.1f GFLOP/s (%.0f "
           "%%)\n",
           tile.M, tile.N, tile.K, gflops, large, 100 * gflops / large);
    return 0;
}

int bench_gemms(struct bench *b, int count, const int32_t (*shapes)[3])
{
    const struct nj_device_info *info = nj_context_device(b->ctx);
    const int gpu = info->sm > 0 || (strcmp(info->backend, "vulkan") == 0 && !info->software);
    const int32_t first = gpu ? 1024 : 256, last = gpu ? 8192 : 512;
    int rc = 0;
    printf("%s, GEMMs by %s\n\n%-14s %-2s %-7s %6s %6s %6s %11s %17s  %7s\n", info->name,
           info->gemm_library, "shape", "", "type", "M", "N", "K", "us", "rate", "of peak");
    for (int i = 0; i < count && !rc; i++)
        rc = time_shape(b, "given", shapes[i][0], shapes[i][1], shapes[i][2]);
    for (int32_t n = first; n <= last && count == 0 && !rc; n *= 2)
        rc = time_shape(b, "square", n, n, n);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0] && count == 0 && !rc; i++)
        rc = time_layer(b, layers[i].name, gpu ? ROWS_OF_GPU : ROWS_OF_CPU, layers[i].in,
                        layers[i].out);
    return rc || strcmp(info->backend, "cpu") != 0 ? rc : compare_tile(b);
}
