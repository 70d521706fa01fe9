/* SPDX-License-Identifier: Apache-2.0
 *
 * test_nccl.c: communicators of the CUDA backend, on simulated GPUs and a simulated NCCL. test_nccl_aside.c tests
 * transfers beside other work.
 */
#include "nccl_ranks.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

static int hurry; /* each reading of the clock advances it by a second */

int clock_gettime(clockid_t clock, struct timespec *out)
{
    const int rc = (int)syscall(SYS_clock_gettime, clock, out);
    out->tv_sec += hurry ? hurry++ : 0;
    return rc;
}

static int gather(struct rank *r, unsigned char *from, int turn)
{
    int fine = fill(r, from, r->bytes, turn) == 0 &&
               nj_all_gather(r->c, r->s, r->recv, from, r->bytes) == 0;
    for (int k = 0; fine && k < r->ranks; k++)
        fine = has(r, part(r, r->recv, k), k, 0, turn);
    return fine;
}

static int cast(struct rank *r, int root, int turn)
{
    return fill(r, r->send, r->bytes, turn) == 0 &&
           nj_broadcast(r->c, r->s, r->send, r->bytes, root) == 0 && has(r, r->send, root, 0, turn);
}

/* Broadcast zeros over the contents of the other ranks. */
static int cast_zeros(struct rank *r, int root)
{
    int fine = (r->rank != root || nj_zero(r->s, r->send, r->bytes) == 0) &&
               nj_broadcast(r->c, r->s, r->send, r->bytes, root) == 0 &&
               nj_copy(r->s, r->host, r->send, r->bytes) == 0 && nj_stream_sync(r->s) == 0;
    for (size_t i = 0; fine && i < r->bytes; i++)
        fine = r->host[i] == 0;
    return fine;
}

static int all_transfers(struct rank *r)
{
    static const size_t sizes[] = {16, BYTES, 1 << 20, (1 << 20) + 16};
    int fine = nj_comm_check(r->c) == 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && fine; i++) {
        give(r);
        fine = take(r, sizes[i]) == 0 && exchange(r) && gather(r, r->send, 1) &&
               gather(r, part(r, r->recv, r->rank), 2) && cast(r, r->ranks - 1, 3) &&
               cast(r, 0, 4) && cast_zeros(r, 0) && cast(r, 0, 5);
    }
    give(r);
    fine = fine && nj_comm_check(r->c) == 0;
    nj_comm_destroy(r->c);
    nj_stream_destroy(r->s);
    nj_context_destroy(r->ctx);
    return fine && sim->live == 0;
}

static void bytes_arrive_in_the_order_of_ranks(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= RANKS_MOST; ranks = ranks < 3 ? ranks + 1 : ranks + 5) {
        const struct scene of = {.name = "transfers", .ranks = ranks, .body = all_transfers};
        all_end_well(&of);
    }
}

/* ---- memory that copy engines reach ---- */

static int take_together(struct rank *r, size_t bytes)
{
    const size_t all = (size_t)r->ranks * bytes;
    free(r->host);
    r->bytes = bytes;
    r->host = malloc(all);
    return r->host == NULL || nj_comm_alloc(r->c, all, (void **)&r->send) ||
           nj_comm_alloc(r->c, all, (void **)&r->recv);
}

static void give_together(struct rank *r)
{
    nj_comm_free(r->c, r->send);
    nj_comm_free(r->c, r->recv);
    nj_comm_free(r->c, NULL);
    free(r->host);
}

enum { LARGE_BYTES = (1 << 20) + 16 }; /* kernels do not gather so much */

static int all_copies(struct rank *r)
{
    static const size_t sizes[] = {BYTES, LARGE_BYTES};
    give(r);
    r->host = NULL;
    const size_t before = nj_context_budget(r->ctx);
    int fine = 1;
    for (int i = 0; i < 2 && fine; i++) {
        fine = take_together(r, sizes[i]) == 0 && exchange(r) && gather(r, r->send, 1) &&
               gather(r, part(r, r->recv, r->rank), 2) && cast(r, 0, 3);
        give_together(r);
        r->host = NULL;
    }
    fine = fine && nj_context_budget(r->ctx) == before;
    nj_comm_destroy(r->c);
    fine = fine && strstr(nj_context_error(r->ctx), "registered") == NULL;
    nj_stream_destroy(r->s);
    nj_context_destroy(r->ctx);
    return fine && sim->live == 0;
}

