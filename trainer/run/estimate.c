/* SPDX-License-Identifier: Apache-2.0
 *
 * estimate.c: see estimate.h.
 */
#include "run/estimate.h"

/* Fractions of the data sheet's rates that a step reaches, and the overhead of a layer, fitted to the steps of
 * test_estimate.c. GEMMs at the power limit reach 0.70 of the peak. */
#define GEMM_PART 0.70
#define GEMM_FP8_PART 0.58
#define GEMM_EXPERTS_PART 0.50
#define ATTENTION_PART 0.38
#define BANDWIDTH_PART 0.97
#define LAYER_SECONDS 50e-6
/* Range of an estimate, relative to it: on GPUs that were measured the largest error is 8 %; for others there are
 * only predictions. */
#define MEASURED_RANGE 0.10
#define FASTEST_OTHER 0.70
#define SLOWEST_OTHER 1.50

struct estimate estimate_step(const struct gpu *g, enum nj_dtype dtype, const struct step_work *w)
{
    const double tera = 1e12, peak = tera * (dtype == NJ_F32 ? g->f32_tflops : g->tflops);
    double t = w->gemm / (peak * GEMM_PART) + w->gemm_experts / (peak * GEMM_EXPERTS_PART) +
               w->attention / (peak * ATTENTION_PART);
    if (w->gemm_fp8 > 0)
        t += w->gemm_fp8 / (tera * g->fp8_tflops * GEMM_FP8_PART);
    t += w->bytes / (1e9 * g->bandwidth * BANDWIDTH_PART) + w->layers * LAYER_SECONDS;
    if (g->measured && dtype != NJ_F32)
        return (struct estimate){t, t * (1 - MEASURED_RANGE), t * (1 + MEASURED_RANGE)};
    return (struct estimate){t, t * FASTEST_OTHER, t * SLOWEST_OTHER};
}
