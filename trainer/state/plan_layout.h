/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_layout.h: every array of a run, and where it lies in the two arenas.
 */
#ifndef NOJIT_TRAINER_PLAN_LAYOUT_H
#define NOJIT_TRAINER_PLAN_LAYOUT_H

#include "base/step_state.h"
#include "net/acts.h"
#include "net/decoder.h"
#include "net/student_fp8.h"
#include "objective/losses.h"
#include "state/plan.h"
#include "state/shape.h"
#include "teacher/teacher.h"

enum { NO_SLOT = -1 }; /* slot of a micro-batch that another rank computes */

/* Pinned memory that the host writes and reads while steps run. */
struct pinned {
    float host_slots[NJ_STEP_HOST_SLOTS]; /* first slots of the step state, to the device */
    float state[NJ_STEP_SLOTS];           /* step state, from the device */
    struct losses sums;
    float stop; /* losses.stopping, to the device */
};

/* Every pointer into the two arenas; NULL if a run does not need it. */
struct memory {
    char *weights; /* student's weights as T */
    char *trained; /* trained weights as T: the student's or its adapters' */
    /* If ranks are processes, master, m and v are the shards that each updates. */
    float *master; /* trained weights in float32; with NJ_F32 `trained`, whole; NULL: none */
    void *m, *v;   /* moments, float32 or bfloat16: enum optimizer_state */
    float *grad;
    float *
        total; /* sum of the ranks' gradients: grad, except with several ranks here; if they are processes,
                * each has the sum of its shards, in the place of its own gradients */
    float *
        received; /* [ranks, shard] if ranks are processes: gradients that each has of a shard of a piece; as bfloat16,
                   * gradients sent, then gradients received, in as much memory. With ranks here: all gradients of
                   * one */
    float *
        overlapped; /* the same for a group of layers, which is exchanged during the backward pass */
    float *inv_freq;
    /* [chunks chunk, C] normed rows of the student with a target; after the head, their gradient. */
    char *hidden;
    char *logits;                     /* [chunk, ld], which may lie in grad */
    char *expanded;                   /* experts of a quantized model that is only read, expanded */
    struct fp8_head fp8_head;         /* head of a student whose logits are FP8 GEMMs */
    float *kd, *ce, *entropy, *agree; /* [chunk] */
    float *state, *sumsq;
    struct losses *sums;
    struct losses
        *total_sums; /* sums of all ranks; with one rank `sums`. [ranks] if they are processes */
    struct rows rows;
    size_t rows_bytes;
    struct acts student; /* activations, which share memory with the teacher's and the decoder */
    struct decoder decoder;
    struct pinned *pinned;
    char *batches; /* pinned: micro-batches of rows_bytes each */
    /* Pinned: each valid row's divergence, and the teacher's cross-entropy. */
    float *token_kd, *token_ce;
    /* Pinned memory of the decoder: a pass over prompts, a step, tokens drawn [DECODE_WINDOW, rows]. */
    struct rows prompts;
    struct decode_rows now;
    int32_t *generated;
    char *transfer; /* pinned: weights in transfer */
    size_t transfer_bytes;
    char *staging; /* device: memory of the activations, while it is idle */
    size_t staging_bytes;
};

/* Open the teacher of a run, in the form that the options give it. config NULL: there is none. teacher_close() comes in
 * any case. */
int plan_teacher(const struct model_config *config, const struct train_options *o,
                 struct teacher *out);
/* Lay out both arenas, and list each region in the plan. Without bases bytes are only counted. */
void plan_layout(const struct net *student, struct teacher *teacher, const struct train_options *o,
                 struct carve device, char *host, struct memory *out, struct plan *plan);
/* Add the GEMM workspace, which a library allocates. */
void plan_add_workspace(struct plan *p, size_t bytes);
/* Return the device bytes that never fall as the batch grows. */
size_t plan_bytes_growing(const struct plan *p);
/* Return the bytes of an element of a moment. */
size_t optimizer_state_bytes(enum optimizer_state kept);

#endif
