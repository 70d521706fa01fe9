/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_sim.c: the CUDA backend on the simulated driver and cuBLASLt: its calls, its messages when one of their
 * functions fails, and that nothing is left allocated then. test_device.c and the harness check what a GPU computes.
 */
#include "cuda_sim.h"

#include <stdbool.h>

#include "nojit_ops.h"

static void count_line(void *user, const char *line)
{
    *(int *)user += strstr(line, ": sm_90a, ") != NULL;
}

static void opening_loads_every_kernel(void **state)
{
    (void)state;
    int lines = 0;
    const struct nj_options o = {
        .device = NJ_DEVICE_CUDA, .verbose = 1, .log = count_line, .log_user = &lines};
    nj_context *ctx = open_context(&o);
    const struct nj_device_info *info = nj_context_device(ctx);
    assert_string_equal(info->name, "Simulated NVIDIA H100 80GB HBM3");
    assert_int_equal(info->sm, 90);
    assert_int_equal(info->kernels_loaded, nj_kernel_count);
    assert_int_equal(lines, nj_kernel_count);
    assert_int_equal(info->gemm_version, 130100);
    assert_int_equal(info->lp_is_f16, 0);
    assert_string_equal(info->arch, "sm_90a");
    for (uint32_t i = 0; i < nj_kernel_count; i++)
        assert_int_equal(nj_kernel_available(ctx, (int)i), 1);
    nj_context_destroy(ctx);
    setenv("NOJIT_SIM_DEVICE", "t4", 1);
    ctx = open_context(&cuda);
    assert_int_equal(nj_context_device(ctx)->lp_is_f16, 1);
    assert_string_equal(nj_context_device(ctx)->arch, "sm_75");
    for (uint32_t i = 0; i < nj_kernel_count; i++)
        assert_int_equal(nj_kernel_available(ctx, (int)i), nj_kernels[i].only == NULL);
    nj_context_destroy(ctx);
    assert_int_equal(sim->live, 0);
    assert_int_equal(*lt_live, 0);
}

