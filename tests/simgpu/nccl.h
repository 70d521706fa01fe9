/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl.h: what the files of the simulated NCCL share.
 *
 *   nccl.c        its functions: what one rank may call, and when
 *   nccl_meet.c   ranks meet, wait for each other, and end together
 *   nccl_call.c   one call: whether all ranks make the same, and its bytes
 *   nccl_memory.c memory that ranks register with each other
 */
#ifndef NOJIT_SIM_NCCL_H
#define NOJIT_SIM_NCCL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../../runtime/cuda/api.h"
#include "hook.h"

enum {
    NCCL_CUDA_ERROR = 1,
    NCCL_INTERNAL_ERROR = 3,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6,
    NCCL_IN_PROGRESS = 7
};
enum { NCCL_RANKS_MOST = 16, NCCL_OPS_MOST = 2 * NCCL_RANKS_MOST, NCCL_SAY_BYTES = 400 };
/* The bytes of the file, after struct nccl_group, for the data that ranks send. The file is sparse. */
static const uint64_t NCCL_DATA_BYTES = (uint64_t)1 << 36;

enum nccl_kind { NCCL_GROUP, NCCL_ALL_GATHER, NCCL_BROADCAST };
struct nccl_op { /* an operation of a group */
    int sends, peer, type;
    uint64_t count, address;
};
struct nccl_comm;
/* The place of an address in the memory that its rank has registered: the window, counted from 1, its bytes, and the
 * offset in it; window 0: none. */
struct nccl_at {
    uint64_t window, bytes, offset;
};
/* The work of a stream, and what the other ranks see of it. */
struct nccl_call {
    struct nccl_comm *comm; /* first: sim_held_fn compares it */
    int kind, type, root, captured, ops;
    uint64_t count, from, to, number; /* number among enqueued calls, from 1; in a graph 0 */
    struct nccl_op op[NCCL_OPS_MOST];
    struct nccl_at to_at; /* destination of copies by copy engines; window 0: others */
};

enum nccl_state { NCCL_ABSENT, NCCL_HERE, NCCL_ENDED };
struct nccl_place { /* the place of a rank */
    _Atomic int state;
    int version, ranks;
    _Atomic uint64_t passed; /* barriers: two for each call */
    struct nccl_call call;
};
/* Shared by all ranks, in a file, of which each locks a byte as long as it lives. */
struct nccl_group {
    _Atomic int joined, faulty; /* faulty: 1 while the sentence is written, then 2 */
    char fault[NCCL_SAY_BYTES]; /* the first one */
    struct nccl_place place[NCCL_RANKS_MOST];
};

struct nccl_window;
struct nccl_comm {
    const struct sim_hook *hook;
    struct nccl_group *group;
    int fd, rank, ranks, ready, ended, connected;
    int copies;                  /* by copy engines, from and to windows */
    struct nccl_window *windows; /* the last one first */
    char path[sizeof(struct nj_nccl_id)];
    uint64_t calls, enqueued, last_run, registered;
    long since; /* seconds: when it came */
};

int nccl_version(void);
/* The driver's, once a context is current, or NULL. */
const struct sim_hook *nccl_hook(void);
#define NCCL_EXPORT __attribute__((visibility("default")))
/* A function of the library: told by its name to fail, or its body. */
#define NCCL_CALL(name, params, args)                                                              \
    NCCL_EXPORT int name params;                                                                   \
    static int name##_body params;                                                                 \
    int name params                                                                                \
    {                                                                                              \
        const char *told = getenv("NOJIT_SIM_NCCL_FAIL");                                          \
        if (told != NULL && strcmp(told, #name) == 0)                                              \
            return NCCL_INTERNAL_ERROR;                                                            \
        return name##_body args;                                                                   \
    }                                                                                              \
    static int name##_body params

extern char nccl_last_error[NCCL_SAY_BYTES];
/* Sets what ncclGetLastError says, and the log; returns result. */
int nccl_say(const struct sim_hook *hook, int result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, for all ranks: NCCL_REMOTE_ERROR. */
int nccl_fault(struct nccl_comm *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Return whether any rank reported an error: then ncclGetLastError gives it. */
int nccl_is_faulty(struct nccl_comm *c);

/* The n-th call of this rank (0: it comes to the group) is told to fail: to die, to hang, or an error. */
int nccl_told(struct nccl_comm *c, uint64_t call);

/* Sleep in each call for as long as this rank is told to be late. */
void nccl_be_late(const struct nccl_comm *c);

int nccl_join(struct nccl_comm *c, int version);
int nccl_joined(struct nccl_comm *c); /* NCCL_IN_PROGRESS, 0, or an error */
int nccl_leave(struct nccl_comm *c);  /* the same */
void nccl_close(struct nccl_comm *c);
/* Until every rank has passed as many; 0, or a fault. */
int nccl_wait(struct nccl_comm *c, uint64_t passed, const char *what);

/* Registrations that have begun are done: what NCCL does while it is asked whether it is ready. */
void nccl_windows_settle(struct nccl_comm *c);
int nccl_windows_pending(const struct nccl_comm *c);
struct nccl_at nccl_find(const struct nccl_comm *c, uint64_t address);

sim_work_fn nccl_run;
uint64_t nccl_bytes(int type, uint64_t count); /* 0: not a type */

#endif
