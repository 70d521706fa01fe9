/* SPDX-License-Identifier: Apache-2.0
 *
 * train_options.h: the options of a run that the engine reads.
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

/* Types of trained weights and their moments. STATE_F32: float32, in 16-bit runs as master weights beside the
 * weights that the model reads. STATE_BF16: bfloat16, stochastic rounding, no master weights. */
enum optimizer_state { STATE_F32, STATE_BF16 };
enum reduce_dtype { REDUCE_F32, REDUCE_BF16 };
enum schedule { SCHEDULE_COSINE, SCHEDULE_LINEAR, SCHEDULE_CONSTANT, SCHEDULE_WSD };

struct fp8_refusals;
struct teacher_cache;

enum { RANKS_VIRTUAL = -1 };
/* Number of elements of the smallest matrix whose GEMMs are faster in FP8, with quantization
 * (docs/performance.md). */
enum { STUDENT_FP8_LEAST = 1 << 22 };

struct train_options {
    /* B, S of a micro-batch; number of micro-batches per step. */
    int batch_size, seq_len, grad_accum;
    int ranks;     /* number of ranks that share the micro-batches of a step; 0, 1: one */
    int rank;      /* number of this process, or RANKS_VIRTUAL: all ranks, one after another */
    nj_comm *comm; /* communicator of ranks that are processes */
    /* Student and teacher if ranks are processes and rank 0 alone reads models and states, and sends weights,
     * hashes and states to the others; NULL: each rank reads them. */
    const struct model_config *given;
    int64_t steps;
    float temperature, kd_ratio; /* weights of the objective: docs/objective.md */
    int objective;               /* enum objective: the divergence */
    float beta;                  /* struct objective_terms */
    /* Coefficient of the loss that balances the student's experts; negative: what its config.json says. */
    float balance;
    float lr, min_lr_ratio, weight_decay, beta1, beta2, eps, max_grad_norm;
    int64_t warmup_steps;
    enum schedule schedule;
    enum nj_dtype dtype; /* NJ_F32 or NJ_LP */
    /* Largest number of tokens that take part; 0: those that both models have. */
    int vocab;
    int head_chunk;      /* rows of logits at a time; 0: chosen by the plan */
    size_t memory_bytes; /* device memory to use at most; 0: all that is available */
    size_t cell_bytes,
        array_bytes;        /* largest allocation and largest array on the device; 0: no limit */
    size_t workspace_bytes; /* device memory that GEMMs keep, counted in the plan */
    int use_graph;          /* 1: run steps as CUDA graphs if the backend has them */
    int recompute;          /* enum recompute */
    int optimizer_state;    /* enum optimizer_state */
    int reduce_dtype;       /* enum reduce_dtype: type of each rank's gradients as they are added */
    int teacher_fp8;        /* 1: the teacher multiplies E4M3 operands */
    enum nj_f8_scales f8_scales; /* form of scales that the device's GEMMs of E4M3 take */
    struct fp8_refusals
        *fp8_refused[2]; /* refused GEMMs of student and teacher, in the engine; NULL: none known */
    /* Least number of elements of a matrix that a student in training multiplies as E4M3 (student_fp8.h); 0:
     * none. */
    int64_t student_fp8;
    /* 1: batches give the teacher's input, which may differ from the student's. */
    int teacher_has_context;
    int answers;        /* 1: steps measure the student's answers separately */
    int teacher_writes; /* 1: engine_decode() decodes with the teacher, not the student */
    const struct teacher_cache *teacher_cache; /* hidden states of the teacher; NULL: it runs */
    int teacher_shard; /* 1: each rank that is a process keeps a slice of each layer of the teacher */
    /* enum nj_tensor_type of each of the teacher's tensors on the device, in the order of tensor_specs(); NULL: all
     * become dtype */
    const unsigned char *teacher_types;
    /* The same of a model in the student's place that is only read (steps 0). */
    const unsigned char *student_types;
    /* NULL, or called while a model is read, with the bytes of its weights read so far, 0 at first, and their
     * total. */
    void (*loaded)(void *user, double bytes, double total);
    void *loaded_user;
    /* NULL, or called by engine_create() when the GEMMs of a run are chosen, before it takes memory and reads
     * models; returns 0, or the code with which it fails. */
    int (*prepared)(void *user);
    void *prepared_user;
    /* NULL, or called when all ranks that are processes begin to collect their shards, and when they have ended;
     * rank 0 may write them for as long as it takes. */
    void (*collecting)(void *user, bool begins);
    void *collecting_user;
    /* NULL, or called before each step: returns whether this rank is to stop. */
    bool (*stopping)(void);
    /* Number of batches after which engine_eval() stops; 0: at the end of the data. */
    int64_t eval_batches;
    /* 1: an engine with a teacher and steps == 0 also measures acceptance. */
    int acceptance;
    uint64_t seed;           /* seed of new adapters, dropout and stochastic rounding */
    struct lora_config lora; /* adapters; rank 0: all weights are trained */
    /* Sizes for engine_decode(): number of sequences at a time (0: there is no decoder), and of tokens of each with
     * its prompt (0: seq_len). */
    int decode_rows, decode_positions;
    int decode_bytes; /* 1: its KV cache has bytes, with a scale for each head and position */
    /* Sampling (struct decode_sampling) of texts shown to the user. */
    float sample_temperature, sample_top_p, sample_min_p, sample_repetition;
    int sample_top_k;
    /* Folder of adapters to start from, of the form of `lora`; NULL: new ones. */
    const char *adapter_dir;
    const char *base_name; /* name of their model in saved adapters; NULL: the student's folder */
};
static inline struct objective_terms train_terms(const struct train_options *o)
{
    return (struct objective_terms){
        .temperature = o->temperature, .kd_ratio = o->kd_ratio, .beta = o->beta};
}
/* Return the coefficient of the loss that balances the student's experts; 0: it is not computed. */
static inline float train_balance(const struct train_options *o, const struct model_config *student)
{
    const bool trained = o->steps > 0 && arch_first(&student->arch, student->layers, BLOCK_EXPERTS);
    return !trained ? 0 : o->balance < 0 ? student->balance : o->balance;
}
/* Return the rows of a micro-batch: one for each token. */
static inline int64_t train_rows(const struct train_options *o)
{
    return (int64_t)o->batch_size * o->seq_len;
}

#endif
