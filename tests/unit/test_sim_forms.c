/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sim_forms.c: every form that the machine executes, against C: plain operands by the table of sim_forms.c;
 * memory, shuffles, matrices, barriers and parameters here. A row without a test fails.
 */
#include "sim_kernel.h"

#include "sim_forms.h"

/* ---- parameters and special registers ---- */

static void simulated_threads_know_where_they_are(void **state)
{
    (void)state;
    struct sim_memory *memory = sim_memory_create();
    const uint64_t out = put(memory, NULL, 3 * 64 * 32);
    /* ld.param.s32 widens; the other loads read the low half of a 64-bit parameter. */
    const struct kernel_launch launch = {
        .declarations = ".shared .align 4 .b8 first[20]; .shared .align 16 .b8 s[4];",
        .body = "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;"
                "mov.u32 %r3, %nctaid.x; mov.u32 %r4, %laneid; mov.u32 %r5, s;"
                "mov.u32 %r6, %tid.y; mov.u32 %r7, %ctaid.z;"
                "mad.lo.s32 %r10, %r1, %r2, %r0; ld.param.u64 %d0, [k_0];"
                "mul.wide.u32 %d1, %r10, 32; add.s64 %d1, %d0, %d1;"
                "ld.param.s32 %d2, [k_1]; cvt.u32.u64 %r11, %d2; shr.u64 %d2, %d2, 32;"
                "cvt.u32.u64 %r12, %d2; ld.param.f32 %r13, [k_1]; ld.param.u32 %r14, [k_1+4];"
                "mad.lo.s32 %r5, %r7, 1000, %r5; mad.lo.s32 %r5, %r6, 1000, %r5;"
                "st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4};"
                "st.global.v4.u32 [%d1+16], {%r5, %r12, %r13, %r14};",
        .grid = 3,
        .block = 64,
        .params = {out, 0x1234567880000001},
        .param_count = 2,
        .memory = memory};
    kernel_must_run(&launch);
    const uint32_t *got = look(memory, out);
    for (uint32_t i = 0; i < 3 * 64; i++, got += 8) {
        const uint32_t want[8] = {i / 64, 64, 3, i % 32, 32, 0xffffffff, 0x80000001, 0x12345678};
        assert_memory_equal(got, want, sizeof want);
    }
    sim_memory_destroy(memory);
}

/* ---- memory: bytes that go through every form of load and store ---- */

