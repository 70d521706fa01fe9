/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sized.c: structs of programs that were compiled against an older or a newer nojit.h, and the layout of those
 * that must not change while the names of ABI 1 are kept.
 */
#include "kernel_case.h"
#include "launcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const size_t nonsense[] = {0, 1, sizeof(void *) + 1, ((size_t)1 << 16) + 8, SIZE_MAX - 7};

/* A struct of a newer header, with a field that the library does not know. */
struct newer_options {
    struct nj_options known;
    const void *unknown;
};

static int create(const void *options, size_t bytes)
{
    nj_context *ctx = NULL;
    const int rc = nj_context_create_sized(&ctx, options, bytes);
    assert_non_null(ctx);
    if (rc != 0)
        assert_non_null(strstr(nj_context_error(ctx), "nj_options "));
    nj_context_destroy(ctx);
    return rc;
}

static void options_that_an_older_program_lacks_are_not_read(void **state)
{
    const size_t device_and_ordinal = offsetof(struct nj_options, verbose);
    struct nj_options o;
    nj_context *ctx;
    (void)state;
    memset(&o, 0xff, sizeof o); /* pointers to nowhere, and a self-test that would be called */
    o.device = NJ_DEVICE_CPU;
    o.ordinal = 0;
    assert_int_equal(nj_context_create_sized(&ctx, &o, device_and_ordinal), 0);
    assert_string_equal(nj_context_device(ctx)->backend, "cpu");
    nj_context_destroy(ctx);
}

static void options_that_the_library_lacks_must_be_zero(void **state)
{
    struct newer_options o = {.known.device = NJ_DEVICE_CPU};
    (void)state;
    assert_int_equal(create(&o, sizeof o), 0);
    o.unknown = "";
    assert_int_equal(create(&o, sizeof o), NJ_E_ARG);
    assert_int_equal(create(&o, sizeof o.known), 0);
}

static void a_device_is_described_to_the_size_of_the_program(void **state)
{
    const size_t older = offsetof(struct nj_device_info, multiprocessors) & ~(sizeof(void *) - 1);
    struct {
        struct nj_device_info known;
        unsigned char unknown[64];
    } newer;
    unsigned char *bytes = (unsigned char *)&newer;
    struct nj_device_info whole;
    (void)state;
    const int rc = nj_device_of_sm(90, &whole);
    assert_int_equal(whole.sm, 90);
    memset(&newer, 0xa5, sizeof newer);
    assert_int_equal(nj_device_of_sm_sized(90, &newer.known, older), rc);
    assert_memory_equal(&newer, &whole, older);
    for (size_t i = older; i < sizeof newer; i++)
        assert_int_equal(bytes[i], 0xa5);
    assert_int_equal(nj_device_of_sm_sized(90, &newer.known, sizeof newer), rc);
    assert_true(newer.known.sm == 90 && newer.known.f8 == whole.f8);
    assert_string_equal(newer.known.arch, whole.arch);
    for (size_t i = sizeof whole; i < sizeof newer; i++)
        assert_int_equal(bytes[i], 0);
}

static void the_index_is_read_to_the_size_of_the_program(void **state)
{
    const size_t older = offsetof(struct nj_embedded, index_hash);
    struct nj_embedded whole, cut;
    (void)state;
    const int rc = nj_embedded_read(&whole);
    memset(&cut, 0xa5, sizeof cut);
    assert_int_equal(nj_embedded_read_sized(&cut, older), rc);
    assert_memory_equal(&cut, &whole, older);
    assert_true(cut.index_hash == UINT64_C(0xa5a5a5a5a5a5a5a5));
}

static void sizes_that_no_struct_has_are_refused(void **state)
{
    struct nj_options o = {.device = NJ_DEVICE_CPU};
    struct nj_device_info info = {.sm = 7};
    struct nj_embedded embedded = {.keys = 7};
    (void)state;
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        assert_int_equal(create(&o, nonsense[i]), NJ_E_ARG);
        assert_int_equal(nj_device_of_sm_sized(90, &info, nonsense[i]), NJ_E_ARG);
        assert_int_equal(nj_embedded_read_sized(&embedded, nonsense[i]), NJ_E_ARG);
    }
    assert_true(info.sm == 7 && embedded.keys == 7);
}

/* A change of one of these raises the number in the names at the top of nojit.h, once that number was released. */
static void structs_without_a_size_keep_the_layout_of_abi_1(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct nj_gemm), 64);
    assert_int_equal(sizeof(struct nj_gemm_operands), 40);
    assert_int_equal(sizeof(struct nj_self_test), 744);
    assert_int_equal(sizeof(struct nj_self_test_record), 1068);
    assert_int_equal(sizeof(struct nj_trial), 56);
    assert_int_equal(sizeof(struct nj_tiling), 40);
    assert_int_equal(sizeof(struct nj_kernel), 80);
    assert_int_equal(sizeof(struct nj_op), 80);
    assert_int_equal(sizeof(struct nj_call), 40);
    assert_int_equal(sizeof(struct nj_variant), 20);
    assert_int_equal(sizeof(struct nj_pointer), 24);
    assert_int_equal(sizeof(struct nj_number), 16);
    assert_int_equal(sizeof(struct kernel_case), 96);
    assert_int_equal(sizeof(struct case_arg), 96);
}

static void structs_with_a_size_grow_at_their_end(void **state)
{
    (void)state;
    assert_int_equal(offsetof(struct nj_options, tried_user), 72);
    assert_int_equal(offsetof(struct nj_device_info, self_test), 1472);
    assert_int_equal(offsetof(struct nj_device_info, gemm_reports), 3696);
    assert_int_equal(offsetof(struct nj_embedded, index_hash), 2456);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_an_older_program_lacks_are_not_read),
        cmocka_unit_test(options_that_the_library_lacks_must_be_zero),
        cmocka_unit_test(a_device_is_described_to_the_size_of_the_program),
        cmocka_unit_test(the_index_is_read_to_the_size_of_the_program),
        cmocka_unit_test(sizes_that_no_struct_has_are_refused),
        cmocka_unit_test(structs_without_a_size_keep_the_layout_of_abi_1),
        cmocka_unit_test(structs_with_a_size_grow_at_their_end),
    };
    return cmocka_run_group_tests_name("sized", tests, NULL, NULL);
}
