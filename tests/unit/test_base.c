/* SPDX-License-Identifier: Apache-2.0
 *
 * test_base.c: the small functions of base/, which all programs share.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/edit_distance.h"
#include "base/float8.h"
#include "base/grow.h"
#include "base/integers.h"
#include "e5m2_value.h"
#include "unit.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void quotients_are_rounded_up(void **state)
{
    (void)state;
    assert_int_equal(int_min(-1, 2), -1);
    assert_int_equal(int_max(-1, 2), 2);
    assert_int_equal(int_ceil_div(0, 8), 0);
    assert_int_equal(int_ceil_div(8, 8), 1);
    assert_int_equal(int_ceil_div(9, 8), 2);
    assert_int_equal(int_ceil_div(INT32_MAX, 2), 1 << 30);
    assert_int_equal(int_round_up(9, 8), 16);
    assert_int_equal(int_round_up(16, 8), 16);
    assert_true(i64_min(INT64_MIN, 0) == INT64_MIN);
    assert_true(i64_max(INT64_MIN, 0) == 0);
    assert_true(i64_ceil_div(INT64_MAX, 2) == (int64_t)1 << 62);
}

static void edits_are_counted(void **state)
{
    (void)state;
    char longest[2 * EDIT_WORD_MAX];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(edit_distance("", ""), 0);
    assert_int_equal(edit_distance("", "abc"), 3);
    assert_int_equal(edit_distance("kitten", "sitting"), 3);
    assert_int_equal(edit_distance("hlep", "help"), 2);
    assert_int_equal(edit_distance(longest, longest + 1), 0);
    assert_int_equal(edit_distance("y", longest), EDIT_WORD_MAX);
}

static void same_number(float got, double want, int bits)
{
    if (isnan(want) ? !isnan(got) : (double)got != want || !signbit(got) != !signbit(want))
        fail_msg("0x%02x: got %g, expected %g", (unsigned)bits, (double)got, want);
}

static void each_byte_is_its_number(void **state)
{
    (void)state;
    for (int bits = 0; bits < 256; bits++) {
        const int exponent = bits >> 3 & 15, fraction = bits & 7;
        double size =
            exponent ? (1 + fraction / 8.0) * pow(2, exponent - 7) : fraction / 8.0 * pow(2, -6);
        if (exponent == 15 && fraction == 7)
            size = (double)NAN;
        same_number(f32_from_e4m3((uint8_t)bits), bits & 128 ? -size : size, bits);
        same_number(f32_from_e5m2((uint8_t)bits), decode_e5m2((uint8_t)bits), bits);
    }
}

static void the_clock_goes_forward(void **state)
{
    (void)state;
    const double seconds = clock_seconds(), ms = clock_ms();
    const int64_t ns = clock_ns();
    assert_true(ms >= 1e3 * seconds && 1e6 * ms <= (double)ns);
    assert_true(ms - 1e3 * seconds < 60e3);
    assert_true(clock_ns() >= ns);
}

static void a_broken_invariant_ends_the_process(void **state)
{
    (void)state;
    char said[200] = "";
    int pipe_to_parent[2], status;
    assert_int_equal(pipe(pipe_to_parent), 0);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL);
        dup2(pipe_to_parent[1], STDERR_FILENO);
        CHECK(child == 0);
        CHECK(child == 1);
        _exit(0);
    }
    close(pipe_to_parent[1]);
    assert_true(read(pipe_to_parent[0], said, sizeof said - 1) > 0);
    close(pipe_to_parent[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "internal error: child == 1 does not hold"));
}

static void arrays_grow_ahead_of_their_need(void **state)
{
    int32_t *x = NULL;
    size_t capacity = 0, moves = 0;
    (void)state;
    assert_true(GROW(x, capacity, 0));
    assert_null(x);
    for (size_t i = 0; i < 10000; i++) {
        const size_t had = capacity;
        assert_true(GROW(x, capacity, i + 1));
        assert_true(capacity > i);
        moves += capacity != had;
        x[i] = (int32_t)i;
    }
    for (int32_t i = 0; i < 10000; i++)
        assert_int_equal(x[i], i);
    assert_in_range(moves, 1, 20);
    free(x);
}

static void arrays_that_cannot_grow_stay_as_they_are(void **state)
{
    const size_t too_many[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 8, SIZE_MAX / 12};
    int64_t *x = NULL;
    size_t capacity = 0;
    (void)state;
    assert_true(GROW(x, capacity, 1));
    const int64_t *before = x;
    const size_t had = capacity;
    x[0] = 7;
    for (size_t i = 0; i < sizeof too_many / sizeof *too_many; i++) {
        assert_false(GROW(x, capacity, too_many[i]));
        assert_true(x == before && capacity == had && x[0] == 7);
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_grow_ahead_of_their_need),
        cmocka_unit_test(arrays_that_cannot_grow_stay_as_they_are),
        cmocka_unit_test(quotients_are_rounded_up),
        cmocka_unit_test(edits_are_counted),
        cmocka_unit_test(each_byte_is_its_number),
        cmocka_unit_test(the_clock_goes_forward),
        cmocka_unit_test(a_broken_invariant_ends_the_process),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