static const struct {
    const char *load, *store; /* load and store of the addresses %d1 and %d2, or %r1 and %r2 */
    uint32_t bytes;           /* bytes per lane */
} passages[] = {
    {"ld.global.u16 %h0, [%d1];", "st.global.u16 [%d2], %h0;", 2},
    {"ld.global.u16 %h0, [%d1]; ld.global.u16 %h1, [%d1+2]; ld.global.u16 %h2, [%d1+4]; "
     "ld.global.u16 %h3, [%d1+6];",
     "st.global.v4.u16 [%d2], {%h0, %h1, %h2, %h3};", 8},
    {"ld.global.u8 %r3, [%d1]; ld.global.u8 %r4, [%d1+1];",
     "st.global.u8 [%d2], %r3; st.global.u8 [%d2+1], %r4;", 2},
    {"ld.global.u8 %r3, [%d1]; ld.global.u8 %r4, [%d1+1]; shl.b32 %r4, %r4, 8; or.b32 %r3, %r3, "
     "%r4;",
     "cvt.u16.u32 %h0, %r3; st.global.u16 [%d2], %h0;", 2},
    {"ld.global.s8 %h0, [%d1]; ld.global.u8 %r4, [%d1+1]; shl.b32 %r4, %r4, 8;",
     "cvt.u32.u16 %r3, %h0; and.b32 %r3, %r3, 255; or.b32 %r3, %r3, %r4; cvt.u16.u32 %h1, %r3;"
     "st.global.u16 [%d2], %h1; add.s16 %h0, %h0, 128; cvt.u32.u16 %r3, %h0;"
     "setp.gt.u32 %p0, %r3, 255; @%p0 trap;",
     2},
    {"ld.global.u32 %r3, [%d1];", "st.global.u32 [%d2], %r3;", 4},
    {"ld.global.u32 %d3, [%d1];",
     "cvt.u32.u64 %r3, %d3; st.global.u32 [%d2], %r3; shr.s64 %d4, %d3, 32;"
     "setp.gt.u64 %p0, %d4, 0; @%p0 trap;",
     4},
    {"ld.global.u32 %r3, [%d1]; red.global.max.u32 [%d1], %r3;", "st.global.u32 [%d2], %r3;", 4},
    {"ld.global.f32 %r3, [%d1];", "st.global.f32 [%d2], %r3;", 4},
    {"ld.global.s32 %d3, [%d1];",
     "cvt.u32.u64 %r3, %d3; st.global.u32 [%d2], %r3; shr.s64 %d4, %d3, 31; add.s64 %d4, %d4, 1;"
     "setp.gt.u64 %p0, %d4, 1; @%p0 trap;",
     4},
    {"ld.global.v2.u32 {%r3, %r4}, [%d1];", "st.global.u32 [%d2], %r3; st.global.u32 [%d2+4], %r4;",
     8},
    {"ld.global.v2.f32 {%r3, %r4}, [%d1];", "st.global.f32 [%d2], %r3; st.global.f32 [%d2+4], %r4;",
     8},
    {"ld.global.v2.u32 {%r3, %r4}, [%d1];", "st.global.v2.u32 [%d2], {%r3, %r4};", 8},
    {"ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%d1];",
     "st.global.v4.u32 [%d2], {%r3, %r4, %r5, %r6};", 16},
    {"ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%d1];",
     "st.global.v4.f32 [%d2], {%r3, %r4, %r5, %r6};", 16},
    {"ld.global.L1::no_allocate.v4.u32 {%r3, %r4, %r5, %r6}, [%d1];",
     "st.global.v4.u32 [%d2], {%r3, %r4, %r5, %r6};", 16},
    {"ld.global.v2.u32 {%r3, %r4}, [%d1]; st.shared.u32 [%r1], %r3; st.shared.u32 [%r1+4], %r4;"
     "ld.shared.v2.u32 {%r5, %r6}, [%r1]; ld.shared.v2.f32 {%r7, %r8}, [%r1];",
     "st.global.u32 [%d2], %r5; st.global.u32 [%d2+4], %r8;", 8},
    {"ld.global.v2.u32 {%r3, %r4}, [%d1]; st.shared.v2.f32 [%r1], {%r3, %r4};"
     "ld.shared.v2.u32 {%r5, %r6}, [%r1];",
     "st.global.v2.f32 [%d2], {%r5, %r6};", 8},
    {"ld.global.v4.f32 {%r3, %r4, %r5, %r6}, [%d1];",
     "st.global.cs.v4.u32 [%d2], {%r3, %r4, %r5, %r6};", 16},
    {"ld.global.u32 %r3, [%d1]; st.shared.u32 [%r1], %r3; ld.shared.u32 %r4, [%r1];",
     "st.global.u32 [%d2], %r4;", 4},
    {"ld.global.u32 %r3, [%d1]; st.shared.f32 [%r1], %r3; ld.shared.f32 %r4, [%r1];",
     "st.global.u32 [%d2], %r4;", 4},
    {"ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%d1]; st.shared.v4.u32 [%r1], {%r3, %r4, %r5, %r6};"
     "ld.shared.v4.f32 {%r7, %r8, %r9, %r10}, [%r1];",
     "st.global.v4.u32 [%d2], {%r7, %r8, %r9, %r10};", 16},
    {"ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%d1]; st.shared.v4.f32 [%r1], {%r3, %r4, %r5, %r6};"
     "ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [%r1];",
     "st.global.v4.u32 [%d2], {%r7, %r8, %r9, %r10};", 16},
    {"ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%d1]; st.shared.v4.u32 [%r1], {%r3, %r4, %r5, %r6};"
     "ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [%r1];",
     "st.global.v4.u32 [%d2], {%r7, %r8, %r9, %r10};", 16},
    {"ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%d1]; st.shared.v4.f32 [%r1], {%r3, %r4, %r5, %r6};"
     "ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [%r1];",
     "st.global.v4.u32 [%d2], {%r7, %r8, %r9, %r10};", 16},
    {"ld.global.v2.u32 {%r3, %r4}, [%d1]; st.shared.u32 [%r1], %r3; st.shared.u32 [%r1+4], %r4;"
     "ld.shared.f64 %d3, [%r1]; st.shared.f64 [%r1+1024], %d3; ld.shared.u32 %r5, [%r1+1024];"
     "ld.shared.u32 %r6, [%r1+1028];",
     "st.global.u32 [%d2], %r5; st.global.u32 [%d2+4], %r6;", 8},
    {"ld.global.v2.u32 {%r3, %r4}, [%d1]; st.shared.u32 [%r1], %r3; st.shared.u32 [%r1+4], %r4;"
     "ld.shared.u64 %d3, [%r1]; st.shared.u64 [%r1+1024], %d3; ld.shared.u32 %d4, [%r1+1024];"
     "ld.shared.u32 %d5, [%r1+1028]; shl.b64 %d5, %d5, 32; or.b64 %d4, %d4, %d5;"
     "mov.b64 {%r5, %r6}, %d4;",
     "st.global.u32 [%d2], %r5; st.global.u32 [%d2+4], %r6;", 8},
    {"cp.async.cg.shared.global [%r1], [%d1], 16, 16; cp.async.wait_all;"
     "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r1];",
     "st.global.v4.u32 [%d2], {%r3, %r4, %r5, %r6};", 16},
    {"mov.u32 %r9, 4; cp.async.ca.shared.global [%r1], [%d1], 4, %r9; cp.async.wait_all;"
     "ld.shared.u32 %r3, [%r1];",
     "st.global.u32 [%d2], %r3;", 4},
};

