/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sim_machine.c: the machine that executes PTX: what it decodes, and the faults it finds. Every fault is planted
 * in a small kernel whose twin differs only in that and runs.
 */
#include "sim_kernel.h"

#include <glob.h>

/* ---- every PTX file of the build ---- */

/* Forms that no kernel of the build uses; test_sim_forms.c runs them. After the first two come those that compilers
 * generate for expf(), comparisons of doubles and loads of two floats. */
static const char *const unused_forms[] = {
    "exit =",           "trap =",           "cvt.sat.f32.f32 r=r",
    "fma.rm.f32 r=rrr", "setp.gt.f64 p=ll", "setp.leu.f64 p=ll",
};

static void the_simulator_decodes_the_build(void **state)
{
    (void)state;
    glob_t files;
    if (glob(PTX_FOLDER "/*.ptx", 0, NULL, &files) != 0)
        fail_msg(PTX_FOLDER ": no PTX");
    for (size_t i = 0; i < files.gl_pathc; i++) {
        size_t bytes;
        struct sim_module *module;
        struct sim_fault fault;
        char *text = read_bytes(files.gl_pathv[i], &bytes);
        if (sim_module_create(text, bytes, &module, &fault))
            fail_msg("%s: %s", files.gl_pathv[i], fault.text);
        note_met(module);
        sim_module_destroy(module);
        free(text);
    }
    print_message("%zu files\n", files.gl_pathc);
    globfree(&files);
}

static bool is_listed(const struct sim_opcode *row)
{
    char spelled[128];
    snprintf(spelled, sizeof spelled, "%s %s", row->text, row->operands);
    for (size_t i = 0; i < sizeof unused_forms / sizeof *unused_forms; i++)
        if (strcmp(unused_forms[i], spelled) == 0)
            return true;
    return false;
}

/* A kernel of the build uses every row of the table, except those listed. */
static void the_simulator_has_no_dead_rows(void **state)
{
    (void)state;
    const char *const *texts;
    const size_t count = sim_opcodes(&texts);
    for (size_t i = 0; i < count; i++) {
        size_t from = 0;
        const struct sim_opcode *row;
        while ((row = sim_opcode_find(texts[i], strlen(texts[i]), &from))) {
            if (is_met(row) == is_listed(row))
                fail_msg("%s \"%s\" is %s", row->text, row->operands,
                         is_met(row) ? "used and listed as unused" : "used by no kernel");
        }
    }
    print_message("%zu opcodes\n", count);
}

/* ---- text that must be refused ---- */

static const struct {
    const char *body, *says;
} refused[] = {
    {"tcgen05.wait::ld.sync.aligned;", "line 9 of the PTX: opcode tcgen05.wait::ld.sync.aligned"},
    {"add.f16 %h0, %h1, %h2;", "opcode add.f16"},
    {"add.s32 %r0, %r1, %d2;", "\"%d2\" is no register of this operand's size"},
    {"add.s32 %r0, %r1;", "\";\" stands where \",\" should"},
    {"add.s32 %r0, %r1, %r2, %r3;", "\",\" stands where \";\" should"},
    {"add.s32 %r0, %r1, %r99;", "\"%r99\" is no register"},
    {"add.s32 %tid.x, %r1, %r2;", "\"%tid.x\" is no register"},
    {"add.f32 %r0, %r1, 0d3FF0000000000000;", "no literal of this operand's size"},
    {"add.f32 %r0, %r1, 0f3F80;", "\"0f3F80\" is no register"},
    {"mov.u32 %r0, %clock;", "\"%clock\" is no register"},
    {"bra nowhere;", "no instruction has label nowhere, which line 9 jumps to"},
    {"@%r1 bra out;", "\"%r1\" is no register of this operand's size"},
    {"@%p1 bar.sync 0;", "bar.sync under a predicate"},
    {"ld.param.u64 %d0, [k_0+4];", "8 bytes at byte 4 of a parameter of 8 bytes"},
    {"ld.param.u64 %d0, [k_1];", "\"k_1\" is no parameter"},
    {"st.global.u32 [%r1], %r0;", "\"%r1\" is no register of this operand's size"},
    {".local .align 4 .b8 depot[16];", "directive .local"},
    {".shared .align 4 .b8 late[16]; mov.u32 %r0, late; .shared .b8 later[16];",
     "a shared variable outside of a kernel's declarations"},
    {"{ add.s32 %r0, %r1, %r2;", "\"\" stands where a statement should"},
    {"mov.u32 %r1, 3;\nmov.u32 %r2, 4;\nbra.uni on;\nmov.u32 %r3, 5;\non: add.s32 %r0, %r1, %r3;",
     "line 13 of the PTX: add.s32 reads a register that nothing before it writes"},
    {"mov.b32 %r0, {%h0, %h1, %h2};", "\"{\" is no register"},
    {"{ within: add.s32 %r0, %r1, %r2; } bra within;", "no instruction has label within"},
    {"wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
     "%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15},"
     "%d0, %d1, %p0, -1, 1, 0, 0;",
     "\"-1\" is no 1, the one that is known"},
    {"mbarrier.arrive.shared::cluster.b64 %r0, [%r1];", "\"%r0\" stands where \"_\" should"},
};

