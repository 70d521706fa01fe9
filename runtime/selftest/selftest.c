/* SPDX-License-Identifier: Apache-2.0
 *
 * selftest.c: every kernel that a device has, held against its reference by its smallest cases, after GEMMs. It
 * takes a second or two, and finds what an assembler, a driver's compiler or a card makes wrong.
 */
#include <stdio.h>

#include "base/clock.h"
#include "cases.h"
#include "internal.h"

enum { CASES_OF_A_KEY = 2, SEED = 1 };

static double cost(const struct kernel_case *c)
{
    return c->flops + c->bytes;
}

/* Return the cheapest case of a key that costs more than the previous one; the first among equals. NULL: there is
 * none. */
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

/* Result of a kernel, with the texts that its trial points to. */
struct found {
    struct nj_trial trial;
    /* Result of the case with the largest error, or of the first that failed. */
    struct result result;
};

static void run_cases(nj_context *ctx, nj_stream *s, uint32_t kernel, struct found *out)
{
    const struct kernel_case *c = NULL;
    struct nj_trial *t = &out->trial;

    *out = (struct found){.trial = {.name = nj_kernels[kernel].key, .label = "", .wrong = ""}};
    for (int i = 0; i < CASES_OF_A_KEY && (c = next_case(kernel, c)) != NULL; i++) {
        const struct subject subject = nj_case_subject_of(c);
        struct result r;

        nj_case_run_case(ctx, s, &subject, SEED, &r);
        if (r.status == PASSED && t->label[0] && r.worst <= t->error)
            continue;
        out->result = r;
        t->label = c->label;
        t->error = r.worst;
        t->tolerance = c->tolerance;
        if (r.status != PASSED) {
            t->verdict = NJ_FAILED;
            t->wrong = out->result.message;
            return;
        }
    }
}

/* Test the first set of machine code, and the second if the first is wrong. */
static int try_kernel(nj_context *ctx, nj_stream *s, uint32_t kernel, struct nj_self_test *t)
{
    const double from = clock_ms();
    struct found first, second;

    run_cases(ctx, s, kernel, &first);
    if (!first.trial.label[0]) /* the kernel has no case */
        return 0;
    if (first.result.no_memory)
        return nj_selftest_no_memory(t, &first.trial);
    if (first.trial.verdict == NJ_FAILED && nj_spare_load(ctx, kernel) == 0) {
        run_cases(ctx, s, kernel, &second);
        if (second.result.no_memory)
            return nj_selftest_no_memory(t, &second.trial);
        if (second.trial.verdict == NJ_PASSED)
            first.trial.verdict = NJ_PASSED_SPARE;
    }
    first.trial.ms = (float)(clock_ms() - from);
    return nj_selftest_count(ctx, t, &first.trial);
}

/* Return whether an error that stopped a kernel has taken the device with it; then nothing more can be tested. */
static int is_lost(nj_stream *s)
{
    return nj_stream_sync(s) != 0;
}

int nj_self_test(nj_context *ctx, struct nj_self_test *t)
{
    nj_stream *s = NULL;
    int rc = nj_stream_create(ctx, &s);

    t->kernels = t->gemms = t->failed = t->spares = 0;
    if (rc != 0)
        snprintf(t->why, sizeof t->why, "%.690s", nj_context_error(ctx));
    if (rc == 0)
        rc = nj_selftest_gemms(ctx, s, t);
    for (uint32_t kernel = 0; kernel < nj_kernel_count && rc == 0; kernel++) {
        if (nj_kernel_available(ctx, (int)kernel))
            rc = try_kernel(ctx, s, kernel, t);
        if (t->failed > 0 && is_lost(s))
            break;
    }
    nj_stream_destroy(s);
    return rc == 0 && t->failed > 0 ? NJ_E_DEVICE : rc;
}