static void simulated_memory_instructions_work(void **state)
{
    (void)state;
    unsigned char data[32 * 16];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)next_random();
    for (size_t i = 0; i < sizeof passages / sizeof *passages; i++) {
        struct sim_memory *memory = sim_memory_create();
        const uint32_t bytes = passages[i].bytes;
        const uint64_t in = put(memory, data, 32 * bytes), out = put(memory, NULL, 32 * bytes);
        char body[1500];
        snprintf(body, sizeof body,
                 "mov.u32 %%r0, %%tid.x; mul.lo.s32 %%r1, %%r0, %u; mov.u32 %%r2, dynamic;"
                 "add.s32 %%r1, %%r1, %%r2; ld.param.u64 %%d0, [k_0]; mul.wide.u32 %%d1, %%r0, %u;"
                 "ld.param.u64 %%d2, [k_1]; add.s64 %%d2, %%d2, %%d1; add.s64 %%d1, %%d0, %%d1;"
                 "%s %s",
                 bytes, bytes, passages[i].load, passages[i].store);
        const struct kernel_launch launch = {.body = body,
                                             .dynamic_shared_bytes = 4096,
                                             .params = {in, out},
                                             .param_count = 2,
                                             .memory = memory};
        kernel_must_run(&launch);
        if (memcmp(look(memory, out), data, 32 * bytes) != 0)
            fail_msg("%s %s: other bytes", passages[i].load, passages[i].store);
        sim_memory_destroy(memory);
    }
}

/* ---- cp.async in batches, with zeros behind what is fetched ---- */

