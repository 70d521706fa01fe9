/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.c: enqueues a kernel. The parameter block goes to the driver as it is: launchers lay it
 * out as the kernel sees it.
 */
#include <stdint.h>

#include "backend.h"

int nj_cuda_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
                   const void *params)
{
    struct nj_cuda *cu = nj_cuda_of(s->ctx);
    const struct nj_kernel *kernel = &nj_kernels[id];
    size_t bytes = kernel->param_bytes;
    void *extra[] = {NJ_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)params,
                     NJ_LAUNCH_PARAM_BUFFER_SIZE, &bytes, NJ_LAUNCH_PARAM_END};
    int rc;

    if (!cu->functions[id])
        return nj_fail(s->ctx, NJ_E_NO_KERNEL, "%s needs sm_%u or newer; %s is sm_%d", kernel->key,
                       kernel->min_sm, s->ctx->info.name, s->ctx->info.sm);
    rc = nj_cuda_enter(s->ctx);
    if (rc)
        return rc;
    if (shared_bytes < cu->least_shared[id])
        shared_bytes = cu->least_shared[id];
    rc = cu->driver.cuLaunchKernel(cu->functions[id], grid[0], grid[1], grid[2], kernel->threads, 1,
                                   1, shared_bytes, s->handle, NULL, extra);
    return rc ? nj_cuda_check(s->ctx, rc, kernel->key) : 0;
}
