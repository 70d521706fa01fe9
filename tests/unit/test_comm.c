/* SPDX-License-Identifier: Apache-2.0
 *
 * test_comm.c: communicators of the CPU: the results of transfers, and ranks that have ended or make other calls. Each
 * rank is a process, and reports faults by its exit status.
 */
#include "nojit.h"
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_MOST = 8, WRONG = 100, BYTES = 3 << 20 };

static unsigned char id[NJ_COMM_ID_BYTES];

struct rank {
    nj_context *ctx;
    nj_stream *s;
    nj_comm *c;
    int rank, ranks;
};
/* The body of a rank; returns its exit status. */
typedef int rank_fn(struct rank *r);

static int begin(struct rank *r)
{
    const struct nj_options options = {.device = NJ_DEVICE_CPU};
    int rc = nj_context_create(&r->ctx, &options);
    if (rc == 0)
        rc = nj_stream_create(r->ctx, &r->s);
    return rc != 0 ? rc : nj_comm_create(r->ctx, id, r->rank, r->ranks, &r->c);
}

static int run_rank(int rank, int ranks, rank_fn *body)
{
    struct rank r = {.rank = rank, .ranks = ranks};
    const int rc = begin(&r);
    const int status = rc != 0 ? WRONG - 1 : body(&r);
    nj_comm_destroy(r.c);
    nj_stream_destroy(r.s);
    nj_context_destroy(r.ctx);
    return status;
}

/* Run the ranks and store the exit status of each; a signal counts as its negative number. */
static void run_ranks(int ranks, rank_fn *body, int *status)
{
    pid_t pid[RANKS_MOST];
    nj_context *ctx;
    const struct nj_options options = {.device = NJ_DEVICE_CPU};
    assert_int_equal(nj_context_create(&ctx, &options), 0);
    assert_int_equal(nj_comm_id(ctx, id), 0);
    nj_context_destroy(ctx);
    for (int rank = 0; rank < ranks; rank++) {
        pid[rank] = fork();
        assert_true(pid[rank] >= 0);
        if (pid[rank] == 0)
            _exit(run_rank(rank, ranks, body));
    }
    for (int rank = 0; rank < ranks; rank++) {
        int ended;
        assert_int_equal(waitpid(pid[rank], &ended, 0), pid[rank]);
        status[rank] = WIFEXITED(ended) ? WEXITSTATUS(ended) : -WTERMSIG(ended);
    }
}

static void all_end_well(int ranks, rank_fn *body)
{
    int status[RANKS_MOST];
    run_ranks(ranks, body, status);
    for (int rank = 0; rank < ranks; rank++)
        assert_int_equal(status[rank], 0);
}

/* Return a byte that identifies its rank and place. */
static unsigned char byte_at(int rank, size_t at)
{
    return (unsigned char)((size_t)rank * 37 + at * 11 + at / 257);
}

static int all_is(const unsigned char *x, size_t bytes, int rank, size_t at)
{
    for (size_t i = 0; i < bytes; i++)
        if (x[i] != byte_at(rank, at + i))
            return 0;
    return 1;
}

static void fill(unsigned char *x, size_t bytes, int rank)
{
    for (size_t i = 0; i < bytes; i++)
        x[i] = byte_at(rank, i);
}

static int exchange(struct rank *r, size_t bytes)
{
    const size_t all = (size_t)r->ranks * bytes;
    unsigned char *send = malloc(all), *recv = calloc(all, 1);
    int wrong = send == NULL || recv == NULL;
    fill(send, all, r->rank);
    wrong = wrong || nj_all_to_all(r->c, r->s, recv, send, bytes) != 0;
    for (int k = 0; !wrong && k < r->ranks; k++)
        wrong = !all_is(recv + (size_t)k * bytes, bytes, k, (size_t)r->rank * bytes);
    free(send);
    free(recv);
    return wrong ? WRONG : 0;
}

static int gather(struct rank *r, size_t bytes, int in_place)
{
    unsigned char *send = malloc(bytes), *recv = calloc((size_t)r->ranks, bytes);
    int wrong = send == NULL || recv == NULL;
    unsigned char *from = in_place ? recv + (size_t)r->rank * bytes : send;
    fill(from, bytes, r->rank);
    wrong = wrong || nj_all_gather(r->c, r->s, recv, from, bytes) != 0;
    for (int k = 0; !wrong && k < r->ranks; k++)
        wrong = !all_is(recv + (size_t)k * bytes, bytes, k, 0);
    free(send);
    free(recv);
    return wrong ? WRONG : 0;
}

static int cast(struct rank *r, size_t bytes, int root)
{
    unsigned char *x = malloc(bytes);
    int wrong = x == NULL;
    fill(x, bytes, r->rank);
    wrong = wrong || nj_broadcast(r->c, r->s, x, bytes, root) != 0 || !all_is(x, bytes, root, 0);
    free(x);
    return wrong ? WRONG : 0;
}

