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

/* What --teacher-dtype changes in the teacher's distribution. */
struct teacher_check {
    double kl,
        agreement;  /* KL(as --dtype || rounded) in nats a token; share of equal first choices */
    int64_t tokens; /* 0: not measured */
};

/* The student's answers to prompts, of which it learns (rollouts.h). */
struct rollouts {
    struct prompts *prompts;
    int longest;           /* tokens of a prompt at most */
    int each;              /* answers that a row has room for, at least */
    unsigned char *own;    /* [rows of a step] which are answers */
    struct answer *answer; /* of the step */
    int32_t *said;         /* [answers, --max-new] */
    struct batch rows;
    struct rollout_stats stats; /* of the step */
    struct rollout_stats all;   /* of the steps of this process */
    bool cut_said;              /* that all were cut */
    double usual;               /* seconds of the last answers */
    int64_t counted, before;    /* steps whose answers are counted, and how many those are */
};

enum { DAY_BYTES = 16 };

struct run {
    const struct settings *s;
    struct group *group; /* the processes that share its steps */
    struct progress progress;
    nj_context *ctx;
    nj_comm *comm;               /* of the group; NULL in a run of one */
    size_t free_bytes;           /* of the device when it was opened */
    size_t comm_bytes;           /* of it, what connecting the ranks took */
    uint32_t pipelines_at_start; /* Vulkan: compiled by the driver until the device was open */
    struct train_options options;
    struct model_config config[2];                 /* student, teacher, where rank 0 alone reads */
    char student[PATH_BYTES], teacher[PATH_BYTES]; /* resolved; teacher "" without one */
    unsigned char *teacher_types;                  /* of options; owned here */
    char teacher_types_text[128];                  /* quantised ones of its file: "Q4_K, Q6_K" */
    struct tokenizer tokenizer;
    struct generation ends; /* tokens that end what the student writes */
    int vocab; /* ids below it are in the vocabularies of both models and, if known, their tokenizers */
    /* What is known of texts; where their batches come from, which closes them. NULL: there are none. */
    struct data *data, *eval_data;
    struct batch_source *batches, *eval_batches;
    struct answers_source *answers; /* in batches, with --on-policy */
    struct rollouts rollouts;
    struct engine *engine;
    struct metrics metrics;
    struct sample_log samples;
    struct checkpoints checkpoints;
    struct teacher_check teacher_check;
    /* for the receipt, of this process alone */
    uint64_t fallbacks;                      /* announced fall-backs */
    int64_t trained_tokens, trained_targets; /* positions of the steps done; those with a target */
    int64_t empty_batches;                   /* micro-batches without a target */
    int64_t skipped_updates;                 /* float16, of the whole run */
    double load_bytes, load_seconds;         /* of the models' weights, all that were read */
    double first_loss, last_loss;            /* of the first and the last step done */
    struct trend trend;                      /* of its losses */
    bool diverged;
    time_t started;
    double opened;       /* seconds_now() then */
    char day[DAY_BYTES]; /* that chat templates write, as YYYY-MM-DD; "": they have not been read */
    double step_seconds; /* of the last step; 0: before the first */
    double trained_seconds; /* of the steps done, without their answers */
    bool done;              /* before it began */
    bool stop_said;         /* that an interrupt waits for an evaluation */
};

/* Opens terminal and device, which it connects to those of the group, and resolves the models; results:
 * standard output carries some, so that what people read goes to standard error. On failure everything
 * is closed by run_close(). */
int run_open(struct run *r, const struct settings *s, struct group *g, bool results);
void run_close(struct run *r);
/* Options of the engine as the command line says them; run_engine_options() adds the precision of
 * the device. */
void run_training_options(const struct settings *s, struct train_options *out);
int run_engine_options(struct run *r);
/* Choose the types of a run on this device, or refuse those that it does not have. */
int run_device_options(const struct settings *s, const struct nj_device_info *d,
                       struct train_options *o);
/* Models, data and checkpoints; else rank 0 alone does, and run_share_models() and the like bring what is in them. */
bool run_reads(const struct run *r);
/* Returns the name of the run's result in OUT: "model" or "adapters". */
const char *run_result_name(const struct run *r);
/* As --dtype says it. */
const char *run_dtype_name(const struct run *r);
/* Completes what options_apply() has set: the adapters that --adapter or --lora-r asks for. */
int run_adapters(const struct settings *s, struct lora_config *out);
/* Refuses --beta where --objective makes nothing of it. */
int run_check_objective(const struct settings *s);
/* A line for each region of the plan, then the sums. */
void run_print_plan(struct run *r, const struct plan *p);
/* Names what a device does while it is opened, as a wait that has begun; nj_options.doing. */
void run_doing(void *unused, const char *what);
/* Says a line; the engine's `say`. */
void run_say(void *run, const char *line);
/* Refuses temperatures at which the divergence that is printed would be wrong. */
int run_check_temperature(const struct settings *s);
/* An option that a command may need, and whether it has it or does without. */
struct needed {
    const char *name; /* NULL: the end */
    bool given;
};
/* Refuses with the names of all that are not given. */
int run_needs(const char *command, const struct needed *list);
/* What a sentence about the device is about: "--device cuda" or "device". */
const char *device_option(const struct settings *s);

#endif
