/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c: the table of options and the parser of the command line that follows it.
 */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "settings.h"

#define AT(field) offsetof(struct settings, field)
#define TRAINING (CMD_DISTILL | CMD_TRAIN | CMD_PLAN)
#define RUNS (TRAINING | CMD_EVAL)
#define SETTABLE (RUNS | CMD_GENERATE | CMD_INIT)
#define COUNT_MAX 1e15

static const char models[] = "Models and data";
static const char objective[] = "Objective";
static const char length[] = "Length";
static const char optimiser[] = "Optimiser";
static const char adapters[] = "Adapters (LoRA)";
static const char run[] = "Run";
static const char text[] = "Text";

const struct option options[] = {
    {"student", "model-name-or-path", OPT_TEXT, TRAINING, AT(student), models, "DIR", NULL, 0, 0,
     "model to train: a Hugging Face folder, or ORG/NAME in the local cache"},
    {"teacher", "teacher-model-name-or-path", OPT_TEXT, CMD_DISTILL | CMD_EVAL | CMD_PLAN,
     AT(teacher), models, "DIR", NULL, 0, 0, "model to learn from; it is never changed"},
    {"model", "model-name-or-path", OPT_TEXT, CMD_EVAL | CMD_GENERATE | CMD_TOKENIZE | CMD_MERGE,
     AT(student), models, "DIR", NULL, 0, 0,
     "model: a Hugging Face folder, or ORG/NAME in the local cache"},
    {"data", "train-file", OPT_PATHS, CMD_DISTILL | CMD_TRAIN | CMD_EVAL | CMD_TOKENIZE, AT(data),
     models, "PATH...", NULL, 0, 0, "text (.txt, .jsonl), token files, folders or globs"},
    {"data-weights", NULL, OPT_PATHS, CMD_DISTILL | CMD_TRAIN, AT(data_weights), models, "W...",
     NULL, 0, 0, "each --data is a source that gives its share of every epoch, as 0.7,0.3"},
    {"packing", "packing-strategy", OPT_CHOICE, CMD_DISTILL | CMD_TRAIN, AT(packing), models,
     "wrapped|bfd|none", "wrapped", 0, 0,
     "documents one after the other, cut where a row ends; whole where they fit (best-fit "
     "decreasing); or each in rows of its own"},
    {"eval-data", "validation-file", OPT_PATHS, CMD_DISTILL | CMD_TRAIN, AT(eval_data), models,
     "PATH...", NULL, 0, 0,
     "held-out text, measured at the start, every --eval-every steps and at the end"},
    {"out", "output-dir", OPT_TEXT, CMD_DISTILL | CMD_TRAIN | CMD_INIT | CMD_MERGE, AT(out), models,
     "DIR", NULL, 0, 0, "folder to write; it must not hold a model already"},
    {"out", NULL, OPT_TEXT, CMD_REPORT, AT(out), run, "FILE", "report.html", 0, 0,
     "HTML page to write; one that is there is replaced"},
    {"out", "output-file", OPT_TEXT, CMD_TOKENIZE, AT(out), models, "FILE", NULL, 0, 0,
     "token file to write (LLM.Q version 2); it must not exist"},
    {"allow-self-distillation", NULL, OPT_FLAG, CMD_DISTILL, AT(allow_self_distillation), models,
     NULL, NULL, 0, 0, "accept a teacher whose weights are the student's"},
    {"preset", NULL, OPT_TEXT, CMD_INIT, AT(preset), models, "NAME", NULL, 0, 0,
     "shape of the new model; `nojit init --preset list` lists them"},
    {"like", NULL, OPT_TEXT, CMD_INIT, AT(like), models, "DIR", NULL, 0, 0,
     "take shape and tokenizer from DIR instead"},
    {"shard-bytes", "max-shard-size", OPT_INT, CMD_INIT, AT(shard_bytes), models, "N", "5000000000",
     1024, COUNT_MAX, "split the weights into files of at most N bytes"},

    {"temperature", NULL, OPT_REAL, CMD_DISTILL | CMD_PLAN, AT(temperature), objective, "T", "2",
     1e-3, 1e3, "softens both distributions: softmax(logits / T)"},
    {"kd-ratio", NULL, OPT_REAL, CMD_DISTILL | CMD_PLAN, AT(kd_ratio), objective, "R", "0.5", 0, 1,
     "loss = (1-R) CE + R T^2 D, where --beta names the divergence D"},
    {"beta", NULL, OPT_REAL, CMD_DISTILL | CMD_PLAN, AT(beta), objective, "X", "0", 0, 1,
     "0: KL(teacher || student); 1: KL(student || teacher); between: Jensen-Shannon"},

    {"steps", "max-steps", OPT_INT, TRAINING, AT(steps), length, "N", "0", 0, COUNT_MAX,
     "optimiser steps; 0: as many as --epochs makes"},
    {"epochs", "num-train-epochs", OPT_REAL, TRAINING, AT(epochs), length, "N", "1", 1e-9, 1e6,
     "passes over the data, where --steps is 0"},
    {"batch-size", "per-device-train-batch-size", OPT_INT, RUNS, AT(batch_size), length, "B", "8",
     1, 65535, "sequences of a micro-batch"},
    {"grad-accum", "gradient-accumulation-steps", OPT_INT, TRAINING, AT(grad_accum), length, "N",
     "1", 1, 1e6, "micro-batches of a step; the loss is the mean over the tokens of all of them"},
    {"seq-len", "max-length", OPT_INT, RUNS, AT(seq_len), length, "S", "1024", 1, 1048576,
     "tokens of a sequence"},

    {"lr", "learning-rate", OPT_REAL, TRAINING, AT(lr), optimiser, "X", "5e-5", 0, 1e3,
     "peak learning rate of AdamW"},
    {"lr-schedule", "lr-scheduler-type", OPT_CHOICE, TRAINING, AT(lr_schedule), optimiser,
     "cosine|linear|constant|wsd", "cosine", 0, 0,
     "how the rate falls after the warm-up; wsd: not before the last 10 % of the steps, then by "
     "1 - sqrt(x), x from 0 to 1"},
    {"warmup-steps", NULL, OPT_INT, TRAINING, AT(warmup_steps), optimiser, "N", "0", 0, COUNT_MAX,
     "steps over which the rate rises from 0"},
    {"warmup-ratio", NULL, OPT_REAL, TRAINING, AT(warmup_ratio), optimiser, "X", "0", 0, 0.99,
     "the same as a part of all steps, rounded up, where --warmup-steps is 0"},
    {"min-lr-ratio", NULL, OPT_REAL, TRAINING, AT(min_lr_ratio), optimiser, "X", "0.1", 0, 1,
     "last rate over peak rate"},
    {"weight-decay", NULL, OPT_REAL, TRAINING, AT(weight_decay), optimiser, "X", "0.01", 0, 1e3,
     "decoupled; norms and biases do not decay"},
    {"beta1", "adam-beta1", OPT_REAL, TRAINING, AT(beta1), optimiser, "X", "0.9", 0, 0.9999999,
     "decay of the first moment"},
    {"beta2", "adam-beta2", OPT_REAL, TRAINING, AT(beta2), optimiser, "X", "0.95", 0, 0.9999999,
     "decay of the second moment"},
    {"eps", "adam-epsilon", OPT_REAL, TRAINING, AT(eps), optimiser, "X", "1e-8", 1e-30, 1,
     "added to the root of the second moment"},
    {"max-grad-norm", NULL, OPT_REAL, TRAINING, AT(max_grad_norm), optimiser, "X", "1", 0, 1e9,
     "the gradient is scaled down to this norm; 0: never"},

    {"lora-r", NULL, OPT_INT, TRAINING, AT(lora_r), adapters, "R", "0", 0, 65536,
     "train adapters of this rank and freeze the model; 0: train the model"},
    {"lora-alpha", NULL, OPT_REAL, TRAINING, AT(lora_alpha), adapters, "A", "32", 1e-9, 1e9,
     "adapters are scaled by A / R"},
    {"lora-dropout", NULL, OPT_REAL, TRAINING, AT(lora_dropout), adapters, "P", "0", 0, 0.999,
     "share of an adapter's input that is dropped while training"},
    {"lora-target-modules", NULL, OPT_PATHS, TRAINING, AT(lora_targets), adapters, "NAME...", NULL,
     0, 0,
     "matrices with an adapter: q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj or "
     "all-linear (default all-linear)"},
    {"adapter", "peft-model-id", OPT_TEXT, CMD_DISTILL | CMD_TRAIN, AT(adapter), adapters, "DIR",
     NULL, 0, 0, "adapters as PEFT or this program saved them; training goes on with them"},
    {"adapter", "peft-model-id", OPT_TEXT, CMD_EVAL | CMD_GENERATE | CMD_MERGE, AT(adapter),
     adapters, "DIR", NULL, 0, 0,
     "adapters as PEFT or this program saved them, for the weights of --model"},
    {"merge", NULL, OPT_FLAG, CMD_DISTILL | CMD_TRAIN, AT(merge), adapters, NULL, NULL, 0, 0,
     "write OUT/merged too, the model with the adapters in its weights"},

    {"device", NULL, OPT_CHOICE, RUNS | CMD_GENERATE | CMD_DOCTOR, AT(device), run, "auto|cpu|cuda",
     "auto", 0, 0, "auto takes the GPU if it can be used and says so if not"},
    {"dtype", "torch-dtype", OPT_CHOICE, RUNS | CMD_GENERATE | CMD_INIT, AT(dtype), run,
     "auto|float32|bfloat16|float16", "auto", 0, 0,
     "auto: float32 on a CPU; bfloat16 on a GPU (float16 on sm_75)"},
    {"seed", NULL, OPT_INT, TRAINING | CMD_INIT | CMD_GENERATE, AT(seed), run, "N", "1", 0,
     COUNT_MAX, "order of the data; random weights; sampling"},
    {"eval-every", "eval-steps", OPT_INT, CMD_DISTILL | CMD_TRAIN, AT(eval_every), run, "N", "0", 0,
     COUNT_MAX, "steps between measurements of --eval-data; 0: start and end only"},
    {"early-stop-patience", "early-stopping-patience", OPT_INT, CMD_DISTILL | CMD_TRAIN,
     AT(early_stop_patience), run, "N", "0", 0, COUNT_MAX,
     "end after N measurements of --eval-data without a lower loss; 0: never"},
    {"log-every", "logging-steps", OPT_INT, CMD_DISTILL | CMD_TRAIN, AT(log_every), run, "N", "1",
     1, COUNT_MAX, "steps between lines where the output is no terminal"},
    {"save-every", "save-steps", OPT_INT, CMD_DISTILL | CMD_TRAIN, AT(save_every), run, "N", "0", 0,
     COUNT_MAX, "steps between checkpoints; 0: none but the final model"},
    {"keep", "save-total-limit", OPT_INT, CMD_DISTILL | CMD_TRAIN, AT(keep), run, "N", "2", 1,
     COUNT_MAX, "newest checkpoints that are kept"},
    {"keep-best", NULL, OPT_FLAG, CMD_DISTILL | CMD_TRAIN, AT(keep_best), run, NULL, NULL, 0, 0,
     "keep the checkpoint with the lowest loss on --eval-data as OUT/best"},
    {"resume", "resume-from-checkpoint", OPT_TEXT, CMD_DISTILL | CMD_TRAIN, AT(resume), run,
     "auto|DIR", NULL, 0, 0, "go on from the newest checkpoint of --out, or from DIR"},
    {"head-chunk", NULL, OPT_INT, TRAINING, AT(head_chunk), run, "N", "0", 0, 65536,
     "rows of logits at a time; 0: chosen by the plan"},
    {"gemm-table", NULL, OPT_TEXT, CMD_DISTILL | CMD_TRAIN | CMD_EVAL | CMD_GENERATE,
     AT(gemm_table), run, "auto|none|FILE", "auto", 0, 0,
     "on a GPU: algorithms of matrix products, timed once and kept in FILE (auto: in the user's "
     "cache folder), so that later runs give the same bits; none: cuBLASLt's first choice"},
    {"report-to", NULL, OPT_CHOICE, CMD_DISTILL | CMD_TRAIN, AT(report_to), run, "none|tensorboard",
     "none", 0, 0, "tensorboard: write the metrics as event files in OUT/runs too"},
    {"recompute", NULL, OPT_CHOICE, TRAINING, AT(recompute), run, "none|mlp|block", "none", 0, 0,
     "what backward computes again instead of keeping: gate and up, or all but a layer's input"},
    {"log", NULL, OPT_TEXT, CMD_DISTILL | CMD_TRAIN, AT(log), run, "FILE", NULL, 0, 0,
     "write the lines of the terminal to FILE too"},
    {"config", NULL, OPT_TEXT, SETTABLE, AT(config), run, "FILE", NULL, 0, 0,
     "YAML file of options, `name: value` or `name: [value, ...]`; the command line wins"},
    {"json", NULL, OPT_FLAG, RUNS | CMD_DOCTOR | CMD_VERSION, AT(json), run, NULL, NULL, 0, 0,
     "print JSON, a line each"},
    {"dry-run", NULL, OPT_FLAG, CMD_DISTILL | CMD_TRAIN, AT(dry_run), run, NULL, NULL, 0, 0,
     "check everything, print the plan, write nothing"},
    {"verbose", NULL, OPT_FLAG, CMD_DISTILL | CMD_TRAIN | CMD_EVAL | CMD_GENERATE | CMD_DOCTOR,
     AT(verbose), run, NULL, NULL, 0, 0, "a line per kernel module loaded"},

    {"prompt", NULL, OPT_TEXT, CMD_GENERATE, AT(prompt), text, "TEXT", "", 0, 0,
     "text to continue"},
    {"seq-len", "max-length", OPT_INT, CMD_GENERATE, AT(seq_len), text, "S", "0", 0, 1048576,
     "longest text in tokens; 0: the prompt and --max-tokens"},
    {"max-tokens", "max-new-tokens", OPT_INT, CMD_GENERATE, AT(max_tokens), text, "N", "200", 1,
     1048576, "tokens to write"},
    {"temperature", NULL, OPT_REAL, CMD_GENERATE, AT(sample_temperature), text, "T", "0.8", 0, 1e3,
     "0 takes the likeliest token each time"},
    {"sample-prompt", NULL, OPT_PATHS, CMD_DISTILL | CMD_TRAIN, AT(sample_prompts), text, "TEXT...",
     NULL, 0, 0,
     "texts that the student continues, into OUT/samples.jsonl, whenever --eval-data is measured; "
     "without it at the end"},
    {"sample-tokens", NULL, OPT_INT, CMD_DISTILL | CMD_TRAIN, AT(sample_tokens), text, "N", "100",
     1, 1048576, "tokens of a sample, as far as --seq-len reaches"},
    {"sample-temperature", NULL, OPT_REAL, CMD_DISTILL | CMD_TRAIN, AT(sample_temperature), text,
     "T", "0.8", 0, 1e3, "of a sample; 0 takes the likeliest token each time"},
    {NULL, NULL, OPT_FLAG, 0, 0, NULL, NULL, NULL, 0, 0, NULL},
};

