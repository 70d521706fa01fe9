/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_gpu.h: a plan for a GPU that need not be here.
 */
#ifndef TRAINER_PLAN_GPU_H
#define TRAINER_PLAN_GPU_H

#include "run/estimate.h"
#include "run/run.h"

/* GPU of --gpu, with the properties that it has for this binary. */
struct plan_gpu {
    const struct gpu *of; /* the GPU; NULL: none is named */
    struct nj_device_info device;
    struct estimate step;
    double steps; /* number of steps of the run; 0: not known */
};

/* Print the table of --gpu list. */
void plan_gpu_list(void);
/* Find the GPU that --gpu names, or refuse it or options that do not go with it. */
int plan_gpu_find(const struct settings *s, struct plan_gpu *out);
/* Estimate the time of the plan; nothing is printed where there is no GPU or no estimate. */
void plan_gpu_estimate(const struct run *r, const struct plan *p, struct plan_gpu *g);
void plan_gpu_print(struct run *r, const struct plan *p, const struct plan_gpu *g);
void plan_gpu_print_json(const struct plan *p, const struct plan_gpu *g);

#endif
