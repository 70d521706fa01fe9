/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h: what memory a run needs, and how large a batch may be.
 */
#ifndef NOJIT_TRAINER_PLAN_H
#define NOJIT_TRAINER_PLAN_H

#include "net/carve.h"
#include "state/train_options.h"

enum plan_place {
    PLAN_DEVICE,  /* part of the device arena */
    PLAN_LIBRARY, /* device memory that a library keeps */
    PLAN_HOST     /* part of the pinned host arena */
};
enum region {
    REGION_NONE,
    REGION_STUDENT_WEIGHTS,
    REGION_STUDENT_EXPANDED,
    REGION_ADAPTERS_WEIGHTS,
    REGION_MASTER,
    REGION_MOMENT1,
    REGION_MOMENT2,
    REGION_GRADIENTS,
    REGION_GRADIENTS_SUM,
    REGION_TEACHER_WEIGHTS,
    REGION_TEACHER_LAYERS,
    REGION_TEACHER_EXPANDED,
    REGION_ACTIVATIONS,
    REGION_GRADIENTS_RECEIVED,
    REGION_GRADIENTS_ROUNDED,
    REGION_GRADIENTS_OVERLAPPED,
    REGION_HEAD_HIDDEN,
    REGION_HEAD_LOGITS,
    REGION_TEACHER_PASS,
    REGION_TEACHER_HIDDEN,
    REGION_TEACHER_LOGITS,
    REGION_STUDENT_FP8,
    REGION_HEAD_FP8,
    REGION_HEAD_FP8_GRADIENTS,
    REGION_HEAD_LOSSES,
    REGION_BATCH,
    REGION_STEP_STATE,
    REGION_HOST_BATCHES,
    REGION_HOST_PINNED,
    REGION_HOST_DECODER,
    REGION_HOST_TEACHER,
    REGION_HOST_TOKEN_KD,
    REGION_HOST_TOKEN_CE,
    REGION_HOST_TRANSFER,
    REGION_GEMM_WORKSPACE,
    PLAN_REGIONS
};
struct plan_region {
    enum region region;
    const char *name; /* name that `nojit plan` prints */
    enum plan_place place;
    size_t bytes;
    /* Name of the region that contains it, if it has no bytes of its own; else NULL. */
    const char *within;
};
/* Work of one rank in a training step, from which its time is estimated. */
struct step_work {
    double tokens; /* number of tokens of all ranks */
    /* Operations, recomputed ones included; those of experts are in gemm_experts alone. */
    double gemm, gemm_fp8, gemm_experts, attention;
    double bytes; /* bytes moved by kernels other than GEMMs and attention */
    /* Number of layers passed through: once forward, twice backward. */
    double layers;
};
struct plan {
    struct plan_region region[PLAN_REGIONS];
    int count;
    size_t total_bytes;       /* device memory: PLAN_DEVICE and PLAN_LIBRARY */
    size_t host_bytes;        /* PLAN_HOST */
    struct carve_cells cells; /* cells of the device arena, with cell_bytes */
    size_t array_bytes;       /* with cells: bytes of the largest array */
    const char *array_in;     /* with cells: name of its region */
    size_t
        step_comm_bytes; /* bytes that a rank receives from the others in a step, without layers of the teacher */
    struct step_work work;
};
/* Make the plan of a run. teacher NULL: cross-entropy only. train_options with steps == 0: evaluation or
 * generation, no gradients. */
int plan_make(const struct model_config *student, const struct model_config *teacher,
              const struct train_options *o, struct plan *out);
/* Return the bytes of a region; 0: the run has none, or it lies within another. */
size_t plan_bytes(const struct plan *p, enum region which);
/* Return whether the plan fits into `budget` bytes, with no array above array_bytes. */
bool plan_fits(const struct plan *p, const struct train_options *o, size_t budget);
/* Return 0, or fail with the name of the region that has an array above array_bytes. */
int plan_check_array(const struct plan *p, const struct train_options *o);
/* Find the largest batch of at most `most` whose plan takes no more than `budget` bytes; 0: not even one sequence
 * fits. */
enum { BATCH_MOST = 65535, PLAN_ROWS_MOST = 1 << 24 };
int plan_largest_batch(const struct model_config *student, const struct model_config *teacher,
                       const struct train_options *o, size_t budget, int most, int *out);

#endif
