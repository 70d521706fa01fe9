/* SPDX-License-Identifier: Apache-2.0
 *
 * vulkan_check.c: results of Vulkan as sentences.
 */
#include <stdio.h>

#include "backend.h"

static const char *name_of(VkResult result)
{
    static const struct {
        VkResult result;
        const char *name;
    } names[] = {
        {VK_ERROR_OUT_OF_HOST_MEMORY, "out of host memory"},
        {VK_ERROR_OUT_OF_DEVICE_MEMORY, "out of device memory"},
        {VK_ERROR_INITIALIZATION_FAILED, "initialization failed"},
        {VK_ERROR_DEVICE_LOST, "device lost"},
        {VK_ERROR_MEMORY_MAP_FAILED, "memory cannot be mapped"},
        {VK_ERROR_EXTENSION_NOT_PRESENT, "extension not present"},
        {VK_ERROR_FEATURE_NOT_PRESENT, "feature not present"},
        {VK_ERROR_TOO_MANY_OBJECTS, "too many objects"},
        {VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS, "out of addresses"},
        {VK_ERROR_UNKNOWN, "unknown error"},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].result == result)
            return names[i].name;
    return "unexpected result";
}

int nj_vk_check(nj_context *ctx, VkResult result, const char *what)
{
    struct nj_vk *vk = nj_vk_of(ctx);

    if (result == VK_SUCCESS)
        return 0;
    if (vk->lost[0])
        return nj_fail(ctx, NJ_E_DEVICE, "%.200s: not possible since %.780s", what, vk->lost);
    if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY)
        return nj_fail(ctx, NJ_E_NOMEM, "%s: %s", what, name_of(result));
    if (result != VK_ERROR_DEVICE_LOST)
        return nj_fail(ctx, NJ_E_DEVICE, "%s: %s (%d)", what, name_of(result), (int)result);
    snprintf(vk->lost, sizeof vk->lost,
             "%.200s: the Vulkan device is lost; last enqueued was %s; restart the program, with a "
             "smaller batch if the GPU's watchdog ended it",
             what, ctx->last_key ? ctx->last_key : "nothing");
    return nj_fail(ctx, NJ_E_DEVICE, "%s", vk->lost);
}
