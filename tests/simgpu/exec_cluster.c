/* SPDX-License-Identifier: Apache-2.0
 *
 * exec_cluster.c: what blocks of a cluster do together, and TMA, which tells by an mbarrier
 * that it is done. An address of another block's shared memory, as mapa gives it, has the block's
 * rank, plus one, in its high byte.
 *
 * A copy fetches at once and writes at once, but its words are not there before it arrives, which it
 * does when another warp has its turn. mbarrier.try_wait fails once where it comes too early, and
 * then waits: that a kernel must try again shows, and nothing spins.
 */
#include "stamp.h"
#include "tensor_map.h"

#include <string.h>

/* Arrivals, and bytes, of a phase of an mbarrier. */
enum { COUNT_MAX = (1 << 20) - 1 };
enum { RANK_SHIFT = 24, ADDRESS_MASK = (1 << RANK_SHIFT) - 1, MBARRIER_BYTES = 8 };

void sim_cluster_start(struct block *block)
{
    block->mbarrier_count = block->copy_count = 0;
    block->at_cluster = (struct cluster_barrier){0};
    for (uint32_t i = 0; i < block->launch->cluster_warps; i++)
        memset(block->warps[i].reached, 0, sizeof block->warps[i].reached);
}

/* Return whether some thread of the block ends after that arrival in any case. */
static bool outlasts(const struct block *block, uint32_t rank, const struct warp *other)
{
    const struct warp *warps = block->warps + rank * block->launch->warps;
    for (uint32_t i = 0; i < block->launch->warps; i++)
        if (other->reached[rank].time < warps[i].order.before[other->index])
            return true;
    return block->now >= TIME_MAX; /* the record cannot tell */
}

void sim_cluster_end(struct block *block)
{
    const struct launch *launch = block->launch;
    for (uint32_t i = 0; i < launch->cluster_warps * launch->cluster; i++) {
        const uint32_t rank = i % launch->cluster;
        struct warp *warp = &block->warps[i / launch->cluster];
        const struct reach *reach = &warp->reached[rank];
        if (!reach->time || outlasts(block, rank, warp))
            continue;
        sim_fault_at(warp, reach->insn, (int)reach->lane, SIM_ILLEGAL_ADDRESS,
                     "shared memory of block %u of the cluster, which may have ended", rank);
        return;
    }
}

static void no_block(struct warp *warp, const struct insn *insn, int lane, uint32_t rank)
{
    sim_fault_at(warp, insn, lane, SIM_ILLEGAL_ADDRESS, "block %u of a cluster of %u", rank,
                 warp->block->launch->cluster);
}

/* Its shared memory is gone. */
static bool has_ended(const struct block *block, uint32_t rank)
{
    const struct warp *warps = block->warps + rank * block->launch->warps;
    for (uint32_t i = 0; i < block->launch->warps; i++)
        if (warps[i].live)
            return false;
    return true;
}

/* Find shared memory like sim_shared_at(), in any block of the cluster. */
static bool cluster_at(struct warp *warp, const struct insn *insn, int lane, uint32_t address,
                       uint32_t bytes, uint32_t *at)
{
    const struct launch *launch = warp->block->launch;
    const uint32_t rank = address >> RANK_SHIFT ? (address >> RANK_SHIFT) - 1 : warp->rank;
    if (rank >= launch->cluster) {
        no_block(warp, insn, lane, rank);
        return false;
    }
    if (rank != warp->rank && has_ended(warp->block, rank)) {
        sim_fault_at(warp, insn, lane, SIM_ILLEGAL_ADDRESS,
                     "shared memory of block %u of the cluster, which has ended", rank);
        return false;
    }
    if (!sim_shared_at(warp, insn, lane, address & ADDRESS_MASK, bytes, at))
        return false;
    *at += rank * launch->shared_stride - warp->shared_at;
    return true;
}

static void map_address(struct warp *warp, const struct insn *insn)
{
    uint32_t *result = sim_slot(warp, insn->o[0]);
    const uint32_t *address = sim_slot(warp, insn->o[1]), *rank = sim_slot(warp, insn->o[2]);
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (rank[lane] >= warp->block->launch->cluster) {
            no_block(warp, insn, lane, rank[lane]);
            return;
        }
        result[lane] = (rank[lane] + 1) << RANK_SHIFT | (address[lane] & ADDRESS_MASK);
    }
}

/* ---- mbarriers ---- */

