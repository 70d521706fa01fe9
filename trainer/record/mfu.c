/* SPDX-License-Identifier: Apache-2.0
 *
 * mfu.c: see mfu.h. help.c states the formula.
 */
#include "record/mfu.h"

#include <math.h>
#include <string.h>

struct peak {
    const char *name;
    double tflops, f8_tflops; /* dense, sums in float32; RTX 5090: of MXFP8; 0: none */
};

/* More specific names first: the first one that the device's name contains counts. */
static const struct peak peaks[] = {
    {"H200", 989, 1979},    {"H100 PCIe", 756, 1513}, {"H100", 989, 1979},    {"A100", 312, 0},
    {"L40S", 362, 733},     {"L4", 121, 242},         {"RTX 4090", 165, 330}, {"T4", 65, 0},
    {"RTX 5090", 209, 838},
};

static double seconds_at(double flops, double tflops)
{
    if (flops == 0)
        return 0;
    return tflops > 0 ? flops / (tflops * 1e12) : (double)NAN;
}

struct ideal_seconds mfu_ideal(const struct nj_device_info *d, enum nj_dtype dtype,
                               const struct step_flops *f)
{
    const struct peak *p = NULL;
    for (size_t i = 0; i < sizeof peaks / sizeof peaks[0] && p == NULL; i++)
        if (strstr(d->name, peaks[i].name) != NULL)
            p = &peaks[i];
    if (p == NULL || dtype != NJ_LP)
        return (struct ideal_seconds){(double)NAN, (double)NAN};
    return (struct ideal_seconds){
        seconds_at(f->student, p->tflops) + seconds_at(f->student_f8, p->f8_tflops),
        seconds_at(f->teacher, p->tflops) + seconds_at(f->teacher_f8, p->f8_tflops)};
}
