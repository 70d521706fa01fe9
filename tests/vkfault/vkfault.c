/* SPDX-License-Identifier: Apache-2.0
 *
 * vkfault.c: a libvulkan.so.1 that hands every call on to the real one (NOJIT_VKFAULT_REAL, or where Debian has it),
 * counts them, and disturbs them as the environment says:
 *
 *   NOJIT_VKFAULT=NAME:N:ERROR   the Nth call of NAME returns ERROR (-1, -2, -4, ...) and makes nothing; after -4,
 *                                device lost, whatever can be lost stays lost
 *   NOJIT_VKFAULT_SET=A=X,B=Y    what the driver says: shared (bytes of shared memory), allocation, buffer (largest,
 *                                in bytes), heap (bytes of memory), driver (its number), version (of it), caching=1
 *                                (pipelines of a cache that is given back need no compiler), type (of device: 2 is
 *                                a discrete GPU), dispatch and copy (nanoseconds that timestamps say each takes;
 *                                with either of them no timestamp is the GPU's), lazy=1 (a pipeline is made when a
 *                                launch first needs it: most runs need few of those that each makes)
 *   NOJIT_VKFAULT_WRONG=FILE     launches of this shader (build/spirv/KEY.spv) do nothing
 *   NOJIT_VKFAULT_LOG=FILE       gets lines when an instance ends: calls of each function, work, and objects left
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#ifndef REAL_LOADER
#define REAL_LOADER "/usr/lib/x86_64-linux-gnu/libvulkan.so.1"
#endif
enum { PIPELINES_MOST = 4096 };

static PFN_vkGetInstanceProcAddr real_get;
static unsigned long calls, dispatches, pieces, submits, pipelines_made;
static long objects;
static int lost, failed;

/* ---- what the environment says ---- */

