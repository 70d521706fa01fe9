/* SPDX-License-Identifier: Apache-2.0
 *
 * test_spare_code.c: the CUDA backend replaces a kernel's code by the code that was assembled at -O1, on the simulated
 * driver, and leaves the kernel unchanged if there is none or the driver refuses it.
 */
#include "cuda_sim.h"

#include "nojit_ops.h"

enum { N = 1000 };

struct add {
    nj_context *ctx;
    nj_stream *s;
    float *a, *b, *y;
    uint32_t id;
};

/* Open with managed memory, which the host sees, too. */
static struct add open_add(const char *gpu)
{
    struct add t;
    void *memory;
    setenv("NOJIT_SIM_DEVICE", gpu, 1);
    setenv("NOJIT_MEMORY", "managed", 1);
    t.ctx = open_context(&cuda);
    t.id = (uint32_t)nj_kernel_find("add.f32");
    assert_int_equal(nj_stream_create(t.ctx, &t.s), 0);
    assert_int_equal(nj_alloc(t.ctx, NJ_MEM_DEVICE, 3 * 4096, &memory), 0);
    t.a = memory;
    t.b = t.a + 1024;
    t.y = t.b + 1024;
    for (int i = 0; i < N; i++) {
        t.a[i] = (float)i;
        t.b[i] = 2;
    }
    return t;
}

static void close_add(struct add *t)
{
    nj_free(t->ctx, NJ_MEM_DEVICE, t->a);
    nj_stream_destroy(t->s);
    nj_context_destroy(t->ctx);
    assert_int_equal(sim->live, 0);
}

static void adds(const struct add *t)
{
    memset(t->y, 0, N * sizeof *t->y);
    assert_int_equal(
        nj_add(t->s, NJ_F32, &(struct nj_add){.y = t->y, .a = t->a, .b = t->b, .n = N}), 0);
    assert_int_equal(nj_stream_sync(t->s), 0);
    for (int i = 0; i < N; i++)
        assert_true(t->y[i] == (float)i + 2);
}

static int load_spare(const struct add *t)
{
    return t->ctx->backend->load_spare(t->ctx, t->id);
}

static void spare_code_takes_the_place_of_a_kernel(void **state)
{
    static const char *const gpus[] = {"rtx5090", "gb10"};
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        afresh(state);
        struct add t = open_add(gpus[i]);
        const int modules = sim->modules, live = sim->live;
        adds(&t);
        for (int k = 1; k <= 2; k++) { /* doing it again changes nothing */
            if (load_spare(&t))
                fail_msg("%s: %s", gpus[i], nj_context_error(t.ctx));
            assert_int_equal(sim->modules, modules + k);
            assert_int_equal(sim->live, live);
            adds(&t);
        }
        close_add(&t);
    }
}

static void an_arch_without_spare_code_says_so(void **state)
{
    (void)state;
    struct add t = open_add("h100");
    const int modules = sim->modules;
    assert_int_equal(load_spare(&t), NJ_E_NO_CODE);
    assert_non_null(strstr(nj_context_error(t.ctx), "add.f32 has no spare code for sm_90"));
    assert_int_equal(sim->modules, modules);
    adds(&t);
    close_add(&t);
}

static void a_kernel_stays_where_its_spare_code_fails(void **state)
{
    static const struct {
        const char *function;
        int error, code;
    } cases[] = {
        {"cuCtxSetCurrent", 201, NJ_E_DEVICE},   {"cuModuleLoadData", 200, NJ_E_DEVICE},
        {"cuModuleLoadData", 209, NJ_E_NO_CODE}, {"cuModuleGetFunction", 500, NJ_E_DEVICE},
        {"cuFuncLoad", 3, NJ_E_DEVICE},          {"cuFuncGetAttribute", 3, NJ_E_DEVICE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        afresh(state);
        struct add t = open_add("gb10");
        const int live = sim->live;
        fails(cases[i].function, cases[i].error);
        const int rc = load_spare(&t);
        if (rc != cases[i].code)
            fail_msg("%s: %s: %s", cases[i].function, nj_error_name(rc), nj_context_error(t.ctx));
        fails(NULL, 0);
        assert_int_equal(sim->live, live);
        adds(&t);
        close_add(&t);
    }
}

/* Return whether this build has code for these GPUs; builds with other ARCHS or with ONLY do not. */
static int has_code(void)
{
    static const int sms[] = {90, 120, 121};
    char why[NJ_SENTENCE_BYTES];
    struct nj_index index;
    if (nj_index_embedded(&index, why) != 0 || nj_kernel_find("add.f32") < 0)
        return 0;
    for (size_t i = 0; i < sizeof sms / sizeof *sms; i++) {
        const int arch = nj_index_arch_for(&index, sms[i]);
        if (arch < 0 || index.archs[arch].sm != sms[i])
            return 0;
    }
    return 1;
}

static void not_tried_without_code_for_sm_90_sm_120_and_sm_121(void **state)
{
    (void)state;
}

int main(void)
{
    const struct CMUnitTest none[] = {
        cmocka_unit_test(not_tried_without_code_for_sm_90_sm_120_and_sm_121)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(spare_code_takes_the_place_of_a_kernel, afresh),
        cmocka_unit_test_setup(an_arch_without_spare_code_says_so, afresh),
        cmocka_unit_test_setup(a_kernel_stays_where_its_spare_code_fails, afresh),
    };
    return has_code() ? cmocka_run_group_tests(tests, load_libraries, NULL)
                      : cmocka_run_group_tests(none, NULL, NULL);
}
