/* SPDX-License-Identifier: Apache-2.0
 *
 * test_runtime.c: the parts of the runtime that need no device: error list, index, kernel look-up, choice of backend.
 * It has its own kernel table; link it with libnojit.a and without generated objects.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "assemblers.h"
#include "internal.h"

static int thunk_calls, thunk_value;

static void thunk(const void *params)
{
    thunk_calls++;
    memcpy(&thunk_value, params, sizeof thunk_value);
}

static const struct nj_param one_int[] = {{0, 4}};

#define KERNEL(op_, variant, entry_, cpu_)                                                         \
    {                                                                                              \
        .key = op_ "." variant, .op = op_, .entry = entry_, .threads = 64,                         \
        .max_shared_bytes = 1024, .param_bytes = 4, .param_count = 1, .params = one_int,           \
        .cpu = cpu_                                                                                \
    }
const struct nj_kernel nj_kernels[] = {
    KERNEL("attn_fwd", "f32.d64", "nj_attn_fwd_f32_d64", thunk),
    KERNEL("attn_fwd", "lp.d128", "nj_attn_fwd_lp_d128", NULL),
    KERNEL("attn_fwd", "lp.d64", "nj_attn_fwd_lp_d64", NULL),
    KERNEL("rmsnorm_fwd", "f32", "nj_rmsnorm_fwd_f32", thunk),
    KERNEL("rope_fwd", "f32", "nj_rope_fwd_f32", thunk),
};
const uint32_t nj_kernel_count = sizeof nj_kernels / sizeof *nj_kernels;

/* ---- error list ---- */

static void errors_are_complete_and_distinct(void **state)
{
    static const int codes[] = {
#define ROW(name, code, text) code,
        NJ_ERRORS(ROW)
#undef ROW
    };
    static const char *const names[] = {
#define ROW(name, code, text) #name,
        NJ_ERRORS(ROW)
#undef ROW
    };
    size_t count = sizeof codes / sizeof *codes;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(codes[i], -(int)i);
        assert_string_equal(nj_error_name(codes[i]), names[i]);
        assert_string_not_equal(nj_error_text(codes[i]), "unknown error");
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(nj_error_text(codes[i]), nj_error_text(codes[j]));
    }
    assert_string_equal(nj_error_text(-(int)count), "unknown error");
    assert_string_equal(nj_error_text(1), "unknown error");
}

/* ---- index ---- */

enum { ENTRIES = 3, ARCHS = 4, RECORDS = 5, PARAMS = 2, STRING_BYTES = 128, BLOB_BYTES = 256 };

/* An index as pack writes it. */
struct image {
    struct nji_header header;
    struct nji_arch archs[ARCHS];
    struct nji_entry entries[ENTRIES];
    struct nji_record records[RECORDS];
    struct nji_param params[PARAMS];
    char strings[STRING_BYTES];
};
struct build {
    struct image index;
    _Alignas(64) unsigned char blobs[BLOB_BYTES];
};

static void seal(struct image *x)
{
    x->header.index_hash = 0;
    x->header.index_hash = XXH3_64bits(x, sizeof *x);
}

static int by_hash(const void *a, const void *b)
{
    const struct nji_entry *x = a, *y = b;

    return (x->key_hash > y->key_hash) - (x->key_hash < y->key_hash);
}

