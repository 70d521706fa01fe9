/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher.h: who gives the distribution that the student is compared with. Plan, step, decoder and evaluation know a
 * teacher by this file alone. A kind of teacher is a file that fills a struct teacher_ops and opens a struct teacher
 * with it (live.c: a model that runs forward; cached.c: results that were stored). A struct teacher of zeros is no
 * teacher: it needs nothing and gives nothing.
 */
#ifndef NOJIT_TRAINER_TEACHER_H
#define NOJIT_TRAINER_TEACHER_H

#include "net/net.h"
#include "net/rows.h"
#include "net/work.h"
#include "objective/objective.h"

/* Buffers that a teacher may have. The plan has a row for each, with its lifetime (state/buffers.c). */
enum teacher_buffer {
    TEACHER_WEIGHTS,     /* weights, or what each rank keeps of them */
    TEACHER_LAYERS,      /* layers that other ranks send */
    TEACHER_EXPANDED,    /* a quantized matrix, expanded */
    TEACHER_CONSTANTS,   /* small arrays that do not change */
    TEACHER_ACTIVATIONS, /* activations of a pass over one micro-batch */
    TEACHER_PASS,        /* activations of a pass over several */
    TEACHER_PASS_ROWS,   /* rows and results of such a pass */
    TEACHER_HIDDEN,      /* results of the rows of a micro-batch that have a target */
    TEACHER_CHUNK,       /* distributions of a chunk of these */
    TEACHER_STAGED,      /* on the host: results that are sent to the device */
    TEACHER_BUFFERS
};

/* Sizes of a run, set before the buffers are carved. */
struct teacher_sizes {
    int batch_size, seq_len; /* B, S of a micro-batch */
    int micro; /* number of micro-batches of a rank in a step; 1 also where no step is run */
    int chunk, padded; /* rows of a chunk; rows of all chunks of a micro-batch */
    int vocab, ld;     /* columns of logits; elements from one row of logits to the next */
    bool processes;    /* ranks are processes, which send each other weights between steps */
};

/* How a step runs a teacher; zeros: in each micro-step that has a target. */
struct teacher_schedule {
    int batches;       /* number of micro-batches of a pass; 0 is 1 */
    bool runs_ahead;   /* it runs before a micro-step, which lacks its pass */
    bool runs_eagerly; /* no graph can hold a pass */
    bool runs_empty;   /* it runs over micro-batches without a target, too */
};

struct teacher {
    const struct teacher_ops *ops; /* NULL: there is no teacher */
    void *state;                   /* the kind's own */
    enum teacher_form form;        /* form of the distributions that it gives */
    struct teacher_sizes sizes;
    struct teacher_schedule schedule;
    struct net net;       /* the model whose weights are loaded for it */
    char *weights;        /* device memory of the weights */
    size_t weights_alike; /* its first bytes, which all ranks have alike */
    bool failed;          /* it could not send its part; fail_text() says why */
};

/* The functions of a kind of teacher. Those that may be NULL have nothing to do. */
struct teacher_ops {
    struct {
        /* Carve the buffer; NULL: there is none. The memory up to `end` is allocated in any case. */
        void (*carve)(struct teacher *t, struct carve *c, size_t end);
        bool (*wanted)(const struct teacher *t); /* says whether the run has it; NULL: always */
    } buffer[TEACHER_BUFFERS];
    int (*choose)(struct teacher *t);
    void (*connect)(struct teacher *t, nj_comm *comm);
    int (*loaded)(const struct teacher *t, uint64_t *hash); /* may be NULL */
    void (*send)(struct work *r, struct teacher *t, const struct rows *staged, int at, int count);
    /* These three, which run a pass and keep its results, may be NULL. */
    void (*forward)(struct work *r, struct teacher *t, const struct rows *rows, int count);
    void (*take)(struct work *r, struct teacher *t, int at);
    void (*keep)(struct work *r, struct teacher *t, const struct rows *rows);
    void *(*logits)(struct work *r, struct teacher *t, int first);
    void (*attend)(struct work *r, struct teacher *t); /* may be NULL */
    void (*close)(struct teacher *t);
};

/* ---- what the plan needs ---- */

/* Return whether the run has a buffer of the teacher. */
bool teacher_has(const struct teacher *t, enum teacher_buffer which);
/* Carve a buffer. The memory up to offset `end` is allocated in any case: a pass over several micro-batches takes no
 * more. */
void teacher_carve(struct teacher *t, enum teacher_buffer which, struct carve *c, size_t end);
/* Choose the formats of matrices, by the GEMMs that the device refuses. */
int teacher_choose(struct teacher *t);
/* Set what follows from the addresses of the buffers, and the schedule. */
void teacher_connect(struct teacher *t, nj_comm *comm);
/* Check the hash of what was loaded as the teacher's weights, and set it to that of the weights behind the
 * distributions. */
int teacher_loaded(const struct teacher *t, uint64_t *hash);
void teacher_close(struct teacher *t);
/* Return the model, or its configuration; NULL: there is no teacher. */
const struct net *teacher_net(const struct teacher *t);
const struct model_config *teacher_model_config(const struct teacher *t);

/* ---- a pass, over one micro-batch or over the `count` of the schedule ---- */

/* Return the number of micro-batches of a pass ahead of a step's micro-steps. */
int teacher_batches(const struct teacher *t);
/* Send what the teacher alone reads of the rows of micro-batch `at` of the next pass, which are staged on the host.
 * Each micro-batch of a pass is sent before the pass; no graph holds it. */
void teacher_send(struct work *r, struct teacher *t, const struct rows *staged, int at, int count);
/* Run the pass. rows: on the device, those of the micro-batch, if it is one. */
void teacher_forward(struct work *r, struct teacher *t, const struct rows *rows, int count);
/* Go on to the results of micro-batch `at` of the schedule's pass. */
void teacher_take(struct work *r, struct teacher *t, int at);
/* Keep the results of the rows that have a target. */
void teacher_keep(struct work *r, struct teacher *t, const struct rows *rows);
/* Compute the logits of the chunk that begins with row `first` of those kept. Return their place, which the next chunk
 * takes; NULL: there is no teacher. */
void *teacher_logits(struct work *r, struct teacher *t, int first);
/* Take this rank's part in a pass that only other ranks run. */
void teacher_attend(struct work *r, struct teacher *t);

#endif
