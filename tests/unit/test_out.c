/* SPDX-License-Identifier: Apache-2.0
 *
 * test_out.c: the folder of a run: its own files, who may write, and the rows that are kept.
 */
#include "record/lock.h"
#include "record/rows.h"
#include "record/run_files.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* Replaces libc's function: file systems without locks are rare on machines that run tests. */
static int lock_error;

int fcntl(int fd, int command, ...)
{
    va_list ap;
    va_start(ap, command);
    void *argument = va_arg(ap, void *);
    va_end(ap);
    if (lock_error != 0 && command == F_OFD_SETLK) {
        errno = lock_error;
        return -1;
    }
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

static int fresh(void **state)
{
    (void)state;
    lock_error = 0;
    remove_tree(at("out"));
    make_folder("out");
    return 0;
}

static void names_of_a_run_are_as_it_writes_them(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t step;
    } names[] = {
        {"checkpoint-7", 7},
        {"checkpoint-0007", 0},
        {"checkpoint- 7", 0},
        {"checkpoint-+7", 0},
        {"checkpoint-7.old", 0},
        {"checkpoint-", 0},
        {"checkpoint-0", 0},
        {"checkpoint--7", 0},
        {"Checkpoint-7", 0},
        {"checkpoint-7x", 0},
        {"best", 0},
        {"checkpoint-9223372036854775807", INT64_MAX},
        {"checkpoint-9223372036854775808", 0},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (own_step(names[i].name) != names[i].step)
            fail_msg("%s: %lld", names[i].name, (long long)own_step(names[i].name));
    int64_t oldest;
    make_folder("out/checkpoint-7");
    make_folder("out/checkpoint-12");
    make_folder("out/checkpoint-0009");
    assert_int_equal(own_steps(at("out"), 0, &oldest), 2);
    assert_int_equal(oldest, 7);
    assert_int_equal(own_steps(at("out"), 7, &oldest), 1);
    assert_int_equal(oldest, 12);
    assert_int_equal(own_newest(at("out"), INT64_MAX), 12);
    assert_int_equal(own_newest(at("out"), 12), 7);
    assert_int_equal(own_newest(at("out/none"), 12), 0);
}

static void put_checkpoint(const char *name)
{
    char path[128];
    make_folder(name);
    snprintf(path, sizeof path, "%s/state.bin", name);
    write_bytes(at(path), "NJSTATE", 8);
    snprintf(path, sizeof path, "%s/settings.txt", name);
    write_text(at(path), "seed 1\n");
    snprintf(path, sizeof path, "%s/model-00001-of-00002.safetensors", name);
    write_text(at(path), "weights");
}

static void only_what_a_run_writes_is_removed(void **state)
{
    (void)state;
    int removed = 0;
    put_checkpoint("out/best.old");
    check_ok(own_remove(at("out"), "best.old", &removed), "own");
    assert_int_equal(removed, 1);
    assert_int_equal(access(at("out/best.old"), F_OK), -1);
    check_ok(own_remove(at("out"), "best.old", &removed), "not there");
    assert_int_equal(removed, 1);

    put_checkpoint("out/best.old");
    write_text(at("out/best.old/gemm.txt.tmp-7BY9Pc"), "killed here, by an earlier build");
    write_text(at("out/best.old/gemm.txt.tmp-4194000"), "killed here");
    check_ok(own_remove(at("out"), "best.old", &removed), "partial table");
    assert_int_equal(removed, 2);

    put_checkpoint("out/best.old");
    write_text(at("out/best.old/gemm.txt.tmp-7BY9Pcs"), "mine");
    check_refused(own_remove(at("out"), "best.old", &removed), NJ_E_IO,
                  "holds gemm.txt.tmp-7BY9Pcs", "a longer name");
    unlink(at("out/best.old/gemm.txt.tmp-7BY9Pcs"));
    write_text(at("out/best.old/notes.txt"), "mine");
    check_refused(own_remove(at("out"), "best.old", &removed), NJ_E_IO,
                  "out/best.old is not removed: it holds notes.txt, which no run writes", "notes");
    assert_int_equal(access(at("out/best.old/state.bin"), F_OK), 0);
    unlink(at("out/best.old/notes.txt"));
    assert_int_equal(symlink("../../victim", at("out/best.old/vocab.json")), 0);
    check_refused(own_remove(at("out"), "best.old", NULL), NJ_E_IO, "holds vocab.json", "link");
    unlink(at("out/best.old/vocab.json"));
    write_text(at("out/best.old/state.bin"), "NJSTAT");
    check_refused(own_remove(at("out"), "best.old", NULL), NJ_E_IO, "it is not a checkpoint",
                  "state");

    make_folder("victim");
    write_text(at("victim/config.json"), "{}");
    assert_int_equal(symlink("../victim", at("out/merged")), 0);
    check_refused(own_remove(at("out"), "merged", NULL), NJ_E_IO, "no run wrote it", "link");
    assert_int_equal(access(at("victim/config.json"), F_OK), 0);
}

static void files_are_written_in_place_if_they_are_ours(void **state)
{
    (void)state;
    int fd;
    write_text(at("out/victim"), "theirs");
    assert_int_equal(symlink("victim", at("out/link")), 0);
    assert_int_equal(link(at("out/victim"), at("out/second")), 0);
    assert_int_equal(mkfifo(at("out/pipe"), 0666), 0);
    check_refused(own_open(at("out/link"), O_RDWR, &fd), NJ_E_ARG, "a symbolic link", "link");
    check_refused(own_open(at("out/second"), O_RDWR, &fd), NJ_E_ARG,
                  "has 2 hard links; writing would change all of them", "hard link");
    check_refused(own_open(at("out/pipe"), O_RDWR, &fd), NJ_E_ARG, "not a regular file", "pipe");
    check_refused(own_open(at("out/none"), O_RDWR, &fd), NJ_E_IO, "cannot be written", "none");
    assert_int_equal(errno, ENOENT);
    check_ok(own_open(at("out/new"), O_RDWR | O_CREAT, &fd), "new");
    close(fd);
}

/* A second file description stands for another process. */
static void one_run_has_the_lock(void **state)
{
    (void)state;
    struct lock first, second;
    char who[64];
    check_ok(lock_take(&first, at("out")), "first");
    assert_true(first.held);
    snprintf(who, sizeof who, "process %ld on ", (long)getpid());
    check_refused(lock_take(&second, at("out")), NJ_E_IO, who, "second");
    check_refused(lock_check(at("out")), NJ_E_IO, who, "check");
    lock_release(&second);
    check_refused(lock_check(at("out")), NJ_E_IO, who, "after a refused one");
    lock_release(&first);
    assert_int_equal(access(at("out/lock"), F_OK), -1);

    write_text(at("out/lock"), "nojit run: process 1 on elsewhere\n");
    check_ok(lock_check(at("out")), "left");
    check_ok(lock_take(&first, at("out")), "taken over");
    /* A process that removed the name of a lock does not remove the next one. */
    unlink(at("out/lock"));
    check_ok(lock_take(&second, at("out")), "another file");
    lock_release(&first);
    assert_int_equal(access(at("out/lock"), F_OK), 0);
    lock_release(&second);

    write_text(at("out/lock"), "mine");
    check_refused(lock_take(&first, at("out")), NJ_E_ARG, "not a nojit lock file; move it away",
                  "mine");
    check_text(at("out/lock"), "mine");
}

static void a_lock_that_cannot_be_written_goes(void **state)
{
    (void)state;
    struct lock l;
    struct rlimit usual, none;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    none = usual;
    none.rlim_cur = 0;
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    const int rc = lock_take(&l, at("out"));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    signal(SIGXFSZ, SIG_DFL);
    check_refused(rc, NJ_E_IO, "out/lock: cannot be written", "full");
    assert_int_equal(access(at("out/lock"), F_OK), -1);
}

static void a_file_system_may_have_no_locks(void **state)
{
    (void)state;
    struct lock l;
    lock_error = ENOLCK;
    check_ok(lock_take(&l, at("out")), "take");
    assert_false(l.held);
    assert_string_equal(l.why, "No locks available");
    lock_release(&l);
    assert_int_equal(access(at("out/lock"), F_OK), -1);
}

static void rows_that_are_cut_off_are_kept(void **state)
{
    (void)state;
    struct rows_done done;
    char text[2048];
    FILE *f;
    const char *path = at("out/m");
    write_text(path, "{\"step\": 1, 1}\n{\"step\": 2, 2}\n{\"step\": 5, 5}\n{\"step\": 6");
    check_ok(rows_open(path, 5, NULL, NULL, &done, &f), "go on from step 5");
    assert_int_equal(done.cut, 1);
    assert_int_equal(done.missing, 2);
    assert_true(fputs("{\"step\": 6, 6}\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    check_text(at("out/m.old"), "{\"step\": 6");
    check_ok(rows_open(path, 2, NULL, NULL, &done, &f), "and from step 2");
    fclose(f);
    assert_int_equal(done.cut, 2);
    rows_text("m", &done, text, sizeof text);
    assert_string_equal(text, "m: 2 lines after the checkpoint moved to m.old");
    check_text(at("out/m"), "{\"step\": 1, 1}\n{\"step\": 2, 2}\n");
    check_text(at("out/m.old"), "{\"step\": 6\n{\"step\": 5, 5}\n{\"step\": 6, 6}\n");
    check_refused(rows_open(at("out/m"), ROWS_NEW, NULL, NULL, &done, &f), NJ_E_IO, "File exists",
                  "new");
    check_ok(rows_open(at("out/none"), 3, NULL, NULL, &done, NULL), "none");
    assert_int_equal(access(at("out/none"), F_OK), -1);
}

static void lines_of_metrics_have_a_bound(void **state)
{
    (void)state;
    struct rows_done done;
    const char *path = at("out/m");
    write_text(path, "{\"step\": 1, 1}\n");
    assert_int_equal(truncate(path, (1 << 24) + 15), 0);
    check_refused(rows_open(path, 5, NULL, NULL, &done, NULL), NJ_E_FORMAT,
                  "out/m:2: longer than the limit of 16 MiB for a line; move the file away", "row");
}

static void a_lock_that_cannot_be_read_is_called_so(void **state)
{
    struct rlimit before;
    struct lock l;
    (void)state;
    check_ok(lock_take(&l, at("out")), "lock");
    check_ok(own_check_new(at("out")), "of this run");
    const int lowest = open("/dev/null", O_RDONLY);
    assert_true(lowest >= 0);
    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    /* The limit leaves room for two descriptors. */
    const struct rlimit two = {.rlim_cur = (rlim_t)lowest + 2, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &two), 0);
    const int rc = own_check_new(at("out"));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    check_refused(rc, NJ_E_IO, "lock cannot be read: Too many open files", "files");
    lock_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(names_of_a_run_are_as_it_writes_them, fresh),
        cmocka_unit_test_setup(only_what_a_run_writes_is_removed, fresh),
        cmocka_unit_test_setup(files_are_written_in_place_if_they_are_ours, fresh),
        cmocka_unit_test_setup(one_run_has_the_lock, fresh),
        cmocka_unit_test_setup(a_lock_that_cannot_be_written_goes, fresh),
        cmocka_unit_test_setup(a_file_system_may_have_no_locks, fresh),
        cmocka_unit_test_setup(rows_that_are_cut_off_are_kept, fresh),
        cmocka_unit_test_setup(lines_of_metrics_have_a_bound, fresh),
        cmocka_unit_test_setup(a_lock_that_cannot_be_read_is_called_so, fresh),
    };
    return cmocka_run_group_tests_name("out", tests, scratch_begin, scratch_end);
}