static double setting(const char *name, double otherwise)
{
    const char *at = getenv("NOJIT_VKFAULT_SET");
    const size_t length = strlen(name);
    while (at && *at) {
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return strtod(at + length + 1, NULL);
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return otherwise;
}

static void say(const char *text)
{
    const char *path = getenv("NOJIT_VKFAULT_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f)
        return;
    fprintf(f, "%s\n", text);
    fclose(f);
}

/* Each function that was called, with its number of calls. */
static struct {
    const char *name;
    const unsigned long *count;
} functions[64];
static int function_count;

/* What this call of the function returns in the place of the real one; VK_SUCCESS: nothing. */
static VkResult fault(const char *name, unsigned long *count)
{
    const char *told = getenv("NOJIT_VKFAULT");
    char wanted[64] = "", line[128];
    unsigned long n = 0;
    int error = 0;
    calls++;
    if (++*count == 1 && function_count < 64) {
        functions[function_count].name = name;
        functions[function_count++].count = count;
    }
    if (lost)
        return VK_ERROR_DEVICE_LOST;
    if (!told || failed || sscanf(told, "%63[^:]:%lu:%d", wanted, &n, &error) != 3)
        return VK_SUCCESS;
    if (strcmp(wanted, name) != 0 || *count != n)
        return VK_SUCCESS;
    failed = 1;
    lost = error == VK_ERROR_DEVICE_LOST;
    snprintf(line, sizeof line, "%s fails as it was told", name);
    say(line);
    return (VkResult)error;
}

/* ---- calls that may fail ---- */

#define REAL(name) real_##name
#define DECLARE(name) static PFN_##name REAL(name);
#define MAY_FAIL(name, made, parameters, arguments)                                                \
    DECLARE(name)                                                                                  \
    static VKAPI_ATTR VkResult VKAPI_CALL own_##name parameters                                    \
    {                                                                                              \
        static unsigned long count;                                                                \
        VkResult result = fault(#name, &count);                                                    \
        if (result == VK_SUCCESS)                                                                  \
            result = REAL(name) arguments;                                                         \
        if (result == VK_SUCCESS)                                                                  \
            objects += (made);                                                                     \
        return result;                                                                             \
    }
#define MADE(name, info_type, handle)                                                              \
    MAY_FAIL(name, 1,                                                                              \
             (VkDevice d, const info_type *info, const VkAllocationCallbacks *a, handle *out),     \
             (d, info, a, out))
#define GONE(name, handle)                                                                         \
    DECLARE(name)                                                                                  \
    static VKAPI_ATTR void VKAPI_CALL own_##name(VkDevice d, handle h,                             \
                                                 const VkAllocationCallbacks *a)                   \
    {                                                                                              \
        objects -= h != VK_NULL_HANDLE;                                                            \
        REAL(name)(d, h, a);                                                                       \
    }

MADE(vkAllocateMemory, VkMemoryAllocateInfo, VkDeviceMemory)
MADE(vkCreateBuffer, VkBufferCreateInfo, VkBuffer)
MADE(vkCreateCommandPool, VkCommandPoolCreateInfo, VkCommandPool)
MADE(vkCreatePipelineLayout, VkPipelineLayoutCreateInfo, VkPipelineLayout)
MADE(vkCreateQueryPool, VkQueryPoolCreateInfo, VkQueryPool)
MADE(vkCreateSemaphore, VkSemaphoreCreateInfo, VkSemaphore)
GONE(vkFreeMemory, VkDeviceMemory)
GONE(vkDestroyBuffer, VkBuffer)
GONE(vkDestroyCommandPool, VkCommandPool)
GONE(vkDestroyPipelineLayout, VkPipelineLayout)
GONE(vkDestroyQueryPool, VkQueryPool)
GONE(vkDestroySemaphore, VkSemaphore)
MAY_FAIL(vkAllocateCommandBuffers, 0,
         (VkDevice d, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *out),
         (d, info, out))
MAY_FAIL(vkBeginCommandBuffer, 0, (VkCommandBuffer c, const VkCommandBufferBeginInfo *info),
         (c, info))
MAY_FAIL(vkEndCommandBuffer, 0, (VkCommandBuffer c), (c))
MAY_FAIL(vkResetCommandBuffer, 0, (VkCommandBuffer c, VkCommandBufferResetFlags f), (c, f))
MAY_FAIL(vkBindBufferMemory, 0, (VkDevice d, VkBuffer b, VkDeviceMemory m, VkDeviceSize at),
         (d, b, m, at))
MAY_FAIL(vkCreateDevice, 1,
         (VkPhysicalDevice p, const VkDeviceCreateInfo *info, const VkAllocationCallbacks *a,
          VkDevice *out),
         (p, info, a, out))
MAY_FAIL(vkCreateInstance, 1,
         (const VkInstanceCreateInfo *info, const VkAllocationCallbacks *a, VkInstance *out),
         (info, a, out))
MAY_FAIL(vkDeviceWaitIdle, 0, (VkDevice d), (d))
MAY_FAIL(vkEnumerateInstanceVersion, 0, (uint32_t * version), (version))
MAY_FAIL(vkEnumerateDeviceExtensionProperties, 0,
         (VkPhysicalDevice p, const char *layer, uint32_t *count_of, VkExtensionProperties *out),
         (p, layer, count_of, out))
MAY_FAIL(vkEnumeratePhysicalDevices, 0, (VkInstance i, uint32_t *count_of, VkPhysicalDevice *out),
         (i, count_of, out))
MAY_FAIL(vkMapMemory, 0,
         (VkDevice d, VkDeviceMemory m, VkDeviceSize at, VkDeviceSize bytes, VkMemoryMapFlags flags,
          void **out),
         (d, m, at, bytes, flags, out))
MAY_FAIL(vkWaitSemaphores, 0, (VkDevice d, const VkSemaphoreWaitInfo *info, uint64_t ns),
         (d, info, ns))
MAY_FAIL(vkQueueSubmit, 0, (VkQueue q, uint32_t n, const VkSubmitInfo *info, VkFence f),
         (q, (submits++, n), info, f))

/* ---- pipelines: their shaders by a hash, which is what a caching driver finds them again with ---- */

struct module {
    uint64_t handle, hash;
    const uint32_t *code; /* the program's own, which stays */
    size_t bytes;
};
static struct module modules[PIPELINES_MOST];
static unsigned module_count, made_count;
static uint64_t made[PIPELINES_MOST];
static uint64_t wrong_pipelines[64], cached[PIPELINES_MOST];
static unsigned wrong_count, cached_count;

static uint64_t hash_of(const void *data, size_t bytes)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return h;
}

DECLARE(vkCreateShaderModule)
static VKAPI_ATTR VkResult VKAPI_CALL own_vkCreateShaderModule(VkDevice d,
                                                               const VkShaderModuleCreateInfo *info,
                                                               const VkAllocationCallbacks *a,
                                                               VkShaderModule *out)
{
    static unsigned long count;
    VkResult result = fault("vkCreateShaderModule", &count);
    if (result == VK_SUCCESS)
        result = REAL(vkCreateShaderModule)(d, info, a, out);
    if (result != VK_SUCCESS)
        return result;
    objects++;
    modules[module_count++ % PIPELINES_MOST] = (struct module){
        (uint64_t)*out, hash_of(info->pCode, info->codeSize), info->pCode, info->codeSize};
    return result;
}
GONE(vkDestroyShaderModule, VkShaderModule)

/* Return the newest of that handle. */
static const struct module *module_of(VkShaderModule handle)
{
    static const struct module none;
    for (unsigned i = module_count; i-- > 0 && i < PIPELINES_MOST;)
        if (modules[i].handle == (uint64_t)handle)
            return &modules[i];
    return &none;
}

static uint64_t hash_of_wrong(void)
{
    static uint64_t hash;
    const char *path = getenv("NOJIT_VKFAULT_WRONG");
    FILE *f = path && hash == 0 ? fopen(path, "rb") : NULL;
    static unsigned char code[1 << 20];
    if (f) {
        hash = hash_of(code, fread(code, 1, sizeof code, f));
        fclose(f);
    }
    return hash;
}

/* ---- pipelines that are made when a launch needs them ---- */

static struct promised {
    VkDevice device;
    VkComputePipelineCreateInfo info;
    VkShaderModuleCreateInfo code;
    VkPipeline real; /* VK_NULL_HANDLE: not made yet */
} promised[PIPELINES_MOST];
static unsigned promised_count;

DECLARE(vkCreateComputePipelines)
static VkResult promise(VkDevice d, const VkComputePipelineCreateInfo *info,
                        const struct module *module, VkPipeline *out)
{
    struct promised *p = &promised[promised_count];
    if (info->flags & VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT)
        return VK_PIPELINE_COMPILE_REQUIRED;
    if (promised_count++ == PIPELINES_MOST)
        abort();
    *p = (struct promised){.device = d, .info = *info};
    p->code = (VkShaderModuleCreateInfo){.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                         .codeSize = module->bytes,
                                         .pCode = module->code};
    *out = (VkPipeline)p;
    return VK_SUCCESS;
}

/* Return the entry of a pipeline that was promised, or NULL. */
static struct promised *promised_of(VkPipeline pipeline)
{
    struct promised *p = (struct promised *)pipeline;
    return p >= promised && p < promised + promised_count ? p : NULL;
}

/* Return the driver's pipeline, which is made now if it was only promised. */
static VkPipeline real_pipeline(VkPipeline pipeline)
{
    struct promised *p = promised_of(pipeline);
    if (!p)
        return pipeline;
    if (p->real == VK_NULL_HANDLE) {
        if (REAL(vkCreateShaderModule)(p->device, &p->code, NULL, &p->info.stage.module) !=
                VK_SUCCESS ||
            REAL(vkCreateComputePipelines)(p->device, VK_NULL_HANDLE, 1, &p->info, NULL,
                                           &p->real) != VK_SUCCESS)
            abort();
        REAL(vkDestroyShaderModule)(p->device, p->info.stage.module, NULL);
    }
    return p->real;
}

DECLARE(vkDestroyPipeline)
static VKAPI_ATTR void VKAPI_CALL own_vkDestroyPipeline(VkDevice d, VkPipeline pipeline,
                                                        const VkAllocationCallbacks *a)
{
    const struct promised *p = promised_of(pipeline);
    objects -= pipeline != VK_NULL_HANDLE;
    REAL(vkDestroyPipeline)(d, p ? p->real : pipeline, a);
}

static VKAPI_ATTR VkResult VKAPI_CALL own_vkCreateComputePipelines(
    VkDevice d, VkPipelineCache cache, uint32_t n, const VkComputePipelineCreateInfo *info,
    const VkAllocationCallbacks *a, VkPipeline *out)
{
    static unsigned long count;
    VkComputePipelineCreateInfo asked = *info;
    const struct module *module = module_of(info->stage.module);
    const uint64_t hash = module->hash;
    VkResult result = fault("vkCreateComputePipelines", &count);
    for (unsigned i = 0; i < cached_count; i++)
        if (cached[i] == hash)
            asked.flags &=
                ~(VkPipelineCreateFlags)VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT;
    if (result == VK_SUCCESS)
        result = setting("lazy", 0) > 0
                     ? promise(d, &asked, module, out)
                     : REAL(vkCreateComputePipelines)(d, cache, n, &asked, a, out);
    if (result != VK_SUCCESS)
        return result;
    objects++;
    pipelines_made++;
    made[made_count++ % PIPELINES_MOST] = hash;
    if (hash == hash_of_wrong() && wrong_count < 64)
        wrong_pipelines[wrong_count++] = (uint64_t)*out;
    return result;
}

DECLARE(vkCreatePipelineCache)
static VKAPI_ATTR VkResult VKAPI_CALL
own_vkCreatePipelineCache(VkDevice d, const VkPipelineCacheCreateInfo *info,
                          const VkAllocationCallbacks *a, VkPipelineCache *out)
{
    static unsigned long count;
    const VkPipelineCacheCreateInfo empty = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    const int caching = setting("caching", 0) > 0;
    VkResult result = fault("vkCreatePipelineCache", &count);
    if (caching && info->pInitialData && info->initialDataSize <= sizeof cached) {
        memcpy(cached, info->pInitialData, info->initialDataSize);
        cached_count = (unsigned)(info->initialDataSize / sizeof *cached);
    }
    if (result == VK_SUCCESS)
        result = REAL(vkCreatePipelineCache)(d, caching ? &empty : info, a, out);
    objects += result == VK_SUCCESS;
    return result;
}
GONE(vkDestroyPipelineCache, VkPipelineCache)

DECLARE(vkGetPipelineCacheData)
static VKAPI_ATTR VkResult VKAPI_CALL own_vkGetPipelineCacheData(VkDevice d, VkPipelineCache cache,
                                                                 size_t *bytes, void *data)
{
    static unsigned long count;
    const VkResult result = fault("vkGetPipelineCacheData", &count);
    if (result != VK_SUCCESS)
        return result;
    if (setting("caching", 0) <= 0)
        return REAL(vkGetPipelineCacheData)(d, cache, bytes, data);
    for (unsigned i = 0; data && i < made_count && (i + 1) * sizeof(uint64_t) <= *bytes; i++)
        ((uint64_t *)data)[i] = made[i];
    *bytes = made_count * sizeof(uint64_t);
    return VK_SUCCESS;
}

/* ---- a clock that goes by the work, not by the time that it takes ---- */

static uint64_t clock_ns;
static struct {
    uint64_t pool, ns;
} stamps[64]; /* of each query pool, which has one query: the newest timestamp */
static unsigned stamp_count;

static int has_clock(void)
{
    return setting("dispatch", 0) > 0 || setting("copy", 0) > 0;
}

static uint64_t *stamp_of(VkQueryPool pool)
{
    for (unsigned i = 0; i < stamp_count; i++)
        if (stamps[i].pool == (uint64_t)pool)
            return &stamps[i].ns;
    if (stamp_count == sizeof stamps / sizeof stamps[0])
        stamp_count = 0; /* the pools of long ago are gone */
    stamps[stamp_count].pool = (uint64_t)pool;
    return &stamps[stamp_count++].ns;
}

DECLARE(vkCmdWriteTimestamp)
static VKAPI_ATTR void VKAPI_CALL own_vkCmdWriteTimestamp(VkCommandBuffer c,
                                                          VkPipelineStageFlagBits stage,
                                                          VkQueryPool pool, uint32_t query)
{
    *stamp_of(pool) = clock_ns;
    REAL(vkCmdWriteTimestamp)(c, stage, pool, query);
}

DECLARE(vkGetQueryPoolResults)
static VKAPI_ATTR VkResult VKAPI_CALL own_vkGetQueryPoolResults(VkDevice d, VkQueryPool pool,
                                                                uint32_t first, uint32_t n,
                                                                size_t bytes, void *out,
                                                                VkDeviceSize stride,
                                                                VkQueryResultFlags flags)
{
    static unsigned long count;
    VkResult result = fault("vkGetQueryPoolResults", &count);
    if (result == VK_SUCCESS)
        result = REAL(vkGetQueryPoolResults)(d, pool, first, n, bytes, out, stride, flags);
    if (result == VK_SUCCESS && has_clock())
        memcpy(out, stamp_of(pool), sizeof(uint64_t));
    return result;
}

/* ---- work ---- */

static VkPipeline bound;
DECLARE(vkCmdBindPipeline)
static VKAPI_ATTR void VKAPI_CALL own_vkCmdBindPipeline(VkCommandBuffer c,
                                                        VkPipelineBindPoint point,
                                                        VkPipeline pipeline)
{
    bound = pipeline;
    dispatches++;
    REAL(vkCmdBindPipeline)(c, point, real_pipeline(pipeline));
}

static int is_wrong(void)
{
    for (unsigned i = 0; i < wrong_count; i++)
        if (wrong_pipelines[i] == (uint64_t)bound)
            return 1;
    return 0;
}

DECLARE(vkCmdDispatchBase)
static VKAPI_ATTR void VKAPI_CALL own_vkCmdDispatchBase(VkCommandBuffer c, uint32_t x, uint32_t y,
                                                        uint32_t z, uint32_t width, uint32_t height,
                                                        uint32_t depth)
{
    pieces++;
    clock_ns += (uint64_t)setting("dispatch", 0);
    if (!is_wrong())
        REAL(vkCmdDispatchBase)(c, x, y, z, width, height, depth);
}

DECLARE(vkCmdCopyBuffer)
static VKAPI_ATTR void VKAPI_CALL own_vkCmdCopyBuffer(VkCommandBuffer c, VkBuffer from, VkBuffer to,
                                                      uint32_t n, const VkBufferCopy *regions)
{
    clock_ns += (uint64_t)setting("copy", 0);
    REAL(vkCmdCopyBuffer)(c, from, to, n, regions);
}

/* ---- what the driver says ---- */

DECLARE(vkGetPhysicalDeviceProperties2)
static VKAPI_ATTR void VKAPI_CALL
own_vkGetPhysicalDeviceProperties2(VkPhysicalDevice p, VkPhysicalDeviceProperties2 *out)
{
    VkPhysicalDeviceLimits *limits = &out->properties.limits;
    REAL(vkGetPhysicalDeviceProperties2)(p, out);
    limits->maxComputeSharedMemorySize =
        (uint32_t)setting("shared", limits->maxComputeSharedMemorySize);
    if (has_clock())
        limits->timestampPeriod = 1;
    out->properties.deviceType = (VkPhysicalDeviceType)setting("type", out->properties.deviceType);
    out->properties.driverVersion = (uint32_t)setting("version", out->properties.driverVersion);
    for (VkBaseOutStructure *s = out->pNext; s; s = s->pNext) {
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES) {
            VkPhysicalDeviceDriverProperties *driver = (void *)s;
            driver->driverID = (VkDriverId)setting("driver", driver->driverID);
        } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES) {
            VkPhysicalDeviceMaintenance3Properties *most = (void *)s;
            most->maxMemoryAllocationSize =
                (VkDeviceSize)setting("allocation", (double)most->maxMemoryAllocationSize);
        } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES) {
            VkPhysicalDeviceMaintenance4Properties *most = (void *)s;
            most->maxBufferSize = (VkDeviceSize)setting("buffer", (double)most->maxBufferSize);
        }
    }
}