static void the_simulator_refuses_what_it_does_not_know(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct sim_fault fault;
        const struct kernel_launch launch = {.body = refused[i].body, .param_count = 1};
        assert_int_equal(kernel_run(&launch, &fault), -1);
        if (fault.kind != SIM_BAD_PTX || !strstr(fault.text, refused[i].says))
            fail_msg("%s: %d \"%s\", expected \"%s\"", refused[i].body, fault.kind, fault.text,
                     refused[i].says);
    }
}

/* ---- mutations ---- */

#define AT(buffer)                                                                                 \
    "mov.u32 %r0, %tid.x; ld.param.u64 %d0, [k_" #buffer "];"                                      \
    "mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;\n"
#define SHARED ".shared .align 16 .b8 s[256];"
/* %r1: the byte of s that is the thread's own word; %r2: that of its neighbour in the next warp. */
#define OWN                                                                                        \
    "mov.u32 %r0, %tid.x; shl.b32 %r3, %r0, 2; mov.u32 %r4, s; add.s32 %r1, %r4, %r3;"             \
    "xor.b32 %r5, %r3, 128; add.s32 %r2, %r4, %r5; xor.b32 %r6, %r3, 4; add.s32 %r7, %r4, %r6;\n"

/* All threads read a word, and once more; %p0: all threads but the last. */
#define TWO_READS                                                                                  \
    OWN "st.shared.u32 [%r1], %r0; bar.sync 0; ld.shared.u32 %r9, [s]; ld.shared.u32 %r9, [s];"    \
        "setp.ne.s32 %p0, %r0, 63;"
#define READ_BY_EIGHT                                                                              \
    OWN "st.shared.u32 [%r1], %r0; bar.sync 0; shr.u32 %r8, %r0, 3; shl.b32 %r8, %r8, 2;"          \
        "add.s32 %r8, %r4, %r8; ld.shared.u32 %r9, [%r8];"
#define WRITE_BY(thread)                                                                           \
    "setp.ne.s32 %p0, %r0, " #thread "; @%p0 bra out; st.shared.u32 [%r8], %r0; out:"

#define MILLION_BARRIERS                                                                           \
    "st.shared.u32 [%r1], %r0; mov.u32 %r9, 0; again: bar.sync 0; add.s32 %r9, %r9, 1;"            \
    "setp.lt.s32 %p0, %r9, 1100000; @%p0 bra again;"

