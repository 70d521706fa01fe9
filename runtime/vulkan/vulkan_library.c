/* SPDX-License-Identifier: Apache-2.0
 *
 * vulkan_library.c: opens the Vulkan loader, which is not linked, so that a binary starts anywhere,
 * and makes an instance. The loader is not closed again: drivers keep threads and exit handlers.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "backend.h"
#include "cuda/library.h"

#define LOADER_NAME "libvulkan.so.1"
/* First loader that knows VK_LOADER_LAYERS_DISABLE. */
#define LEAST_LOADER VK_MAKE_API_VERSION(0, 1, 3, 234)

static int lacks(nj_context *ctx, const char *name)
{
    return nj_fail(ctx, NJ_E_DRIVER, LOADER_NAME " has no function %s; install Vulkan 1.3", name);
}

static int resolve_loader(nj_context *ctx, PFN_vkGetInstanceProcAddr get, struct nj_vk_api *api)
{
#define NJ_ROW(name)                                                                               \
    api->name = (PFN_vk##name)get(NULL, "vk" #name);                                               \
    if (!api->name)                                                                                \
        return lacks(ctx, "vk" #name);
    NJ_VK_LOADER_FUNCTIONS(NJ_ROW)
#undef NJ_ROW
    return 0;
}

static int resolve(nj_context *ctx, PFN_vkGetInstanceProcAddr get, struct nj_vk *vk)
{
    struct nj_vk_api *api = &vk->api;

#define NJ_ROW(name)                                                                               \
    api->name = (PFN_vk##name)get(vk->instance, "vk" #name);                                       \
    if (!api->name)                                                                                \
        return lacks(ctx, "vk" #name);
    NJ_VK_FUNCTIONS(NJ_ROW)
#undef NJ_ROW
    return 0;
}

static int create_instance(nj_context *ctx, struct nj_vk *vk)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .pApplicationName = "nojit",
                                           .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    uint32_t version = 0;
    VkResult result;

    if (vk->api.EnumerateInstanceVersion(&version) || version < LEAST_LOADER)
        return nj_fail(ctx, NJ_E_DRIVER, LOADER_NAME " is %u.%u.%u, 1.3.234 or newer is needed",
                       VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                       VK_API_VERSION_PATCH(version));
    result = vk->api.CreateInstance(&info, NULL, &vk->instance);
    if (result == 0)
        return 0;
    vk->instance = NULL;
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return nj_fail(ctx, NJ_E_DRIVER,
                       "no Vulkan driver can be used: the loader finds none; install the one of "
                       "the GPU, such as Debian's mesa-vulkan-drivers");
    return nj_fail(ctx, NJ_E_DRIVER,
                   "no Vulkan driver can be used (error %d); install the one of the GPU, such as "
                   "Debian's mesa-vulkan-drivers",
                   (int)result);
}

int nj_vk_open_library(nj_context *ctx)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    char why[300] = "";
    void *library =
        nj_loader_is_safe(why, sizeof why) ? dlopen(LOADER_NAME, RTLD_NOW | RTLD_LOCAL) : NULL;
    PFN_vkGetInstanceProcAddr get = NULL;
    void *symbol = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;

    if (!symbol)
        return nj_fail(ctx, NJ_E_DRIVER,
                       "Vulkan is not here (%.300s); install the GPU's driver and the loader, "
                       "such as Debian's libvulkan1",
                       why[0]    ? why
                       : library ? "no vkGetInstanceProcAddr in " LOADER_NAME
                                 : dlerror());
    memcpy(&get, &symbol, sizeof get);
    TRY(resolve_loader(ctx, get, &vk->api));
    TRY(create_instance(ctx, vk));
    return resolve(ctx, get, vk);
}