static int edit_distance(const char *a, const char *b)
{
    int row[64];
    const int n = (int)strlen(b);
    if (n >= 63)
        return 99;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1] != '\0'; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            const int replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            const int shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[n];
}

static const struct option *option_named(unsigned command, const char *word)
{
    for (const struct option *o = options; o->name != NULL; o++) {
        if (!(o->commands & command))
            continue;
        if (strcmp(word, o->name) == 0 || (o->alias != NULL && strcmp(word, o->alias) == 0))
            return o;
    }
    return NULL;
}

static const char *option_near(unsigned command, const char *word)
{
    const char *best = NULL;
    int least = 4;
    for (const struct option *o = options; o->name != NULL; o++) {
        if (!(o->commands & command))
            continue;
        const int d = edit_distance(word, o->name);
        if (d < least) {
            least = d;
            best = o->name;
        }
        if (o->alias != NULL && edit_distance(word, o->alias) < least) {
            least = edit_distance(word, o->alias);
            best = o->alias;
        }
    }
    for (const struct option_alias *a = option_aliases; a->word != NULL; a++) {
        const int d = edit_distance(word, a->word);
        if (d < least && option_named(command, a->name) != NULL) {
            least = d;
            best = a->word;
        }
    }
    return best;
}

const char *command_near(const char *word)
{
    for (const struct command_info *c = commands; c->name != NULL; c++)
        if (edit_distance(word, c->name) <= 2)
            return c->name;
    return NULL;
}