static const struct planted planted[] = {
    {"read past the end", AT(0) "ld.global.f32 %r1, [%d2+4];", AT(0) "ld.global.f32 %r1, [%d2+0];",
     NULL, 32, SIM_ILLEGAL_ADDRESS,
     "k, line 10 of the PTX, block (0, 0, 0), thread (31, 0, 0): ld.global.f32 4 bytes at 0x"},
    {"how far past the end", AT(0) "ld.global.f32 %r1, [%d2+8];", AT(0) "ret;", NULL, 32,
     SIM_ILLEGAL_ADDRESS, "which is byte 128 of an allocation of 128 bytes at 0x"},
    {"write before the start", AT(0) "st.global.f32 [%d2+-4], %r0;",
     AT(0) "st.global.f32 [%d2], %r0;", NULL, 32, SIM_ILLEGAL_ADDRESS,
     "thread (0, 0, 0): st.global.f32"},
    {"vector past the end",
     AT(0) "setp.lt.s32 %p0, %r0, 30; @%p0 bra in; bra.uni out;\n"
           "in: ld.global.v4.f32 {%r1, %r2, %r3, %r4}, [%d0+120]; out:",
     AT(0) "ld.global.v4.f32 {%r1, %r2, %r3, %r4}, [%d0+112];", NULL, 32, SIM_MISALIGNED,
     "16 bytes at 0x"},
    {"misaligned", AT(0) "ld.global.f32 %r1, [%d0+2];", AT(0) "ld.global.f32 %r1, [%d0+4];", NULL,
     32, SIM_MISALIGNED, "no multiple of 4"},
    {"null", AT(0) "mov.u64 %d3, 0; ld.global.f32 %r1, [%d3];", AT(0) "ret;", NULL, 32,
     SIM_ILLEGAL_ADDRESS, "4 bytes at 0, "},
    {"unwritten", AT(1) "ld.global.f32 %r1, [%d2];",
     AT(1) "st.global.f32 [%d2], %r0; ld.global.f32 %r1, [%d2];", NULL, 32, SIM_UNWRITTEN,
     "thread (16, 0, 0): ld.global.f32 4 bytes at 0x"},
    {"unwritten, in a row of an allocation that was used before",
     AT(1) "ld.global.u32 %r1, [%d0]; ld.global.f32 %r1, [%d2];",
     AT(1) "ld.global.u32 %r1, [%d0]; st.global.f32 [%d2], %r0; ld.global.f32 %r1, [%d2];", NULL,
     32, SIM_UNWRITTEN, "thread (16, 0, 0): ld.global.f32 4 bytes at 0x"},
    {"unwritten by half",
     AT(1) "mov.u16 %h0, 1; st.global.u16 [%d0+64], %h0; ld.global.u32 %r1, [%d0+64];",
     AT(1) "mov.u16 %h0, 1; st.global.u16 [%d0+64], %h0; st.global.u16 [%d0+66], %h0;"
           "ld.global.u32 %r1, [%d0+64];",
     NULL, 1, SIM_UNWRITTEN, "byte 64 of an allocation of 128 bytes"},
    {"shared out of bounds", OWN "st.shared.u32 [%r1+132], %r0;",
     OWN "st.shared.u32 [%r1+128], %r0;", SHARED, 32, SIM_ILLEGAL_ADDRESS,
     "thread (31, 0, 0): st.shared.u32 4 bytes at byte 256"},
    {"shared misaligned", OWN "st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0};",
     OWN "shl.b32 %r8, %r0, 4; st.shared.v4.u32 [%r8], {%r0, %r0, %r0, %r0};", SHARED, 16,
     SIM_MISALIGNED, "thread (1, 0, 0): st.shared.v4.u32 16 bytes at byte 4"},
    {"shared unwritten", OWN "ld.shared.u32 %r9, [%r1];",
     OWN "st.shared.u32 [%r1], %r0; ld.shared.u32 %r9, [%r1];", SHARED, 32, SIM_UNWRITTEN,
     "reads byte 0 of shared memory, which nothing wrote"},
    {"race: read after write", OWN "st.shared.u32 [%r1], %r0; ld.shared.u32 %r9, [%r2];",
     OWN "st.shared.u32 [%r1], %r0; bar.sync 0; ld.shared.u32 %r9, [%r2];", SHARED, 64,
     SIM_UNWRITTEN, "which nothing wrote"},
    {"race: read after write, seen",
     OWN "st.shared.u32 [%r1], %r0; setp.lt.s32 %p0, %r0, 32;"
         "@%p0 bra out; ld.shared.u32 %r9, [%r2]; out:",
     OWN "st.shared.u32 [%r1], %r0; bar.sync 0; setp.lt.s32 %p0, %r0, 32;"
         "@%p0 bra out; ld.shared.u32 %r9, [%r2]; out:",
     SHARED, 64, SIM_SHARED_RACE,
     "thread (32, 0, 0): ld.shared.u32 reads byte 0 of shared memory, which thread 0 wrote, "
     "without a barrier between"},
    {"race: write after read",
     OWN "st.shared.u32 [%r1], %r0; bar.sync 0; ld.shared.u32 %r9, [%r1];"
         "setp.lt.s32 %p0, %r0, 32; @%p0 bra out; st.shared.u32 [%r2], %r0; out:",
     OWN "st.shared.u32 [%r1], %r0; bar.sync 0; ld.shared.u32 %r9, [%r1]; bar.sync 0;"
         "setp.lt.s32 %p0, %r0, 32; @%p0 bra out; st.shared.u32 [%r2], %r0; out:",
     SHARED, 64, SIM_SHARED_RACE,
     "thread (32, 0, 0): st.shared.u32 writes byte 0 of shared memory, which thread 0 read"},
    {"race: write after many reads",
     OWN "st.shared.u32 [%r1], %r0; bar.sync 0; ld.shared.u32 %r9, [s];"
         "setp.ne.s32 %p0, %r0, 63; @%p0 bra out; st.shared.u32 [s], %r0; out:",
     OWN "st.shared.u32 [%r1], %r0; bar.sync 0; ld.shared.u32 %r9, [s]; bar.sync 0;"
         "setp.ne.s32 %p0, %r0, 63; @%p0 bra out; st.shared.u32 [s], %r0; out:",
     SHARED, 64, SIM_SHARED_RACE, "and others read"},
    {"race: write after reads of two warps, one of them ordered",
     TWO_READS "bar.warp.sync -1; @%p0 bra out; st.shared.u32 [s], %r0; out:",
     TWO_READS "bar.sync 0; @%p0 bra out; st.shared.u32 [s], %r0; out:", SHARED, 64,
     SIM_SHARED_RACE, "and others read"},
    /* Eight neighbours read a word; then one of them writes: the first, which the record of the last reader would not
     * show, and so on. */
    {"race: write by the last of the first readers", READ_BY_EIGHT WRITE_BY(7),
     READ_BY_EIGHT "bar.sync 0;" WRITE_BY(7), SHARED, 32, SIM_SHARED_RACE, "and others read"},
    {"race: write by the first of some readers", READ_BY_EIGHT WRITE_BY(8),
     READ_BY_EIGHT "bar.sync 0;" WRITE_BY(8), SHARED, 32, SIM_SHARED_RACE, "and others read"},
    {"race: write by the last of some readers", READ_BY_EIGHT WRITE_BY(15),
     READ_BY_EIGHT "bar.sync 0;" WRITE_BY(15), SHARED, 32, SIM_SHARED_RACE, "and others read"},
    {"race: write by the first of the last readers", READ_BY_EIGHT WRITE_BY(24),
     READ_BY_EIGHT "bar.sync 0;" WRITE_BY(24), SHARED, 32, SIM_SHARED_RACE, "and others read"},
    {"race: two writes", OWN "st.shared.u32 [s], %r0;",
     OWN "setp.ne.s32 %p0, %r0, 0; @%p0 bra out; st.shared.u32 [s], %r0; out:", SHARED, 32,
     SIM_SHARED_RACE, "thread (1, 0, 0): st.shared.u32 writes byte 0"},
    {"race within a warp: lock-step is no order",
     OWN "st.shared.u32 [%r1], %r0; ld.shared.u32 %r9, [%r7];",
     OWN "st.shared.u32 [%r1], %r0; bar.warp.sync -1; ld.shared.u32 %r9, [%r7];", SHARED, 32,
     SIM_SHARED_RACE, "thread (0, 0, 0): ld.shared.u32 reads byte 4"},
    {"race within a warp: nor is a shuffle",
     OWN "st.shared.u32 [%r1], %r0; shfl.sync.bfly.b32 %r9|%p1, %r0, 1, 31, -1;"
         "ld.shared.u32 %r9, [%r7];",
     OWN "st.shared.u32 [%r1], %r0; shfl.sync.bfly.b32 %r9|%p1, %r0, 1, 31, -1;"
         "bar.warp.sync -1; ld.shared.u32 %r9, [%r7];",
     SHARED, 32, SIM_SHARED_RACE, "without a barrier between"},
    {"bar.warp.sync orders one warp only",
     OWN "st.shared.u32 [%r1], %r0; bar.warp.sync -1; setp.lt.s32 %p0, %r0, 32;"
         "@%p0 bra out; ld.shared.u32 %r9, [%r2]; out:",
     OWN "st.shared.u32 [%r1], %r0; bar.sync 0; setp.lt.s32 %p0, %r0, 32;"
         "@%p0 bra out; ld.shared.u32 %r9, [%r2]; out:",
     SHARED, 64, SIM_SHARED_RACE, "which thread 0 wrote"},
    {"race: after so many barriers that the count of time begins anew",
     OWN MILLION_BARRIERS "ld.shared.u32 %r10, [%r7]; st.shared.u32 [%r1], %r0;",
     OWN MILLION_BARRIERS "ld.shared.u32 %r10, [%r7]; bar.sync 0; st.shared.u32 [%r1], %r0;",
     SHARED, 32, SIM_SHARED_RACE, "thread (0, 0, 0): st.shared.u32 writes byte 0"},
    {"race: atomic and plain", OWN "st.shared.u32 [s], 5; atom.shared.min.s32 %r9, [s], %r0;",
     OWN "setp.ne.s32 %p0, %r0, 0; @%p0 bra on; st.shared.u32 [s], 5; on: bar.sync 0;"
         "atom.shared.min.s32 %r9, [s], %r0;",
     SHARED, 32, SIM_SHARED_RACE, "byte 0 of shared memory"},
    {"race: ldmatrix",
     OWN "shl.b32 %r8, %r0, 4; and.b32 %r8, %r8, 127; st.shared.u32 [%r1], %r0;"
         "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r9, %r10, %r11, %r12}, [%r8];",
     OWN "shl.b32 %r8, %r0, 4; and.b32 %r8, %r8, 127; st.shared.u32 [%r1], %r0; bar.sync 0;"
         "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r9, %r10, %r11, %r12}, [%r8];",
     SHARED, 32, SIM_SHARED_RACE, "ldmatrix"},
    {"cp.async not waited for",
     OWN AT(0) "cp.async.ca.shared.global [%r1], [%d2], 4, 4;"
               "bar.sync 0; ld.shared.u32 %r9, [%r1];",
     OWN AT(0) "cp.async.ca.shared.global [%r1], [%d2], 4, 4; cp.async.wait_all;"
               "bar.sync 0; ld.shared.u32 %r9, [%r1];",
     SHARED, 32, SIM_UNWRITTEN, "which a cp.async that nothing waited for writes"},
    {"cp.async overtaken",
     OWN AT(0) "cp.async.ca.shared.global [%r1], [%d2], 4, 4; bar.sync 0;"
               "st.shared.u32 [%r1], %r0; cp.async.wait_all;",
     OWN AT(0) "cp.async.ca.shared.global [%r1], [%d2], 4, 4; bar.sync 0;"
               "cp.async.wait_all; st.shared.u32 [%r1], %r0;",
     SHARED, 32, SIM_SHARED_RACE, "which thread 0 still writes by cp.async"},
    {"cp.async without a barrier",
     OWN AT(0) "cp.async.ca.shared.global [%r1], [%d2], 4, 4; cp.async.wait_all;"
               "ld.shared.u32 %r9, [%r7];",
     OWN AT(0) "cp.async.ca.shared.global [%r1], [%d2], 4, 4; cp.async.wait_all; bar.sync 0;"
               "ld.shared.u32 %r9, [%r7];",
     SHARED, 32, SIM_SHARED_RACE, "thread 1 wrote"},
    {"cp.async out of bounds", OWN AT(0) "cp.async.ca.shared.global [%r1], [%d2+4], 4, 4;",
     OWN AT(0) "mov.u32 %r9, 31; sub.s32 %r9, %r9, %r0; min.s32 %r9, %r9, 1; shl.b32 %r9, %r9, 2;"
               "cp.async.ca.shared.global [%r1], [%d2+4], 4, %r9;",
     SHARED, 32, SIM_ILLEGAL_ADDRESS, "thread (31, 0, 0): cp.async"},
    {"barrier in a branch of some lanes",
     OWN "setp.lt.s32 %p0, %r0, 16; @%p0 bra low; bar.sync 0; bra.uni out; low: bar.sync 0; out:",
     OWN "setp.lt.s32 %p0, %r0, 16; @%p0 bra low; bra.uni out; low: out: bar.sync 0;", SHARED, 32,
     SIM_DIVERGENT_BARRIER, "of the warp wait here for lanes that wait elsewhere"},
    {"barrier after some lanes have ended",
     OWN "setp.lt.s32 %p0, %r0, 16; @%p0 bra out; bar.sync 0; out:",
     OWN "bar.sync 0; setp.lt.s32 %p0, %r0, 16; @%p0 bra out; out:", SHARED, 32,
     SIM_DIVERGENT_BARRIER, "thread (0, 0, 0): bar.sync the thread has ended"},
    {"barrier after a warp has ended",
     OWN "setp.lt.s32 %p0, %r0, 32; @%p0 bra out; bar.sync 0; out:",
     OWN "bar.sync 0; setp.lt.s32 %p0, %r0, 32; @%p0 bra out; out:", SHARED, 64,
     SIM_DIVERGENT_BARRIER, "threads from 0 on have ended"},
    {"shuffle without its lanes",
     OWN "setp.lt.s32 %p0, %r0, 16; @%p0 bra out;"
         "shfl.sync.bfly.b32 %r9|%p1, %r0, 16, 31, -1; out:",
     OWN "setp.lt.s32 %p0, %r0, 16; @%p0 bra out;"
         "shfl.sync.bfly.b32 %r9|%p1, %r0, 8, 31, -65536; out:",
     SHARED, 32, SIM_UNWRITTEN, "takes from lane 0, which is not here"},
    {"shuffle of a lane that is not in its mask",
     OWN "shfl.sync.bfly.b32 %r9|%p1, %r0, 1, 31, 65535;",
     OWN "shfl.sync.bfly.b32 %r9|%p1, %r0, 1, 31, -1;", SHARED, 32, SIM_DIVERGENT_BARRIER,
     "lane 16 is not in its own member mask 0000ffff"},
    {"endless loop", OWN "again: bra again;", OWN "again: setp.lt.s32 %p0, %r0, 0; @%p0 bra again;",
     SHARED, 32, SIM_TRAP, "without an end"},
    {"trap", OWN "setp.eq.s32 %p0, %r0, 7; @%p0 trap;", OWN "setp.eq.s32 %p0, %r0, 77; @%p0 trap;",
     SHARED, 32, SIM_TRAP, "thread (7, 0, 0): trap the thread traps"},
};

