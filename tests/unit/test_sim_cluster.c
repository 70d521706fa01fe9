/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sim_cluster.c: faults in features that only sm_90 has, planted in small kernels whose twins run: GEMMs of
 * warpgroups, barriers of some warps, mbarriers, TMA, clusters.
 */
#include "sim_kernel.h"

static void check_all(const struct planted *rows, size_t count, const struct kernel_launch *base)
{
    for (size_t i = 0; i < count; i++)
        check_planted(&rows[i], base);
    print_message("%zu faults and their twins\n", count);
}

/* ---- products ---- */

#define TILES ".shared .align 1024 .b8 s[16384]; .reg .b32 %a<32>;"
/* %r1 is the address of 16 bytes of s that the thread owns, in each of 8 parts. FILL sets all of s to zero. */
#define OWN16                                                                                      \
    "mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 127; shl.b32 %r1, %r1, 4; mov.u32 %r2, s;"             \
    "add.s32 %r1, %r1, %r2; mov.u32 %r3, 0; setp.lt.s32 %p4, %r0, 128;\n"
#define ZERO(at) "@%p4 st.shared.v4.u32 [%r1+" #at "], {%r3, %r3, %r3, %r3};"
#define FILL                                                                                       \
    OWN16 ZERO(0) ZERO(2048) ZERO(4096) ZERO(6144) ZERO(8192) ZERO(10240) ZERO(12288) ZERO(14336)
#define FENCE "fence.proxy.async.shared::cta;"
#define BARRIER "bar.sync 0;"
#define A32                                                                                        \
    "{%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7, %a8, %a9, %a10, %a11, %a12, %a13, %a14, %a15, %a16," \
    "%a17, %a18, %a19, %a20, %a21, %a22, %a23, %a24, %a25, %a26, %a27, %a28, %a29, %a30, %a31}"
/* A product of 64 rows at s and 64 columns at s + 8192. */
#define PRODUCT_BY(high)                                                                           \
    "shr.u32 %r5, %r2, 4; mov.b64 %d5, {%r5, " high "}; add.s32 %r6, %r5, 512;"                    \
    "mov.b64 %d6, {%r6, " high "}; setp.ne.b32 %p5, %r3, 0; wgmma.fence.sync.aligned;"             \
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " A32 ", %d5, %d6, %p5, 1, 1, 0, 0;"     \
    "wgmma.commit_group.sync.aligned;"
#define PRODUCT PRODUCT_BY("0x40000040")
#define WAIT "wgmma.wait_group.sync.aligned 0;"
#define READY FILL FENCE BARRIER
/* The second warpgroup, or the fourth warp, takes another branch. */
#define FROM(thread) "setp.ge.s32 %p0, %r0, " #thread "; @%p0 bra there;"