static void make_build(struct build *b)
{
    static const char *const keys[ENTRIES] = {"attn_fwd.lp.d64", "rmsnorm_fwd.f32", "new_only.lp"};
    struct image *x = &b->index;
    uint32_t used = 1;

    memset(b, 0, sizeof *b);
    for (int i = 0; i < BLOB_BYTES; i++)
        b->blobs[i] = (unsigned char)(i * 7 + 3);
    x->header = (struct nji_header){
        .magic = NJI_MAGIC,
        .version = NJI_VERSION,
        .entry_count = ENTRIES,
        .arch_count = ARCHS,
        .record_count = RECORDS,
        .param_count = PARAMS,
        .archs_off = offsetof(struct image, archs),
        .entries_off = offsetof(struct image, entries),
        .records_off = offsetof(struct image, records),
        .params_off = offsetof(struct image, params),
        .strings_off = offsetof(struct image, strings),
        .index_bytes = sizeof *x,
        .blobs_bytes = BLOB_BYTES,
    };
    x->archs[0] = (struct nji_arch){.sm = 75, .lp_is_f16 = 1, .shared_limit = 65536};
    x->archs[1] = (struct nji_arch){.sm = 86, .shared_limit = 101376};
    x->archs[2] = (struct nji_arch){.sm = 90, .suffix = 'a', .shared_limit = 232448};
    x->archs[3] = (struct nji_arch){.sm = 120, .shared_limit = 101376, .spare = 1};
    for (uint32_t i = 0; i < ENTRIES; i++) {
        struct nji_entry *e = &x->entries[i];

        e->key_hash = XXH3_64bits(keys[i], strlen(keys[i]));
        e->key_str = e->entry_str = used;
        snprintf(x->strings + used, sizeof x->strings - used, "%s", keys[i]);
        used += (uint32_t)strlen(keys[i]) + 1;
        e->first_param = 0;
        e->param_count = PARAMS;
        if (i == 2)
            continue; /* for no arch of this build */
        e->blob_off = 64 * i;
        e->blob_bytes = 50;
        e->blob_hash = XXH3_64bits(b->blobs + e->blob_off, e->blob_bytes);
        e->first_record = 2 * i;
        e->record_count = 2 + i;
        e->spare_off = 64 * (2 + i);
        e->spare_bytes = 40;
        e->spare_hash = XXH3_64bits(b->blobs + e->spare_off, e->spare_bytes);
    }
    for (uint32_t i = 0; i < RECORDS; i++)
        x->records[i] = (struct nji_record){.arch = (uint16_t)(i % ARCHS), .code_bytes = 10};
    qsort(x->entries, ENTRIES, sizeof *x->entries, by_hash);
    for (uint32_t i = 0; i < ARCHS; i++)
        x->archs[i].assembler_str = used + (i == 3 ? (uint32_t)sizeof "ptxas 13.0.88" : 0);
    snprintf(x->strings + used, sizeof x->strings - used, "ptxas 13.0.88%cptxas 13.3.73", 0);
    seal(x);
}

static int open_build(const struct build *b, struct nj_index *out, char *why)
{
    return nj_index_open(&b->index, sizeof b->index, b->blobs, sizeof b->blobs, out, why);
}

static void the_index_opens_and_finds_keys(void **state)
{
    struct build b;
    struct nj_index index;
    char why[NJ_SENTENCE_BYTES] = "", list[64];

    (void)state;
    make_build(&b);
    assert_int_equal(open_build(&b, &index, why), 0);
    assert_non_null(nj_index_find(&index, "attn_fwd.lp.d64"));
    assert_non_null(nj_index_find(&index, "rmsnorm_fwd.f32"));
    assert_null(nj_index_find(&index, "rmsnorm_fwd.lp"));
    assert_null(nj_index_find(&index, ""));
    nj_arch_list(&index, list, sizeof list);
    assert_string_equal(list, "sm_75, sm_86, sm_90a, sm_120");
    nj_arch_list(&index, list, 8);
    assert_string_equal(list, "sm_75, ");
}