/* Block 0 writes 32 halves from byte 2 on; then the first thread of block 1 runs the code that follows. */
#define ROW_OF_HALVES                                                                              \
    AT(1)                                                                                          \
    "mov.u16 %h0, 1; mov.u32 %r1, %ctaid.x; setp.ne.s32 %p0, %r1, 0; @%p0 bra other;"              \
    "mul.wide.u32 %d1, %r0, 2; add.s64 %d2, %d0, %d1; ld.global.u32 %r2, [%d0+4];"                 \
    "st.global.u16 [%d2+2], %h0; bra.uni out;"                                                     \
    "other: setp.ne.s32 %p0, %r0, 0; @%p0 bra out;"

/* The same in a grid of two blocks. */
static const struct planted planted_in_two[] = {
    {"two blocks write", AT(1) "st.global.u32 [%d2], %r0;",
     AT(1) "mov.u32 %r1, %ctaid.x; shl.b32 %r1, %r1, 2; add.s32 %r1, %r1, %r0;"
           "mul.wide.u32 %d1, %r1, 4; add.s64 %d2, %d0, %d1; st.global.u32 [%d2], %r0;",
     NULL, 4, SIM_SHARED_RACE,
     "byte 0 of an allocation of 128 bytes at 0x10000000020000, which block (0, 0, 0) of the same "
     "launch wrote"},
    {"two blocks write a row of an allocation that was used before",
     AT(1) "mov.u32 %r1, %ctaid.x; setp.ne.s32 %p0, %r1, 0; @%p0 bra on;"
           "ld.global.u32 %r1, [%d0+4]; on: st.global.u32 [%d2], %r0;",
     AT(1) "mov.u32 %r1, %ctaid.x; setp.ne.s32 %p0, %r1, 0; @%p0 bra on;"
           "ld.global.u32 %r1, [%d0+4]; st.global.u32 [%d2], %r0; on:",
     NULL, 32, SIM_SHARED_RACE, "block (1, 0, 0), thread (0, 0, 0): st.global.u32 at 0x"},
    {"a row that ends within a word", ROW_OF_HALVES "st.global.u16 [%d0+2], %h0; out:",
     ROW_OF_HALVES "st.global.u16 [%d0], %h0; out:", NULL, 32, SIM_SHARED_RACE,
     "block (1, 0, 0), thread (0, 0, 0): st.global.u16 at 0x"},
    {"two blocks write halves of a word", AT(1) "mov.u16 %h0, 1; st.global.u16 [%d0+2], %h0;",
     AT(1) "mov.u16 %h0, 1; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d1, %r1, 2;"
           "add.s64 %d2, %d0, %d1; st.global.u16 [%d2], %h0;",
     NULL, 1, SIM_SHARED_RACE, "st.global.u16 at 0x"},
    {"a block reads what another writes",
     AT(0) "mov.u32 %r1, %ctaid.x; setp.ne.s32 %p0, %r1, 0; @%p0 bra on; st.global.u32 [%d2], %r0;"
           "on: ld.global.u32 %r1, [%d2];",
     AT(0) "mov.u32 %r1, %ctaid.x; setp.ne.s32 %p0, %r1, 0; @%p0 bra on; st.global.u32 [%d2], %r0;"
           "ld.global.u32 %r1, [%d2]; on:",
     NULL, 32, SIM_SHARED_RACE, "block (1, 0, 0), thread (0, 0, 0): ld.global.u32 at 0x"},
    {"a block fetches what another writes",
     OWN AT(0) "mov.u32 %r1, %ctaid.x; setp.ne.s32 %p0, %r1, 0; @%p0 bra on;"
               "st.global.u32 [%d2], %r0; bra.uni out;"
               "on: cp.async.ca.shared.global [s], [%d2], 4, 4; out:",
     OWN AT(0) "mov.u32 %r1, %ctaid.x; setp.ne.s32 %p0, %r1, 0; @%p0 bra on;"
               "st.global.u32 [%d2], %r0; bra.uni out;"
               "on: cp.async.ca.shared.global [s], [%d2+4], 4, 4; out:",
     SHARED, 1, SIM_SHARED_RACE, "cp.async.ca.shared.global at 0x"},
    {"blocks change a word, one reads it",
     AT(0) "red.global.max.u32 [%d0], %r0; ld.global.u32 %r1, [%d0];",
     AT(0) "red.global.max.u32 [%d0], %r0; ld.global.u32 %r1, [%d0+4];", NULL, 1, SIM_SHARED_RACE,
     "which blocks of the same launch change by atomic instructions"},
    {"shared of another block",
     OWN "mov.u32 %r9, %ctaid.x; setp.ne.s32 %p0, %r9, 0;"
         "@%p0 bra later; st.shared.u32 [%r1], %r0;"
         "later: ld.shared.u32 %r9, [%r1];",
     OWN "st.shared.u32 [%r1], %r0; ld.shared.u32 %r9, [%r1];", SHARED, 32, SIM_UNWRITTEN,
     "block (1, 0, 0), thread (0, 0, 0): ld.shared.u32 reads byte 0"},
};

