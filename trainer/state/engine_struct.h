/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_struct.h: what the files of the engine share. Commands include engine.h only.
 */
#ifndef NOJIT_TRAINER_ENGINE_STRUCT_H
#define NOJIT_TRAINER_ENGINE_STRUCT_H

#include "batch/source.h"
#include "net/lora.h"
#include "state/plan_layout.h"
#include "teacher/teacher.h"

struct engine {
    nj_context *ctx;
    nj_stream *stream;
    struct train_options o;
    char *student_dir;
    struct shape shape;
    struct plan plan;
    void *device, *host; /* the two arenas; device NULL: it is in pieces */
    struct carve_pieces pieces;
    bool allocated; /* these are memory */
    size_t library_bytes, allocated_bytes;
    struct memory mem;
    struct net student;
    struct lora lora; /* rank 0: none */
    struct teacher teacher;
    bool has_teacher;
    struct f8_refusals f8_refused[2]; /* of student and teacher */
    char f8_refused_names[2][64];
    uint64_t student_hash, teacher_hash;
    double load_seen, load_bytes;    /* of the model that is read */
    int64_t step;                    /* optimiser steps done */
    size_t step_comm_bytes;          /* that have come from other ranks in the last one */
    int *chunks_of;                  /* [slots] head chunks of each */
    int64_t valid;                   /* targets of the staged step */
    int empty;                       /* its micro-batches that have none */
    struct data_state *began;        /* [grad_accum] where in the data its micro-batches begin */
    int32_t *scratch;                /* [rows] for sorting */
    nj_graph **step_graphs;          /* every graph of a step (graphs.c); NULL until first used */
    nj_event *gathered[PIECES_MOST]; /* the weights of a piece; NULL: shape.early is false */
    struct decode_graph *decode;     /* of steps of the decoder (decode.c); NULL until first used */
    nj_event *results;               /* of a step are in mem.pinned */
    bool graphs;                     /* the backend has them */
    void (*seen)(void *user, int64_t rows, int64_t total); /* NULL, or told of each evaluation */
    void *seen_user;
    bool data_failed; /* the last batch asked for */
};

/* What is enqueued from here on finds the weights that other ranks have updated. */
int engine_join(struct engine *e);
/* What every part starts with, after that. */
struct work engine_work(struct engine *e);
/* Parameters of what is trained: the student or its adapters. */
const struct params *engine_trained(const struct engine *e);
/* What the optimiser updates of them, whole: the master, or the 16-bit weights where there is none. Where ranks are
 * processes, of which each has a shard of the master, it is gathered in the memory of the gradients (ranks.h). */
struct updated {
    char *w;
    enum nj_dtype T;
};
struct updated engine_updated(const struct engine *e);
bool engine_gathers(const struct engine *e);
/* Files; else rank 0 does, which sends what is in them. */
bool engine_reads(const struct engine *e);
/* Copy the step state and these sums of losses to the host; engine_read_back() also waits, for those of one rank. */
int engine_copy_results(struct engine *e, const struct losses *sums);
int engine_read_back(struct engine *e);
/* "while doing what", from the context's sentence. */
int engine_fail(const struct engine *e, int rc, const char *what);

#endif
