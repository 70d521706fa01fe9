/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.h: the training engine: weights, plan, one optimiser step, evaluation, generation. It
 * knows nothing of options, files of metrics, progress or signals; commands (cmd_*.c) do.
 *
 * Each file calls those above it in this list alone, and below the first group knows `struct engine`:
 *
 *   carve.c       memory carved from one arena
 *   params.c      which tensors a model has, where they lie in the arenas, what Hugging Face calls them
 *   linear.c      products with weights
 *   net.c         one transformer: sizes, weights, gradients
 *   lora.c        and its adapters
 *   f8.c          a net that multiplies e4m3
 *   student_f8.c  a student that does in training
 *   quant.c       a net whose matrices stay quantised
 *   cache.c       keys and values of sequences that are being written
 *   acts.c        the memory that a pass needs
 *   layer_gemm.c  the products of a layer, with adapters and gradients
 *   teacher_shard.c  the layers of a net of which each rank keeps a slice
 *   forward.c     one transformer, forward
 *   backward.c    and back
 *   few_rows.c    the same for the few rows of a decoder's step
 *   logits.c      from its rows to logits
 *   teacher.c     a model that only runs forward: no gradients, no optimiser, ping-pong buffers
 *   decoder.c     a net that writes, a token of many sequences at a time
 *   cost.c        the operations and bytes of a step
 *   plan.c        what memory a run needs, region by region, before anything is allocated; the largest batch
 *                 that fits
 *   schedule.c    learning rates
 *
 *   engine_struct.c  what every file below begins and fails with
 *   ranks.c       a step that several ranks share: their micro-batches, the sum of their gradients
 *   weights.c     weights from and to safetensors, through the arenas
 *   f8_weights.c, quant_weights.c  those of a net that multiplies e4m3, or stays quantised
 *   adapters.c    and adapters
 *   save_model.c, merge.c  the model folders that they become
 *   micro_batch.c what the host does for a micro-batch
 *   head.c        final norm, logits in chunks of rows, objective, gradient
 *   step.c        an optimiser step: micro-batches, clip, update, graphs. Read it first
 *   saved_state.c what a step goes on from
 *   evaluate.c    held-out losses
 *   score.c       log-probabilities of given tokens
 *   row_logits.c  logits behind given positions
 *   decode.c      prompts continued: which sequences the decoder has, and what they came to
 *   rejection.c   a token of speculative decoding, accepted or replaced
 *   speculate.c   prompts continued so, to count what is accepted
 *   engine.c      opens and closes: checks the pair, allocates, loads, prepares
 */
#ifndef NOJIT_TRAINER_ENGINE_H
#define NOJIT_TRAINER_ENGINE_H

#include "batch/data.h"
#include "net/carve.h"
#include "model/config.h"
#include "model/lora_config.h"
#include "nojit.h"

/* Of weights that are trained and their moments. STATE_F32: float32, in 16-bit runs as master weights for
 * the weights that the model reads. STATE_BF16: bfloat16 numbers, stochastic rounding, no master weights. */
enum optimizer_state { STATE_F32, STATE_BF16 };
enum reduce_dtype { REDUCE_F32, REDUCE_BF16 };
enum objective { OBJECTIVE_KL, OBJECTIVE_TVD };
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
    int objective;               /* enum objective: its divergence; with OBJECTIVE_KL: */
    float beta;                  /* 0 forward, 1 reverse, between: mixed */
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
    int answers;        /* 1: steps measure rows of data_take() by themselves */
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

/* Learning rate of step (counted from 1). */
float schedule_lr(const struct train_options *o, int64_t step);
/* Warm-up steps that are `ratio` of all steps, rounded up. */
int64_t schedule_warmup(double ratio, int64_t steps);

/* ---- plan ---- */
enum plan_place {
    PLAN_DEVICE,  /* in the one device arena */
    PLAN_LIBRARY, /* device memory that a library keeps */
    PLAN_HOST     /* in the one pinned host arena */
};
struct plan_region {
    char name[48]; /* "student.master", "teacher.weights", "activations", "head.logits", ... */
    enum plan_place place;
    size_t bytes;
    const char *within; /* the region it lies in, where it has no bytes of its own; else NULL */
};
/* Work of one rank in a training step, from which its time is estimated. */
struct step_work {
    double tokens;                   /* of all ranks */
    double gemm, gemm_f8, attention; /* operations; what is recomputed counts */
    double bytes;                    /* that kernels beside GEMMs and attention move */
    double layers;                   /* that are passed through: forward, and twice back */
};
enum { PLAN_REGIONS = 32 };
struct plan {
    struct plan_region region[PLAN_REGIONS];
    int count;
    size_t total_bytes;         /* device memory: PLAN_DEVICE and PLAN_LIBRARY */
    size_t host_bytes;          /* PLAN_HOST */
    struct carve_pieces pieces; /* of the device arena, with piece_bytes */
    size_t array_bytes;         /* with them: of the largest array */
    char array_in[48];          /* and its region */
    size_t
        step_comm_bytes; /* that come to a rank from the others in a step, without layers of the teacher */
    struct step_work work;
};
/* teacher NULL: cross-entropy only. train_options with steps == 0: evaluation or generation, no
 * gradients. */