static void the_simulator_finds_planted_faults(void **state)
{
    (void)state;
    const size_t one = sizeof planted / sizeof *planted;
    const size_t two = sizeof planted_in_two / sizeof *planted_in_two;
    for (size_t i = 0; i < one; i++)
        check_planted(&planted[i], &(struct kernel_launch){.grid = 1});
    for (size_t i = 0; i < two; i++)
        check_planted(&planted_in_two[i], &(struct kernel_launch){.grid = 2});
    print_message("%zu faults and their twins\n", one + two);
}

/* ---- launches that cannot be ---- */

static const struct {
    const char *name, *declarations;
    uint32_t block, dynamic, registers;
    size_t extra_params;
    enum sim_fault_kind kind;
    const char *says;
} launches[] = {
    {"as it should be", SHARED, 256, 1024, 32, 0, SIM_OK, ""},
    {"threads", SHARED, 513, 0, 32, 0, SIM_BAD_LAUNCH,
     "513 threads a block, sm_75 has at most 512"},
    {"registers", SHARED, 512, 0, 136, 0, SIM_NO_REGISTERS,
     "512 threads of 136 registers, a block of sm_75 has 65536"},
    {"registers, all of them", SHARED, 512, 0, 128, 0, SIM_OK, ""},
    {"shared", SHARED, 32, 48 << 10, 32, 0, SIM_BAD_LAUNCH,
     "49408 bytes of shared memory, a block of sm_75 has 49152"},
    {"shared, all of it", SHARED, 32, (48 << 10) - 256, 32, 0, SIM_OK, ""},
    {"parameters", SHARED, 32, 0, 32, 1, SIM_BAD_LAUNCH,
     "24 bytes of parameters, the PTX declares 16"},
};

