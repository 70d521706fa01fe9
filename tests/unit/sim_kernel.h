/* SPDX-License-Identifier: Apache-2.0
 *
 * sim_kernel.h: small kernels written for a test, on the simulated machine.
 */
#ifndef NOJIT_TESTS_SIM_KERNEL_H
#define NOJIT_TESTS_SIM_KERNEL_H

#include "unit.h"

#include "simgpu/machine.h"
#include "simgpu/ptx.h"
#include "simgpu/tensor_map.h"

enum { KERNEL_PARAMS_MAX = 6, KERNEL_TEXT_BYTES = 16384 };

/* A launch of a kernel `k` with 64-bit parameters k_0, k_1, ... and a map k_map. */
struct kernel_launch {
    const char *bounds, *declarations, *body; /* the body need not end with ret */
    uint32_t grid, block, dynamic_shared_bytes;
    uint64_t params[KERNEL_PARAMS_MAX];
    int param_count;
    const struct sim_tensor_map *map; /* map, or NULL */
    struct sim_limits limits;
    struct sim_memory *memory;
};

static const struct sim_limits plenty = {.arch = 90,
                                         .threads_per_block = 1024,
                                         .registers_per_block = 65536,
                                         .shared_bytes_per_block = 227 << 10,
                                         .registers = 32};

/* Declarations of the registers that every kernel has. */
#define KERNEL_REGISTERS                                                                           \
    ".reg .pred %p<10>; .reg .b16 %h<20>; .reg .b32 %r<60>; .reg .b64 %d<20>;\n"

static inline void kernel_text(const struct kernel_launch *launch, char *text)
{
    int used = snprintf(text, KERNEL_TEXT_BYTES,
                        ".version 9.0\n.target sm_90\n.address_size 64\n"
                        ".extern .shared .align 16 .b8 dynamic[];\n.visible .entry k(");
    for (int i = 0; i < launch->param_count; i++)
        used += snprintf(text + used, KERNEL_TEXT_BYTES - (size_t)used, "%s.param .u64 k_%d",
                         i ? ", " : "", i);
    if (launch->map)
        used += snprintf(text + used, KERNEL_TEXT_BYTES - (size_t)used,
                         "%s.param .align 64 .b8 k_map[128]", launch->param_count ? ", " : "");
    used += snprintf(text + used, KERNEL_TEXT_BYTES - (size_t)used, ")%s\n{\n%s%s\n%s\nret;\n}\n",
                     launch->bounds ? launch->bounds : "", KERNEL_REGISTERS,
                     launch->declarations ? launch->declarations : "", launch->body);
    assert_true(used < KERNEL_TEXT_BYTES);
}

/* Rows of the opcode table that modules have used. */
static const struct sim_opcode *met[512];
static size_t met_count;

static inline bool is_met(const struct sim_opcode *row)
{
    for (size_t i = 0; i < met_count; i++)
        if (met[i] == row)
            return true;
    return false;
}

static inline void note_met(const struct sim_module *module)
{
    for (size_t e = 0; e < module->count; e++)
        for (uint32_t i = 0; i < module->entries[e]->code_count; i++) {
            const struct sim_opcode *row = module->entries[e]->code[i].opcode;
            if (is_met(row))
                continue;
            assert_true(met_count < sizeof met / sizeof *met);
            met[met_count++] = row;
        }
}

/* Called with each decoded module, if a test sets it. */
static void (*kernel_seen)(const struct sim_module *module);

/* Return the parameter bytes, laid out as the launch passes them. */
static inline size_t kernel_params(const struct kernel_launch *launch,
                                   const struct sim_entry *entry, unsigned char *params)
{
    size_t offset, bytes = (size_t)launch->param_count * 8;
    memcpy(params, launch->params, bytes);
    if (!launch->map)
        return bytes;
    sim_entry_param(entry, launch->param_count, &offset, &bytes);
    assert_int_equal(bytes, sizeof *launch->map);
    memcpy(params + offset, launch->map, bytes);
    return offset + bytes;
}