static const struct planted products[] = {
    {"product of what nothing wrote", OWN16 PRODUCT WAIT, READY PRODUCT WAIT, TILES, 128,
     SIM_UNWRITTEN, "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 reads byte 0 of"},
    {"product without a fence", FILL BARRIER PRODUCT WAIT, READY PRODUCT WAIT, TILES, 128,
     SIM_SHARED_RACE,
     "reads byte 0 of shared memory, which thread 0 wrote, without a fence.proxy.async between"},
    {"product, the fence behind the barrier", FILL BARRIER FENCE BARRIER PRODUCT WAIT,
     FILL FENCE BARRIER BARRIER PRODUCT WAIT, TILES, 128, SIM_SHARED_RACE,
     "without a fence.proxy.async between"},
    {"product without a barrier", READY ZERO(0) FENCE PRODUCT WAIT,
     READY ZERO(0) FENCE BARRIER PRODUCT WAIT, TILES, 128, SIM_SHARED_RACE,
     "which thread 0 wrote, without a barrier between"},
    {"product over a cp.async that is not waited for",
     READY
     "ld.param.u64 %d0, [k_0]; cp.async.cg.shared.global [%r1], [%d0], 16, 16;" BARRIER PRODUCT
         WAIT,
     READY "ld.param.u64 %d0, [k_0]; cp.async.cg.shared.global [%r1], [%d0], 16, 16;"
           "cp.async.wait_all;" FENCE BARRIER PRODUCT WAIT,
     TILES, 128, SIM_UNWRITTEN, "which a cp.async that nothing waited for writes"},
    {"write while a product reads", READY PRODUCT ZERO(0) WAIT, READY PRODUCT WAIT ZERO(0), TILES,
     128, SIM_SHARED_RACE,
     "thread (0, 0, 0): st.shared.v4.u32 writes byte 0 of shared memory, which a wgmma that "
     "nothing "
     "waited for reads"},
    {"a barrier does not wait for products", READY PRODUCT BARRIER ZERO(8192) WAIT,
     READY PRODUCT WAIT ZERO(8192), TILES, 128, SIM_SHARED_RACE, "that nothing waited for reads"},
    {"products of the last group still read",
     READY PRODUCT PRODUCT "wgmma.wait_group.sync.aligned 1;" ZERO(0) WAIT,
     READY PRODUCT "wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned;"
                   "wgmma.wait_group.sync.aligned 1;" ZERO(0) WAIT,
     TILES, 128, SIM_SHARED_RACE, "that nothing waited for reads"},
    {"cp.async while a product reads",
     READY PRODUCT "ld.param.u64 %d0, [k_0]; cp.async.cg.shared.global [%r1], [%d0], 16, 16;" WAIT
                   "cp.async.wait_all;",
     READY PRODUCT WAIT "ld.param.u64 %d0, [k_0];"
                        "cp.async.cg.shared.global [%r1], [%d0], 16, 16; cp.async.wait_all;",
     TILES, 128, SIM_SHARED_RACE, "that nothing waited for reads"},
    {"write over what another warpgroup multiplied",
     READY FROM(128) PRODUCT WAIT "bra.uni out; there: st.shared.u32 [s], %r0; out:",
     READY FROM(128) PRODUCT WAIT BARRIER "bra.uni out; there:" BARRIER
                                          "setp.eq.s32 %p1, %r0, 128; @%p1 st.shared.u32 [s], %r0; "
                                          "out:",
     TILES, 256, SIM_SHARED_RACE,
     "thread (128, 0, 0): st.shared.u32 writes byte 0 of shared memory, which a wgmma read, "
     "without "
     "a barrier between"},
    {"a warp that is a product ahead of others",
     READY FROM(32) PRODUCT PRODUCT "wgmma.wait_group.sync.aligned 1;" ZERO(
         8192) "bar.sync 1, 128;" WAIT "ret; there:" PRODUCT "bar.sync 1, 128;" PRODUCT WAIT,
     READY FROM(32) PRODUCT PRODUCT "wgmma.wait_group.sync.aligned 1; bar.sync 1, 128;" WAIT ZERO(
         8192) "ret; there:" PRODUCT "bar.sync 1, 128;" PRODUCT WAIT,
     TILES, 128, SIM_SHARED_RACE,
     "thread (0, 0, 0): st.shared.v4.u32 writes byte 8192 of shared memory, which a wgmma that "
     "nothing waited for reads"},
    {"product of three warps", READY FROM(96) PRODUCT WAIT "there:", READY PRODUCT WAIT, TILES, 128,
     SIM_DIVERGENT_BARRIER,
     "waits for products of its warpgroup, of which warp 3 has begun 1 groups fewer"},
    {"product of three warps that nothing waits for",
     READY FROM(96) PRODUCT "there:", READY PRODUCT, TILES, 128, SIM_DIVERGENT_BARRIER,
     "thread (96, 0, 0): ret ends a warp that has not done what the first of its warpgroup has: 1 "
     "groups of wgmma and 0 setmaxnreg fewer"},
    {"product of half a warp", READY FROM(16) PRODUCT "there:", READY PRODUCT, TILES, 128,
     SIM_DIVERGENT_BARRIER, "wgmma.fence.sync.aligned needs all lanes of the warp, has 0000ffff"},
    {"a swizzle that is not known", READY PRODUCT_BY("0x80000040") WAIT, READY PRODUCT WAIT, TILES,
     128, SIM_BAD_PTX, "only a swizzle of 128 bytes"},
    {"a predicate of some lanes", READY "and.b32 %r3, %r0, 8;" PRODUCT WAIT,
     READY "mov.u32 %r3, 8;" PRODUCT WAIT, TILES, 128, SIM_BAD_PTX,
     "thread (8, 0, 0): wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 has another "
     "predicate"},
    {"a descriptor of some lanes",
     READY "setp.eq.s32 %p3, %r0, 5; @%p3 add.s32 %r2, %r2, 32;" PRODUCT WAIT,
     READY "add.s32 %r2, %r2, 32;" PRODUCT WAIT, TILES, 128, SIM_BAD_PTX,
     "thread (5, 0, 0): wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 has descriptor 0x"},
    {"a matrix outside of shared memory", READY "add.s32 %r2, %r2, 8192;" PRODUCT WAIT,
     READY "add.s32 %r2, %r2, 32;" PRODUCT WAIT, TILES, 128, SIM_ILLEGAL_ADDRESS,
     "16 bytes at byte 16384 of shared memory, of which the block has 16384"},
    {"registers of one warp", OWN16 FROM(96) "setmaxnreg.dec.sync.aligned.u32 40; there:",
     OWN16 "setmaxnreg.dec.sync.aligned.u32 40;", TILES, 128, SIM_DIVERGENT_BARRIER,
     "0 groups of wgmma and 1 setmaxnreg fewer"},
    {"half a warpgroup", READY "ret;" PRODUCT, READY, TILES, 192, SIM_BAD_LAUNCH,
     "192 threads a block, which are no whole warpgroups"},
};

static void simulated_wgmma_multiplies(void **state)
{
    (void)state;
    check_all(products, sizeof products / sizeof *products, &(struct kernel_launch){.grid = 2});
}

/* ---- barriers of some warps ---- */

#define WORDS ".shared .align 16 .b8 s[512];"
/* %r1: the thread's word of s; %r2: that of its neighbour in the next warp. */
#define OWN                                                                                        \
    "mov.u32 %r0, %tid.x; shl.b32 %r3, %r0, 2; mov.u32 %r4, s; add.s32 %r1, %r4, %r3;"             \
    "xor.b32 %r5, %r3, 128; add.s32 %r2, %r4, %r5; st.shared.u32 [%r1], %r0;\n"
