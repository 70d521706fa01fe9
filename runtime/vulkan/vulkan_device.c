/* SPDX-License-Identifier: Apache-2.0
 *
 * vulkan_device.c: what a GPU has to have; opens one with the features that the shaders need, and says
 * how much of its memory can be had.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

enum { EXTENSIONS_MAX = 512, FAMILIES_MAX = 32 };
enum { THREADS_NEEDED = 512, SHARED_BYTES_NEEDED = 32768 };

/* Features that are requested: 64-bit buffer addresses, the scalar layout and timeline semaphores; and, if the
 * device has them, 16-bit elements and refusal of pipelines that would have to be compiled. */
struct features {
    VkPhysicalDeviceFeatures2 all;
    VkPhysicalDeviceVulkan11Features vulkan11;
    VkPhysicalDeviceVulkan12Features vulkan12;
    VkPhysicalDeviceVulkan13Features vulkan13;
};

static void link_features(struct features *f)
{
    memset(f, 0, sizeof *f);
    f->all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    f->all.pNext = &f->vulkan11;
    f->vulkan11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    f->vulkan11.pNext = &f->vulkan12;
    f->vulkan12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    f->vulkan12.pNext = &f->vulkan13;
    f->vulkan13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
}

/* Return the first queue family that computes, or -1. *ticks: number of bits of its timestamps. */
static int find_family(const struct nj_vk *vk, VkPhysicalDevice device, uint32_t *ticks)
{
    VkQueueFamilyProperties families[FAMILIES_MAX];
    uint32_t count = FAMILIES_MAX;

    vk->api.GetPhysicalDeviceQueueFamilyProperties(device, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        *ticks = families[i].timestampValidBits;
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)
            return (int)i;
    }
    return -1;
}

/* ---- requirements on a GPU ---- */

static int lacks_limit(const VkPhysicalDeviceLimits *l, char *why, size_t bytes)
{
    const struct {
        const char *what;
        uint32_t has, needed;
    } limits[] = {
        {"bytes of push constants", l->maxPushConstantsSize, NJ_VK_PUSH_BYTES},
        {"threads of a workgroup", l->maxComputeWorkGroupInvocations, THREADS_NEEDED},
        {"threads of a workgroup in one direction", l->maxComputeWorkGroupSize[0], THREADS_NEEDED},
        {"bytes of shared memory", l->maxComputeSharedMemorySize, SHARED_BYTES_NEEDED},
    };

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (limits[i].has >= limits[i].needed)
            continue;
        snprintf(why, bytes, "it has %u %s, and %u are needed", limits[i].has, limits[i].what,
                 limits[i].needed);
        return 1;
    }
    return 0;
}

static const char *missing_feature(const struct nj_vk *vk, VkPhysicalDevice device)
{
    struct features has;

    link_features(&has);
    vk->api.GetPhysicalDeviceFeatures2(device, &has.all);
    if (!has.all.features.shaderInt64)
        return "64-bit integers";
    if (!has.vulkan12.bufferDeviceAddress)
        return "buffer addresses";
    if (!has.vulkan12.scalarBlockLayout)
        return "the scalar block layout";
    if (!has.vulkan12.timelineSemaphore)
        return "timeline semaphores";
    return NULL;
}

int nj_vk_lacks(const struct nj_vk *vk, VkPhysicalDevice device,
                const VkPhysicalDeviceProperties *p, char *why, size_t bytes)
{
    const char *missing;
    uint32_t ticks = 0;

    if (p->apiVersion < VK_API_VERSION_1_3) {
        snprintf(why, bytes, "its driver has Vulkan %u.%u, and 1.3 is needed",
                 VK_API_VERSION_MAJOR(p->apiVersion), VK_API_VERSION_MINOR(p->apiVersion));
        return 1;
    }
    missing = missing_feature(vk, device);
    if (!missing && find_family(vk, device, &ticks) < 0)
        missing = "a queue that computes";
    if (missing)
        snprintf(why, bytes, "it lacks %s", missing);
    return missing || lacks_limit(&p->limits, why, bytes);
}

int nj_vk_rank_of(VkPhysicalDeviceType type)
{
    return type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU     ? 0
           : type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? 1
           : type == VK_PHYSICAL_DEVICE_TYPE_CPU            ? 3
                                                            : 2;
}

