/* SPDX-License-Identifier: Apache-2.0
 *
 * vulkan_memory.c: allocations and copies. Callers know device memory by its address on the GPU and
 * may point into it, as shaders do; for a copy the buffer behind a pointer is looked up. Memory that
 * is not from nj_alloc() goes through a staging buffer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

enum { STAGING_BYTES = 8 << 20 };

/* ---- allocation ---- */

/* Return the first memory type that has all flags, or -1. */
static int find_type(const struct nj_vk *vk, uint32_t allowed, VkMemoryPropertyFlags flags)
{
    for (uint32_t i = 0; i < vk->memory.memoryTypeCount; i++)
        if (allowed >> i & 1 && (vk->memory.memoryTypes[i].propertyFlags & flags) == flags)
            return (int)i;
    return -1;
}

static int choose_type(const struct nj_vk *vk, enum nj_memory kind, uint32_t allowed)
{
    const VkMemoryPropertyFlags host =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    int type;

    if (kind == NJ_MEM_DEVICE)
        return find_type(vk, allowed, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    type = find_type(vk, allowed, host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    return type < 0 ? find_type(vk, allowed, host) : type;
}

static int create_buffer(nj_context *ctx, struct nj_vk_memory *m, size_t bytes, const char *what)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    const VkBufferCreateInfo buffer = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateFlagsInfo addressed = {.sType =
                                                     VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                                 .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .pNext = &addressed};
    VkMemoryRequirements needs;
    int type;

    TRY(nj_vk_check(ctx, vk->api.CreateBuffer(vk->device, &buffer, NULL, &m->buffer), what));
    vk->api.GetBufferMemoryRequirements(vk->device, m->buffer, &needs);
    type = choose_type(vk, m->kind, needs.memoryTypeBits);
    if (type < 0)
        return nj_fail(ctx, NJ_E_NOMEM, "%s: the driver has no such memory", what);
    info.allocationSize = needs.size;
    info.memoryTypeIndex = (uint32_t)type;
    TRY(nj_vk_check(ctx, vk->api.AllocateMemory(vk->device, &info, NULL, &m->memory), what));
    return nj_vk_check(ctx, vk->api.BindBufferMemory(vk->device, m->buffer, m->memory, 0), what);
}

/* Set the offset of the caller's bytes, aligned for both kinds; the buffer has room for that. */
static int place(nj_context *ctx, struct nj_vk_memory *m, const char *what)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                            .buffer = m->buffer};
    void *mapped = NULL;
    uintptr_t start;
    int rc = 0;

    if (m->kind == NJ_MEM_HOST)
        rc = nj_vk_check(
            ctx, vk->api.MapMemory(vk->device, m->memory, 0, VK_WHOLE_SIZE, 0, &mapped), what);
    if (rc != 0)
        return rc;
    start =
        mapped ? (uintptr_t)mapped : (uintptr_t)vk->api.GetBufferDeviceAddress(vk->device, &info);
    m->offset = (NJ_VK_ALIGN - start % NJ_VK_ALIGN) % NJ_VK_ALIGN;
    m->caller = (unsigned char *)(start + m->offset);
    return 0;
}

static void release(struct nj_vk *vk, struct nj_vk_memory *m)
{
    vk->api.DestroyBuffer(vk->device, m->buffer, NULL);
    vk->api.FreeMemory(vk->device, m->memory, NULL);
    free(m);
}

static int clear(nj_context *ctx, const struct nj_vk_memory *m)
{
    if (m->kind == NJ_MEM_HOST) {
        memset(m->caller, 0, m->bytes);
        return 0;
    }
    TRY(nj_vk_zero(&nj_vk_of(ctx)->service, m->caller, m->bytes));
    return nj_vk_finish(&nj_vk_of(ctx)->service);
}

