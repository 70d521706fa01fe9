/* SPDX-License-Identifier: Apache-2.0
 *
 * vulkan_choose.c: which of the GPUs that Vulkan shows is taken, and of each other one the sentence that
 * says why it is not. NOJIT_VULKAN_DEVICE names one: its number, a part of its name, or `none`.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

enum { ADAPTERS_MAX = 16 };

struct adapter {
    VkPhysicalDevice device;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceDriverProperties driver;
    char refusal[256]; /* reason why it cannot be used; "": it can */
};

/* Drivers whose results are not to be trusted, according to their makers. first, last: versions, as the driver
 * counts them; name: a part of the device's name, or NULL for all. A driver that reports no conformance is not
 * listed for that: RADV does so on each new GPU until its results have been submitted, and the self-test tests the
 * kernels. */
static const struct bad_driver {
    VkDriverId driver;
    uint32_t first, last;
    const char *name, *why;
} bad_drivers[] = {
    /* It prints `dzn is not a conformant Vulkan implementation, testing use only`, still in Mesa 25.0
     * (github.com/microsoft/wslg/issues/40); wgpu hides it, and llama.cpp takes it last of all. */
    {VK_DRIVER_ID_MESA_DOZEN, 0, UINT32_MAX, NULL,
     "Mesa's driver over Direct3D 12 says of itself that it is not conformant, for testing only"},
    /* It prints `Haswell Vulkan support is incomplete`, still in Mesa 25.3 (github.com/libsdl-org/SDL/issues/14915);
     * the hardware lacks what Vulkan needs (github.com/gfx-rs/wgpu/issues/4715). This also holds for the two other
     * GPUs of that generation: see anv_physical_device_init() in Mesa, which prints these lines. */
    {VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, 0, UINT32_MAX, "(HSW",
     "Mesa says that its Vulkan for Haswell is incomplete"},
    {VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, 0, UINT32_MAX, "(IVB",
     "Mesa says that its Vulkan for Ivy Bridge is incomplete"},
    {VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, 0, UINT32_MAX, "(BYT",
     "Mesa says that its Vulkan for Bay Trail is incomplete"},
    /* It was behind an experimental build flag up to Mesa 24.0, and is conformant and built by default from 24.1 on
     * (github.com/LukeShortCloud/winesapOS/issues/750; Collabora's "Mesa 24.1 brings new hardware support for Arm
     * and NVIDIA GPUs"). GPUs before Turing were added later, and are shown only on request for a broken driver. */
    {VK_DRIVER_ID_MESA_NVK, 0, VK_MAKE_API_VERSION(0, 24, 0, 999), NULL,
     "NVK was not conformant before Mesa 24.1; install a newer Mesa or NVIDIA's driver"},
};

static const char *why_bad(const struct adapter *a)
{
    for (size_t i = 0; i < sizeof bad_drivers / sizeof *bad_drivers; i++) {
        const struct bad_driver *b = &bad_drivers[i];
        const uint32_t version = a->properties.driverVersion;

        if (b->driver == a->driver.driverID && version >= b->first && version <= b->last &&
            (!b->name || strstr(a->properties.deviceName, b->name)))
            return b->why;
    }
    return NULL;
}

static void read_adapter(const struct nj_vk *vk, struct adapter *a)
{
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    const char *bad;

    vk->api.GetPhysicalDeviceProperties2(a->device, &p);
    a->properties = p.properties;
    if (p.properties.apiVersion >= VK_API_VERSION_1_2) {
        a->driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
        p.pNext = &a->driver;
        vk->api.GetPhysicalDeviceProperties2(a->device, &p);
    }
    if (nj_vk_lacks(vk, a->device, &a->properties, a->refusal, sizeof a->refusal))
        return;
    bad = why_bad(a);
    if (bad)
        snprintf(a->refusal, sizeof a->refusal, "its driver is known to be bad: %s", bad);
}

static int read_adapters(nj_context *ctx, struct adapter *out, uint32_t *count)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    VkPhysicalDevice devices[ADAPTERS_MAX];
    VkResult result;

    *count = ADAPTERS_MAX;
    result = vk->api.EnumeratePhysicalDevices(vk->instance, count, devices);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return nj_vk_check(ctx, result, "listing the GPUs");
    if (*count == 0)
        return nj_fail(ctx, NJ_E_NO_DEVICE, "Vulkan sees no GPU; check vulkaninfo");
    for (uint32_t i = 0; i < *count; i++) {
        memset(&out[i], 0, sizeof out[i]);
        out[i].device = devices[i];
        read_adapter(vk, &out[i]);
    }
    return 0;
}

/* Return the rank of an adapter: discrete GPUs first, implementations on the CPU last. */
static int rank_of(const struct adapter *a)
{
    return nj_vk_rank_of(a->properties.deviceType);
}

static int contains(const char *name, const char *part)
{
    const size_t length = strlen(part);

    for (; strlen(name) >= length; name++)
        if (strncasecmp(name, part, length) == 0)
            return 1;
    return 0;
}

/* Return the number in a text of digits only, else -1. */
static int number_of(const char *text)
{
    for (const char *c = text; *c; c++)
        if (!isdigit((unsigned char)*c))
            return -1;
    return *text && strlen(text) < 6 ? (int)strtol(text, NULL, 10) : -1;
}

