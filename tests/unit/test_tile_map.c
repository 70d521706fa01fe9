/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tile_map.c: the CUDA backend's calls of the driver for a tensor map, on the simulated one.
 */
#include "base/activation.h"
#include "cuda_sim.h"

#include "cuda/api.h"
#include "nojit_ops.h"

static void a_tensor_map_says_what_the_array_is(void **state)
{
    (void)state;
    nj_context *ctx = open_context(&cuda);
    nj_stream *s;
    void *array;
    struct sim_tensor_map map;
    assert_int_equal(nj_stream_create(ctx, &s), 0);
    assert_int_equal(nj_alloc(ctx, NJ_MEM_DEVICE, 2 * 37 * 128, &array), 0);
    struct nj_tiling of = {
        .name = "x", .array = array, .rows = 37, .columns = 128, .tile_rows = 96};
    assert_int_equal(nj_tile_map(s, 0, &map, &of), 0);
    const struct sim_tensor_map want = {.address = (uintptr_t)array,
                                        .sizes = {128, 37},
                                        .row_bytes = 256,
                                        .box = {64, 96},
                                        .steps = {1, 1},
                                        .type = NJ_CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                        .rank = 2,
                                        .swizzle = NJ_CU_TENSOR_MAP_SWIZZLE_128B,
                                        .promotion = NJ_CU_TENSOR_MAP_L2_PROMOTION_L2_256B};
    assert_memory_equal(&map, &want, sizeof map);
    ctx->info.lp_is_f16 = 1;
    assert_int_equal(nj_tile_map(s, 0, &map, &of), 0);
    assert_int_equal(map.type, NJ_CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
    of.columns = 100; /* rows of 200 bytes, no multiple of 16 */
    assert_int_equal(nj_tile_map(s, 0, &map, &of), NJ_E_DEVICE);
    char says[200];
    snprintf(says, sizeof says, "%s: tensor map of x, 37 rows of 100 elements: CUDA_ERROR_INVALID",
             nj_kernels[0].key);
    assert_non_null(strstr(nj_context_error(ctx), says));
    /* There is nothing to read: no map, and no error. */
    const struct sim_tensor_map zero = {0};
    struct nj_tiling empty[] = {of, of, of};
    empty[0].rows = 0;
    empty[1].columns = 0;
    empty[2].array = NULL;
    for (int i = 0; i < 3; i++) {
        memset(&map, 1, sizeof map);
        assert_int_equal(nj_tile_map(s, 0, &map, &empty[i]), 0);
        assert_memory_equal(&map, &zero, sizeof map);
    }
    assert_int_equal(nj_tile_map(NULL, 0, &map, &of), NJ_E_ARG);
    nj_free(ctx, NJ_MEM_DEVICE, array);
    nj_stream_destroy(s);
    nj_context_destroy(ctx);
}

static void a_launcher_makes_the_maps(void **state)
{
    (void)state;
    enum { N = 37, I = 40, C = 104, BYTES = 1 << 16 };
    nj_context *ctx = open_context(&cuda);
    nj_stream *s;
    void *act;
    if (!nj_gemm_glu_available(ctx, NJ_LP, NJ_SILU)) { /* not in this build */
        nj_context_destroy(ctx);
        skip();
    }
    assert_int_equal(nj_stream_create(ctx, &s), 0);
    assert_int_equal(nj_alloc(ctx, NJ_MEM_DEVICE, BYTES, &act), 0);
    assert_int_equal(nj_zero(s, act, BYTES), 0);
    const char *x = (char *)act + 4096, *w = (char *)act + 16384;
    assert_int_equal(nj_gemm_glu(s, NJ_LP, NJ_SILU,
                                 &(struct nj_gemm_glu){
                                     .act = act, .x = x, .w = w, .N = N, .I = I, .C = C, .P = 7}),
                     0);
    assert_int_equal(sim->launch.grid[0], 6);
    const struct nj_kernel *k = &nj_kernels[nj_kernel_find("gemm_glu.lp.act0")];
    const struct nj_param *maps = k->params + k->param_count - 2;
    const struct sim_tensor_map want[] = {
        {.address = (uintptr_t)x, .sizes = {C, N}, .row_bytes = 2 * C, .box = {64, 128}},
        {.address = (uintptr_t)w, .sizes = {C, 2 * I}, .row_bytes = 2 * C, .box = {64, 128}},
    };
    for (int i = 0; i < 2; i++)
        assert_memory_equal(sim->launch.params + maps[i].offset, &want[i],
                            offsetof(struct sim_tensor_map, steps));
    nj_free(ctx, NJ_MEM_DEVICE, act);
    nj_stream_destroy(s);
    nj_context_destroy(ctx);
}

static void not_tried_without_code_for_sm_90(void **state)
{
    (void)state;
}

int main(void)
{
    char why[NJ_SENTENCE_BYTES];
    struct nj_index index;
    const struct CMUnitTest none[] = {cmocka_unit_test(not_tried_without_code_for_sm_90)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_tensor_map_says_what_the_array_is, afresh),
        cmocka_unit_test_setup(a_launcher_makes_the_maps, afresh),
    };
    if (nj_index_embedded(&index, why) != 0 || nj_index_arch_for(&index, 90) < 0)
        return cmocka_run_group_tests(none, NULL, NULL);
    return cmocka_run_group_tests(tests, load_libraries, NULL);
}