static bool option_find(unsigned command, const char *word, struct option_match *out)
{
    out->o = option_named(command, word);
    out->value = NULL;
    for (const struct option_alias *a = option_aliases; a->word != NULL && out->o == NULL; a++)
        if (strcmp(word, a->word) == 0) {
            out->o = option_named(command, a->name);
            out->value = a->value;
        }
    return out->o != NULL;
}

/* The commands that have this option, "`nojit eval`, `nojit plan`"; "" if there is none. */
static const char *owners(const char *name, char *buffer, size_t bytes)
{
    struct option_match m;
    size_t used = 0;
    buffer[0] = '\0';
    for (const struct command_info *c = commands; c->name != NULL && used < bytes; c++)
        if (option_find(c->bit, name, &m))
            used += (size_t)snprintf(buffer + used, bytes - used, "%s`nojit %s`", used ? ", " : "",
                                     c->name);
    return buffer;
}

int option_match(const struct command_info *c, const char *word, size_t bytes,
                 struct option_match *out)
{
    char name[sizeof out->word], others[256];
    if (bytes >= sizeof name)
        return fail(NJ_E_ARG, "unknown option --%.*s; see `nojit %s --help`", (int)sizeof name,
                    word, c->name);
    for (size_t k = 0; k < bytes; k++)
        name[k] = word[k] == '_' ? '-' : word[k];
    name[bytes] = '\0';
    snprintf(out->word, sizeof out->word, "%.*s", (int)bytes, word);
    if (option_find(c->bit, name, out))
        return 0;
    for (const struct option_foreign *f = options_foreign; f->word != NULL; f++)
        if (strcmp(name, f->word) == 0)
            return fail(NJ_E_ARG, "--%s: %s", out->word, f->remedy);
    if (owners(name, others, sizeof others)[0] != '\0')
        return fail(NJ_E_ARG, "no option --%s here; it belongs to %s", out->word, others);
    const char *near = option_near(c->bit, name);
    return near != NULL
               ? fail(NJ_E_ARG, "unknown option --%s; did you mean --%s?", out->word, near)
               : fail(NJ_E_ARG, "unknown option --%s; see `nojit %s --help`", out->word, c->name);
}

