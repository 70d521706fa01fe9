/* SPDX-License-Identifier: Apache-2.0
 *
 * sim_forms_sm90.c: forms that only sm_90 has, against C: GEMMs of warpgroups, mbarriers, TMA, clusters, and votes of
 * the lanes of a warp.
 */
#include "sim_kernel.h"

#include "sim_forms.h"

/* ---- products ---- */

enum { THREADS = 128, ROWS = 64, DEPTH = 16, COLUMNS_MAX = 256, A_BYTES = 8192, B_BYTES = 32768 };

/* Return the offset of a byte of a 128-byte row: its 16-byte chunks are permuted by row. */
static size_t swizzled(size_t row, size_t byte)
{
    return row * 128 + ((byte / 16) ^ (row % 8)) * 16 + byte % 16;
}

static const struct product {
    int n;
    bool registers, rows, add; /* a comes from registers; a row of shared memory is a row of b */
} products_of[] = {
    {32, false, false, false}, {32, false, true, true},    {64, false, false, true},
    {64, false, true, false},  {64, true, false, true},    {64, true, true, false},
    {128, true, true, true},   {128, true, false, false},  {256, false, false, true},
    {256, false, true, true},  {256, false, false, false}, {256, true, true, true},
};

/* Matrices of small numbers, and their layout in memory: a begins at the second 16 columns of its panel, b there or at
 * row 16; its panels are 4096 bytes apart. */
struct matrices {
    float a[ROWS][DEPTH], b[DEPTH][COLUMNS_MAX];
    unsigned char image[A_BYTES + B_BYTES];
    uint16_t fragments[THREADS][4][2];
    float sums[THREADS][COLUMNS_MAX / 2]; /* sums before the product */
};

static void put_bf16(unsigned char *to, float value)
{
    const uint16_t code = (uint16_t)bf16_want(value);
    memcpy(to, &code, sizeof code);
}

static void fill(struct matrices *m, const struct product *p)
{
    for (size_t i = 0; i < ROWS * DEPTH; i++) {
        const size_t row = i / DEPTH, k = i % DEPTH, lane = row % 8 * 4 + k % 8 / 2;
        m->a[row][k] = (float)(next_random() % 31) - 15;
        put_bf16(m->image + swizzled(row, 32 + 2 * k), m->a[row][k]);
        m->fragments[row / 16 * 32 + lane][row / 8 % 2 + k / 8 * 2][k % 2] =
            (uint16_t)bf16_want(m->a[row][k]);
    }
    for (size_t i = 0; i < DEPTH * (size_t)p->n; i++) {
        const size_t k = i / (size_t)p->n, n = i % (size_t)p->n;
        const size_t at =
            p->rows ? n / 64 * 4096 + swizzled(16 + k, n % 64 * 2) : swizzled(n, 32 + 2 * k);
        m->b[k][n] = (float)(next_random() % 31) / 8 - 2;
        put_bf16(m->image + A_BYTES + at, m->b[k][n]);
    }
    for (size_t i = 0; i < THREADS * COLUMNS_MAX / 2; i++)
        m->sums[i % THREADS][i / THREADS] = (float)(next_random() % 1000) / 16;
}

/* Write the sums %a0 and so on, each formatted by `format`. */
static size_t write_sums(char *to, size_t room, int n, const char *format)
{
    size_t used = 0;
    for (int i = 0; i < n / 2; i++)
        used += (size_t)snprintf(to + used, room - used, format, i, 4 * i);
    return used;
}

#define WRITE(...) used += (size_t)snprintf(body + used, sizeof body - used, __VA_ARGS__)
#define WRITE_SUMS(format) used += write_sums(body + used, sizeof body - used, p->n, format)