#define LOW(thread) "setp.lt.s32 %p0, %r0, " #thread "; @%p0 bra low;"

static const struct planted some_warps[] = {
    {"another barrier for each warp",
     OWN LOW(32) "bar.sync 1, 32; ld.shared.u32 %r9, [%r2]; bra.uni out; low: bar.sync 2, 32; out:",
     OWN LOW(32) "bar.sync 1, 64; ld.shared.u32 %r9, [%r2]; bra.uni out; low: bar.sync 1, 64; out:",
     WORDS, 64, SIM_SHARED_RACE, "reads byte 0 of shared memory, which thread 0 wrote"},
    {"a barrier that the writer does not take part in",
     OWN LOW(64) "ret; low: bar.sync 1, 64; st.shared.u32 [%r1+256], %r0;",
     OWN "bar.sync 0;" LOW(64) "ret; low: bar.sync 1, 64; st.shared.u32 [%r1+256], %r0;", WORDS,
     128, SIM_SHARED_RACE, "writes byte 256 of shared memory, which thread 64 wrote"},
    {"a read before it, and a write behind it, without all of the readers",
     OWN "bar.sync 0; ld.shared.u32 %r9, [s];" LOW(
         64) "ret; low: bar.sync 1, 64;"
             "setp.eq.s32 %p1, %r0, 0; @%p1 st.shared.u32 [s], %r0;",
     OWN "bar.sync 0; setp.lt.s32 %p2, %r0, 64; @%p2 ld.shared.u32 %r9, [s];" LOW(
         64) "ret; low: bar.sync 1, 64; setp.eq.s32 %p1, %r0, 0; @%p1 st.shared.u32 [s], %r0;",
     WORDS, 128, SIM_SHARED_RACE, "and others read"},
    {"a barrier for different counts", OWN LOW(32) "bar.sync 1, 32; ret; low: bar.sync 1, 64;",
     OWN LOW(32) "bar.sync 1, 64; ret; low: bar.sync 1, 64;", WORDS, 64, SIM_DIVERGENT_BARRIER,
     "waits for 32 threads at barrier 1, where others wait for 64"},
    {"a barrier that not all reach", OWN LOW(32) "bar.sync 2, 64; ret; low: bar.sync 1, 64;",
     OWN LOW(32) "bar.sync 2, 32; ret; low: bar.sync 1, 32;", WORDS, 64, SIM_DIVERGENT_BARRIER,
     "the warp waits at barrier 2, which 32 of 64 threads have reached"},
    {"a barrier that is not there", OWN "bar.sync 16, 64;", OWN "bar.sync 15, 64;", WORDS, 64,
     SIM_BAD_PTX, "barrier 16 is not there: 0 to 15 are"},
};

static void simulated_barriers_take_some_warps(void **state)
{
    (void)state;
    check_all(some_warps, sizeof some_warps / sizeof *some_warps,
              &(struct kernel_launch){.grid = 2});
}

/* ---- mbarriers ---- */

/* Two warps; words of s from 16 on, an mbarrier at m for a given number of arrivals. */
#define MBARRIER ".shared .align 16 .b8 m[16]; .shared .align 1024 .b8 s[16384];"
#define INIT_AND(arrivals, fence)                                                                  \
    "mov.u32 %r0, %tid.x; setp.ne.s32 %p1, %r0, 0; mov.u32 %r1, m; mov.u32 %r2, s;"                \
    "setp.lt.s32 %p0, %r0, 32; mov.u32 %r3, 0; mov.u32 %r4, " #arrivals "; @%p1 bra made;"         \
    "mbarrier.init.shared::cta.b64 [%r1], %r4;" fence "made: bar.sync 0;\n"
#define INIT_FENCE "fence.mbarrier_init.release.cluster;"
#define INIT(arrivals) INIT_AND(arrivals, INIT_FENCE)
#define ARRIVE "mapa.shared::cluster.u32 %r9, %r1, 0; mbarrier.arrive.shared::cluster.b64 _, [%r9];"
#define ONE(what) "setp.eq.s32 %p2, %r0, 32; @!%p2 bra one;" what "one:"
#define TRY_WAIT "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], %r3;"
#define AWAIT "{ again: " TRY_WAIT "@!%p3 bra again; }"
/* A delay, without a barrier of all threads. */
#define TICKS(count)                                                                               \
    "mov.u32 %r20, 0; mov.u32 %r21, -1; { again: bar.warp.sync %r21; add.s32 %r20, %r20, 1;"       \
    "setp.lt.s32 %p4, %r20, " #count "; @%p4 bra again; }"
/* The first warp runs `first`, the second `second`. */
#define WARPS(first, second) "@%p0 bra first;" second "ret; first:" first