static void limits_of_the_simulator_are_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        struct kernel_launch launch = {.declarations = launches[i].declarations,
                                       .body = "mov.u32 %r0, s;",
                                       .block = launches[i].block,
                                       .dynamic_shared_bytes = launches[i].dynamic,
                                       .param_count = 2};
        char text[KERNEL_TEXT_BYTES];
        struct sim_module *module;
        struct sim_fault fault;
        const uint32_t grid[3] = {1, 1, 1}, block[3] = {launch.block, 1, 1};
        const struct sim_limits limits = {75, 512, 65536, 48 << 10, launches[i].registers};
        kernel_text(&launch, text);
        assert_int_equal(sim_module_create(text, strlen(text), &module, &fault), 0);
        const int rc =
            sim_launch(sim_module_entry(module, "k"), grid, block, launches[i].dynamic,
                       launch.params, 16 + 8 * launches[i].extra_params, NULL, &limits, &fault);
        sim_module_destroy(module);
        if ((rc == 0) != (launches[i].kind == SIM_OK) || fault.kind != launches[i].kind ||
            !strstr(fault.text, launches[i].says))
            fail_msg("%s: %d \"%s\"", launches[i].name, fault.kind, fault.text);
    }
}

/* A label at the end of braces stands for what follows them. */
static void labels_may_stand_at_the_end(void **state)
{
    (void)state;
    kernel_must_run(&(struct kernel_launch){
        .body = "mov.u32 %r0, 1; { bra.uni end; trap; end: } setp.eq.s32 %p0, %r0, 0; @%p0 trap;"});
    static const struct {
        const char *body, *says;
    } last[] = {
        {"{ ret; bra.uni end; { end: } }", "no instruction has label end, which line 1 jumps to"},
        {"{ ret; { bra.uni end; { ret; } end: } }",
         "no instruction follows the label that line 1 jumps to"},
        {"{ ret; { bra.uni end; } end: }", "no instruction has label end, which line 1 jumps to"},
    };
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        char text[200];
        struct sim_module *module;
        struct sim_fault fault;
        snprintf(text, sizeof text,
                 ".version 9.0 .target sm_90 .address_size 64 .visible .entry k() %s",
                 last[i].body);
        assert_int_equal(sim_module_create(text, strlen(text), &module, &fault), -1);
        if (fault.kind != SIM_BAD_PTX || !strstr(fault.text, last[i].says))
            fail_msg("%s: %d \"%s\", expected \"%s\"", last[i].body, fault.kind, fault.text,
                     last[i].says);
    }
}

