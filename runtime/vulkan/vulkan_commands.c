/* SPDX-License-Identifier: Apache-2.0
 *
 * vulkan_commands.c: command buffers of a stream, and their submission. All streams share one queue
 * and one semaphore that counts submissions, so a number says whether work is done. A stream runs in
 * order: a barrier follows each command.
 */
#include <stdlib.h>

#include "backend.h"

int nj_vk_wait(nj_context *ctx, uint64_t value)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &vk->done,
                                      .pValues = &value};

    return nj_vk_check(ctx, vk->api.WaitSemaphores(vk->device, &info, UINT64_MAX),
                       "waiting for the GPU");
}

int nj_vk_commands_create(nj_stream *s)
{
    struct nj_vk *vk = nj_vk_of(s->ctx);
    struct nj_vk_stream *own = calloc(1, sizeof *own);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = vk->family};
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = NJ_VK_BATCHES};
    int rc;

    if (!own)
        return nj_fail(s->ctx, NJ_E_NOMEM, "nj_stream_create: out of host memory");
    s->handle = own;
    own->next = vk->streams;
    vk->streams = own;
    rc = nj_vk_check(s->ctx, vk->api.CreateCommandPool(vk->device, &pool, NULL, &own->pool),
                     "nj_stream_create");
    info.commandPool = own->pool;
    if (rc == 0)
        rc = nj_vk_check(s->ctx, vk->api.AllocateCommandBuffers(vk->device, &info, own->commands),
                         "nj_stream_create");
    return rc;
}

void nj_vk_commands_destroy(nj_stream *s)
{
    struct nj_vk *vk = nj_vk_of(s->ctx);
    struct nj_vk_stream *own = nj_vk_stream_of(s), **at = &vk->streams;

    if (!own)
        return;
    while (*at && *at != own)
        at = &(*at)->next;
    if (*at)
        *at = own->next;
    vk->api.DestroyCommandPool(vk->device, own->pool, NULL);
    free(own);
    s->handle = NULL;
}

int nj_vk_begin(nj_stream *s, VkCommandBuffer *out)
{
    struct nj_vk *vk = nj_vk_of(s->ctx);
    struct nj_vk_stream *own = nj_vk_stream_of(s);
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    int rc;

    *out = own->commands[own->at];
    if (own->open)
        return 0;
    rc = nj_vk_wait(s->ctx, own->value[own->at]);
    if (rc == 0)
        rc = nj_vk_check(s->ctx, vk->api.ResetCommandBuffer(*out, 0), "recording commands");
    if (rc == 0)
        rc = nj_vk_check(s->ctx, vk->api.BeginCommandBuffer(*out, &info), "recording commands");
    own->open = rc == 0;
    own->recorded = 0;
    own->operations = 0;
    return rc;
}

/* Make written data visible to later commands, and at the end of a batch to the host. */
static void put_barrier(struct nj_vk *vk, VkCommandBuffer commands, int for_host)
{
    const VkPipelineStageFlags stages =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = for_host ? VK_ACCESS_HOST_READ_BIT
                                  : VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                        VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};

    vk->api.CmdPipelineBarrier(commands, stages, for_host ? VK_PIPELINE_STAGE_HOST_BIT : stages, 0,
                               1, &barrier, 0, NULL, 0, NULL);
}

int nj_vk_submit(nj_stream *s)
{
    struct nj_vk *vk = nj_vk_of(s->ctx);
    struct nj_vk_stream *own = nj_vk_stream_of(s);
    const uint64_t value = vk->submitted + 1;
    const VkTimelineSemaphoreSubmitInfo count = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value};
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &count,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &own->commands[own->at],
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &vk->done};

    if (!own->open)
        return 0;
    put_barrier(vk, own->commands[own->at], 1);
    own->open = 0;
    TRY(nj_vk_check(s->ctx, vk->api.EndCommandBuffer(own->commands[own->at]),
                    "recording commands"));
    TRY(nj_vk_check(s->ctx, vk->api.QueueSubmit(vk->queue, 1, &info, VK_NULL_HANDLE),
                    "submitting commands"));
    vk->submitted = value;
    own->value[own->at] = value;
    own->at = (own->at + 1) % NJ_VK_BATCHES;
    return 0;
}

int nj_vk_piece(nj_stream *s, double operations)
{
    struct nj_vk_stream *own = nj_vk_stream_of(s);

    own->recorded++;
    own->operations += operations;
    return own->recorded < NJ_VK_SUBMIT_AFTER && own->operations < s->ctx->info.submit_operations
               ? 0
               : nj_vk_submit(s);
}

int nj_vk_recorded(nj_stream *s, double operations)
{
    struct nj_vk_stream *own = nj_vk_stream_of(s);

    put_barrier(nj_vk_of(s->ctx), own->commands[own->at], 0);
    return nj_vk_piece(s, operations);
}

int nj_vk_finish(nj_stream *s)
{
    struct nj_vk_stream *own = nj_vk_stream_of(s);
    uint64_t last = 0;
    int rc = nj_vk_submit(s);

    for (int i = 0; i < NJ_VK_BATCHES; i++)
        if (own->value[i] > last)
            last = own->value[i];
    if (rc == 0)
        rc = nj_vk_wait(s->ctx, last);
    own->staged = 0;
    return rc;
}