/* Return the byte as messages give it. */
static uint32_t byte_of(const struct block *block, uint32_t at)
{
    return at % block->launch->shared_stride;
}

/* Return the mbarrier at an address, or NULL. A search is enough: all blocks of a cluster have few. */
static struct mbarrier *find(struct block *block, uint32_t at)
{
    for (uint32_t i = 0; i < block->mbarrier_count; i++)
        if (block->mbarriers[i].at == at)
            return &block->mbarriers[i];
    return NULL;
}

/* The mbarrier there, which an init before must have made; NULL after a fault. */
static struct mbarrier *mbarrier_at(struct warp *warp, const struct insn *insn, int lane,
                                    uint32_t at)
{
    if (!sim_shared_touch(warp, insn, lane, at))
        return NULL;
    struct mbarrier *m = find(warp->block, at);
    if (!m)
        sim_fault_at(warp, insn, lane, SIM_UNWRITTEN,
                     "byte %u of shared memory, where no mbarrier was initialised",
                     byte_of(warp->block, at));
    return m;
}

static void mbarrier_init(struct warp *warp, const struct insn *insn)
{
    const uint32_t *address = sim_slot(warp, insn->o[0]), *count = sim_slot(warp, insn->o[1]);
    struct block *block = warp->block;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        uint32_t at = address[lane] + (uint32_t)insn->integer[0];
        if (count[lane] == 0 || count[lane] > COUNT_MAX) {
            sim_fault_at(warp, insn, lane, SIM_BAD_PTX, "asks for %u arrivals: 1 to %d can be",
                         count[lane], COUNT_MAX);
            return;
        }
        if (!sim_shared_at(warp, insn, lane, at, MBARRIER_BYTES, &at) ||
            !sim_shared_write(warp, insn, lane, at, MBARRIER_BYTES, USE_INIT))
            return;
        struct mbarrier *m = find(block, at);
        if (!m && block->mbarrier_count == MBARRIERS_MAX) {
            sim_fault_at(warp, insn, lane, SIM_NO_MEMORY, "the machine keeps %d mbarriers",
                         MBARRIERS_MAX);
            return;
        }
        m = m ? m : &block->mbarriers[block->mbarrier_count++];
        *m = (struct mbarrier){.at = at, .count = count[lane], .missing = count[lane]};
    }
}

/* A phase ends when its arrivals and its bytes are there. */
static void end_phase(struct block *block, struct mbarrier *m)
{
    if (m->missing || m->bytes)
        return;
    sim_order_join(&m->done, &m->running);
    m->running = (struct order){{0}};
    m->missing = m->count;
    m->phase++;
    block->events++;
}

/* One arrival; the phase lasts until so many bytes more have come. */
static void arrive(struct warp *warp, const struct insn *insn, int lane, uint32_t at,
                   uint32_t bytes)
{
    struct mbarrier *m = mbarrier_at(warp, insn, lane, at);
    if (!m)
        return;
    if (m->missing == 0) {
        sim_fault_at(warp, insn, lane, SIM_DIVERGENT_BARRIER,
                     "comes to the mbarrier at byte %u of shared memory, whose phase has had its "
                     "%u arrivals",
                     byte_of(warp->block, m->at), m->count);
        return;
    }
    m->bytes += bytes;
    if (m->bytes > COUNT_MAX) {
        sim_fault_at(warp, insn, lane, SIM_BAD_PTX,
                     "expects %lld bytes at the mbarrier at byte %u of shared memory: %d can be",
                     (long long)m->bytes, byte_of(warp->block, m->at), COUNT_MAX);
        return;
    }
    sim_order_release(warp, &m->running);
    m->missing--;
    end_phase(warp->block, m);
}

static void arrive_expecting(struct warp *warp, const struct insn *insn)
{
    const uint32_t *address = sim_slot(warp, insn->o[0]), *bytes = sim_slot(warp, insn->o[1]);
    for (uint32_t left = warp->mask; left && !warp->block->stop; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        uint32_t at = address[lane] + (uint32_t)insn->integer[0];
        if (sim_shared_at(warp, insn, lane, at, MBARRIER_BYTES, &at))
            arrive(warp, insn, lane, at, bytes[lane]);
    }
}

