/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.c: learning rate of a step.
 */
#include "engine.h"

#include <math.h>

/* Fraction of the way from the peak to the floor that is left, by schedule; x runs from 0 to 1. */
static double shape_cosine(double x)
{
    return 0.5 * (1.0 + cos(3.14159265358979323846 * x));
}

static double shape_linear(double x)
{
    return 1.0 - x;
}

static double shape_constant(double x)
{
    (void)x;
    return 1.0;
}

static double (*const shapes[])(double) = {
    [SCHEDULE_COSINE] = shape_cosine,
    [SCHEDULE_LINEAR] = shape_linear,
    [SCHEDULE_CONSTANT] = shape_constant,
};

float schedule_lr(const struct train_options *o, int64_t step)
{
    if (step < o->warmup_steps)
        return (float)((double)o->lr * (double)step / (double)o->warmup_steps);
    double left = (double)(o->steps - o->warmup_steps);
    double x = left > 0 ? (double)(step - o->warmup_steps) / left : 0.0;
    double floor_lr = (double)o->lr * (double)o->min_lr_ratio;
    return (float)(floor_lr + ((double)o->lr - floor_lr) * shapes[o->schedule](x < 1 ? x : 1));
}
