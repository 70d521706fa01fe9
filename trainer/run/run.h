/* SPDX-License-Identifier: Apache-2.0
 *
 * run.h: one run of a command: an opened device, resolved folders, options turned into what the
 * engine takes.
 */
#ifndef NOJIT_TRAINER_RUN_H
#define NOJIT_TRAINER_RUN_H

#include <time.h>

#include "batch/answers.h"
#include "batch/answers_source.h"
#include "batch/data.h"
#include "batch/prompts.h"
#include "engine/engine.h"
#include "io/path.h"
#include "options/settings.h"
#include "ranks/group.h"
#include "record/checkpoint.h"
#include "record/metrics.h"
#include "record/progress.h"
#include "record/sample_log.h"
#include "run/trend.h"
#include "text/generation.h"

/* Effect of --teacher-dtype on the teacher's distribution. */
struct teacher_check {
    double kl,
        agreement; /* KL(as --dtype || rounded) in nats per token; fraction of positions with the same first choice */
    int64_t tokens; /* number of tokens measured; 0: not measured */
};

/* The student's answers to prompts, from which it learns (rollouts.h). */
struct rollouts {
    struct prompts *prompts;
    int longest;           /* most tokens of a prompt */
    int each;              /* least number of answers that fit in a row */
    unsigned char *own;    /* whether each row is an answer, [rows of a step] */
    struct answer *answer; /* answers of the step */
    int32_t *generated;    /* tokens of the answers, [answers, --max-new] */
    struct batch rows;
    struct rollout_stats stats; /* statistics of the step */
    struct rollout_stats all;   /* statistics of all steps of this process */
    bool cut_said;              /* whether it was printed that all answers were cut */
    double usual;               /* seconds that the last answers took */
    /* Number of steps whose answers are counted, and number of those answers. */
    int64_t counted, before;
};

enum { DAY_BYTES = 16 };

struct run {
    const struct settings *s;
    struct group *group; /* processes that share the run's steps */
    struct progress progress;
    nj_context *ctx;
    nj_comm *comm;     /* communicator of the group; NULL in a run of one */
    size_t free_bytes; /* free device memory when the device was opened */
    size_t comm_bytes; /* part of it that connecting the ranks took */
    /* Vulkan: pipelines that the driver compiled until the device was open */
    uint32_t pipelines_at_start;
    struct train_options options;
    /* Configurations of student and teacher where only rank 0 reads. */
    struct model_config config[2];
    char student[PATH_BYTES], teacher[PATH_BYTES]; /* resolved folders; teacher: "" without one */
    struct teacher_cache *cache;                   /* cache that is the teacher; NULL: a model is */
    unsigned char *teacher_types, *student_types;  /* arrays of options; owned here */
    char teacher_types_text[128]; /* quantized types of the teacher's file: "Q4_K, Q6_K" */
    struct tokenizer tokenizer;
    struct generation ends; /* tokens that end a text of the student */
    /* Number of ids that are in the vocabularies of both models and, if known, their tokenizers. */
    int vocab;
    /* Facts about the texts, and the sources of their batches, which close them. NULL: there are none. */
    struct data *data, *eval_data;
    struct batch_source *batches, *eval_batches;
    struct answers_source *answers; /* answers in batches, with --on-policy */
    struct rollouts rollouts;
    struct engine *engine;
    struct metrics metrics;
    struct sample_log samples;
    struct checkpoints checkpoints;
    struct teacher_check teacher_check;
    /* Counters for the receipt, of this process only. */
    uint64_t fallbacks; /* number of announced fallbacks */
    /* Positions of the steps done; those with a target. */
    int64_t trained_tokens, trained_targets;
    int64_t empty_batches;   /* number of micro-batches without a target */
    int64_t skipped_updates; /* number of skipped updates (float16) in the whole run */
    /* Bytes of all weights that were read, and the time that took. */
    double load_bytes, load_seconds;
    double first_loss, last_loss; /* losses of the first and the last step done */
    struct trend trend;           /* trend of the losses */
    bool diverged;
    time_t started;
    double opened; /* clock_seconds() at that time */
    /* Day that chat templates write, as YYYY-MM-DD; "": no template has been read. */
    char day[DAY_BYTES];
    double step_seconds;    /* time of the last step; 0: before the first */
    double trained_seconds; /* time of the steps done, without their answers */
    bool done;              /* whether the run had already ended before it began */
    bool stop_said;         /* whether it was printed that an interrupt waits for an evaluation */
};

/* Open the terminal and the device, connect the device to those of the group, and resolve the models. results:
 * standard output carries results, so that messages for people go to standard error. After a failure run_close()
 * closes everything. */
int run_open(struct run *r, const struct settings *s, struct group *g, bool results);
void run_close(struct run *r);
/* Set the engine's options from the command line; run_engine_options() adds the precision of the device. */
void run_training_options(const struct settings *s, struct train_options *out);
int run_engine_options(struct run *r);
/* Choose the types of a run on this device, or refuse those that it does not have. */
int run_device_options(const struct settings *s, const struct nj_device_info *d,
                       struct train_options *o);
/* Return the sampling parameters that the options give. */
struct decode_sampling run_sampling(const struct run *r);
/* Return whether this rank reads models, data and checkpoints; otherwise only rank 0 does, and run_share_models()
 * and similar functions distribute the contents. */
bool run_reads(const struct run *r);
/* Return the name of the run's result in OUT: "model" or "adapters". */
const char *run_result_name(const struct run *r);
/* Return the type as --dtype spells it. */
const char *run_dtype_name(const struct run *r);
/* Complete the adapter configuration that options_apply() has set, for --adapter or --lora-r. */
int run_adapters(const struct settings *s, struct lora_config *out);
/* Refuse --beta if --objective does not use it. */
int run_check_objective(const struct settings *s);
/* Print a line for each region of the plan, then the sums. */
void run_print_plan(struct run *r, const struct plan *p);
/* Report what a device does while it is opened as a wait that has begun; nj_options.doing. */
void run_doing(void *unused, const char *what);
/* Print a line; the engine's `say`. */
void run_say(void *run, const char *line);
/* Refuse temperatures at which the divergence that is printed would be wrong. */
int run_check_temperature(const struct settings *s);
/* An option that a command requires, and whether it was given or is not required after all. */
struct needed {
    const char *name; /* NULL: the end */
    bool given;
};
/* Refuse with the names of all options that are missing. */
int run_needs(const char *command, const struct needed *list);
/* Return the subject of a sentence about the device: "--device cuda" or "device". */
const char *device_option(const struct settings *s);

#endif