/* The first lane waits, the others join it there, and all continue after they have tried once more. */
#define LANES_JOIN                                                                                 \
    INIT(31)                                                                                       \
    "mov.u32 %r4, 1; @%p1 bra also; mbarrier.init.shared::cta.b64 [%r1+8], %r4; also: bar.sync 0;" \
    "mov.u32 %r12, 0; @%p1 bra others; again:" TRY_WAIT "add.s32 %r12, %r12, 1;"                   \
    "setp.lt.s32 %p5, %r12, 2; @%p5 bra again; bra.uni next; others: mov.u32 %r12, 1;"             \
    "bra.uni again; next:"

static const struct planted mbarriers[] = {
    {"a wait behind one that others joined",
     LANES_JOIN "{ again: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1+8], %r3;"
                "@!%p3 bra again; }",
     LANES_JOIN, MBARRIER, 32, SIM_DIVERGENT_BARRIER,
     "waits for phase 0 of the mbarrier at byte 8 of shared memory, which lacks 1 arrivals"},
    {"an mbarrier of no arrivals", INIT(0), INIT(1), MBARRIER, 64, SIM_BAD_PTX,
     "mbarrier.init.shared::cta.b64 asks for 0 arrivals: 1 to 1048575 can be"},
    {"an mbarrier of too many arrivals", INIT(1048576), INIT(1048575), MBARRIER, 64, SIM_BAD_PTX,
     "asks for 1048576 arrivals"},
    {"too many bytes", INIT(1) ONE("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1048576;"),
     INIT(1) ONE("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1048575;"), MBARRIER, 64,
     SIM_BAD_PTX, "expects 1048576 bytes at the mbarrier at byte 0 of shared memory: 1048575 can"},
    {"more barriers of some threads than the record holds",
     INIT(1) WARPS(AWAIT "ld.shared.u32 %r5, [s];",
                   TICKS(524288) ONE("st.shared.u32 [s], %r0;" ARRIVE)),
     INIT(1) WARPS(AWAIT "ld.shared.u32 %r5, [s];",
                   TICKS(524200) ONE("st.shared.u32 [s], %r0;" ARRIVE)),
     MBARRIER, 64, SIM_NO_MEMORY, "reads byte 1024 of shared memory: the record's time ran out"},
    {"a wait for what is no mbarrier", INIT(1) "add.s32 %r1, %r1, 8;" TRY_WAIT, INIT(1) TRY_WAIT,
     MBARRIER, 64, SIM_UNWRITTEN, "reads byte 8 of shared memory, which nothing wrote"},
    {"words that are no mbarrier",
     INIT(1) "setp.eq.s32 %p2, %r0, 0; @%p2 st.shared.f64 [m+8], 0d0000000000000000; bar.sync 0;"
             "add.s32 %r1, %r1, 8;" TRY_WAIT,
     INIT(1) TRY_WAIT, MBARRIER, 64, SIM_UNWRITTEN,
     "byte 8 of shared memory, where no mbarrier was initialised"},
    {"an arrival before the barrier behind init",
     "mov.u32 %r0, %tid.x; setp.ne.s32 %p1, %r0, 0; mov.u32 %r1, m; mov.u32 %r4, 64; @%p1 bra made;"
     "mbarrier.init.shared::cta.b64 [%r1], %r4; made:" ARRIVE,
     INIT(64) ARRIVE, MBARRIER, 64, SIM_SHARED_RACE,
     "reads byte 0 of shared memory, which thread 0 wrote, without a barrier between"},
    {"an arrival too few", INIT(2) WARPS(AWAIT, ONE(ARRIVE)), INIT(1) WARPS(AWAIT, ONE(ARRIVE)),
     MBARRIER, 64, SIM_DIVERGENT_BARRIER,
     "waits for phase 0 of the mbarrier at byte 0 of shared memory, which lacks 1 arrivals and 0 "
     "bytes, and no thread goes on"},
    {"bytes that nothing copies",
     INIT(1) WARPS(AWAIT, ONE("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;")),
     INIT(1) WARPS(AWAIT, ONE("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 0;")), MBARRIER,
     64, SIM_DIVERGENT_BARRIER, "which lacks 0 arrivals and 128 bytes"},
    {"an arrival too many",
     INIT(1) ONE("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;" ARRIVE),
     INIT(2) ONE("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;" ARRIVE), MBARRIER, 64,
     SIM_DIVERGENT_BARRIER,
     "comes to the mbarrier at byte 0 of shared memory, whose phase has had its 1 arrivals"},
    {"a wait that does not try again",
     INIT(1) WARPS(TRY_WAIT "ld.shared.u32 %r5, [s];", ONE("st.shared.u32 [s], %r0;" ARRIVE)),
     INIT(1) WARPS(AWAIT "ld.shared.u32 %r5, [s];", ONE("st.shared.u32 [s], %r0;" ARRIVE)),
     MBARRIER, 64, SIM_UNWRITTEN, "reads byte 1024 of shared memory, which nothing wrote"},
    {"a write behind the arrival",
     INIT(1) WARPS(AWAIT "ld.shared.u32 %r5, [s];", ONE(ARRIVE "st.shared.u32 [s], %r0;")),
     INIT(1) WARPS(AWAIT "ld.shared.u32 %r5, [s];", ONE("st.shared.u32 [s], %r0;" ARRIVE)),
     MBARRIER, 64, SIM_SHARED_RACE, "reads byte 1024 of shared memory, which thread 32 wrote"},
    {"lanes of one warp that wait and arrive",
     INIT(32) "@%p1 bra others;" AWAIT "bra.uni on; others:" ARRIVE "on: bar.sync 0;",
     INIT(31) "@%p1 bra others;" AWAIT "bra.uni on; others:" ARRIVE "on: bar.sync 0;", MBARRIER, 32,
     SIM_DIVERGENT_BARRIER, "which lacks 1 arrivals and 0 bytes"},
    {"a wait for the phase before",
     INIT(1) WARPS("mov.u32 %r3, 1;" AWAIT "ld.shared.u32 %r5, [s];",
                   ONE("st.shared.u32 [s], %r0;" ARRIVE)),
     INIT(1) WARPS("mov.u32 %r3, 1;" AWAIT "mov.u32 %r3, 0;" AWAIT "ld.shared.u32 %r5, [s];",
                   ONE("st.shared.u32 [s], %r0;" ARRIVE)),
     MBARRIER, 64, SIM_UNWRITTEN, "which nothing wrote"},
};