static void arrive_in_cluster(struct warp *warp, const struct insn *insn)
{
    const uint32_t *address = sim_slot(warp, insn->o[0]);
    for (uint32_t left = warp->mask; left && !warp->block->stop; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        uint32_t at = address[lane] + (uint32_t)insn->integer[0];
        if (!cluster_at(warp, insn, lane, at, MBARRIER_BYTES, &at))
            return;
        const uint32_t rank = at / warp->block->launch->shared_stride;
        if (rank != warp->rank)
            warp->reached[rank] = (struct reach){insn, warp->block->now, (uint32_t)lane};
        arrive(warp, insn, lane, at, 0);
    }
}

static void wait_stuck(struct warp *warp, const struct insn *insn, int lane)
{
    const uint32_t *address = sim_slot(warp, insn->o[1]);
    const struct mbarrier *m =
        find(warp->block, warp->shared_at + address[lane] + (uint32_t)insn->integer[0]);
    sim_fault_at(warp, insn, lane, SIM_DIVERGENT_BARRIER,
                 "waits for phase %u of the mbarrier at byte %u of shared memory, which lacks %u "
                 "arrivals and %lld bytes, and no thread goes on",
                 m->phase, byte_of(warp->block, m->at), m->missing, (long long)m->bytes);
}

static void try_wait(struct warp *warp, const struct insn *insn)
{
    uint32_t *result = sim_slot(warp, insn->o[0]), early = 0;
    const uint32_t *address = sim_slot(warp, insn->o[1]), *parity = sim_slot(warp, insn->o[2]);
    const struct mbarrier *acquired = NULL;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        uint32_t at = address[lane] + (uint32_t)insn->integer[0];
        const struct mbarrier *m = NULL;
        if (!sim_shared_at(warp, insn, lane, at, MBARRIER_BYTES, &at) ||
            !(m = mbarrier_at(warp, insn, lane, at)))
            return;
        if ((m->phase & 1) == (parity[lane] & 1)) {
            early |= UINT32_C(1) << lane;
        } else if (m != acquired) {
            sim_order_join(&warp->order, &m->done);
            acquired = m;
        }
    }
    if (early == warp->mask && (early & ~warp->tried) == 0) {
        sim_wait(warp, insn, wait_stuck);
        return;
    }
    warp->tried = (warp->tried & ~warp->mask) | early;
    for (uint32_t left = warp->mask; left; left &= left - 1)
        result[__builtin_ctz(left)] = early >> __builtin_ctz(left) & 1 ? 0 : UINT32_MAX;
}

/* ---- the barrier of a cluster ---- */

/* Threads that have not ended and have not come to it. */
static uint32_t cluster_misses(const struct block *block)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < block->launch->cluster_warps; i++)
        count += (uint32_t)__builtin_popcount(block->warps[i].live & ~block->warps[i].at_cluster);
    return count;
}

static void end_cluster_phase(struct block *block)
{
    struct cluster_barrier *b = &block->at_cluster;
    if (cluster_misses(block))
        return;
    sim_order_join(&b->done, &b->running);
    b->running = (struct order){{0}};
    for (uint32_t i = 0; i < block->launch->cluster_warps; i++)
        block->warps[i].at_cluster = 0;
    block->events++;
}

static void cluster_arrive(struct warp *warp, const struct insn *insn)
{
    const uint32_t twice = warp->unawaited & warp->mask;
    if (twice) {
        sim_fault_at(warp, insn, __builtin_ctz(twice), SIM_DIVERGENT_BARRIER,
                     "comes to the barrier of the cluster twice without waiting");
        return;
    }
    sim_order_release(warp, &warp->block->at_cluster.running);
    warp->at_cluster |= warp->mask;
    warp->unawaited |= warp->mask;
    end_cluster_phase(warp->block);
}

static void cluster_stuck(struct warp *warp, const struct insn *insn, int lane)
{
    sim_fault_at(warp, insn, lane, SIM_DIVERGENT_BARRIER,
                 "waits for %u threads of the cluster, and no thread goes on",
                 cluster_misses(warp->block));
}

static void cluster_wait(struct warp *warp, const struct insn *insn)
{
    const uint32_t absent = warp->mask & ~warp->unawaited;
    if (absent) {
        sim_fault_at(warp, insn, __builtin_ctz(absent), SIM_DIVERGENT_BARRIER,
                     "waits at the barrier of the cluster without having come to it");
        return;
    }
    end_cluster_phase(warp->block); /* threads may have ended since the last came */
    if (warp->at_cluster & warp->mask) {
        sim_wait(warp, insn, cluster_stuck);
        return;
    }
    warp->unawaited &= ~warp->mask;
    sim_order_join(&warp->order, &warp->block->at_cluster.done);
}

