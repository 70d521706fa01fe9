/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl_ranks.h: ranks that are processes, on simulated GPUs with a simulated NCCL, and the bytes that they send each
 * other. A rank prints the faults that it finds, and exits with WRONG.
 */
#ifndef NOJIT_TESTS_NCCL_RANKS_H
#define NOJIT_TESTS_NCCL_RANKS_H

#include "cuda/api.h"
#include "cuda_sim.h"

#include <sys/wait.h>

enum { RANKS_MOST = 8, WRONG = 100, BYTES = 4096 };
/* Time after which a hanging rank is killed. Eight ranks take a minute under the thread sanitizer on a busy machine. */
enum { LIMIT_SECONDS = 600 };

static unsigned char id[NJ_COMM_ID_BYTES];
struct rank {
    nj_context *ctx;
    nj_stream *s;
    nj_comm *c;
    int rank, ranks;
    /* buffers with that many bytes per rank; the last is on the host */
    unsigned char *send, *recv, *host;
    size_t bytes;
};
typedef int rank_fn(struct rank *r); /* returns 1 if all is right */
struct scene {
    const char *name;
    int ranks;
    /* variable of the environment, for the last rank only if `last` */
    const char *setting, *value;
    int last;
    rank_fn *body;    /* runs with a communicator */
    rank_fn *before;  /* runs instead of body, without a communicator */
    const char *says; /* sentence that fails_with() expects */
};
static const struct scene *scene;

/* ---- ranks ---- */

static inline int open_rank(struct rank *r)
{
    return nj_context_create(&r->ctx, &cuda) || nj_stream_create(r->ctx, &r->s);
}

static inline int take(struct rank *r, size_t bytes)
{
    const size_t all = (size_t)r->ranks * bytes;
    r->bytes = bytes;
    r->host = malloc(all);
    return r->host == NULL || nj_alloc(r->ctx, NJ_MEM_DEVICE, all, (void **)&r->send) ||
           nj_alloc(r->ctx, NJ_MEM_DEVICE, all, (void **)&r->recv);
}

static inline void give(struct rank *r)
{
    nj_free(r->ctx, NJ_MEM_DEVICE, r->send);
    nj_free(r->ctx, NJ_MEM_DEVICE, r->recv);
    free(r->host);
}

static inline int create(struct rank *r)
{
    return nj_comm_create(r->ctx, id, r->rank, r->ranks, &r->c);
}

/* Print the error of the last call unless `fine`. Return `fine`. */
static inline int unless(const struct rank *r, int fine)
{
    if (!fine)
        fprintf(stderr, "%s: rank %d: %s\n", scene->name, r->rank, nj_context_error(r->ctx));
    return fine;
}

static inline int run_rank(int rank)
{
    struct rank r = {.rank = rank, .ranks = scene->ranks};
    alarm(LIMIT_SECONDS);
    if (scene->setting && (!scene->last || rank == scene->ranks - 1))
        setenv(scene->setting, scene->value, 1);
    if (!unless(&r, open_rank(&r) == 0))
        return WRONG;
    if (scene->before)
        return unless(&r, scene->before(&r)) ? 0 : WRONG;
    if (!unless(&r, create(&r) == 0 && take(&r, BYTES) == 0))
        return WRONG;
    return unless(&r, scene->body(&r)) ? 0 : WRONG;
}

/* Make the identifier, as rank 0 calls nj_comm_id(); the environment that this sets must not be set already. */
static inline void make_id(void)
{
    nj_context *ctx = open_context(&cuda);
    if (nj_comm_id(ctx, id))
        fail_msg("%s", nj_context_error(ctx));
    assert_int_equal(nj_context_device(ctx)->comm_version, 22803);
    assert_non_null(strstr(nj_context_device(ctx)->comm_library, "/sim/libnccl.so.2"));
    nj_context_destroy(ctx);
    unsetenv("NCCL_NVLS_ENABLE");
    unsetenv("NCCL_RUNTIME_CONNECT");
}

/* Run the ranks and store the exit status of each; a signal counts as its negative number. */
static inline void run_ranks(const struct scene *of, int *status)
{
    pid_t pid[RANKS_MOST];
    scene = of;
    make_id();
    for (int rank = 0; rank < of->ranks; rank++) {
        pid[rank] = fork();
        assert_true(pid[rank] >= 0);
        if (pid[rank] == 0)
            _exit(run_rank(rank));
    }
    for (int rank = 0; rank < of->ranks; rank++) {
        int ended;
        assert_int_equal(waitpid(pid[rank], &ended, 0), pid[rank]);
        status[rank] = WIFEXITED(ended) ? WEXITSTATUS(ended) : -WTERMSIG(ended);
    }
}

static inline void all_end_well(const struct scene *of)
{
    int status[RANKS_MOST];
    run_ranks(of, status);
    for (int rank = 0; rank < of->ranks; rank++)
        if (status[rank] != 0)
            fail_msg("%s: rank %d of %d ended with %d", of->name, rank, of->ranks, status[rank]);
}

/* ---- bytes ---- */

static inline unsigned char byte_at(int rank, size_t at, int turn)
{
    return (unsigned char)((size_t)rank * 37 + at * 11 + at / 257 + (size_t)turn * 91);
}

static inline int fill(struct rank *r, unsigned char *to, size_t bytes, int turn)
{
    for (size_t i = 0; i < bytes; i++)
        r->host[i] = byte_at(r->rank, i, turn);
    return nj_copy(r->s, to, r->host, bytes);
}

/* Return whether `bytes` bytes on the device equal those of the rank from `at` on. */
static inline int has(struct rank *r, const unsigned char *from, int rank, size_t at, int turn)
{
    if (nj_copy(r->s, r->host, from, r->bytes) || nj_stream_sync(r->s))
        return 0;
    for (size_t i = 0; i < r->bytes; i++)
        if (r->host[i] != byte_at(rank, at + i, turn))
            return 0;
    return 1;
}

static inline unsigned char *part(const struct rank *r, unsigned char *of, int rank)
{
    return of + (size_t)rank * r->bytes;
}

static inline int exchange(struct rank *r)
{
    int fine = fill(r, r->send, (size_t)r->ranks * r->bytes, 0) == 0 &&
               nj_all_to_all(r->c, r->s, r->recv, r->send, r->bytes) == 0;
    for (int k = 0; fine && k < r->ranks; k++)
        fine = has(r, part(r, r->recv, k), k, (size_t)r->rank * r->bytes, 0);
    return fine;
}

static inline int begin_all(void **state)
{
    const int rc = scratch_begin(state);
    setenv("TMPDIR", scratch, 1); /* the folder in which ranks meet */
    return rc ? rc : load_libraries(state);
}

#endif