static void simulated_batches_of_loads_work(void **state)
{
    (void)state;
    struct sim_memory *memory = sim_memory_create();
    const uint32_t data[4] = {11, 22, 33, 44};
    const uint64_t in = put(memory, data, sizeof data), out = put(memory, NULL, 16);
    struct kernel_launch launch = {
        .body = "ld.param.u64 %d0, [k_0]; ld.param.u64 %d1, [k_1]; mov.u32 %r1, dynamic;"
                "cp.async.cg.shared.global [%r1], [%d0], 16, 12; cp.async.commit_group;"
                "cp.async.ca.shared.global [%r1+16], [%d0+4], 8, 0; cp.async.commit_group;"
                "cp.async.wait_group 1; ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];"
                "st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r5}; exit; trap;",
        .block = 1,
        .dynamic_shared_bytes = 64,
        .params = {in, out},
        .param_count = 2,
        .memory = memory};
    kernel_must_run(&launch);
    const uint32_t want[4] = {11, 22, 33, 0};
    assert_memory_equal(look(memory, out), want, sizeof want);
    struct sim_fault fault;
    launch.body = "ld.param.u64 %d0, [k_0]; mov.u32 %r1, dynamic;"
                  "cp.async.cg.shared.global [%r1], [%d0], 16, 12; cp.async.commit_group;"
                  "cp.async.wait_group 1; ld.shared.u32 %r2, [%r1];";
    assert_int_equal(kernel_run(&launch, &fault), -1);
    assert_int_equal(fault.kind, SIM_UNWRITTEN);
    sim_memory_destroy(memory);
}

/* ---- shuffles: as the PTX text defines them ---- */

static uint32_t shuffled(bool bfly, uint32_t lane, uint32_t by, uint32_t clamp, bool *in_range)
{
    const uint32_t segment = clamp >> 8 & 31, last = (lane & segment) | (clamp & 31 & ~segment);
    const uint32_t from = bfly ? lane ^ (by & 31) : (lane & segment) | (by & 31 & ~segment);
    *in_range = from <= last;
    return *in_range ? from : lane;
}

static void simulated_shuffles_work(void **state)
{
    (void)state;
    static const uint32_t clamps[] = {0x1f, 0x1c1f, 0x181f, 0x100f, 0x1807, 0};
    for (int bfly = 0; bfly < 2; bfly++) {
        for (uint32_t by = 0; by < 34; by++) {
            for (size_t c = 0; c < sizeof clamps / sizeof *clamps; c++) {
                struct sim_memory *memory = sim_memory_create();
                const uint64_t out = put(memory, NULL, 32 * 8);
                char body[600];
                snprintf(
                    body, sizeof body,
                    "mov.u32 %%r0, %%tid.x; add.s32 %%r1, %%r0, 100; mov.u32 %%r4, %u;"
                    "shfl.sync.%s.b32 %%r2|%%p0, %%r1, %%r4, %u, -1; selp.b32 %%r3, 1, 0, %%p0;"
                    "ld.param.u64 %%d0, [k_0]; mul.wide.u32 %%d1, %%r0, 8;"
                    "add.s64 %%d0, %%d0, %%d1; st.global.u32 [%%d0], %%r2;"
                    "st.global.u32 [%%d0+4], %%r3;",
                    by, bfly ? "bfly" : "idx", clamps[c]);
                const struct kernel_launch launch = {
                    .body = body, .params = {out}, .param_count = 1, .memory = memory};
                kernel_must_run(&launch);
                const uint32_t *got = look(memory, out);
                for (uint32_t lane = 0; lane < 32; lane++) {
                    bool in_range;
                    const uint32_t from = shuffled(bfly, lane, by, clamps[c], &in_range);
                    assert_int_equal(got[2 * lane], 100 + from);
                    assert_int_equal(got[2 * lane + 1], in_range);
                }
                sim_memory_destroy(memory);
            }
        }
    }
}

