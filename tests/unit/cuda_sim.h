/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_sim.h: the CUDA backend on the simulated driver and cuBLASLt, which a test loads and configures.
 */
#ifndef NOJIT_TESTS_CUDA_SIM_H
#define NOJIT_TESTS_CUDA_SIM_H

#include "unit.h"

#include <dlfcn.h>
#include <unistd.h>

#include "internal.h"
#include "simgpu/control.h"

static struct sim_control *sim;
static int *lt_live;
static char folder[4096];

static void *load(const char *name, const char *symbol)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void *library = dlopen(path, RTLD_NOW), *found = library ? dlsym(library, symbol) : NULL;
    if (found == NULL)
        fail_msg("%s", dlerror());
    return found;
}

/* Load the simulated libraries: dlopen() by name returns a library that is already loaded. */
static int load_libraries(void **state)
{
    (void)state;
    const ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    assert_true(n > 0);
    *strrchr(folder, '/') = '\0';
    snprintf(strrchr(folder, '/'), sizeof "/sim", "/sim");
    sim = load("libcuda.so.1", SIM_CONTROL);
    lt_live = load("libcublasLt.so.13", "sim_lt_live");
    setenv("NOJIT_CUBLASLT", folder, 1);
    setenv("NOJIT_NCCL", folder, 1);
    return 0;
}

static int afresh(void **state)
{
    static const char *const settings[] = {
        "NOJIT_SIM_DEVICE", "NOJIT_SIM_LT_FAIL",    "NOJIT_SIM_LT_ONLY", "NOJIT_SIM_LT_VERSION",
        "NOJIT_SIM_STOP",   "CUDA_VISIBLE_DEVICES", "NOJIT_MEMORY"};
    (void)state;
    memset(sim, 0, sizeof *sim);
    *lt_live = 0;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        unsetenv(settings[i]);
    return 0;
}

static inline void fails(const char *function, int error)
{
    sim->fails = function;
    sim->error = error;
    sim->after = 0;
}

static const struct nj_options cuda = {.device = NJ_DEVICE_CUDA};

static nj_context *open_context(const struct nj_options *o)
{
    nj_context *ctx;
    if (nj_context_create(&ctx, o))
        fail_msg("%s", nj_context_error(ctx));
    return ctx;
}

#endif
