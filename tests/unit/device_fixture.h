/* SPDX-License-Identifier: Apache-2.0
 *
 * device_fixture.h: tests that run on every device of this machine: the CPU, and a GPU if there is one, by CUDA or by
 * Vulkan. A GPU that is present but cannot be opened is a failure; so is a missing CUDA GPU if REQUIRE_GPU is set.
 */
#ifndef NOJIT_TESTS_DEVICE_FIXTURE_H
#define NOJIT_TESTS_DEVICE_FIXTURE_H

#include "nojit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct device {
    nj_context *ctx;
    nj_stream *s;
    enum nj_device_kind kind;
    int lp_is_f16, is_cpu, lp;
};

/* Return whether a test may be skipped because a device failed to open in this way. */
static inline bool may_be_absent(enum nj_device_kind kind, int rc)
{
    return kind != NJ_DEVICE_CPU && (rc == NJ_E_NO_DEVICE || rc == NJ_E_DRIVER) &&
           (kind == NJ_DEVICE_VULKAN || !getenv("REQUIRE_GPU"));
}

static inline int open_device(void **state, enum nj_device_kind kind)
{
    const struct nj_options options = {.device = kind};
    struct device *d = calloc(1, sizeof *d);
    if (!d)
        return -1;
    *state = d;
    const int rc = nj_context_create(&d->ctx, &options);
    if (rc) {
        print_message("%s: %s\n", nj_error_name(rc), nj_context_error(d->ctx));
        nj_context_destroy(d->ctx);
        d->ctx = NULL;
        return may_be_absent(kind, rc) ? 0 : -1;
    }
    d->kind = kind;
    d->is_cpu = kind == NJ_DEVICE_CPU;
    d->lp = nj_context_device(d->ctx)->lp;
    d->lp_is_f16 = nj_context_device(d->ctx)->lp_is_f16;
    return nj_stream_create(d->ctx, &d->s);
}

static inline int open_cpu(void **state)
{
    return open_device(state, NJ_DEVICE_CPU);
}

static inline int open_cuda(void **state)
{
    return open_device(state, NJ_DEVICE_CUDA);
}

/* Skip under sanitizers: they would also check drivers that run on the CPU in this process. */
static inline int open_vulkan(void **state)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    *state = calloc(1, sizeof(struct device));
    return *state ? 0 : -1;
#else
    return open_device(state, NJ_DEVICE_VULKAN);
#endif
}

static inline int close_device(void **state)
{
    struct device *d = *state;
    nj_stream_destroy(d->s);
    nj_context_destroy(d->ctx);
    free(d);
    return 0;
}

static inline struct device *need(void **state)
{
    struct device *d = *state;
    if (!d->ctx)
        skip();
    return d;
}

/* Run the tests on all devices and return the number of failed ones. */
#define RUN_ON_DEVICES(tests)                                                                      \
    (cmocka_run_group_tests_name("GPU", tests, open_cuda, close_device) +                          \
     cmocka_run_group_tests_name("CPU", tests, open_cpu, close_device))

#endif
