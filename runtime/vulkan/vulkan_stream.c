/* SPDX-License-Identifier: Apache-2.0
 *
 * vulkan_stream.c: streams and events. An event is a timestamp and the number of its submission.
 */
#include <stdlib.h>

#include "backend.h"

struct vk_event {
    VkQueryPool query;
    uint64_t value; /* number of the submission; 0: not recorded */
};

int nj_vk_stream_create(nj_stream *s)
{
    return nj_vk_commands_create(s);
}

void nj_vk_stream_destroy(nj_stream *s)
{
    struct nj_vk_stream *own = nj_vk_stream_of(s);

    if (!own)
        return;
    nj_vk_finish(s);
    if (own->staging)
        nj_vk_free(s->ctx, NJ_MEM_HOST, own->staging->caller);
    nj_vk_commands_destroy(s);
}

int nj_vk_stream_sync(nj_stream *s)
{
    return nj_vk_finish(s);
}

int nj_vk_event_create(nj_event *e)
{
    struct nj_vk *vk = nj_vk_of(e->ctx);
    struct vk_event *own = calloc(1, sizeof *own);
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = 1};
    int rc;

    if (!own)
        return nj_fail(e->ctx, NJ_E_NOMEM, "nj_event_create: out of host memory");
    rc = nj_vk_check(e->ctx, vk->api.CreateQueryPool(vk->device, &info, NULL, &own->query),
                     "nj_event_create");
    if (rc != 0)
        free(own);
    else
        e->handle = own;
    return rc;
}

void nj_vk_event_destroy(nj_event *e)
{
    struct nj_vk *vk = nj_vk_of(e->ctx);
    struct vk_event *own = e->handle;

    nj_vk_wait(e->ctx, own->value);
    vk->api.DestroyQueryPool(vk->device, own->query, NULL);
    free(own);
}

int nj_vk_event_record(nj_event *e, nj_stream *s)
{
    struct nj_vk *vk = nj_vk_of(s->ctx);
    struct vk_event *own = e->handle;
    VkCommandBuffer commands;
    TRY(nj_vk_begin(s, &commands));
    if (vk->ns_per_tick > 0) {
        vk->api.CmdResetQueryPool(commands, own->query, 0, 1);
        vk->api.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, own->query, 0);
    }
    TRY(nj_vk_submit(s));
    own->value = vk->submitted;
    return 0;
}

int nj_vk_stream_wait(nj_stream *s, nj_event *e)
{
    const struct vk_event *own = e->handle;

    return nj_vk_wait(s->ctx, own->value);
}

int nj_vk_event_sync(nj_event *e)
{
    const struct vk_event *own = e->handle;

    if (own->value == 0)
        return nj_fail(e->ctx, NJ_E_ARG, "nj_event_sync: the event was not recorded");
    return nj_vk_wait(e->ctx, own->value);
}

static int read_ticks(nj_event *e, uint64_t *out)
{
    struct nj_vk *vk = nj_vk_of(e->ctx);
    const struct vk_event *own = e->handle;
    TRY(nj_vk_event_sync(e));
    return nj_vk_check(
        e->ctx,
        vk->api.GetQueryPoolResults(vk->device, own->query, 0, 1, sizeof *out, out, sizeof *out,
                                    VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
        "nj_event_elapsed_ms");
}

int nj_vk_event_elapsed_ms(nj_event *from, nj_event *to, float *ms)
{
    struct nj_vk *vk = nj_vk_of(to->ctx);
    uint64_t first, last;

    if (vk->ns_per_tick <= 0)
        return nj_fail(to->ctx, NJ_E_UNSUPPORTED, "this Vulkan queue has no timestamps");
    TRY(read_ticks(from, &first));
    TRY(read_ticks(to, &last));
    *ms = (float)((double)((last - first) & vk->ticks_most) * (double)vk->ns_per_tick * 1e-6);
    return 0;
}
