/* SPDX-License-Identifier: Apache-2.0
 *
 * selftest.c: every kernel that a device has, held against its reference by its smallest cases, after GEMMs. It
 * takes about a second, and finds what a driver's compiler makes wrong.
 */
#include <stdio.h>

#include "cases.h"

enum { CASES_OF_A_KEY = 2, SEED = 1 };

static double cost(const struct kernel_case *c)
{
    return c->flops + c->bytes;
}

/* The cheapest case of a key that costs more than the one before; the first of equals. NULL: there is none. */
static const struct kernel_case *next_case(uint32_t kernel, const struct kernel_case *before)
{
    const struct kernel_case *best = NULL;

    for (uint32_t i = 0; i < nj_case_count; i++) {
        const struct kernel_case *c = &nj_cases[i];

        if (c->kernel == kernel && !c->bench && (!before || cost(c) > cost(before)) &&
            (!best || cost(c) < cost(best)))
            best = c;
    }
    return best;
}

static int try_kernel(nj_context *ctx, nj_stream *s, uint32_t kernel, char *why, size_t bytes)
{
    const struct kernel_case *c = NULL;

    for (int i = 0; i < CASES_OF_A_KEY && (c = next_case(kernel, c)) != NULL; i++) {
        const struct subject subject = nj_case_subject_of(c);
        struct result r;

        nj_case_run_case(ctx, s, &subject, SEED, &r);
        if (r.status == PASSED)
            continue;
        snprintf(why, bytes, "%s [%s]: %s", subject.key, c->label, r.message);
        return r.no_memory ? NJ_E_NOMEM : NJ_E_DEVICE;
    }
    return 0;
}

int nj_self_test(nj_context *ctx, char *why, size_t bytes)
{
    nj_stream *s = NULL;
    int rc = nj_stream_create(ctx, &s);

    if (rc)
        snprintf(why, bytes, "%s", nj_context_error(ctx));
    if (rc == 0)
        rc = nj_selftest_gemms(ctx, s, why, bytes);
    for (uint32_t kernel = 0; kernel < nj_kernel_count && rc == 0; kernel++)
        if (nj_kernel_available(ctx, (int)kernel))
            rc = try_kernel(ctx, s, kernel, why, bytes);
    nj_stream_destroy(s);
    return rc;
}
