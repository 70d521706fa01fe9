/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.h: the memory of a simulated device: allocations with guard space between them, and for
 * every byte whether it was ever written.
 *
 * A device address of a discrete GPU is no host address: a program that follows one faults, as on
 * the real thing. Managed memory has the same address on both sides.
 *
 * Adding and removing must not overlap with anything else; finding and marking may run in many
 * threads.
 */
#ifndef NOJIT_SIM_MEMORY_H
#define NOJIT_SIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_memory;

struct sim_allocation {
    uint64_t address; /* on the device; a multiple of 256 */
    size_t bytes;
    unsigned char *host; /* the same bytes */
    unsigned char
        *written;      /* one byte for each byte: 0 until something wrote it; NULL: not kept, or all
                               were written at once */
    uint64_t *writers; /* one for each 4 bytes: the block that wrote them last, as the machine
                               notes it; NULL: not kept */
    uint32_t *launch;  /* the last launch that wrote any of them: others' writers tell it nothing */
};

/* Returns zeroed memory of the host, at a multiple of 256, that takes few page faults where it is large; or NULL. */
void *sim_pages(size_t bytes);
void sim_pages_free(void *pages, size_t bytes);
/* Sets bytes of such memory to a value. Of many of them, pages that nobody changes later take no memory. */
void sim_pages_fill(void *to, int value, size_t bytes);

/* An empty memory, to be destroyed by the caller, or NULL. */
struct sim_memory *sim_memory_create(void);
void sim_memory_destroy(struct sim_memory *memory);

/* Returns the new allocation's address, 0 if the host has no memory left. */
uint64_t sim_memory_add(struct sim_memory *memory, size_t bytes, bool managed);
/* Returns false if nothing begins at address. */
bool sim_memory_remove(struct sim_memory *memory, uint64_t address);

/* The allocation that holds all of [address, address + bytes), or NULL. */
const struct sim_allocation *sim_memory_find(const struct sim_memory *memory, uint64_t address,
                                             size_t bytes);
/* The allocation that ends last before address, or begins first after it, for messages; or NULL. */
const struct sim_allocation *sim_memory_nearest(const struct sim_memory *memory, uint64_t address);

/* Marks bytes as written: by the host, by a copy, by a kernel. */
void sim_memory_mark(const struct sim_allocation *allocation, uint64_t address, size_t bytes);

#endif