static void the_best_arch_is_chosen_for_a_gpu(void **state)
{
    static const struct {
        int sm, arch;
    } cases[] = {{75, 0},  {80, -1},  {86, 1},  {89, 1},  {90, 2},
                 {91, -1}, {100, -1}, {120, 3}, {121, 3}, {60, -1}};
    struct build b;
    struct nj_index index;
    char why[NJ_SENTENCE_BYTES];

    (void)state;
    make_build(&b);
    assert_int_equal(open_build(&b, &index, why), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(nj_index_arch_for(&index, cases[i].sm), cases[i].arch);
}

static void the_index_refuses_any_changed_byte(void **state)
{
    struct build b;
    struct nj_index index;
    char why[NJ_SENTENCE_BYTES];

    (void)state;
    make_build(&b);
    for (size_t i = 0; i < sizeof b.index; i++) {
        ((unsigned char *)&b.index)[i] ^= 0x10;
        assert_int_equal(open_build(&b, &index, why), NJ_E_INDEX);
        ((unsigned char *)&b.index)[i] ^= 0x10;
    }
    for (size_t i = 0; i < BLOB_BYTES; i++) {
        const int spare = i >= 128, held = i % 64 < (spare ? 40 : 50);

        b.blobs[i] ^= 1;
        assert_int_equal(open_build(&b, &index, why), held ? NJ_E_INDEX : 0);
        if (held)
            assert_non_null(strstr(why, "hash"));
        b.blobs[i] ^= 1;
    }
    assert_int_equal(open_build(&b, &index, why), 0);
}

static void the_index_refuses_wrong_sizes(void **state)
{
    struct build b;
    struct nj_index index;
    char why[NJ_SENTENCE_BYTES];

    (void)state;
    make_build(&b);
    for (size_t n = 0; n < sizeof b.index; n++)
        assert_int_equal(nj_index_open(&b.index, n, b.blobs, sizeof b.blobs, &index, why),
                         NJ_E_INDEX);
    assert_int_equal(nj_index_open(&b.index, sizeof b.index, b.blobs, BLOB_BYTES - 1, &index, why),
                     NJ_E_INDEX);
}

/* Each 32-bit field in turn is wrong, and the hash is right: nothing outside of the index may be accessed. The
 * sanitizer build notices that. */
static void the_index_survives_hostile_fields(void **state)
{
    static const uint32_t hostile[] = {0, 1, 7, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff};
    struct build b;
    struct nj_index index;
    char why[NJ_SENTENCE_BYTES];
    int refused = 0;

    (void)state;
    for (size_t at = 0; at + 4 <= offsetof(struct image, strings); at += 4) {
        for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
            make_build(&b);
            memcpy((unsigned char *)&b.index + at, &hostile[i], 4);
            seal(&b.index);
            if (open_build(&b, &index, why) == 0)
                nj_index_find(&index, "attn_fwd.lp.d64");
            else
                refused++;
        }
    }
    assert_true(refused > 300);
}

static void the_index_names_what_is_wrong(void **state)
{
    struct build b;
    struct nj_index index;
    struct nji_entry swap;
    char why[NJ_SENTENCE_BYTES];

    (void)state;
    make_build(&b);
    swap = b.index.entries[0];
    b.index.entries[0] = b.index.entries[1];
    b.index.entries[1] = swap;
    seal(&b.index);
    assert_int_equal(open_build(&b, &index, why), NJ_E_INDEX);
    assert_non_null(strstr(why, "out of order"));
    make_build(&b);
    b.index.header.version = 9;
    assert_int_equal(open_build(&b, &index, why), NJ_E_INDEX);
    assert_non_null(strstr(why, "version 9"));
    make_build(&b);
    memset(b.index.strings, 'x', STRING_BYTES);
    seal(&b.index);
    assert_int_equal(open_build(&b, &index, why), NJ_E_INDEX);
    assert_non_null(strstr(why, "do not end"));
}

