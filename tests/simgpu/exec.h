/* SPDX-License-Identifier: Apache-2.0
 *
 * exec.h: execution. A block runs on one thread of the host, its warps one after the other, each
 * until it has to wait. A warp is a set of groups of lanes, each with a place in the code; the group
 * that is furthest back runs, and groups that meet become one. The blocks of a cluster are one block
 * here, with a rank for each of them.
 *
 * Not bit for bit as a GPU: NaNs have the host's bits, not 7fffffff; the approximations (ex2, lg2,
 * sin, cos, rsqrt, div.approx) are those of libm, closer than a GPU's; mma adds products to a float
 * in the order of k, each sum rounded, where tensor cores align a few products and cut their tails.
 */
#ifndef NOJIT_SIM_EXEC_H
#define NOJIT_SIM_EXEC_H

#include <stdint.h>

#include "ptx.h"

enum { WARPS_MAX = 32, NAMED_MAX = 16, MBARRIERS_MAX = 32, WARPGROUP = 4 };
/* The most block numbers in struct warp's writer: more blocks than that share numbers. */
enum { WRITER_BLOCKS = (1 << 30) - 1 };
/* Jumps of one warp after which a kernel is taken to hang. */
enum { JUMPS_MAX = 1 << 24 };

struct launch {
    const struct sim_entry *entry;
    uint32_t grid[3], block[3];
    uint32_t threads, warps, shared_bytes; /* sizes of a block */
    uint32_t cluster, cluster_warps;       /* blocks of a cluster, and their warps */
    uint32_t shared_stride;                /* from block to block of a cluster */
    const unsigned char *params;
    const struct sim_memory *memory;
    struct sim_fault *fault;     /* the first, kept by sim_fault_at() */
    int faulted;                 /* atomic */
    uint64_t next_block, blocks; /* next_block: atomic */
    uint32_t number;             /* counts launches */
    bool several;                /* cores run blocks of it at the same time */
};

typedef void sim_stuck(struct warp *warp, const struct insn *insn, int lane);

enum warp_state { WARP_READY, WARP_AT_BARRIER, WARP_WAITS, WARP_DONE };

/* The reason why a group waits at its instruction: lanes of other groups, or another warp or copy. */
enum group_waits { WAITS_NOT, WAITS_FOR_LANES, WAITS_FOR_OTHERS };

struct group {
    uint32_t pc, mask;
    enum group_waits waits;
};

/* Who accesses shared memory: warps, TMA copies that arrive at one mbarrier, and the
 * products (wgmma) of a warpgroup. */
enum {
    ACTOR_COPIES = WARPS_MAX,
    ACTOR_PRODUCTS = ACTOR_COPIES + MBARRIERS_MAX,
    ACTORS = ACTOR_PRODUCTS + WARPS_MAX / WARPGROUP
};

/* The accesses that come before: of each actor those at a time below this; of products, their groups up to
 * this one. */
struct order {
    uint32_t before[ACTORS];
};

/* Words that a thread wrote since its warp last let others go on: a fence.proxy.async is due. */
struct unfenced {
    uint32_t word, words, lane;
    bool init; /* an mbarrier is initialised */
};

/* Bytes that cp.async has fetched and that are not in shared memory yet. */
struct transfer {
    uint32_t to, bytes, lane, batch;
    unsigned char data[16];
};

/* A warp's last arrival at an mbarrier of another block of the cluster. */
struct reach {
    const struct insn *insn;
    uint32_t time, lane;
};

struct warp {
    uintptr_t base[2]; /* addresses of registers, and of constants less one: see sim_slot() */
    uint32_t pc, mask; /* state of the group that runs */
    uint32_t leave_at; /* the group looks up from its code once pc is not below this */
    bool full;         /* mask is all lanes */
    enum group_waits waits;
    _Alignas(64) uint32_t lanes[LANES]; /* mask, a word for each lane: all bits or none */
    struct group groups[LANES];         /* groups that do not run */
    uint32_t group_count;
    uint32_t exists, live; /* lanes that were launched; that have not ended */
    enum warp_state state;
    const struct insn *barrier; /* WARP_AT_BARRIER, WARP_WAITS */
    uint32_t seen;              /* WARP_WAITS: the block's events when its first group began to */
    sim_stuck *stuck;           /* says why; NULL: no group waits for others */
    int stuck_lane;
    uint32_t index, first_thread, rank; /* index and thread: in the cluster */
    uint32_t shared_at;                 /* the beginning of its block's shared memory */
    size_t read_at;                     /* in the block's read[] */
    struct order order;                 /* its own entry: time of the last bar.warp.sync */
    struct unfenced *unfenced;
    uint32_t unfenced_count, unfenced_room;
    uint32_t product_groups;         /* wgmma.commit_group */
    uint32_t tried;                  /* lanes whose last mbarrier.try_wait came too early */
    uint32_t at_cluster;             /* lanes that have arrived at the cluster's barrier */
    uint32_t unawaited;              /* warps whose last arrival there no wait has followed */
    uint32_t resized;                /* setmaxnreg */
    struct reach reached[WARPS_MAX]; /* by rank; time 0: never */
    struct transfer *transfers;
    uint32_t transfer_count, transfer_room;
    uint32_t batches[LANES]; /* cp.async.commit_group, by lane */
    uint64_t instructions;
    uint32_t left; /* jumps until it is taken to hang */
    const struct sim_allocation *recent;
    uint64_t writer; /* the mark of its writes to global memory: see exec_global.c */
    struct block *block;
};