static void check_product(const struct product *p)
{
    static struct matrices m;
    static char body[KERNEL_TEXT_BYTES];
    size_t used = 0;
    memset(&m, 0, sizeof m);
    fill(&m, p);
    struct sim_memory *memory = sim_memory_create();
    const uint64_t image = put(memory, m.image, sizeof m.image);
    const uint64_t sums = put(memory, m.sums, sizeof m.sums);
    const uint64_t fragments = put(memory, m.fragments, sizeof m.fragments);
    WRITE("mov.u32 %%r0, %%tid.x; ld.param.u64 %%d0, [k_0]; ld.param.u64 %%d1, [k_1];"
          "ld.param.u64 %%d2, [k_2]; mul.wide.u32 %%d3, %%r0, 16; add.s64 %%d0, %%d0, %%d3;"
          "add.s64 %%d2, %%d2, %%d3; mul.wide.u32 %%d4, %%r0, 512; add.s64 %%d1, %%d1, %%d4;"
          "mov.u32 %%r1, dynamic; shl.b32 %%r2, %%r0, 4; add.s32 %%r2, %%r1, %%r2; mov.u32 %%r3, 0;"
          "{ again: ld.global.v4.u32 {%%r4, %%r5, %%r6, %%r7}, [%%d0];"
          "st.shared.v4.u32 [%%r2], {%%r4, %%r5, %%r6, %%r7}; add.s64 %%d0, %%d0, 2048;"
          "add.s32 %%r2, %%r2, 2048; add.s32 %%r3, %%r3, 1; setp.lt.s32 %%p0, %%r3, 20;"
          "@%%p0 bra again; }"
          "fence.proxy.async.shared::cta; bar.sync 0;"
          "ld.global.v4.u32 {%%r4, %%r5, %%r6, %%r7}, [%%d2];"
          "add.s32 %%r8, %%r1, 32; shr.u32 %%r8, %%r8, 4; mov.b64 %%d5, {%%r8, 0x40000040};"
          "add.s32 %%r9, %%r1, %d; shr.u32 %%r9, %%r9, 4; or.b32 %%r9, %%r9, 0x1000000;"
          "mov.b64 %%d6, {%%r9, 0x40000040}; mov.u32 %%r10, %d; setp.ne.b32 %%p1, %%r10, 0;",
          A_BYTES + (p->rows ? 2048 : 32), p->add);
    WRITE_SUMS("ld.global.f32 %%a%d, [%%d1+%d];");
    WRITE("wgmma.fence.sync.aligned;"
          "wgmma.mma_async.sync.aligned.m64n%dk16.f32.bf16.bf16 {%%a0",
          p->n);
    for (int i = 1; i < p->n / 2; i++)
        WRITE(", %%a%d", i);
    WRITE("}, %s, %%d6, %%p1, 1, 1, %s%d; wgmma.commit_group.sync.aligned;"
          "wgmma.wait_group.sync.aligned 0;",
          p->registers ? "{%r4, %r5, %r6, %r7}" : "%d5", p->registers ? "" : "0, ", p->rows);
    WRITE_SUMS("st.global.f32 [%%d1+%2$d], %%a%1$d;");
    const struct kernel_launch launch = {.declarations = ".reg .b32 %a<128>;",
                                         .body = body,
                                         .block = THREADS,
                                         .dynamic_shared_bytes = sizeof m.image,
                                         .params = {image, sums, fragments},
                                         .param_count = 3,
                                         .memory = memory};
    kernel_must_run(&launch);
    const float(*got)[COLUMNS_MAX / 2] = look(memory, sums);
    for (int thread = 0; thread < THREADS; thread++)
        for (int i = 0; i < p->n / 2; i++) {
            const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
            const int column = i / 4 * 8 + thread % 4 * 2 + i % 2;
            double want = p->add ? (double)m.sums[thread][i] : 0;
            for (int k = 0; k < DEPTH; k++)
                want += (double)m.a[row][k] * m.b[k][column];
            if ((double)got[thread][i] != want) /* all sums are exact */
                fail_msg("n %d, a in %s, %s of b: (%d, %d) is %g, not %g", p->n,
                         p->registers ? "registers" : "memory", p->rows ? "rows" : "columns", row,
                         column, (double)got[thread][i], want);
        }
    sim_memory_destroy(memory);
}

/* ---- TMA and clusters ---- */

enum { MAP_ROWS = 20, MAP_COLUMNS = 72, TILE_ROWS = 16, TILE_BYTES = TILE_ROWS * 128 };

/* Return what a tile must hold at (row, column) of an array whose element (i, j) is 1 + 100 i + j. */
static uint16_t element(int row, int column)
{
    const bool inside = row >= 0 && row < MAP_ROWS && column >= 0 && column < MAP_COLUMNS;
    return inside ? (uint16_t)(1 + 100 * row + column) : 0;
}

static void check_tile(const unsigned char *tile, int row, int column)
{
    for (int i = 0; i < TILE_ROWS; i++)
        for (int j = 0; j < 64; j++) {
            uint16_t got;
            memcpy(&got, tile + swizzled((size_t)i, 2 * (size_t)j), sizeof got);
            if (got != element(row + i, column + j))
                fail_msg("a tile at (%d, %d): (%d, %d) is %u, not %u", row, column, i, j, got,
                         element(row + i, column + j));
        }
}

/* The first block fetches a tile for both blocks. The second fetches two for itself, in the same and in the next phase;
 * the first of these begins before the first row and column of the array. One thread of each block waits in a loop,
 * then all of them. */
