/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_struct.h: the struct that the files of the engine share. Commands include engine.h only.
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
    void *device, *host; /* the two arenas; device NULL: it is in cells */
    struct carve_cells cells;
    bool allocated; /* the arenas are allocated */
    size_t library_bytes, allocated_bytes;
    struct memory mem;
    struct net student;
    struct lora lora; /* adapters; rank 0: none */
    struct teacher teacher;
    struct fp8_refusals fp8_refused[2]; /* refused GEMMs of student and teacher */
    char fp8_refused_names[2][64];
    uint64_t student_hash, teacher_hash;
    double load_seen, load_bytes; /* bytes read and bytes in all of the model being loaded */
    int64_t step;                 /* number of optimizer steps done */
    size_t step_comm_bytes;       /* bytes received from other ranks in the last step */
    int *chunks_of;               /* [slots] head chunks of each */
    int64_t valid;                /* number of targets of the staged step */
    int empty;                    /* number of its micro-batches without a target */
    /* [grad_accum] positions in the data where its micro-batches begin. */
    struct data_state *began;
    int32_t *scratch;       /* [rows] scratch for sorting */
    nj_graph **step_graphs; /* every graph of a step (graphs.c); NULL until first used */
    /* Events: the weights of a piece have come; NULL: shape.overlapped is false. */
    nj_event *gathered[PIECES_MOST];
    struct decode_graph *decode; /* graphs of decoder steps (decode.c); NULL until first used */
    nj_event *results;           /* event: the results of a step are in mem.pinned */
    bool graphs;                 /* the backend has CUDA graphs */
    void (*seen)(void *user, int64_t rows, int64_t total); /* NULL, or called in each evaluation */
    void *seen_user;
    bool data_failed; /* the last request for a batch failed */
};

/* Make the work that is enqueued from here on wait for the weights that other ranks have updated. */
int engine_join(struct engine *e);
/* Return the work that every part starts with, after engine_join(). */
struct work engine_work(struct engine *e);
/* Return the parameters that are trained: the student's or its adapters'. */
const struct params *engine_trained(const struct engine *e);
/* The trained parameters that the optimizer updates, whole: the master weights, or the 16-bit weights without them.
 * If ranks are processes, each with a shard of the master weights, these are gathered in the memory of the
 * gradients (ranks.h). */
struct updated {
    char *w;
    enum nj_dtype T;
};
struct updated engine_updated(const struct engine *e);
bool engine_gathers(const struct engine *e);
/* Return whether this rank reads files; otherwise rank 0 does, and sends their contents. */
bool engine_reads(const struct engine *e);
/* Copy the step state and these sums of losses to the host; engine_read_back() copies those of one rank, and
 * waits. */
int engine_copy_results(struct engine *e, const struct losses *sums);
int engine_read_back(struct engine *e);
/* Fail with "while doing what", from the context's sentence, unless the teacher has failed with its own. */
int engine_fail(const struct engine *e, int rc, const char *what);

#endif