static void opening_says_what_fails(void **state)
{
    static const struct {
        const char *function; /* function of the driver that fails with `error` */
        int error;
        const char *setting, *value; /* or a variable of the environment */
        int ordinal, code;
        const char *says;
    } cases[] = {
        {"cuInit", 100, NULL, NULL, 0, NJ_E_NO_DEVICE, "CUDA_VISIBLE_DEVICES"},
        {"cuInit", 999, NULL, NULL, 0, NJ_E_DRIVER, "starting the driver"},
        {"cuDeviceGetCount", 3, NULL, NULL, 0, NJ_E_DEVICE,
         "cuDeviceGetCount: CUDA_ERROR_NOT_INITIALIZED"},
        {"cuDeviceGet", 3, NULL, NULL, 0, NJ_E_DEVICE, "properties of the GPU"},
        {"cuDeviceGetName", 3, NULL, NULL, 0, NJ_E_DEVICE, "properties of the GPU"},
        {"cuDeviceTotalMem_v2", 3, NULL, NULL, 0, NJ_E_DEVICE, "properties of the GPU"},
        {"cuDeviceGetAttribute", 3, NULL, NULL, 0, NJ_E_DEVICE, "(3), initialization error"},
        {"cuDevicePrimaryCtxRetain", 2, NULL, NULL, 0, NJ_E_NOMEM, "opening a context"},
        {"cuCtxSetCurrent", 201, NULL, NULL, 0, NJ_E_DEVICE, "GPU context current"},
        {"cuModuleLoadData", 209, NULL, NULL, 0, NJ_E_NO_CODE, "make ARCHS=sm_90"},
        {"cuModuleLoadData", 200, NULL, NULL, 0, NJ_E_DEVICE, "accumulate"},
        {"cuModuleGetFunction", 500, NULL, NULL, 0, NJ_E_DEVICE, "nj_"},
        {"cuFuncLoad", 3, NULL, NULL, 0, NJ_E_DEVICE, "accumulate"},
        {"cuFuncGetAttribute", 3, NULL, NULL, 0, NJ_E_DEVICE, "accumulate"},
        {"cuFuncSetAttribute", 3, NULL, NULL, 0, NJ_E_DEVICE, "(3), initialization error"},
        {NULL, 0, NULL, NULL, 3, NJ_E_NO_DEVICE, "GPU 3 wanted, the driver sees 1"},
        {NULL, 0, NULL, NULL, -1, NJ_E_NO_DEVICE, "GPU -1 wanted"},
        {NULL, 0, "NOJIT_SIM_DEVICE", "sm_86", 0, NJ_E_NO_CODE, "make ARCHS=sm_86"},
        {NULL, 0, "NOJIT_MEMORY", "fast", 0, NJ_E_ARG, "NOJIT_MEMORY=fast"},
        {NULL, 0, "NOJIT_SIM_LT_FAIL", "cublasLtCreate", 0, NJ_E_LIBRARY,
         "CUBLAS_STATUS_INVALID_VALUE"},
        {NULL, 0, "NOJIT_SIM_LT_VERSION", "120304", 0, NJ_E_LIBRARY, "is version 12.3.4, not 13"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct nj_options o = {.device = NJ_DEVICE_CUDA, .ordinal = cases[i].ordinal};
        nj_context *ctx;
        afresh(state);
        fails(cases[i].function, cases[i].error);
        if (cases[i].setting)
            setenv(cases[i].setting, cases[i].value, 1);
        const int rc = nj_context_create(&ctx, &o);
        if (rc != cases[i].code || strstr(nj_context_error(ctx), cases[i].says) == NULL)
            fail_msg("case %zu: %s: %s", i, nj_error_name(rc), nj_context_error(ctx));
        nj_context_destroy(ctx);
        assert_int_equal(sim->live, 0);
        assert_int_equal(*lt_live, 0);
    }
}

static void code_that_is_not_for_the_gpu_is_refused(void **state)
{
    (void)state;
    nj_context *ctx;
    sim->code_sm = 75;
    assert_int_equal(nj_context_create(&ctx, &cuda), NJ_E_NO_CODE);
    assert_non_null(strstr(nj_context_error(ctx), "code of sm_75 on sm_90"));
    nj_context_destroy(ctx);
    assert_int_equal(sim->live, 0);
}

/* The first of several GPUs is used; if this build has no code for it, the message names one that it has code for. */
static void another_gpu_that_fits_is_named(void **state)
{
    (void)state;
    nj_context *ctx;
    setenv("NOJIT_SIM_DEVICE", "sm_86,rtx4090", 1);
    assert_int_equal(nj_context_create(&ctx, &cuda), NJ_E_NO_CODE);
    assert_non_null(strstr(nj_context_error(ctx), "GPU 1 of this machine is sm_89: choose it by "
                                                  "CUDA_VISIBLE_DEVICES=1"));
    nj_context_destroy(ctx);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    ctx = open_context(&cuda);
    assert_int_equal(nj_context_device(ctx)->sm, 89);
    nj_context_destroy(ctx);
    /* the second of the visible GPUs is not GPU 1 of the machine */
    setenv("NOJIT_SIM_DEVICE", "sm_86,sm_86,rtx4090", 1);
    setenv("CUDA_VISIBLE_DEVICES", "0,2", 1);
    assert_int_equal(nj_context_create(&ctx, &cuda), NJ_E_NO_CODE);
    assert_null(strstr(nj_context_error(ctx), "CUDA_VISIBLE_DEVICES"));
    nj_context_destroy(ctx);
}

static void count_any_line(void *user, const char *line)
{
    *(int *)user += strstr(line, "whether it shares memory with the host") != NULL;
}

static void a_gpu_that_does_not_tell_gets_device_memory(void **state)
{
    enum { ARCH_AND_SIZE = 3 }; /* attributes that are read before this */
    int lines = 0;
    const struct nj_options o = {
        .device = NJ_DEVICE_CUDA, .log = count_any_line, .log_user = &lines};
    (void)state;
    setenv("NOJIT_SIM_DEVICE", "gb10", 1);
    fails("cuDeviceGetAttribute", 1);
    sim->after = ARCH_AND_SIZE;
    nj_context *ctx = open_context(&o);
    assert_int_equal(nj_context_device(ctx)->managed, 0);
    assert_int_equal(nj_context_device(ctx)->integrated, 0);
    assert_int_equal(lines, 1);
    nj_context_destroy(ctx);
}

/* ---- every call once ---- */

struct things {
    nj_context *ctx;
    nj_stream *s;
    nj_event *from, *to;
    nj_graph *graph;
    void *device, *host;
};

static int launch_add(struct things *t)
{
    char *p = t->device;
    return nj_add(t->s, NJ_F32, &(struct nj_add){.y = p, .a = p + 4096, .b = p + 8192, .n = 1000});
}

/* Use everything once. Return the first error, or 0. */
static int use_everything(struct things *t)
{
    float ms;
    int rc = nj_stream_create(t->ctx, &t->s);
    rc = rc ? rc : nj_alloc(t->ctx, NJ_MEM_DEVICE, 12288, &t->device);
    rc = rc ? rc : nj_alloc(t->ctx, NJ_MEM_HOST, 4096, &t->host);
    rc = rc ? rc : nj_copy(t->s, t->device, t->host, 4096);
    rc = rc ? rc : nj_zero(t->s, t->device, 4096);
    rc = rc ? rc : nj_event_create(t->ctx, &t->from);
    rc = rc ? rc : nj_event_create(t->ctx, &t->to);
    rc = rc ? rc : nj_event_record(t->from, t->s);
    rc = rc ? rc : nj_event_record(t->to, t->s);
    rc = rc ? rc : nj_event_sync(t->to);
    rc = rc ? rc : nj_event_elapsed_ms(t->from, t->to, &ms);
    rc = rc ? rc : launch_add(t);
    rc = rc ? rc : nj_graph_begin(t->s);
    rc = rc ? rc : launch_add(t);
    rc = rc ? rc : launch_add(t);
    rc = rc ? rc : nj_graph_end(t->s, &t->graph);
    rc = rc ? rc : nj_graph_launch(t->graph, t->s);
    return rc ? rc : nj_stream_sync(t->s);
}

static void drop(struct things *t)
{
    nj_graph_destroy(t->graph);
    nj_stream_destroy(t->s); /* ends a capture, during which nothing may be freed */
    nj_event_destroy(t->from);
    nj_event_destroy(t->to);
    nj_free(t->ctx, NJ_MEM_DEVICE, t->device);
    nj_free(t->ctx, NJ_MEM_HOST, t->host);
    nj_context_destroy(t->ctx);
    assert_int_equal(sim->live, 0);
    assert_int_equal(*lt_live, 0);
}

static void launches_reach_the_driver(void **state)
{
    (void)state;
    struct things t = {.ctx = open_context(&cuda)};
    const int id = nj_kernel_find("add.f32");
    void *first;
    assert_true(id >= 0);
    assert_int_equal(use_everything(&t), 0);
    assert_int_equal(sim->launches, 1 + 2); /* captured launches count when the graph runs */
    assert_int_equal(nj_graph_launch(t.graph, t.s), 0);
    assert_int_equal(sim->launches, 1 + 2); /* nobody has waited yet */
    assert_int_equal(nj_stream_sync(t.s), 0);
    assert_int_equal(sim->launches, 1 + 2 + 2);
    assert_string_equal(sim->launch.entry, nj_kernels[id].entry);
    assert_int_equal(sim->launch.threads, nj_kernels[id].threads);
    assert_int_equal(sim->launch.param_bytes, nj_kernels[id].param_bytes);
    assert_true(sim->launch.grid[0] >= 1 && sim->launch.grid[1] == 1);
    memcpy(&first, sim->launch.params + nj_kernels[id].params[0].offset, sizeof first);
    assert_ptr_equal(first, t.device);
    drop(&t);
}

static void code_of_one_arch_gets_the_shared_memory_it_wants(void **state)
{
    const int id = nj_kernel_find("attn_bwd_dkv.lp.d64");
    const struct nj_arch_shared *more = id < 0 ? NULL : nj_kernels[id].arch_shared;
    for (int wgmma = 0; more != NULL && wgmma < 2; wgmma++) {
        afresh(state);
        setenv("NOJIT_SIM_DEVICE", wgmma ? "h100" : "t4", 1);
        struct things t = {.ctx = open_context(&cuda)};
        assert_int_equal(use_everything(&t), 0);
        char *p = t.device;
        struct nj_attn_bwd_dkv args = {.dqkv = p, .dout = p + 4096, .qkv = p + 8192, .scale = 1};
        args.lse = args.delta = t.device;
        args.B = args.S = args.H = args.K = 1;
        assert_int_equal(nj_attn_bwd_dkv(t.s, NJ_LP, 64, &args), 0);
        assert_int_equal(sim->launch.shared_bytes,
                         wgmma ? more->bytes : nj_kernels[id].max_shared_bytes);
        drop(&t);
    }
}

static void every_failure_is_told(void **state)
{
    static const struct {
        const char *function;
        int error, code;
        const char *says;
    } cases[] = {
        {"cuStreamCreate", 3, NJ_E_DEVICE, "nj_stream_create"},
        {"cuMemAlloc_v2", 2, NJ_E_NOMEM, "bytes of device memory: CUDA_ERROR_OUT_OF_MEMORY (2); "},
        {"cuMemsetD8Async", 3, NJ_E_DEVICE, "bytes of device memory"},
        {"cuMemHostAlloc", 2, NJ_E_NOMEM, "4096 bytes of pinned host memory"},
        {"cuMemcpyAsync", 3, NJ_E_DEVICE,
         "nj_copy: CUDA_ERROR_NOT_INITIALIZED (3), initialization error"},
        {"cuEventCreate", 3, NJ_E_DEVICE, "nj_event_create"},
        {"cuEventRecord", 3, NJ_E_DEVICE, "nj_event_record"},
        {"cuEventSynchronize", 3, NJ_E_DEVICE, "waiting for the GPU"},
        {"cuEventElapsedTime_v2", 3, NJ_E_DEVICE, "nj_event_elapsed_ms"},
        {"cuStreamBeginCapture_v2", 3, NJ_E_DEVICE, "nj_graph_begin"},
        {"cuStreamEndCapture", 3, NJ_E_DEVICE, "nj_graph_end"},
        {"cuGraphInstantiateWithFlags", 3, NJ_E_DEVICE, "making the graph executable"},
        {"cuGraphLaunch", 3, NJ_E_DEVICE, "nj_graph_launch"},
        {"cuLaunchKernelEx", 3, NJ_E_DEVICE, "add.f32"},
        {"cuStreamSynchronize", 3, NJ_E_DEVICE, "bytes of device memory"},
        {"cuMemGetInfo_v2", 3, 0, ""}, /* the allocation that follows is still tried */
        {"cuCtxSetCurrent", 3, NJ_E_DEVICE, "GPU context current"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        afresh(state);
        struct things t = {.ctx = open_context(&cuda)};
        fails(cases[i].function, cases[i].error);
        const int rc = use_everything(&t);
        if (rc != cases[i].code || strstr(nj_context_error(t.ctx), cases[i].says) == NULL)
            fail_msg("%s: %s: %s", cases[i].function, nj_error_name(rc), nj_context_error(t.ctx));
        drop(&t);
    }
}

/* A call ends where the context cannot be made current; only the question for free memory continues without an
 * answer. */
static void a_context_that_is_gone_is_told_by_every_call(void **state)
{
    enum { MOST = 40 };
    int told = 0, last = 0;
    for (int call = 0; call < MOST; call++) {
        afresh(state);
        struct things t = {.ctx = open_context(&cuda)};
        fails("cuCtxSetCurrent", 201);
        sim->after = call;
        const int rc = use_everything(&t);
        if (rc != 0) {
            assert_int_equal(rc, NJ_E_DEVICE);
            assert_non_null(strstr(nj_context_error(t.ctx), "GPU context current"));
            told++;
            last = call;
        }
        sim->fails = NULL;
        drop(&t);
    }
    assert_true(told > 15 && last < MOST - 1);
}

static void a_lost_device_stays_lost(void **state)
{
    (void)state;
    struct things t = {.ctx = open_context(&cuda)};
    assert_int_equal(use_everything(&t), 0);
    assert_int_equal(launch_add(&t), 0);
    fails("cuStreamSynchronize", 700);
    sim->lasts = 1;
    assert_int_equal(nj_stream_sync(t.s), NJ_E_DEVICE);
    assert_non_null(strstr(nj_context_error(t.ctx), "last enqueued was add.f32"));
    assert_non_null(strstr(nj_context_error(t.ctx), "compute-sanitizer"));
    fails("cuMemcpyAsync", 700);
    assert_int_equal(nj_copy(t.s, t.device, t.host, 16), NJ_E_DEVICE);
    assert_non_null(strstr(nj_context_error(t.ctx), "nj_copy: not possible since nj_stream_sync"));
    sim->fails = NULL;
    drop(&t);
}

static void memory_is_zeroed_wherever_it_is(void **state)
{
    static const struct {
        const char *setting, *value;
        int managed;
    } cases[] = {{"NOJIT_SIM_DEVICE", "h100", 0},
                 {"NOJIT_SIM_DEVICE", "gb10", 1},
                 {"NOJIT_MEMORY", "managed", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        afresh(state);
        setenv(cases[i].setting, cases[i].value, 1);
        struct things t = {.ctx = open_context(&cuda)};
        const size_t at_first = nj_context_device(t.ctx)->budget_bytes;
        assert_int_equal(nj_context_device(t.ctx)->managed, cases[i].managed);
        assert_int_equal(nj_stream_create(t.ctx, &t.s), 0);
        const size_t before = nj_context_budget(t.ctx);
        assert_int_equal(nj_alloc(t.ctx, NJ_MEM_DEVICE, 5000, &t.device), 0);
        assert_int_equal(nj_alloc(t.ctx, NJ_MEM_HOST, 5000, &t.host), 0);
        for (int k = 0; k < 5000; k++)
            assert_int_equal(((char *)t.host)[k], 0);
        memset(t.host, 1, 5000);
        assert_int_equal(nj_copy(t.s, t.host, t.device, 5000), 0);
        assert_int_equal(nj_stream_sync(t.s), 0);
        for (int k = 0; k < 5000; k++)
            assert_int_equal(((char *)t.host)[k], 0);
        if (i != 1) { /* the memory that the driver reports; the host's memory if it is shared */
            assert_int_equal(nj_context_budget(t.ctx), before - 5000);
            assert_int_equal(nj_context_device(t.ctx)->budget_bytes, at_first);
        }
        drop(&t);
    }
}

/* Managed memory is available where cuMemAlloc fails (here immediately). Memory that is only zeroed is not touched, so
 * the host may have less. */
#ifndef __SANITIZE_THREAD__
static void a_gb10_gives_40_gb(void **state)
{
    enum { PIECES = 10 };
    (void)state;
    setenv("NOJIT_SIM_DEVICE", "gb10", 1);
    setenv("NOJIT_SIM_STOP", "1000", 1);
    for (int i = 0; i < 2; i++) {
        void *piece[PIECES] = {NULL};
        int given = 0;
        if (i == 1)
            setenv("NOJIT_MEMORY", "device", 1);
        struct things t = {.ctx = open_context(&cuda)};
        while (given < PIECES &&
               nj_alloc(t.ctx, NJ_MEM_DEVICE, (size_t)4 << 30, &piece[given]) == 0)
            given++;
        assert_int_equal(given, i == 0 ? PIECES : 0);
        while (given > 0)
            nj_free(t.ctx, NJ_MEM_DEVICE, piece[--given]);
        drop(&t);
    }
}
#endif

/* ---- products ---- */

static struct nj_gemm product(enum nj_gemm_kind kind, float beta)
{
    struct nj_gemm g = {.kind = kind, .M = 5, .N = 7, .K = 3, .ldc = 9, .beta = beta};
    g.lda = (kind == NJ_GEMM_TN ? g.M : g.K) + 1;
    g.ldb = (kind == NJ_GEMM_NT ? g.K : g.N) + 2;
    return g;
}

/* The library gets rows and columns exchanged. The numbers are integers, so sums are exact. */
static void products_are_asked_for_as_they_are_meant(void **state)
{
    (void)state;
    setenv("NOJIT_MEMORY", "managed", 1); /* memory that the host sees, too */
    struct things t = {.ctx = open_context(&cuda)};
    float *a, *b, *c;
    assert_int_equal(nj_stream_create(t.ctx, &t.s), 0);
    assert_int_equal(nj_alloc(t.ctx, NJ_MEM_DEVICE, 12288, &t.device), 0);
    a = t.device;
    b = a + 1024;
    c = a + 2048;
    for (int i = 0; i < 1024; i++) {
        a[i] = (float)(i % 11 - 5);
        b[i] = (float)(i % 7 - 3);
    }
    for (int kind = 0; kind < 3; kind++) {
        for (int beta = 0; beta < 2; beta++) {
            const struct nj_gemm g = product((enum nj_gemm_kind)kind, (float)beta);
            for (int i = 0; i < 1024; i++)
                c[i] = 100;
            assert_int_equal(nj_gemm_prepare(t.ctx, &g), 0);
            assert_int_equal(nj_gemm_run(t.s, &g, c, a, b), 0);
            assert_int_equal(nj_stream_sync(t.s), 0);
            for (int m = 0; m < g.M; m++)
                for (int n = 0; n < g.N; n++) {
                    float want = beta ? 100 : 0;
                    for (int k = 0; k < g.K; k++)
                        want += a[kind == NJ_GEMM_TN ? k * g.lda + m : m * g.lda + k] *
                                b[kind == NJ_GEMM_NT ? n * g.ldb + k : k * g.ldb + n];
                    assert_true(c[m * g.ldc + n] == want);
                }
        }
    }
    drop(&t);
}

static void products_that_fail_are_told(void **state)
{
    static const char *const functions[] = {
        "cublasLtMatmulDescCreate",
        "cublasLtMatmulDescSetAttribute",
        "cublasLtMatrixLayoutCreate",
        "cublasLtMatmulPreferenceCreate",
        "cublasLtMatmulAlgoGetHeuristic",
        "cublasLtMatmulPreferenceSetAttribute",
        "cublasLtMatmul",
    };
    static const char *const driver[] = {"cuEventCreate",       "cuEventRecord",
                                         "cuEventSynchronize",  "cuEventElapsedTime_v2",
                                         "cuStreamSynchronize", "cuCtxSetCurrent",
                                         "cuStreamCreate",      "cuStreamBeginCapture_v2",
                                         "cuStreamEndCapture",  "cuGraphInstantiateWithFlags",
                                         "cuGraphUpload",       "cuGraphLaunch",
                                         "cuMemcpy2DAsync_v2"};
    const struct nj_options tuned = {.device = NJ_DEVICE_CUDA, .gemm_tune = 1};
    const struct nj_gemm g = product(NJ_GEMM_NN, 0);
    struct things t = {.ctx = open_context(&tuned)};
    const int live = *lt_live;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        setenv("NOJIT_SIM_LT_FAIL", functions[i], 1);
        assert_int_equal(nj_gemm_prepare(t.ctx, &g), NJ_E_GEMM);
        assert_non_null(strstr(nj_context_error(t.ctx), "CUBLAS_STATUS_INVALID_VALUE"));
        assert_int_equal(*lt_live, live);
        unsetenv("NOJIT_SIM_LT_FAIL");
    }
    for (size_t i = 0; i < sizeof driver / sizeof *driver; i++) {
        fails(driver[i], 3);
        assert_int_equal(nj_gemm_prepare(t.ctx, &g), NJ_E_DEVICE);
        assert_int_equal(*lt_live, live);
    }
    sim->fails = NULL;
    setenv("NOJIT_SIM_LT_ONLY", "1", 1);
    assert_int_equal(nj_gemm_prepare(t.ctx, &g), NJ_E_GEMM);
    assert_non_null(strstr(nj_context_error(t.ctx), "fixed order of summation"));
    unsetenv("NOJIT_SIM_LT_ONLY");
    assert_int_equal(nj_gemm_prepare(t.ctx, &g), 0);
    drop(&t);
    (void)state;
}

/* If there is too little memory for all three arrays, timing uses less. */
static void timing_works_in_little_memory(void **state)
{
    (void)state;
    const struct nj_options tuned = {.device = NJ_DEVICE_CUDA, .gemm_tune = 1};
    const struct nj_gemm g = product(NJ_GEMM_NT, 1);
    struct things t = {.ctx = open_context(&tuned)};
    fails("cuMemAlloc_v2", 2);
    assert_int_equal(nj_gemm_prepare(t.ctx, &g), 0);
    assert_int_equal(nj_context_device(t.ctx)->gemms_timed, 1);
    assert_int_equal(nj_context_device(t.ctx)->gemms_unchecked, 1);
    drop(&t);
}

static void a_choice_is_kept_in_a_file(void **state)
{
    (void)state;
    const struct nj_options tuned = {.device = NJ_DEVICE_CUDA, .gemm_tune = 1};
    const struct nj_gemm g = product(NJ_GEMM_TN, 0);
    char path[] = "/tmp/nojit-choices-XXXXXX";
    assert_true(close(mkstemp(path)) == 0);
    for (unsigned run = 0; run < 2; run++) {
        struct things t = {.ctx = open_context(&tuned)};
        assert_int_equal(nj_gemm_table_read(t.ctx, path), run);
        assert_int_equal(nj_gemm_prepare(t.ctx, &g), 0);
        assert_int_equal(nj_context_device(t.ctx)->gemms_timed, 1 - run);
        assert_int_equal(nj_gemm_table_write(t.ctx, path), 0);
        drop(&t);
    }
    assert_int_equal(unlink(path), 0);
}

/* A choice in a file selects among the algorithms that the library lists; any other is ignored. */
static void a_choice_that_is_not_listed_is_made_again(void **state)
{
    (void)state;
    static const char *const listed[] = {"2", "3"};
    const struct nj_options tuned = {.device = NJ_DEVICE_CUDA, .gemm_tune = 1};
    const struct nj_gemm g = product(NJ_GEMM_TN, 0);
    char path[] = "/tmp/nojit-choices-XXXXXX";
    assert_true(close(mkstemp(path)) == 0);
    for (int run = 0; run < 2; run++) {
        struct things t = {.ctx = open_context(&tuned)};
        setenv("NOJIT_SIM_LT_ONLY", listed[run], 1);
        assert_int_equal(nj_gemm_table_read(t.ctx, path), run);
        assert_int_equal(nj_gemm_prepare(t.ctx, &g), 0);
        assert_int_equal(nj_context_device(t.ctx)->gemms_timed, 1);
        assert_int_equal(t.ctx->choices.row[0]->choice[0], 2 + run);
        assert_int_equal(nj_gemm_table_write(t.ctx, path), 0);
        unsetenv("NOJIT_SIM_LT_ONLY");
        drop(&t);
    }
    assert_int_equal(unlink(path), 0);
}

/* Algorithm 3 is listed with a workspace of 4 bytes and without one. */
static void a_choice_says_whether_it_has_a_workspace(void **state)
{
    (void)state;
    const struct nj_options tuned = {.device = NJ_DEVICE_CUDA, .gemm_tune = 1};
    const struct nj_gemm g = product(NJ_GEMM_TN, 0);
    const size_t at = NJ_GEMM_CHOICE_BYTES - sizeof(uint64_t);
    char path[] = "/tmp/nojit-choices-XXXXXX";
    assert_true(close(mkstemp(path)) == 0);
    setenv("NOJIT_SIM_LT_ONLY", "3", 1);
    struct things first = {.ctx = open_context(&tuned)};
    assert_int_equal(nj_gemm_prepare(first.ctx, &g), 0);
    assert_int_equal(nj_gemm_table_write(first.ctx, path), 0);
    drop(&first);
    for (unsigned char bytes = 0; bytes <= 8; bytes += 4) {
        struct things t = {.ctx = open_context(&tuned)};
        assert_int_equal(nj_gemm_table_read(t.ctx, path), 1);
        t.ctx->choices.row[0]->choice[at] = bytes;
        assert_int_equal(nj_gemm_prepare(t.ctx, &g), 0);
        assert_int_equal(nj_context_device(t.ctx)->gemms_timed, bytes == 8);
        drop(&t);
    }
    unsetenv("NOJIT_SIM_LT_ONLY");
    assert_int_equal(unlink(path), 0);
}

/* Return whether this build has code for the simulated GPU, an sm_90 and once an sm_75; builds with other ARCHS or with
 * ONLY do not. */
static bool has_code_for_the_simulation(void)
{
    char why[NJ_SENTENCE_BYTES];
    struct nj_index index;
    return nj_index_embedded(&index, why) == 0 && nj_index_arch_for(&index, 90) >= 0 &&
           nj_index_arch_for(&index, 75) >= 0 && nj_kernel_find("add.f32") >= 0 &&
           nj_kernel_find("accumulate.f32") >= 0;
}

static void not_tried_without_code_for_sm_75_and_sm_90(void **state)
{
    (void)state;
}

int main(void)
{
    const struct CMUnitTest none[] = {cmocka_unit_test(not_tried_without_code_for_sm_75_and_sm_90)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(opening_loads_every_kernel, afresh),
        cmocka_unit_test_setup(opening_says_what_fails, afresh),
        cmocka_unit_test_setup(code_that_is_not_for_the_gpu_is_refused, afresh),
        cmocka_unit_test_setup(another_gpu_that_fits_is_named, afresh),
        cmocka_unit_test_setup(a_gpu_that_does_not_tell_gets_device_memory, afresh),
        cmocka_unit_test_setup(launches_reach_the_driver, afresh),
        cmocka_unit_test_setup(code_of_one_arch_gets_the_shared_memory_it_wants, afresh),
        cmocka_unit_test_setup(every_failure_is_told, afresh),
        cmocka_unit_test_setup(a_context_that_is_gone_is_told_by_every_call, afresh),
        cmocka_unit_test_setup(a_lost_device_stays_lost, afresh),
        cmocka_unit_test_setup(memory_is_zeroed_wherever_it_is, afresh),
/* the thread sanitizer shadows every mapped byte with more memory than this machine has */
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test_setup(a_gb10_gives_40_gb, afresh),
#endif
        cmocka_unit_test_setup(products_are_asked_for_as_they_are_meant, afresh),
        cmocka_unit_test_setup(products_that_fail_are_told, afresh),
        cmocka_unit_test_setup(timing_works_in_little_memory, afresh),
        cmocka_unit_test_setup(a_choice_is_kept_in_a_file, afresh),
        cmocka_unit_test_setup(a_choice_that_is_not_listed_is_made_again, afresh),
        cmocka_unit_test_setup(a_choice_says_whether_it_has_a_workspace, afresh),
    };
    return has_code_for_the_simulation() ? cmocka_run_group_tests(tests, load_libraries, NULL)
                                         : cmocka_run_group_tests(none, NULL, NULL);
}
