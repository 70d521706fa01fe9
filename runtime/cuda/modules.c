/* SPDX-License-Identifier: Apache-2.0
 *
 * modules.c: loads and resolves every kernel when a GPU is opened, so that no launch ever loads
 * code. The embedded containers hold machine code only; a GPU without any is an error here, not a
 * compilation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

enum { SHARED_WITHOUT_OPT_IN = 48 << 10 };

/* Write how to choose another GPU, which may have code: of several GPUs the first is taken. Write "" if some GPUs
 * are hidden already, since then numbers here are not those of the variable. */
static void name_another(nj_context *ctx, const struct nj_index *index, char *out, size_t bytes)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;
    int count = 0;

    out[0] = '\0';
    if (getenv("CUDA_VISIBLE_DEVICES") || driver->cuDeviceGetCount(&count))
        return;
    for (int i = 0; i < count && !out[0]; i++) {
        int device, major, minor;

        if (driver->cuDeviceGet(&device, i) ||
            driver->cuDeviceGetAttribute(&major, NJ_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                         device) ||
            driver->cuDeviceGetAttribute(&minor, NJ_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                         device))
            continue;
        if (nj_index_arch_for(index, 10 * major + minor) >= 0)
            snprintf(out, bytes,
                     "; GPU %d of this machine is sm_%d: choose it by CUDA_VISIBLE_DEVICES=%d", i,
                     10 * major + minor, i);
    }
}

static int no_code(nj_context *ctx, const struct nj_index *index)
{
    char held[400], another[120];

    nj_arch_list(index, held, sizeof held);
    name_another(ctx, index, another, sizeof another);
    return nj_fail(ctx, NJ_E_NO_CODE,
                   "%s is sm_%d and this program holds machine code for %s only; build it with: "
                   "make ARCHS=sm_%d%s",
                   ctx->info.name, ctx->info.sm, held, ctx->info.sm, another);
}

/* Check that launcher and machine code come from the same build; a block made for another kernel would be read as
 * garbage. */
static int check_entry(nj_context *ctx, const struct nj_index *index,
                       const struct nj_kernel *kernel, const struct nji_entry *entry)
{
    const char *what = NULL;

    if (!entry)
        return nj_fail(ctx, NJ_E_INDEX,
                       "%s has a launcher and no machine code; rebuild from "
                       "clean",
                       kernel->key);
    if (strcmp(index->strings + entry->entry_str, kernel->entry) != 0)
        what = "entry name";
    else if (entry->threads != kernel->threads)
        what = "block size";
    else if (entry->max_shared_bytes != kernel->max_shared_bytes)
        what = "shared memory";
    else if (entry->param_bytes != kernel->param_bytes ||
             entry->param_count != kernel->param_count ||
             memcmp(index->params + entry->first_param, kernel->params,
                    entry->param_count * sizeof(struct nji_param)) != 0)
        what = "parameter layout";
    if (!what)
        return 0;
    return nj_fail(ctx, NJ_E_INDEX,
                   "%s: launcher and machine code disagree on the %s; rebuild "
                   "from clean",
                   kernel->key, what);
}

/* Return the dynamic shared memory that the code of this arch needs, if it is more than its launcher asks for. */
static uint32_t arch_shared(const struct nj_kernel *kernel, const char *arch)
{
    for (const struct nj_arch_shared *s = kernel->arch_shared; s && s->arch; s++)
        if (strcmp(s->arch, arch) == 0)
            return s->bytes;
    return 0;
}

static int set_up_function(nj_context *ctx, const struct nj_kernel *kernel, void *function,
                           uint32_t least_shared)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;
    const uint32_t dynamic =
        least_shared > kernel->max_shared_bytes ? least_shared : kernel->max_shared_bytes;
    int version = 0, shared = 0;
    int rc = driver->cuFuncLoad(function); /* otherwise the first launch may load it */

    if (rc == 0)
        rc = driver->cuFuncGetAttribute(&version, NJ_CU_FUNC_ATTRIBUTE_BINARY_VERSION, function);
    if (rc == 0)
        rc = driver->cuFuncGetAttribute(&shared, NJ_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    if (rc != 0)
        return nj_cuda_check(ctx, rc, kernel->key);
    if (version / 10 != ctx->info.sm / 10 || version > ctx->info.sm)
        return nj_fail(ctx, NJ_E_NO_CODE, "%s: the driver loaded code of sm_%d on sm_%d",
                       kernel->key, version, ctx->info.sm);
    if ((uint32_t)shared + dynamic <= SHARED_WITHOUT_OPT_IN)
        return 0;
    rc = driver->cuFuncSetAttribute(function, NJ_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    (int)dynamic);
    return rc != 0 ? nj_cuda_check(ctx, rc, kernel->key) : 0;
}

static void log_module(const struct nj_options *options, const struct nj_index *index,
                       const struct nji_entry *entry, int arch)
{
    char line[400], name[16];

    if (!options->verbose || !options->log)
        return;
    for (uint32_t i = 0; i < entry->record_count; i++) {
        const struct nji_record *record = &index->records[entry->first_record + i];

        if (record->arch != arch)
            continue;
        nj_arch_name(&index->archs[arch], name);
        snprintf(line, sizeof line, "loaded %.200s: %s, %u bytes, %u registers, %u bytes spilled",
                 index->strings + entry->key_str, name, record->code_bytes, record->registers,
                 record->spill_bytes);
        options->log(options->log_user, line);
    }
}

