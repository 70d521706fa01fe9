/* SPDX-License-Identifier: Apache-2.0
 *
 * run.h: what commands share: an opened device, resolved folders, options turned into what the
 * engine takes.
 */
#ifndef NOJIT_TRAINER_RUN_H
#define NOJIT_TRAINER_RUN_H

#include "checkpoint.h"
#include "data.h"
#include "engine.h"
#include "metrics.h"
#include "progress.h"
#include "settings.h"

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
    struct train_options options;
    char student[PATH_BYTES], teacher[PATH_BYTES]; /* resolved; teacher "" without one */
    struct tokenizer tokenizer;
    struct data *data, *eval_data;
    struct engine *engine;
    struct metrics metrics;
    struct checkpoints checkpoints;
    struct teacher_check teacher_check;
    uint64_t fallbacks; /* announced fall-backs, for the receipt */
};

/* Opens terminal and device, and resolves the model folders. On failure everything is closed by
 * run_close(). */
int run_open(struct run *r, const struct settings *s);
void run_close(struct run *r);
/* Options of the engine as the command line says them; run_engine_options() adds the precision of
 * the device. */
void run_training_options(const struct settings *s, struct train_options *out);
int run_engine_options(struct run *r);
/* Opens the student's tokenizer; a teacher's must have the same tokens. */
int run_open_tokenizer(struct run *r);
/* The adapters that --adapter or --lora-r asks for. */
int run_adapters(const struct settings *s, struct lora_config *out);
/* Opens tokens for the engine's batch shape; once: one pass, for evaluation. */
int run_open_data(struct run *r, const struct path_list *paths, int vocab_size, bool once,
                  struct data **out);
/* teacher_check.c: measures it on the first batches and says so; with a teacher that is not fp8 there
 * is nothing to do. Before the engine is opened, while its memory is free. */
int run_check_teacher(struct run *r);
/* A line for each region of the plan, then the sums. */
void run_print_plan(struct run *r, const struct plan *p);
/* Says a line; the engine's `say`. */
void run_say(void *run, const char *line);
/* "name" is an option that the command needs. */
int need(const void *value, const char *name, const char *command);

/* Interrupts: the first SIGINT or SIGTERM asks the loop to stop after the step, the second ends the
 * process. */
void interrupts_catch(void);
bool interrupted(void);

/* receipt.json in DIR: every option as applied, device, versions, hashes, counters. */
int receipt_write(const char *dir, const struct command_info *c, const struct run *r,
                  int64_t steps_done);

int cmd_distill(const struct settings *s);
int cmd_train(const struct settings *s);
int cmd_eval(const struct settings *s);
int cmd_generate(const struct settings *s);
int cmd_tokenize(const struct settings *s);
int cmd_init(const struct settings *s);
int cmd_merge(const struct settings *s);
int cmd_plan(const struct settings *s);
int cmd_doctor(const struct settings *s);
int cmd_report(const struct settings *s);
int cmd_version(const struct settings *s);

#endif