/* Groups of lanes in different branches shuffle among themselves, each with its own mask. */
static void simulated_shuffles_in_branches_work(void **state)
{
    (void)state;
    struct sim_memory *memory = sim_memory_create();
    const uint64_t out = put(memory, NULL, 32 * 4);
    const struct kernel_launch launch = {
        .body = "mov.u32 %r0, %tid.x; setp.lt.s32 %p0, %r0, 16; @%p0 bra low;"
                "shfl.sync.bfly.b32 %r1|%p1, %r0, 1, 31, -65536; bra.uni out;"
                "low: shfl.sync.bfly.b32 %r1|%p1, %r0, 2, 31, 65535;"
                "out: shfl.sync.idx.b32 %r1|%p1, %r1, 31, 31, -1;"
                "ld.param.u64 %d0, [k_0]; mul.wide.u32 %d1, %r0, 4; add.s64 %d0, %d0, %d1;"
                "st.global.u32 [%d0], %r1;",
        .params = {out},
        .param_count = 1,
        .memory = memory};
    kernel_must_run(&launch);
    const uint32_t *got = look(memory, out);
    for (uint32_t lane = 0; lane < 32; lane++)
        assert_int_equal(got[lane], 30);
    sim_memory_destroy(memory);
}

/* ---- loops of different lengths: lanes part and meet ---- */

static uint32_t collatz(uint32_t n)
{
    uint32_t steps = 0;
    for (; n != 1; steps++)
        n = n & 1 ? 3 * n + 1 : n >> 1;
    return steps;
}

static void simulated_warps_diverge_and_meet(void **state)
{
    (void)state;
    struct sim_memory *memory = sim_memory_create();
    const uint64_t out = put(memory, NULL, 64 * 4 * 4);
    /* Cold code after the end of the loop, and a barrier that all must reach together. */
    const struct kernel_launch launch = {
        .body = "mov.u32 %r0, %tid.x; mov.u32 %r9, %ctaid.x; shl.b32 %r8, %r9, 6;"
                "add.s32 %r0, %r0, %r8; add.s32 %r1, %r0, 1; mov.u32 %r2, 0;"
                "loop: setp.eq.s32 %p0, %r1, 1; @%p0 bra done; add.s32 %r2, %r2, 1;"
                "and.b32 %r3, %r1, 1; setp.eq.s32 %p1, %r3, 1; @%p1 bra odd; shr.u32 %r1, %r1, 1;"
                "bra loop; done: bar.sync 0; ld.param.u64 %d0, [k_0]; mul.wide.u32 %d1, %r0, 4;"
                "add.s64 %d0, %d0, %d1; st.global.u32 [%d0], %r2; griddepcontrol.wait; "
                "griddepcontrol.launch_dependents; bar.warp.sync -1; bra.uni end;"
                "odd: mad.lo.s32 %r1, %r1, 3, 1; bra.uni loop; end:",
        .grid = 4,
        .block = 64,
        .params = {out},
        .param_count = 1,
        .memory = memory};
    kernel_must_run(&launch);
    const uint32_t *got = look(memory, out);
    for (uint32_t i = 0; i < 4 * 64; i++)
        assert_int_equal(got[i], collatz(i + 1));
    sim_memory_destroy(memory);
}

/* ---- what a block does together ---- */

