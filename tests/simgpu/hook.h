/* SPDX-License-Identifier: Apache-2.0
 *
 * hook.h: how another simulated library (cuBLASLt, NCCL) puts work into streams of the simulated driver;
 * exported by it beside the driver's own functions.
 */
#ifndef NOJIT_SIM_HOOK_H
#define NOJIT_SIM_HOOK_H

#include <stddef.h>
#include <stdint.h>

/* Work of a stream: 0, or the CUDA error that the context is lost with. */
typedef int sim_work_fn(void *argument);

/* Appends work to the stream, or to the graph that it is captured into. The argument is copied.
 * Returns a CUDA result. */
typedef int sim_enqueue_fn(void *stream, sim_work_fn *run, const void *argument, size_t bytes);

/* Within work: the bytes at an address of the device, or NULL, with a sentence in the log, if they
 * are not all of one allocation. writes: they are about to be written. */
typedef void *sim_bytes_fn(uint64_t address, size_t bytes, int writes, const char *what);

/* Within work: a matrix product begins. The error that it was told to fail with, or 0. */
typedef int sim_product_fn(void);

/* Bytes of the device that a library takes for itself. */
typedef void sim_keep_fn(size_t bytes);

/* The arch of the current context: 90; 0 without one. */
typedef int sim_arch_fn(void);

/* 1 while the stream is captured. */
typedef int sim_capturing_fn(void *stream);

/* Graphs that were not destroyed and hold work of this function, whose argument begins so. */
typedef int sim_held_fn(sim_work_fn *run, const void *argument, size_t bytes);

/* A sentence to the log. */
typedef void sim_say_fn(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct sim_hook {
    sim_enqueue_fn *enqueue;
    sim_bytes_fn *bytes;
    sim_product_fn *product;
    sim_keep_fn *keep;
    sim_arch_fn *arch;
    sim_capturing_fn *capturing;
    sim_held_fn *held;
    sim_say_fn *say;
};
#define SIM_HOOK "sim_hook_table"

#endif