static void assemblers_are_named_with_their_archs(void **state)
{
    static const char strings[] = "ptxas 13.0.88\0ptxas 13.3.73\0glslc 2023.2";
    enum { OLD = 0, NONE = 13, NEW = 14, OTHER = 28 };
    static const struct {
        uint32_t of[4], count;
        const char *says;
    } cases[] = {
        {{OLD, OLD, OLD, OLD}, 4, "ptxas 13.0.88"},
        {{OLD, OLD, OLD, NEW}, 4, "ptxas 13.0.88, 13.3.73 for sm_121"},
        {{OLD, NEW, OLD, NEW}, 4, "ptxas 13.0.88, 13.3.73 for sm_90a sm_121"},
        {{NEW, OLD, NEW, OTHER}, 4, "ptxas 13.3.73, 13.0.88 for sm_90a, glslc 2023.2 for sm_121"},
        {{NEW}, 1, "ptxas 13.3.73"},
        {{NONE, OLD, NONE, NEW}, 4, "ptxas 13.0.88, 13.3.73 for sm_121"},
        {{OLD}, 0, ""},
    };
    struct nji_arch archs[] = {{.sm = 75}, {.sm = 90, .suffix = 'a'}, {.sm = 120}, {.sm = 121}};
    char said[80];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int a = 0; a < 4; a++)
            archs[a].assembler_str = cases[i].of[a];
        nji_assemblers(archs, cases[i].count, strings, said, sizeof said);
        assert_string_equal(said, cases[i].says);
    }
    /* text that does not fit is left out */
    for (size_t bytes = 1; bytes < sizeof said; bytes++) {
        memset(said, 'x', sizeof said);
        nji_assemblers(archs, 4, strings, said, bytes);
        assert_true(strlen(said) < bytes);
        assert_int_equal(said[bytes], 'x');
    }
}

static void a_binary_without_machine_code_says_so(void **state)
{
    struct nj_embedded embedded;

    (void)state;
    assert_int_equal(nj_embedded_read(&embedded), NJ_E_NO_CODE);
    assert_int_equal(embedded.keys, 0);
}

/* ---- launching ---- */

static int open_cpu(void **state)
{
    static const struct nj_options cpu = {.device = NJ_DEVICE_CPU};
    nj_context *ctx;
    nj_stream *s;

    if (nj_context_create(&ctx, &cpu) != 0 || nj_stream_create(ctx, &s) != 0)
        return -1;
    *state = s;
    return 0;
}

static int close_cpu(void **state)
{
    nj_context *ctx = nj_stream_context(*state);

    nj_stream_destroy(*state);
    nj_context_destroy(ctx);
    return 0;
}

static void a_launch_on_the_cpu_runs_the_reference(void **state)
{
    const uint32_t grid[3] = {1, 1, 1}, none[3] = {1, 0, 1};
    int id = nj_kernel_find("rmsnorm_fwd.f32"), params = 42;

    assert_int_equal(id, 3);
    thunk_calls = 0;
    assert_int_equal(nj_launch(*state, (uint32_t)id, none, 0, &params), 0);
    assert_int_equal(thunk_calls, 0);
    assert_int_equal(nj_launch(*state, (uint32_t)id, grid, 1024, &params), 0);
    assert_int_equal(thunk_calls, 1);
    assert_int_equal(thunk_value, 42);
}

static void a_launch_refuses_bad_arguments(void **state)
{
    nj_context *ctx = nj_stream_context(*state);
    const uint32_t grid[3] = {1, 1, 1};
    int params = 0;

    assert_int_equal(nj_launch(NULL, 0, grid, 0, &params), NJ_E_ARG);
    assert_int_equal(nj_launch(*state, nj_kernel_count, grid, 0, &params), NJ_E_NO_KERNEL);
    assert_int_equal(nj_launch(*state, 0, grid, 1025, &params), NJ_E_ARG);
    assert_non_null(strstr(nj_context_error(ctx), "attn_fwd.f32.d64: 1025 bytes"));
    assert_int_equal(nj_launch(*state, 0, grid, 0, NULL), NJ_E_ARG);
    assert_int_equal(nj_launch(*state, 0, NULL, 0, &params), NJ_E_ARG);
    assert_int_equal(nj_launch(*state, 1, grid, 0, &params), NJ_E_UNSUPPORTED);
    assert_non_null(strstr(nj_context_error(ctx), "attn_fwd.lp.d128"));
    assert_int_equal(nj_refuse(*state, "rmsnorm_fwd", "C % 8 == 0", "N=3, C=5"), NJ_E_ARG);
    assert_string_equal(nj_context_error(ctx), "rmsnorm_fwd: C % 8 == 0 does not hold (N=3, C=5)");
}

