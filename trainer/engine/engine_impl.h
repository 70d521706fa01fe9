/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_impl.h: what the files of the engine share. Commands include engine.h only.
 */
#ifndef NOJIT_TRAINER_ENGINE_IMPL_H
#define NOJIT_TRAINER_ENGINE_IMPL_H

#include "engine/engine.h"
#include "engine/lora.h"
#include "engine/model.h"
#include "io/safetensors.h"

#include "step_state.h"

/* ---- plan.c ---- */

/* Sizes that follow from models and options. */
struct shape {
    int rows;          /* N = B S */
    int chunk, chunks; /* rows of logits at a time; how many of them hold N rows */
    int padded;        /* chunk chunks */
    int vocab;         /* tokens that student and teacher share: the columns of the logits */
    int ld;            /* elements from one row of logits to the next */
    bool train;
    bool logits_in_gradients; /* the student's, in the memory of the layers' gradients, which the
                               * backward pass writes later */
};

/* What the host writes and reads while steps run: pinned. */
struct mailbox {
    float host_slots[NJ_STEP_HOST_SLOTS]; /* to the device: first slots of the step state */
    float state[NJ_STEP_SLOTS];           /* from the device */
    float sums[8];
    float u;
    int32_t id, pos, next; /* generation: token in, its position, token out */
};

/* Every pointer into the two arenas. NULL where a run does not need it. */
struct memory {
    char *weights; /* student, as T */
    char *trained; /* what is trained, as T: the student's weights or its adapters */
    float *master; /* the same in float32: with NJ_F32 the very same; NULL: none is kept */
    void *m, *v;   /* float32 or bfloat16: enum optimizer_state */
    float *grad;
    float *inv_freq;
    char *teacher_weights;
    float *teacher_inv_freq;
    char *teacher_hidden;       /* [chunks chunk, C of the teacher] normed rows with a target */
    struct f8_matrix teacher_x; /* [chunk, C of the teacher] f8: those of a chunk */
    char *hidden; /* [chunks chunk, C] same of the student; after the head, its gradient */
    char *logits, *teacher_logits;    /* [chunk, ld]; logits may lie in grad */
    float *kd, *ce, *entropy, *agree; /* [chunk] */
    float *state, *sums, *sumsq, *u;
    int32_t *next;
    struct rows rows;
    size_t rows_bytes;
    struct acts student, teacher, decode; /* one after the other in the same memory */
    struct mailbox *mailbox;
    char *batches;              /* pinned: rows_bytes a micro-batch */
    float *token_kd, *token_ce; /* pinned: each valid row's divergence, teacher's cross-entropy */
    char *transfer;             /* pinned: weights on their way */
    size_t transfer_bytes;
    char *staging; /* device: the activations, while none are there */
    size_t staging_bytes;
};

void plan_shape(const struct net *student, const struct model_config *teacher,
                const struct train_options *o, struct shape *out);
/* Lays out both arenas; lists each region in plan. With NULL bases it only counts. teacher: NULL
 * without one. */
void plan_layout(const struct net *student, const struct net *teacher,
                 const struct train_options *o, char *device, char *host, struct memory *out,
                 struct plan *plan);
/* Of a moment. */
size_t optimizer_state_bytes(enum optimizer_state kept);

/* ---- micro_batch.c ---- */

void rows_carve(int rows, int padded, struct carve *c, struct rows *out);

/* ---- teacher.c ---- */

/* A model that only runs forward. It has no gradients, no moments, no master weights. */
struct teacher {
    struct net net;
    struct acts acts;
    char *hidden;       /* [chunks chunk, C] */
    struct f8_matrix x; /* f8: those of a chunk */
};

/* Leaves the normed rows that have a target in t->hidden. */
void teacher_forward(struct work *r, struct teacher *t, const struct rows *rows, int padded);
/* Logits of `rows` of them from `first` on. */
void teacher_logits(struct work *r, const struct teacher *t, int first, int rows, int vocab, int ld,
                    void *logits);

/* ---- the engine ---- */

