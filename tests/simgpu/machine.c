/* SPDX-License-Identifier: Apache-2.0
 *
 * machine.c: launches. Each core of the host takes the next block of the grid, or the next cluster of
 * them, and has registers, shared memory and constants of its own.
 */
#include "exec.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CORES_MAX = 64, REGISTER_GRAIN = 8, SHARED_GRAIN = 1024, ALONE_NS = 200000 };

static struct sim_counts counts;
static pthread_mutex_t counts_lock = PTHREAD_MUTEX_INITIALIZER;

/* Memory that a core keeps from launch to launch: launches are many and short, and pages of the system cost more. */
enum { REGISTERS, CONSTANTS, SHARED, STAMPS, NAMED, MBARRIERS, WARPS, ROOMS };
struct room {
    void *at;
    size_t bytes;
};

/* The memory that one core of the host needs to run blocks of a launch, or clusters of them. */
struct core {
    struct core *next; /* idle, too */
    struct room rooms[ROOMS];
    pthread_t thread;
    struct launch *launch;
    unsigned char *registers, *constants;
    struct warp *warps;
    struct block block;
};

static struct core *idle_cores;
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;

/* An idle core, or a new one; NULL without memory. */
static struct core *take_core(void)
{
    pthread_mutex_lock(&idle_lock);
    struct core *core = idle_cores;
    if (core)
        idle_cores = core->next;
    pthread_mutex_unlock(&idle_lock);
    return core ? core : calloc(1, sizeof *core);
}

/* Returns room for so many bytes, which hold anything, or NULL without memory. */
static void *room_for(struct core *core, int which, size_t bytes)
{
    struct room *room = &core->rooms[which];
    if (bytes <= room->bytes)
        return room->at;
    free(room->at);
    const size_t rounded = (bytes + SLOT_BYTES - 1) & ~(size_t)(SLOT_BYTES - 1);
    room->at = aligned_alloc(SLOT_BYTES, rounded);
    room->bytes = room->at ? rounded : 0;
    return room->at;
}

static void *zeroed_room(struct core *core, int which, size_t bytes)
{
    void *room = room_for(core, which, bytes);
    return room ? memset(room, 0, bytes) : NULL;
}

/* The fault of a launch that has not begun; returns -1. */
__attribute__((format(printf, 3, 4))) static int
fault_set(struct sim_fault *fault, enum sim_fault_kind kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fault->kind = kind;
    vsnprintf(fault->text, sizeof fault->text, format, args);
    va_end(args);
    return -1;
}

void sim_fault_at(struct warp *warp, const struct insn *insn, int lane, enum sim_fault_kind kind,
                  const char *format, ...)
{
    const struct block *block = warp->block;
    struct launch *launch = block->launch;
    warp->block->stop = true;
    warp->leave_at = 0;
    if (__atomic_exchange_n(&launch->faulted, 1, __ATOMIC_RELAXED))
        return;
    const uint32_t thread =
        warp->first_thread - warp->rank * launch->warps * LANES + (uint32_t)lane;
    const uint32_t x = launch->block[0], y = launch->block[1];
    struct sim_fault *fault = launch->fault;
    fault->kind = kind;
    const int used =
        snprintf(fault->text, sizeof fault->text,
                 "%s, line %u of the PTX, block (%u, %u, %u), thread (%u, %u, %u): %s ",
                 launch->entry->name, insn->line, block->index[0] + warp->rank, block->index[1],
                 block->index[2], thread % x, thread / x % y, thread / x / y, insn->opcode->text);
    va_list args;
    va_start(args, format);
    vsnprintf(fault->text + used, sizeof fault->text - (size_t)used, format, args);
    va_end(args);
}

bool sim_grow(struct warp *warp, const struct insn *insn, int lane, void *array, uint32_t count,
              uint32_t *room, size_t bytes)
{
    enum { FIRST = 64 };
    void *old, *grown;
    if (count < *room)
        return true;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, (*room ? 2 * (size_t)*room : FIRST) * bytes);
    if (!grown) {
        sim_fault_at(warp, insn, lane, SIM_NO_MEMORY, "no memory to note what it does");
        return false;
    }
    memcpy(array, &grown, sizeof grown);
    *room = *room ? 2 * *room : FIRST;
    return true;
}

const struct sim_entry *sim_module_entry(const struct sim_module *module, const char *name)
{
    for (size_t i = 0; i < module->count; i++)
        if (strcmp(module->entries[i]->name, name) == 0)
            return module->entries[i];
    return NULL;
}