static void copy_engines_transfer_what_is_allocated_together(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= RANKS_MOST; ranks *= 2) {
        const struct scene of = {.name = "copies", .ranks = ranks, .body = all_copies};
        all_end_well(&of);
    }
}

static void older_versions_transfer_by_kernels(void **state)
{
    (void)state;
    const struct scene of = {.name = "2.27",
                             .ranks = 3,
                             .setting = "NOJIT_SIM_NCCL_VERSION",
                             .value = "22703",
                             .body = all_transfers};
    all_end_well(&of);
}

/* Launch a captured graph twice, the second time on the results of the first. */
static int captured(struct rank *r)
{
    nj_graph *g = NULL;
    int fine =
        nj_graph_begin(r->s) == 0 && nj_all_to_all(r->c, r->s, r->recv, r->send, r->bytes) == 0 &&
        nj_broadcast(r->c, r->s, r->recv, r->bytes, 1) == 0 &&
        nj_all_gather(r->c, r->s, r->send, r->recv, r->bytes) == 0 && nj_graph_end(r->s, &g) == 0;
    for (int turn = 0; fine && turn < 2; turn++) {
        fine = fill(r, r->send, (size_t)r->ranks * r->bytes, turn) == 0 &&
               nj_graph_launch(g, r->s) == 0;
        /* rank 0 sent this to rank 1, which broadcast it, and all gathered it */
        for (int k = 0; fine && k < r->ranks; k++)
            fine = has(r, part(r, r->send, k), 0, r->bytes, turn);
    }
    nj_graph_destroy(g);
    nj_comm_destroy(r->c);
    return fine;
}

static void graphs_hold_calls(void **state)
{
    (void)state;
    const struct scene of = {.name = "graph", .ranks = 3, .body = captured};
    const struct scene groups = {.name = "graph of groups",
                                 .ranks = 3,
                                 .setting = "NOJIT_SIM_NCCL_VERSION",
                                 .value = "22703",
                                 .body = captured};
    all_end_well(&of);
    all_end_well(&groups);
}

/* ---- rules: each broken one is a sentence on all ranks ---- */

static int says_it(const struct rank *r, int rc)
{
    return rc != 0 && strstr(nj_context_error(r->ctx), scene->says) != NULL;
}
/* Expect the stream to fail, with the reason from the communicator; the enqueueing call may fail already, if another
 * rank has failed. */
static int fails_with_it(struct rank *r, int enqueued)
{
    if (enqueued != 0)
        return says_it(r, enqueued);
    return nj_stream_sync(r->s) == NJ_E_DEVICE && says_it(r, nj_comm_check(r->c));
}

