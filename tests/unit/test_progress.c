/* SPDX-License-Identifier: Apache-2.0
 *
 * test_progress.c: the text of a step's line. tests/cli/cli_progress.sh tests it in a terminal.
 */
#include <math.h>

#include "base/clock.h"
#include "base/plural.h"
#include "record/progress.h"
#include "unit.h"

/* Return the log after steps [first, last] of 20, when every 10th is due. */
static const char *log_of(double ideal_seconds, bool teacher, int64_t first, int64_t last)
{
    static char text[4096];
    const struct step_result r = {.loss = 1.5,
                                  .kd_loss = 0.25,
                                  .ce_loss = 2.75,
                                  .lr = 1e-3,
                                  .grad_norm = 0.5,
                                  .tokens = 8192,
                                  .step_ms = 200};
    const char *path = at("log");
    struct progress p;
    remove(path);
    check_ok(progress_open(&p, path, true), "open");
    p.terminal = false;
    p.teacher = teacher;
    p.steps = 20;
    p.every = 10;
    p.ideal_seconds = ideal_seconds;
    p.memory_bytes = 3.5 * (1 << 30);
    for (int64_t step = first; step <= last; step++)
        progress_step(&p, step, &r);
    progress_close(&p);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* 0.05 of 0.2 s: a quarter. */
static void progress_says_what_is_known(void **state)
{
    (void)state;
    assert_string_equal(log_of(0.05, true, 20, 20),
                        "step 20/20  loss 1.5000  kd 0.2500  ce 2.7500  lr 1.00e-03  norm 0.50  "
                        "40960 tok/s  MFU 25.0 %  3.50 GiB  ETA 0 s\n");
    assert_string_equal(log_of((double)NAN, false, 20, 20),
                        "step 20/20  loss 1.5000  lr 1.00e-03  norm 0.50  40960 tok/s  3.50 GiB  "
                        "ETA 0 s\n");
}

static void progress_logs_what_is_due(void **state)
{
    (void)state;
    const char *text = log_of((double)NAN, false, 1, 20);
    assert_int_equal(strncmp(text, "step 10/20 ", 11), 0);
    const char *second = strchr(text, '\n') + 1;
    assert_int_equal(strncmp(second, "step 20/20 ", 11), 0);
    assert_ptr_equal(strchr(second, '\n') + 1, text + strlen(text));
}

/* Ten steps of 10 s remain, and evaluations of 15 s after steps 10, 15 and 20, of which 30 s have passed; then 8 steps,
 * and evaluations after 14, 21 and 22. */
static void the_time_left_counts_evaluations_to_come(void **state)
{
    static const struct {
        int64_t every, step, steps;
        double passed;
        const char *eta;
    } cases[] = {
        {5, 10, 20, 130, "  ETA 2m25s\n"},
        {7, 14, 22, 170, "  ETA 2m05s\n"},
        {0, 10, 20, 130, "  ETA 1m55s\n"},
        {0, 20, 20, 230, "  ETA 15 s\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct progress p;
        size_t bytes;
        remove(at("log"));
        check_ok(progress_open(&p, at("log"), true), "open");
        p.steps = cases[i].steps;
        p.every = 1;
        p.measure_every = cases[i].every;
        p.started = clock_seconds() - cases[i].passed;
        p.ideal_seconds = (double)NAN;
        progress_measured(&p, 0, 99); /* before `started` */
        progress_measured(&p, 5, 15);
        progress_measured(&p, 10, 15);
        progress_step(&p, cases[i].step, &(struct step_result){.step_ms = 1});
        progress_close(&p);
        char *text = read_bytes(at("log"), &bytes);
        assert_non_null(strstr(text, cases[i].eta));
        free(text);
    }
}

/* Progress is reported after ten seconds, and whenever the time has doubled. */
static void long_evaluations_are_told(void **state)
{
    static const struct {
        int64_t rows;
        double passed; /* seconds since the start */
    } calls[] = {{0, 0},   {70, 9},  {80, 11}, {81, 12}, {82, 19},
                 {85, 21}, {86, 39}, {90, 41}, {0, 0},   {9, 9}};
    (void)state;
    size_t bytes;
    fflush(stderr);
    const int before = dup(STDERR_FILENO);
    struct progress p;
    check_ok(progress_open(&p, NULL, true), "open");
    assert_non_null(freopen(at("said"), "w", stderr));
    p.terminal = false;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        p.rows_started = clock_seconds() - calls[i].passed;
        progress_rows(&p, calls[i].rows, 100);
    }
    progress_close(&p);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    char *said = read_bytes(at("said"), &bytes);
    assert_string_equal(said, "held out: 80 of 100 rows  ETA 3 s\n"
                              "held out: 85 of 100 rows  ETA 4 s\n"
                              "held out: 90 of 100 rows  ETA 5 s\n");
    free(said);
}

static void counts_and_times_are_written_in_words(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(plural(0), "s");
    assert_string_equal(plural(1), "");
    assert_string_equal(plural(2), "s");
    assert_string_equal(duration_text(59.6, text, sizeof text), "1m00s");
    assert_string_equal(duration_text(3600, text, sizeof text), "1h00m");
    assert_string_equal(bytes_text(1023, text, sizeof text), "1023 B");
    assert_string_equal(bytes_text(1536, text, sizeof text), "1.50 KiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_says_what_is_known),
        cmocka_unit_test(progress_logs_what_is_due),
        cmocka_unit_test(the_time_left_counts_evaluations_to_come),
        cmocka_unit_test(long_evaluations_are_told),
        cmocka_unit_test(counts_and_times_are_written_in_words),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