int nj_vk_alloc(nj_context *ctx, enum nj_memory kind, size_t bytes, void **out)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    struct nj_vk_memory *m;
    const size_t rounded = (bytes + 3) / 4 * 4;
    char what[128];
    int rc;

    snprintf(what, sizeof what, "nj_alloc: %zu bytes of %s memory%s", bytes,
             kind == NJ_MEM_HOST ? "host" : "device",
             bytes > vk->allocation_max ? ", more than this driver guarantees at a time" : "");
    if (rounded < bytes || rounded > vk->buffer_max - NJ_VK_ALIGN)
        return nj_fail(ctx, NJ_E_NOMEM,
                       "%s: this Vulkan driver allocates at most %zu at a time; use a smaller "
                       "model, batch or sequence",
                       what, (size_t)vk->buffer_max);
    m = calloc(1, sizeof *m);
    if (!m)
        return nj_fail(ctx, NJ_E_NOMEM, "%s: out of host memory", what);
    m->kind = kind;
    m->bytes = rounded;
    rc = create_buffer(ctx, m, rounded + NJ_VK_ALIGN, what);
    if (rc == 0)
        rc = place(ctx, m, what);
    if (rc != 0) {
        release(vk, m);
        return rc;
    }
    m->next = vk->allocations;
    vk->allocations = m;
    rc = clear(ctx, m);
    if (rc != 0)
        nj_vk_free(ctx, kind, m->caller);
    else
        *out = m->caller;
    return rc;
}

/* Wait until no enqueued command still needs the memory. */
static void settle(nj_context *ctx)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    nj_stream s = {.ctx = ctx};

    for (struct nj_vk_stream *own = vk->streams; own; own = own->next) {
        s.handle = own;
        nj_vk_submit(&s);
    }
    vk->api.DeviceWaitIdle(vk->device);
}

void nj_vk_free(nj_context *ctx, enum nj_memory kind, void *ptr)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    struct nj_vk_memory **at = &vk->allocations, *m;

    while (*at && ((*at)->caller != ptr || (*at)->kind != kind))
        at = &(*at)->next;
    m = *at;
    if (!m)
        return;
    settle(ctx);
    *at = m->next;
    release(vk, m);
}

void nj_vk_free_all(nj_context *ctx)
{
    struct nj_vk *vk = nj_vk_of(ctx);

    while (vk->allocations) {
        struct nj_vk_memory *m = vk->allocations;

        vk->allocations = m->next;
        release(vk, m);
    }
}

/* ---- copies ---- */

/* Return the allocation that holds a pointer, or NULL: other host memory. *offset: offset within its buffer. */
static const struct nj_vk_memory *find(const struct nj_vk *vk, const void *ptr, size_t *offset)
{
    for (const struct nj_vk_memory *m = vk->allocations; m; m = m->next) {
        const uintptr_t start = (uintptr_t)m->caller, at = (uintptr_t)ptr;

        if (at < start || at - start >= m->bytes)
            continue;
        *offset = m->offset + (at - start);
        return m;
    }
    return NULL;
}

static int copy_buffers(nj_stream *s, VkBuffer to, size_t to_offset, VkBuffer from,
                        size_t from_offset, size_t bytes)
{
    const VkBufferCopy region = {from_offset, to_offset, bytes};
    VkCommandBuffer commands;
    TRY(nj_vk_begin(s, &commands));
    nj_vk_of(s->ctx)->api.CmdCopyBuffer(commands, from, to, 1, &region);
    return nj_vk_recorded(s, 2 * NJ_VK_BYTE_OPERATIONS * (double)bytes);
}

