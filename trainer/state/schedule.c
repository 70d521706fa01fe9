/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.c: learning rate of a step.
 */
#include "state/schedule.h"

#include <math.h>

/* Return the part that is left, at x from 0 to 1, of the way from the peak to the floor; one function per schedule. */
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

static double shape_root(double x)
{
    return 1.0 - sqrt(x);
}

static double (*const shapes[])(double) = {
    [SCHEDULE_COSINE] = shape_cosine,
    [SCHEDULE_LINEAR] = shape_linear,
    [SCHEDULE_CONSTANT] = shape_constant,
    [SCHEDULE_WSD] = shape_root,
};

/* Return the last step at the peak. */
static int64_t fall_begins(const struct train_options *o)
{
    const int64_t cooldown = (o->steps + 9) / 10;
    const int64_t begins = o->schedule == SCHEDULE_WSD ? o->steps - cooldown : 0;
    return begins > o->warmup_steps ? begins : o->warmup_steps;
}

float schedule_lr(const struct train_options *o, int64_t step)
{
    if (step < o->warmup_steps)
        return (float)((double)o->lr * (double)step / (double)o->warmup_steps);
    const int64_t begins = fall_begins(o);
    const double left = (double)(o->steps - begins);
    const double x = left > 0 && step > begins ? (double)(step - begins) / left : 0.0;
    const double floor_lr = (double)o->lr * (double)o->min_lr_ratio;
    return (float)(floor_lr + ((double)o->lr - floor_lr) * shapes[o->schedule](x < 1 ? x : 1));
}

int64_t schedule_warmup(double ratio, int64_t steps)
{
    /* 0.07 * 100 is a little more than 7. */
    return (int64_t)ceil(ratio * (double)steps - 1e-9);
}
