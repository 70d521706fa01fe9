/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_context.c: what every call to the driver needs: its context made current, its results as sentences, and
 * how much memory can be had, which such a sentence may say.
 */
#include <stdio.h>

#include "backend.h"

/* Return the budget of a GPU that shares memory with the host. The driver counts page cache as used, although the
 * system would give it back, and the machine freezes when nothing is left: take the system's number, less a
 * sixteenth of all memory. */
static size_t shared_budget(void)
{
    size_t available = nj_meminfo("MemAvailable"), reserve = nj_meminfo("MemTotal") / 16;

    return available > reserve ? available - reserve : 0;
}

size_t nj_cuda_budget(nj_context *ctx, enum nj_memory kind)
{
    size_t available = 0, total = 0;

    if (ctx->info.integrated)
        return shared_budget();
    if (kind == NJ_MEM_HOST)
        return nj_meminfo("MemAvailable");
    /* A GPU that does not answer may still have memory: the allocation itself will report the error. */
    if (nj_cuda_enter(ctx) || nj_cuda_of(ctx)->driver.cuMemGetInfo(&available, &total))
        return SIZE_MAX;
    return available;
}

/* Return whether the driver answers every later call on the context with this same error. */
static int is_fatal(int result)
{
    static const int fatal[] = {
        NJ_CUDA_ERROR_ECC_UNCORRECTABLE,
        NJ_CUDA_ERROR_NVLINK_UNCORRECTABLE,
        NJ_CUDA_ERROR_ILLEGAL_ADDRESS,
        NJ_CUDA_ERROR_LAUNCH_TIMEOUT,
        NJ_CUDA_ERROR_ASSERT,
        NJ_CUDA_ERROR_HARDWARE_STACK_ERROR,
        NJ_CUDA_ERROR_ILLEGAL_INSTRUCTION,
        NJ_CUDA_ERROR_MISALIGNED_ADDRESS,
        NJ_CUDA_ERROR_INVALID_ADDRESS_SPACE,
        NJ_CUDA_ERROR_INVALID_PC,
        NJ_CUDA_ERROR_LAUNCH_FAILED,
    };

    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        if (fatal[i] == result)
            return 1;
    return 0;
}

int nj_cuda_check(nj_context *ctx, int result, const char *what)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    const char *name = NULL, *text = NULL;

    if (result == NJ_CUDA_SUCCESS)
        return 0;
    if (cu->lost[0])
        return nj_fail(ctx, NJ_E_DEVICE, "%.200s: not possible since %.780s", what, cu->lost);
    cu->driver.cuGetErrorName(result, &name);
    cu->driver.cuGetErrorString(result, &text);
    name = name ? name : "unknown CUDA error";
    text = text ? text : "no text";
    if (result == NJ_CUDA_ERROR_OUT_OF_MEMORY)
        return nj_fail(ctx, NJ_E_NOMEM, "%s: %s (%d); %zu bytes are available now", what, name,
                       result, nj_cuda_budget(ctx, NJ_MEM_DEVICE));
    if (!is_fatal(result))
        return nj_fail(ctx, NJ_E_DEVICE, "%s: %s (%d), %s", what, name, result, text);
    snprintf(cu->lost, sizeof cu->lost,
             "%.200s: %s (%d), %s; last enqueued was %s; restart the program, and run it under "
             "compute-sanitizer to find the place",
             what, name, result, text, ctx->last_key ? ctx->last_key : "nothing");
    return nj_fail(ctx, NJ_E_DEVICE, "%s", cu->lost);
}

int nj_cuda_enter(nj_context *ctx)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    int rc = cu->driver.cuCtxSetCurrent(cu->context);

    return rc != 0 ? nj_cuda_check(ctx, rc, "making the GPU context current") : 0;
}