DECLARE(vkGetPhysicalDeviceMemoryProperties2)
static VKAPI_ATTR void VKAPI_CALL
own_vkGetPhysicalDeviceMemoryProperties2(VkPhysicalDevice p, VkPhysicalDeviceMemoryProperties2 *out)
{
    REAL(vkGetPhysicalDeviceMemoryProperties2)(p, out);
    for (uint32_t i = 0; i < out->memoryProperties.memoryHeapCount; i++) {
        VkMemoryHeap *heap = &out->memoryProperties.memoryHeaps[i];
        heap->size = (VkDeviceSize)setting("heap", (double)heap->size);
    }
    for (VkBaseOutStructure *s = out->pNext; s; s = s->pNext)
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
            VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = (void *)s;
            budget->heapBudget[0] = (VkDeviceSize)setting("heap", (double)budget->heapBudget[0]);
        }
}

DECLARE(vkDestroyDevice)
static VKAPI_ATTR void VKAPI_CALL own_vkDestroyDevice(VkDevice d, const VkAllocationCallbacks *a)
{
    objects -= d != VK_NULL_HANDLE;
    REAL(vkDestroyDevice)(d, a);
}

DECLARE(vkDestroyInstance)
static VKAPI_ATTR void VKAPI_CALL own_vkDestroyInstance(VkInstance i,
                                                        const VkAllocationCallbacks *a)
{
    char line[256];
    objects -= i != VK_NULL_HANDLE;
    REAL(vkDestroyInstance)(i, a);
    for (int f = 0; f < function_count; f++) {
        snprintf(line, sizeof line, "%s %lu", functions[f].name, *functions[f].count);
        say(line);
    }
    snprintf(
        line, sizeof line,
        "%lu calls; %lu pipelines; %lu dispatches in %lu pieces, %lu submissions; %ld objects left",
        calls, pipelines_made, dispatches, pieces, submits, objects);
    say(line);
}