/* bar.sync of one number. */
struct named {
    uint32_t arrived, expected; /* threads */
    uint32_t sum;               /* the sum of bar.red */
};

struct mbarrier {
    uint32_t at;    /* byte of shared memory of the cluster */
    uint32_t count; /* arrivals of a phase */
    uint32_t phase, missing;
    int64_t bytes; /* that copies still have to bring in this phase */
    struct order running, done;
};

/* barrier.cluster. */
struct cluster_barrier {
    struct order running, done;
};

/* A TMA copy under way to one block. */
struct copy {
    uint32_t to, bytes, mbarrier;
};

struct block {
    struct launch *launch;
    uint32_t index[3]; /* index of the first block of a cluster */
    unsigned char *shared;
    uint32_t *wrote, *read;  /* a stamp for each word of shared memory: see exec_record.c */
    uint32_t *products_read; /* words of each warpgroup: the group of products that read it last */
    uint32_t words;          /* words of a cluster's shared memory */
    bool plain;              /* the entry needs nothing */
    uint32_t readers; /* for each word read[] has a stamp of all, or of each warp of a block */
    uint32_t now, barrier_at, begin_at;
    uint32_t events; /* counts what a warp can have waited for */
    bool stop;       /* after a fault */
    struct warp *warps;
    struct named (*named)[NAMED_MAX]; /* named barriers of each block */
    struct mbarrier *mbarriers;
    uint32_t mbarrier_count;
    struct cluster_barrier at_cluster;
    struct copy *copies;
    uint32_t copy_count, copy_room;
};

#define INLINE static inline __attribute__((always_inline))

/* The value of a place, for all lanes. */
static inline void *sim_slot(const struct warp *warp, sim_place place)
{
    return (void *)(warp->base[place & 1] + place);
}

/* A loop over lanes that touches each lane's own values only. */
#define EACH_LANE _Pragma("GCC ivdep") for (int lane = 0; lane < LANES; lane++)

/* An instruction that makes one result D of up to three sources X x, Y y, Z z; all lanes at once,
 * and inactive ones keep what they have. SIM_ROW is its row of the table. */
#define SIM_FUNCTION(name, text, operands, D, X, Y, Z, value)                                      \
    static void name(struct warp *warp, const struct insn *insn)                                   \
    {                                                                                              \
        D *result = sim_slot(warp, insn->o[0]);                                                    \
        const X *xs = sim_slot(warp, insn->o[1]);                                                  \
        const Y *ys = sim_slot(warp, insn->o[2]);                                                  \
        const Z *zs = sim_slot(warp, insn->o[3]);                                                  \
        if (warp->full) {                                                                          \
            EACH_LANE                                                                              \
            {                                                                                      \
                const X x = xs[lane];                                                              \
                const Y y = ys[lane];                                                              \
                const Z z = zs[lane];                                                              \
                (void)x, (void)y, (void)z;                                                         \
                result[lane] = (D)(value);                                                         \
            }                                                                                      \
        } else {                                                                                   \
            EACH_LANE                                                                              \
            {                                                                                      \
                const X x = xs[lane];                                                              \
                const Y y = ys[lane];                                                              \
                const Z z = zs[lane];                                                              \
                (void)x, (void)y, (void)z;                                                         \
                const D made = (D)(value);                                                         \
                result[lane] = warp->lanes[lane] ? made : result[lane];                            \
            }                                                                                      \
        }                                                                                          \
    }
#define SIM_ROW(name, text, operands, D, X, Y, Z, value) {text, operands, name, GUARD_LANES},
#define SIM_TABLE(table, rows)                                                                     \
    const struct sim_opcode_table table = {rows, sizeof(rows) / sizeof *(rows)}

