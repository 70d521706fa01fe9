/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c: opens a GPU.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "library.h"

/* Read the first word such as "580.159.04". */
static void read_driver_release(char *out, size_t bytes)
{
    static const char *const path[] = {"/sys/module/nvidia/version", "/proc/driver/nvidia/version"};

    out[0] = '\0';
    for (size_t i = 0; i < 2 && !out[0]; i++) {
        FILE *f = fopen(path[i], "re");
        char line[256] = "", *rest = line, *word;

        if (!f)
            continue;
        if (fgets(line, sizeof line, f)) {
            while ((word = strsep(&rest, " \t\n")) && !out[0])
                if (isdigit((unsigned char)word[0]) && strchr(word, '.'))
                    snprintf(out, bytes, "%s", word);
        }
        fclose(f);
    }
}

/* Choose the kind of memory. A GPU that does not tell whether it shares memory with the host is treated as one that
 * does not. */
static int choose_memory(nj_context *ctx, const struct nj_options *options)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    const char *wanted = getenv("NOJIT_MEMORY");
    int unknown = cu->driver.cuDeviceGetAttribute(&ctx->info.integrated,
                                                  NJ_CU_DEVICE_ATTRIBUTE_INTEGRATED, cu->device);

    if (unknown)
        ctx->info.integrated = 0;
    ctx->info.managed = ctx->info.integrated;
    if (!wanted || !wanted[0]) {
        if (unknown && options->log)
            options->log(
                options->log_user,
                "the GPU does not report whether it shares memory with the host: "
                "arenas are in device memory; NOJIT_MEMORY=managed puts them into managed memory");
        return 0;
    }
    if (strcmp(wanted, "device") != 0 && strcmp(wanted, "managed") != 0)
        return nj_fail(ctx, NJ_E_ARG, "NOJIT_MEMORY=%.40s: must be device or managed", wanted);
    ctx->info.managed = wanted[0] == 'm';
    return 0;
}

/* Return the FP8 scales that cuBLASLt has; above sm_100, GEMMs with one scale are no faster than those in 16 bits. */
static enum nj_f8_scales f8_of(int sm)
{
    return sm >= 100 ? NJ_F8_BLOCKS : sm == 90 ? NJ_F8_ROWS : sm == 89 ? NJ_F8_ONE : NJ_F8_NONE;
}

/* Fill what the index says of an SM. */
static int look_up(int sm, struct nj_device_info *out)
{
    char why[NJ_SENTENCE_BYTES];
    struct nj_index index;
    int arch;

    TRY(nj_index_embedded(&index, why));
    arch = nj_index_arch_for(&index, sm);
    out->lp_is_f16 = arch < 0 ? sm < 80 : index.archs[arch].lp_is_f16;
    if (arch >= 0)
        nj_arch_name(&index.archs[arch], out->arch);
    return 0;
}

int nj_device_of_sm_sized(int sm, struct nj_device_info *out, size_t bytes)
{
    struct nj_device_info found = {.backend = "cuda", .sm = sm, .lp = 1, .f8 = f8_of(sm)};
    const int rc = look_up(sm, &found);

    TRY(nj_sized_write(out, bytes, &found, sizeof found));
    return rc;
}

static int read_device(nj_context *ctx, int ordinal)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    struct nj_device_info *info = &ctx->info;
    struct nj_driver *driver = &cu->driver;
    int count = 0, major = 0, minor = 0, rc;

    rc = driver->cuInit(0);
    if (rc == NJ_CUDA_ERROR_NO_DEVICE)
        return nj_fail(ctx, NJ_E_NO_DEVICE,
                       "the driver sees no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES");
    if (rc != 0) {
        nj_cuda_check(ctx, rc, "starting the driver (does nvidia-smi work?)");
        return NJ_E_DRIVER;
    }
    rc = driver->cuDeviceGetCount(&count);
    if (rc != 0)
        return nj_cuda_check(ctx, rc, "cuDeviceGetCount");
    if (ordinal < 0 || ordinal >= count)
        return nj_fail(ctx, NJ_E_NO_DEVICE, "GPU %d wanted, the driver sees %d (counted from 0)",
                       ordinal, count);
    rc = driver->cuDeviceGet(&cu->device, ordinal);
    if (rc == 0)
        rc = driver->cuDeviceGetName(info->name, (int)sizeof info->name, cu->device);
    if (rc == 0)
        rc = driver->cuDeviceTotalMem(&info->memory_bytes, cu->device);
    if (rc == 0)
        rc = driver->cuDeviceGetAttribute(&major, NJ_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                          cu->device);
    if (rc == 0)
        rc = driver->cuDeviceGetAttribute(&minor, NJ_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                          cu->device);
    if (rc == 0)
        rc = driver->cuDeviceGetAttribute(&info->multiprocessors,
                                          NJ_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, cu->device);
    info->sm = 10 * major + minor;
    info->lp = 1;
    info->f8 = f8_of(info->sm);
    return nj_cuda_check(ctx, rc, "reading the properties of the GPU");
}

