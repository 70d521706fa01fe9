/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl_memory.c: memory of the simulated NCCL. A window is registered while NCCL is asked whether it is ready, as the
 * real one does beside the caller: until then no call may be made, and what it is called is not known.
 */
#include "nccl.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct nccl_window {
    struct nccl_window *next;
    uint64_t address, bytes, number; /* from 1, of those of its rank */
    struct nccl_window **out;        /* NULL once it is there */
};

static void *of_driver(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver ? dlsym(driver, name) : NULL;
}

NCCL_CALL(ncclMemAlloc, (uint64_t * out, size_t bytes), (out, bytes))
{
    int (*take)(uint64_t * out, size_t bytes);
    void *found = of_driver("cuMemAlloc_v2");
    memcpy(&take, &found, sizeof take);
    return take && take(out, bytes) == 0 ? 0 : NCCL_CUDA_ERROR;
}

NCCL_CALL(ncclMemFree, (uint64_t address), (address))
{
    int (*give)(uint64_t address);
    void *found = of_driver("cuMemFree_v2");
    memcpy(&give, &found, sizeof give);
    return give && give(address) == 0 ? 0 : NCCL_CUDA_ERROR;
}

NCCL_CALL(ncclCommWindowRegister,
          (struct nccl_comm * c, uint64_t address, size_t bytes, struct nccl_window **out,
           int flags),
          (c, address, bytes, out, flags))
{
    struct nccl_window *w = calloc(1, sizeof *w);
    if (!w || flags != NJ_NCCL_WIN_COLL_SYMMETRIC || nccl_windows_pending(c)) {
        free(w);
        return nccl_say(c->hook, NCCL_INVALID_USAGE, "rank %d: a window with flags %d", c->rank,
                        flags);
    }
    *w = (struct nccl_window){c->windows, address, bytes, ++c->registered, out};
    c->windows = w;
    return 0; /* though it is in progress */
}

NCCL_CALL(ncclCommWindowDeregister, (struct nccl_comm * c, struct nccl_window *w), (c, w))
{
    struct nccl_window **at = &c->windows;
    while (*at && *at != w)
        at = &(*at)->next;
    if (!*at)
        return nccl_say(c->hook, NCCL_INVALID_ARGUMENT, "rank %d: not a window", c->rank);
    *at = w->next;
    free(w);
    return 0;
}

int nccl_windows_pending(const struct nccl_comm *c)
{
    return c->windows && c->windows->out;
}

void nccl_windows_settle(struct nccl_comm *c)
{
    if (!nccl_windows_pending(c))
        return;
    *c->windows->out = c->windows;
    c->windows->out = NULL;
}

struct nccl_at nccl_find(const struct nccl_comm *c, uint64_t address)
{
    for (const struct nccl_window *w = c->windows; w; w = w->next)
        if (address >= w->address && address < w->address + w->bytes)
            return (struct nccl_at){w->number, w->bytes, address - w->address};
    return (struct nccl_at){0};
}