int plan_make(const struct model_config *student, const struct model_config *teacher,
              const struct train_options *o, struct plan *out);
/* In memory of so many bytes, with no array above array_bytes. */
bool plan_fits(const struct plan *p, const struct train_options *o, size_t budget);
/* 0, or the sentence that names what an array above array_bytes is in. */
int plan_check_array(const struct plan *p, const struct train_options *o);
/* The largest batch of at most `most` whose plan takes no more than budget bytes; 0: not even one sequence
 * does. */
enum { BATCH_MOST = 65535, PLAN_ROWS_MOST = 1 << 24 };
int plan_largest_batch(const struct model_config *student, const struct model_config *teacher,
                       const struct train_options *o, size_t budget, int most, int *out);

/* ---- engine ---- */
struct engine;

/* Opens folders, checks the pair (same vocabulary up to padding), plans, allocates one arena, loads
 * weights, prepares every matrix product. teacher_dir NULL: cross-entropy only; o->steps == 0: no
 * gradients. say(user, line): one-line notices (fall-backs, restricted vocabulary); may be NULL. */
int engine_create(nj_context *ctx, const char *student_dir, const char *teacher_dir,
                  const struct train_options *o, void (*say)(void *user, const char *line),
                  void *user, struct engine **out);
void engine_destroy(struct engine *e);
const struct model_config *engine_student(const struct engine *e);
const struct model_config *engine_teacher(const struct engine *e); /* NULL without one */
/* Where GEMMs of it are FP8, "in each of the student's layers: gate_up down; in the LM head: logits"; "" if none is. */
const char *engine_student_f8(const struct engine *e);
/* Those that were to be in FP8, and that no algorithm of the device does so: "gate_up logits", of the student or the
 * teacher; "" for none. */
const char *engine_f8_refused(const struct engine *e, bool of_teacher);
int engine_head_chunk(const struct engine *e);             /* rows of logits at a time */
int64_t engine_trained_parameters(const struct engine *e); /* of the model or its adapters */
const struct plan *engine_plan(const struct engine *e);
uint64_t engine_student_hash(const struct engine *e); /* of the weights as loaded (tensors_hash) */
uint64_t engine_teacher_hash(const struct engine *e);

struct step_result {
    double loss, kd_loss, class_loss, teacher_entropy,
        agreement; /* means over valid tokens, nats */
    /* With options.answers: means over the targets of these rows, nats; NaN where a step has none. */
    double student_entropy, forward_kl, reverse_kl;
    double grad_norm, lr;
    int64_t valid_tokens, tokens;
    int64_t skipped_updates; /* float16: updates skipped so far */
    float loss_scale;
    double step_ms;
    bool stopping;       /* some rank was to stop when the step began; the same on all */
    int empty;           /* micro-batches without a target */
    bool passed_over;    /* so were all: there is no loss, and the weights are as they were */
    char nonfinite[160]; /* "" or which tensor was not finite */
    bool intact;         /* then: the student's weights are finite, as before the step */
};
/* One optimiser step over grad_accum micro-batches pulled from d. Normalised over the valid tokens
 * of all of them. NJ_E_DEVICE, or NJ_E_FORMAT if the loss is not finite (out->nonfinite names the
 * tensor; weights unchanged, and d is before the step). Where ranks are processes each calls it, with
 * the same data, and gets the same result. */
int engine_step(struct engine *e, struct data *d, struct step_result *out);

struct eval_result {
    double loss, kd_loss, class_loss, teacher_entropy, agreement, perplexity;
    int64_t valid_tokens;
    /* Token by token; only from an engine with a teacher and steps == 0. */
    double kd_p50, kd_p90, kd_p99, kd_max; /* of the tokens' divergences */
    double teacher_class_loss, teacher_perplexity;
    double acceptance; /* of the student's tokens by the teacher; 0: not asked for */
};
/* One pass over d (opened with once). Where ranks are processes each calls it, with the same data, and gets the same
 * result, whose bits do not depend on their number. */
int engine_eval(struct engine *e, struct data *d, struct eval_result *out);
/* Refuses losses that are not finite: NJ_E_FORMAT with the weights that are to blame, if some are. */
int engine_check_eval(struct engine *e, const struct eval_result *r);
/* From here on `seen` is told how many rows of an evaluation are done, from 0 on. */
void engine_watch(struct engine *e, void (*seen)(void *user, int64_t rows, int64_t total),
                  void *user);
/* Whether a step or an evaluation failed for want of a batch: the state is that of the step before, to
 * which d stands, too. */
bool engine_data_failed(const struct engine *e);

/* Texts of which some tokens are scored: B x S positions, as of struct batch, and the scored ones; a position may come
 * several times, with other tokens. */
