/* SPDX-License-Identifier: Apache-2.0
 *
 * compilations.c: how much was compiled for the GPU during a run, as far as the process can observe it. The
 * closed libraries of a GPU could compile without a word, but not without a compiler: where one is mapped,
 * nothing is claimed.
 */
#include <stdio.h>
#include <string.h>

#include "run/compilations.h"

static json_t *none(const char *observed)
{
    return json_pack("{s:i, s:i, s:s}", "at_start", 0, "in_steps", 0, "observed", observed);
}

static json_t *unknown(const char *why)
{
    return json_pack("{s:n, s:n, s:s}", "at_start", "in_steps", "observed", why);
}

static json_t *by_cuda(const struct nj_device_info *d)
{
    char mapped[200], text[400];
    const int compilers = nj_mapped_compilers(mapped, sizeof mapped);
    if (compilers < 0)
        return unknown("not known: /proc/self/maps, which says whether a compiler is mapped, "
                       "cannot be read");
    if (compilers > 0) {
        snprintf(text, sizeof text,
                 "not known: at the end of the run %s was mapped, which the driver or another "
                 "library opened and may have used",
                 mapped);
        return unknown(text);
    }
    if (!d->jit_forbidden)
        return unknown("not known: the driver was opened without CUDA_DISABLE_PTX_JIT=1 and "
                       "CUDA_CACHE_DISABLE=1");
    snprintf(text, sizeof text,
             "the driver's JIT and its cache were switched off before it was opened; %u modules, "
             "machine code of this binary, were loaded at the start and none later; no compiler "
             "was mapped at the end of the run",
             d->modules_loaded);
    return none(text);
}

static json_t *by_vulkan(const struct nj_device_info *d, uint32_t at_start)
{
    return json_pack("{s:i, s:i, s:s}", "at_start", (int)at_start, "in_steps",
                     (int)(d->pipelines_compiled - at_start), "observed",
                     "pipelines that the Vulkan driver was asked to compile");
}

json_t *compilations_json(const struct run *r)
{
    const struct nj_device_info *d = nj_context_device(r->ctx);
    if (strcmp(d->backend, "cuda") == 0)
        return by_cuda(d);
    if (strcmp(d->backend, "vulkan") == 0)
        return by_vulkan(d, r->pipelines_at_start);
    return none("on the CPU all code is the binary's own");
}