bool option_is_flag(const struct option_match *m)
{
    return m->o->kind == OPT_FLAG || m->value != NULL;
}

static int parse_number(const struct option *o, const char *word, const char *value, void *field)
{
    char *end = NULL;
    errno = 0;
    const double x = strtod(value, &end);
    const bool whole = o->kind == OPT_INT;
    if (end == value || *end != '\0' || errno != 0 || !isfinite(x) || (whole && x != floor(x)))
        return fail(NJ_E_ARG, "--%s %s: not a %s", word, value, whole ? "whole number" : "number");
    if (x < o->min || x > o->max)
        return fail(NJ_E_ARG, "--%s %s: must lie between %.10g and %.10g", word, value, o->min,
                    o->max);
    if (whole)
        *(int64_t *)field = (int64_t)x;
    else
        *(double *)field = x;
    return 0;
}

static int parse_choice(const struct option *o, const char *word, const char *value, int *field)
{
    const char *said = value;
    const char *p = o->value_name;
    for (const struct option_alias *a = choice_aliases; a->word != NULL; a++)
        if (strcmp(a->name, o->name) == 0 && strcmp(a->word, value) == 0)
            value = a->value;
    for (int i = 0;; i++) {
        const size_t n = strcspn(p, "|");
        if (strlen(value) == n && strncmp(value, p, n) == 0) {
            *field = i;
            return 0;
        }
        if (p[n] == '\0')
            break;
        p += n + 1;
    }
    return fail(NJ_E_ARG, "--%s %s: must be one of %s", word, said, o->value_name);
}

