/* SPDX-License-Identifier: Apache-2.0
 *
 * vulkan_device.c: chooses a GPU, opens it with the features that the shaders need, and says how
 * much of its memory can be had.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

enum { DEVICES_MAX = 16, EXTENSIONS_MAX = 512, FAMILIES_MAX = 32 };
enum { THREADS_NEEDED = 512, SHARED_BYTES_NEEDED = 32768 };

/* All that is asked for: 64-bit addresses of buffers, the scalar layout, semaphores that count and,
 * where the device has them, elements of 16 bits. */
struct features {
    VkPhysicalDeviceFeatures2 all;
    VkPhysicalDeviceVulkan11Features vulkan11;
    VkPhysicalDeviceVulkan12Features vulkan12;
};

static void link_features(struct features *f)
{
    memset(f, 0, sizeof *f);
    f->all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    f->all.pNext = &f->vulkan11;
    f->vulkan11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    f->vulkan11.pNext = &f->vulkan12;
    f->vulkan12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
}

/* The first queue family that computes, or -1. *ticks: bits of its timestamps. */
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

/* What a device lacks, or NULL. */
static const char *missing(const struct nj_vk *vk, VkPhysicalDevice device,
                           const VkPhysicalDeviceProperties *p)
{
    struct features has;
    uint32_t ticks = 0;

    if (p->apiVersion < VK_API_VERSION_1_3)
        return "Vulkan 1.3";
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
    if (p->limits.maxPushConstantsSize < NJ_VK_PUSH_BYTES)
        return "128 bytes of push constants";
    if (p->limits.maxComputeWorkGroupInvocations < THREADS_NEEDED ||
        p->limits.maxComputeWorkGroupSize[0] < THREADS_NEEDED)
        return "workgroups of 512 threads";
    if (p->limits.maxComputeSharedMemorySize < SHARED_BYTES_NEEDED)
        return "32 KiB of shared memory";
    return find_family(vk, device, &ticks) < 0 ? "a queue that computes" : NULL;
}

/* Discrete GPUs first, implementations on the CPU last. */
static int rank_of(VkPhysicalDeviceType type)
{
    return type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU     ? 0
           : type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? 1
           : type == VK_PHYSICAL_DEVICE_TYPE_CPU            ? 3
                                                            : 2;
}

static void read_properties(const struct nj_vk *vk, VkPhysicalDevice device,
                            VkPhysicalDeviceProperties *out)
{
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};

    vk->api.GetPhysicalDeviceProperties2(device, &p);
    *out = p.properties;
}

/* With ordinal 0 the first of the best kind that has what is needed; else the one of that number. */
static int choose_device(nj_context *ctx, int ordinal, VkPhysicalDeviceProperties *chosen)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    VkPhysicalDevice devices[DEVICES_MAX];
    VkPhysicalDeviceProperties p;
    uint32_t count = DEVICES_MAX;
    VkResult result = vk->api.EnumeratePhysicalDevices(vk->instance, &count, devices);
    const char *lack = NULL;
    char lacking[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE] = "";

    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return nj_vk_check(ctx, result, "listing the GPUs");
    if (count == 0)
        return nj_fail(ctx, NJ_E_NO_DEVICE, "Vulkan sees no GPU; check vulkaninfo");
    if (ordinal < 0 || (uint32_t)ordinal >= count)
        return nj_fail(ctx, NJ_E_NO_DEVICE, "GPU %d wanted, Vulkan sees %u (counted from 0)",
                       ordinal, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *lacks;

        read_properties(vk, devices[i], &p);
        lacks = missing(vk, devices[i], &p);
        if (ordinal > 0 && i != (uint32_t)ordinal)
            continue;
        if (lacks) {
            lack = lacks;
            snprintf(lacking, sizeof lacking, "%s", p.deviceName);
        } else if (!vk->physical || rank_of(p.deviceType) < rank_of(chosen->deviceType)) {
            vk->physical = devices[i];
            *chosen = p;
        }
    }
    return vk->physical ? 0 : nj_fail(ctx, NJ_E_NO_DEVICE, "%s lacks %s", lacking, lack);
}