static void simulated_mbarriers_count(void **state)
{
    (void)state;
    check_all(mbarriers, sizeof mbarriers / sizeof *mbarriers, &(struct kernel_launch){.grid = 1});
}

/* ---- TMA: tiles of 16 rows of 64 ---- */

enum { MAP_ROWS = 20, MAP_COLUMNS = 72, TILE_BYTES = 16 * 128 };

/* Return a map of an array in memory, all of whose bytes are written. */
static struct sim_tensor_map map_in(struct sim_memory *memory)
{
    static const uint16_t data[MAP_ROWS * MAP_COLUMNS];
    return (struct sim_tensor_map){.address = put(memory, data, sizeof data),
                                   .sizes = {MAP_COLUMNS, MAP_ROWS},
                                   .row_bytes = MAP_COLUMNS * 2,
                                   .box = {64, 16},
                                   .steps = {1, 1},
                                   .rank = MAP_RANK,
                                   .swizzle = MAP_SWIZZLE_128B};
}

#define EXPECT "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 2048;"
#define COPY_OF(map)                                                                               \
    "mov.b64 %d5, " map "; cvta.param.u64 %d6, %d5; mov.u32 %r7, 3;"                               \
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"                  \
    " [%r2], [%d6, {%r7, %r7}], [%r1];"
#define COPY COPY_OF("k_map")
#define READ "ld.shared.u32 %r5, [s];"

static const struct planted copies[] = {
    {"a copy that is not waited for", INIT(1) ONE(EXPECT COPY) "bar.sync 0;" READ,
     INIT(1) ONE(EXPECT COPY) AWAIT READ, MBARRIER, 64, SIM_SHARED_RACE,
     "reads byte 1024 of shared memory, which a TMA copy wrote, without a barrier"},
    {"a copy that has not arrived", INIT(1) ONE(EXPECT COPY READ),
     INIT(1) ONE(EXPECT COPY AWAIT READ), MBARRIER, 64, SIM_UNWRITTEN, "which TMA still writes"},
    {"a copy over a copy", INIT(1) ONE(EXPECT COPY COPY),
     INIT(1) ONE(EXPECT COPY AWAIT EXPECT COPY), MBARRIER, 64, SIM_SHARED_RACE,
     "which a TMA copy still writes"},
    {"a copy over what others read",
     INIT(1) ONE(EXPECT COPY) AWAIT READ "setp.eq.s32 %p4, %r0, 0; @!%p4 bra out;" EXPECT COPY
                                         "out:",
     INIT(1) ONE(EXPECT COPY) AWAIT READ
     "bar.sync 0; setp.eq.s32 %p4, %r0, 0; @!%p4 bra out;" EXPECT COPY "out:",
     MBARRIER, 64, SIM_SHARED_RACE, "shared memory, which thread"},
    {"a copy over what was written without a fence",
     INIT(1) ONE("st.shared.u32 [s], %r0;" EXPECT COPY),
     INIT(1) ONE("st.shared.u32 [s], %r0; fence.proxy.async.shared::cta;" EXPECT COPY), MBARRIER,
     64, SIM_SHARED_RACE, "which thread 32 wrote, without a fence.proxy.async between"},
    {"a copy for an mbarrier that is not fenced", INIT_AND(1, "") ONE(EXPECT COPY),
     INIT(1) ONE(EXPECT COPY), MBARRIER, 64, SIM_SHARED_RACE,
     "arrives at byte 0 of shared memory, which thread 0 wrote, without a fence.mbarrier_init "
     "between"},
    {"a fence for mbarriers alone", INIT(1) ONE("st.shared.u32 [s], %r0;" INIT_FENCE EXPECT COPY),
     INIT_AND(1, "fence.proxy.async.shared::cta;")
         ONE("st.shared.u32 [s], %r0; fence.proxy.async.shared::cta;" EXPECT COPY),
     MBARRIER, 64, SIM_SHARED_RACE, "which thread 32 wrote, without a fence.proxy.async between"},
    {"a copy to what mapa gives", INIT(1) ONE(EXPECT "mapa.shared::cluster.u32 %r2, %r2, 0;" COPY),
     INIT(1) ONE(EXPECT COPY), MBARRIER, 64, SIM_ILLEGAL_ADDRESS,
     "to 0x1000400 for the mbarrier at 0, which are not both of its own block"},
    {"a copy for an mbarrier that mapa gives",
     INIT(1) ONE(EXPECT "mapa.shared::cluster.u32 %r1, %r1, 0;" COPY), INIT(1) ONE(EXPECT COPY),
     MBARRIER, 64, SIM_ILLEGAL_ADDRESS, "to 0x400 for the mbarrier at 0x1000000, which are not"},
    {"a copy out of shared memory", INIT(1) "add.s32 %r2, %r2, 14464;" ONE(EXPECT COPY),
     INIT(1) "add.s32 %r2, %r2, 14336;" ONE(EXPECT COPY), MBARRIER, 64, SIM_ILLEGAL_ADDRESS,
     "128 bytes at byte 17408 of shared memory, of which the block has 17408"},
    {"a copy to a misaligned place", INIT(1) "add.s32 %r2, %r2, 64;" ONE(EXPECT COPY),
     INIT(1) "add.s32 %r2, %r2, 128;" ONE(EXPECT COPY), MBARRIER, 64, SIM_MISALIGNED,
     "no multiple of 128"},
    {"a copy by what is no map", INIT(1) ONE(EXPECT COPY_OF("k_0")), INIT(1) ONE(EXPECT COPY),
     MBARRIER, 64, SIM_ILLEGAL_ADDRESS, "is no map of tiles of 128 bytes a row"},
    {"a copy by what is no parameter", INIT(1) ONE(EXPECT COPY_OF("5")), INIT(1) ONE(EXPECT COPY),
     MBARRIER, 64, SIM_ILLEGAL_ADDRESS, "no parameter of 128 bytes at 0x5"},
    {"a load through the address of a parameter",
     INIT(1) "mov.b64 %d5, k_map; ld.global.u32 %r5, [%d5];",
     INIT(1) "mov.b64 %d5, k_map; ld.param.u64 %d6, [k_0]; ld.global.u32 %r5, [%d6];", MBARRIER, 64,
     SIM_ILLEGAL_ADDRESS, "4 bytes at 0x70"},
};

