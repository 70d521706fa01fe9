/* SPDX-License-Identifier: Apache-2.0
 *
 * api.h: the part of the CUDA driver API, of cuBLASLt and of NCCL that the runtime uses, declared here
 * so that building it needs no CUDA headers and running it needs no CUDA until a GPU is opened.
 * tests/unit/test_cuda_abi.c holds the constants, sizes and exported names against NVIDIA's headers
 * where those are installed.
 *
 * Handles are void *, device pointers uint64_t, results int.
 */
#ifndef NOJIT_CUDA_API_H
#define NOJIT_CUDA_API_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* X(name in NVIDIA's headers, value); here they are called NJ_<name>. */
#define NJ_CUDA_CONSTANTS(X)                                                                       \
    X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)                                    \
    X(CUDA_SUCCESS, 0)                                                                             \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                 \
    X(CUDA_ERROR_NO_DEVICE, 100)                                                                   \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                                           \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                           \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                                        \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                             \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                              \
    X(CUDA_ERROR_ASSERT, 710)                                                                      \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                                        \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                                         \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                                          \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                                       \
    X(CUDA_ERROR_INVALID_PC, 718)                                                                  \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                                                               \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                                \
    X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                                                          \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                            \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                            \
    X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                                      \
    X(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                                                         \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                          \
    X(CU_MEM_ATTACH_GLOBAL, 1)                                                                     \
    X(CU_MEMORYTYPE_UNIFIED, 4)                                                                    \
    X(CU_STREAM_NON_BLOCKING, 1)                                                                   \
    X(CU_EVENT_DEFAULT, 0)                                                                         \
    X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                      \
    X(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6)                                                          \
    X(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 9)                                                         \
    X(CU_TENSOR_MAP_INTERLEAVE_NONE, 0)                                                            \
    X(CU_TENSOR_MAP_SWIZZLE_128B, 3)                                                               \
    X(CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 3)                                                       \
    X(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0)

#define NJ_CUBLASLT_CONSTANTS(X)                                                                   \
    X(CUBLAS_STATUS_SUCCESS, 0)                                                                    \
    X(CUBLAS_STATUS_ALLOC_FAILED, 3)                                                               \
    X(CUBLAS_STATUS_NOT_SUPPORTED, 15)                                                             \
    X(CUBLAS_COMPUTE_32F, 68)                                                                      \
    X(CUBLAS_OP_N, 0)                                                                              \
    X(CUBLAS_OP_T, 1)                                                                              \
    X(CUDA_R_32F, 0)                                                                               \
    X(CUDA_R_16F, 2)                                                                               \
    X(CUDA_R_16BF, 14)                                                                             \
    X(CUDA_R_8F_E4M3, 28)                                                                          \
    X(CUDA_R_8F_E5M2, 29)                                                                          \
    X(CUBLASLT_MATMUL_DESC_TRANSA, 3)                                                              \
    X(CUBLASLT_MATMUL_DESC_TRANSB, 4)                                                              \
    X(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 17)                                                    \
    X(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 18)                                                    \
    X(CUBLASLT_MATMUL_DESC_FAST_ACCUM, 25)                                                         \
    X(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 31)                                                       \
    X(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 32)                                                       \
    X(CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, 0)                                                  \
    X(CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0, 2)                                                 \
    X(CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F, 3)                                               \
    X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)                                                 \
    X(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)                                               \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)                                               \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)                                               \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)                                               \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)                                               \
    X(CUBLASLT_ALGO_CONFIG_ID, 0)                                                                  \
    X(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2)                                                          \
    X(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 3)                                                    \
    X(CUBLASLT_REDUCTION_SCHEME_NONE, 0)                                                           \
    X(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2)

#define NJ_NCCL_CONSTANTS(X)                                                                       \
    X(ncclSuccess, 0)                                                                              \
    X(ncclInProgress, 7)                                                                           \
    X(ncclUint8, 1)                                                                                \
    X(NCCL_CONFIG_UNDEF_INT, INT_MIN)                                                              \
    X(NCCL_CTA_POLICY_ZERO, 2)                                                                     \
    X(NCCL_WIN_COLL_SYMMETRIC, 1)

enum nj_cuda_constant {
#define NJ_ENUM(name, value) NJ_##name = (value),
    NJ_CUDA_CONSTANTS(NJ_ENUM) NJ_CUBLASLT_CONSTANTS(NJ_ENUM) NJ_NCCL_CONSTANTS(NJ_ENUM)
#undef NJ_ENUM
};

