/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sim_driver.c: the simulated driver keeps CUDA's rules: loading, when work is done, graphs, the effects of a
 * fault. Its functions are called as the runtime calls them.
 */
#include "unit.h"

#include <dlfcn.h>
#include <unistd.h>

#include "cuda/api.h"
#include "internal.h"
#include "nojit_ops.h"
#include "simgpu/control.h"

static struct nj_driver cu;
static struct sim_control *sim;

static int load_driver(void **state)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
#define ROW(result, name, symbol, params) {symbol, offsetof(struct nj_driver, name)},
        NJ_DRIVER_SYMBOLS(ROW)
#undef ROW
    };
    char path[4200];
    (void)state;
    const ssize_t n = readlink("/proc/self/exe", path, 4000);
    assert_true(n > 0);
    path[n] = '\0';
    snprintf(strrchr(path, '/'), 100, "/../sim/libcuda.so.1");
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        fail_msg("%s", dlerror());
    sim = dlsym(library, SIM_CONTROL);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *function = dlsym(library, symbols[i].name);
        if (!function)
            fail_msg("%s is not exported", symbols[i].name);
        memcpy((char *)&cu + symbols[i].offset, &function, sizeof function);
    }
    return 0;
}

/* Open a context on the GPU of this name. */
static void begin(const char *device)
{
    void *context;
    int version = 0;
    memset(sim, 0, sizeof *sim);
    setenv("NOJIT_SIM_DEVICE", device, 1);
    assert_int_equal(cu.cuDriverGetVersion(&version), 0);
    assert_int_equal(version, 13000);
    assert_int_equal(cu.cuInit(0), 0);
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cu.cuCtxSetCurrent(context), 0);
}

static void end(void)
{
    assert_int_equal(cu.cuDevicePrimaryCtxRelease(0), 0);
}

/* ---- modules ---- */

static const unsigned char *container(const char *key)
{
    char why[NJ_SENTENCE_BYTES];
    struct nj_index index;
    assert_int_equal(nj_index_embedded(&index, why), 0);
    const struct nji_entry *e = nj_index_find(&index, key);
    assert_non_null(e);
    return index.blobs + e->blob_off;
}

/* Return the machine code of an arch in a container, which contains "-arch sm_NN" somewhere. */
static const unsigned char *code_of(const unsigned char *from, const char *arch)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F'};
    char text[32];
    uint64_t bytes;
    memcpy(&bytes, from + 8, sizeof bytes);
    snprintf(text, sizeof text, "-arch %s ", arch);
    const unsigned char *at = from, *last = NULL, *limit = from + bytes + 16;
    const unsigned char *names = memmem(from, (size_t)(limit - from), text, strlen(text));
    assert_non_null(names);
    while ((at = memmem(at, (size_t)(names - at), magic, sizeof magic)) != NULL)
        last = at++;
    assert_non_null(last);
    return last;
}

static void machine_code_must_fit(void **state)
{
    static const struct {
        const char *device, *code;
        int result;
    } cases[] = {
        {"h100", "sm_90a", 0},    {"h100", "sm_89", 209},     {"h100", "sm_75", 209},
        {"gb10", "sm_121", 0},    {"gb10", "sm_120", 0}, /* a lower minor runs on a higher one */
        {"rtx5090", "sm_120", 0}, {"rtx5090", "sm_121", 209}, {"t4", "sm_75", 0},
        {"rtx4090", "sm_89", 0},  {"rtx4090", "sm_90a", 209}, {"sm_86", "sm_89", 209},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *module = NULL;
        begin(cases[i].device);
        const int result =
            cu.cuModuleLoadData(&module, code_of(container("add.f32"), cases[i].code));
        if (result != cases[i].result)
            fail_msg("%s on %s: %d", cases[i].code, cases[i].device, result);
        assert_int_equal(sim->modules, result == 0);
        end();
    }
}

static void ptx_is_refused_and_counted(void **state)
{
    static const char text[] = "//\n.version 9.0\n.target sm_90\n.address_size 64\n";
    void *module;
    (void)state;
    begin("h100");
    assert_int_equal(cu.cuModuleLoadData(&module, text), 223);
    assert_int_equal(sim->ptx_refused, 1);
    assert_int_equal(cu.cuModuleLoadData(&module, "nonsense of no format"), 200);
    assert_int_equal(sim->ptx_refused, 1);
    end();
}