static void simulated_block_instructions_work(void **state)
{
    (void)state;
    struct sim_memory *memory = sim_memory_create();
    const uint64_t out = put(memory, NULL, 70 * 32);
    const struct kernel_launch launch = {
        .body = "mov.u32 %r0, %tid.x; setp.ne.s32 %p0, %r0, 0; @%p0 bra on; mov.u32 %r1, 1000;"
                "st.shared.u32 [dynamic], %r1; st.shared.u32 [dynamic+4], -300;"
                "st.shared.u32 [dynamic+8], -7; on: setp.gt.s32 %p1, %r0, 60;"
                "bar.red.popc.u32 %r2, 0, %p1; xor.b32 %r3, %r0, 37; sub.s32 %r3, %r3, 20;"
                "atom.shared.min.s32 %r4, [dynamic], %r3; atom.shared.add.u32 %r6, [dynamic+4], 5;"
                "atom.shared.max.s32 %r4, [dynamic+8], %r3;"
                "bar.sync 0; ld.shared.u32 %r5, [dynamic]; ld.shared.u32 %r7, [dynamic+4];"
                "ld.shared.u32 %r8, [dynamic+8];"
                "ld.param.u64 %d0, [k_0]; mul.wide.u32 %d1, %r0, 32; add.s64 %d0, %d0, %d1;"
                "st.global.v4.u32 [%d0], {%r2, %r5, %r6, %r7};"
                "st.global.u32 [%d0+16], %r8;",
        .block = 70,
        .dynamic_shared_bytes = 12,
        .params = {out},
        .param_count = 1,
        .memory = memory};
    kernel_must_run(&launch);
    const uint32_t *got = look(memory, out);
    /* sum of the values that the word held before each thread added 5 to -300: all differ */
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 70; i++) {
        assert_int_equal(got[8 * i], 9);
        assert_int_equal((int32_t)got[8 * i + 1], -20);
        assert_int_equal((int32_t)got[8 * i + 3], 50);
        assert_int_equal((int32_t)got[8 * i + 4], (66 ^ 37) - 20);
        sum += got[8 * i + 2];
    }
    assert_int_equal((int32_t)sum, 70 * -300 + 5 * 69 * 70 / 2);
    sim_memory_destroy(memory);
}

/* ---- matrices ---- */

/* Return the expected element [row][column] of the k-th register's halves, as the PTX manual lays fragments out. */
static void simulated_ldmatrix_works(void **state)
{
    (void)state;
    uint16_t rows[32][8];
    for (int i = 0; i < 32 * 8; i++)
        rows[i / 8][i % 8] = (uint16_t)(i * 17);
    for (int transposed = 0; transposed < 2; transposed++) {
        struct sim_memory *memory = sim_memory_create();
        const uint64_t in = put(memory, rows, sizeof rows), out = put(memory, NULL, 32 * 16);
        char body[900];
        /* Row i of the four matrices lies at 16 (31 - i): addresses come from the lanes. */
        snprintf(body, sizeof body,
                 "mov.u32 %%r0, %%tid.x; ld.param.u64 %%d0, [k_0]; ld.param.u64 %%d1, [k_1];"
                 "mul.wide.u32 %%d2, %%r0, 16; add.s64 %%d0, %%d0, %%d2; add.s64 %%d1, %%d1, %%d2;"
                 "mov.u32 %%r1, 31; sub.s32 %%r1, %%r1, %%r0; shl.b32 %%r1, %%r1, 4;"
                 "mov.u32 %%r2, dynamic; add.s32 %%r1, %%r1, %%r2;"
                 "ld.global.v4.u32 {%%r4, %%r5, %%r6, %%r7}, [%%d0];"
                 "st.shared.v4.u32 [%%r1], {%%r4, %%r5, %%r6, %%r7}; bar.sync 0;"
                 "ldmatrix.sync.aligned.m8n8.x4%s.shared.b16 {%%r4, %%r5, %%r6, %%r7}, [%%r1];"
                 "st.global.v4.u32 [%%d1], {%%r4, %%r5, %%r6, %%r7};",
                 transposed ? ".trans" : "");
        const struct kernel_launch launch = {.body = body,
                                             .dynamic_shared_bytes = 512,
                                             .params = {in, out},
                                             .param_count = 2,
                                             .memory = memory};
        kernel_must_run(&launch);
        const uint16_t(*got)[4][2] = look(memory, out); /* lane, register, half */
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < 8; i++) {
                const int row = lane / 4, column = 2 * (lane % 4) + i % 2;
                const uint16_t want =
                    transposed ? rows[8 * (i / 2) + column][row] : rows[8 * (i / 2) + row][column];
                assert_int_equal(got[lane][i / 2][i % 2], want);
            }
        sim_memory_destroy(memory);
    }
}

