/* SPDX-License-Identifier: Apache-2.0
 *
 * test_case_sizes.c: the sizes that gen computes for the dims of a case equal those that its function computes for any
 * dims.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernel_case.h"

static void sizes_of_the_contracts_equal_the_cases(void **state)
{
    (void)state;
    assert_true(nj_case_count > 0);
    for (uint32_t i = 0; i < nj_case_count; i++) {
        const struct kernel_case *c = &nj_cases[i];
        struct case_sizes sizes;
        c->sizes(c->params, &sizes);
        for (uint32_t a = 0; a < c->arg_count; a++) {
            assert_int_equal(sizes.elements[a], c->args[a].elements);
            if (c->args[a].dir != CASE_OUT)
                assert_int_equal(sizes.fill_value[a], c->args[a].fill_value);
        }
        assert_true(sizes.flops == c->flops && sizes.bytes == c->bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_of_the_contracts_equal_the_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