/* A limit that a kernel declares applies, too, and the launcher of a module can read it. */
static void declared_variables_are_simulated(void **state)
{
    (void)state;
    static const char text[] =
        ".version 9.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry first(.param .u32 a, .param .u64 .ptr .align 16 b, .param .f32 c)\n"
        ".maxntid 64, 2, 1\n.minnctapersm 2\n"
        "{ .shared .align 8 .b8 x[12]; .shared .align 16 .b8 y[16]; ret; }\n"
        ".visible .entry second() { ret; }\n";
    struct sim_module *module;
    struct sim_fault fault;
    assert_int_equal(sim_module_create(text, sizeof text - 1, &module, &fault), 0);
    const struct sim_entry *entry = sim_module_entry(module, "first");
    assert_non_null(entry);
    assert_null(sim_module_entry(module, "third"));
    assert_int_equal(sim_entry_shared_bytes(entry), 32);
    assert_int_equal(sim_entry_param_count(entry), 3);
    const size_t offsets[3] = {0, 8, 16}, sizes[3] = {4, 8, 4};
    for (int i = 0; i < 3; i++) {
        size_t offset, bytes;
        sim_entry_param(entry, i, &offset, &bytes);
        assert_int_equal(offset, offsets[i]);
        assert_int_equal(bytes, sizes[i]);
    }
    const uint32_t grid[3] = {1, 1, 1}, fits[3] = {128, 1, 1}, over[3] = {129, 1, 1};
    const char params[20] = {0};
    const struct sim_counts before = sim_counted();
    assert_int_equal(sim_launch(entry, grid, fits, 0, params, 20, NULL, &plenty, &fault), 0);
    assert_int_equal(sim_launch(entry, grid, over, 0, params, 20, NULL, &plenty, &fault), -1);
    assert_non_null(strstr(fault.text, "it is compiled for at most 128"));
    const struct sim_counts after = sim_counted();
    assert_int_equal(after.launches - before.launches, 1);
    assert_int_equal(after.warp_instructions - before.warp_instructions, 4);
    sim_module_destroy(module);
}

