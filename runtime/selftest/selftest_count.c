/* SPDX-License-Identifier: Apache-2.0
 *
 * selftest_count.c: what comes of a trial.
 */
#include <stdio.h>

#include "cases.h"

int nj_selftest_no_memory(struct nj_self_test *t, const struct nj_trial *trial)
{
    snprintf(t->why, sizeof t->why, "%.100s [%.100s]: out of memory", trial->name, trial->label);
    return NJ_E_NOMEM;
}

int nj_selftest_count(nj_context *ctx, struct nj_self_test *t, const struct nj_trial *trial)
{
    const int right = trial->verdict == NJ_PASSED || trial->verdict == NJ_PASSED_SPARE;

    t->gemms += right && trial->is_gemm;
    t->kernels += right && !trial->is_gemm;
    t->spares += trial->verdict == NJ_PASSED_SPARE;
    if (t->tried)
        t->tried(t->user, nj_context_device(ctx), trial);
    if (trial->verdict != NJ_FAILED)
        return 0;
    if (t->failed++ == 0)
        snprintf(t->why, sizeof t->why, "%.100s [%.100s]: %.400s", trial->name, trial->label,
                 trial->wrong);
    return t->all ? 0 : NJ_E_DEVICE;
}
