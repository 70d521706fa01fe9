/* SPDX-License-Identifier: Apache-2.0
 *
 * mfu.c: see mfu.h. help.c states the formula.
 */
#include "record/mfu.h"

#include <math.h>

#include "record/gpus.h"

static double seconds_at(double flops, double tflops)
{
    if (flops == 0)
        return 0;
    return tflops > 0 ? flops / (tflops * 1e12) : (double)NAN;
}

struct ideal_seconds mfu_ideal(const struct nj_device_info *d, enum nj_dtype dtype,
                               const struct step_flops *f)
{
    const struct gpu *p = gpu_of_device(d->name);
    if (p == NULL || dtype != NJ_LP)
        return (struct ideal_seconds){(double)NAN, (double)NAN};
    return (struct ideal_seconds){
        seconds_at(f->student, p->tflops) + seconds_at(f->student_fp8, p->fp8_tflops),
        seconds_at(f->teacher, p->tflops) + seconds_at(f->teacher_fp8, p->fp8_tflops)};
}