/* Reserve at most `bytes` in the staging buffer; waits if it is full. */
static int stage(nj_stream *s, size_t *bytes, size_t *offset)
{
    struct nj_vk_stream *own = nj_vk_stream_of(s);
    void *memory = NULL;
    int rc = 0;

    if (!own->staging) {
        rc = nj_vk_alloc(s->ctx, NJ_MEM_HOST, STAGING_BYTES, &memory);
        if (rc == 0)
            own->staging = nj_vk_of(s->ctx)->allocations;
    } else if (own->staged == STAGING_BYTES) {
        rc = nj_vk_finish(s);
    }
    if (rc != 0)
        return rc;
    if (*bytes > STAGING_BYTES - own->staged)
        *bytes = STAGING_BYTES - own->staged;
    *offset = own->staged;
    own->staged += *bytes;
    return 0;
}

static int send_part(nj_stream *s, const struct nj_vk_memory *to, size_t at,
                     const unsigned char *src, size_t staged, size_t bytes)
{
    const struct nj_vk_memory *staging = nj_vk_stream_of(s)->staging;

    memcpy(staging->caller + staged, src, bytes);
    return copy_buffers(s, to->buffer, at, staging->buffer, staging->offset + staged, bytes);
}

static int fetch_part(nj_stream *s, unsigned char *dst, const struct nj_vk_memory *from, size_t at,
                      size_t staged, size_t bytes)
{
    const struct nj_vk_memory *staging = nj_vk_stream_of(s)->staging;
    TRY(copy_buffers(s, staging->buffer, staging->offset + staged, from->buffer, at, bytes));

    TRY(nj_vk_finish(s));
    memcpy(dst, staging->caller + staged, bytes);
    return 0;
}

/* Copy from src to a place in m, or, if dst is not NULL, from there to dst. The latter waits, which a copy of memory
 * that is not pinned may do. */
static int by_staging(nj_stream *s, const struct nj_vk_memory *m, size_t at, unsigned char *dst,
                      const unsigned char *src, size_t bytes)
{
    for (size_t done = 0, part, staged; done < bytes; done += part) {
        int rc;

        part = bytes - done;
        rc = stage(s, &part, &staged);
        if (rc == 0)
            rc = dst ? fetch_part(s, dst + done, m, at + done, staged, part)
                     : send_part(s, m, at + done, src + done, staged, part);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int nj_vk_copy(nj_stream *s, void *dst, const void *src, size_t bytes)
{
    struct nj_vk *vk = nj_vk_of(s->ctx);
    size_t to_offset = 0, from_offset = 0;
    const struct nj_vk_memory *to = find(vk, dst, &to_offset), *from = find(vk, src, &from_offset);

    if (to && from)
        return copy_buffers(s, to->buffer, to_offset, from->buffer, from_offset, bytes);
    if (to)
        return by_staging(s, to, to_offset, NULL, src, bytes);
    if (from)
        return by_staging(s, from, from_offset, dst, NULL, bytes);
    TRY(nj_vk_finish(s));
    memmove(dst, src, bytes);
    return 0;
}

int nj_vk_zero(nj_stream *s, void *dst, size_t bytes)
{
    static const unsigned char zeros[8];
    struct nj_vk *vk = nj_vk_of(s->ctx);
    size_t offset = 0, before, whole;
    const struct nj_vk_memory *m = find(vk, dst, &offset);
    VkCommandBuffer commands;
    int rc;

    if (!m) {
        rc = nj_vk_finish(s);
        if (rc == 0)
            memset(dst, 0, bytes);
        return rc;
    }
    /* A fill writes whole words; the bytes before and after them are copied. */
    before = (4 - offset % 4) % 4 < bytes ? (4 - offset % 4) % 4 : bytes;
    whole = (bytes - before) / 4 * 4;
    TRY(by_staging(s, m, offset, NULL, zeros, before));
    TRY(by_staging(s, m, offset + before + whole, NULL, zeros, bytes - before - whole));
    if (whole > 0) {
        TRY(nj_vk_begin(s, &commands));
        vk->api.CmdFillBuffer(commands, m->buffer, offset + before, whole, 0);
        TRY(nj_vk_recorded(s, NJ_VK_BYTE_OPERATIONS * (double)whole));
    }
    return 0;
}
