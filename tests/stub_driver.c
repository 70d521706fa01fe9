/* SPDX-License-Identifier: Apache-2.0
 *
 * stub_driver.c: a libcuda.so.1 that knows one GPU, $STUB_SM (86 for sm_86), and the CUDA version
 * $STUB_CUDA. Its memory is the host's, copies are done at once, kernels are noted and not run: enough
 * to see how the program uses a driver and what it says of a GPU or a driver that does not fit. With
 * STUB_STRICT=1 it refuses a process that has not forbidden the JIT. A test that loads it can make any
 * function fail (stub_driver.h).
 */
#include "stub_driver.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOT_SUPPORTED = 801,
    OUT_OF_MEMORY = 2,
    MULTIPROCESSORS = 16,
    INTEGRATED = 18,
    MAJOR = 75,
    MINOR = 76
};
enum { FUNC_SHARED = 1, FUNC_VERSION = 6 };
static const size_t MEMORY = (size_t)8 << 30;

extern struct stub stub_state;
struct stub stub_state;
static size_t used;       /* bytes of memory */
static int capturing;     /* launches since the capture began, plus 1 */
static int made_of_graph; /* launches of the last graph */

static int setting(const char *name, int otherwise)
{
    const char *value = getenv(name);
    return value != NULL ? (int)strtol(value, NULL, 10) : otherwise;
}

static int told_to_fail(const char *name)
{
    struct stub *s = &stub_state;
    if (s->fails == NULL || strcmp(name, s->fails) != 0 || s->after-- > 0)
        return 0;
    if (s->lasts)
        s->after = 0;
    else
        s->fails = NULL;
    return s->error;
}

/* The driver's own names; every function returns 0 for success. */
#define ENTRY(name, args, ...)                                                                     \
    int name args;                                                                                 \
    int name args                                                                                  \
    {                                                                                              \
        const int told = told_to_fail(#name);                                                      \
        if (told)                                                                                  \
            return told;                                                                           \
        __VA_ARGS__ return 0;                                                                      \
    }

ENTRY(cuDriverGetVersion, (int *out), *out = setting("STUB_CUDA", 13000);)
/* What must be in the environment before the driver starts. */
static int jit_is_forbidden(void)
{
    static const char *const wanted[][2] = {{"CUDA_DISABLE_PTX_JIT", "1"},
                                            {"CUDA_CACHE_DISABLE", "1"},
                                            {"CUDA_FORCE_PRELOAD_LIBRARIES", "0"}};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(wanted[i][0]);
        if (value == NULL || strcmp(value, wanted[i][1]) != 0)
            return 0;
    }
    return 1;
}

ENTRY(cuInit, (unsigned flags), (void)flags;
      if (setting("STUB_STRICT", 0) && !jit_is_forbidden()) return NOT_SUPPORTED;)
ENTRY(cuGetErrorName, (int error, const char **out),
      *out = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_THE_STUB";)
ENTRY(cuGetErrorString, (int error, const char **out), (void)error; *out = "as it was told";)
ENTRY(cuDeviceGetCount, (int *out), *out = 1;)
ENTRY(cuDeviceGet, (int *out, int ordinal), *out = ordinal;)
ENTRY(cuDeviceGetName, (char *name, int bytes, int device), (void)device;
      snprintf(name, (size_t)bytes, "Stub GPU");)
ENTRY(cuDeviceTotalMem_v2, (size_t * out, int device), (void)device; *out = MEMORY;)
ENTRY(cuDeviceGetAttribute, (int *out, int attribute, int device), (void)device;
      const int sm = setting("STUB_SM", 90);
      *out = attribute == MAJOR             ? sm / 10
             : attribute == MINOR           ? sm % 10
             : attribute == MULTIPROCESSORS ? 4
             : attribute == INTEGRATED      ? setting("STUB_INTEGRATED", 0)
                                            : 0;)
ENTRY(cuDevicePrimaryCtxRetain, (void **out, int device), (void)device; *out = &stub_state;)
ENTRY(cuDevicePrimaryCtxRelease_v2, (int device), (void)device;)
ENTRY(cuCtxSetCurrent, (void *context), (void)context;)

/* ---- memory: its size lies in front of it ---- */

enum { ALIGN = 256 };

static int take(size_t bytes, void **out)
{
    char *block;
    if (bytes > MEMORY - used)
        return OUT_OF_MEMORY;
    block = aligned_alloc(ALIGN, (bytes + 2 * ALIGN - 1) / ALIGN * ALIGN);
    if (block == NULL)
        return OUT_OF_MEMORY;
    memcpy(block, &bytes, sizeof bytes);
    memset(block + ALIGN, 0x5a, bytes); /* as a GPU gives it: not zeroed */
    used += bytes;
    stub_state.live++;
    *out = block + ALIGN;
    return 0;
}

static int give(void *p)
{
    size_t bytes;
    memcpy(&bytes, (char *)p - ALIGN, sizeof bytes);
    used -= bytes;
    stub_state.live--;
    free((char *)p - ALIGN);
    return 0;
}

ENTRY(cuMemGetInfo_v2, (size_t * available, size_t *total), *available = MEMORY - used;
      *total = MEMORY;)
ENTRY(cuMemAlloc_v2, (uint64_t * out, size_t bytes), void *p = NULL; const int rc = take(bytes, &p);
      *out = (uintptr_t)p; if (rc) return rc;)
ENTRY(cuMemAllocManaged, (uint64_t * out, size_t bytes, unsigned flags), (void)flags;
      void *p = NULL; const int rc = take(bytes, &p); *out = (uintptr_t)p; if (rc) return rc;)
ENTRY(cuMemFree_v2, (uint64_t p), give((void *)(uintptr_t)p);)
ENTRY(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags), (void)flags;
      const int rc = take(bytes, out); if (rc) return rc;)