static int another_size(struct rank *r)
{
    return fails_with_it(
        r, nj_broadcast(r->c, r->s, r->send, r->rank == 0 ? r->bytes / 2 : r->bytes, 0));
}
static int another_size_of_a_group(struct rank *r)
{
    return fails_with_it(
        r, nj_all_to_all(r->c, r->s, r->recv, r->send, r->rank == 0 ? r->bytes / 2 : r->bytes));
}
static int another_function(struct rank *r)
{
    return fails_with_it(r, r->rank == 0 ? nj_all_to_all(r->c, r->s, r->recv, r->send, r->bytes)
                                         : nj_broadcast(r->c, r->s, r->send, r->bytes, 0));
}
static int another_root(struct rank *r)
{
    return fails_with_it(r, nj_broadcast(r->c, r->s, r->send, r->bytes, r->rank));
}
static int one_too_many(struct rank *r)
{
    int rc = nj_broadcast(r->c, r->s, r->send, r->bytes, 0);
    if (r->rank == 1) {
        rc = rc ? rc : nj_stream_sync(r->s);
        nj_comm_destroy(r->c);
        return rc == 0;
    }
    rc = rc ? rc : nj_broadcast(r->c, r->s, r->send, r->bytes, 0);
    return fails_with_it(r, rc);
}
static int one_captures(struct rank *r)
{
    nj_graph *g = NULL;
    int rc = r->rank == 0 ? nj_graph_begin(r->s) : 0;
    rc = rc ? rc : nj_broadcast(r->c, r->s, r->send, r->bytes, 0);
    if (r->rank == 0)
        rc = rc || nj_graph_end(r->s, &g) || nj_graph_launch(g, r->s);
    return fails_with_it(r, rc);
}
static int at_another_place(struct rank *r)
{
    if (take_together(r, BYTES) || fill(r, r->send, (size_t)r->ranks * BYTES, 0))
        return 0;
    unsigned char *to = r->recv + (r->rank == 0 ? 0 : 16);
    return fails_with_it(r, nj_all_to_all(r->c, r->s, to, r->send, 16));
}
static int gathered_at_another_place(struct rank *r)
{
    if (take_together(r, LARGE_BYTES + 16) || fill(r, r->send, LARGE_BYTES, 0))
        return 0;
    unsigned char *to = r->recv + (r->rank == 0 ? 0 : 16);
    return fails_with_it(r, nj_all_gather(r->c, r->s, to, r->send, LARGE_BYTES));
}
static int memory_left(struct rank *r)
{
    const int rc = take_together(r, BYTES);
    nj_comm_destroy(r->c);
    return rc == 0 && strstr(nj_context_error(r->ctx), scene->says) != NULL;
}
static int cannot_take(struct rank *r)
{
    void *out = r;
    return says_it(r, nj_comm_alloc(r->c, 4096, &out)) && nj_comm_alloc(NULL, 1, &out) == NJ_E_ARG;
}
static int past_the_end(struct rank *r)
{
    return fails_with_it(r, nj_broadcast(r->c, r->s, r->rank ? r->send : r->send + 16,
                                         (size_t)r->ranks * r->bytes, 0));
}
static int over_itself(struct rank *r)
{
    return fails_with_it(r, nj_all_to_all(r->c, r->s, r->send, r->send, r->bytes));
}
static int out_of_order(struct rank *r)
{
    nj_stream *other = NULL;
    const int rc = nj_stream_create(r->ctx, &other) ||
                   nj_broadcast(r->c, other, r->send, r->bytes, 0) ||
                   nj_broadcast(r->c, r->s, r->recv, r->bytes, 0);
    return fails_with_it(r, rc);
}
/* End before the graph runs; the rank exits like the others, and the log has the sentence. */
static int ends_before_its_graph(struct rank *r)
{
    nj_graph *g = NULL;
    const int rc = nj_graph_begin(r->s) || nj_broadcast(r->c, r->s, r->send, r->bytes, 0) ||
                   nj_graph_end(r->s, &g);
    nj_comm_destroy(r->c);
    return rc == 0 && strstr(nj_context_error(r->ctx), scene->says) != NULL;
}
static int cannot_come(struct rank *r)
{
    return says_it(r, create(r)) && r->c == NULL;
}
static int of_another_number(struct rank *r)
{
    r->ranks = r->rank == 0 ? 2 : 3;
    return cannot_come(r);
}
/* ---- of the library itself, where the runtime would not go ---- */

static struct {
    int (*init)(void **comm, int ranks, struct nj_nccl_id of, int rank,
                struct nj_nccl_config *config);
    int (*cast)(const void *from, void *to, size_t count, int type, int root, void *comm,
                void *stream);
    const char *(*last)(void *comm);
} nccl;

static int begin(void **comm, int ranks)
{
    struct nj_nccl_config config = {
        .bytes = sizeof config, .magic = NJ_NCCL_CONFIG_MAGIC, .version = NJ_NCCL_CONFIG_VERSION};
    void *found[] = {load("libnccl.so.2", "ncclCommInitRankConfig"),
                     load("libnccl.so.2", "ncclBroadcast"),
                     load("libnccl.so.2", "ncclGetLastError")};
    struct nj_nccl_id of;
    memcpy(&nccl, found, sizeof nccl);
    memcpy(&of, id, sizeof of);
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    setenv("NCCL_RUNTIME_CONNECT", "0", 1);
    return nccl.init(comm, ranks, of, 0, &config);
}
static int too_early(struct rank *r)
{
    void *comm;
    (void)r;
    return begin(&comm, 1) == NJ_ncclInProgress &&
           nccl.cast(NULL, NULL, 1, NJ_ncclUint8, 0, comm, NULL) == 5 &&
           strstr(nccl.last(comm), scene->says) != NULL;
}
static int twice(struct rank *r)
{
    void *comm;
    (void)r;
    return begin(&comm, 2) == NJ_ncclInProgress && begin(&comm, 2) == 5 &&
           strstr(nccl.last(comm), scene->says) != NULL;
}