static void an_unknown_kernel_names_the_nearest(void **state)
{
    nj_context *ctx = nj_stream_context(*state);
    char key[400];

    assert_int_equal(nj_no_kernel(*state, "attn_fwd.lp.d96"), NJ_E_NO_KERNEL);
    assert_string_equal(nj_context_error(ctx),
                        "no kernel attn_fwd.lp.d96 (op attn_fwd, variant lp.d96); nearest: "
                        "attn_fwd.lp.d64, attn_fwd.lp.d128, attn_fwd.f32.d64");
    assert_int_equal(nj_no_kernel(*state, "rope_bwd.f32"), NJ_E_NO_KERNEL);
    assert_non_null(strstr(nj_context_error(ctx), "nearest: rope_fwd.f32, "));
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = '\0';
    assert_int_equal(nj_no_kernel(*state, key), NJ_E_NO_KERNEL);
    assert_int_equal(nj_no_kernel(*state, ""), NJ_E_NO_KERNEL);
}

static void kernels_are_found_by_their_key(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < nj_kernel_count; i++)
        assert_int_equal(nj_kernel_find(nj_kernels[i].key), (int)i);
    assert_int_equal(nj_kernel_find("attn_fwd"), -1);
    assert_int_equal(nj_kernel_find("zzz"), -1);
    assert_int_equal(nj_kernel_find(""), -1);
}

static void the_cpu_has_kernels_that_have_a_function(void **state)
{
    nj_context *ctx = nj_stream_context(*state);

    const int has = nj_kernel_find("rmsnorm_fwd.f32");

    assert_int_equal(nj_kernel_available(ctx, has), 1);
    assert_int_equal(nj_kernel_available(ctx, nj_kernel_find("attn_fwd.lp.d64")), 0);
    assert_int_equal(nj_kernel_available(ctx, -1), 0);
    assert_int_equal(nj_kernel_available(ctx, (int)nj_kernel_count), 0);
    assert_int_equal(nj_kernel_available(NULL, has), 0);
}

static void the_cpu_has_no_tensor_maps(void **state)
{
    const struct nj_tiling of = {
        .name = "x", .array = "x", .rows = 3, .columns = 5, .tile_rows = 8};
    unsigned char map[NJ_TILE_MAP_BYTES], zero[NJ_TILE_MAP_BYTES] = {0};

    memset(map, 1, sizeof map);
    assert_int_equal(nj_tile_map(*state, 0, map, &of), 0);
    assert_memory_equal(map, zero, sizeof map);
    assert_int_equal(nj_tile_map(*state, 0, map, NULL), NJ_E_ARG);
}

/* ---- process and choice of device ---- */

/* This program has no machine code, so a GPU cannot be used here even if there is one. */
static void a_gpu_that_cannot_be_used_is_refused(void **state)
{
    static const struct nj_options cuda = {.device = NJ_DEVICE_CUDA};
    nj_context *ctx;
    nj_stream *s;
    void *ptr;
    int rc = nj_context_create(&ctx, &cuda);

    (void)state;
    assert_non_null(ctx);
    assert_true(rc == NJ_E_DRIVER || rc == NJ_E_NO_DEVICE || rc == NJ_E_NO_CODE);
    if (rc == NJ_E_DRIVER)
        assert_non_null(strstr(nj_context_error(ctx), "install driver 580"));
    assert_true(strlen(nj_context_error(ctx)) > 20);
    assert_int_equal(nj_alloc(ctx, NJ_MEM_DEVICE, 4, &ptr), NJ_E_ARG);
    assert_int_equal(nj_stream_create(ctx, &s), NJ_E_ARG);
    assert_int_equal(nj_context_budget(ctx), 0);
    assert_int_equal(nj_kernel_available(ctx, nj_kernel_find("rmsnorm_fwd.f32")), 0);
    nj_context_destroy(ctx);
}

