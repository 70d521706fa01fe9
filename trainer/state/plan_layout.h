/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_layout.h: what plan.c lays out in the two arenas.
 */
#ifndef NOJIT_TRAINER_PLAN_LAYOUT_H
#define NOJIT_TRAINER_PLAN_LAYOUT_H

#include "base/step_state.h"
#include "net/acts.h"
#include "net/decoder.h"
#include "net/student_f8.h"
#include "objective/losses.h"
#include "state/pieces.h"
#include "state/plan.h"

/* Sizes that follow from models and options. */
struct shape {
    int rows;          /* N = B S */
    int chunk, chunks; /* rows of logits at a time; how many of them hold N rows */
    int padded;        /* chunk chunks */
    int vocab;         /* tokens that student and teacher share: the columns of the logits */
    int ld;            /* elements from one row of logits to the next */
    bool train;
    unsigned arrays;          /* of a micro-batch: uses that it has (enum array_use) */
    int ranks, micro;         /* ranks of a step, micro-batches of each */
    int rank;                 /* this process, or RANKS_HERE */
    int slots;                /* micro-batches of a step that are computed here */
    struct pieces pieces;     /* of what is trained */
    bool early;               /* groups of layers are exchanged during the backward pass */
    bool logits_in_gradients; /* the student's, in the memory of the layers' gradients, which the
                               * backward pass writes later */
};

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
    /* One after the other in the same memory, but teacher_pass.y, which student and decoder leave alone. */
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
void plan_shape(const struct net *student, const struct model_config *teacher,
                const struct train_options *o, struct shape *out);
/* Lays out both arenas; lists each region in plan. Without bases it only counts. teacher: NULL
 * without one. */
void plan_layout(const struct net *student, const struct net *teacher,
                 const struct train_options *o, struct carve device, char *host, struct memory *out,
                 struct plan *plan);
/* Of a plan, to count in. */
struct carve plan_arena(struct plan *p, const struct train_options *o);
/* Of a moment. */
size_t optimizer_state_bytes(enum optimizer_state kept);

#endif
