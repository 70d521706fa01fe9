/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_tests.c: the program that most unit tests share, so that a changed file is linked once and not a hundred times.
 * It runs the test whose name it is called by: build/tests/test_x is a link to it. make writes their list,
 * unit_tests.h: UNIT_TEST(test_x).
 */
#include <stdio.h>
#include <string.h>

/* Each test was compiled with `main` renamed; most ignore the arguments. */
#define UNIT_TEST(name) int name##_main(int argc, char **argv);
#include "unit_tests.h"
#undef UNIT_TEST

static const struct {
    const char *name;
    int (*main)(int argc, char **argv);
} units[] = {
#define UNIT_TEST(name) {#name, name##_main},
#include "unit_tests.h"
};

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, name) == 0)
            return units[i].main(argc, argv);
    fprintf(stderr, "%s: call this program by the name of a test, such as build/tests/%s\n", name,
            units[0].name);
    return 2;
}
