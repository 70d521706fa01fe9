/* SPDX-License-Identifier: Apache-2.0
 *
 * identity.c: all that the result of a self-test depends on, as a key. Two cards of one model may differ in their
 * faults, so each has its own.
 */
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "backend.h"

struct identity {
    char name[sizeof((struct nj_device_info *)0)->name];
    char driver[sizeof((struct nj_device_info *)0)->driver];
    char gemm_build[sizeof((struct nj_device_info *)0)->gemm_build];
    struct nj_uuid card; /* zero if the driver does not tell */
    int32_t driver_version, sm;
    uint64_t gemm_version, index;
};

void nj_cuda_cache_key(nj_context *ctx, uint64_t index_hash)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    struct nj_device_info *info = &ctx->info;
    struct identity i;
    XXH128_hash_t hash;

    memset(&i, 0, sizeof i);
    snprintf(i.name, sizeof i.name, "%s", info->name);
    snprintf(i.driver, sizeof i.driver, "%s", info->driver);
    snprintf(i.gemm_build, sizeof i.gemm_build, "%s", info->gemm_build);
    if (cu->driver.cuDeviceGetUuid(&i.card, cu->device))
        memset(&i.card, 0, sizeof i.card);
    i.driver_version = info->driver_version;
    i.sm = info->sm;
    i.gemm_version = info->gemm_version;
    i.index = index_hash;
    hash = XXH3_128bits(&i, sizeof i);
    snprintf(info->cache_key, sizeof info->cache_key, "%016llx%016llx",
             (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}
