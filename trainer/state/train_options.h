/* SPDX-License-Identifier: Apache-2.0
 *
 * train_options.h: what a run asks of the engine.
 */
#ifndef NOJIT_TRAINER_TRAIN_OPTIONS_H
#define NOJIT_TRAINER_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/config.h"
#include "model/lora_config.h"
#include "nojit.h"
#include "objective/objective.h"

/* Of weights that are trained and their moments. STATE_F32: float32, in 16-bit runs as master weights for
 * the weights that the model reads. STATE_BF16: bfloat16 numbers, stochastic rounding, no master weights. */
enum optimizer_state { STATE_F32, STATE_BF16 };
enum reduce_dtype { REDUCE_F32, REDUCE_BF16 };
enum schedule { SCHEDULE_COSINE, SCHEDULE_LINEAR, SCHEDULE_CONSTANT, SCHEDULE_WSD };

struct f8_refusals;

enum { RANKS_HERE = -1 };
/* Elements of the smallest matrix whose GEMMs are faster in FP8, operands quantised (docs/performance.md). */
enum { STUDENT_F8_LEAST = 1 << 22 };

struct train_options {
    int batch_size, seq_len, grad_accum; /* B, S of a micro-batch; micro-batches a step */
    int ranks;     /* that share the micro-batches of a step; 0, 1: there is one */
    int rank;      /* this process, or RANKS_HERE: all of them, one after another */
    nj_comm *comm; /* of the ranks, where they are processes */
    /* Where they are: NULL if each reads models and states; else rank 0 alone does, and these are the student and the
     * teacher, of which the others get weights, hashes and states from it */
    const struct model_config *given;
    int64_t steps;
    float temperature, kd_ratio; /* objective: docs/objective.md */
    int objective;               /* enum objective: its divergence */
    float beta;                  /* of OBJECTIVE_KL: 0 forward, 1 reverse, between: mixed */
    float lr, min_lr_ratio, weight_decay, beta1, beta2, eps, max_grad_norm;
    int64_t warmup_steps;
    enum schedule schedule;
    enum nj_dtype dtype; /* NJ_F32 or NJ_LP */
    int vocab;           /* tokens that take part at most; 0: those that both models have */
    int head_chunk;      /* rows of logits at a time; 0: chosen by the plan */
    size_t memory_bytes; /* device memory that may be used; 0: what can be had */
    size_t piece_bytes,
        array_bytes; /* of device memory: of an allocation, and of an array, at most; 0: any */
    size_t workspace_bytes; /* of it, what products keep: the device's; counted in the plan */
    int use_graph;          /* 1: a step as CUDA graphs where the backend has them */
    int recompute;          /* enum recompute */
    int optimizer_state;    /* enum optimizer_state */
    int reduce_dtype;       /* enum reduce_dtype: of each rank's gradients, as they are added */
    int teacher_f8;         /* 1: the teacher multiplies e4m3 */
    enum nj_f8_scales f8_scales; /* that GEMMs of e4m3 take: the device's */
    struct f8_refusals
        *f8_refused[2]; /* of student and teacher (net.h): the engine's; NULL: none known */
    int64_t student_f8; /* a student in training multiplies matrices of so many elements or more as
                             * e4m3 (student_f8.h); 0: none */
    int teacher_apart;  /* 1: batches say what the teacher reads, which may be something else */
    int answers;        /* 1: steps measure answers of the student by themselves */
    int teacher_writes; /* 1: engine_decode() lets the teacher write, not the student */
    int teacher_shard; /* 1: each rank that is a process keeps a slice of each layer of the teacher */
    /* enum nj_tensor_type of each of the teacher's tensors, in the order of tensor_specs(): they keep these on the
     * device; NULL: all become dtype */
    const unsigned char *teacher_types;
    /* NULL, or told while a model is read: how many bytes of its weights, of how many; 0 as it begins */
    void (*loaded)(void *user, double bytes, double total);
    void *loaded_user;
    /* NULL, or called by engine_create() when the products of a run are chosen, before it takes memory and reads
     * models: 0, or a code with which it fails */
    int (*prepared)(void *user);
    void *prepared_user;
    /* NULL, or told when all ranks that are processes begin to collect what each has a shard of, and when that has
     * ended; rank 0 may write it for as long as it takes */
    void (*collecting)(void *user, bool begins);
    void *collecting_user;
    bool (*stopping)(void);  /* NULL, or asked before each step: whether this rank is to stop */
    int64_t eval_batches;    /* engine_eval() stops after so many; 0: where the data end */
    int acceptance;          /* 1: an engine with a teacher and steps == 0 measures it, too */
    uint64_t seed;           /* of new adapters, of dropout and of rounding at random */
    struct lora_config lora; /* rank 0: all weights are trained */
    /* Of engine_decode(): sequences at a time (0: there is no decoder), and tokens of each with its prompt (0:
     * seq_len) */
    int decode_rows, decode_positions;
    int decode_bytes; /* 1: its cache has keys and values as bytes, with a scale for each head and position */
    /* Of struct decode_sampling, for who shows what a model writes */
    float sample_temperature, sample_top_p, sample_min_p, sample_repetition;
    int sample_top_k;
    const char *adapter_dir; /* adapters to start from, of the form that `lora` says; NULL: new */
    const char *base_name;   /* what saved adapters call their model; NULL: the student's folder */
};
/* Return the rows of a micro-batch: one for each token. */
static inline int64_t train_rows(const struct train_options *o)
{
    return (int64_t)o->batch_size * o->seq_len;
}

#endif