ENTRY(cuMemFreeHost, (void *p), give(p);)
ENTRY(cuMemcpyAsync, (uint64_t dst, uint64_t src, size_t bytes, void *stream), (void)stream;
      if (!capturing) memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, bytes);)
ENTRY(cuMemsetD8Async, (uint64_t dst, unsigned char value, size_t bytes, void *stream),
      (void)stream;
      if (!capturing) memset((void *)(uintptr_t)dst, value, bytes);)

/* ---- streams, events, graphs ---- */

#define MAKE(name, args, out)                                                                      \
    ENTRY(name, args, (void)flags; *out = &stub_state.live; stub_state.live++;)
#define DESTROY(name) ENTRY(name, (void *what), stub_state.live -= what != NULL;)
MAKE(cuStreamCreate, (void **stream, unsigned flags), stream)
DESTROY(cuStreamDestroy_v2)
ENTRY(cuStreamSynchronize, (void *stream), (void)stream;)
MAKE(cuEventCreate, (void **event, unsigned flags), event)
DESTROY(cuEventDestroy_v2)
ENTRY(cuEventRecord, (void *event, void *stream), (void)event; (void)stream;)
ENTRY(cuEventSynchronize, (void *event), (void)event;)
ENTRY(cuEventElapsedTime_v2, (float *ms, void *from, void *to), (void)from; (void)to; *ms = 0.5f;)
ENTRY(cuStreamBeginCapture_v2, (void *stream, int mode), (void)stream; (void)mode; capturing = 1;)
ENTRY(cuStreamEndCapture, (void *stream, void **graph), (void)stream; made_of_graph = capturing - 1;
      capturing = 0; *graph = &made_of_graph; stub_state.live++;)
ENTRY(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags),
      (void)flags;
      *exec = graph; stub_state.live++;)
ENTRY(cuGraphLaunch, (void *exec, void *stream), (void)stream;
      stub_state.launches += *(const int *)exec;)
DESTROY(cuGraphExecDestroy)
DESTROY(cuGraphDestroy)

/* ---- kernels: a function is the name of its entry ---- */

ENTRY(cuModuleLoadData, (void **out, const void *image), (void)image; *out = &stub_state;
      stub_state.live++;)
DESTROY(cuModuleUnload)
ENTRY(cuModuleGetFunction, (void **out, void *module, const char *name), (void)module;
      memcpy(out, &name, sizeof name);)
ENTRY(cuFuncLoad, (void *function), (void)function;)
ENTRY(cuFuncGetAttribute, (int *out, int attribute, void *function), (void)function;
      *out = attribute == FUNC_VERSION  ? setting("STUB_CODE_SM", setting("STUB_SM", 90))
             : attribute == FUNC_SHARED ? 1024
                                        : 0;)
ENTRY(cuFuncSetAttribute, (void *function, int attribute, int value), (void)function;
      (void)attribute; (void)value;)
ENTRY(cuLaunchKernel,
      (void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
       unsigned threads_z, unsigned shared_bytes, void *stream, void **params, void **extra),
      (void)threads_y;
      (void)threads_z; (void)stream; (void)params; struct stub_launch *l = &stub_state.launch;
      *l = (struct stub_launch){.entry = function,
                                .grid = {x, y, z},
                                .threads = threads,
                                .shared_bytes = shared_bytes};
      memcpy(&l->param_bytes, extra[3], sizeof l->param_bytes);
      memcpy(l->params, extra[1],
             l->param_bytes < sizeof l->params ? l->param_bytes : sizeof l->params);
      if (capturing) capturing++; else stub_state.launches++;)
