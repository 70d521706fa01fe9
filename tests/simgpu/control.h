/* SPDX-License-Identifier: Apache-2.0
 *
 * control.h: what a test that has loaded the simulated driver may ask of it and set, by
 * dlsym(SIM_CONTROL). Programs that only open it are told by environment variables:
 *
 *   NOJIT_SIM_DEVICE   the GPUs, by name (t4, rtx4090, h100, b200, b300, thor, rtx5090, gb10) or
 *                      arch (sm_86; sm_86-shared: with the host's memory), a comma between two;
 *                      none; h100 if it is not set
 *   NOJIT_SIM_FAIL     NAME:N:ERROR: the N-th call (from 1) of the function NAME answers with ERROR,
 *                      with + behind it the later ones, too. NAME may be launch, copy or product:
 *                      the N-th that is executed then fails, and the context is lost; ERROR may be
 *                      hang: it never ends
 *   NOJIT_SIM_LOG      a file to which sentences go; standard error if it is not set
 *   NOJIT_SIM_PTX      the table of machine code and its PTX; ptx.txt beside the library else
 *   NOJIT_SIM_MEMORY   bytes of memory of each GPU
 *   NOJIT_SIM_STOP     bytes that cuMemAlloc gives at most
 *   NOJIT_SIM_CODE     bytes of device memory that the first product takes, as code of a library does
 *   NOJIT_SIM_CUDA     the CUDA version of the driver, such as 12040
 *   NOJIT_SIM_EAGER    a stream, by its number from 1 in the order they were made, that does its work at
 *                      once; all others do theirs when somebody waits
 *   NOJIT_SIM_ELAPSED  milliseconds between any two events, in place of those that went by
 *   NOJIT_SIM_LIE      the entry of a kernel whose launches get one word wrong of what they write; with :N
 *                      behind it the first N
 *   NOJIT_SIM_STRICT   1: a process that has not forbidden the JIT is refused
 *   NOJIT_SIM_OPEN     a library that the driver opens at the first launch, as one opens its compiler
 */
#ifndef NOJIT_SIM_CONTROL_H
#define NOJIT_SIM_CONTROL_H

#include <stddef.h>

#include "tensor_map.h"

/* The last cuLaunchKernelEx. */
struct sim_launched {
    const char *entry;
    unsigned grid[3], threads, shared_bytes;
    size_t param_bytes;
    unsigned char params[256];
};

enum { SIM_HANG = -1 };

struct sim_control {
    /* After `after` calls, the function `fails` answers with `error`. */
    const char *fails;
    int error, after;
    int lasts;       /* 1: later calls, too */
    int code_sm;     /* the SM that loaded machine code claims; 0: its own */
    int live;        /* memory, streams, events, graphs and modules made and not destroyed */
    int launches;    /* kernels that were executed */
    int products;    /* GEMMs that were executed */
    int modules;     /* loaded so far */
    int late;        /* modules loaded after the first launch */
    int ptx_refused; /* modules that were, or held nothing fitting but, PTX */
    int exempt;      /* modules whose PTX is not there: they do not launch */
    struct sim_launched launch;
};
#define SIM_CONTROL "sim_control_state"

#endif
