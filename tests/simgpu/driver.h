/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.h: what the files of the simulated driver share.
 *
 *   driver.c         devices, contexts, errors            driver_memory.c  memory, copies
 *   driver_call.c    what every call does first; failures on request; the log
 *   driver_stream.c  streams, events, graphs              driver_module.c  modules, launches
 *   driver_ptx.c     machine code and the PTX that it was made of
 *
 * Work is executed when somebody waits for it, and not before: a program that does not wait sees
 * what was there before.
 */
#ifndef NOJIT_SIM_DRIVER_H
#define NOJIT_SIM_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"
#include "hook.h"
#include "memory.h"
#include "profiles.h"

enum cuda_result {
    CUDA_SUCCESS = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_IMAGE = 200,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_NO_BINARY_FOR_GPU = 209,
    CUDA_JIT_DISABLED = 223,
    CUDA_INVALID_SOURCE = 300,
    CUDA_INVALID_HANDLE = 400,
    CUDA_ILLEGAL_STATE = 401,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_MISALIGNED_ADDRESS = 716,
    CUDA_LAUNCH_FAILED = 719,
    CUDA_NOT_SUPPORTED = 801,
    CUDA_CAPTURE_UNSUPPORTED = 900,
    CUDA_CAPTURE_INVALIDATED = 901
};

struct sim_stream;

struct sim_device {
    struct sim_profile profile;
    struct sim_memory *memory;
    int retained;
    int lost; /* the result of every call since a fault; 0: none */
    struct sim_allocated *allocated;
    uint64_t device_used, managed_used;
    struct sim_stream *streams; /* the first is the default one */
    struct sim_loaded *modules;
};

enum { SIM_MAX_DEVICES = 8 };
struct sim_state {
    struct sim_device device[SIM_MAX_DEVICES];
    int devices;
    bool started;
};
extern struct sim_state sim;
extern struct sim_control sim_control_state;
/* The device whose context is current on this thread, or NULL. */
extern _Thread_local struct sim_device *sim_current;

/* ---- every call ---- */

enum sim_needs {
    SIM_ANYTIME = 0,
    SIM_STARTED = 1,
    SIM_CONTEXT = 2, /* a current one that is not lost */
    SIM_UNSAFE = 4   /* not while this thread captures */
};

/* Begins a call: the result it must give at once, or 0. sim_leave ends it either way. */
int sim_enter(const char *name, unsigned needs);
void sim_leave(void);
/* The result that a function was told to give, or 0. */
int sim_told(const char *name);
sim_say_fn sim_say;
const char *sim_setting(const char *name, const char *otherwise);

#define SIM_EXPORT __attribute__((visibility("default")))

/* Defines a function of the driver: its body runs under the lock and only if it may. */
#define SIM_CALL(name, needs, params, args)                                                        \
    SIM_EXPORT int name params;                                                                    \
    static int name##_body params;                                                                 \
    int name params                                                                                \
    {                                                                                              \
        int result = sim_enter(#name, needs);                                                      \
        if (result == CUDA_SUCCESS)                                                                \
            result = name##_body args;                                                             \
        sim_leave();                                                                               \
        return result;                                                                             \
    }                                                                                              \
    static int name##_body params

/* ---- streams ---- */

sim_enqueue_fn sim_enqueue;
/* Executes what is in a stream; NULL: the default one. */
int sim_drain(struct sim_stream *stream);
int sim_drain_all(struct sim_device *device);
bool sim_is_capturing(void *stream);
sim_held_fn sim_held;
/* A call that may not be made while this thread captures was made. Its result. */
int sim_spoil_captures(void);
void sim_streams_free(struct sim_device *device);

/* ---- memory, modules ---- */

sim_bytes_fn sim_bytes;
void sim_memory_free_all(struct sim_device *device);
void sim_modules_free(struct sim_device *device);

/* The text of the PTX that this machine code was assembled from, to be freed, or NULL with the
 * reason in why. */
char *sim_ptx_of(const void *code, size_t bytes, size_t *text_bytes, char why[256]);

#endif