/* Load a container of `bytes` bytes (0: there is none) and resolve the function of kernel `id`. *module is set to
 * the loaded module even if this fails. */
static int load_code(nj_context *ctx, uint32_t id, const void *container, uint64_t bytes,
                     void **module, void **function)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    const struct nj_kernel *kernel = &nj_kernels[id];
    int rc = NJ_CUDA_ERROR_NO_BINARY_FOR_GPU;

    if (bytes)
        rc = cu->driver.cuModuleLoadData(module, container);
    if (rc == NJ_CUDA_ERROR_NO_BINARY_FOR_GPU)
        return nj_fail(ctx, NJ_E_NO_CODE,
                       "%s has no machine code for %s; build it with: make ARCHS=%s", kernel->key,
                       ctx->info.arch, ctx->info.arch);
    if (rc != 0)
        return nj_cuda_check(ctx, rc, kernel->key);
    rc = cu->driver.cuModuleGetFunction(function, *module, kernel->entry);
    if (rc != 0)
        return nj_cuda_check(ctx, rc, kernel->entry);
    return set_up_function(ctx, kernel, *function, cu->least_shared[id]);
}

static int load_kernel(nj_context *ctx, const struct nj_index *index, uint32_t id,
                       const struct nji_entry *entry)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    int rc;

    cu->least_shared[id] = arch_shared(&nj_kernels[id], ctx->info.arch);
    rc = load_code(ctx, id, index->blobs + entry->blob_off, entry->blob_bytes, &cu->modules[id],
                   &cu->functions[id]);
    ctx->info.modules_loaded += cu->modules[id] != NULL;
    ctx->info.kernels_loaded += cu->functions[id] != NULL;
    return rc;
}

static int is_for(const struct nj_kernel *kernel, const struct nj_device_info *info)
{
    return !kernel->only || strcmp(kernel->only, info->arch) == 0;
}

/* Open the index and find the arch of this GPU; -1 if there is none. */
static int open_index(nj_context *ctx, struct nj_index *index, int *arch)
{
    char why[NJ_SENTENCE_BYTES];
    const int rc = nj_index_embedded(index, why);

    if (rc != 0)
        return nj_fail(ctx, rc, "%s", why);
    *arch = nj_index_arch_for(index, ctx->info.sm);
    return 0;
}

int nj_cuda_load_modules(nj_context *ctx, const struct nj_options *options)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    struct nj_index index;
    int arch, rc = open_index(ctx, &index, &arch);

    if (rc != 0)
        return rc;
    if (arch < 0)
        return no_code(ctx, &index);
    ctx->info.lp_is_f16 = index.archs[arch].lp_is_f16;
    nj_arch_name(&index.archs[arch], ctx->info.arch);
    cu->modules = calloc(nj_kernel_count, sizeof *cu->modules);
    cu->functions = calloc(nj_kernel_count, sizeof *cu->functions);
    cu->least_shared = calloc(nj_kernel_count, sizeof *cu->least_shared);
    if (!cu->modules || !cu->functions || !cu->least_shared)
        return nj_fail(ctx, NJ_E_NOMEM, "loading kernels: out of host memory");
    for (uint32_t id = 0; id < nj_kernel_count; id++) {
        const struct nj_kernel *kernel = &nj_kernels[id];
        const struct nji_entry *entry = nj_index_find(&index, kernel->key);

        if (!is_for(kernel, &ctx->info))
            continue; /* the launch reports it */
        rc = check_entry(ctx, &index, kernel, entry);
        if (rc == 0)
            rc = load_kernel(ctx, &index, id, entry);
        if (rc != 0)
            return rc;
        log_module(options, &index, entry, arch);
    }
    return 0;
}

int nj_cuda_load_spare(nj_context *ctx, uint32_t id)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    const struct nji_entry *entry;
    void *module = NULL, *function = NULL;
    struct nj_index index;
    int arch;
    TRY(open_index(ctx, &index, &arch));
    entry = nj_index_find(&index, nj_kernels[id].key);
    if (arch < 0 || !index.archs[arch].spare || !entry || !cu->functions[id])
        return nj_fail(ctx, NJ_E_NO_CODE, "%s has no spare code for %s", nj_kernels[id].key,
                       ctx->info.arch);
    int rc = nj_cuda_enter(ctx);
    if (rc == 0)
        rc = load_code(ctx, id, index.blobs + entry->spare_off, entry->spare_bytes, &module,
                       &function);
    if (rc == 0) {
        void *replaced = cu->modules[id];

        cu->modules[id] = module;
        cu->functions[id] = function;
        module = replaced;
    }
    if (module)
        cu->driver.cuModuleUnload(module);
    return rc;
}

void nj_cuda_unload_modules(nj_context *ctx)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);

    for (uint32_t id = 0; cu->modules && id < nj_kernel_count; id++)
        if (cu->modules[id])
            cu->driver.cuModuleUnload(cu->modules[id]);
    free(cu->modules);
    free(cu->functions);
    free(cu->least_shared);
}