/* ---- memory ---- */

static void simulated_memory_is_checked(void **state)
{
    (void)state;
    struct sim_memory *memory = sim_memory_create();
    assert_non_null(memory);
    assert_null(sim_memory_nearest(memory, 5));
    const uint64_t a = sim_memory_add(memory, 1000, false), b = sim_memory_add(memory, 8, false);
    const uint64_t c = sim_memory_add(memory, 64, true);
    assert_true(a && b && c && a % 256 == 0 && b % 256 == 0 && c % 256 == 0);
    assert_non_null(sim_memory_find(memory, a, 1000));
    assert_non_null(sim_memory_find(memory, a + 999, 1));
    assert_null(sim_memory_find(memory, a + 999, 2));
    assert_null(sim_memory_find(memory, a - 1, 1));
    assert_null(sim_memory_find(memory, a, SIZE_MAX));
    assert_true(b - a >= 1000 + 256);
    /* managed: the same bytes on both sides */
    const struct sim_allocation *managed = sim_memory_find(memory, c, 64);
    assert_ptr_equal(managed->host, (void *)(uintptr_t)c);
    assert_null(managed->written);
    const struct sim_allocation *first = sim_memory_find(memory, a, 1);
    assert_int_equal(first->written[10], 0);
    sim_memory_mark(first, a + 10, 2);
    assert_int_equal(first->written[9] + first->written[12], 0);
    assert_true(first->written[10] && first->written[11]);
    sim_memory_mark(first, a, 1000); /* then there is nothing to search for */
    assert_null(first->written);
    assert_ptr_equal(sim_memory_nearest(memory, a + 5000), first);
    assert_false(sim_memory_remove(memory, a + 1));
    assert_true(sim_memory_remove(memory, a));
    assert_false(sim_memory_remove(memory, a));
    assert_null(sim_memory_find(memory, a, 1));
    assert_true(sim_memory_add(memory, 1000, false) > b);
    sim_memory_destroy(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulated_memory_is_checked),
        cmocka_unit_test(the_simulator_decodes_the_build),
        cmocka_unit_test(the_simulator_has_no_dead_rows),
        cmocka_unit_test(the_simulator_refuses_what_it_does_not_know),
        cmocka_unit_test(labels_may_stand_at_the_end),
        cmocka_unit_test(the_simulator_finds_planted_faults),
        cmocka_unit_test(limits_of_the_simulator_are_told),
        cmocka_unit_test(declared_variables_are_simulated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