/* Check that a copy by that map is a fault. */
static void check_map(const struct sim_tensor_map *map, struct sim_memory *memory,
                      enum sim_fault_kind kind, const char *says)
{
    const struct planted copy = {.name = "a copy",
                                 .wrong = INIT(1) ONE(EXPECT COPY),
                                 .right = "ret;",
                                 .declarations = MBARRIER,
                                 .block = 64,
                                 .kind = kind,
                                 .says = says};
    check_planted(&copy, &(struct kernel_launch){.grid = 1, .map = map, .memory = memory});
}

static void simulated_tma_copies(void **state)
{
    (void)state;
    struct sim_memory *memory = sim_memory_create();
    const struct sim_tensor_map map = map_in(memory);
    check_all(copies, sizeof copies / sizeof *copies,
              &(struct kernel_launch){.grid = 1, .map = &map, .memory = memory});
    /* An array of which nothing is written, and one that does not exist. */
    struct sim_tensor_map other = map;
    other.address = put(memory, NULL, MAP_ROWS * MAP_COLUMNS * 2);
    other.sizes[0] = 64;
    check_map(&other, memory, SIM_UNWRITTEN, "122 bytes at 0x");
    other.address = 4096;
    check_map(&other, memory, SIM_ILLEGAL_ADDRESS, "cp.async.bulk.tensor.2d");
    /* Boxes that are too large, two of them so large that the number of their bytes overflows. */
    static const unsigned boxes[][2] = {{64, 257}, {64, 1u << 25 | 16}, {1u << 31 | 64, 16}};
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
        other = map;
        memcpy(other.box, boxes[i], sizeof other.box);
        check_map(&other, memory, SIM_ILLEGAL_ADDRESS, "is no map of tiles of 128 bytes a row");
    }
    sim_memory_destroy(memory);
}

/* ---- clusters ---- */

#define CLUSTER ".explicitcluster .reqnctapercluster 2, 1, 1"
#define SYNC "barrier.cluster.arrive; barrier.cluster.wait;"
/* %p0: the first block. */
#define RANK                                                                                       \
    "mov.u32 %r0, %tid.x; mov.u32 %r10, %cluster_ctarank; setp.eq.s32 %p0, %r10, 0;"               \
    "mov.u32 %r1, m; mov.u32 %r2, s; mov.u32 %r3, 0; mov.u32 %r4, 32; setp.ne.s32 %p1, %r0, 0;\n"
#define INIT_BOTH                                                                                  \
    "@%p1 bra made; mbarrier.init.shared::cta.b64 [%r1], %r4; "                                    \
    "fence.mbarrier_init.release.cluster;"                                                         \
    "made:"
#define ARRIVE_AT(rank)                                                                            \
    "mapa.shared::cluster.u32 %r9, %r1, " #rank "; mbarrier.arrive.shared::cluster.b64 _, [%r9];"