/* ---- the way in ---- */

#define ALL(X)                                                                                     \
    X(vkAllocateMemory)                                                                            \
    X(vkCreateBuffer)                                                                              \
    X(vkCreateCommandPool)                                                                         \
    X(vkCreatePipelineLayout)                                                                      \
    X(vkCreateQueryPool)                                                                           \
    X(vkCreateSemaphore)                                                                           \
    X(vkFreeMemory)                                                                                \
    X(vkDestroyBuffer)                                                                             \
    X(vkDestroyCommandPool)                                                                        \
    X(vkDestroyPipelineLayout)                                                                     \
    X(vkDestroyQueryPool)                                                                          \
    X(vkDestroySemaphore)                                                                          \
    X(vkDestroyPipeline)                                                                           \
    X(vkAllocateCommandBuffers)                                                                    \
    X(vkBeginCommandBuffer)                                                                        \
    X(vkEndCommandBuffer)                                                                          \
    X(vkResetCommandBuffer)                                                                        \
    X(vkBindBufferMemory)                                                                          \
    X(vkCreateDevice)                                                                              \
    X(vkCreateInstance)                                                                            \
    X(vkDeviceWaitIdle)                                                                            \
    X(vkEnumerateInstanceVersion)                                                                  \
    X(vkEnumerateDeviceExtensionProperties)                                                        \
    X(vkEnumeratePhysicalDevices)                                                                  \
    X(vkGetQueryPoolResults)                                                                       \
    X(vkCmdWriteTimestamp)                                                                         \
    X(vkMapMemory)                                                                                 \
    X(vkWaitSemaphores)                                                                            \
    X(vkQueueSubmit)                                                                               \
    X(vkCreateShaderModule)                                                                        \
    X(vkDestroyShaderModule)                                                                       \
    X(vkCreateComputePipelines)                                                                    \
    X(vkCreatePipelineCache)                                                                       \
    X(vkDestroyPipelineCache)                                                                      \
    X(vkGetPipelineCacheData)                                                                      \
    X(vkCmdBindPipeline)                                                                           \
    X(vkCmdDispatchBase)                                                                           \
    X(vkCmdCopyBuffer)                                                                             \
    X(vkGetPhysicalDeviceProperties2)                                                              \
    X(vkGetPhysicalDeviceMemoryProperties2)                                                        \
    X(vkDestroyDevice)                                                                             \
    X(vkDestroyInstance)

__attribute__((visibility("default"))) PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance,
                                                                                const char *name);
PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char *name)
{
    const char *path = getenv("NOJIT_VKFAULT_REAL");
    void *real = real_get ? NULL : dlopen(path ? path : REAL_LOADER, RTLD_NOW | RTLD_LOCAL);
    void *get = real ? dlsym(real, "vkGetInstanceProcAddr") : NULL;
    PFN_vkVoidFunction found;
    if (get)
        memcpy(&real_get, &get, sizeof get);
    found = real_get ? real_get(instance, name) : NULL;
    if (!found)
        return NULL;
#define X(function)                                                                                \
    if (strcmp(name, #function) == 0) {                                                            \
        REAL(function) = (PFN_##function)found;                                                    \
        return (PFN_vkVoidFunction)own_##function;                                                 \
    }
    ALL(X)
#undef X
    return found;
}
