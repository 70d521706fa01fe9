/* SPDX-License-Identifier: Apache-2.0
 *
 * links.c: what a GPU is connected by, as NVML knows it.
 */
#include <string.h>

#include "backend.h"

enum { LINKS_MOST = 36 };

static int count_nvlinks(const struct nj_nvml *nvml, void *device)
{
    int up = 0;

    for (unsigned link = 0; link < LINKS_MOST; link++) {
        int active = 0;

        if (nvml->nvmlDeviceGetNvLinkState(device, link, &active) == 0)
            up += active == 1;
    }
    return up;
}

static int ask(int (*question)(void *device, unsigned *out), void *device)
{
    unsigned answer = 0;

    return question(device, &answer) == 0 ? (int)answer : 0;
}

void nj_gpu_links(nj_context *ctx, struct nj_links *out)
{
    struct nj_nvml nvml;
    char id[32];
    void *device;

    memset(out, 0, sizeof *out);
    if (!ctx || ctx->backend != &nj_backend_cuda || nj_cuda_open_nvml(&nvml) || nvml.nvmlInit() ||
        nj_cuda_of(ctx)->driver.cuDeviceGetPCIBusId(id, sizeof id, nj_cuda_of(ctx)->device) ||
        nvml.nvmlDeviceGetHandleByPciBusId(id, &device))
        return;
    out->nvlinks = count_nvlinks(&nvml, device);
    out->pcie = ask(nvml.nvmlDeviceGetCurrPcieLinkGeneration, device);
    out->pcie_lanes = ask(nvml.nvmlDeviceGetCurrPcieLinkWidth, device);
    out->pcie_most = ask(nvml.nvmlDeviceGetMaxPcieLinkGeneration, device);
    out->pcie_lanes_most = ask(nvml.nvmlDeviceGetMaxPcieLinkWidth, device);
}
