/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c: launches tiled_copy on --device and says what came of it; on a simulated GPU, what was asked of
 * the driver for each tensor map, as the parameter block has it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nojit_ops.h"
#include "sim/control.h"

enum { N = 33, C = 72, X_TILES = 5, Z_TILES = 6 };

static unsigned char block[4096];

int __real_nj_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
                     const void *params);
int __wrap_nj_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
                     const void *params);

int __wrap_nj_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
                     const void *params)
{
    memcpy(block, params, nj_kernels[id].param_bytes);
    printf("grid %u x %u x %u\n", grid[0], grid[1], grid[2]);
    return __real_nj_launch(s, id, grid, shared_bytes, params);
}

static void print_map(const char *name, const struct nj_kernel *k, int param, const void *array)
{
    struct sim_tensor_map m;
    memcpy(&m, block + k->params[param].offset, sizeof m);
    if (m.rank == 0)
        printf("%s: none\n", name);
    else
        printf("%s: %s, %llu x %llu, rows of %llu bytes, tiles of %u x %u\n", name,
               m.address == (unsigned long long)(uintptr_t)array ? "its address" : "another",
               m.sizes[1], m.sizes[0], m.row_bytes, m.box[1], m.box[0]);
}

int main(int argc, char **argv)
{
    static uint16_t in[N * C], out[N * C];
    const struct nj_options o = {
        .device = argc > 1 && strcmp(argv[1], "cpu") == 0 ? NJ_DEVICE_CPU : NJ_DEVICE_CUDA};
    nj_context *ctx;
    nj_stream *s = NULL;
    void *x = NULL, *y = NULL, *z = NULL;
    int rc = nj_context_create(&ctx, &o);
    for (int i = 0; i < N * C; i++)
        in[i] = (uint16_t)(i + 1);
    if (rc || nj_stream_create(ctx, &s) || nj_alloc(ctx, NJ_MEM_DEVICE, sizeof in, &x) ||
        nj_alloc(ctx, NJ_MEM_DEVICE, sizeof in, &y) ||
        nj_alloc(ctx, NJ_MEM_DEVICE, (size_t)2 * 2 * N * (C + 8), &z) ||
        nj_copy(s, x, in, sizeof in)) {
        printf("%s\n", nj_context_error(ctx));
        return 1;
    }
    printf("available %d\n", nj_kernel_available(ctx, "tiled_copy.lp"));
    if (nj_tiled_copy(s, NJ_LP, y, x, NULL, N - 1, C) == NJ_E_ARG)
        printf("%s\n", nj_context_error(ctx));
    for (int with_z = 1; with_z >= 0; with_z--) {
        rc = nj_tiled_copy(s, NJ_LP, y, x, with_z ? z : NULL, N, C);
        if (strncmp(nj_context_device(ctx)->name, "Simulated", 9) == 0) {
            const struct nj_kernel *k = &nj_kernels[nj_kernel_find("tiled_copy.lp")];
            print_map("x", k, X_TILES, x);
            print_map("z", k, Z_TILES, z);
        }
    }
    rc = rc ? rc : nj_copy(s, out, y, sizeof out);
    rc = nj_stream_sync(s) || rc;
    if (rc)
        printf("%s\n", nj_context_error(ctx));
    else
        printf("%s\n", memcmp(in, out, sizeof in) == 0 ? "copied" : "copied something else");
    nj_free(ctx, NJ_MEM_DEVICE, x);
    nj_free(ctx, NJ_MEM_DEVICE, y);
    nj_free(ctx, NJ_MEM_DEVICE, z);
    nj_stream_destroy(s);
    nj_context_destroy(ctx);
    return rc;
}