static void the_newest_code_that_fits_is_taken(void **state)
{
    static const struct {
        const char *device;
        int code;
    } cases[] = {{"t4", 75}, {"rtx4090", 89}, {"h100", 90}, {"rtx5090", 120}, {"gb10", 121}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct nj_kernel *k = &nj_kernels[nj_kernel_find("add.f32")];
        void *module, *function;
        int code = 0;
        begin(cases[i].device);
        assert_int_equal(cu.cuModuleLoadData(&module, container("add.f32")), 0);
        assert_int_equal(cu.cuModuleGetFunction(&function, module, "no_such_kernel"), 500);
        assert_int_equal(cu.cuModuleGetFunction(&function, module, k->entry), 0);
        assert_int_equal(
            cu.cuFuncGetAttribute(&code, NJ_CU_FUNC_ATTRIBUTE_BINARY_VERSION, function), 0);
        assert_int_equal(code, cases[i].code);
        end();
    }
}

/* ---- launches ---- */

/* c[i] = a[i] + b[i], i < 256, in one block. */
struct adding {
    void *module, *function;
    uint64_t memory, a, b, c;
    float *host; /* pinned, 3 x 256 */
};
enum { N = 256, ARRAY_BYTES = N * sizeof(float) };

static void prepare(struct adding *x)
{
    void *host;
    assert_int_equal(cu.cuModuleLoadData(&x->module, container("add.f32")), 0);
    assert_int_equal(cu.cuModuleGetFunction(&x->function, x->module,
                                            nj_kernels[nj_kernel_find("add.f32")].entry),
                     0);
    assert_int_equal(cu.cuMemAlloc(&x->memory, 3 * ARRAY_BYTES), 0);
    assert_int_equal(cu.cuMemHostAlloc(&host, 3 * ARRAY_BYTES, 0), 0);
    x->host = host;
    x->a = x->memory;
    x->b = x->a + ARRAY_BYTES;
    x->c = x->b + ARRAY_BYTES;
    for (int i = 0; i < N; i++) {
        x->host[i] = (float)i;
        x->host[N + i] = 0.5f;
        x->host[2 * N + i] = -1;
    }
    assert_int_equal(cu.cuMemcpyAsync(x->memory, (uintptr_t)x->host, 3 * ARRAY_BYTES, NULL), 0);
    assert_int_equal(cu.cuStreamSynchronize(NULL), 0);
}

struct shape {
    unsigned grid, threads, shared_bytes;
    size_t param_bytes;
};

static struct shape usual(void)
{
    const struct nj_kernel *k = &nj_kernels[nj_kernel_find("add.f32")];
    return (struct shape){1, k->threads, 0, k->param_bytes};
}

static int launch(const struct adding *x, struct shape s, void *stream)
{
    const struct nj_kernel *k = &nj_kernels[nj_kernel_find("add.f32")];
    unsigned char params[256] = {0};
    const uint64_t value[] = {x->c, x->a, x->b, N}; /* as nj_add() takes them */
    void *extra[] = {NJ_LAUNCH_PARAM_BUFFER_POINTER, params, NJ_LAUNCH_PARAM_BUFFER_SIZE,
                     &s.param_bytes, NJ_LAUNCH_PARAM_END};
    assert_int_equal(k->param_count, 4);
    for (int i = 0; i < 4; i++)
        memcpy(params + k->params[i].offset, &value[i], k->params[i].bytes);
    const struct nj_launch_config config = {s.grid,         1,      1,    s.threads, 1, 1,
                                            s.shared_bytes, stream, NULL, 0};
    const int result = cu.cuLaunchKernelEx(&config, x->function, NULL, extra);
    memset(params, 0xff, sizeof params); /* the driver has its own copy */
    return result;
}

