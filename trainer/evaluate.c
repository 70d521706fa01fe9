/* SPDX-License-Identifier: Apache-2.0
 *
 * evaluate.c: held-out losses: the training pass without its backward half, summed over one pass of
 * the data.
 */
#include "engine_impl.h"

#include "error.h"

#include <math.h>

static int add_batch(struct engine *e, double sums[4])
{
    struct work r = engine_work(e);
    r.rc = nj_zero(e->stream, e->mem.sums, sizeof e->mem.mailbox->sums);
    if (r.rc == 0)
        r.rc = send_batch(e, 0);
    micro_step(&r, e, e->chunks_of[0], false);
    if (r.rc == 0)
        r.rc = read_back(e);
    for (int i = 0; i < 4; i++)
        sums[i] += (double)e->mem.mailbox->sums[i];
    return r.rc;
}

int engine_eval(struct engine *e, struct data *d, struct eval_result *out)
{
    double sums[4] = {0};
    int rc;
    *out = (struct eval_result){0};
    e->valid = 0;
    data_seek(d, &(struct data_state){0});
    while ((rc = stage_next(e, d, 0)) == 0) {
        rc = add_batch(e, sums);
        if (rc != 0)
            return engine_fail(e, rc, "evaluation");
    }
    if (rc < 0)
        return rc;
    if (e->valid == 0)
        return fail(NJ_E_FORMAT, "no position of the evaluation data has a target; give more data");
    double n = (double)e->valid, r = e->has_teacher ? (double)e->o.kd_ratio : 0.0;
    double T = (double)e->o.temperature;
    *out = (struct eval_result){
        .kd_loss = sums[0] / n,
        .class_loss = sums[1] / n,
        .teacher_entropy = sums[2] / n,
        .agreement = sums[3] / n,
        .perplexity = exp(sums[1] / n),
        .valid_tokens = e->valid,
    };
    out->loss = (1.0 - r) * out->class_loss + r * T * T * out->kd_loss;
    return 0;
}
