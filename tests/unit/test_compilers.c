/* SPDX-License-Identifier: Apache-2.0
 *
 * test_compilers.c: settings that forbid the driver's JIT, and the detection of compilers that are mapped nevertheless.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "internal.h"

static void the_jit_is_forbidden(void **state)
{
    (void)state;
    unsetenv("CUDA_CACHE_DISABLE");
    setenv("CUDA_DISABLE_PTX_JIT", "0", 1);
    assert_int_equal(nj_forbid_jit(), 0);
    assert_string_equal(getenv("CUDA_DISABLE_PTX_JIT"), "1");
    assert_string_equal(getenv("CUDA_CACHE_DISABLE"), "1");
    assert_string_equal(getenv("CUDA_FORCE_PRELOAD_LIBRARIES"), "0");
}

static void the_jit_is_forbidden_by_both_settings(void **state)
{
    (void)state;
    assert_int_equal(nj_forbid_jit(), 0);
    assert_int_equal(nj_jit_is_forbidden(), 1);
    setenv("CUDA_CACHE_DISABLE", "0", 1);
    assert_int_equal(nj_jit_is_forbidden(), 0);
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    unsetenv("CUDA_DISABLE_PTX_JIT");
    assert_int_equal(nj_jit_is_forbidden(), 0);
    assert_int_equal(nj_forbid_jit(), 0);
}

/* Map a file with that name twice, from a folder that is then removed. */
static void map_file(const char *name, void *maps[2])
{
    char folder[] = "/tmp/test-compilers-XXXXXX", path[128];

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    for (int i = 0; i < 2; i++) {
        maps[i] = mmap(NULL, 4096, i ? PROT_READ : PROT_NONE, MAP_PRIVATE, fd, 0);
        assert_ptr_not_equal(maps[i], MAP_FAILED);
    }
    close(fd);
    unlink(path);
    rmdir(folder);
}

static void compilers_that_are_mapped_are_named(void **state)
{
    void *maps[3][2];
    char names[64];

    (void)state;
    assert_int_equal(nj_mapped_compilers(names, sizeof names), 0);
    assert_string_equal(names, "");
    map_file("libnvrtcish.so", maps[0]); /* not a compiler: its name only begins like one */
    assert_int_equal(nj_mapped_compilers(names, sizeof names), 0);
    map_file("libnvrtc.so.13", maps[1]);
    assert_int_equal(nj_mapped_compilers(names, sizeof names), 1);
    assert_string_equal(names, "libnvrtc.so.13");
    map_file("libnvidia-ptxjitcompiler.so.580.1", maps[2]);
    assert_int_equal(nj_mapped_compilers(names, sizeof names), 1);
    assert_non_null(strstr(names, "libnvidia-ptxjitcompiler.so.580.1"));
    assert_non_null(strstr(names, ", "));
    assert_int_equal(nj_mapped_compilers(names, 16), 1); /* as many names as fit */
    assert_true(strlen(names) < 16);
    for (int i = 0; i < 6; i++)
        munmap(maps[i / 2][i % 2], 4096);
    assert_int_equal(nj_mapped_compilers(names, sizeof names), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_jit_is_forbidden),
        cmocka_unit_test(the_jit_is_forbidden_by_both_settings),
        cmocka_unit_test(compilers_that_are_mapped_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
