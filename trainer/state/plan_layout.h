/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_layout.h: every array of a run, and where it lies in the two arenas.
 */
#ifndef NOJIT_TRAINER_PLAN_LAYOUT_H
#define NOJIT_TRAINER_PLAN_LAYOUT_H

#include "base/step_state.h"
#include "net/acts.h"
#include "net/decoder.h"
#include "net/student_f8.h"
#include "objective/losses.h"
#include "state/plan.h"
#include "state/shape.h"

enum { NO_SLOT = -1 }; /* of a micro-batch that another rank computes */

/* What the host writes and reads while steps run: pinned. */
struct pinned {
    float host_slots[NJ_STEP_HOST_SLOTS]; /* to the device: first slots of the step state */
    float state[NJ_STEP_SLOTS];           /* from the device */
    struct losses sums;
    float stop; /* to the device: losses.stopping */
};

/* Every pointer into the two arenas. NULL where a run does not need it. */
struct memory {
    char *weights; /* student, as T */
    char *trained; /* what is trained, as T: the student's weights or its adapters */
    /* Of ranks that are processes the shards of these three, which is what each updates. */
    float *master; /* the same in float32: with NJ_F32 the very same, whole; NULL: none is kept */
    void *m, *v;   /* float32 or bfloat16: enum optimizer_state */
    float *grad;
    float *
        total; /* sum of the ranks' gradients; grad, but for several ranks here: of those that are processes
                * each has that of its shards, where its own were */
    float *
        received; /* [ranks, shard] where ranks are processes: what each has of a shard of a piece. Bfloat16:
                   * what is sent, then what each has, in as much memory; of ranks here, all of one */
    float *early; /* the same of a group of layers, which is exchanged during the backward pass */
    float *inv_freq;
    char *teacher_weights;
    size_t
        teacher_common; /* bytes of them that lie before the layers' matrices, where those may be elsewhere */
    char *teacher_expanded; /* one matrix, or a slice of the head, of a quantised teacher */
    float *teacher_inv_freq;
    char *teacher_hidden;       /* [chunks chunk, C of the teacher] normed rows with a target */
    struct f8_matrix teacher_x; /* [chunk, C of the teacher] f8: those of a chunk */
    char *hidden; /* [chunks chunk, C] same of the student; after the head, its gradient */
    char *logits, *teacher_logits;    /* [chunk, ld]; logits may lie in grad */
    struct f8_head f8_head;           /* of a student whose logits are FP8 GEMMs */
    float *kd, *ce, *entropy, *agree; /* [chunk] */
    float *state, *sumsq;
    struct losses *sums;
    struct losses
        *total_sums; /* of all ranks; with one rank sums. [ranks] where they are processes */
    struct rows rows;
    size_t rows_bytes;
    /* They share memory, but for teacher_pass.y. */
    struct acts student, teacher, teacher_pass;
    struct decoder decoder;
    struct rows teacher_rows; /* of teacher_pass: ids, pos, doc_start */
    int teacher_batches;      /* micro-batches of a teacher_pass */
    struct pinned *pinned;
    char *batches;              /* pinned: rows_bytes a micro-batch */
    float *token_kd, *token_ce; /* pinned: each valid row's divergence, teacher's cross-entropy */
    /* pinned, of the decoder: a pass over prompts, a step, what was said [DECODE_WINDOW, rows] */
    struct rows prompts;
    struct decode_rows now;
    int32_t *said;
    char *transfer; /* pinned: weights on their way */
    size_t transfer_bytes;
    char *staging; /* device: the activations, while none are there */
    size_t staging_bytes;
};

/* Places the parameters of a teacher, in the form that the options give it. */
int teacher_layout(struct net *n, const struct train_options *o);
void teacher_free(struct net *n);
/* Lays out both arenas; lists each region in plan. Without bases it only counts. teacher: NULL
 * without one. */
void plan_layout(const struct net *student, const struct net *teacher,
                 const struct train_options *o, struct carve device, char *host, struct memory *out,
                 struct plan *plan);
/* The memory that GEMMs keep, which a library allocates. */
void plan_add_workspace(struct plan *p, size_t bytes);
/* Return the device bytes that never fall as the batch grows. */
size_t plan_bytes_growing(const struct plan *p);
/* Return the device arena of a plan that is only counted. */
struct carve plan_arena(struct plan *p, const struct train_options *o);
/* Return the bytes of an element of a moment. */
size_t optimizer_state_bytes(enum optimizer_state kept);

#endif