static int add_path(struct path_list *list, const char *path)
{
    if (list->from_file) {
        list->count = 0;
        list->from_file = false;
    }
    const char **grown = realloc(list->path, (list->count + 1) * sizeof *grown);
    if (grown == NULL)
        return fail(NJ_E_NOMEM, "out of memory while reading the command line");
    list->path = grown;
    list->path[list->count++] = path;
    return 0;
}

/* 1 or 0 for the words of YAML and Python, else -1. */
static int truth(const char *word)
{
    static const char *const words[] = {"false", "true", "False", "True"};
    for (int i = 0; i < 4; i++)
        if (strcmp(word, words[i]) == 0)
            return i % 2;
    return -1;
}

/* word: what the user calls the option. */
static int set_value(const struct option *o, const char *word, const char *value,
                     struct settings *s)
{
    void *field = (char *)s + o->offset;
    switch (o->kind) {
    case OPT_FLAG:
        *(bool *)field = value == NULL || truth(value) == 1;
        return 0;
    case OPT_INT:
    case OPT_REAL:
        return parse_number(o, word, value, field);
    case OPT_TEXT:
        *(const char **)field = value;
        return 0;
    case OPT_PATHS:
        return add_path(field, value);
    case OPT_CHOICE:
        return parse_choice(o, word, value, field);
    }
    return NJ_E_ARG;
}

