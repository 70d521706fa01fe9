/* SPDX-License-Identifier: Apache-2.0
 *
 * filter.c: linked into every unit test program: `build/tests/test_x PATTERN` runs only the tests whose names match.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* glibc passes the arguments of main to a constructor. */
__attribute__((constructor)) static void filter(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
}