void nj_vk_list_devices(nj_context *ctx, void (*log)(void *user, const char *line), void *user)
{
    static const char *const kinds[] = {"discrete", "integrated", "virtual", "on the CPU"};
    struct nj_vk *vk = nj_vk_of(ctx);
    VkPhysicalDevice devices[DEVICES_MAX];
    uint32_t count = DEVICES_MAX;
    char line[400];

    if (vk->api.EnumeratePhysicalDevices(vk->instance, &count, devices) < 0 || count == 0) {
        log(user, "Vulkan shows no GPU");
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        VkPhysicalDeviceProperties p;
        const char *lacks;

        read_properties(vk, devices[i], &p);
        lacks = missing(vk, devices[i], &p);
        snprintf(line, sizeof line, "%u: %.150s, %s, Vulkan %u.%u: %s%s", i, p.deviceName,
                 kinds[rank_of(p.deviceType)], VK_API_VERSION_MAJOR(p.apiVersion),
                 VK_API_VERSION_MINOR(p.apiVersion), lacks ? "lacks " : "can be used",
                 lacks ? lacks : "");
        log(user, line);
    }
}

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

static void describe(nj_context *ctx, const VkPhysicalDeviceProperties *p)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    VkPhysicalDeviceMaintenance4Properties buffer = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
    VkPhysicalDeviceMaintenance3Properties most = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, .pNext = &buffer};
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, .pNext = &most};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &driver};
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    struct nj_device_info *info = &ctx->info;
    struct features has;

    link_features(&has);
    vk->api.GetPhysicalDeviceFeatures2(vk->physical, &has.all);
    info->lp = has.vulkan11.storageBuffer16BitAccess == VK_TRUE;
    vk->api.GetPhysicalDeviceProperties2(vk->physical, &all);
    vk->api.GetPhysicalDeviceMemoryProperties2(vk->physical, &memory);
    vk->memory = memory.memoryProperties;
    vk->allocation_max = most.maxMemoryAllocationSize;
    vk->buffer_max = buffer.maxBufferSize;
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
    info->integrated = rank_of(p->deviceType) != 0;
    info->software = p->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    for (uint32_t i = 0; i < vk->memory.memoryHeapCount; i++)
        if (vk->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT &&
            vk->memory.memoryHeaps[i].size > info->memory_bytes)
            info->memory_bytes = vk->memory.memoryHeaps[i].size;
}

static int create_device(nj_context *ctx, float ns_per_tick)
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
    wanted.vulkan11.storageBuffer16BitAccess = ctx->info.lp ? VK_TRUE : VK_FALSE;
    wanted.all.features.shaderInt64 = VK_TRUE;
    wanted.vulkan12.bufferDeviceAddress = VK_TRUE;
    wanted.vulkan12.scalarBlockLayout = VK_TRUE;
    wanted.vulkan12.timelineSemaphore = VK_TRUE;
    vk->family = (uint32_t)find_family(vk, vk->physical, &ticks);
    vk->ns_per_tick = ticks ? ns_per_tick : 0;
    vk->ticks_most = ticks < 64 ? (UINT64_C(1) << ticks) - 1 : UINT64_MAX;
    queue.queueFamilyIndex = vk->family;
    rc = nj_vk_check(ctx, vk->api.CreateDevice(vk->physical, &info, NULL, &vk->device),
                     "opening the GPU");
    if (rc) {
        vk->device = NULL;
        return rc;
    }
    vk->api.GetDeviceQueue(vk->device, vk->family, 0, &vk->queue);
    return nj_vk_check(ctx, vk->api.CreateSemaphore(vk->device, &semaphore, NULL, &vk->done),
                       "opening the GPU");
}

int nj_vk_open_device(nj_context *ctx, const struct nj_options *options)
{
    VkPhysicalDeviceProperties chosen;
    int rc = choose_device(ctx, options->ordinal, &chosen);

    if (rc)
        return rc;
    describe(ctx, &chosen);
    return create_device(ctx, chosen.limits.timestampPeriod);
}

/* What the driver says of the heap that is the device's largest; where it is the host's memory, no
 * more than that has, less a sixteenth of all: a host without any freezes. */
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
    if (device > vk->buffer_max - NJ_VK_ALIGN) /* an arena is one allocation */
        device = vk->buffer_max - NJ_VK_ALIGN;
    return ctx->info.integrated && host < device ? host : device;
}