/* Keeps the launch's first fault, as a sentence with kernel, line, block and thread, and stops. */
void sim_fault_at(struct warp *warp, const struct insn *insn, int lane, enum sim_fault_kind kind,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Makes room for one more in an array of so many. False after a fault: no memory. */
bool sim_grow(struct warp *warp, const struct insn *insn, int lane, void *array, uint32_t count,
              uint32_t *room, size_t bytes);

void sim_set_mask(struct warp *warp, uint32_t mask);
/* Execute an instruction of GUARD_LANES in the lanes that its guard @p selects. */
void sim_run_guarded(struct warp *warp, const struct insn *insn);
/* Return whether all of those lanes that live are here; if not, the group waits for them. */
bool sim_gather(struct warp *warp, uint32_t lanes);
/* The same for a collective instruction: all lanes of the warp must be there. False after a fault,
 * too. */
bool sim_is_whole(struct warp *warp, const struct insn *insn);
/* The active lanes do this instruction again once something has happened in the block. If nothing can,
 * stuck says what is missing. */
void sim_wait(struct warp *warp, const struct insn *insn, sim_stuck *stuck);
void sim_run_block(struct block *block);

/* The first of the four warps of a warpgroup. */
static inline struct warp *sim_warpgroup(const struct warp *warp)
{
    return &warp->block->warps[warp->index / WARPGROUP * WARPGROUP];
}

/* Check at the end that the warps of a warpgroup have done the same collective instructions, or a fault. */
void sim_products_end(struct block *block);
/* Before a block begins: nothing waits, and no mbarrier is there. */
void sim_cluster_start(struct block *block);
/* Check at the end that no block has ended before others reached it; otherwise a fault. */
void sim_cluster_end(struct block *block);
/* TMA copies that are under way arrive. */
void sim_copies_arrive(struct block *block);

void sim_order_join(struct order *order, const struct order *other);
/* Lets go on who acquires `to`: what the warp did, and what came before that, comes before them. */
void sim_order_release(struct warp *warp, struct order *to);
/* A new point in time. */
uint32_t sim_tick(struct block *block);

/* Shared memory. The byte of the cluster's shared memory of lane's access, in *at: its bytes must lie
 * in the block's, aligned to their count. Returns false after a fault. */
bool sim_shared_at(struct warp *warp, const struct insn *insn, int lane, uint64_t address,
                   uint32_t bytes, uint32_t *at);
enum sim_shared_use {
    USE_PLAIN,
    USE_ATOMIC,
    USE_IN_FLIGHT, /* a copy that is not waited for */
    USE_FENCED,    /* a plain one that wgmma may read, after fence.proxy.async */
    /* These two are kept as USE_PLAIN. */
    USE_ARRIVED, /* the end of a cp.async */
    USE_INIT     /* mbarrier.init, for which fence.mbarrier_init does too */
};
/* Return false after a fault: nothing wrote the word in this block, or what writes it is under way. */
bool sim_shared_is_written(struct warp *warp, const struct insn *insn, int lane, uint32_t word);
/* Notes accesses of words, and finds races and reads of what was not written. */
bool sim_shared_read(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                     uint32_t bytes);
bool sim_shared_write(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                      uint32_t bytes, enum sim_shared_use use);
/* A read by which a word reaches several lanes, as ldmatrix does. */
bool sim_shared_read_together(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                              uint32_t bytes);
/* A use of an mbarrier, which must have been written before. */
bool sim_shared_touch(struct warp *warp, const struct insn *insn, int lane, uint32_t at);
/* The same by TMA, which needs a fence behind the write. */
bool sim_shared_is_fenced(struct warp *warp, const struct insn *insn, int lane, uint32_t at);
/* TMA: words that it begins to write for an mbarrier, and that have arrived. */
bool sim_shared_copy(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                     uint32_t bytes, uint32_t mbarrier);
void sim_shared_copied(struct block *block, uint32_t at, uint32_t bytes);
/* Words that a warp's part of a product reads until its group is waited for. */
bool sim_shared_product(struct warp *warp, const struct insn *insn, uint32_t at, uint32_t bytes);
/* fence.proxy.async of the active lanes; fence.mbarrier_init, which is for mbarriers alone; and their
 * coming to a barrier, from where on others may go on and it is too late for that. */
void sim_shared_fence(struct warp *warp);
void sim_shared_fence_inits(struct warp *warp);
void sim_shared_let_go(struct warp *warp);
/* A barrier of all warps. */
void sim_shared_barrier(struct block *block);
/* A point in time that orders what came before it in this warp. */
void sim_shared_warp_barrier(struct warp *warp);

/* Reads bytes of global memory for a lane, at a multiple of align. Returns false after a fault. */
bool sim_global_read(struct warp *warp, const struct insn *insn, int lane, uint64_t address,
                     uint32_t bytes, uint32_t align, void *to);

#endif