static const struct scene rules[] = {
    {.name = "another size", .ranks = 2, .body = another_size, .says = "makes a broadcast of "},
    {.name = "another size of a group",
     .ranks = 3,
     .body = another_size_of_a_group,
     .says = " of type 1, rank "},
    {.name = "another function", .ranks = 3, .body = another_function, .says = "makes a"},
    {.name = "another root", .ranks = 2, .body = another_root, .says = "root 1"},
    {.name = "one too many",
     .ranks = 2,
     .body = one_too_many,
     .says = "rank 1 has ended its communicator; rank 0 waits for it in call 2"},
    {.name = "one captures", .ranks = 2, .body = one_captures, .says = "root 0 of a graph"},
    {.name = "past the end",
     .ranks = 2,
     .body = past_the_end,
     .says = "rank 0, call 1: 8192 bytes to send are not of one allocation"},
    {.name = "at another place",
     .ranks = 2,
     .body = at_another_place,
     .says = "of window 2 of 8192 bytes, rank "},
    {.name = "gathered at another place",
     .ranks = 2,
     .body = gathered_at_another_place,
     .says = "of window 2 of 2097216 bytes, rank "},
    {.name = "memory left", .ranks = 2, .body = memory_left, .says = "memory is still registered"},
    {.name = "no memory",
     .ranks = 2,
     .setting = "NOJIT_SIM_NCCL_FAIL",
     .value = "ncclMemAlloc",
     .body = cannot_take,
     .says = "nj_comm_alloc: NCCL 2.28.3: internal error"},
    {.name = "no window",
     .ranks = 2,
     .setting = "NOJIT_SIM_NCCL_FAIL",
     .value = "ncclCommWindowRegister",
     .body = cannot_take,
     .says = "nj_comm_alloc: NCCL 2.28.3: internal error"},
    {.name = "over itself", .ranks = 2, .body = over_itself, .says = "overlap"},
    {.name = "out of order", .ranks = 2, .body = out_of_order, .says = "of another stream"},
    {.name = "ends before its graph",
     .ranks = 2,
     .body = ends_before_its_graph,
     .says = "graphs hold calls of the communicator"},
    {.name = "two versions",
     .ranks = 2,
     .setting = "NOJIT_SIM_NCCL_VERSION",
     .value = "22802",
     .last = 1,
     .before = cannot_come,
     .says = "22802"},
    {.name = "two of a rank", .ranks = 1, .before = twice, .says = "another process is rank 0"},
    {.name = "two numbers", .ranks = 2, .before = of_another_number, .says = "of 3"},
    {.name = "multicast",
     .ranks = 1,
     .setting = "NCCL_NVLS_ENABLE",
     .value = "1",
     .before = cannot_come,
     .says = "invalid usage (5): NCCL_NVLS_ENABLE"},
    {.name = "too early", .ranks = 1, .before = too_early, .says = "is not ready"},
};

static void broken_rules_are_said(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        all_end_well(&rules[i]);
}

/* ---- faults ---- */

static int two_calls(struct rank *r)
{
    const int rc = nj_broadcast(r->c, r->s, r->send, r->bytes, 0);
    return fails_with_it(r, rc ? rc : nj_broadcast(r->c, r->s, r->send, r->bytes, 0));
}

static void a_rank_that_is_gone_ends_the_others(void **state)
{
    (void)state;
    const struct scene of = {.name = "dies",
                             .ranks = 3,
                             .setting = "NOJIT_SIM_NCCL_FAULT",
                             .value = "1:2:die",
                             .body = two_calls,
                             .says = "rank 1 is gone; rank "};
    int status[RANKS_MOST];
    run_ranks(&of, status);
    assert_int_equal(status[0], 0);
    assert_int_equal(status[1], -SIGKILL);
    assert_int_equal(status[2], 0);
}

static void a_rank_that_fails_ends_the_others(void **state)
{
    (void)state;
    const struct scene later = {.name = "fails later",
                                .ranks = 3,
                                .setting = "NOJIT_SIM_NCCL_FAULT",
                                .value = "1:2:error",
                                .body = two_calls,
                                .says = "rank 1, call 2: fails as it was told"};
    const struct scene at_once = {.name = "fails at once",
                                  .ranks = 3,
                                  .setting = "NOJIT_SIM_NCCL_FAULT",
                                  .value = "1:0:error",
                                  .before = cannot_come,
                                  .says = "rank 1, call 0: fails as it was told"};
    all_end_well(&later);
    all_end_well(&at_once);
}

