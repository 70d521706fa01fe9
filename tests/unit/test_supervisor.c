/* SPDX-License-Identifier: Apache-2.0
 *
 * test_supervisor.c: the processes that --gpus forks, and what each is given.
 */
#include "ranks/supervisor.h"
#include "unit.h"

#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 3, RUNS = 2 };

/* Places by run and rank, written by the ranks. */
static struct place (*seen)[RANKS];

static void fork_ranks(int run)
{
    const struct place base = {.size = 1, .local_size = 1};
    struct rank self;
    int code = -1;
    if (supervise(&base, RANKS, &self, &code)) {
        seen[run][self.place.rank] = self.place;
        _exit(0);
    }
    assert_int_equal(code, 0);
}

static int begin(void **state)
{
    (void)state;
    seen =
        mmap(NULL, RUNS * sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED)
        return -1;
    for (int run = 0; run < RUNS; run++)
        fork_ranks(run);
    return 0;
}

static void ranks_share_a_secret(void **state)
{
    static const unsigned char none[SECRET_BYTES];
    (void)state;
    for (int run = 0; run < RUNS; run++)
        for (int i = 0; i < RANKS; i++)
            assert_memory_equal(seen[run][i].secret, seen[run][0].secret, SECRET_BYTES);
    assert_memory_not_equal(seen[0][0].secret, none, SECRET_BYTES);
    assert_memory_not_equal(seen[0][0].secret, seen[1][0].secret, SECRET_BYTES);
}

static void ranks_are_numbered_and_meet_at_one_port(void **state)
{
    (void)state;
    for (int run = 0; run < RUNS; run++)
        for (int i = 0; i < RANKS; i++) {
            const struct place *p = &seen[run][i];
            assert_int_equal(p->rank, i);
            assert_int_equal(p->local_rank, i);
            assert_int_equal(p->size, RANKS);
            assert_int_equal(p->local_size, RANKS);
            assert_string_equal(p->host, "127.0.0.1");
            assert_int_equal(p->port, seen[run][0].port);
            assert_true(p->port > 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_share_a_secret),
        cmocka_unit_test(ranks_are_numbered_and_meet_at_one_port),
    };
    return cmocka_run_group_tests_name("supervisor", tests, begin, NULL);
}