int option_set(const struct option_match *m, const char *value, struct settings *s)
{
    if (!option_is_flag(m))
        return set_value(m->o, m->word, value, s);
    const int on = value == NULL ? 1 : truth(value);
    if (on < 0)
        return fail(NJ_E_ARG, "--%s %s: a flag; true or false, or no value", m->word, value);
    if (m->o->kind == OPT_FLAG)
        return set_value(m->o, m->word, value, s);
    return on ? set_value(m->o, m->word, m->value, s) : 0;
}

static int set_defaults(unsigned command, struct settings *s)
{
    memset(s, 0, sizeof *s);
    for (const struct option *o = options; o->name != NULL; o++) {
        if (!(o->commands & command) || o->initial == NULL)
            continue;
        const int err = set_value(o, o->name, o->initial, s);
        if (err)
            return err;
    }
    return 0;
}

/* One option and its values, starting at argv[i]; returns how many arguments it took, or a negative
 * code. */
static int parse_option(const struct command_info *c, int argc, char **argv, int i,
                        struct settings *s)
{
    struct option_match m;
    const char *word = argv[i] + 2;
    const size_t n = strcspn(word, "=");
    int err = option_match(c, word, n, &m);
    if (err)
        return err;
    if (word[n] == '=') {
        err = option_set(&m, word + n + 1, s);
        return err ? err : 1;
    }
    if (option_is_flag(&m)) {
        const bool given = i + 1 < argc && truth(argv[i + 1]) >= 0;
        err = option_set(&m, given ? argv[i + 1] : NULL, s);
        return err ? err : 1 + given;
    }
    int used = 1;
    while (i + used < argc && (used == 1 || m.o->kind == OPT_PATHS)) {
        const char *value = argv[i + used];
        if (strncmp(value, "--", 2) == 0)
            break;
        err = option_set(&m, value, s);
        if (err)
            return err;
        used++;
    }
    if (used == 1)
        return fail(NJ_E_ARG, "--%s needs a value (%s)", m.word, m.o->value_name);
    return used;
}

/* Files come before the command line, whichever is named first. A fault of an option is left to the
 * parser proper. */