/* CUlaunchAttribute and CUlaunchConfig. */
struct nj_launch_attribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        int value;
    } value;
};
struct nj_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void *stream;
    struct nj_launch_attribute *attributes;
    unsigned attribute_count;
};

/* CUDA_MEMCPY2D: a copy of rows of `width` bytes, `pitch` bytes apart on each side. */
struct nj_memcpy_2d {
    size_t from_x, from_y;
    int from_type;
    const void *from_host;
    uint64_t from;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_type;
    void *to_host;
    uint64_t to;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
};

/* Values for cuLaunchKernelEx's extra: macros in NVIDIA's header, pointers by type. */
#define NJ_LAUNCH_PARAM_END ((void *)0)
#define NJ_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define NJ_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

struct nj_uuid { /* CUuuid */
    unsigned char bytes[16];
};

struct nj_lt_algo { /* cublasLtMatmulAlgo_t */
    uint64_t data[8];
};
struct nj_lt_result { /* cublasLtMatmulHeuristicResult_t */
    struct nj_lt_algo algo;
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

/* X(result, name, exported symbol, parameters) */
#define NJ_DRIVER_SYMBOLS(X)                                                                       \
    X(int, cuDriverGetVersion, "cuDriverGetVersion", (int *version))                               \
    X(int, cuInit, "cuInit", (unsigned flags))                                                     \
    X(int, cuGetErrorName, "cuGetErrorName", (int error, const char **out))                        \
    X(int, cuGetErrorString, "cuGetErrorString", (int error, const char **out))                    \
    X(int, cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                     \
    X(int, cuDeviceGet, "cuDeviceGet", (int *device, int ordinal))                                 \
    X(int, cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int *can, int device, int peer))       \
    X(int, cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *id, int bytes, int device))          \
    X(int, cuDeviceGetName, "cuDeviceGetName", (char *name, int bytes, int device))                \
    X(int, cuDeviceGetUuid, "cuDeviceGetUuid_v2", (struct nj_uuid * out, int device))              \
    X(int, cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *out, int attribute, int device))    \
    X(int, cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, int device))                  \
    X(int, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **context, int device))     \
    X(int, cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int device))                \
    X(int, cuCtxSetCurrent, "cuCtxSetCurrent", (void *context))                                    \
    X(int, cuMemGetInfo, "cuMemGetInfo_v2", (size_t * available, size_t * total))                  \
    X(int, cuMemAlloc, "cuMemAlloc_v2", (uint64_t * ptr, size_t bytes))                            \
    X(int, cuMemAllocManaged, "cuMemAllocManaged", (uint64_t * ptr, size_t bytes, unsigned flags)) \
    X(int, cuMemFree, "cuMemFree_v2", (uint64_t ptr))                                              \
    X(int, cuMemHostAlloc, "cuMemHostAlloc", (void **ptr, size_t bytes, unsigned flags))           \
    X(int, cuMemFreeHost, "cuMemFreeHost", (void *ptr))                                            \
    X(int, cuMemcpyAsync, "cuMemcpyAsync",                                                         \
      (uint64_t dst, uint64_t src, size_t bytes, void *stream))                                    \
    X(int, cuMemcpy2DAsync, "cuMemcpy2DAsync_v2", (const struct nj_memcpy_2d *copy, void *stream)) \
    X(int, cuMemsetD8Async, "cuMemsetD8Async",                                                     \
      (uint64_t dst, unsigned char value, size_t bytes, void *stream))                             \
    X(int, cuStreamCreate, "cuStreamCreate", (void **stream, unsigned flags))                      \
    X(int, cuStreamDestroy, "cuStreamDestroy_v2", (void *stream))                                  \
    X(int, cuStreamSynchronize, "cuStreamSynchronize", (void *stream))                             \
    X(int, cuStreamWaitEvent, "cuStreamWaitEvent", (void *stream, void *event, unsigned flags))    \
    X(int, cuEventCreate, "cuEventCreate", (void **event, unsigned flags))                         \
    X(int, cuEventDestroy, "cuEventDestroy_v2", (void *event))                                     \
    X(int, cuEventRecord, "cuEventRecord", (void *event, void *stream))                            \
    X(int, cuEventSynchronize, "cuEventSynchronize", (void *event))                                \
    X(int, cuEventElapsedTime, "cuEventElapsedTime_v2", (float *ms, void *from, void *to))         \
    X(int, cuStreamBeginCapture, "cuStreamBeginCapture_v2", (void *stream, int mode))              \
    X(int, cuStreamEndCapture, "cuStreamEndCapture", (void *stream, void **graph))                 \
    X(int, cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags",                             \
      (void **exec, void *graph, unsigned long long flags))                                        \
    X(int, cuGraphUpload, "cuGraphUpload", (void *exec, void *stream))                             \
    X(int, cuGraphLaunch, "cuGraphLaunch", (void *exec, void *stream))                             \
    X(int, cuGraphExecDestroy, "cuGraphExecDestroy", (void *exec))                                 \
    X(int, cuGraphDestroy, "cuGraphDestroy", (void *graph))                                        \
    X(int, cuModuleLoadData, "cuModuleLoadData", (void **module, const void *image))               \
    X(int, cuModuleUnload, "cuModuleUnload", (void *module))                                       \
    X(int, cuModuleGetFunction, "cuModuleGetFunction",                                             \
      (void **function, void *module, const char *name))                                           \
    X(int, cuFuncLoad, "cuFuncLoad", (void *function))                                             \
    X(int, cuFuncGetAttribute, "cuFuncGetAttribute", (int *out, int attribute, void *function))    \
    X(int, cuFuncSetAttribute, "cuFuncSetAttribute", (void *function, int attribute, int value))   \
    X(int, cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                       \
      (void *map, int type, uint32_t rank, void *address, const uint64_t *sizes,                   \
       const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,        \
       int swizzle, int promotion, int fill))                                                      \
    X(int, cuLaunchKernelEx, "cuLaunchKernelEx",                                                   \
      (const struct nj_launch_config *config, void *function, void **params, void **extra))

#define NJ_CUBLASLT_SYMBOLS(X)                                                                     \
    X(size_t, cublasLtGetVersion, "cublasLtGetVersion", (void))                                    \
    X(const char *, cublasLtGetStatusName, "cublasLtGetStatusName", (int status))                  \
    X(int, cublasLtCreate, "cublasLtCreate", (void **handle))                                      \
    X(int, cublasLtDestroy, "cublasLtDestroy", (void *handle))                                     \
    X(int, cublasLtMatmulDescCreate, "cublasLtMatmulDescCreate",                                   \
      (void **desc, int compute_type, int scale_type))                                             \
    X(int, cublasLtMatmulDescDestroy, "cublasLtMatmulDescDestroy", (void *desc))                   \
    X(int, cublasLtMatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute",                       \
      (void *desc, int attribute, const void *value, size_t bytes))                                \
    X(int, cublasLtMatrixLayoutCreate, "cublasLtMatrixLayoutCreate",                               \
      (void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld))                      \
    X(int, cublasLtMatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy", (void *layout))             \
    X(int, cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate", (void **preference))  \
    X(int, cublasLtMatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy", (void *preference)) \
    X(int, cublasLtMatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute",           \
      (void *preference, int attribute, const void *value, size_t bytes))                          \
    X(int, cublasLtMatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic",                       \
      (void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference, int wanted, \
       struct nj_lt_result *out, int *found))                                                      \
    X(int, cublasLtMatmulAlgoConfigGetAttribute, "cublasLtMatmulAlgoConfigGetAttribute",           \
      (const struct nj_lt_algo *algo, int attribute, void *out, size_t bytes, size_t *written))    \
    X(int, cublasLtMatmul, "cublasLtMatmul",                                                       \
      (void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b,  \
       void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,   \
       const struct nj_lt_algo *algo, void *workspace, size_t workspace_bytes, void *stream))

struct nj_nccl_id { /* ncclUniqueId */
    char bytes[128];
};
enum { NJ_NCCL_CONFIG_MAGIC = (int)0xcafebeef, NJ_NCCL_CONFIG_VERSION = 22700 };
struct nj_nccl_config { /* ncclConfig_t of 2.27, which newer versions accept, too */
    size_t bytes;
    int magic, version;
    int blocking, cga, least_ctas, most_ctas;
    const char *net;
    int split_share, traffic_class;
    const char *name;
    int collnet, cta_policy, shrink_share, nvls_ctas;
};

#define NJ_NCCL_SYMBOLS(X)                                                                         \
    X(int, ncclGetVersion, "ncclGetVersion", (int *version))                                       \
    X(int, ncclGetUniqueId, "ncclGetUniqueId", (struct nj_nccl_id * id))                           \
    X(int, ncclCommInitRankConfig, "ncclCommInitRankConfig",                                       \
      (void **comm, int ranks, struct nj_nccl_id id, int rank, struct nj_nccl_config *config))     \
    X(int, ncclCommGetAsyncError, "ncclCommGetAsyncError", (void *comm, int *error))               \
    X(int, ncclCommFinalize, "ncclCommFinalize", (void *comm))                                     \
    X(int, ncclCommDestroy, "ncclCommDestroy", (void *comm))                                       \
    X(const char *, ncclGetErrorString, "ncclGetErrorString", (int error))                         \
    X(const char *, ncclGetLastError, "ncclGetLastError", (void *comm))                            \
    X(int, ncclGroupStart, "ncclGroupStart", (void))                                               \
    X(int, ncclGroupEnd, "ncclGroupEnd", (void))                                                   \
    X(int, ncclSend, "ncclSend",                                                                   \
      (const void *from, size_t count, int type, int peer, void *comm, void *stream))              \
    X(int, ncclRecv, "ncclRecv",                                                                   \
      (void *to, size_t count, int type, int peer, void *comm, void *stream))                      \
    X(int, ncclAllGather, "ncclAllGather",                                                         \
      (const void *from, void *to, size_t count, int type, void *comm, void *stream))              \
    X(int, ncclBroadcast, "ncclBroadcast",                                                         \
      (const void *from, void *to, size_t count, int type, int root, void *comm, void *stream))    \
    X(int, ncclMemAlloc, "ncclMemAlloc", (void **out, size_t bytes))                               \
    X(int, ncclMemFree, "ncclMemFree", (void *memory))                                             \
    X(int, ncclCommWindowRegister, "ncclCommWindowRegister",                                       \
      (void *comm, void *memory, size_t bytes, void **window, int flags))                          \
    X(int, ncclCommWindowDeregister, "ncclCommWindowDeregister", (void *comm, void *window))
/* Functions of NCCL 2.28 and later; NULL before. */
#define NJ_NCCL_LATER_SYMBOLS(X)                                                                   \
    X(int, ncclAlltoAll, "ncclAlltoAll",                                                           \
      (const void *from, void *to, size_t count, int type, void *comm, void *stream))

/* Functions of the driver's management library that describe links. */
#define NJ_NVML_SYMBOLS(X)                                                                         \
    X(int, nvmlInit, "nvmlInit_v2", (void))                                                        \
    X(int, nvmlDeviceGetHandleByPciBusId, "nvmlDeviceGetHandleByPciBusId_v2",                      \
      (const char *id, void **device))                                                             \
    X(int, nvmlDeviceGetNvLinkState, "nvmlDeviceGetNvLinkState",                                   \
      (void *device, unsigned link, int *active))                                                  \
    X(int, nvmlDeviceGetCurrPcieLinkGeneration, "nvmlDeviceGetCurrPcieLinkGeneration",             \
      (void *device, unsigned *out))                                                               \
    X(int, nvmlDeviceGetCurrPcieLinkWidth, "nvmlDeviceGetCurrPcieLinkWidth",                       \
      (void *device, unsigned *out))                                                               \
    X(int, nvmlDeviceGetMaxPcieLinkGeneration, "nvmlDeviceGetMaxPcieLinkGeneration",               \
      (void *device, unsigned *out))                                                               \
    X(int, nvmlDeviceGetMaxPcieLinkWidth, "nvmlDeviceGetMaxPcieLinkWidth",                         \
      (void *device, unsigned *out))

struct nj_driver {
#define NJ_FIELD(result, name, symbol, params) result(*name) params;
    NJ_DRIVER_SYMBOLS(NJ_FIELD)
};
struct nj_cublaslt {
    NJ_CUBLASLT_SYMBOLS(NJ_FIELD)
};
struct nj_nccl {
    NJ_NCCL_SYMBOLS(NJ_FIELD)
    NJ_NCCL_LATER_SYMBOLS(NJ_FIELD)
};
struct nj_nvml {
    NJ_NVML_SYMBOLS(NJ_FIELD)
#undef NJ_FIELD
};

#endif
