/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sim_kernels.c: kernels of this build, as PTX, on the machine of the simulated GPU: the cases of the harness,
 * through the runtime, on a backend whose memory and launches are the machine's.
 */
#include "unit.h"

#include "harness.h"
#include "internal.h"
#include "simgpu/machine.h"
#include "simgpu/tensor_map.h"

#include <fnmatch.h>

static struct {
    int arch;
    struct sim_memory *memory;
    struct sim_module *module; /* module of the current kernel */
    uint32_t kernel;
    const char *left_out; /* PTX statement to leave out wherever it occurs, or NULL */
} device;

static int sim_backend_alloc(nj_context *ctx, enum nj_memory kind, size_t bytes, void **out)
{
    (void)kind;
    *out = (void *)(uintptr_t)sim_memory_add(device.memory, bytes, false);
    return *out ? 0 : nj_fail(ctx, NJ_E_NOMEM, "no memory");
}

static void sim_backend_free(nj_context *ctx, enum nj_memory kind, void *ptr)
{
    (void)ctx;
    (void)kind;
    if (ptr)
        assert_true(sim_memory_remove(device.memory, (uint64_t)(uintptr_t)ptr));
}

static int sim_backend_copy(nj_stream *s, void *dst, const void *src, size_t bytes)
{
    const uint64_t to = (uint64_t)(uintptr_t)dst, from = (uint64_t)(uintptr_t)src;
    const struct sim_allocation *write = sim_memory_find(device.memory, to, bytes);
    const struct sim_allocation *read = sim_memory_find(device.memory, from, bytes);
    (void)s;
    memcpy(write ? write->host + (to - write->address) : dst,
           read ? read->host + (from - read->address) : src, bytes);
    if (write)
        sim_memory_mark(write, to, bytes);
    return 0;
}

/* Return the name of the arch as contracts have it. */
static const char *arch_name(void)
{
    static char name[16];
    snprintf(name, sizeof name, "sm_%d%s", device.arch, device.arch == 90 ? "a" : "");
    return name;
}

static char *read_ptx(const char *key, size_t *bytes)
{
    char path[512];
    snprintf(path, sizeof path, PTX_FOLDER "/%s.%s.ptx", key, arch_name());
    return read_bytes(path, bytes);
}

static int sim_backend_has_kernel(const nj_context *ctx, uint32_t id)
{
    (void)ctx;
    (void)id;
    return 1;
}

/* Encode a map as a driver does. */
static int sim_backend_tile_map(nj_stream *s, uint32_t id, void *map, const struct nj_tiling *of)
{
    const struct sim_tensor_map made = {.address = (uint64_t)(uintptr_t)of->array,
                                        .sizes = {(uint64_t)of->columns, (uint64_t)of->rows},
                                        .row_bytes = (uint64_t)of->columns * MAP_ELEMENT_BYTES,
                                        .box = {NJ_TILE_COLUMNS, (uint32_t)of->tile_rows},
                                        .steps = {1, 1},
                                        .rank = MAP_RANK,
                                        .swizzle = MAP_SWIZZLE_128B};
    (void)s;
    (void)id;
    memcpy(map, &made, sizeof made);
    return 0;
}

/* Return the dynamic shared memory that the kernel needs on this arch. */
static uint32_t shared_bytes_of(const struct nj_kernel *kernel, uint32_t asked)
{
    for (const struct nj_arch_shared *more = kernel->arch_shared; more && more->arch; more++)
        if (strcmp(more->arch, arch_name()) == 0 && more->bytes > asked)
            return more->bytes;
    return asked;
}

/* Overwrite every statement that begins like this. */
static void leave_out(char *text, size_t bytes, const char *statement)
{
    char *at = text;
    while ((at = memmem(at, bytes - (size_t)(at - text), statement, strlen(statement))))
        memset(at, ' ', (size_t)(strchr(at, ';') + 1 - at));
}

static int sim_backend_launch(nj_stream *s, uint32_t id, const uint32_t grid[3],
                              uint32_t shared_bytes, const void *params)
{
    const struct nj_kernel *kernel = &nj_kernels[id];
    struct sim_fault fault = {SIM_OK, ""};
    if (!device.module || device.kernel != id) {
        size_t bytes;
        char *text = read_ptx(kernel->key, &bytes);
        if (device.left_out)
            leave_out(text, bytes, device.left_out);
        sim_module_destroy(device.module);
        const int rc = sim_module_create(text, bytes, &device.module, &fault);
        free(text);
        device.kernel = id;
        if (rc)
            return nj_fail(s->ctx, NJ_E_DRIVER, "%s", fault.text);
    }
    const uint32_t block[3] = {kernel->threads, 1, 1};
    const struct sim_limits limits = {.arch = device.arch,
                                      .threads_per_block = 1024,
                                      .registers_per_block = 65536,
                                      .shared_bytes_per_block = 227 << 10,
                                      .registers = 0};
    const int rc = sim_launch(sim_module_entry(device.module, kernel->entry), grid, block,
                              shared_bytes_of(kernel, shared_bytes), params, kernel->param_bytes,
                              device.memory, &limits, &fault);
    return rc ? nj_fail(s->ctx, NJ_E_DEVICE, "%s", fault.text) : 0;
}

