/* SPDX-License-Identifier: Apache-2.0
 *
 * run.h: what commands share: an opened device, resolved folders, options turned into what the
 * engine takes.
 */
#ifndef NOJIT_TRAINER_RUN_H
#define NOJIT_TRAINER_RUN_H

#include <time.h>

#include "data/data.h"
#include "engine/engine.h"
#include "options/settings.h"
#include "plural.h"
#include "record/checkpoint.h"
#include "record/metrics.h"
#include "record/progress.h"
#include "record/sample_log.h"

#define PATH_BYTES 4096

/* What e4m3 changes in the teacher's distribution. */
struct teacher_check {
    double kl, agreement; /* KL(as --dtype || fp8) in nats a token; share of equal first choices */
    int64_t tokens;       /* 0: not measured */
};

struct run {
    const struct settings *s;
    struct progress progress;
    nj_context *ctx;
    size_t free_bytes; /* of the device when it was opened */
    struct train_options options;
    char student[PATH_BYTES], teacher[PATH_BYTES]; /* resolved; teacher "" without one */
    struct tokenizer tokenizer;
    int vocab; /* ids below it are in the vocabularies of both models and, if known, their tokenizers */
    struct data *data, *eval_data;
    struct engine *engine;
    struct metrics metrics;
    struct sample_log samples;
    struct checkpoints checkpoints;
    struct teacher_check teacher_check;
    /* for the receipt, of this process alone */
    uint64_t fallbacks;                      /* announced fall-backs */
    int64_t trained_tokens, trained_targets; /* positions of the steps done; those with a target */
    int64_t skipped_updates;                 /* float16, of the whole run */
    double first_loss, last_loss;            /* of the first and the last step done */
    time_t started;
    double opened; /* seconds_now() then */
};

/* Opens terminal and device, and resolves the model folders; results: standard output carries some, so
 * that what people read goes to standard error. On failure everything is closed by run_close(). */
int run_open(struct run *r, const struct settings *s, bool results);
void run_close(struct run *r);
/* Options of the engine as the command line says them; run_engine_options() adds the precision of
 * the device. */
void run_training_options(const struct settings *s, struct train_options *out);
int run_engine_options(struct run *r);
/* As --dtype says it. */
const char *run_dtype_name(const struct run *r);
/* Opens the student's tokenizer; a teacher's must have the same tokens, but for added ones after
 * them. Sets r->vocab. */
int run_open_tokenizer(struct run *r);
/* Opens the engine, with the algorithms of matrix products that --gemm-table keeps. A run that trains
 * with an fp8 teacher measures first what that changes. */
int run_open_engine(struct run *r);
/* teacher_check.c: that measurement, on the first batches, and the line that says it; 0 also where
 * memory does not suffice for it. Before the engine is opened, while there is the most. */
int run_check_teacher(struct run *r);
/* The adapters that --adapter or --lora-r asks for. */
int run_adapters(const struct settings *s, struct lora_config *out);
/* Opens tokens for the engine's batch shape; once: one pass, for evaluation, to which --packing and
 * --data-weights do not apply. */
int run_open_data(struct run *r, const struct path_list *paths, bool once, struct data **out);
/* fit.c. --batch-size auto: the batch of the checkpoint that the run goes on from, else the largest that
 * fits and has no more rows than an epoch of r->data; said, and put into r->options and r->data. */
int run_fit_batch(struct run *r);
/* The same, for a budget in bytes and at most so many rows. */
int fit_batch(struct run *r, const struct model_config *student, const struct model_config *teacher,
              size_t budget, int most);
/* Of what a GPU, or the memory of a machine, can give, the part that such a batch may fill. */
size_t fit_part(size_t budget, bool gpu);
/* A line for each change to the options that takes fewer bytes than `now`, and whether it fits. */
int fit_advise(struct run *r, const struct model_config *student,
               const struct model_config *teacher, size_t now, size_t budget);
/* A line for each region of the plan, then the sums. */
void run_print_plan(struct run *r, const struct plan *p);
/* Says a line; the engine's `say`. */
void run_say(void *run, const char *line);
/* run_begin.c: loads the checkpoint to go on from, if there is one, *first: its step, and opens the files of
 * rows. Where run_is_done() nothing was opened, as there is nothing left to do. */
int run_begin(struct run *r, int64_t *first);
bool run_is_done(const struct run *r);
/* What the next checkpoint is to know beside the engine's state. */
void run_put_progress(struct run *r);
/* Refuses an --out in a folder of --data or --eval-data: what it holds would be read as data. */
int run_check_output(const struct settings *s);
/* Refuses temperatures at which the divergence that is printed would be wrong. */
int run_check_temperature(const struct settings *s);
/* "name" is an option that the command needs. */
int need(const void *value, const char *name, const char *command);
/* What a sentence about the device is about: "--device cuda" or "device". */
const char *device_option(const struct settings *s);

/* Interrupts: the first SIGINT, SIGTERM or SIGHUP asks the loop to stop after the step, a further SIGINT
 * or SIGTERM ends the process. */
void interrupts_catch(void);
bool interrupted(void);
/* From here on a reader of the output who goes away does not end the process: writing fails. */
void pipes_may_close(void);

/* receipt.json in DIR: every option as applied, device, versions, hashes, counters. */
int receipt_write(const char *dir, const struct command_info *c, const struct run *r,
                  int64_t steps_done);

#endif
