/* SPDX-License-Identifier: Apache-2.0
 *
 * stub_driver.c: a libcuda.so.1 that knows one GPU, $STUB_SM (86 for sm_86), part of the host's chip
 * if $STUB_INTEGRATED is 1, and the CUDA version $STUB_CUDA, and can open it but do nothing with
 * it: enough to see what the program says and decides at start-up. It refuses a process that has
 * not forbidden the JIT. As libcublasLt.so.13 it can be opened, too.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_SUPPORTED = 801, INTEGRATED = 18, MAJOR = 75, MINOR = 76 };

static int setting(const char *name, int otherwise)
{
    const char *value = getenv(name);
    return value != NULL ? (int)strtol(value, NULL, 10) : otherwise;
}

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

/* The driver's own names; every function returns 0 for success. */
#define ENTRY(name, args, body)                                                                    \
    int name args;                                                                                 \
    int name args                                                                                  \
    {                                                                                              \
        body                                                                                       \
    }

ENTRY(cuDriverGetVersion, (int *out), *out = setting("STUB_CUDA", 13000); return 0;)
ENTRY(cuInit, (unsigned flags), return jit_is_forbidden() ? (int)flags : NOT_SUPPORTED;)
ENTRY(cuGetErrorName, (int error, const char **out), *out = "CUDA_ERROR_NOT_SUPPORTED";
      return error == 0;)
ENTRY(cuGetErrorString, (int error, const char **out), *out = "not supported"; return error == 0;)
ENTRY(cuDeviceGetCount, (int *out), *out = 1; return 0;)
ENTRY(cuDeviceGet, (int *out, int ordinal), *out = ordinal; return 0;)
ENTRY(cuDeviceGetName, (char *name, int bytes, int device),
      snprintf(name, (size_t)bytes, "Stub GPU");
      return device;)
ENTRY(cuDeviceTotalMem_v2, (size_t * out, int device), *out = (size_t)8 << 30; return device;)
ENTRY(cuDeviceGetAttribute, (int *out, int attribute, int device),
      *out = attribute == MAJOR        ? setting("STUB_SM", 90) / 10
             : attribute == MINOR      ? setting("STUB_SM", 90) % 10
             : attribute == INTEGRATED ? setting("STUB_INTEGRATED", 0)
                                       : 0;
      return device;)
ENTRY(cuDevicePrimaryCtxRetain, (void **out, int device), *out = out; return device;)
ENTRY(cuDevicePrimaryCtxRelease_v2, (int device), return device;)
ENTRY(cuCtxSetCurrent, (void *context), return context == NULL;)
ENTRY(cuMemGetInfo_v2, (size_t * available, size_t *total), *available = *total = (size_t)8 << 30;
      return 0;)
ENTRY(cuModuleLoadData, (void **out, const void *image), *out = out; return image == NULL;)
ENTRY(cuModuleUnload, (void *module), return module == NULL;)
ENTRY(cuModuleGetFunction, (void **out, void *module, const char *name), *out = module;
      return name == NULL;)
ENTRY(cuFuncLoad, (void *function), return function == NULL;)
ENTRY(cuFuncGetAttribute, (int *out, int attribute, void *function), *out = setting("STUB_SM", 90);
      return function == NULL || attribute < 0;)
ENTRY(cuFuncSetAttribute, (void *function, int attribute, int value),
      return function == NULL || attribute < 0 || value < 0;)

#define CANNOT(name) ENTRY(name, (void), return NOT_SUPPORTED;)
CANNOT(cuMemAlloc_v2)
CANNOT(cuMemAllocManaged)
CANNOT(cuMemFree_v2)
CANNOT(cuMemHostAlloc)
CANNOT(cuMemFreeHost)
CANNOT(cuMemcpyAsync)
CANNOT(cuMemsetD8Async)
CANNOT(cuStreamCreate)
CANNOT(cuStreamDestroy_v2)
CANNOT(cuStreamSynchronize)
CANNOT(cuEventCreate)
CANNOT(cuEventDestroy_v2)
CANNOT(cuEventRecord)
CANNOT(cuEventSynchronize)
CANNOT(cuEventElapsedTime_v2)
CANNOT(cuStreamBeginCapture_v2)
CANNOT(cuStreamEndCapture)
CANNOT(cuGraphInstantiateWithFlags)
CANNOT(cuGraphLaunch)
CANNOT(cuGraphExecDestroy)
CANNOT(cuGraphDestroy)
CANNOT(cuLaunchKernel)

ENTRY(cublasLtGetVersion, (void), return 130100;)
ENTRY(cublasLtCreate, (void **out), *out = out; return 0;)
ENTRY(cublasLtDestroy, (void *handle), return handle == NULL;)
CANNOT(cublasLtGetStatusName)
CANNOT(cublasLtMatmulAlgoCheck)
CANNOT(cublasLtMatmulDescCreate)
CANNOT(cublasLtMatmulDescDestroy)
CANNOT(cublasLtMatmulDescSetAttribute)
CANNOT(cublasLtMatrixLayoutCreate)
CANNOT(cublasLtMatrixLayoutDestroy)
CANNOT(cublasLtMatmulPreferenceCreate)
CANNOT(cublasLtMatmulPreferenceDestroy)
CANNOT(cublasLtMatmulPreferenceSetAttribute)
CANNOT(cublasLtMatmulAlgoGetHeuristic)
CANNOT(cublasLtMatmulAlgoConfigGetAttribute)
CANNOT(cublasLtMatmul)