static size_t largest_heap(const VkPhysicalDeviceMemoryProperties *memory)
{
    size_t most = 0;

    for (uint32_t i = 0; i < memory->memoryHeapCount; i++)
        if (memory->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT &&
            memory->memoryHeaps[i].size > most)
            most = memory->memoryHeaps[i].size;
    return most;
}

void nj_vk_sizes(const struct nj_vk *vk, VkPhysicalDevice device, VkDeviceSize *memory,
                 VkDeviceSize *allocation, VkDeviceSize *buffer)
{
    VkPhysicalDeviceMaintenance4Properties largest = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
    VkPhysicalDeviceMaintenance3Properties most = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, .pNext = &largest};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &most};
    VkPhysicalDeviceMemoryProperties2 heaps = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};

    vk->api.GetPhysicalDeviceProperties2(device, &all);
    vk->api.GetPhysicalDeviceMemoryProperties2(device, &heaps);
    *memory = largest_heap(&heaps.memoryProperties);
    *allocation = most.maxMemoryAllocationSize;
    *buffer = largest.maxBufferSize;
}

/* ---- opening it ---- */

static int has_extension(const struct nj_vk *vk, const char *name)
{
    VkExtensionProperties *list = calloc(EXTENSIONS_MAX, sizeof *list);
    uint32_t count = EXTENSIONS_MAX;
    int found = 0;

    if (list && vk->api.EnumerateDeviceExtensionProperties(vk->physical, NULL, &count, list) >= 0)
        for (uint32_t i = 0; i < count; i++)
            found = found || strcmp(list[i].extensionName, name) == 0;
    free(list);
    return found;
}

static void describe(nj_context *ctx)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    const VkPhysicalDeviceProperties *p = &vk->properties;
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &driver};
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    struct nj_device_info *info = &ctx->info;
    struct features has;
    VkDeviceSize heap;

    link_features(&has);
    vk->api.GetPhysicalDeviceFeatures2(vk->physical, &has.all);
    info->lp = has.vulkan11.storageBuffer16BitAccess == VK_TRUE;
    vk->api.GetPhysicalDeviceProperties2(vk->physical, &all);
    vk->api.GetPhysicalDeviceMemoryProperties2(vk->physical, &memory);
    vk->memory = memory.memoryProperties;
    nj_vk_sizes(vk, vk->physical, &heap, &vk->allocation_max, &vk->buffer_max);
    vk->groups_max[0] = p->limits.maxComputeWorkGroupCount[0];
    vk->groups_max[1] = p->limits.maxComputeWorkGroupCount[1];
    vk->threads_max = p->limits.maxComputeWorkGroupInvocations;
    if (vk->threads_max > p->limits.maxComputeWorkGroupSize[0])
        vk->threads_max = p->limits.maxComputeWorkGroupSize[0];
    vk->has_budget = has_extension(vk, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    snprintf(info->name, sizeof info->name, "%.100s", p->deviceName);
    snprintf(info->driver, sizeof info->driver, "%.30s %.30s", driver.driverName,
             driver.driverInfo);
    snprintf(info->gemm_library, sizeof info->gemm_library, "nojit's own shaders");
    info->integrated = nj_vk_rank_of(p->deviceType) != 0;
    info->software = p->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    info->memory_bytes = heap;
    info->array_bytes = vk->buffer_max - NJ_VK_ALIGN;
    info->cell_bytes =
        (vk->allocation_max < vk->buffer_max ? vk->allocation_max : vk->buffer_max) - NJ_VK_ALIGN;
}