struct score_batch {
    const int32_t *ids, *pos, *doc_start;
    const int32_t *at, *target; /* [count] a position, and a token that may follow it */
    int count;                  /* at most B x S */
};
/* ce[i]: -log p of target[i] behind position at[i], by the student. */
int engine_score(struct engine *e, const struct score_batch *b, float *ce);

/* Positions of such texts behind which logits are wanted. */
struct logits_batch {
    bool teacher; /* its logits, not the student's; it reads what the student does */
    const int32_t *ids, *pos, *doc_start;
    const int32_t *at; /* [count] */
    float *const *to;  /* [count] where the logits of each go, one for each common token */
    int count;         /* at most B x S */
};
int engine_logits(struct engine *e, const struct logits_batch *b);

/* How tokens are drawn. */
struct decode_sampling {
    float temperature; /* 0 takes the likeliest token */
    int top_k;         /* of the others only the most probable ones; 0: all; */
    float top_p;       /* of these the fewest that make up so much; 0, 1: all; */
    float
        min_p; /* of these none that is less probable than so many times the most probable one; 0: all */
    float
        repetition; /* divides logits above 0, and multiplies those below, of tokens that the text has had; 0, 1: off */
    uint64_t seed;
};
/* A prompt to be continued. Its random numbers follow from the seed, `number` and the position of each token, not from
 * what is continued beside it. */
struct decode_prompt {
    const int32_t *ids; /* until the last of it was said */
    int count,
        most; /* tokens of the prompt, and that may follow; together decode_positions at most */
    int32_t number;
    void *user;
};
enum decode_end {
    DECODE_MORE,    /* it is not the end */
    DECODE_STOPPED, /* the last token is one of `stop` */
    DECODE_LENGTH   /* `most` tokens were said */
};
struct decode_io {
    /* The next prompt: 1; there is none: 0; or a negative code, with which engine_decode() fails */
    int (*next)(void *user, struct decode_prompt *out);
    /* Tokens that follow a prompt, some at a time, in order. 0; 1: it needs no more; or a negative code, with which
     * engine_decode() fails */
    int (*said)(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                enum decode_end end);
    void *user;
    struct decode_sampling how;
    const int32_t *stop; /* tokens that end a text, at most 8 */
    int stops;
};
/* Whether a token is one that ends a text. */
bool decode_stops(const struct decode_io *io, int32_t id);
/* Continues prompts until there are none, decode_rows at a time: where one ends the next one takes its place. */
int engine_decode(struct engine *e, const struct decode_io *io);

/* What speculative decoding came to. A turn is a draft of the student and a pass of the teacher, which verifies it. */
enum { SPECULATE_DRAFT_MOST = 16 };
struct speculate_result {
    int64_t texts;
    int64_t turns[SPECULATE_DRAFT_MOST + 1]; /* that drafted so many tokens */
    int64_t drafted, tested; /* tokens of drafts; those that were not behind a rejected one */
    int64_t accepted;
    int64_t tokens; /* of the texts */
    /* Over the tested tokens: the sum of the probabilities sum_v min(p_v, q_v) with which each was to be accepted, and
     * of their variances. */
    double expected, variance;
};
/* Continues prompts as the teacher would alone, at temperature 1, with drafts of at most `draft` tokens; B at a time,
 * each in S positions. Of io->how the seed alone counts. */
int engine_speculate(struct engine *e, const struct decode_io *io, int draft,
                     struct speculate_result *out);

/* Model folder and state for resuming: writes into an existing empty folder; the caller renames it.
 * With adapters they are what is saved. state.bin: weights as they are updated, moments, step state, data position,
 * step; beside it the algorithms of matrix products. */
#define ENGINE_GEMM_TABLE "gemm.txt"
int engine_save_model(struct engine *e, const char *dir);
/* Where ranks are processes and one saves, the others do their part of it meanwhile: */
int engine_collect_model(struct engine *e);
int engine_collect_state(struct engine *e);
/* Of the weights in it. */
uint64_t engine_model_bytes(const struct engine *e);
int engine_save_state(struct engine *e, const char *dir, int64_t step,
                      const struct data_state *data);
int engine_load_state(struct engine *e, const char *dir, int64_t *step, struct data_state *data);

/* Operations of one optimiser step: the student's, forward and backward, and the teacher's forward; those of
 * FP8 GEMMs apart. */
struct step_flops {
    double student, student_f8, teacher, teacher_f8;
    double attention; /* the part of student and teacher that multiplies no weights */
};
struct step_flops engine_flops(const struct engine *e);
/* By how much free device memory has fallen since there were `before` bytes; other programs count,
 * too. 0: cannot be told (a CPU; managed memory, which is taken as it is used). */
size_t memory_taken(nj_context *ctx, size_t before);
size_t engine_allocated_bytes(const struct engine *e); /* the same, when the plan's was taken */
size_t
engine_step_comm_bytes(const struct engine *e);      /* the plan's of the last step, all of them */
size_t engine_library_bytes(const struct engine *e); /* before that, beside the plan */

#endif
