/* SPDX-License-Identifier: Apache-2.0
 *
 * settings.h: everything that a command line can say: the commands, and a value for each row of options.def.
 */
#ifndef NOJIT_TRAINER_SETTINGS_H
#define NOJIT_TRAINER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nojit.h"

struct path_list {
    const char **path; /* paths or other words: strings of argv or of settings.kept */
    size_t count;
    /* whether a --config file named them, so that the command line replaces them */
    bool from_file;
};

/* Types of options in struct settings. */
#define SETTING_FLAG bool
#define SETTING_INT int64_t
#define SETTING_REAL double
#define SETTING_TEXT const char *
#define SETTING_LIST struct path_list
#define SETTING_CHOICE int
#define OPTION(...) +1
#define OPTION_TOO(...) +1
enum {
    OPTION_ROWS = 0
#include "options/options.def"
};
#undef OPTION
#undef OPTION_TOO
#define OPTION(kind, field, ...) SETTING_##kind field;
#define OPTION_TOO(kind, field, ...)

/* A field for each option; 0 or NULL where the command has no such option. */
struct settings {
#include "options/options.def"
    /* whether a command line or a --config file named each row of the table */
    bool given[OPTION_ROWS];
    /* words that are not options, for a command that takes some */
    struct path_list words;
    /* sentences about what was refused */
    char **refused;
    size_t refused_count;
    /* arguments as settings_parse() got them */
    int argc;
    char **argv;
    /* values read from a --config file */
    char **kept;
    size_t kept_count;
};

#undef OPTION
#undef OPTION_TOO

enum { BATCH_AUTO = 0 }; /* value of settings.batch_size */
enum { GPUS_ALL = 0 };   /* value of settings.gpus */
enum report_to { REPORT_NONE, REPORT_TENSORBOARD };
enum dtype_choice { DTYPE_AUTO, DTYPE_F32, DTYPE_BF16, DTYPE_F16 };
enum student_dtype { STUDENT_AUTO, STUDENT_FP8 };
enum teacher_dtype {
    TEACHER_AUTO,
    TEACHER_BF16,
    TEACHER_FP8, /* weights are rounded, in this type and all that follow */
    TEACHER_Q8_0,
    TEACHER_Q6_K,
    TEACHER_Q5_K,
    TEACHER_Q4_K
};
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
    CMD_EXPORT = 2048,
    CMD_MODELS = 4096,
    CMD_CACHE = 8192,
};
enum { COMMANDS = 14 };

struct command_info {
    enum command bit;
    const char *name, *usage, *summary;
    /* descriptions, "NAME: ...", of its arguments without dashes; NULL: it takes none */
    const char *words;
};
/* All commands, ended by a row whose name is NULL; in commands.c. */
extern const struct command_info commands[COMMANDS + 1];

/* Fill s with the defaults of the command, then with the --config files that argv[0..argc) names, then with argv
 * itself. Return 0, 1 for --help, or NJ_E_ARG with a sentence that names the argument and, for a misspelled one, the
 * nearest. If several are refused, s->refused has a sentence for each, and the returned one is the last. */
int settings_parse(const struct command_info *c, int argc, char **argv, struct settings *s);
void settings_free(struct settings *s);
/* Return the nearest of some words, including a known one that ends in `word` ("tiny": "nojit-tiny"), or NULL. */
const char *word_near(const char *word, const char *const *known, int count);
/* Return the name of the nearest command, or NULL. */
const char *command_near(const char *word);

/* Return whether the option was named, with its default or another value. */
bool settings_given(const struct settings *s, const char *name);
/* Return a value of the option `name`, one with choices, as the command line spells it. */
const char *settings_choice(const char *name, int value, char *buffer, size_t bytes);

/* The value of an option as text; for one that takes a list, all values. */
struct setting {
    const char *name;
    const char **value;
    size_t count;
    bool list;
};
/* Call visit(user, setting) for every option of the command, in table order. */
void settings_visit(const struct command_info *c, const struct settings *s,
                    void (*visit)(void *user, const struct setting *setting), void *user);

#endif