/* One thread copies to the blocks of a mask. */
#define COPY_TO(ranks)                                                                             \
    "mov.b64 %d5, k_map; cvta.param.u64 %d6, %d5; mov.u32 %r7, 3; mov.u16 %h0, " #ranks ";"        \
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"                  \
    ".multicast::cluster [%r2], [%d6, {%r7, %r7}], [%r1], %h0;"
/* The second block uses a tile, in which the first one then puts another. */
#define TILE_USED(use)                                                                             \
    RANK "@%p1 bra made; mov.u32 %r4, 1; mbarrier.init.shared::cta.b64 [%r1], %r4;"                \
         "mbarrier.init.shared::cta.b64 [%r1+8], %r4;" INIT_FENCE "made:" SYNC                     \
         "@%p1 bra all;" EXPECT                                                                    \
         "@!%p0 bra all;" COPY_TO(3) "all:" AWAIT "@%p1 bra out; @%p0 bra first;" use              \
                                     "bra.uni out; first: { again: "                               \
                                     "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1+8], %r3;" \
                                     "@!%p3 bra again; }" COPY_TO(2) "out:" SYNC
#define GIVE_BACK                                                                                  \
    "mapa.shared::cluster.u32 %r9, %r1, 0; mbarrier.arrive.shared::cluster.b64 _, [%r9+8];"
/* Code for the second block. */
#define SECOND "setp.eq.s32 %p2, %r0, 0; @%p2 st.shared.u32 [s], %r0; bar.sync 0; @%p0 bra out;"

static const struct planted clusters[] = {
    {"an arrival in a block that may have ended",
     RANK INIT_BOTH SYNC "@%p0 bra out;" ARRIVE_AT(0) "out:",
     RANK INIT_BOTH SYNC "@%p0 bra out;" ARRIVE_AT(0) "out:" SYNC, MBARRIER, 32,
     SIM_ILLEGAL_ADDRESS, "shared memory of block 0 of the cluster, which may have ended"},
    {"a copy to a block that has ended",
     RANK INIT_BOTH SYNC "@%p0 bra out; bar.sync 0; @%p1 bra out;" COPY_TO(3) "out:",
     RANK INIT_BOTH SYNC "@%p0 bra out; bar.sync 0; @%p1 bra out;" COPY_TO(3) "out:" SYNC, MBARRIER,
     32, SIM_ILLEGAL_ADDRESS, "shared memory of block 0 of the cluster, which has ended"},
    {"a copy over what the other block still reads", TILE_USED(GIVE_BACK READ),
     TILE_USED(READ GIVE_BACK), MBARRIER, 64, SIM_SHARED_RACE,
     "writes byte 1024 of shared memory, which thread 0 of block 1 of the cluster read, without"},
    {"a write over what another warp of the second block read",
     RANK SECOND "setp.eq.s32 %p3, %r0, 32; @%p3 ld.shared.u32 %r5, [s];"
                 "setp.eq.s32 %p4, %r0, 64; @%p4 st.shared.u32 [s], %r0; out:",
     RANK SECOND "setp.eq.s32 %p3, %r0, 32; @%p3 ld.shared.u32 %r5, [s]; bar.sync 0;"
                 "setp.eq.s32 %p4, %r0, 64; @%p4 st.shared.u32 [s], %r0; out:",
     MBARRIER, 96, SIM_SHARED_RACE,
     "block (1, 0, 0), thread (64, 0, 0): st.shared.u32 writes byte 1024 of shared memory, which "
     "thread 32 of block 1 of the cluster read"},
    {"a wait without an arrival", RANK "barrier.cluster.wait;", RANK SYNC, MBARRIER, 32,
     SIM_DIVERGENT_BARRIER, "waits at the barrier of the cluster without having come to it"},
    {"a second wait", RANK SYNC "barrier.cluster.wait;", RANK SYNC SYNC, MBARRIER, 32,
     SIM_DIVERGENT_BARRIER, "waits at the barrier of the cluster without having come to it"},
    {"two arrivals for one wait",
     RANK "barrier.cluster.arrive; bar.sync 0; barrier.cluster.arrive; barrier.cluster.wait;",
     RANK "barrier.cluster.arrive; bar.sync 0; barrier.cluster.wait;", MBARRIER, 32,
     SIM_DIVERGENT_BARRIER, "comes to the barrier of the cluster twice without waiting"},
    {"a barrier that a warp of the second block does not reach",
     RANK SECOND "setp.ge.s32 %p2, %r0, 32; @%p2 bra out; bar.sync 0; out:",
     RANK SECOND "bar.sync 0; out:", MBARRIER, 64, SIM_DIVERGENT_BARRIER,
     "the warp waits at a barrier, threads from 32 on have ended"},
    {"a barrier that a warp waits elsewhere for, the other block has ended",
     RANK SECOND "setp.ge.s32 %p2, %r0, 32; @%p2 bra high; bar.sync 1, 64; bra.uni out;"
                 "high: bar.sync 2, 64; out:",
     RANK SECOND "setp.ge.s32 %p2, %r0, 32; @%p2 bra high; bar.sync 1, 64; bra.uni out;"
                 "high: bar.sync 1, 64; out:",
     MBARRIER, 64, SIM_DIVERGENT_BARRIER,
     "the warp waits at barrier 1, which 32 of 64 threads have reached"},
    {"an arrival in another block before the barrier of the cluster",
     RANK INIT_BOTH "bar.sync 0;" ARRIVE_AT(0) SYNC,
     RANK INIT_BOTH SYNC "@%p0 bra out;" ARRIVE_AT(0) "out:" SYNC, MBARRIER, 32, SIM_SHARED_RACE,
     "block (1, 0, 0), thread (0, 0, 0): mbarrier.arrive.shared::cluster.b64 reads byte 0 of "
     "shared "
     "memory, which thread 0 of block 0 of the cluster wrote"},
    {"a block that is not there", RANK INIT_BOTH SYNC ARRIVE_AT(2),
     RANK INIT_BOTH SYNC "@%p0 bra out;" ARRIVE_AT(1) "out:", MBARRIER, 32, SIM_ILLEGAL_ADDRESS,
     "block 2 of a cluster of 2"},
    {"a barrier of one block", RANK INIT_BOTH SYNC "@!%p0 bra on;" SYNC "ret; on:" AWAIT,
     RANK INIT_BOTH SYNC "@!%p0 bra on;" ARRIVE_AT(1) SYNC "ret; on:" AWAIT SYNC, MBARRIER, 32,
     SIM_DIVERGENT_BARRIER, "waits for 32 threads of the cluster, and no thread goes on"},
    {"an arrival without its wait", RANK "barrier.cluster.arrive;" SYNC,
     RANK "barrier.cluster.arrive; barrier.cluster.wait;" SYNC, MBARRIER, 32, SIM_DIVERGENT_BARRIER,
     "comes to the barrier of the cluster twice"},
    {"a store to another block",
     RANK "mapa.shared::cluster.u32 %r9, %r1, 1; st.shared.u32 [%r9], %r0;",
     RANK "setp.eq.s32 %p2, %r0, 0; @%p2 st.shared.u32 [%r1], %r0;", MBARRIER, 32,
     SIM_ILLEGAL_ADDRESS, "4 bytes at byte 33554432 of shared memory"},
    {"what the other block of a cluster wrote",
     RANK "setp.eq.s32 %p2, %r0, 0; @!%p0 bra on; @%p2 st.shared.u32 [s], %r0; on: bar.sync 0;"
          "ld.shared.u32 %r5, [s];",
     RANK "setp.eq.s32 %p2, %r0, 0; @%p2 st.shared.u32 [s], %r0; bar.sync 0;"
          "ld.shared.u32 %r5, [s];",
     MBARRIER, 32, SIM_UNWRITTEN,
     "block (1, 0, 0), thread (0, 0, 0): ld.shared.u32 reads byte 1024 of shared memory, which "
     "nothing wrote"},
    {"blocks of a cluster are blocks in global memory",
     "ld.param.u64 %d0, [k_1]; mov.u32 %r0, %tid.x; st.global.u32 [%d0], %r0;",
     "ld.param.u64 %d0, [k_1]; mov.u32 %r0, %ctaid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d0, %d0, "
     "%d1;"
     "st.global.u32 [%d0], %r0;",
     MBARRIER, 1, SIM_SHARED_RACE, "which block (0, 0, 0) of the same launch wrote"},
};