/* Load and launch the kernel. Return 0, or -1 with the fault of the module or the launch. */
static inline int kernel_run(const struct kernel_launch *launch, struct sim_fault *fault)
{
    char text[KERNEL_TEXT_BYTES];
    struct sim_module *module;
    kernel_text(launch, text);
    if (sim_module_create(text, strlen(text), &module, fault))
        return -1;
    if (kernel_seen)
        kernel_seen(module);
    const uint32_t grid[3] = {launch->grid ? launch->grid : 1, 1, 1};
    const uint32_t block[3] = {launch->block ? launch->block : 32, 1, 1};
    const struct sim_entry *entry = sim_module_entry(module, "k");
    unsigned char params[8 * KERNEL_PARAMS_MAX + 64 + sizeof *launch->map] = {0};
    const size_t bytes = kernel_params(launch, entry, params);
    const int rc =
        sim_launch(entry, grid, block, launch->dynamic_shared_bytes, params, bytes, launch->memory,
                   launch->limits.arch ? &launch->limits : &plenty, fault);
    sim_module_destroy(module);
    return rc;
}

static inline void kernel_must_run(const struct kernel_launch *launch)
{
    struct sim_fault fault;
    if (kernel_run(launch, &fault))
        fail_msg("%s\nin: %s", fault.text, launch->body);
}

/* Allocate device memory with these bytes, or with none written. */
static inline uint64_t put(struct sim_memory *memory, const void *data, size_t bytes)
{
    const uint64_t address = sim_memory_add(memory, bytes, false);
    assert_true(address != 0);
    const struct sim_allocation *allocation = sim_memory_find(memory, address, bytes);
    assert_non_null(allocation);
    if (data) {
        memcpy(allocation->host, data, bytes);
        sim_memory_mark(allocation, address, bytes);
    }
    return address;
}

/* Return the host address of the bytes at a device address. */
static inline void *look(const struct sim_memory *memory, uint64_t address)
{
    const struct sim_allocation *allocation = sim_memory_find(memory, address, 1);
    assert_non_null(allocation);
    return allocation->host + (address - allocation->address);
}

/* A fault planted in a kernel with two buffers: k_0 has 32 written words; k_1 has 32 words, of which the first 16 are
 * written. */
struct planted {
    const char *name, *wrong, *right; /* bodies: `wrong` must fail, its twin `right` must run */
    const char *declarations;
    uint32_t block;
    enum sim_fault_kind kind;
    const char *says;
};

/* Run both bodies; `base` has the rest of the launch. */
static inline int run_planted(const struct planted *p, struct kernel_launch base, const char *body,
                              struct sim_fault *fault)
{
    const uint32_t data[32] = {1, 2, 3};
    struct sim_memory *own = base.memory ? NULL : sim_memory_create();
    base.memory = base.memory ? base.memory : own;
    assert_non_null(base.memory);
    base.declarations = p->declarations;
    base.body = body;
    base.block = p->block;
    base.param_count = 2;
    base.params[0] = put(base.memory, data, sizeof data);
    base.params[1] = put(base.memory, NULL, sizeof data);
    const struct sim_allocation *half = sim_memory_find(base.memory, base.params[1], 128);
    sim_memory_mark(half, half->address, 64);
    const int rc = kernel_run(&base, fault);
    sim_memory_destroy(own);
    return rc;
}

static inline void check_planted(const struct planted *p, const struct kernel_launch *base)
{
    struct sim_fault fault;
    const int rc = run_planted(p, *base, p->wrong, &fault);
    if (rc == 0 || fault.kind != p->kind || !strstr(fault.text, p->says))
        fail_msg("%s: %d \"%s\", expected %d \"%s\"", p->name, fault.kind, fault.text, p->kind,
                 p->says);
    if (run_planted(p, *base, p->right, &fault))
        fail_msg("%s, its twin: %d \"%s\"", p->name, fault.kind, fault.text);
}

#endif