/* Run the cases of the keys. Return how many failed; with `says`, how many failed with that message. */
static uint32_t run_cases(int arch, const char *keys, const char *says)
{
    struct nj_backend backend = nj_backend_cpu;
    backend.alloc = sim_backend_alloc;
    backend.free = sim_backend_free;
    backend.copy = sim_backend_copy;
    backend.launch = sim_backend_launch;
    backend.has_kernel = sim_backend_has_kernel;
    backend.tile_map = sim_backend_tile_map;
    const struct nj_options options = {.device = NJ_DEVICE_CPU};
    nj_context *ctx = NULL;
    nj_stream *stream = NULL;
    assert_int_equal(nj_context_create(&ctx, &options), 0);
    assert_int_equal(nj_stream_create(ctx, &stream), 0);
    ctx->backend = &backend;
    ctx->info.lp_is_f16 = arch < 80;
    device.arch = arch;
    device.memory = sim_memory_create();
    uint32_t ran = 0, failed = 0;
    for (uint32_t i = 0; i < nj_case_count; i++) {
        const struct subject subject = nj_case_subject_of(&nj_cases[i]);
        struct result result;
        if (nj_cases[i].bench || fnmatch(keys, subject.key, 0) != 0)
            continue;
        nj_case_run_case(ctx, stream, &subject, 1, &result);
        ran++;
        failed += result.status != PASSED && (!says || strstr(result.message, says));
        if (result.status != PASSED && !says)
            print_error("sm_%d %s %s: %s\n", arch, subject.key, nj_cases[i].label, result.message);
    }
    sim_module_destroy(device.module);
    device.module = NULL;
    sim_memory_destroy(device.memory);
    ctx->backend = &nj_backend_cpu;
    nj_stream_destroy(stream);
    nj_context_destroy(ctx);
    assert_true(ran > 0);
    return failed;
}

/* Rows, warps that reduce, matrices of float16 and bfloat16, sums over a vocabulary: the ways in which kernels differ.
 * The harness runs all keys on all archs, on the simulated driver. */
static const char *const keys[] = {
    "rmsnorm_fwd.*",       "adamw.*",    "attn_fwd.lp.d64",
    "attn_bwd_dkv.lp.d64", "kd_head.lp", "embed_bwd.*",
};

static void kernels_of_sm_75_run_simulated(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_int_equal(run_cases(75, keys[i], NULL), 0);
}

static void kernels_of_sm_89_run_simulated(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_int_equal(run_cases(89, keys[i], NULL), 0);
}

/* Keys with GEMMs of warpgroups, clusters and TMA. Heads of 256 are left to the harness: their cases take long. */
static void kernels_of_sm_90_run_simulated(void **state)
{
    (void)state;
    static const char *const own[] = {"attn_fwd.lp.d[!2]*", "attn_bwd_dq.lp.d[!2]*",
                                      "attn_bwd_dkv.lp.d64", "gemm_glu.lp.act0"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        assert_int_equal(run_cases(90, own[i], NULL), 0);
}

/* Keys, and the faults that appear without their barriers. */
static const struct {
    int arch;
    const char *key, *left_out, *says;
} planted[] = {
    {89, "grad_sumsq.f32", "bar.sync", "of shared memory, which nothing wrote"},
    {89, "kd_head.lp", "bar.sync", "of shared memory, which nothing wrote"},
    {89, "attn_fwd.lp.d64", "bar.sync", "without a barrier between"},
    {89, "attn_fwd.lp.d64", "cp.async.wait_all", "which a cp.async that nothing waited for writes"},
    {89, "attn_fwd.lp.d64", "shfl.sync", "reads a register that nothing before it writes"},
    {90, "attn_fwd.lp.d64", "bar.sync", "without a barrier between"},
    {90, "attn_fwd.lp.d64", "fence.proxy.async", "without a fence.proxy.async between"},
    {90, "attn_fwd.lp.d64", "wgmma.wait_group", "which a wgmma that nothing waited for reads"},
    {90, "attn_bwd_dkv.lp.d64", "bar.sync 1", "which a cp.async that nothing waited for writes"},
    {90, "attn_bwd_dkv.lp.d64", "bar.sync \t0", "of shared memory, which"},
    {90, "gemm_glu.lp.act0", "@!done bra again", "which nothing wrote"},
    {90, "gemm_glu.lp.act0", "wgmma.wait_group.sync.aligned 1",
     "which a wgmma that nothing waited"},
    {90, "gemm_glu.lp.act0", "mbarrier.arrive.shared::cluster", "lacks 1 arrivals and 0 bytes"},
    {90, "gemm_glu.lp.act0", "mbarrier.arrive.expect_tx", "lacks 1 arrivals and -49152 bytes"},
    {90, "gemm_glu.lp.act0", "barrier.cluster", "of shared memory, which nothing wrote"},
};

static void faults_planted_in_kernels_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        device.left_out = planted[i].left_out;
        if (run_cases(planted[i].arch, planted[i].key, planted[i].says) == 0)
            fail_msg("%s of sm_%d without its %s: no case said \"%s\"", planted[i].key,
                     planted[i].arch, planted[i].left_out, planted[i].says);
    }
    device.left_out = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_sm_75_run_simulated),
        cmocka_unit_test(kernels_of_sm_89_run_simulated),
        cmocka_unit_test(kernels_of_sm_90_run_simulated),
        cmocka_unit_test(faults_planted_in_kernels_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
