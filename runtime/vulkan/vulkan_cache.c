/* SPDX-License-Identifier: Apache-2.0
 *
 * vulkan_cache.c: the driver's pipelines, kept in a file from one run to the next. Its name and its heading
 * hold what the pipelines belong to: GPU, driver and shaders; a file of others, or a damaged one, is as none.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "backend.h"

enum { CACHE_BYTES_MOST = 256 << 20 };
#define CACHE_MAGIC UINT64_C(0x003143504b564a4e) /* "NJVKPC1", NUL, as bytes */

struct heading {
    uint64_t magic, key[2];
    uint64_t bytes, hash; /* bytes and hash of the data that follows */
};

/* All facts that a pipeline depends on. */
struct identity {
    uint32_t vendor, device, driver, id;
    uint8_t device_uuid[VK_UUID_SIZE], driver_uuid[VK_UUID_SIZE], cache_uuid[VK_UUID_SIZE];
    uint64_t shaders;
};

void nj_vk_cache_key(nj_context *ctx, const struct nj_index *index)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceIDProperties ids = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
                                        .pNext = &driver};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &ids};
    struct identity i;
    XXH128_hash_t hash;

    vk->api.GetPhysicalDeviceProperties2(vk->physical, &all);
    memset(&i, 0, sizeof i);
    i.vendor = all.properties.vendorID;
    i.device = all.properties.deviceID;
    i.driver = all.properties.driverVersion;
    i.id = (uint32_t)driver.driverID;
    memcpy(i.device_uuid, ids.deviceUUID, sizeof i.device_uuid);
    memcpy(i.driver_uuid, ids.driverUUID, sizeof i.driver_uuid);
    memcpy(i.cache_uuid, all.properties.pipelineCacheUUID, sizeof i.cache_uuid);
    i.shaders = XXH3_64bits(index->entries, index->header->entry_count * sizeof *index->entries);
    hash = XXH3_128bits(&i, sizeof i);
    vk->key[0] = hash.high64;
    vk->key[1] = hash.low64;
    snprintf(ctx->info.cache_key, sizeof ctx->info.cache_key, "%016llx%016llx",
             (unsigned long long)vk->key[0], (unsigned long long)vk->key[1]);
}

static int read_all(int fd, void *to, size_t bytes)
{
    unsigned char *at = to;

    while (bytes > 0) {
        const ssize_t n = read(fd, at, bytes);

        if (n <= 0)
            return -1;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

/* Return the contents of the file, allocated; or NULL. */
static void *read_cache(const struct nj_vk *vk, const char *path, size_t *bytes)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    struct heading h;
    struct stat st;
    void *data = NULL;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && read_all(fd, &h, sizeof h) == 0 &&
        h.magic == CACHE_MAGIC && memcmp(h.key, vk->key, sizeof h.key) == 0 &&
        h.bytes <= CACHE_BYTES_MOST && (uint64_t)st.st_size == sizeof h + h.bytes)
        data = malloc(h.bytes ? h.bytes : 1);
    if (data && (read_all(fd, data, h.bytes) || XXH3_64bits(data, h.bytes) != h.hash)) {
        free(data);
        data = NULL;
    }
    close(fd);
    *bytes = data ? h.bytes : 0;
    return data;
}

int nj_vk_cache_open(nj_context *ctx, const char *folder)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    char path[4096];
    size_t bytes = 0;
    void *data = nj_kept_path(ctx, folder, "pipelines", path, sizeof path)
                     ? read_cache(vk, path, &bytes)
                     : NULL;
    int rc;

    info.initialDataSize = bytes;
    info.pInitialData = data;
    rc = nj_vk_check(ctx, vk->api.CreatePipelineCache(vk->device, &info, NULL, &vk->cache),
                     "loading shaders");
    if (rc != 0)
        vk->cache = VK_NULL_HANDLE;
    vk->cached = rc == 0 && data && vk->has_compile_control;
    free(data);
    return rc;
}

int nj_vk_cache_write(nj_context *ctx, const char *folder)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    struct heading h = {.magic = CACHE_MAGIC, .key = {vk->key[0], vk->key[1]}};
    char path[4096];
    size_t bytes = 0;
    void *data;
    int rc;

    if (!nj_kept_path(ctx, folder, "pipelines", path, sizeof path))
        return 0;
    rc = nj_vk_check(ctx, vk->api.GetPipelineCacheData(vk->device, vk->cache, &bytes, NULL),
                     "keeping the pipelines");
    if (rc != 0 || bytes > CACHE_BYTES_MOST)
        return rc;
    data = malloc(bytes ? bytes : 1);
    if (!data)
        return nj_fail(ctx, NJ_E_NOMEM, "keeping the pipelines: out of host memory");
    rc = nj_vk_check(ctx, vk->api.GetPipelineCacheData(vk->device, vk->cache, &bytes, data),
                     "keeping the pipelines");
    h.bytes = bytes;
    h.hash = XXH3_64bits(data, bytes);
    if (rc == 0)
        nj_kept_write(path, (const struct iovec[]){{&h, sizeof h}, {data, bytes}}, 2);
    free(data);
    return rc;
}