static int apply_files(const struct command_info *c, int argc, char **argv, struct settings *s)
{
    struct option_match m;
    int err = 0;
    for (int i = 0; i < argc && !err; i++) {
        const char *word = argv[i] + 2;
        const size_t n = strncmp(argv[i], "--", 2) == 0 ? strcspn(word, "=") : 0;
        if (n == 0 || option_match(c, word, n, &m) != 0 || m.o->offset != AT(config))
            continue;
        if (word[n] == '=')
            err = option_file_read(c, word + n + 1, s);
        else if (i + 1 < argc)
            err = option_file_read(c, argv[i + 1], s);
    }
    return err;
}

/* No value starts with two dashes, so this one is no value. */
static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0)
            return true;
    return false;
}

int settings_parse(const struct command_info *c, int argc, char **argv, struct settings *s)
{
    int err = set_defaults(c->bit, s);
    if (asks_for_help(argc, argv))
        return 1;
    if (!err)
        err = apply_files(c, argc, argv, s);
    for (int i = 0; i < argc && !err;) {
        int used = 1;
        if (strcmp(argv[i], "-h") == 0)
            return 1;
        if (strncmp(argv[i], "--", 2) == 0)
            used = parse_option(c, argc, argv, i, s);
        else if (c->words != NULL)
            err = add_path(&s->words, argv[i]);
        else
            return fail(NJ_E_ARG,
                        "unexpected argument '%s'; options start with --, see `nojit %s --help`",
                        argv[i], c->name);
        if (used < 0)
            err = used;
        else
            i += used;
    }
    return err;
}

void settings_free(struct settings *s)
{
    for (const struct option *o = options; o->name != NULL; o++) {
        struct path_list *list = (void *)((char *)s + o->offset);
        if (o->kind == OPT_PATHS) {
            free(list->path);
            *list = (struct path_list){0};
        }
    }
    free(s->words.path);
    for (size_t i = 0; i < s->kept_count; i++)
        free(s->kept[i]);
    free(s->kept);
}

static const char *choice_name(const struct option *o, int value, char *buffer, size_t bytes)
{
    const char *p = o->value_name;
    for (; value > 0; value--)
        p += strcspn(p, "|") + 1;
    snprintf(buffer, bytes, "%.*s", (int)strcspn(p, "|"), p);
    return buffer;
}

/* The words with a space between each two; NULL without memory. */
static char *list_text(const struct path_list *list)
{
    size_t bytes = 1, used = 0;
    for (size_t i = 0; i < list->count; i++)
        bytes += strlen(list->path[i]) + 1;
    char *joined = calloc(bytes, 1);
    for (size_t i = 0; i < list->count && joined != NULL; i++)
        used += (size_t)snprintf(joined + used, bytes - used, "%s%s", i ? " " : "", list->path[i]);
    return joined;
}

static const char *value_text(const struct option *o, const void *field, char *buffer, size_t bytes)
{
    switch (o->kind) {
    case OPT_FLAG:
        return *(const bool *)field ? "true" : "false";
    case OPT_INT:
        snprintf(buffer, bytes, "%lld", (long long)*(const int64_t *)field);
        return buffer;
    case OPT_REAL:
        snprintf(buffer, bytes, "%.9g", *(const double *)field);
        return buffer;
    case OPT_TEXT:
        return *(const char *const *)field != NULL ? *(const char *const *)field : "";
    case OPT_CHOICE:
        return choice_name(o, *(const int *)field, buffer, bytes);
    case OPT_PATHS:
        break;
    }
    return "";
}

const char *settings_choice(const char *name, int value, char *buffer, size_t bytes)
{
    const struct option *o = options;
    while (strcmp(o->name, name) != 0)
        o++;
    return choice_name(o, value, buffer, bytes);
}

void settings_visit(const struct command_info *c, const struct settings *s,
                    void (*visit)(void *user, const char *name, const char *value), void *user)
{
    char buffer[128];
    for (const struct option *o = options; o->name != NULL; o++) {
        const void *field = (const char *)s + o->offset;
        if (!(o->commands & c->bit))
            continue;
        char *list = o->kind == OPT_PATHS ? list_text(field) : NULL;
        visit(user, o->name, list != NULL ? list : value_text(o, field, buffer, sizeof buffer));
        free(list);
    }
}
