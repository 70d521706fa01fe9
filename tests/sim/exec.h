/* SPDX-License-Identifier: Apache-2.0
 *
 * exec.h: execution. A block runs on one thread of the host, its warps one after the other from
 * barrier to barrier. A warp is a set of groups of lanes, each with a place in the code; the group
 * that is furthest back runs, and groups that meet become one.
 *
 * Not bit for bit as a GPU: NaNs have the host's bits, not 7fffffff; the approximations (ex2, lg2,
 * sin, cos, rsqrt, div.approx) are those of libm, closer than a GPU's; mma adds products to a float
 * in the order of k, each sum rounded, where tensor cores align a few products and cut their tails.
 */
#ifndef NOJIT_SIM_EXEC_H
#define NOJIT_SIM_EXEC_H

#include <stdint.h>

#include "ptx.h"

enum { WARPS_MAX = 32 };
/* Of a block's number in struct block's writer: more blocks than that share numbers. */
enum { WRITER_BLOCKS = (1 << 30) - 1 };
/* Jumps of one warp after which a kernel is taken to hang. */
enum { JUMPS_MAX = 1 << 24 };

struct launch {
    const struct sim_entry *entry;
    uint32_t grid[3], block[3];
    uint32_t threads, warps, shared_bytes; /* of a block */
    const unsigned char *params;
    const struct sim_memory *memory;
    struct sim_fault *fault;     /* the first, kept by sim_fault_at() */
    int faulted;                 /* atomic */
    uint64_t next_block, blocks; /* next_block: atomic */
    uint32_t number;             /* counts launches */
};

enum warp_state { WARP_READY, WARP_AT_BARRIER, WARP_DONE };

struct group {
    uint32_t pc, mask;
    bool waits; /* at an instruction that needs lanes of other groups */
};

/* Bytes that cp.async has fetched and that are not in shared memory yet. */
struct transfer {
    uint32_t to, bytes, lane, batch;
    unsigned char data[16];
};

struct warp {
    uintptr_t base[2]; /* of registers; of constants, less one: see sim_slot() */
    uint32_t pc, mask; /* of the group that runs */
    uint32_t leave_at; /* the group looks up from its code once pc is not below this */
    bool full, waits;  /* mask is all lanes; as in struct group */
    _Alignas(64) uint32_t lanes[LANES]; /* mask, a word for each lane: all bits or none */
    struct group groups[LANES];         /* those that do not run */
    uint32_t group_count;
    uint32_t exists, live; /* lanes that were launched; that have not ended */
    enum warp_state state;
    const struct insn *barrier; /* WARP_AT_BARRIER */
    uint32_t first_thread;
    uint32_t synced_at; /* time of the last bar.warp.sync */
    struct transfer *transfers;
    uint32_t transfer_count, transfer_room;
    uint32_t batches[LANES]; /* cp.async.commit_group, by lane */
    uint64_t instructions;
    uint32_t left; /* jumps until it is taken to hang */
    const struct sim_allocation *recent;
    struct block *block;
};

struct block {
    struct launch *launch;
    uint32_t index[3];
    uint64_t writer; /* what it notes of its writes to global memory: see exec_global.c */
    unsigned char *shared;
    uint32_t *wrote, *read; /* a stamp for each word of shared memory: see exec_shared.c */
    uint32_t now, barrier_at, begin_at;
    uint32_t barrier_sum; /* of bar.red */
    bool stop;            /* after a fault */
    struct warp *warps;
};

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

void sim_set_mask(struct warp *warp, uint32_t mask);
/* What obeys @p for instructions of GUARD_LANES. */
void sim_run_guarded(struct warp *warp, const struct insn *insn);
/* True if all of those lanes that live are here; if not, the group waits for them. */
bool sim_gather(struct warp *warp, uint32_t lanes);
void sim_run_block(struct block *block);

/* Shared memory. The address of lane's access: its bytes must lie in shared memory, aligned to
 * their count. Returns false after a fault. */
bool sim_shared_at(struct warp *warp, const struct insn *insn, int lane, uint64_t address,
                   uint32_t bytes);
enum sim_shared_use {
    USE_PLAIN,
    USE_ATOMIC,
    USE_IN_FLIGHT, /* a cp.async that is not waited for */
    USE_ARRIVED    /* its end; kept as USE_PLAIN */
};
/* Notes accesses of words, and finds races and reads of what was not written. */
bool sim_shared_write(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                      uint32_t bytes, enum sim_shared_use use);
/* A read by which a word reaches several lanes, as ldmatrix does. */
bool sim_shared_read_together(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                              uint32_t bytes);
void sim_shared_barrier(struct block *block);
/* A point in time that orders what came before it in this warp. */
void sim_shared_warp_barrier(struct warp *warp);

/* Reads bytes of global memory for a lane, at a multiple of align. Returns false after a fault. */
bool sim_global_read(struct warp *warp, const struct insn *insn, int lane, uint64_t address,
                     uint32_t bytes, uint32_t align, void *to);

#endif