bool sim_entry_waits(const struct sim_entry *entry)
{
    for (uint32_t i = 0; i < entry->code_count; i++) {
        const char *name = entry->code[i].opcode->text;
        if (strcmp(name, "griddepcontrol.wait") == 0)
            return true;
        if (strncmp(name, "ld.global.L1::no_allocate", 25) == 0) /* nothing near it writes there */
            continue;
        if ((strstr(name, ".global") && strncmp(name, "cvta", 4) != 0) ||
            strncmp(name, "cp.async", 8) == 0)
            return false;
    }
    return false;
}

int sim_entry_param_count(const struct sim_entry *entry)
{
    return entry->param_count;
}

void sim_entry_param(const struct sim_entry *entry, int index, size_t *offset, size_t *bytes)
{
    *offset = entry->params[index].offset;
    *bytes = entry->params[index].bytes;
}

size_t sim_entry_shared_bytes(const struct sim_entry *entry)
{
    return entry->shared_bytes;
}

struct sim_counts sim_counted(void)
{
    pthread_mutex_lock(&counts_lock);
    const struct sim_counts now = counts;
    pthread_mutex_unlock(&counts_lock);
    return now;
}

/* Writes one value into all lanes of a register or constant. */
static void spread(unsigned char *to, char class, uint64_t value)
{
    for (uint32_t lane = 0; lane < LANES; lane++)
        memcpy(to + lane * class_lane_bytes(class), &value, class_lane_bytes(class));
}

static uint64_t constant_value(const struct core *core, const struct constant *constant,
                               uint32_t rank)
{
    const struct launch *launch = core->launch;
    uint64_t value = 0;
    switch (constant->kind) {
    case CONSTANT_LITERAL:
        return constant->value;
    case CONSTANT_PARAM:
        memcpy(&value, launch->params + constant->value, class_lane_bytes(constant->class));
        return value;
    case CONSTANT_CTAID:
        return core->block.index[constant->value] + (constant->value == 0 ? rank : 0);
    case CONSTANT_RANK:
        return rank;
    case CONSTANT_NCTAID:
        return launch->grid[constant->value];
    case CONSTANT_NTID:
        return launch->block[constant->value];
    }
    return 0;
}

static size_t round_up(size_t value, size_t align)
{
    return (value + align - 1) & ~(align - 1);
}

/* Return the bytes of constants of one block of a cluster. */
static size_t constant_stride(const struct sim_entry *entry)
{
    return round_up(entry->constant_bytes + 1, SLOT_BYTES);
}

/* blocks: only what differs between blocks. */
static void fill_constants(struct core *core, bool blocks)
{
    const struct sim_entry *entry = core->launch->entry;
    for (uint32_t rank = 0; rank < core->launch->cluster; rank++) {
        unsigned char *to = core->constants + rank * constant_stride(entry);
        for (uint32_t i = 0; i < entry->constant_count; i++) {
            const struct constant *c = &entry->constants[i];
            if (!blocks || c->kind == CONSTANT_CTAID)
                spread(to + c->at, c->class, constant_value(core, c, rank));
        }
    }
}

static void fill_specials(const struct launch *launch, struct warp *warp)
{
    uint32_t *registers = (uint32_t *)warp->base[0];
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint32_t thread = warp->first_thread - warp->rank * launch->warps * LANES + lane;
        registers[LANES * SPECIAL_TID_X + lane] = thread % launch->block[0];
        registers[LANES * SPECIAL_TID_Y + lane] = thread / launch->block[0] % launch->block[1];
        registers[LANES * SPECIAL_TID_Z + lane] = thread / launch->block[0] / launch->block[1];
        registers[LANES * SPECIAL_LANEID + lane] = lane;
    }
}

/* groups: of products that warps have begun in the blocks before. */
static void start_warp(struct core *core, uint32_t index, uint32_t groups)
{
    struct warp *warp = &core->warps[index];
    const uint32_t lanes = core->launch->threads - index % core->launch->warps * LANES;
    warp->exists = lanes >= LANES ? UINT32_MAX : (UINT32_C(1) << lanes) - 1;
    warp->live = warp->exists;
    warp->pc = 0;
    warp->leave_at = UINT32_MAX;
    warp->group_count = 0;
    warp->state = WARP_READY;
    warp->transfer_count = warp->unfenced_count = 0;
    warp->order.before[index] = 0;
    if (core->launch->entry->needs) {
        memset(warp->order.before, 0, ACTOR_PRODUCTS * sizeof *warp->order.before);
        for (int i = ACTOR_PRODUCTS; i < ACTORS; i++)
            warp->order.before[i] = groups;
        warp->product_groups = groups;
        warp->tried = warp->at_cluster = warp->unawaited = warp->resized = 0;
    }
    warp->left = JUMPS_MAX;
    sim_set_mask(warp, warp->exists);
}