static void simulated_clusters_share_memory(void **state)
{
    (void)state;
    struct sim_memory *memory = sim_memory_create();
    const struct sim_tensor_map map = map_in(memory);
    check_all(clusters, sizeof clusters / sizeof *clusters,
              &(struct kernel_launch){.grid = 4, .bounds = CLUSTER, .map = &map, .memory = memory});
    sim_memory_destroy(memory);
}

static void simulated_launches_of_clusters_are_checked(void **state)
{
    (void)state;
    struct kernel_launch launch = {.bounds = CLUSTER, .body = "ret;", .grid = 3};
    struct sim_fault fault;
    assert_int_equal(kernel_run(&launch, &fault), -1);
    assert_int_equal(fault.kind, SIM_BAD_LAUNCH);
    assert_non_null(strstr(fault.text, "3 blocks along axis 0, it is compiled for clusters of 2"));
    launch.grid = 4;
    launch.block = 544;
    assert_int_equal(kernel_run(&launch, &fault), -1);
    assert_non_null(strstr(fault.text, "544 threads a block, the machine keeps at most 1024 in a"));
    launch.block = 512;
    kernel_must_run(&launch);
    launch.bounds = ".reqnctapercluster 1, 2, 1";
    assert_int_equal(kernel_run(&launch, &fault), -1);
    assert_non_null(strstr(fault.text, "a cluster of blocks that are no row"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulated_wgmma_multiplies),
        cmocka_unit_test(simulated_barriers_take_some_warps),
        cmocka_unit_test(simulated_mbarriers_count),
        cmocka_unit_test(simulated_tma_copies),
        cmocka_unit_test(simulated_clusters_share_memory),
        cmocka_unit_test(simulated_launches_of_clusters_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
