/* SPDX-License-Identifier: Apache-2.0
 *
 * settings.h: everything a command line can say, and the one table (options.c) that makes parser,
 * help and man page.
 */
#ifndef NOJIT_TRAINER_SETTINGS_H
#define NOJIT_TRAINER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nojit.h"

struct path_list {
    const char **path; /* strings of argv or of settings.kept */
    size_t count;
    bool from_file; /* a --config file named them: the command line replaces them */
};

struct settings {
    /* models and data */
    const char *student, *teacher, *out;
    struct path_list data, eval_data;
    struct path_list data_weights; /* numbers, with commas between some */
    int packing;                   /* enum packing */
    bool allow_self_distillation;
    /* objective */
    double temperature, kd_ratio, beta;
    /* length */
    int64_t steps, batch_size, grad_accum, seq_len;
    double epochs, memory_budget; /* GiB */
    /* optimiser */
    double lr, min_lr_ratio, weight_decay, beta1, beta2, eps, max_grad_norm, warmup_ratio;
    int64_t warmup_steps;
    int lr_schedule;     /* enum schedule */
    int optimizer_state; /* enum optimizer_state */
    /* adapters */
    int64_t lora_r;
    double lora_alpha, lora_dropout;
    struct path_list lora_targets; /* names, not paths */
    const char *adapter;
    bool merge;
    /* run */
    int64_t seed, eval_every, log_every, save_every, keep, head_chunk, early_stop_patience;
    int64_t first_step_timeout;
    const char *resume, *log, *config, *gemm_table;
    int report_to; /* enum report_to */
    int device;    /* enum nj_device_kind */
    int dtype;     /* enum dtype_choice */
    int recompute; /* enum recompute */
    bool json, dry_run, verbose, keep_best;
    int teacher_dtype; /* enum teacher_dtype */
    /* text that is written */
    const char *prompt;
    struct path_list sample_prompts; /* texts, not paths */
    int64_t max_tokens, sample_tokens;
    double sample_temperature;
    /* init */
    const char *preset, *like;
    struct path_list layers; /* numbers, with commas between some */
    int64_t hidden_size, intermediate_size, num_layers, heads, kv_heads, head_dim,
        vocab_size;     /* 0: as --like */
    int tie_embeddings; /* enum tie_embeddings */
    int64_t shard_bytes;
    /* words that are no options, of a command that takes some */
    struct path_list words;
    /* sentences about what was refused */
    char **refused;
    size_t refused_count;
    /* as settings_parse() got them */
    int argc;
    char **argv;
    /* values read from a --config file */
    char **kept;
    size_t kept_count;
};

enum { BATCH_AUTO = 0 }; /* settings.batch_size */
enum report_to { REPORT_NONE, REPORT_TENSORBOARD };
enum dtype_choice { DTYPE_AUTO, DTYPE_F32, DTYPE_BF16, DTYPE_F16 };
enum teacher_dtype { TEACHER_AUTO, TEACHER_BF16, TEACHER_F8 };
enum tie_embeddings { TIE_AUTO, TIE_TRUE, TIE_FALSE };

/* Commands as bits, so that a row of the table can serve several. */
enum command {
    CMD_DISTILL = 1,
    CMD_TRAIN = 2,
    CMD_EVAL = 4,
    CMD_GENERATE = 8,
    CMD_INIT = 16,
    CMD_PLAN = 32,
    CMD_DOCTOR = 64,
    CMD_VERSION = 128,
    CMD_REPORT = 256,
    CMD_TOKENIZE = 512,
    CMD_MERGE = 1024,
};
enum { COMMANDS = 11 };

struct command_info {
    enum command bit;
    const char *name, *usage, *summary;
    const char *words; /* "NAME: what it is" of its arguments without dashes; NULL: it takes none */
};
/* All commands, ended by a row whose name is NULL; in commands.c. */
extern const struct command_info commands[COMMANDS + 1];

/* Fills s with the defaults of the command, then with the --config files that argv[0..argc) names,
 * then with argv itself. Returns 0, 1 for --help, or NJ_E_ARG with a sentence that names the argument
 * and, for a misspelt one, the nearest. Of several, s->refused has each, and that sentence is the last. */
int settings_parse(const struct command_info *c, int argc, char **argv, struct settings *s);
void settings_free(struct settings *s);
/* Name of the nearest command, or NULL. */
const char *command_near(const char *word);

/* A value of the option `name`, one with choices, as the command line says it. */
const char *settings_choice(const char *name, int value, char *buffer, size_t bytes);

/* An option's value as text; of one that takes a list, all of them. */
struct setting {
    const char *name;
    const char **value;
    size_t count;
    bool list;
};
/* Calls visit(user, setting) for every option of the command, in table order. */
void settings_visit(const struct command_info *c, const struct settings *s,
                    void (*visit)(void *user, const struct setting *setting), void *user);

#endif
