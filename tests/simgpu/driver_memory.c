/* SPDX-License-Identifier: Apache-2.0
 *
 * driver_memory.c: memory and copies. How much there is comes from the profile; what is allocated
 * takes host memory only where it is written.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../runtime/cuda/api.h"
#include "driver.h"

struct sim_allocated {
    struct sim_allocated *next;
    uint64_t address;
    size_t bytes;
    enum kind { DEVICE, MANAGED, PINNED } kind;
};

static uint64_t *used_of(struct sim_device *d, enum kind kind)
{
    return kind == DEVICE ? &d->device_used : &d->managed_used;
}

/* Return the bytes of a kind that are available. */
static uint64_t left(const struct sim_device *d, enum kind kind)
{
    const uint64_t used = d->device_used + d->managed_used;
    const uint64_t most = d->profile.memory_bytes;
    const uint64_t pool = most > used ? most - used : 0;
    const uint64_t device =
        d->profile.device_bytes > d->device_used ? d->profile.device_bytes - d->device_used : 0;
    return kind == DEVICE && device < pool ? device : pool;
}

static int take(enum kind kind, size_t bytes, uint64_t *out)
{
    struct sim_device *d = sim_current;
    struct sim_allocated *a;
    if (bytes == 0)
        return CUDA_INVALID_VALUE;
    if (kind != PINNED && bytes > left(d, kind))
        return CUDA_OUT_OF_MEMORY;
    a = malloc(sizeof *a);
    if (!a)
        return CUDA_OUT_OF_MEMORY;
    if (kind == PINNED)
        a->address = (uintptr_t)sim_pages(bytes);
    else
        a->address = sim_memory_add(d->memory, bytes, kind == MANAGED);
    if (!a->address) {
        free(a);
        return CUDA_OUT_OF_MEMORY;
    }
    if (kind == PINNED)
        sim_pages_fill((void *)(uintptr_t)a->address, 0x5a, bytes); /* not zeroed */
    else
        *used_of(d, kind) += bytes;
    a->bytes = bytes;
    a->kind = kind;
    a->next = d->allocated;
    d->allocated = a;
    *out = a->address;
    sim_control_state.live++;
    return CUDA_SUCCESS;
}

static struct sim_allocated **find(uint64_t address, bool pinned)
{
    struct sim_allocated **at = &sim_current->allocated;
    while (*at && ((*at)->address != address || ((*at)->kind == PINNED) != pinned))
        at = &(*at)->next;
    return at;
}

static void drop(struct sim_device *d, struct sim_allocated **at)
{
    struct sim_allocated *a = *at;
    *at = a->next;
    if (a->kind == PINNED) {
        sim_pages_free((void *)(uintptr_t)a->address, a->bytes);
    } else {
        sim_memory_remove(d->memory, a->address);
        *used_of(d, a->kind) -= a->bytes;
    }
    free(a);
}

/* Free memory after the work that uses it has ended, as cuMemFree waits for it. */
static int give(uint64_t address, bool pinned)
{
    if (!sim_current || !sim_current->retained)
        return CUDA_INVALID_CONTEXT;
    struct sim_allocated **at = find(address, pinned);
    if (!*at)
        return CUDA_INVALID_VALUE;
    sim_drain_all(sim_current);
    drop(sim_current, at);
    sim_control_state.live--;
    return sim_current->lost;
}

void sim_memory_free_all(struct sim_device *device)
{
    while (device->allocated)
        drop(device, &device->allocated);
}

SIM_CALL(cuMemGetInfo_v2, SIM_CONTEXT, (size_t * available, size_t *total), (available, total))
{
    const struct sim_device *d = sim_current;
    const uint64_t used = d->device_used + d->managed_used;
    *available = d->profile.free_bytes > used ? d->profile.free_bytes - used : 0;
    *total = d->profile.memory_bytes;
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemAlloc_v2, SIM_CONTEXT | SIM_UNSAFE, (uint64_t * out, size_t bytes), (out, bytes))
{
    return take(DEVICE, bytes, out);
}

SIM_CALL(cuMemAllocManaged, SIM_CONTEXT | SIM_UNSAFE,
         (uint64_t * out, size_t bytes, unsigned flags), (out, bytes, flags))
{
    return flags == 1 || flags == 2 ? take(MANAGED, bytes, out) : CUDA_INVALID_VALUE;
}