struct engine {
    nj_context *ctx;
    nj_stream *stream;
    struct train_options o;
    char *student_dir;
    struct shape shape;
    struct plan plan;
    void *device, *host; /* the two arenas */
    size_t library_bytes, allocated_bytes;
    struct memory mem;
    struct net student;
    struct lora lora; /* rank 0: none */
    struct teacher teacher;
    bool has_teacher;
    uint64_t student_hash, teacher_hash;
    int64_t step;     /* optimiser steps done */
    int *chunks_of;   /* [grad_accum] head chunks of each staged micro-batch */
    int64_t valid;    /* targets of the staged step */
    int32_t *scratch; /* [rows] for sorting */
    nj_graph **micro; /* [chunks + 1][2] by chunks in use, first or later; NULL until first used */
    nj_graph *clip, *update;
    nj_event *results;                                     /* of a step are in the mailbox */
    bool graphs;                                           /* the backend has them */
    void (*seen)(void *user, int64_t rows, int64_t total); /* NULL, or told of each evaluation */
    void *seen_user;
    bool data_failed; /* the last batch asked for */
};

struct work engine_work(struct engine *e);
/* Parameters of what is trained: the student or its adapters. */
const struct params *engine_trained(const struct engine *e);
/* What the optimiser updates of them: the master, or the 16-bit weights where there is none. */
struct updated {
    char *w;
    enum nj_dtype T;
};
struct updated engine_updated(const struct engine *e);
/* "while doing what", from the context's sentence. */
int engine_fail(const struct engine *e, int rc, const char *what);
/* Teacher, student, head, backward of the micro-batch in e->mem.rows; train = false makes no
 * gradients, and may leave logits in those of the layers. */
void micro_step(struct work *r, struct engine *e, int chunks, bool train);
/* The first tensor of the models that holds a NaN or an infinity, and what it is; *name NULL: none does. */
int scan_weights(struct engine *e, const char **what, const char **name);
/* head.c: losses of the valid rows; with train also the gradient of the normed rows (in branch) and
 * of the head. */
void head(struct work *r, struct engine *e, int chunks, bool train);
/* evaluate.c: brings the divergences of a chunk's tokens and the teacher's cross-entropies to the
 * host. The chunk's teacher logits are lost. */
void compare_chunk(struct work *r, struct engine *e, int first);
/* Pulls a batch into slot `micro` of the pinned batches. 1: the data is over. */
int stage_next(struct engine *e, struct data *d, int micro);
int send_batch(struct engine *e, int micro);
/* Reads step state and loss sums back and waits. */
int read_back(struct engine *e);
/* Logits of one token; generate.c. */
void decode(struct work *r, struct engine *e, int pos);

/* ---- weights.c ---- */

/* Reads a folder's weights into an arena of T. */
int weights_load(struct engine *e, const char *dir, const struct params *p, enum nj_dtype T,
                 void *arena, uint64_t *hash);
/* The same from opened files, with nothing missing and nothing left over. */
int weights_read(struct engine *e, const char *dir, const struct st_weights *w,
                 const struct params *p, enum nj_dtype T, void *arena);
/* Elements as T in the transfer buffer, on their way to the device. */
void weights_convert(struct engine *e, const struct st_tensor *t, int64_t first, int64_t count,
                     enum nj_dtype T);
/* T in files. */
enum st_dtype weights_dtype(const struct engine *e);
void weights_declare(const struct params *p, enum st_dtype dtype, struct st_declared *out);
/* Hands a device array to put(), in pieces. */
typedef int weights_put(void *file, const void *data, size_t bytes);
int weights_download(struct engine *e, const char *from, size_t bytes, weights_put *put,
                     void *file);
/* 16-bit weights from the master; nothing to do where they are one. */
int weights_round(struct engine *e);
/* *name: first tensor of an arena that holds a NaN or an infinity, or NULL. */
int weights_scan(struct engine *e, const struct params *p, enum nj_dtype T, const void *arena,
                 const char **name);

/* ---- f8_weights.c ---- */

/* Quantises the matrices of the teacher's folder, on the device. */
int f8_load(struct engine *e, const char *dir);
/* *name: first of its tensors with a row that has no finite scale, or NULL. */
int f8_scan(struct engine *e, const char **name);

/* ---- adapters.c ---- */

/* Reads adapters, or draws new ones if dir is NULL. */
int adapters_load(struct engine *e, const char *dir);
/* As PEFT saves them: DIR/adapter_config.json, DIR/adapter_model.safetensors. */
int adapters_save(struct engine *e, const char *dir);

#endif