static void simulated_movmatrix_works(void **state)
{
    (void)state;
    struct sim_memory *memory = sim_memory_create();
    uint16_t rows[8][8];
    for (int i = 0; i < 8 * 8; i++)
        rows[i / 8][i % 8] = (uint16_t)(i * 1017);
    const uint64_t in = put(memory, rows, sizeof rows), out = put(memory, NULL, sizeof rows);
    const struct kernel_launch launch = {
        .body = "mov.u32 %r0, %tid.x; ld.param.u64 %d0, [k_0]; ld.param.u64 %d1, [k_1];"
                "mul.wide.u32 %d2, %r0, 4; add.s64 %d0, %d0, %d2; add.s64 %d1, %d1, %d2;"
                "ld.global.u32 %r1, [%d0]; movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;"
                "st.global.u32 [%d1], %r2;",
        .params = {in, out},
        .param_count = 2,
        .memory = memory};
    kernel_must_run(&launch);
    const uint16_t(*got)[8] = look(memory, out);
    for (int i = 0; i < 8 * 8; i++)
        assert_int_equal(got[i / 8][i % 8], rows[i % 8][i / 8]);
    sim_memory_destroy(memory);
}

/* Compare a product with a plain one in double; A and B are fragments made here. */
static void check_mma(const char *statement, int depth, uint64_t (*encode)(float))
{
    float a[16][16], b[16][8], c[16][8];
    uint32_t in[32][12] = {{0}}; /* registers per lane: A from 0, B from 4, C from 8 */
    for (int i = 0; i < 16 * 16; i++)
        a[i / 16][i % 16] = (float)(int)(next_random() % 31) - 15;
    for (int i = 0; i < 16 * 8; i++) {
        b[i / 8][i % 8] = (float)(int)(next_random() % 31) / 8 - 2;
        c[i / 8][i % 8] = (float)(int)(next_random() % 1000) / 16;
    }
    for (int lane = 0; lane < 32; lane++) {
        const int group = lane / 4, pair = 2 * (lane % 4);
        for (int half = 0; half < 2; half++) {
            for (int i = 0; i < depth / 4; i++)
                in[lane][i] |= (uint32_t)encode(a[group + 8 * (i & 1)][pair + half + 8 * (i >> 1)])
                               << 16 * half;
            for (int i = 0; i < depth / 8; i++)
                in[lane][4 + i] |= (uint32_t)encode(b[pair + half + 8 * i][group]) << 16 * half;
            for (int i = 0; i < 2; i++)
                in[lane][8 + 2 * i + half] = (uint32_t)of_float(c[group + 8 * i][pair + half]);
        }
    }
    struct sim_memory *memory = sim_memory_create();
    const uint64_t from = put(memory, in, sizeof in), out = put(memory, NULL, 32 * 16);
    char body[1200];
    snprintf(body, sizeof body,
             "mov.u32 %%r0, %%tid.x; ld.param.u64 %%d0, [k_0]; ld.param.u64 %%d1, [k_1];"
             "mul.wide.u32 %%d2, %%r0, 48; add.s64 %%d0, %%d0, %%d2;"
             "mul.wide.u32 %%d2, %%r0, 16; add.s64 %%d1, %%d1, %%d2;"
             "ld.global.v4.u32 {%%r1, %%r2, %%r3, %%r4}, [%%d0];"
             "ld.global.v4.u32 {%%r5, %%r6, %%r7, %%r8}, [%%d0+16];"
             "ld.global.v4.u32 {%%r9, %%r10, %%r11, %%r12}, [%%d0+32]; %s"
             "st.global.v4.u32 [%%d1], {%%r9, %%r10, %%r11, %%r12};",
             statement);
    const struct kernel_launch launch = {
        .body = body, .params = {from, out}, .param_count = 2, .memory = memory};
    kernel_must_run(&launch);
    const float(*got)[4] = look(memory, out);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
            double want = c[row][column];
            for (int k = 0; k < depth; k++)
                want += (double)a[row][k] * b[k][column];
            assert_true((double)got[lane][i] == want); /* all sums are exact */
        }
    sim_memory_destroy(memory);
}