static void launches_are_checked(void **state)
{
    struct adding x;
    struct shape s;
    (void)state;
    begin("h100");
    prepare(&x);
    for (int i = 0; i < 5; i++) {
        s = usual();
        s.grid = i == 0 ? 0 : 1;
        s.threads = i == 1 ? 2048 : s.threads;
        s.shared_bytes = i == 2 ? 49 << 10 : 0;
        s.param_bytes += i == 3 ? 8 : 0;
        s.threads = i == 4 ? 0 : s.threads;
        assert_int_equal(launch(&x, s, NULL), 1);
    }
    assert_int_equal(cu.cuFuncSetAttribute(
                         x.function, NJ_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 228 << 10),
                     1);
    assert_int_equal(cu.cuFuncSetAttribute(
                         x.function, NJ_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 << 10),
                     0);
    s = usual();
    s.shared_bytes = 227 << 10;
    assert_int_equal(launch(&x, s, NULL), 0);
    assert_int_equal(cu.cuStreamSynchronize(NULL), 0);
    x.function = &x;
    assert_int_equal(launch(&x, usual(), NULL), 400);
    end();
}

/* ---- order ---- */

static void expect(const struct adding *x, float base, float step)
{
    for (int i = 0; i < N; i++)
        if (x->host[2 * N + i] != base + step * (float)i)
            fail_msg("element %d is %g", i, (double)x->host[2 * N + i]);
}

static int fetch(const struct adding *x, void *stream)
{
    return cu.cuMemcpyAsync((uintptr_t)(x->host + 2 * N), x->c, ARRAY_BYTES, stream);
}

static void work_is_done_when_somebody_waits(void **state)
{
    struct adding x;
    void *stream, *event;
    float ms;
    (void)state;
    begin("h100");
    prepare(&x);
    assert_int_equal(cu.cuStreamCreate(&stream, 1), 0);
    assert_int_equal(cu.cuEventCreate(&event, 0), 0);
    assert_int_equal(launch(&x, usual(), stream), 0);
    assert_int_equal(fetch(&x, stream), 0);
    assert_int_equal(cu.cuEventRecord(event, stream), 0);
    assert_int_equal(cu.cuEventElapsedTime(&ms, event, event), 600);
    expect(&x, -1, 0);
    assert_int_equal(cu.cuStreamSynchronize(NULL), 0); /* another stream */
    expect(&x, -1, 0);
    assert_int_equal(cu.cuEventSynchronize(event), 0);
    expect(&x, 0.5f, 1);
    assert_int_equal(cu.cuEventElapsedTime(&ms, event, event), 0);
    assert_int_equal(sim->launches, 1);
    assert_int_equal(cu.cuEventDestroy(event), 0);
    end();
}

/* Pinned memory is read when the copy runs, other memory when it is enqueued. */
static void copies_read_when_the_hardware_does(void **state)
{
    struct adding x;
    float pageable[N], back[N];
    (void)state;
    begin("h100");
    prepare(&x);
    for (int i = 0; i < N; i++)
        pageable[i] = 7;
    assert_int_equal(cu.cuMemcpyAsync(x.a, (uintptr_t)pageable, ARRAY_BYTES, NULL), 0);
    assert_int_equal(cu.cuMemcpyAsync(x.b, (uintptr_t)x.host, ARRAY_BYTES, NULL), 0);
    memset(pageable, 0, sizeof pageable);
    x.host[0] = 100;
    assert_int_equal(cu.cuMemcpyAsync((uintptr_t)back, x.a, ARRAY_BYTES, NULL), 0);
    assert_true(back[0] == 7);
    assert_int_equal(cu.cuMemcpyAsync((uintptr_t)back, x.b, ARRAY_BYTES, NULL), 0);
    assert_true(back[0] == 100);
    assert_int_equal(cu.cuMemcpyAsync(x.a, x.c, 2 * ARRAY_BYTES, NULL), 1); /* past the end */
    assert_int_equal(cu.cuMemcpyAsync(x.a, 16, ARRAY_BYTES, NULL), 1);
    end();
}

static void captured_work_runs_with_its_graph(void **state)
{
    struct adding x;
    void *stream, *graph, *exec;
    (void)state;
    begin("h100");
    prepare(&x);
    assert_int_equal(cu.cuStreamCreate(&stream, 1), 0);
    assert_int_equal(cu.cuStreamBeginCapture(stream, 1), 0);
    assert_int_equal(launch(&x, usual(), stream), 0);
    assert_int_equal(fetch(&x, stream), 0);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), 0);
    assert_int_equal(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    assert_int_equal(cu.cuGraphDestroy(graph), 0);
    assert_int_equal(cu.cuStreamSynchronize(stream), 0);
    assert_int_equal(sim->launches, 0);
    expect(&x, -1, 0);
    for (int run = 1; run <= 2; run++) {
        assert_int_equal(cu.cuMemsetD8Async(x.c, 0, ARRAY_BYTES, stream), 0);
        assert_int_equal(cu.cuGraphLaunch(exec, stream), 0);
        assert_int_equal(cu.cuStreamSynchronize(stream), 0);
        assert_int_equal(sim->launches, run);
        expect(&x, 0.5f, 1);
    }
    assert_int_equal(cu.cuGraphExecDestroy(exec), 0);
    end();
}

