/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c: the memory of a simulated device. Addresses of a discrete device lie where no host
 * address can, and none is given twice, so that a stale pointer never finds what came after.
 * Managed memory, which the host writes behind the device's back, keeps no record of writes.
 */
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 256, GUARD_BYTES = 64 << 10 };
/* The sizes of memory that is mapped: from LARGE_BYTES on, and up to SPARSE_BYTES in pages of the largest kind. Larger
 * memory is hardly ever used as a whole. */
enum { LARGE_BYTES = 1 << 20, SPARSE_BYTES = 256 << 20 };
/* Filled memory is pages of FILL_BYTES over and over if it is at least FILLED_BYTES. */
enum { FILL_BYTES = 256 << 10, FILLED_BYTES = 4 << 20 };
/* Above what x86-64 (47 bits) and aarch64 (52 bits) give to a program, below aarch64's tags. */
static const uint64_t FIRST_ADDRESS = (uint64_t)1 << 52;

struct holding {
    struct sim_allocation allocation;
    void *host; /* to be freed: guards included */
    unsigned char *marks;
    uint32_t launch;
};

struct sim_memory {
    struct holding **holdings; /* in order of address */
    size_t count, room;
    uint64_t next; /* address of the next allocation of a discrete device */
};

void *sim_pages(size_t bytes)
{
    const size_t rounded = (bytes + ALIGNMENT) & ~(size_t)(ALIGNMENT - 1);
    if (bytes < LARGE_BYTES) {
        void *block = aligned_alloc(ALIGNMENT, rounded);
        return block ? memset(block, 0, rounded) : NULL;
    }
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    if (bytes < SPARSE_BYTES)
        madvise(pages, bytes, MADV_HUGEPAGE); /* or done without */
    return pages;
}

void sim_pages_free(void *pages, size_t bytes)
{
    if (pages && bytes >= LARGE_BYTES)
        munmap(pages, bytes);
    else
        free(pages);
}

/* Maps whole pages over [to, to + bytes) that are copies of a few, until they are changed. Returns false, with any part
 * done, where the host does not do so. */
static bool map_copies(unsigned char *to, int value, size_t bytes)
{
    const int fd = memfd_create("fill", MFD_CLOEXEC);
    bool done = fd >= 0 && ftruncate(fd, FILL_BYTES) == 0;
    void *few =
        done ? mmap(NULL, FILL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    done = few != MAP_FAILED;
    if (done) {
        memset(few, value, FILL_BYTES);
        munmap(few, FILL_BYTES);
    }
    for (size_t at = 0; at < bytes && done; at += FILL_BYTES) {
        const size_t part = bytes - at < FILL_BYTES ? bytes - at : FILL_BYTES;
        done = mmap(to + at, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) !=
               MAP_FAILED;
    }
    if (fd >= 0)
        close(fd);
    return done;
}

void sim_pages_fill(void *to, int value, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)to;
    const uintptr_t first = (begin + page - 1) & ~(page - 1), last = (begin + bytes) & ~(page - 1);
    if (bytes < FILLED_BYTES || !map_copies((unsigned char *)first, value, last - first)) {
        memset(to, value, bytes);
        return;
    }
    memset(to, value, first - begin);
    memset((void *)last, value, begin + bytes - last);
}

struct sim_memory *sim_memory_create(void)
{
    struct sim_memory *memory = calloc(1, sizeof *memory);
    if (memory)
        memory->next = FIRST_ADDRESS;
    return memory;
}

/* Bytes of the host's memory that holds so many, and of what is kept of their writers. */
static size_t host_bytes(size_t bytes)
{
    return bytes + 2 * GUARD_BYTES;
}

static size_t writers_bytes(size_t bytes)
{
    return (bytes / 4 + 1) * sizeof(uint64_t);
}

static void free_holding(struct holding *holding)
{
    const size_t bytes = holding->allocation.bytes;
    sim_pages_free(holding->host, host_bytes(bytes));
    sim_pages_free(holding->marks, bytes + 1);
    sim_pages_free(holding->allocation.writers, writers_bytes(bytes));
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
    allocation->launch = &holding->launch;
    holding->host = sim_pages(host_bytes(bytes));
    if (holding->host)
        allocation->host = (unsigned char *)(((uintptr_t)holding->host + GUARD_BYTES) &
                                             ~(uintptr_t)(ALIGNMENT - 1));
    if (!managed)
        allocation->written = holding->marks = sim_pages(bytes + 1);
    allocation->writers = sim_pages(writers_bytes(bytes)); /* or done without */
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
    if (bytes ==
        allocation->bytes) /* arenas are zeroed, inputs copied as a whole: no reads to look for */
        ((struct sim_allocation *)(uintptr_t)allocation)->written = NULL;
    else if (allocation->written)
        memset(allocation->written + (address - allocation->address), 1, bytes);
}