static int hangs(struct rank *r)
{
    setenv("NOJIT_SIM_NCCL_WAIT", "1", 1);
    return two_calls(r);
}
static void a_rank_that_hangs_is_named(void **state)
{
    (void)state;
    const struct scene of = {.name = "hangs",
                             .ranks = 3,
                             .setting = "NOJIT_SIM_NCCL_FAULT",
                             .value = "1:2:hang",
                             .body = hangs,
                             .says = " has not come to call "};
    all_end_well(&of);
}

static int never_comes(struct rank *r)
{
    if (r->rank == 1)
        return 1;
    hurry = 1;
    return cannot_come(r);
}
static void ranks_are_not_waited_for_without_end(void **state)
{
    (void)state;
    const struct scene of = {.name = "never comes",
                             .ranks = 2,
                             .setting = "NOJIT_SIM_NCCL_WAIT",
                             .value = "1000000000",
                             .before = never_comes,
                             .says = "nj_comm_create: rank 0 of 2 waited 120 seconds"};
    all_end_well(&of);
}

static int one_of_all_fails(struct rank *r)
{
    if (strstr(scene->says, "2.27.3"))
        setenv("NOJIT_SIM_NCCL_VERSION", "22703", 1);
    const int begun = nj_comm_id(r->ctx, id) || create(r);
    return says_it(r, begun || !(take(r, BYTES) == 0 && exchange(r) && gather(r, r->send, 1) &&
                                 cast(r, 0, 2)));
}
static void what_fails_is_said(void **state)
{
    static const char *const cases[][3] = {
        {"NOJIT_NCCL", "/none", "NCCL 2.27 or newer cannot be opened (/none: "},
        {"NOJIT_SIM_NCCL_VERSION", "22602",
         "is version 2.26.2, not 2.27 or newer); install it (pip package nvidia-nccl-cu13)"},
        {"NOJIT_SIM_NCCL_FAIL", "ncclGetVersion", "is version 0.0.0, not 2.27 or newer"},
        {"NOJIT_SIM_NCCL_FAIL", "ncclGetUniqueId", "nj_comm_id: NCCL 2.28.3: internal error (3)"},
        {"NOJIT_SIM_NCCL_FAIL", "ncclCommInitRankConfig", "nj_comm_create: NCCL 2.28.3: internal"},
        {"NOJIT_SIM_NCCL_FAIL", "ncclCommGetAsyncError", "nj_comm_create: NCCL 2.28.3: internal"},
        {"NOJIT_SIM_NCCL_FAIL", "ncclGroupStart", "nj_all_to_all: NCCL 2.27.3: internal error"},
        {"NOJIT_SIM_NCCL_FAIL", "ncclSend", "nj_all_to_all: NCCL 2.27.3: internal error (3)"},
        {"NOJIT_SIM_NCCL_FAIL", "ncclRecv", "nj_all_to_all: NCCL 2.27.3: internal error (3)"},
        {"NOJIT_SIM_NCCL_FAIL", "ncclGroupEnd", "nj_all_to_all: NCCL 2.27.3: internal error (3)"},
        {"NOJIT_SIM_NCCL_FAIL", "ncclAlltoAll", "nj_all_to_all: NCCL 2.28.3: internal error (3)"},
        {"NOJIT_SIM_NCCL_FAIL", "ncclAllGather", "nj_all_gather: NCCL 2.28.3: internal error (3)"},
        {"NOJIT_SIM_NCCL_FAIL", "ncclBroadcast", "nj_broadcast: NCCL 2.28.3: internal error (3)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct scene of = {.name = cases[i][1],
                                 .ranks = 1,
                                 .setting = cases[i][0],
                                 .value = cases[i][1],
                                 .before = one_of_all_fails,
                                 .says = cases[i][2]};
        all_end_well(&of);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bytes_arrive_in_the_order_of_ranks, afresh),
        cmocka_unit_test_setup(copy_engines_transfer_what_is_allocated_together, afresh),
        cmocka_unit_test_setup(older_versions_transfer_by_kernels, afresh),
        cmocka_unit_test_setup(graphs_hold_calls, afresh),
        cmocka_unit_test_setup(broken_rules_are_said, afresh),
        cmocka_unit_test_setup(a_rank_that_is_gone_ends_the_others, afresh),
        cmocka_unit_test_setup(a_rank_that_fails_ends_the_others, afresh),
        cmocka_unit_test_setup(a_rank_that_hangs_is_named, afresh),
        cmocka_unit_test_setup(ranks_are_not_waited_for_without_end, afresh),
        cmocka_unit_test_setup(what_fails_is_said, afresh),
    };
    return cmocka_run_group_tests(tests, begin_all, scratch_end);
}