static void check_copies(void)
{
    uint16_t data[MAP_ROWS][MAP_COLUMNS];
    for (int i = 0; i < MAP_ROWS * MAP_COLUMNS; i++)
        data[i / MAP_COLUMNS][i % MAP_COLUMNS] = element(i / MAP_COLUMNS, i % MAP_COLUMNS);
    struct sim_memory *memory = sim_memory_create();
    const struct sim_tensor_map map = {.address = put(memory, data, sizeof data),
                                       .sizes = {MAP_COLUMNS, MAP_ROWS},
                                       .row_bytes = sizeof data[0],
                                       .box = {64, TILE_ROWS},
                                       .steps = {1, 1},
                                       .rank = MAP_RANK,
                                       .swizzle = MAP_SWIZZLE_128B};
    const uint64_t out = put(memory, NULL, 6 * TILE_BYTES);
#define COPY "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
#define EXPECT "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r4;"
#define AWAIT                                                                                      \
    "{ again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], %r5; @!%p2 bra again; }"
    const struct kernel_launch launch = {
        .bounds =
            ".maxntid 128, 1, 1\n.minnctapersm 1\n.explicitcluster\n.reqnctapercluster 2, 1, 1",
        .declarations = ".shared .align 8 .b8 m[8]; .shared .align 1024 .b8 s[6144];",
        .body =
            "mov.u32 %r0, %tid.x; mov.u32 %r1, m; mov.u32 %r2, s; mov.u32 %r3, %cluster_ctarank;"
            "mov.u32 %r12, %ctaid.x; setp.ne.s32 %p0, %r0, 0; mov.u32 %r4, 2; mov.u32 %r5, 0;"
            "@%p0 bra made; mbarrier.init.shared::cta.b64 [%r1], %r4;"
            "fence.mbarrier_init.release.cluster;"
            "made: barrier.cluster.arrive; barrier.cluster.wait;"
            "mov.b64 %d0, k_map; cvta.param.u64 %d1, %d0; setp.eq.s32 %p1, %r3, 0;"
            "add.s32 %r10, %r2, 2048; add.s32 %r13, %r2, 4096; mov.u32 %r8, 8; mov.u32 %r9, 16; "
            "mov.u16 %h0, 3;"
            "mov.u32 %r6, -4; mov.u32 %r7, -8; @%p0 bra all; @%p1 bra first;"
            "mov.u32 %r4, 4096;" EXPECT COPY " [%r10], [%d1, {%r7, %r6}], [%r1];"
            "bra.uni both;"
            "first: mov.u32 %r4, 2048;" EXPECT
            "{ .reg .b32 there; mapa.shared::cluster.u32 there, %r1, 1;"
            "mbarrier.arrive.shared::cluster.b64 _, [there]; mapa.shared::cluster.u32 there, %r1, "
            "0; mbarrier.arrive.shared::cluster.b64 _, [there]; }" COPY
            ".multicast::cluster [%r2], [%d1, {%r9, %r8}], [%r1], %h0;"
            "both:" AWAIT "@%p1 bra all; mov.u32 %r4, 2048; mov.u32 %r5, 1;" EXPECT
            "mov.u32 %r4, 0;" EXPECT COPY " [%r13], [%d1, {%r9, %r8}], [%r1];" AWAIT
            "mov.u32 %r5, 0; all: @%p1 bra wait; bar.sync 0; mov.u32 %r5, 1; wait:" AWAIT
            "shl.b32 %r11, %r0, 4; add.s32 %r2, %r2, %r11; mul.lo.s32 %r12, %r12, 6144;"
            "add.s32 %r12, %r12, %r11; ld.param.u64 %d2, [k_0]; mul.wide.u32 %d3, %r12, 1;"
            "add.s64 %d2, %d2, %d3; ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r2];"
            "st.global.v4.b32 [%d2], {%r20, %r21, %r22, %r23}; @%p1 bra end;"
            "ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r2+2048];"
            "st.global.v4.b32 [%d2+2048], {%r20, %r21, %r22, %r23};"
            "ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r2+4096];"
            "st.global.v4.b32 [%d2+4096], {%r20, %r21, %r22, %r23};"
            "end: barrier.cluster.arrive; barrier.cluster.wait;",
        .grid = 2,
        .block = THREADS,
        .params = {out},
        .param_count = 1,
        .map = &map,
        .memory = memory};
    kernel_must_run(&launch);
    check_tile(look(memory, out), 8, 16);
    check_tile(look(memory, out + 3 * TILE_BYTES), 8, 16);
    check_tile(look(memory, out + 4 * TILE_BYTES), -4, -8);
    check_tile(look(memory, out + 5 * TILE_BYTES), 8, 16);
    sim_memory_destroy(memory);
}