/* number: of the block, or of the first of a cluster. */
static void run_one_block(struct core *core, uint64_t number)
{
    struct block *block = &core->block;
    const struct launch *launch = core->launch;
    const uint32_t *grid = launch->grid;
    uint32_t groups = 0;
    block->index[0] = (uint32_t)(number % grid[0]);
    block->index[1] = (uint32_t)(number / grid[0] % grid[1]);
    block->index[2] = (uint32_t)(number / grid[0] / grid[1]);
    fill_constants(core, true);
    sim_shared_barrier(block);
    block->begin_at = block->now;
    for (uint32_t i = 0; i < launch->cluster_warps; i++) {
        struct warp *warp = &core->warps[i];
        warp->writer = (uint64_t)launch->number << 32 | ((number + warp->rank) & WRITER_BLOCKS)
                                                            << 2;
        groups = warp->product_groups >= groups ? warp->product_groups + 1 : groups;
    }
    for (uint32_t i = 0; i < launch->cluster_warps; i++)
        start_warp(core, i, groups);
    if (launch->entry->needs)
        sim_cluster_start(block);
    sim_run_block(block);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Runs blocks until none is left, or, if until_ns is not 0, until then: true if some are left. */
static bool run_blocks(struct core *core, uint64_t until_ns)
{
    struct launch *launch = core->launch;
    while (!until_ns || now_ns() < until_ns) {
        const uint64_t number = __atomic_fetch_add(&launch->next_block, 1, __ATOMIC_RELAXED);
        if (number >= launch->blocks || __atomic_load_n(&launch->faulted, __ATOMIC_RELAXED))
            return false;
        run_one_block(core, number * launch->cluster);
    }
    return true;
}

static void *run_core(void *core)
{
    run_blocks(core, 0);
    return NULL;
}

static void prepare_warp(struct core *core, uint32_t index, size_t register_bytes)
{
    const struct launch *launch = core->launch;
    struct warp *warp = &core->warps[index];
    warp->index = index;
    warp->first_thread = index * LANES;
    warp->rank = index / launch->warps;
    warp->shared_at = warp->rank * launch->shared_stride;
    if (core->block.readers > 1)
        warp->read_at = (size_t)(index - warp->rank) * (launch->shared_stride / 4);
    warp->base[0] = (uintptr_t)core->registers + register_bytes * index;
    warp->base[1] = (uintptr_t)core->constants + warp->rank * constant_stride(launch->entry) - 1;
    warp->block = &core->block;
    fill_specials(launch, warp);
}

/* Prepare the record of a block's shared memory of so many words. */
static int prepare_record(struct core *core, size_t words)
{
    const struct launch *launch = core->launch;
    struct block *block = &core->block;
    const bool order = launch->entry->needs & NEEDS_ORDER;
    const bool products = launch->entry->needs & NEEDS_PRODUCTS;
    const size_t readers = order ? launch->warps : 1;
    const size_t groups = products ? launch->cluster_warps / WARPGROUP : 0;
    uint32_t *stamps = zeroed_room(core, STAMPS, (1 + readers + groups) * words * sizeof *stamps);
    struct named(*named)[NAMED_MAX] = zeroed_room(core, NAMED, launch->cluster * sizeof *named);
    struct mbarrier *mbarriers =
        zeroed_room(core, MBARRIERS, (order ? MBARRIERS_MAX : 1) * sizeof *mbarriers);
    if (!stamps || !named || !mbarriers)
        return -1;
    *block = (struct block){.launch = core->launch,
                            .shared = core->rooms[SHARED].at,
                            .wrote = stamps,
                            .read = stamps + words,
                            .words = (uint32_t)words,
                            .plain = launch->entry->needs == 0,
                            .readers = (uint32_t)readers,
                            .warps = core->warps,
                            .named = named,
                            .mbarriers = mbarriers};
    if (products)
        block->products_read = block->read + readers * words;
    return 0;
}

static int prepare_core(struct core *core, struct launch *launch)
{
    const struct sim_entry *entry = launch->entry;
    const size_t register_bytes = round_up(entry->register_bytes, SLOT_BYTES);
    const size_t warps = launch->cluster_warps;
    const size_t shared = (size_t)launch->cluster * launch->shared_stride;
    core->launch = launch;
    core->registers = room_for(core, REGISTERS, register_bytes * warps);
    core->constants = room_for(core, CONSTANTS, constant_stride(entry) * launch->cluster);
    core->warps = zeroed_room(core, WARPS, warps * sizeof *core->warps);
    if (!core->registers || !core->constants || !core->warps || !room_for(core, SHARED, shared) ||
        prepare_record(core, shared / 4))
        return -1;
    for (uint32_t i = 0; i < warps; i++)
        prepare_warp(core, i, register_bytes);
    fill_constants(core, false);
    return 0;
}

/* Its warps, if it has any, end, and it is idle. */
static void release_core(struct core *core)
{
    pthread_mutex_lock(&counts_lock);
    for (uint32_t i = 0; core->warps && i < core->launch->cluster_warps; i++) {
        counts.warp_instructions += core->warps[i].instructions;
        free(core->warps[i].transfers);
        free(core->warps[i].unfenced);
    }
    pthread_mutex_unlock(&counts_lock);
    free(core->block.copies);
    core->block.copies = NULL;
    core->warps = NULL;
    pthread_mutex_lock(&idle_lock);
    core->next = idle_cores;
    idle_cores = core;
    pthread_mutex_unlock(&idle_lock);
}

/* Cores that this process may use; OMP_NUM_THREADS, which the tests set, is a limit too. */
static uint32_t core_count(uint64_t blocks)
{
    cpu_set_t set;
    const char *limit = getenv("OMP_NUM_THREADS");
    long cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    if (limit && strtol(limit, NULL, 10) > 0 && strtol(limit, NULL, 10) < cores)
        cores = strtol(limit, NULL, 10);
    cores = cores < CORES_MAX ? cores : CORES_MAX;
    return blocks < (uint64_t)cores ? (uint32_t)blocks : (uint32_t)cores;
}

/* Returns a core that is ready to run blocks, or NULL without memory. */
static struct core *ready_core(struct launch *launch)
{
    struct core *core = take_core();
    if (!core || !prepare_core(core, launch))
        return core;
    release_core(core);
    return NULL;
}

/* Starts as many cores beside the first as there is work for; one without memory or thread is done
 * without. Returns how many run. */
static uint32_t start_cores(struct core **cores, struct launch *launch)
{
    const uint32_t wanted = core_count(launch->blocks);
    uint32_t running = 1;
    for (; running < wanted; running++) {
        struct core *core = cores[running] = ready_core(launch);
        if (!core)
            break;
        if (pthread_create(&core->thread, NULL, run_core, core)) {
            release_core(core);
            break;
        }
    }
    return running;
}

/* The first core is the caller, alone unless the grid takes a while. */
static int run_grid(struct launch *launch)
{
    struct core *cores[CORES_MAX] = {ready_core(launch)};
    if (!cores[0])
        return fault_set(launch->fault, SIM_NO_MEMORY, "%s: no memory to run a block",
                         launch->entry->name);
    uint32_t running = 1;
    if (run_blocks(cores[0], now_ns() + ALONE_NS)) {
        launch->several = core_count(launch->blocks) > 1;
        running = start_cores(cores, launch);
        run_blocks(cores[0], 0);
    }
    for (uint32_t i = 1; i < running; i++)
        pthread_join(cores[i]->thread, NULL);
    for (uint32_t i = 0; i < running; i++)
        release_core(cores[i]);
    return launch->faulted ? -1 : 0;
}

static int check_size(const struct launch *launch, const struct sim_limits *limits)
{
    static const uint32_t grid_max[3] = {INT32_MAX, 65535, 65535}, block_max[3] = {1024, 1024, 64};
    const struct sim_entry *entry = launch->entry;
    for (int i = 0; i < 3; i++)
        if (launch->grid[i] == 0 || launch->grid[i] > grid_max[i] || launch->block[i] == 0 ||
            launch->block[i] > block_max[i])
            return fault_set(launch->fault, SIM_BAD_LAUNCH,
                             "%s: %u blocks of %u threads along axis %d, at most %u and %u",
                             entry->name, launch->grid[i], launch->block[i], i, grid_max[i],
                             block_max[i]);
    if (launch->threads > limits->threads_per_block || launch->threads > LANES * WARPS_MAX)
        return fault_set(launch->fault, SIM_BAD_LAUNCH,
                         "%s: %u threads a block, sm_%d has at most %u", entry->name,
                         launch->threads, limits->arch, limits->threads_per_block);
    if (entry->threads_max && launch->threads > entry->threads_max)
        return fault_set(launch->fault, SIM_BAD_LAUNCH,
                         "%s: %u threads a block, it is compiled for at most %u", entry->name,
                         launch->threads, entry->threads_max);
    return 0;
}

static int check_cluster(const struct launch *launch)
{
    const struct sim_entry *entry = launch->entry;
    if (launch->grid[0] % launch->cluster)
        return fault_set(launch->fault, SIM_BAD_LAUNCH,
                         "%s: %u blocks along axis 0, it is compiled for clusters of %u",
                         entry->name, launch->grid[0], launch->cluster);
    if (launch->cluster_warps > WARPS_MAX)
        return fault_set(launch->fault, SIM_BAD_LAUNCH,
                         "%s: %u threads a block, the machine keeps at most %d in a cluster",
                         entry->name, launch->threads, WARPS_MAX * LANES);
    if (entry->needs & NEEDS_PRODUCTS && launch->threads % (WARPGROUP * LANES))
        return fault_set(launch->fault, SIM_BAD_LAUNCH,
                         "%s: %u threads a block, which are no whole warpgroups", entry->name,
                         launch->threads);
    return 0;
}

static int check_resources(const struct launch *launch, const struct sim_limits *limits,
                           uint32_t dynamic_shared_bytes, size_t param_bytes)
{
    const struct sim_entry *entry = launch->entry;
    const uint64_t registers =
        round_up(limits->registers, REGISTER_GRAIN) * (uint64_t)launch->warps * LANES;
    const uint64_t shared = entry->dynamic_at + (uint64_t)dynamic_shared_bytes;
    if (registers > limits->registers_per_block)
        return fault_set(launch->fault, SIM_NO_REGISTERS,
                         "%s: %u threads of %u registers, a block of sm_%d has %u", entry->name,
                         launch->threads, limits->registers, limits->arch,
                         limits->registers_per_block);
    if (shared > limits->shared_bytes_per_block)
        return fault_set(launch->fault, SIM_BAD_LAUNCH,
                         "%s: %llu bytes of shared memory, a block of sm_%d has %u", entry->name,
                         (unsigned long long)shared, limits->arch, limits->shared_bytes_per_block);
    if (param_bytes != entry->param_bytes)
        return fault_set(launch->fault, SIM_BAD_LAUNCH,
                         "%s: %zu bytes of parameters, the PTX declares %zu", entry->name,
                         param_bytes, entry->param_bytes);
    return 0;
}

static struct launch describe(const struct sim_entry *entry, const uint32_t grid[3],
                              const uint32_t block[3], uint32_t dynamic_shared_bytes,
                              struct sim_fault *fault)
{
    struct launch launch = {.entry = entry,
                            .grid = {grid[0], grid[1], grid[2]},
                            .block = {block[0], block[1], block[2]},
                            .threads = block[0] * block[1] * block[2],
                            .fault = fault,
                            .cluster = entry->cluster};
    launch.blocks = (uint64_t)grid[0] * grid[1] * grid[2] / launch.cluster;
    launch.warps = (launch.threads + LANES - 1) / LANES;
    launch.cluster_warps = launch.warps * launch.cluster;
    launch.shared_bytes = (uint32_t)entry->dynamic_at + dynamic_shared_bytes;
    launch.shared_stride = (uint32_t)round_up(launch.shared_bytes + 1, SHARED_GRAIN);
    return launch;
}

int sim_check_launch(const struct sim_entry *entry, const uint32_t grid[3], const uint32_t block[3],
                     uint32_t dynamic_shared_bytes, size_t param_bytes,
                     const struct sim_limits *limits, struct sim_fault *fault)
{
    const struct launch launch = describe(entry, grid, block, dynamic_shared_bytes, fault);
    *fault = (struct sim_fault){SIM_OK, ""};
    if (check_size(&launch, limits) || check_cluster(&launch))
        return -1;
    return check_resources(&launch, limits, dynamic_shared_bytes, param_bytes);
}

int sim_launch(const struct sim_entry *entry, const uint32_t grid[3], const uint32_t block[3],
               uint32_t dynamic_shared_bytes, const void *params, size_t param_bytes,
               const struct sim_memory *memory, const struct sim_limits *limits,
               struct sim_fault *fault)
{
    struct launch launch = describe(entry, grid, block, dynamic_shared_bytes, fault);
    if (sim_check_launch(entry, grid, block, dynamic_shared_bytes, param_bytes, limits, fault))
        return -1;
    launch.params = params;
    launch.memory = memory;
    pthread_mutex_lock(&counts_lock);
    launch.number = (uint32_t)++counts.launches;
    pthread_mutex_unlock(&counts_lock);
    return run_grid(&launch);
}