int nj_gpu_count(void)
{
    nj_context *ctx = calloc(1, sizeof *ctx);
    struct nj_driver driver;
    int count = 0;

    if (ctx && nj_cuda_open_driver(ctx, &driver) == 0 && driver.cuInit(0) == 0 &&
        driver.cuDeviceGetCount(&count) != 0)
        count = 0;
    free(ctx);
    return count;
}

int nj_gpu_reaches(nj_context *ctx, int ordinal)
{
    const struct nj_driver *driver;
    int device, can = 0;

    if (!ctx || ctx->backend != &nj_backend_cuda)
        return 0;
    driver = &nj_cuda_of(ctx)->driver;
    if (driver->cuDeviceGet(&device, ordinal) ||
        driver->cuDeviceCanAccessPeer(&can, nj_cuda_of(ctx)->device, device))
        return 0;
    return can;
}

static int open_cublaslt(nj_context *ctx)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    TRY(nj_cuda_open_cublaslt(ctx, &cu->lt));
    ctx->info.gemm_version = cu->lt.cublasLtGetVersion();
    nj_library_reports(ctx->info.gemm_version, ctx->info.sm, ctx->info.gemm_reports,
                       sizeof ctx->info.gemm_reports);
    const int rc = cu->lt.cublasLtCreate(&cu->lt_handle);
    if (rc != 0)
        return nj_fail(ctx, NJ_E_LIBRARY, "%.500s: cublasLtCreate: %s", ctx->info.gemm_library,
                       cu->lt.cublasLtGetStatusName(rc));
    return 0;
}

static int cuda_open(nj_context *ctx, const struct nj_options *options)
{
    struct nj_cuda *cu = calloc(1, sizeof *cu);
    struct nj_embedded embedded;

    ctx->state = cu;
    if (!cu)
        return nj_fail(ctx, NJ_E_NOMEM, "opening the GPU: out of host memory");
    cu->log = options->log;
    cu->log_user = options->log_user;
    read_driver_release(ctx->info.driver, sizeof ctx->info.driver);
    TRY(nj_cuda_open_driver(ctx, &cu->driver));
    TRY(read_device(ctx, options->ordinal));
    TRY(choose_memory(ctx, options));
    int rc = cu->driver.cuDevicePrimaryCtxRetain(&cu->context, cu->device);
    if (rc != 0)
        return nj_cuda_check(ctx, rc, "opening a context on the GPU");
    cu->retained = 1;
    TRY(nj_cuda_enter(ctx));
    TRY(nj_cuda_load_modules(ctx, options));
    TRY(open_cublaslt(ctx));
    if (nj_embedded_read(&embedded) == 0)
        nj_cuda_cache_key(ctx, embedded.index_hash);
    return 0;
}

static void cuda_close(nj_context *ctx)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);

    if (!cu)
        return;
    if (cu->retained) {
        cu->driver.cuCtxSetCurrent(cu->context);
        if (cu->lt_handle)
            cu->lt.cublasLtDestroy(cu->lt_handle);
        if (cu->pinned)
            cu->driver.cuMemFreeHost(cu->pinned);
        nj_cuda_unload_modules(ctx);
        cu->driver.cuDevicePrimaryCtxRelease(cu->device);
    }
    free(cu);
}

static size_t cuda_gemm_workspace_bytes(const nj_context *ctx)
{
    (void)ctx;
    return NJ_CUDA_WORKSPACE_BYTES;
}

const struct nj_backend nj_backend_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .budget = nj_cuda_budget,
    .gemm_workspace_bytes = cuda_gemm_workspace_bytes,
    .alloc = nj_cuda_alloc,
    .free = nj_cuda_free,
    .copy = nj_cuda_copy,
    .zero = nj_cuda_zero,
    .stream_create = nj_cuda_stream_create,
    .stream_destroy = nj_cuda_stream_destroy,
    .stream_sync = nj_cuda_stream_sync,
    .event_create = nj_cuda_event_create,
    .event_destroy = nj_cuda_event_destroy,
    .event_record = nj_cuda_event_record,
    .stream_wait = nj_cuda_stream_wait,
    .event_sync = nj_cuda_event_sync,
    .event_elapsed_ms = nj_cuda_event_elapsed_ms,
    .graph_begin = nj_cuda_graph_begin,
    .graph_end = nj_cuda_graph_end,
    .graph_launch = nj_cuda_graph_launch,
    .graph_destroy = nj_cuda_graph_destroy,
    .tile_map = nj_cuda_tile_map,
    .has_kernel = nj_cuda_has_kernel,
    .launch = nj_cuda_launch,
    .load_spare = nj_cuda_load_spare,
    .gemm_prepare = nj_cuda_gemm_prepare,
    .gemm_run = nj_cuda_gemm_run,
    .gemm_release = nj_cuda_gemm_release,
    .comm_id = nj_cuda_comm_id,
    .comm_create = nj_cuda_comm_create,
    .comm_alloc = nj_cuda_comm_alloc,
    .comm_free = nj_cuda_comm_free,
    .comm_check = nj_cuda_comm_check,
    .comm_destroy = nj_cuda_comm_destroy,
    .transfer = nj_cuda_transfer,
    .comm_aside = nj_cuda_comm_aside,
    .comm_join = nj_cuda_comm_join,
};
