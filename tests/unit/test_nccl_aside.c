/* SPDX-License-Identifier: Apache-2.0
 *
 * test_nccl_aside.c: transfers of the CUDA backend beside other work of their stream.
 */
#include "nccl_ranks.h"

/* Run the ranks in every order in which the simulation may execute streams. */
static void end_well_in_any_order(const char *name, rank_fn *body)
{
    static const char *const eager[] = {"0", "1", "2"};
    for (size_t i = 0; i < sizeof eager / sizeof *eager; i++) {
        const struct scene of = {.name = name,
                                 .ranks = 3,
                                 .setting = "NOJIT_SIM_EAGER",
                                 .value = eager[i],
                                 .body = body};
        all_end_well(&of);
    }
}

static int all_gathered(struct rank *r, int turn)
{
    int fine = 1;
    for (int k = 0; fine && k < r->ranks; k++)
        fine = has(r, part(r, r->recv, k), k, 0, turn);
    return fine;
}

/* Gather aside; the data to send exists only when the stream reaches it. The result is then used by the next call,
 * which joins first; then, after another gather, a broadcast sends what rank 1 got from the last rank. */
static int gather_aside(struct rank *r)
{
    unsigned char *sent = part(r, r->recv, r->rank == 1 ? r->ranks - 1 : 0);
    nj_stream *aside = NULL;
    int fine = fill(r, r->send, r->bytes, 0) == 0 && nj_comm_join(r->c, r->s) == 0 &&
               nj_all_gather_aside(r->c, r->s, r->recv, r->send, r->bytes) == 0 &&
               nj_comm_join(r->c, r->s) == 0 && all_gathered(r, 0);
    fine = fine && fill(r, r->send, r->bytes, 1) == 0 &&
           nj_all_gather_aside(r->c, r->s, r->recv, r->send, r->bytes) == 0 &&
           nj_broadcast(r->c, r->s, r->send, r->bytes, 1) == 0 && all_gathered(r, 1) &&
           fill(r, r->send, r->bytes, 2) == 0 &&
           nj_all_gather_aside(r->c, r->s, r->recv, r->send, r->bytes) == 0 &&
           nj_comm_aside(r->c, r->s, &aside) == 0 &&
           nj_broadcast(r->c, aside, sent, r->bytes, 1) == 0 && nj_comm_join(r->c, r->s) == 0;
    fine = fine && has(r, part(r, r->recv, 0), r->rank == 1 ? 0 : r->ranks - 1, 0, 2);
    nj_comm_destroy(r->c);
    return fine;
}

static void a_gather_aside_is_in_order(void **state)
{
    (void)state;
    end_well_in_any_order("aside", gather_aside);
}

/* Exchange aside; the data to send exists only when the stream reaches it. Its place is then written aside, and read
 * when the stream has joined, or by the next call, which joins first. */
static int exchange_aside(struct rank *r)
{
    nj_stream *aside = NULL;
    const size_t all = (size_t)r->ranks * r->bytes;
    int fine = fill(r, r->recv, all, 9) == 0;
    for (int turn = 0; fine && turn < 2; turn++) {
        fine = fill(r, r->send, all, turn) == 0 && nj_comm_aside(r->c, r->s, &aside) == 0 &&
               aside != r->s && nj_all_to_all(r->c, aside, r->recv, r->send, r->bytes) == 0 &&
               nj_copy(aside, r->send, r->recv, all) == 0;
        fine = fine && (turn == 0 ? nj_comm_join(r->c, r->s)
                                  : nj_broadcast(r->c, r->s, r->recv, 16, 0)) == 0;
        for (int k = 0; fine && k < r->ranks; k++)
            fine = has(r, part(r, r->send, k), k, (size_t)r->rank * r->bytes, turn);
    }
    nj_comm_destroy(r->c);
    return fine;
}

static void an_exchange_aside_is_in_order(void **state)
{
    (void)state;
    end_well_in_any_order("exchange aside", exchange_aside);
}

/* Capture a graph: the stream aside would become part of it, and could not be joined outside. */
static int aside_in_a_graph(struct rank *r)
{
    nj_stream *aside = NULL;
    nj_graph *g = NULL;
    int fine = nj_graph_begin(r->s) == 0 && nj_comm_aside(r->c, r->s, &aside) == NJ_E_ARG &&
               nj_all_gather_aside(r->c, r->s, r->recv, r->send, r->bytes) == NJ_E_ARG &&
               strstr(nj_context_error(r->ctx), "while a graph is captured") &&
               nj_graph_end(r->s, &g) == 0;
    nj_graph_destroy(g);
    fine = fine && nj_comm_aside(r->c, r->s, &aside) == 0 && exchange(r);
    nj_comm_destroy(r->c);
    return fine;
}

static void nothing_goes_aside_in_a_graph(void **state)
{
    (void)state;
    const struct scene of = {.name = "aside in a graph", .ranks = 2, .body = aside_in_a_graph};
    all_end_well(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_gather_aside_is_in_order, afresh),
        cmocka_unit_test_setup(an_exchange_aside_is_in_order, afresh),
        cmocka_unit_test_setup(nothing_goes_aside_in_a_graph, afresh),
    };
    return cmocka_run_group_tests(tests, begin_all, scratch_end);
}