/* Make all transfers in turn, with sizes of one and of several pieces. */
static int all_transfers(struct rank *r)
{
    static const size_t sizes[] = {16, 4096, BYTES + 16};
    int status = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && status == 0; i++) {
        status = exchange(r, sizes[i]);
        if (status == 0)
            status = gather(r, sizes[i], 0);
        if (status == 0)
            status = gather(r, sizes[i], 1);
        if (status == 0)
            status = cast(r, sizes[i], r->ranks - 1);
    }
    return status;
}

static void bytes_arrive_in_the_order_of_ranks(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= RANKS_MOST; ranks = ranks < 3 ? ranks + 1 : ranks + 5)
        all_end_well(ranks, all_transfers);
}

/* Return 1 if the call failed with NJ_E_DEVICE and a sentence that contains the part. */
static int failed_with(const struct rank *r, int rc, const char *part)
{
    return rc == NJ_E_DEVICE && strstr(nj_context_error(r->ctx), part) != NULL;
}

static int one_is_killed(struct rank *r)
{
    _Alignas(16) char x[64] = "";
    if (r->rank == 1)
        raise(SIGKILL);
    return failed_with(r, nj_broadcast(r->c, r->s, x, sizeof x, 0), "rank 1 of 3 is gone") ? 0
                                                                                           : WRONG;
}

/* The rank is killed, and its parent has not collected its status. */
static void a_rank_that_is_gone_ends_the_others(void **state)
{
    (void)state;
    int status[RANKS_MOST];
    run_ranks(3, one_is_killed, status);
    assert_int_equal(status[0], 0);
    assert_int_equal(status[1], -SIGKILL);
    assert_int_equal(status[2], 0);
}

static int one_does_something_else(struct rank *r)
{
    _Alignas(16) char x[192] = "", y[192];
    const int rc =
        r->rank == 0 ? nj_broadcast(r->c, r->s, x, 32, 0) : nj_all_gather(r->c, r->s, y, x, 64);
    return failed_with(r, rc,
                       r->rank == 0 ? "rank 1 does an all-gather of 64 bytes where rank 0 does a "
                                      "broadcast of 32"
                                    : "rank 0 does a broadcast of 32 bytes where rank ")
               ? 0
               : WRONG;
}

static int one_has_another_root(struct rank *r)
{
    _Alignas(16) char x[32] = "";
    return failed_with(r, nj_broadcast(r->c, r->s, x, sizeof x, r->rank), "where rank") ? 0 : WRONG;
}

static int one_has_another_size(struct rank *r)
{
    _Alignas(16) char x[256] = "", y[256];
    return failed_with(r, nj_all_to_all(r->c, r->s, y, x, r->rank == 0 ? 16 : 32), "where rank")
               ? 0
               : WRONG;
}

static void ranks_that_disagree_are_told(void **state)
{
    (void)state;
    all_end_well(3, one_does_something_else);
    all_end_well(2, one_has_another_root);
    all_end_well(2, one_has_another_size);
}

static void arguments_of_collectives_are_checked(void **state)
{
    (void)state;
    const struct nj_options options = {.device = NJ_DEVICE_CPU};
    nj_context *ctx, *other;
    nj_stream *s, *foreign;
    nj_comm *c;
    _Alignas(16) char x[64] = "", y[64];
    assert_int_equal(nj_context_create(&ctx, &options), 0);
    assert_int_equal(nj_context_create(&other, &options), 0);
    assert_int_equal(nj_stream_create(ctx, &s), 0);
    assert_int_equal(nj_stream_create(other, &foreign), 0);
    assert_int_equal(nj_comm_id(ctx, id), 0);
    assert_int_equal(nj_comm_create(ctx, id, 1, 1, &c), NJ_E_ARG);
    assert_null(c);
    assert_int_equal(nj_comm_create(ctx, id, 0, NJ_COMM_RANKS_MOST + 1, &c), NJ_E_ARG);
    assert_int_equal(nj_comm_create(ctx, id, 0, 1, &c), 0);
    assert_int_equal(nj_broadcast(c, s, x, sizeof x, 1), NJ_E_ARG);
    assert_int_equal(nj_broadcast(c, foreign, x, sizeof x, 0), NJ_E_ARG);
    assert_int_equal(nj_all_gather(c, s, NULL, x, 16), NJ_E_ARG);
    assert_int_equal(nj_all_gather(c, s, y, x, 8), NJ_E_ARG);
    assert_int_equal(nj_all_to_all(c, s, y + 4, x, 16), NJ_E_ARG);
    assert_int_equal(nj_all_to_all(c, s, NULL, NULL, 0), 0);
    nj_comm_destroy(c);
    nj_comm_destroy(NULL);
    nj_stream_destroy(foreign);
    nj_stream_destroy(s);
    nj_context_destroy(other);
    nj_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_in_the_order_of_ranks),
        cmocka_unit_test(a_rank_that_is_gone_ends_the_others),
        cmocka_unit_test(ranks_that_disagree_are_told),
        cmocka_unit_test(arguments_of_collectives_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
