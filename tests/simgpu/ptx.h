/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx.h: a decoded program. PTX text becomes instructions of one size whose operands are places:
 * bytes into the warp's registers, or into the constants of the launch. A register holds its value
 * for all 32 lanes, one after the other: 2, 4 or 8 bytes each, and 4 bytes (all bits set, or none)
 * for a predicate.
 */
#ifndef NOJIT_SIM_PTX_H
#define NOJIT_SIM_PTX_H

#include "machine.h"

enum { LANES = 32, OPERANDS_MAX = 14, SLOT_BYTES = 64 };

struct warp;
struct insn;
typedef void (*sim_run)(struct warp *warp, const struct insn *insn);

enum {
    /* Who obeys @p: the caller, which leaves only its lanes; run itself; nobody. */
    GUARD_LANES,
    GUARD_OWN,
    GUARD_REFUSED,
    GUARD = 3,
    /* Records that the machine has to keep for an entry with such an instruction, which costs time. */
    NEEDS_ORDER = 4,   /* accesses before each warp: it orders less than all warps */
    NEEDS_PRODUCTS = 8 /* the memory that wgmma reads and has not read yet */
};

/* A form that the machine executes. operands: results, '=', sources, each one letter:
 *   p h r l  register of 1, 16, 32 or 64 bits; as a source also a literal or a special register
 *   i        integer in the text          L  label
 *   G        [64-bit register + integer]: global memory
 *   S        [32-bit register or shared variable + integer]: shared memory
 *   T        [64-bit register, {32-bit register, 32-bit register}]: a tile of a tensor map
 *   P Q      [parameter + integer], of which 32 or 64 bits are read
 *   {rr}     vector                        |  second result
 *   {r*64}   vector of 64 results          +  before such: results that are sources, too
 *   0 1 _    stand in the text */
struct sim_opcode {
    const char *text;
    const char *operands;
    sim_run run;
    unsigned how; /* one of GUARD, and what it needs */
};

/* Every exec_*.c has a table of its own. */
struct sim_opcode_table {
    const struct sim_opcode *rows;
    size_t count;
};
extern const struct sim_opcode_table sim_convert_opcodes, sim_float_opcodes, sim_integer_opcodes,
    sim_move_opcodes, sim_global_opcodes, sim_shared_opcodes, sim_async_opcodes, sim_flow_opcodes,
    sim_lane_opcodes, sim_matrix_opcodes, sim_cluster_opcodes, sim_wgmma_opcodes;

/* The first row of that text at or after *from (0 at first), or NULL; *from becomes the one after. */
const struct sim_opcode *sim_opcode_find(const char *text, size_t length, size_t *from);

/* A place: even: into the registers of the warp; odd: one more than the place in the constants. */
typedef uint32_t sim_place;

struct insn {
    sim_run run;
    const struct sim_opcode *opcode;
    int32_t integer[3]; /* i, and those of G and S, in order */
    uint32_t target;    /* L: index of an instruction; {r*64}: of the first in the entry's wide[] */
    uint32_t line;
    sim_place guard; /* the place of @p */
    bool guarded, guard_inverted;
    sim_place o[OPERANDS_MAX]; /* in the order of the operands, those of i and L left out */
};

/* The kind of a constant of a launch. */
enum constant_kind {
    CONSTANT_LITERAL, /* value */
    CONSTANT_PARAM,   /* bytes at value in the parameter block */
    CONSTANT_CTAID,   /* value: 0 to 2 for x to z */
    CONSTANT_NCTAID,
    CONSTANT_NTID,
    CONSTANT_RANK /* rank of the block in its cluster */
};

/* The address at which parameters lie whose address is taken. */
#define PARAM_WINDOW UINT64_C(0x7000000000000000)

struct constant {
    enum constant_kind kind;
    char class; /* p h r l */
    uint64_t value;
    uint32_t at; /* byte in the constants */
};

/* The first registers of a warp are its special ones. */
enum special { SPECIAL_TID_X, SPECIAL_TID_Y, SPECIAL_TID_Z, SPECIAL_LANEID, SPECIAL_COUNT };

struct param {
    size_t offset, bytes;
};

struct sim_entry {
    char *name;
    struct insn *code;
    uint32_t code_count;
    sim_place *wide; /* operands of instructions with many */
    uint32_t wide_count;
    unsigned needs; /* NEEDS_... of its instructions */
    struct constant *constants;
    uint32_t constant_count, constant_bytes;
    struct param *params;
    int param_count;
    size_t param_bytes;
    size_t shared_bytes;     /* bytes of its own variables */
    size_t dynamic_at;       /* the beginning of dynamic shared memory */
    uint32_t register_bytes; /* bytes of a warp's registers */
    uint32_t threads_max;    /* .maxntid, 0: none */
    uint32_t cluster;        /* blocks in a row that make a cluster */
};

struct sim_module {
    struct sim_entry **entries;
    size_t count;
};

/* Bytes of one lane and of a whole register of a class. */
static inline uint32_t class_lane_bytes(char class)
{
    return class == 'h' ? 2 : class == 'l' ? 8 : 4;
}
static inline uint32_t class_bytes(char class)
{
    return LANES * class_lane_bytes(class);
}

/* How many operands of one letter stand at `at` in a row's operands: of "*64", which it then passes,
 * so many. */
static inline uint32_t operand_count(const char **at)
{
    uint32_t count = 0;
    if ((*at)[1] != '*')
        return 1;
    for (++*at; (*at)[1] >= '0' && (*at)[1] <= '9'; ++*at)
        count = 10 * count + (uint32_t)((*at)[1] - '0');
    return count;
}

/* Gives the registers of a decoded entry their places: places are numbers of registers, times two,
 * until then, and classes[] says what they hold. *unmade becomes the first instruction that reads a
 * register which nothing can have written, or UINT32_MAX. Returns 0, or -1 without memory. */
int sim_assign_registers(struct sim_entry *entry, const char *classes, uint32_t count,
                         uint32_t *unmade);

#endif