/* ---- what lanes agree on ---- */

static void check_votes(void)
{
    struct sim_memory *memory = sim_memory_create();
    const uint64_t out = put(memory, NULL, 32 * 32);
    /* All lanes vote, then each half with its own mask: only lane 20 has the predicate, then all but 17, then 5. */
    const struct kernel_launch launch = {
        .body = "mov.u32 %r0, %tid.x; setp.eq.s32 %p0, %r0, 20; mul.lo.s32 %r1, %r0, 7;"
                "and.b32 %r1, %r1, 31; sub.s32 %r1, %r1, 40; mov.u32 %r9, -1;"
                "vote.sync.any.pred %p1, %p0, %r9; selp.u32 %r2, 1, 0, %p1;"
                "redux.sync.max.s32 %r3, %r1, %r9; setp.lt.s32 %p2, %r0, 16; @%p2 bra low;"
                "mov.u32 %r8, -65536; bra.uni on; low: mov.u32 %r8, 65535; on:"
                "vote.sync.any.pred %p3, %p0, %r8; selp.u32 %r4, 1, 0, %p3;"
                "redux.sync.max.s32 %r5, %r0, %r8; setp.ne.s32 %p3, %r0, 17;"
                "vote.sync.ballot.b32 %r6, %p3, %r8; setp.eq.s32 %p3, %r0, 5;"
                "vote.sync.ballot.b32 %r7, %p3, %r8; mul.wide.u32 %d1, %r0, 32;"
                "ld.param.u64 %d0, [k_0]; add.s64 %d0, %d0, %d1;"
                "st.global.v4.u32 [%d0], {%r2, %r3, %r4, %r5};"
                "st.global.u32 [%d0+16], %r6; st.global.u32 [%d0+20], %r7;",
        .params = {out},
        .param_count = 1,
        .memory = memory};
    kernel_must_run(&launch);
    const uint32_t(*got)[8] = look(memory, out);
    for (uint32_t lane = 0; lane < 32; lane++) {
        const bool low = lane < 16;
        const uint32_t want[6] = {
            1, (uint32_t)-9, !low, low ? 15 : 31, low ? 0xffff : 0xfffd0000, low ? 1u << 5 : 0};
        assert_memory_equal(got[lane], want, sizeof want);
    }
    sim_memory_destroy(memory);
}

/* ---- barriers of some warps, and registers that go from one warpgroup to another ---- */

static void check_warpgroups(void)
{
    struct sim_memory *memory = sim_memory_create();
    const uint64_t out = put(memory, NULL, 256 * 4);
    /* Each warpgroup reverses its own words, one more time than its number. */
    const struct kernel_launch launch = {
        .declarations = ".shared .align 16 .b8 s[1024];",
        .body = "mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 7; setp.eq.s32 %p0, %r1, 0;"
                "shl.b32 %r2, %r0, 2; mov.u32 %r3, s; add.s32 %r2, %r3, %r2; xor.b32 %r4, %r0, 127;"
                "shl.b32 %r4, %r4, 2; add.s32 %r4, %r3, %r4; mov.u32 %r5, %r0; @%p0 bra first;"
                "setmaxnreg.dec.sync.aligned.u32 40; { again: st.shared.u32 [%r2], %r5;"
                "bar.sync 2, 128; ld.shared.u32 %r5, [%r4]; bar.sync 2, 128; sub.s32 %r1, %r1, 1;"
                "setp.ge.s32 %p1, %r1, 0; @%p1 bra again; } bra.uni out;"
                "first: setmaxnreg.inc.sync.aligned.u32 232; { again: st.shared.u32 [%r2], %r5;"
                "bar.sync 1, 128; ld.shared.u32 %r5, [%r4]; bar.sync 1, 128; sub.s32 %r1, %r1, 1;"
                "setp.ge.s32 %p1, %r1, 0; @%p1 bra again; }"
                "out: ld.param.u64 %d0, [k_0]; mul.wide.u32 %d1, %r0, 4; add.s64 %d0, %d0, %d1;"
                "st.global.u32 [%d0], %r5;",
        .block = 256,
        .params = {out},
        .param_count = 1,
        .memory = memory};
    kernel_must_run(&launch);
    const uint32_t *got = look(memory, out);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(got[i], i < 128 ? i ^ 127 : i);
    sim_memory_destroy(memory);
}

void run_sm90_forms(void (*seen)(const struct sim_module *module))
{
    kernel_seen = seen;
    for (size_t i = 0; i < sizeof products_of / sizeof *products_of; i++)
        check_product(&products_of[i]);
    check_copies();
    check_votes();
    check_warpgroups();
}