static void auto_falls_back_and_says_why(void **state)
{
    static const struct nj_options cuda = {.device = NJ_DEVICE_CUDA};
    nj_context *ctx, *refused;

    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    setenv("NOJIT_VULKAN_DEVICE", "none", 1); /* sanitizers would check drivers, too */
#endif
    assert_int_equal(nj_context_create(&ctx, NULL), 0);
    assert_int_not_equal(nj_context_create(&refused, &cuda), 0);
    assert_string_equal(nj_context_device(ctx)->backend, "cpu");
    const char *why = nj_context_device(ctx)->fallback, *cuda_error = nj_context_error(refused);
    assert_int_equal(strncmp(why, cuda_error, strlen(cuda_error)), 0);
    assert_int_equal(strncmp(why + strlen(cuda_error), "; Vulkan: ", 10), 0);
    assert_true(strlen(why) > strlen(cuda_error) + 20);
    assert_string_equal(nj_context_error(ctx), "");
    nj_context_destroy(refused);
    nj_context_destroy(ctx);
}

static void bad_options_of_a_context_are_refused(void **state)
{
    static const struct nj_options unknown = {.device = (enum nj_device_kind)9};
    nj_context *ctx;

    (void)state;
    assert_int_equal(nj_context_create(NULL, NULL), NJ_E_ARG);
    assert_int_equal(nj_context_create(&ctx, &unknown), NJ_E_ARG);
    assert_non_null(strstr(nj_context_error(ctx), "9"));
    nj_context_destroy(ctx);
    nj_context_destroy(NULL);
}

static void collect(void *user, const char *line)
{
    char *text = user;

    strncat(text, line, 4000 - strlen(text));
    strncat(text, "\n", 4000 - strlen(text));
}

static void a_named_library_is_the_only_one_tried(void **state)
{
    char text[4096] = "";

    (void)state;
    setenv("NOJIT_CUBLASLT", "/", 1);
    setenv("NOJIT_NCCL", "/", 1);
    nj_library_search(collect, text);
    unsetenv("NOJIT_CUBLASLT");
    unsetenv("NOJIT_NCCL");
    assert_non_null(strstr(text, "driver: "));
    assert_non_null(strstr(text, "cuBLASLt: //libcublasLt.so.13: "));
    assert_non_null(strstr(text, "cuBLASLt: none found"));
    assert_non_null(strstr(text, "NCCL: //libnccl.so.2: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_complete_and_distinct),
        cmocka_unit_test(the_index_opens_and_finds_keys),
        cmocka_unit_test(the_best_arch_is_chosen_for_a_gpu),
        cmocka_unit_test(the_index_refuses_any_changed_byte),
        cmocka_unit_test(the_index_refuses_wrong_sizes),
        cmocka_unit_test(the_index_survives_hostile_fields),
        cmocka_unit_test(the_index_names_what_is_wrong),
        cmocka_unit_test(assemblers_are_named_with_their_archs),
        cmocka_unit_test(a_binary_without_machine_code_says_so),
        cmocka_unit_test_setup_teardown(a_launch_on_the_cpu_runs_the_reference, open_cpu,
                                        close_cpu),
        cmocka_unit_test_setup_teardown(a_launch_refuses_bad_arguments, open_cpu, close_cpu),
        cmocka_unit_test_setup_teardown(an_unknown_kernel_names_the_nearest, open_cpu, close_cpu),
        cmocka_unit_test(kernels_are_found_by_their_key),
        cmocka_unit_test_setup_teardown(the_cpu_has_kernels_that_have_a_function, open_cpu,
                                        close_cpu),
        cmocka_unit_test_setup_teardown(the_cpu_has_no_tensor_maps, open_cpu, close_cpu),
        cmocka_unit_test(a_gpu_that_cannot_be_used_is_refused),
        cmocka_unit_test(auto_falls_back_and_says_why),
        cmocka_unit_test(bad_options_of_a_context_are_refused),
        cmocka_unit_test(a_named_library_is_the_only_one_tried),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