SIM_CALL(cuMemHostAlloc, SIM_CONTEXT | SIM_UNSAFE, (void **out, size_t bytes, unsigned flags),
         (out, bytes, flags))
{
    uint64_t address = 0;
    const int result = flags ? CUDA_INVALID_VALUE : take(PINNED, bytes, &address);
    *out = (void *)(uintptr_t)address;
    return result;
}

SIM_CALL(cuMemFree_v2, SIM_STARTED | SIM_UNSAFE, (uint64_t address), (address))
{
    return give(address, false);
}

SIM_CALL(cuMemFreeHost, SIM_STARTED | SIM_UNSAFE, (void *address), (address))
{
    return give((uintptr_t)address, true);
}

/* ---- what addresses mean ---- */

void *sim_bytes(uint64_t address, size_t bytes, int writes, const char *what)
{
    const struct sim_allocation *a = sim_memory_find(sim_current->memory, address, bytes);
    if (!a) {
        sim_say("%s: %zu bytes at 0x%llx are not all of one allocation", what, bytes,
                (unsigned long long)address);
        return NULL;
    }
    const size_t offset = (size_t)(address - a->address);
    if (writes)
        sim_memory_mark(a, address, bytes);
    else if (a->written && memchr(a->written + offset, 0, bytes)) {
        sim_say("%s: reads bytes at 0x%llx that nothing wrote", what, (unsigned long long)address);
        return NULL;
    }
    return a->host + offset;
}

/* Return whether the host may touch these bytes: a pipe refuses others, without a signal. */
static bool is_host_memory(uint64_t address, size_t bytes)
{
    int end[2];
    bool fine = true;
    if (pipe(end))
        return false;
    for (int i = 0; i < 2 && fine; i++)
        fine = write(end[1], (const char *)(uintptr_t)address + (i ? bytes - 1 : 0), 1) == 1;
    close(end[0]);
    close(end[1]);
    return fine;
}

enum side { ON_DEVICE, ON_HOST_PINNED, ON_HOST, NOWHERE };

static enum side side_of(uint64_t address, size_t bytes)
{
    if (sim_memory_find(sim_current->memory, address, bytes))
        return ON_DEVICE;
    if (sim_memory_find(sim_current->memory, address, 1))
        return NOWHERE; /* begins in an allocation and does not end there */
    for (const struct sim_allocated *a = sim_current->allocated; a; a = a->next)
        if (a->kind == PINNED && address >= a->address && address - a->address < a->bytes)
            return bytes <= a->bytes - (address - a->address) ? ON_HOST_PINNED : NOWHERE;
    return is_host_memory(address, bytes) ? ON_HOST : NOWHERE;
}

/* ---- copies ---- */

struct copy {
    uint64_t to, from;
    size_t bytes;
    bool to_device, from_device;
    bool staged; /* the contents of `from` when the copy was asked for lie behind this */
};

static int run_copy(void *argument)
{
    const struct copy *c = argument;
    const int told = sim_told("copy");
    const void *from = c + 1;
    void *to;
    if (told)
        return told;
    if (!c->staged)
        from = c->from_device ? sim_bytes(c->from, c->bytes, 0, "a copy")
                              : (const void *)(uintptr_t)c->from;
    to = c->to_device ? sim_bytes(c->to, c->bytes, 1, "a copy") : (void *)(uintptr_t)c->to;
    if (!from || !to)
        return CUDA_ILLEGAL_ADDRESS;
    memmove(to, from, c->bytes);
    return CUDA_SUCCESS;
}

/* Memory that is not pinned is read before the call returns. */
static int enqueue_staged(struct copy *c, void *stream)
{
    struct copy *with = malloc(sizeof *with + c->bytes);
    if (!with)
        return CUDA_OUT_OF_MEMORY;
    c->staged = true;
    *with = *c;
    memcpy(with + 1, (const void *)(uintptr_t)c->from, c->bytes);
    const int result = sim_enqueue(stream, run_copy, with, sizeof *with + c->bytes);
    free(with);
    return result;
}

