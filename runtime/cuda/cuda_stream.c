/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_stream.c: memory, copies, streams and events. Streams do not wait for the driver's default
 * stream.
 */
#include <stdio.h>
#include <string.h>

#include "backend.h"

static int alloc_host(nj_context *ctx, size_t bytes, void **out)
{
    char what[96];
    int rc = nj_cuda_of(ctx)->driver.cuMemHostAlloc(out, bytes, 0);

    if (rc != 0) {
        snprintf(what, sizeof what, "nj_alloc: %zu bytes of pinned host memory", bytes);
        return nj_cuda_check(ctx, rc, what);
    }
    memset(*out, 0, bytes);
    return 0;
}

int nj_cuda_clear(nj_context *ctx, uint64_t ptr, size_t bytes, const char *what)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;
    int rc = driver->cuMemsetD8Async(ptr, 0, bytes, NULL);

    if (rc == 0)
        rc = driver->cuStreamSynchronize(NULL); /* other streams do not wait for this one */
    return nj_cuda_check(ctx, rc, what);
}

int nj_cuda_alloc(nj_context *ctx, enum nj_memory kind, size_t bytes, void **out)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;
    uint64_t ptr = 0;
    char what[96];
    int rc = nj_cuda_enter(ctx);

    if (rc != 0)
        return rc;
    if (kind == NJ_MEM_HOST)
        return alloc_host(ctx, bytes, out);
    snprintf(what, sizeof what, "nj_alloc: %zu bytes of %s memory", bytes,
             ctx->info.managed ? "managed" : "device");
    if (ctx->info.managed)
        rc = driver->cuMemAllocManaged(&ptr, bytes, NJ_CU_MEM_ATTACH_GLOBAL);
    else
        rc = driver->cuMemAlloc(&ptr, bytes);
    if (rc != 0)
        return nj_cuda_check(ctx, rc, what);
    rc = nj_cuda_clear(ctx, ptr, bytes, what);
    if (rc != 0) {
        driver->cuMemFree(ptr);
        return rc;
    }
    *out = (void *)(uintptr_t)ptr;
    return 0;
}

void nj_cuda_free(nj_context *ctx, enum nj_memory kind, void *ptr)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);

    if (nj_cuda_enter(ctx))
        return;
    if (kind == NJ_MEM_HOST)
        cu->driver.cuMemFreeHost(ptr);
    else
        cu->driver.cuMemFree((uintptr_t)ptr);
}

int nj_cuda_copy(nj_stream *s, void *dst, const void *src, size_t bytes)
{
    TRY(nj_cuda_enter(s->ctx));
    const int rc =
        nj_cuda_of(s->ctx)->driver.cuMemcpyAsync((uintptr_t)dst, (uintptr_t)src, bytes, s->handle);
    return nj_cuda_check(s->ctx, rc, "nj_copy");
}

int nj_cuda_zero(nj_stream *s, void *dst, size_t bytes)
{
    TRY(nj_cuda_enter(s->ctx));
    const int rc = nj_cuda_of(s->ctx)->driver.cuMemsetD8Async((uintptr_t)dst, 0, bytes, s->handle);
    return nj_cuda_check(s->ctx, rc, "nj_zero");
}

int nj_cuda_stream_create(nj_stream *s)
{
    struct nj_cuda *cu = nj_cuda_of(s->ctx);
    TRY(nj_cuda_enter(s->ctx));
    TRY(nj_cuda_check(s->ctx, cu->driver.cuStreamCreate(&s->handle, NJ_CU_STREAM_NON_BLOCKING),
                      "nj_stream_create"));
    return nj_cuda_alloc(s->ctx, NJ_MEM_DEVICE, NJ_CUDA_WORKSPACE_BYTES, &s->workspace);
}

void nj_cuda_stream_destroy(nj_stream *s)
{
    if (nj_cuda_enter(s->ctx))
        return;
    if (s->handle)
        nj_cuda_of(s->ctx)->driver.cuStreamDestroy(s->handle);
    if (s->workspace)
        nj_cuda_free(s->ctx, NJ_MEM_DEVICE, s->workspace);
}

int nj_cuda_stream_sync(nj_stream *s)
{
    TRY(nj_cuda_enter(s->ctx));
    const int rc = nj_cuda_of(s->ctx)->driver.cuStreamSynchronize(s->handle);
    return nj_cuda_check(s->ctx, rc, "nj_stream_sync");
}

int nj_cuda_event_create(nj_event *e)
{
    TRY(nj_cuda_enter(e->ctx));
    const int rc = nj_cuda_of(e->ctx)->driver.cuEventCreate(&e->handle, NJ_CU_EVENT_DEFAULT);
    return nj_cuda_check(e->ctx, rc, "nj_event_create");
}

void nj_cuda_event_destroy(nj_event *e)
{
    if (nj_cuda_enter(e->ctx) == 0)
        nj_cuda_of(e->ctx)->driver.cuEventDestroy(e->handle);
}

int nj_cuda_event_record(nj_event *e, nj_stream *s)
{
    TRY(nj_cuda_enter(s->ctx));
    const int rc = nj_cuda_of(s->ctx)->driver.cuEventRecord(e->handle, s->handle);
    return nj_cuda_check(s->ctx, rc, "nj_event_record");
}

int nj_cuda_stream_wait(nj_stream *s, nj_event *e)
{
    TRY(nj_cuda_enter(s->ctx));
    const int rc = nj_cuda_of(s->ctx)->driver.cuStreamWaitEvent(s->handle, e->handle, 0);
    return nj_cuda_check(s->ctx, rc, "waiting for another stream");
}

int nj_cuda_event_sync(nj_event *e)
{
    TRY(nj_cuda_enter(e->ctx));
    const int rc = nj_cuda_of(e->ctx)->driver.cuEventSynchronize(e->handle);
    return nj_cuda_check(e->ctx, rc, "waiting for the GPU");
}

int nj_cuda_event_elapsed_ms(nj_event *from, nj_event *to, float *ms)
{
    struct nj_driver *driver = &nj_cuda_of(to->ctx)->driver;
    TRY(nj_cuda_enter(to->ctx));
    int rc = driver->cuEventSynchronize(from->handle);
    if (rc == 0)
        rc = driver->cuEventSynchronize(to->handle);
    if (rc == 0)
        rc = driver->cuEventElapsedTime(ms, from->handle, to->handle);
    return nj_cuda_check(to->ctx, rc, "nj_event_elapsed_ms");
}