/* ---- TMA ---- */

static bool read_map(struct warp *warp, const struct insn *insn, int lane, uint64_t address,
                     struct sim_tensor_map *map)
{
    const struct launch *launch = warp->block->launch;
    const uint64_t at = address - PARAM_WINDOW;
    if (address < PARAM_WINDOW || at + sizeof *map > launch->entry->param_bytes) {
        sim_fault_at(warp, insn, lane, SIM_ILLEGAL_ADDRESS, "no parameter of %zu bytes at %#llx",
                     sizeof *map, (unsigned long long)address);
        return false;
    }
    memcpy(map, launch->params + at, sizeof *map);
    if (map->rank == MAP_RANK && map->swizzle == MAP_SWIZZLE_128B && map->fill == 0 &&
        map->box[0] == MAP_SWIZZLED_BYTES / MAP_ELEMENT_BYTES && map->box[1] > 0 &&
        map->box[1] <= MAP_BOX_MAX)
        return true;
    sim_fault_at(warp, insn, lane, SIM_ILLEGAL_ADDRESS,
                 "the parameter at %#llx is no map of tiles of %d bytes a row",
                 (unsigned long long)address, MAP_SWIZZLED_BYTES);
    return false;
}

/* A row of a box; what lies outside of the array becomes zero. */
static bool fetch_row(struct warp *warp, const struct insn *insn, int lane,
                      const struct sim_tensor_map *map, int64_t row, int64_t column,
                      unsigned char *to)
{
    const int64_t begin = column < 0 ? -column : 0, columns = map->box[0];
    const int64_t left = (int64_t)map->sizes[0] - column, end = left < columns ? left : columns;
    memset(to, 0, MAP_SWIZZLED_BYTES);
    if (row < 0 || row >= (int64_t)map->sizes[1] || begin >= end)
        return true;
    return sim_global_read(warp, insn, lane,
                           map->address + (uint64_t)row * map->row_bytes +
                               (uint64_t)(column + begin) * MAP_ELEMENT_BYTES,
                           (uint32_t)(end - begin) * MAP_ELEMENT_BYTES, MAP_ELEMENT_BYTES,
                           to + begin * MAP_ELEMENT_BYTES);
}

static void store_swizzled(unsigned char *shared, uint32_t at, const unsigned char *row)
{
    enum { CHUNK = 16 };
    for (uint32_t i = 0; i < MAP_SWIZZLED_BYTES; i += CHUNK)
        memcpy(shared + ((at + i) ^ at / MAP_SWIZZLED_BYTES % 8 * CHUNK), row + i, CHUNK);
}

/* Begins a copy of so many bytes to one block, at `to` of its shared memory. */
static bool begin_copy(struct warp *warp, const struct insn *insn, int lane, uint32_t rank,
                       uint32_t to, uint32_t barrier, uint32_t bytes)
{
    const uint32_t high = (rank + 1) << RANK_SHIFT;
    uint32_t at, last;
    if (!cluster_at(warp, insn, lane, high | to, MAP_SWIZZLED_BYTES, &at) ||
        !cluster_at(warp, insn, lane, high | (to + bytes - MAP_SWIZZLED_BYTES), MAP_SWIZZLED_BYTES,
                    &last) ||
        !cluster_at(warp, insn, lane, high | barrier, MBARRIER_BYTES, &last))
        return false;
    const struct mbarrier *m = mbarrier_at(warp, insn, lane, last);
    if (!m || !sim_shared_is_fenced(warp, insn, lane, last))
        return false;
    struct block *block = warp->block;
    const uint32_t number = (uint32_t)(m - block->mbarriers);
    if (!sim_shared_copy(warp, insn, lane, at, bytes, number) ||
        !sim_grow(warp, insn, lane, &block->copies, block->copy_count, &block->copy_room,
                  sizeof *block->copies))
        return false;
    block->copies[block->copy_count++] = (struct copy){at, bytes, number};
    return true;
}