static void what_cannot_be_captured_spoils_the_capture(void **state)
{
    void *stream, *graph;
    uint64_t memory;
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin("h100");
        assert_int_equal(cu.cuStreamCreate(&stream, 1), 0);
        assert_int_equal(cu.cuStreamBeginCapture(stream, 1), 0);
        if (i == 0)
            assert_int_equal(cu.cuMemAlloc(&memory, 256), 900);
        else
            assert_int_equal(cu.cuStreamSynchronize(stream), 900);
        assert_int_equal(cu.cuStreamEndCapture(stream, &graph), 901);
        assert_null(graph);
        assert_int_equal(cu.cuMemAlloc(&memory, 256), 0);
        end();
    }
}

/* ---- faults ---- */

static void a_fault_stays_until_the_context_is_gone(void **state)
{
    struct adding x;
    uint64_t memory;
    void *stream;
    (void)state;
    begin("h100");
    prepare(&x);
    x.b = x.c + ARRAY_BYTES; /* past the end of what was allocated */
    assert_int_equal(launch(&x, usual(), NULL), 0);
    assert_int_equal(cu.cuStreamSynchronize(NULL), 700);
    assert_int_equal(cu.cuMemAlloc(&memory, 256), 700);
    assert_int_equal(cu.cuStreamCreate(&stream, 1), 700);
    assert_int_equal(fetch(&x, NULL), 700);
    assert_int_equal(cu.cuMemFree(x.memory), 700);
    end();
    begin("h100");
    assert_int_equal(cu.cuMemAlloc(&memory, 256), 0);
    end();
}

static void memory_that_nothing_wrote_is_not_read(void **state)
{
    struct adding x;
    uint64_t fresh;
    (void)state;
    begin("h100");
    prepare(&x);
    assert_int_equal(cu.cuMemAlloc(&fresh, ARRAY_BYTES), 0);
    x.a = fresh;
    assert_int_equal(launch(&x, usual(), NULL), 0);
    assert_int_equal(cu.cuStreamSynchronize(NULL), 719);
    end();
}

/* ---- memory ---- */

/* On a GB10, cuMemGetInfo reports MemFree, cuMemAlloc stops near 30 GB, and managed memory reaches all of it. */
#ifndef __SANITIZE_THREAD__
static void a_gb10_has_three_answers(void **state)
{
    const size_t piece = (size_t)4 << 30;
    size_t available, total;
    uint64_t memory;
    int pieces = 0, managed = 0;
    (void)state;
    begin("gb10");
    assert_int_equal(cu.cuMemGetInfo(&available, &total), 0);
    assert_true(total > (size_t)119 << 30 && available < (size_t)10 << 30);
    while (cu.cuMemAlloc(&memory, piece) == 0)
        pieces++;
    while (managed < 40 && cu.cuMemAllocManaged(&memory, piece, 1) == 0)
        managed++;
    assert_int_equal(pieces, 7);
    assert_int_equal(pieces + managed, 29);
    end();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_code_must_fit),
        cmocka_unit_test(ptx_is_refused_and_counted),
        cmocka_unit_test(the_newest_code_that_fits_is_taken),
        cmocka_unit_test(launches_are_checked),
        cmocka_unit_test(work_is_done_when_somebody_waits),
        cmocka_unit_test(copies_read_when_the_hardware_does),
        cmocka_unit_test(captured_work_runs_with_its_graph),
        cmocka_unit_test(what_cannot_be_captured_spoils_the_capture),
        cmocka_unit_test(a_fault_stays_until_the_context_is_gone),
        cmocka_unit_test(memory_that_nothing_wrote_is_not_read),
/* the thread sanitizer shadows every mapped byte with more memory than this machine has */
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(a_gb10_has_three_answers),
#endif
    };
    return cmocka_run_group_tests(tests, load_driver, NULL);
}