SIM_CALL(cuMemcpyAsync, SIM_CONTEXT, (uint64_t dst, uint64_t src, size_t bytes, void *stream),
         (dst, src, bytes, stream))
{
    if (bytes == 0)
        return CUDA_SUCCESS;
    const enum side to = side_of(dst, bytes), from = side_of(src, bytes);
    if (to == NOWHERE || from == NOWHERE) {
        sim_say("cuMemcpyAsync: %zu bytes from 0x%llx to 0x%llx: the %s is no memory", bytes,
                (unsigned long long)src, (unsigned long long)dst,
                to == NOWHERE ? "second" : "first");
        return CUDA_INVALID_VALUE;
    }
    struct copy c = {dst, src, bytes, to == ON_DEVICE, from == ON_DEVICE, false};
    if (sim_is_capturing(stream))
        return sim_enqueue(stream, run_copy, &c, sizeof c);
    if (from == ON_HOST)
        return enqueue_staged(&c, stream);
    const int result = sim_enqueue(stream, run_copy, &c, sizeof c);
    return result == CUDA_SUCCESS && to == ON_HOST ? sim_drain(stream) : result;
}

/* Rows of the device to pinned memory of the host, addresses of both unified: that is how it is called. */
static int run_copy_rows(void *argument)
{
    const struct nj_memcpy_2d *c = argument;
    const int told = sim_told("copy");
    for (size_t i = 0; i < c->height && !told; i++) {
        const void *from = sim_bytes(c->from + i * c->from_pitch, c->width, 0, "a copy of rows");
        if (!from)
            return CUDA_ILLEGAL_ADDRESS;
        memcpy((char *)(uintptr_t)c->to + i * c->to_pitch, from, c->width);
    }
    return told;
}

SIM_CALL(cuMemcpy2DAsync_v2, SIM_CONTEXT, (const struct nj_memcpy_2d *c, void *stream), (c, stream))
{
    enum { UNIFIED = 4 };
    const size_t last = c->height > 0 ? c->height - 1 : 0;
    if (c->from_type != UNIFIED || c->to_type != UNIFIED || c->from_x || c->from_y || c->to_x ||
        c->to_y || c->width == 0 || c->height == 0 || c->width > c->from_pitch ||
        c->width > c->to_pitch)
        return CUDA_INVALID_VALUE;
    if (side_of(c->from, last * c->from_pitch + c->width) != ON_DEVICE ||
        side_of(c->to, last * c->to_pitch + c->width) != ON_HOST_PINNED) {
        sim_say("cuMemcpy2DAsync: %zu rows from 0x%llx: not of the device, or not to pinned memory",
                c->height, (unsigned long long)c->from);
        return CUDA_INVALID_VALUE;
    }
    return sim_enqueue(stream, run_copy_rows, c, sizeof *c);
}

enum { LARGE_BYTES = 1 << 20 };
struct set {
    uint64_t to;
    size_t bytes;
    unsigned char value;
};

/* Zeroes what is most of an arena without touching it: whole pages are taken away, and come back as
 * zeros when they are used. */
static void zero_pages(unsigned char *to, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)to;
    const uintptr_t first = (begin + page - 1) & ~(page - 1), last = (begin + bytes) & ~(page - 1);
    if (first >= last || madvise((void *)first, last - first, MADV_DONTNEED)) {
        memset(to, 0, bytes);
        return;
    }
    memset(to, 0, first - begin);
    memset((void *)last, 0, begin + bytes - last);
}

static int run_set(void *argument)
{
    const struct set *s = argument;
    void *to = sim_bytes(s->to, s->bytes, 1, "cuMemsetD8Async");
    if (!to)
        return CUDA_ILLEGAL_ADDRESS;
    if (s->value == 0 && s->bytes >= LARGE_BYTES)
        zero_pages(to, s->bytes);
    else
        memset(to, s->value, s->bytes);
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemsetD8Async, SIM_CONTEXT,
         (uint64_t dst, unsigned char value, size_t bytes, void *stream),
         (dst, value, bytes, stream))
{
    const struct set s = {dst, bytes, value};
    if (bytes == 0)
        return CUDA_SUCCESS;
    if (!sim_memory_find(sim_current->memory, dst, bytes))
        return CUDA_INVALID_VALUE;
    return sim_enqueue(stream, run_set, &s, sizeof s);
}