/* [shared], [map, {column, row}], [mbarrier]: for one lane, to the blocks of a mask. */
static void copy_tile(struct warp *warp, const struct insn *insn, int lane, uint32_t ranks)
{
    const struct launch *launch = warp->block->launch;
    const uint32_t *tos = sim_slot(warp, insn->o[0]), *barriers = sim_slot(warp, insn->o[4]);
    const int32_t *columns = sim_slot(warp, insn->o[2]), *rows = sim_slot(warp, insn->o[3]);
    const uint32_t to = tos[lane] + (uint32_t)insn->integer[0];
    const uint32_t barrier = barriers[lane] + (uint32_t)insn->integer[1];
    struct sim_tensor_map map;
    unsigned char row[MAP_SWIZZLED_BYTES];
    if ((to | barrier) >> RANK_SHIFT) {
        sim_fault_at(warp, insn, lane, SIM_ILLEGAL_ADDRESS,
                     "to %#x for the mbarrier at %#x, which are not both of its own block", to,
                     barrier);
        return;
    }
    if (!read_map(warp, insn, lane, ((const uint64_t *)sim_slot(warp, insn->o[1]))[lane], &map))
        return;
    for (uint32_t left = ranks; left; left &= left - 1)
        if (!begin_copy(warp, insn, lane, (uint32_t)__builtin_ctz(left), to, barrier,
                        map.box[1] * MAP_SWIZZLED_BYTES))
            return;
    for (uint32_t i = 0; i < map.box[1]; i++) {
        if (!fetch_row(warp, insn, lane, &map, (int64_t)rows[lane] + i, columns[lane], row))
            return;
        for (uint32_t left = ranks; left; left &= left - 1)
            store_swizzled(warp->block->shared +
                               (size_t)__builtin_ctz(left) * launch->shared_stride,
                           to + i * MAP_SWIZZLED_BYTES, row);
    }
}

static void copy_to_own(struct warp *warp, const struct insn *insn)
{
    for (uint32_t left = warp->mask; left && !warp->block->stop; left &= left - 1)
        copy_tile(warp, insn, __builtin_ctz(left), UINT32_C(1) << warp->rank);
}

static void copy_to_many(struct warp *warp, const struct insn *insn)
{
    const uint16_t *ranks = sim_slot(warp, insn->o[5]);
    for (uint32_t left = warp->mask; left && !warp->block->stop; left &= left - 1)
        copy_tile(warp, insn, __builtin_ctz(left), ranks[__builtin_ctz(left)]);
}

void sim_copies_arrive(struct block *block)
{
    for (uint32_t i = 0; i < block->copy_count; i++) {
        const struct copy *copy = &block->copies[i];
        struct mbarrier *m = &block->mbarriers[copy->mbarrier];
        sim_shared_copied(block, copy->to, copy->bytes);
        m->running.before[ACTOR_COPIES + copy->mbarrier] = sim_tick(block);
        m->bytes -= copy->bytes;
        end_phase(block, m);
    }
    block->copy_count = 0;
}

/* Threads see what mbarrier.init did after the barrier that follows anyway; TMA needs
 * this. */
static void fence_init(struct warp *warp, const struct insn *insn)
{
    (void)insn;
    sim_shared_fence_inits(warp);
}

#define COPY "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"

static const struct sim_opcode rows[] = {
    {"mapa.shared::cluster.u32", "r=rr", map_address, GUARD_LANES},
    {"mbarrier.init.shared::cta.b64", "=Sr", mbarrier_init, GUARD_LANES | NEEDS_ORDER},
    {"mbarrier.arrive.expect_tx.shared::cta.b64", "=_Sr", arrive_expecting,
     GUARD_LANES | NEEDS_ORDER},
    {"mbarrier.arrive.shared::cluster.b64", "=_S", arrive_in_cluster, GUARD_LANES | NEEDS_ORDER},
    {"mbarrier.try_wait.parity.shared::cta.b64", "p=Sr", try_wait, GUARD_REFUSED | NEEDS_ORDER},
    {"fence.mbarrier_init.release.cluster", "=", fence_init, GUARD_LANES},
    {"barrier.cluster.arrive", "=", cluster_arrive, GUARD_REFUSED | NEEDS_ORDER},
    {"barrier.cluster.wait", "=", cluster_wait, GUARD_REFUSED | NEEDS_ORDER},
    {COPY, "=STS", copy_to_own, GUARD_LANES | NEEDS_ORDER},
    {COPY ".multicast::cluster", "=STSh", copy_to_many, GUARD_LANES | NEEDS_ORDER},
};
SIM_TABLE(sim_cluster_opcodes, rows);