static int create_device(nj_context *ctx)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    struct features wanted;
    const float priority = 1;
    const char *const budget = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &wanted.all,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = vk->has_budget ? 1 : 0,
                               .ppEnabledExtensionNames = &budget};
    const VkSemaphoreTypeCreateInfo counting = {.sType =
                                                    VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                                .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                             .pNext = &counting};
    uint32_t ticks = 0;
    int rc;

    link_features(&wanted);
    vk->api.GetPhysicalDeviceFeatures2(vk->physical, &wanted.all);
    vk->has_compile_control = wanted.vulkan13.pipelineCreationCacheControl == VK_TRUE;
    link_features(&wanted);
    wanted.vulkan11.storageBuffer16BitAccess = ctx->info.lp ? VK_TRUE : VK_FALSE;
    wanted.vulkan13.pipelineCreationCacheControl = vk->has_compile_control ? VK_TRUE : VK_FALSE;
    wanted.all.features.shaderInt64 = VK_TRUE;
    wanted.vulkan12.bufferDeviceAddress = VK_TRUE;
    wanted.vulkan12.scalarBlockLayout = VK_TRUE;
    wanted.vulkan12.timelineSemaphore = VK_TRUE;
    vk->family = (uint32_t)find_family(vk, vk->physical, &ticks);
    vk->ns_per_tick = ticks ? vk->properties.limits.timestampPeriod : 0;
    vk->ticks_most = ticks < 64 ? (UINT64_C(1) << ticks) - 1 : UINT64_MAX;
    queue.queueFamilyIndex = vk->family;
    rc = nj_vk_check(ctx, vk->api.CreateDevice(vk->physical, &info, NULL, &vk->device),
                     "opening the GPU");
    if (rc != 0) {
        vk->device = NULL;
        return rc;
    }
    vk->api.GetDeviceQueue(vk->device, vk->family, 0, &vk->queue);
    return nj_vk_check(ctx, vk->api.CreateSemaphore(vk->device, &semaphore, NULL, &vk->done),
                       "opening the GPU");
}

static int read_submit(nj_context *ctx)
{
    const char *given = getenv("NOJIT_VULKAN_SUBMIT");
    struct nj_device_info *info = &ctx->info;
    char *end = NULL;

    info->submit_operations = NJ_VK_SUBMIT_OPERATIONS;
    info->paced = !info->software && (!given || !given[0]);
    if (!given || !given[0])
        return 0;
    info->submit_operations = strtod(given, &end);
    if (!*end && info->submit_operations >= 1e3 && info->submit_operations <= 1e18)
        return 0;
    return nj_fail(ctx, NJ_E_ARG,
                   "NOJIT_VULKAN_SUBMIT=%.100s: operations of a submission, from 1e3 to 1e18",
                   given);
}

int nj_vk_open_device(nj_context *ctx)
{
    describe(ctx);
    TRY(read_submit(ctx));
    return create_device(ctx);
}

/* Set the size of submissions. The slower of multiplying and of moving bytes determines it, as most launches do one
 * or the other. */
void nj_vk_pace(nj_context *ctx, const struct nj_speed *speed)
{
    struct nj_device_info *info = &ctx->info;
    const double moved = NJ_VK_BYTE_OPERATIONS * speed->copy_bytes;
    const double operations = NJ_VK_SUBMIT_SECONDS * fmin(speed->gemm_flops, moved);

    info->gemm_flops = speed->gemm_flops;
    info->copy_bytes = speed->copy_bytes;
    info->submit_operations =
        fmin(fmax(operations, NJ_VK_SUBMIT_OPERATIONS), NJ_VK_SUBMIT_OPERATIONS_MOST);
}

/* Return the driver's budget of the largest device heap. If that is host memory, it is at most the available host
 * memory less a sixteenth of all, since a host without free memory freezes. */
static size_t heap_budget(const struct nj_vk *vk)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
        .pNext = vk->has_budget ? &budget : NULL};
    size_t most = 0;

    vk->api.GetPhysicalDeviceMemoryProperties2(vk->physical, &memory);
    for (uint32_t i = 0; i < vk->memory.memoryHeapCount; i++) {
        const VkMemoryHeap *heap = &vk->memory.memoryHeaps[i];
        size_t bytes = vk->has_budget ? budget.heapBudget[i] : heap->size;

        if (vk->has_budget)
            bytes = bytes > budget.heapUsage[i] ? bytes - budget.heapUsage[i] : 0;
        if (heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT && bytes > most)
            most = bytes;
    }
    return most;
}

size_t nj_vk_budget(nj_context *ctx, enum nj_memory kind)
{
    const size_t available = nj_meminfo("MemAvailable"), reserve = nj_meminfo("MemTotal") / 16;
    const size_t host = available > reserve ? available - reserve : 0;
    const struct nj_vk *vk = nj_vk_of(ctx);
    size_t device;

    if (kind == NJ_MEM_HOST)
        return available;
    device = heap_budget(vk);
    return ctx->info.integrated && host < device ? host : device;
}