static void simulated_mma_multiplies(void **state)
{
    (void)state;
    check_mma("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r9, %r10, %r11, %r12},"
              "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r9, %r10, %r11, %r12};",
              16, bf16_want);
    check_mma("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r9, %r10, %r11, %r12},"
              "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r9, %r10, %r11, %r12};",
              16, f16_want);
    check_mma("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r9, %r10, %r11, %r12},"
              "{%r1, %r2}, {%r5}, {%r9, %r10, %r11, %r12};",
              8, f16_want);
}

/* ---- packing ---- */

static void simulated_registers_are_packed_and_unpacked(void **state)
{
    (void)state;
    struct sim_memory *memory = sim_memory_create();
    const uint64_t out = put(memory, NULL, 16);
    const struct kernel_launch launch = {
        .body = "mov.u32 %r0, 0x12348765; { .reg .b16 low, high; mov.b32 {low, high}, %r0;"
                "mov.b32 %r1, {high, low}; mov.u16 %h0, 7; mov.b32 %r2, {%h0, low}; }"
                "mov.b64 %d1, {%r2, 0x40000040}; shr.u64 %d2, %d1, 32; cvt.u32.u64 %r2, %d1;"
                "cvt.u32.u64 %r3, %d2; { .reg .b32 low; mov.b64 {low, %r4}, %d1; add.s32 %r4, %r4, "
                "low; }"
                "ld.param.u64 %d0, [k_0]; st.global.v4.u32 [%d0], {%r1, %r2, %r3, %r4};",
        .block = 1,
        .params = {out},
        .param_count = 1,
        .memory = memory};
    kernel_must_run(&launch);
    const uint32_t want[4] = {0x87651234, 0x87650007, 0x40000040, 0xc7650047};
    assert_memory_equal(look(memory, out), want, sizeof want);
    sim_memory_destroy(memory);
}

static void simulated_plain_instructions_compute(void **state)
{
    (void)state;
    run_plain_forms(note_met);
}

static void simulated_sm_90_instructions_work(void **state)
{
    (void)state;
    run_sm90_forms(note_met);
}

/* ---- nothing was left out ---- */

static void every_row_of_the_simulator_ran(void **state)
{
    (void)state;
    const char *const *texts;
    const size_t count = sim_opcodes(&texts);
    for (size_t i = 0; i < count; i++) {
        size_t from = 0;
        const struct sim_opcode *row;
        while ((row = sim_opcode_find(texts[i], strlen(texts[i]), &from)))
            if (!is_met(row))
                fail_msg("%s \"%s\" is in no test", row->text, row->operands);
    }
}

int main(void)
{
    kernel_seen = note_met;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulated_plain_instructions_compute),
        cmocka_unit_test(simulated_threads_know_where_they_are),
        cmocka_unit_test(simulated_memory_instructions_work),
        cmocka_unit_test(simulated_batches_of_loads_work),
        cmocka_unit_test(simulated_shuffles_work),
        cmocka_unit_test(simulated_shuffles_in_branches_work),
        cmocka_unit_test(simulated_warps_diverge_and_meet),
        cmocka_unit_test(simulated_block_instructions_work),
        cmocka_unit_test(simulated_ldmatrix_works),
        cmocka_unit_test(simulated_movmatrix_works),
        cmocka_unit_test(simulated_mma_multiplies),
        cmocka_unit_test(simulated_registers_are_packed_and_unpacked),
        cmocka_unit_test(simulated_sm_90_instructions_work),
        cmocka_unit_test(every_row_of_the_simulator_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
