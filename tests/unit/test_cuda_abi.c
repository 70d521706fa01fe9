/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_abi.c: compares runtime/cuda/api.h with NVIDIA's headers: constants and layouts at compile time, exported
 * names at run time. Parameter lists are not compared: handles are void * in api.h. Without the headers (-I of the
 * toolkit's include folder) these tests are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#if defined __has_include
#if __has_include(<cuda.h>) && __has_include(<cublasLt.h>)
#define HAVE_CUDA_HEADERS 1
#include <cublasLt.h>
#include <cuda.h>
#endif
#endif

#if defined HAVE_CUDA_HEADERS && __has_include(<nccl.h>)
#define HAVE_NCCL_HEADER 1
#include <nccl.h>
#endif

#include "cuda/api.h"

static const char *const symbols[] = {
#define ROW(result, name, symbol, params) symbol,
    NJ_DRIVER_SYMBOLS(ROW) NJ_CUBLASLT_SYMBOLS(ROW) NJ_NCCL_SYMBOLS(ROW) NJ_NCCL_LATER_SYMBOLS(ROW)
        NJ_NVML_SYMBOLS(ROW)
#undef ROW
};

static void symbols_of_cuda_are_listed_once(void **state)
{
    size_t count = sizeof symbols / sizeof *symbols;

    (void)state;
    assert_int_equal(count * sizeof(void (*)(void)),
                     sizeof(struct nj_driver) + sizeof(struct nj_cublaslt) +
                         sizeof(struct nj_nccl) + sizeof(struct nj_nvml));
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(symbols[i], symbols[j]);
}

#ifdef HAVE_CUDA_HEADERS

#define CHECK(name, value) _Static_assert((long long)name == (value), #name);
NJ_CUDA_CONSTANTS(CHECK)
NJ_CUBLASLT_CONSTANTS(CHECK)
#undef CHECK

_Static_assert(sizeof(CUdevice) == sizeof(int), "CUdevice");
_Static_assert(sizeof(CUresult) == sizeof(int), "CUresult");
_Static_assert(sizeof(CUdeviceptr) == sizeof(uint64_t), "CUdeviceptr");
_Static_assert(sizeof(CUstreamCaptureMode) == sizeof(int), "CUstreamCaptureMode");
_Static_assert(sizeof(CUtensorMap) == 128 && _Alignof(CUtensorMap) <= 128, "CUtensorMap");
_Static_assert(sizeof(CUtensorMapDataType) == sizeof(int), "CUtensorMapDataType");
_Static_assert(sizeof(CUtensorMapSwizzle) == sizeof(int), "CUtensorMapSwizzle");
_Static_assert(sizeof(cuuint32_t) == 4 && sizeof(cuuint64_t) == 8, "sizes of a tensor map");
_Static_assert(sizeof(CUDA_MEMCPY2D) == sizeof(struct nj_memcpy_2d), "CUDA_MEMCPY2D");
#define SAME(field, ours)                                                                          \
    _Static_assert(offsetof(CUDA_MEMCPY2D, field) == offsetof(struct nj_memcpy_2d, ours), #field)
SAME(srcMemoryType, from_type);
SAME(srcDevice, from);
SAME(srcPitch, from_pitch);
SAME(dstMemoryType, to_type);
SAME(dstDevice, to);
SAME(dstPitch, to_pitch);
SAME(WidthInBytes, width);
SAME(Height, height);
#undef SAME
_Static_assert(sizeof(cublasStatus_t) == sizeof(int), "cublasStatus_t");
_Static_assert(sizeof(cudaDataType_t) == sizeof(int), "cudaDataType_t");
_Static_assert(sizeof(cublasComputeType_t) == sizeof(int), "cublasComputeType_t");
_Static_assert(sizeof(cublasOperation_t) == sizeof(int32_t), "cublasOperation_t");
_Static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(struct nj_lt_algo), "algorithm");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == sizeof(struct nj_lt_result), "result");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) ==
                   offsetof(struct nj_lt_result, workspace_bytes),
               "result: workspace");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) ==
                   offsetof(struct nj_lt_result, state),
               "result: state");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, wavesCount) ==
                   offsetof(struct nj_lt_result, waves),
               "result: waves");

#ifdef HAVE_NCCL_HEADER
#define CHECK(name, value) _Static_assert((long long)name == (value), #name);
NJ_NCCL_CONSTANTS(CHECK)
#undef CHECK
_Static_assert(sizeof(ncclUniqueId) == sizeof(struct nj_nccl_id), "ncclUniqueId");
_Static_assert(sizeof(ncclConfig_t) >= sizeof(struct nj_nccl_config), "ncclConfig_t");
#define SAME(field, ours)                                                                          \
    _Static_assert(offsetof(ncclConfig_t, field) == offsetof(struct nj_nccl_config, ours), #field)
SAME(magic, magic);
SAME(version, version);
SAME(blocking, blocking);
SAME(netName, net);
SAME(splitShare, split_share);
SAME(trafficClass, traffic_class);
SAME(commName, name);
SAME(collnetEnable, collnet);
SAME(nvlsCTAs, nvls_ctas);
#endif

#define TEXT(x) #x
#define EXPANDED(x) TEXT(x)

static void names_are_those_that_the_libraries_export(void **state)
{
    (void)state;
    /* The toolkit's headers rename a function to its current version with a macro, whose expansion is the symbol. */
#define ROW(result, name, symbol, params) assert_string_equal(EXPANDED(name), symbol);
    NJ_DRIVER_SYMBOLS(ROW)
    NJ_CUBLASLT_SYMBOLS(ROW)
#undef ROW
}

static void launch_parameters_have_cudas_layout(void **state)
{
    (void)state;
    assert_ptr_equal(NJ_LAUNCH_PARAM_END, CU_LAUNCH_PARAM_END);
    assert_ptr_equal(NJ_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_POINTER);
    assert_ptr_equal(NJ_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_BUFFER_SIZE);
}

#else

static void names_are_those_that_the_libraries_export(void **state)
{
    (void)state;
    print_message("no cuda.h or cublasLt.h on the include path: nothing to compare with\n");
    skip();
}

static void launch_parameters_have_cudas_layout(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols_of_cuda_are_listed_once),
        cmocka_unit_test(names_are_those_that_the_libraries_export),
        cmocka_unit_test(launch_parameters_have_cudas_layout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