/* Find the adapter that NOJIT_VULKAN_DEVICE names. */
static int find_wanted(nj_context *ctx, const struct adapter *all, uint32_t count,
                       const char *wanted, const struct adapter **out)
{
    const int number = number_of(wanted);

    for (uint32_t i = 0; i < count && !*out; i++)
        if (number >= 0 ? i == (uint32_t)number : contains(all[i].properties.deviceName, wanted))
            *out = &all[i];
    if (*out)
        return 0;
    return nj_fail(
        ctx, NJ_E_ARG,
        "NOJIT_VULKAN_DEVICE=%.100s: Vulkan sees %u GPU%s, and none has this number "
        "(counted from 0) or these letters in its name; see nojit doctor --device vulkan",
        wanted, count, count == 1 ? "" : "s");
}

static int refuse(nj_context *ctx, const struct adapter *a)
{
    return nj_fail(ctx, NJ_E_NO_DEVICE, "%.150s cannot be used: %s", a->properties.deviceName,
                   a->refusal);
}

/* Find the first usable adapter of the best kind. AUTO takes none that runs on the CPU. */
static int find_best(nj_context *ctx, const struct adapter *all, uint32_t count, int with_software,
                     const struct adapter **out)
{
    const struct adapter *software = NULL, *refused = NULL;

    for (uint32_t i = 0; i < count; i++) {
        const int rank = rank_of(&all[i]);

        if (all[i].refusal[0])
            refused = refused && rank_of(refused) <= rank ? refused : &all[i];
        else if (!with_software && all[i].properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU)
            software = &all[i];
        else if (!*out || rank < rank_of(*out))
            *out = &all[i];
    }
    if (*out)
        return 0;
    if (refused)
        return refuse(ctx, refused);
    return nj_fail(ctx, NJ_E_NO_DEVICE, "%.150s runs on the CPU", software->properties.deviceName);
}

int nj_vk_choose_device(nj_context *ctx, const struct nj_options *options)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    const char *wanted = getenv("NOJIT_VULKAN_DEVICE");
    struct adapter *all = calloc(ADAPTERS_MAX, sizeof *all);
    const struct adapter *chosen = NULL;
    uint32_t count = 0;
    int rc = all ? read_adapters(ctx, all, &count)
                 : nj_fail(ctx, NJ_E_NOMEM, "listing the GPUs: out of host memory");

    if (rc == 0 && wanted && wanted[0]) {
        rc = find_wanted(ctx, all, count, wanted, &chosen);
    } else if (rc == 0 && options->ordinal != 0) {
        if (options->ordinal < 0 || (uint32_t)options->ordinal >= count)
            rc = nj_fail(ctx, NJ_E_NO_DEVICE, "GPU %d wanted, Vulkan sees %u (counted from 0)",
                         options->ordinal, count);
        else
            chosen = &all[options->ordinal];
    } else if (rc == 0) {
        rc = find_best(ctx, all, count, options->device != NJ_DEVICE_AUTO, &chosen);
    }
    if (rc == 0 && chosen->refusal[0])
        rc = refuse(ctx, chosen);
    if (rc == 0) {
        vk->physical = chosen->device;
        vk->properties = chosen->properties;
    }
    free(all);
    return rc;
}

int nj_vk_switched_off(nj_context *ctx)
{
    const char *wanted = getenv("NOJIT_VULKAN_DEVICE");

    if (!wanted || strcmp(wanted, "none") != 0)
        return 0;
    return nj_fail(ctx, NJ_E_NO_DEVICE, "NOJIT_VULKAN_DEVICE=none switches Vulkan off");
}

static void list_adapter(const struct nj_vk *vk, const struct adapter *a, uint32_t number,
                         void (*log)(void *user, const char *line), void *user)
{
    static const char *const kinds[] = {"discrete", "integrated", "virtual", "on the CPU"};
    const VkPhysicalDeviceProperties *p = &a->properties;
    VkDeviceSize memory, allocation, buffer;
    char line[800];

    snprintf(line, sizeof line, "%u: %.150s, %s, Vulkan %u.%u: %s%s", number, p->deviceName,
             kinds[rank_of(a)], VK_API_VERSION_MAJOR(p->apiVersion),
             VK_API_VERSION_MINOR(p->apiVersion), a->refusal[0] ? "refused, as " : "can be used",
             a->refusal);
    log(user, line);
    if (p->apiVersion < VK_API_VERSION_1_3)
        return;
    nj_vk_sizes(vk, a->device, &memory, &allocation, &buffer);
    snprintf(line, sizeof line,
             "   driver %.100s %.100s; memory %.2f GiB, %.2f GiB at a time, buffers of %.2f GiB",
             a->driver.driverName, a->driver.driverInfo, (double)memory / (1 << 30),
             (double)allocation / (1 << 30), (double)buffer / (1 << 30));
    log(user, line);
    snprintf(
        line, sizeof line,
        "   workgroups of %u threads and %u bytes, grids of %u x %u, %u bytes of push constants",
        p->limits.maxComputeWorkGroupInvocations, p->limits.maxComputeSharedMemorySize,
        p->limits.maxComputeWorkGroupCount[0], p->limits.maxComputeWorkGroupCount[1],
        p->limits.maxPushConstantsSize);
    log(user, line);
}

void nj_vk_list_devices(nj_context *ctx, void (*log)(void *user, const char *line), void *user)
{
    struct adapter *all = calloc(ADAPTERS_MAX, sizeof *all);
    uint32_t count = 0;

    if (!all || read_adapters(ctx, all, &count))
        log(user, all ? ctx->error : "out of host memory");
    for (uint32_t i = 0; all && i < count; i++)
        list_adapter(nj_vk_of(ctx), &all[i], i, log, user);
    free(all);
}
