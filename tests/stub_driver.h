/* SPDX-License-Identifier: Apache-2.0
 *
 * stub_driver.h: what a test that has loaded the stub of the driver may ask of it, by dlsym.
 */
#ifndef NOJIT_STUB_DRIVER_H
#define NOJIT_STUB_DRIVER_H

#include <stddef.h>

/* The last cuLaunchKernel. */
struct stub_launch {
    const char *entry;
    unsigned grid[3], threads, shared_bytes;
    size_t param_bytes;
    unsigned char params[256];
};

struct stub {
    /* From its call number `after` (counted from 0) on, the driver's function `fails` answers with
     * `error`. */
    const char *fails;
    int error, after;
    int lasts;    /* 1: later calls, too */
    int live;     /* memory, streams, events, graphs and modules that were made and not destroyed */
    int launches; /* of kernels, outside of capture and by graphs */
    struct stub_launch launch;
};
#define STUB_SYMBOL "stub_state"

#endif
