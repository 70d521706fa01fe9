/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c: the memory of a simulated device. Addresses of a discrete device lie where no host
 * address can, and none is given twice, so that a stale pointer never finds what came after.
 * Managed memory, which the host writes behind the device's back, keeps no record of writes.
 */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, GUARD_BYTES = 64 << 10 };
/* Above what x86-64 (47 bits) and aarch64 (52 bits) give to a program, below aarch64's tags. */
static const uint64_t FIRST_ADDRESS = (uint64_t)1 << 52;

struct holding {
    struct sim_allocation allocation;
    void *host; /* to be freed: guards included */
};

struct sim_memory {
    struct holding **holdings; /* in order of address */
    size_t count, room;
    uint64_t next; /* address of the next allocation of a discrete device */
};

struct sim_memory *sim_memory_create(void)
{
    struct sim_memory *memory = calloc(1, sizeof *memory);
    if (memory)
        memory->next = FIRST_ADDRESS;
    return memory;
}

static void free_holding(struct holding *holding)
{
    free(holding->host);
    free(holding->allocation.written);
    free(holding->allocation.writers);
    free(holding);
}

void sim_memory_destroy(struct sim_memory *memory)
{
    if (!memory)
        return;
    for (size_t i = 0; i < memory->count; i++)
        free_holding(memory->holdings[i]);
    free(memory->holdings);
    free(memory);
}

/* How many holdings begin at or before address. */
static size_t rank_of(const struct sim_memory *memory, uint64_t address)
{
    size_t low = 0, high = memory->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (memory->holdings[middle]->allocation.address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct holding *make_holding(size_t bytes, bool managed)
{
    struct holding *holding = calloc(1, sizeof *holding);
    if (!holding)
        return NULL;
    struct sim_allocation *allocation = &holding->allocation;
    allocation->bytes = bytes;
    holding->host = calloc(1, bytes + 2 * GUARD_BYTES);
    if (holding->host)
        allocation->host = (unsigned char *)(((uintptr_t)holding->host + GUARD_BYTES) &
                                             ~(uintptr_t)(ALIGNMENT - 1));
    if (!managed)
        allocation->written = calloc(1, bytes + 1);
    allocation->writers = calloc(bytes / 4 + 1, sizeof *allocation->writers); /* or done without */
    if (!holding->host || (!managed && !allocation->written)) {
        free_holding(holding);
        return NULL;
    }
    return holding;
}

uint64_t sim_memory_add(struct sim_memory *memory, size_t bytes, bool managed)
{
    if (memory->count == memory->room) {
        const size_t room = memory->room ? 2 * memory->room : 16;
        struct holding **holdings = realloc(memory->holdings, room * sizeof *holdings);
        if (!holdings)
            return 0;
        memory->holdings = holdings;
        memory->room = room;
    }
    struct holding *holding = make_holding(bytes, managed);
    if (!holding)
        return 0;
    uint64_t address = (uintptr_t)holding->allocation.host;
    if (!managed) {
        address = memory->next;
        memory->next += (bytes + 2 * GUARD_BYTES) & ~(uint64_t)(GUARD_BYTES - 1);
    }
    holding->allocation.address = address;
    const size_t at = rank_of(memory, address);
    memmove(memory->holdings + at + 1, memory->holdings + at,
            (memory->count - at) * sizeof *memory->holdings);
    memory->holdings[at] = holding;
    memory->count++;
    return address;
}

bool sim_memory_remove(struct sim_memory *memory, uint64_t address)
{
    const size_t rank = rank_of(memory, address);
    if (rank == 0 || memory->holdings[rank - 1]->allocation.address != address)
        return false;
    free_holding(memory->holdings[rank - 1]);
    memmove(memory->holdings + rank - 1, memory->holdings + rank,
            (memory->count - rank) * sizeof *memory->holdings);
    memory->count--;
    return true;
}

const struct sim_allocation *sim_memory_find(const struct sim_memory *memory, uint64_t address,
                                             size_t bytes)
{
    const size_t rank = rank_of(memory, address);
    if (rank == 0)
        return NULL;
    const struct sim_allocation *found = &memory->holdings[rank - 1]->allocation;
    const uint64_t into = address - found->address;
    return into <= found->bytes && bytes <= found->bytes - into ? found : NULL;
}

const struct sim_allocation *sim_memory_nearest(const struct sim_memory *memory, uint64_t address)
{
    const size_t rank = rank_of(memory, address);
    if (rank > 0)
        return &memory->holdings[rank - 1]->allocation;
    return memory->count ? &memory->holdings[0]->allocation : NULL;
}

void sim_memory_mark(const struct sim_allocation *allocation, uint64_t address, size_t bytes)
{
    if (allocation->written)
        memset(allocation->written + (address - allocation->address), 1, bytes);
}
