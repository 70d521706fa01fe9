/* SPDX-License-Identifier: Apache-2.0
 *
 * machine.h: PTX, executed on the CPU. The simulated driver loads modules and launches entries with
 * this; nothing here knows of the driver.
 */
#ifndef NOJIT_SIM_MACHINE_H
#define NOJIT_SIM_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "memory.h"

enum sim_fault_kind {
    SIM_OK,
    SIM_NO_MEMORY,         /* the host has none left */
    SIM_BAD_PTX,           /* text that does not parse, an opcode or operand that is not known */
    SIM_BAD_LAUNCH,        /* more blocks, threads or shared memory than there are; parameters of
                              another size; blocks that are no whole clusters */
    SIM_NO_REGISTERS,      /* a block needs more than there are */
    SIM_ILLEGAL_ADDRESS,   /* outside of every allocation, of the block's shared memory, of local
                              memory or of the parameters */
    SIM_MISALIGNED,        /* an address that is no multiple of the access */
    SIM_UNWRITTEN,         /* a read of bytes that nothing wrote */
    SIM_SHARED_RACE,       /* two threads, one of them writing, without a barrier between: in shared
                              memory, or, of two blocks of a launch, in global memory; a thread and
                              wgmma or TMA */
    SIM_DIVERGENT_BARRIER, /* a barrier that not all of its threads reach, a wait that nothing ends */
    SIM_TRAP               /* trap, or a loop that outlasts the limit of instructions */
};

struct sim_fault {
    enum sim_fault_kind kind;
    char text[512]; /* one sentence: kernel, line of the PTX, block, thread, what, where */
};

/* The limits of a device; the driver fills them from the device's profile and the cubin. */
struct sim_limits {
    int arch; /* 75, 89, 90, 120, 121 */
    uint32_t threads_per_block, registers_per_block, shared_bytes_per_block;
    uint32_t registers; /* registers of one thread of this kernel, as ptxas assigned them */
};

/* Counters of everything executed so far in this process. */
struct sim_counts {
    uint64_t launches, warp_instructions;
};

struct sim_module;
struct sim_entry;

/* Decodes the PTX in text (not kept). Returns 0, *out to be destroyed by the caller; or -1, with
 * *fault filled and *out NULL. */
int sim_module_create(const char *text, size_t bytes, struct sim_module **out,
                      struct sim_fault *fault);
void sim_module_destroy(struct sim_module *module);

/* Returns the entry named so, valid until the module is destroyed, or NULL. */
const struct sim_entry *sim_module_entry(const struct sim_module *module, const char *name);
/* The layout of the entry's parameters, as PTX declares it. */
/* Return whether it waits for the kernel ahead of it before it touches global memory that a kernel may write. */
bool sim_entry_waits(const struct sim_entry *entry);
int sim_entry_param_count(const struct sim_entry *entry);
void sim_entry_param(const struct sim_entry *entry, int index, size_t *offset, size_t *bytes);
/* Shared memory that the entry declares itself, in bytes; dynamic memory comes on top. */
size_t sim_entry_shared_bytes(const struct sim_entry *entry);

/* Returns 0 if a grid may be launched so, or -1 with the fault. */
int sim_check_launch(const struct sim_entry *entry, const uint32_t grid[3], const uint32_t block[3],
                     uint32_t dynamic_shared_bytes, size_t param_bytes,
                     const struct sim_limits *limits, struct sim_fault *fault);
/* Does that, then runs the grid to its end, on all cores. Blocks run in no order that a kernel could count on.
 * Returns 0, or -1 with the first fault; memory then holds what was written up to there. */
int sim_launch(const struct sim_entry *entry, const uint32_t grid[3], const uint32_t block[3],
               uint32_t dynamic_shared_bytes, const void *params, size_t param_bytes,
               const struct sim_memory *memory, const struct sim_limits *limits,
               struct sim_fault *fault);

struct sim_counts sim_counted(void);

/* Every opcode with its full suffix that the machine executes; returns how many, and *names (static,
 * sorted). An opcode outside of this list is SIM_BAD_PTX when the module is created. */
size_t sim_opcodes(const char *const **names);

#endif
