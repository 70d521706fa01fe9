/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.c: a libcuda.so.1 whose GPUs are simulated on the CPU: start-up, devices, contexts, errors.
 * It has the functions that runtime/cuda/api.h lists and no others.
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_state sim;

static const struct {
    int error;
    const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {CUDA_JIT_DISABLED, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "PTX JIT compilation was disabled"},
    {CUDA_INVALID_SOURCE, "CUDA_ERROR_INVALID_SOURCE", "device kernel image is invalid"},
    {CUDA_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {CUDA_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CUDA_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int find_error(int error, size_t *at)
{
    for (*at = 0; *at < sizeof errors / sizeof *errors; ++*at)
        if (errors[*at].error == error)
            return CUDA_SUCCESS;
    return CUDA_INVALID_VALUE;
}

SIM_CALL(cuGetErrorName, SIM_ANYTIME, (int error, const char **out), (error, out))
{
    size_t at;
    const int result = find_error(error, &at);
    *out = result ? NULL : errors[at].name;
    return result;
}

SIM_CALL(cuGetErrorString, SIM_ANYTIME, (int error, const char **out), (error, out))
{
    size_t at;
    const int result = find_error(error, &at);
    *out = result ? NULL : errors[at].text;
    return result;
}

SIM_CALL(cuDriverGetVersion, SIM_ANYTIME, (int *out), (out))
{
    *out = (int)strtol(sim_setting("NOJIT_SIM_CUDA", "13000"), NULL, 10);
    return CUDA_SUCCESS;
}

/* Return whether the environment forbade the JIT before the driver started. */
static bool jit_is_forbidden(void)
{
    static const char *const wanted[][2] = {{"CUDA_DISABLE_PTX_JIT", "1"},
                                            {"CUDA_CACHE_DISABLE", "1"},
                                            {"CUDA_FORCE_PRELOAD_LIBRARIES", "0"}};
    for (int i = 0; i < 3; i++)
        if (strcmp(sim_setting(wanted[i][0], ""), wanted[i][1]) != 0)
            return false;
    return true;
}

/* CUDA_VISIBLE_DEVICES: which of the list there are, and in which order, up to the first word that is
 * no number of one. */
static bool next_visible(char list[][32], int count, char **rest, char **word)
{
    if (!*rest)
        return false;
    char *text = strsep(rest, ","), *end;
    const long at = strtol(text, &end, 10);
    if (end == text || at < 0 || at >= count)
        return false;
    *word = list[at];
    return true;
}

/* A device that is retained stays as it is. */
static int read_devices(void)
{
    char text[256], list[SIM_MAX_DEVICES][32], visible[64] = "0,1,2,3,4,5,6,7", *rest = text, *word;
    int count = 0;
    const char *memory = sim_setting("NOJIT_SIM_MEMORY", NULL);
    snprintf(text, sizeof text, "%s", sim_setting("NOJIT_SIM_DEVICE", "h100"));
    while ((word = strsep(&rest, ",")) != NULL && count < SIM_MAX_DEVICES)
        if (strcmp(word, "none") != 0)
            snprintf(list[count++], sizeof list[0], "%s", word);
    if (getenv("CUDA_VISIBLE_DEVICES"))
        snprintf(visible, sizeof visible, "%s", getenv("CUDA_VISIBLE_DEVICES"));
    rest = visible;
    sim.devices = 0;
    while (sim.devices < SIM_MAX_DEVICES && next_visible(list, count, &rest, &word)) {
        struct sim_device *d = &sim.device[sim.devices];
        struct sim_profile *p = &d->profile;
        sim.devices++;
        if (d->retained)
            continue;
        if (sim_profile_find(word, p)) {
            sim_say("NOJIT_SIM_DEVICE: no GPU is called %s", word);
            return CUDA_NO_DEVICE;
        }
        if (sim_setting("NOJIT_SIM_STOP", NULL))
            p->device_bytes = strtoull(getenv("NOJIT_SIM_STOP"), NULL, 10);
        if (memory)
            p->memory_bytes = p->free_bytes = p->device_bytes = strtoull(memory, NULL, 10);
    }
    return sim.devices ? CUDA_SUCCESS : CUDA_NO_DEVICE;
}

SIM_CALL(cuInit, SIM_ANYTIME, (unsigned flags), (flags))
{
    if (flags)
        return CUDA_INVALID_VALUE;
    if (strcmp(sim_setting("NOJIT_SIM_STRICT", "0"), "1") == 0 && !jit_is_forbidden())
        return CUDA_NOT_SUPPORTED;
    const int result = read_devices();
    sim.started = result == CUDA_SUCCESS;
    return result;
}

/* ---- devices ---- */

static struct sim_device *device_at(int number)
{
    return number >= 0 && number < sim.devices ? &sim.device[number] : NULL;
}

SIM_CALL(cuDeviceGetCount, SIM_STARTED, (int *out), (out))
{
    *out = sim.devices;
    return CUDA_SUCCESS;
}

SIM_CALL(cuDeviceGet, SIM_STARTED, (int *out, int ordinal), (out, ordinal))
{
    *out = ordinal;
    return device_at(ordinal) ? CUDA_SUCCESS : CUDA_INVALID_DEVICE;
}

/* GeForce has no peer access. */
SIM_CALL(cuDeviceCanAccessPeer, SIM_STARTED, (int *out, int device, int peer), (out, device, peer))
{
    const struct sim_device *a = device_at(device), *b = device_at(peer);
    *out = a && b && device != peer && !strstr(a->profile.name, "RTX");
    return a && b ? CUDA_SUCCESS : CUDA_INVALID_DEVICE;
}

SIM_CALL(cuDeviceGetPCIBusId, SIM_STARTED, (char *id, int bytes, int device), (id, bytes, device))
{
    if (!device_at(device))
        return CUDA_INVALID_DEVICE;
    snprintf(id, (size_t)bytes, "0000:%02x:00.0", (unsigned)device & 0xff);
    return CUDA_SUCCESS;
}

SIM_CALL(cuDeviceGetName, SIM_STARTED, (char *name, int bytes, int device), (name, bytes, device))
{
    if (!device_at(device))
        return CUDA_INVALID_DEVICE;
    snprintf(name, (size_t)bytes, "%s", device_at(device)->profile.name);
    return CUDA_SUCCESS;
}

SIM_CALL(cuDeviceGetUuid_v2, SIM_STARTED, (unsigned char *uuid, int device), (uuid, device))
{
    if (!device_at(device))
        return CUDA_INVALID_DEVICE;
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(16 * device + i);
    return CUDA_SUCCESS;
}

SIM_CALL(cuDeviceTotalMem_v2, SIM_STARTED, (size_t * out, int device), (out, device))
{
    if (!device_at(device))
        return CUDA_INVALID_DEVICE;
    *out = device_at(device)->profile.memory_bytes;
    return CUDA_SUCCESS;
}

SIM_CALL(cuDeviceGetAttribute, SIM_STARTED, (int *out, int attribute, int device),
         (out, attribute, device))
{
    const struct sim_device *d = device_at(device);
    if (!d)
        return CUDA_INVALID_DEVICE;
    const struct {
        int attribute, value;
    } known[] = {
        {1, (int)d->profile.threads_per_block},
        {8, 48 << 10}, /* shared memory of a block without opt-in */
        {10, 32},      /* threads of a warp */
        {12, (int)d->profile.registers},
        {16, d->profile.multiprocessors},
        {18, d->profile.integrated},
        {75, d->profile.sm / 10},
        {76, d->profile.sm % 10},
        {83, 1}, /* managed memory */
        {97, (int)d->profile.shared_bytes},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].attribute == attribute) {
            *out = known[i].value;
            return CUDA_SUCCESS;
        }
    sim_say("cuDeviceGetAttribute: attribute %d is not known", attribute);
    return CUDA_INVALID_VALUE;
}

/* ---- contexts: the handle of one is its device ---- */

SIM_CALL(cuDevicePrimaryCtxRetain, SIM_STARTED, (void **out, int device), (out, device))
{
    struct sim_device *d = device_at(device);
    if (!d)
        return CUDA_INVALID_DEVICE;
    if (d->retained == 0 && !(d->memory = sim_memory_create()))
        return CUDA_OUT_OF_MEMORY;
    d->retained++;
    *out = d;
    return CUDA_SUCCESS;
}

/* Release a context with everything that it holds. */
SIM_CALL(cuDevicePrimaryCtxRelease_v2, SIM_STARTED, (int device), (device))
{
    struct sim_device *d = device_at(device);
    if (!d || d->retained == 0)
        return CUDA_INVALID_DEVICE;
    if (--d->retained > 0)
        return CUDA_SUCCESS;
    if (!d->lost)
        sim_drain_all(d);
    sim_streams_free(d);
    sim_modules_free(d);
    sim_memory_free_all(d);
    sim_memory_destroy(d->memory);
    d->memory = NULL;
    d->device_used = 0; /* with the memory that begin_product() took */
    d->lost = 0;
    return CUDA_SUCCESS;
}

SIM_CALL(cuCtxSetCurrent, SIM_STARTED, (void *context), (context))
{
    struct sim_device *d = context;
    if (d && (d < sim.device || d >= sim.device + sim.devices || d->retained == 0))
        return CUDA_INVALID_CONTEXT;
    sim_current = d;
    return CUDA_SUCCESS;
}

static int arch_of_current(void)
{
    return sim_current ? sim_current->profile.sm : 0;
}

static int begin_product(void)
{
    const char *code = sim_setting("NOJIT_SIM_CODE", NULL);
    if (sim_control_state.products++ == 0 && code && sim_current)
        sim_current->device_used += strtoull(code, NULL, 10);
    return sim_told("product");
}

static void keep(size_t bytes)
{
    if (sim_current)
        sim_current->device_used += bytes;
}

/* Called by threads of the program; the others within work, where the lock is held, or of what never changes. */
static int enqueue_as_a_call(void *stream, sim_work_fn *run, const void *argument, size_t bytes)
{
    int result = sim_enter("sim_enqueue", SIM_CONTEXT);
    if (result == CUDA_SUCCESS)
        result = sim_enqueue(stream, run, argument, bytes);
    sim_leave();
    return result;
}

static int capturing_as_a_call(void *stream)
{
    int result = sim_enter("sim_capturing", SIM_CONTEXT);
    if (result == CUDA_SUCCESS)
        result = sim_is_capturing(stream);
    sim_leave();
    return result;
}

extern const struct sim_hook sim_hook_table;
SIM_EXPORT const struct sim_hook sim_hook_table = {
    enqueue_as_a_call, sim_bytes,           begin_product, keep,
    arch_of_current,   capturing_as_a_call, sim_held,      sim_say};
