/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h: a row of the option table (options.def), and its other readers: names (option_find.c), values
 * (option_set.c), the parsers (option_file.c, option_parse.c), the engine's options and the texts of receipts and
 * checkpoints (option_value.c), the comparison between ranks (option_ranks.c), help, completion.
 */
#ifndef NOJIT_TRAINER_OPTIONS_H
#define NOJIT_TRAINER_OPTIONS_H

#include <stddef.h>

#include "engine/engine.h"
#include "options/settings.h"

enum option_kind { OPT_FLAG, OPT_INT, OPT_REAL, OPT_TEXT, OPT_LIST, OPT_CHOICE };

/* The treatment of an option of `distill` and `train` by a resumed run. */
enum option_resume {
    RESUME_UNSAID,
    RESUME_SAME,      /* stored in settings.txt; a different value is refused */
    RESUME_ROLLOUTS,  /* the same in a run with --on-policy */
    RESUME_SAID,      /* stored in progress.txt; a change is reported */
    RESUME_OTHERWISE, /* a hash, state.bin or another option decides */
    RESUME_FREE,      /* no effect on results beyond rounding */
};

/* How far an option may differ between the processes that share a run. */
enum option_ranks {
    RANKS_SAME,  /* no difference at all */
    RANKS_GIVEN, /* paths, which each host may name differently: all ranks give the same number */
    RANKS_FREE,  /* only the value of rank 0 has an effect on what others see */
};

/* A number in struct train_options: its type and offset. */
struct engine_field {
    enum engine_type { ENGINE_NONE, ENGINE_INT, ENGINE_INT64, ENGINE_FLOAT, ENGINE_DOUBLE } type;
    size_t offset;
};

struct option {
    const char *name;  /* name without dashes; '_' in the user's spelling counts as '-' */
    const char *alias; /* Hugging Face spelling, or NULL */
    enum option_kind kind;
    unsigned commands; /* bits of enum command */
    size_t offset;     /* offset of the field in struct settings */
    const char *group;
    const char
        *value_name; /* "DIR"; for OPT_CHOICE its choices, "a|b|c", in the order of their enum */
    const char *initial; /* default as text, or NULL */
    const char *zero;    /* other projects' value for 0 of an OPT_INT, or NULL */
    double min, max;     /* inclusive bounds of OPT_INT and OPT_REAL */
    /* number of bytes that 1 stands for, where a value may have a unit ("24GB"); 0: none may */
    double unit;
    enum option_resume resume;
    enum option_ranks ranks;
    /* field of the engine's options, if any; then the receipt's `applied` has it, too */
    struct engine_field applied;
    const char *help;
};

/* Return the word that an OPT_INT also takes, kept as 0: "auto" where its value_name is "N|auto"; NULL: none. */
const char *option_word(const struct option *o);

/* The bound of counts that have none of their own. */
#define OPTION_COUNT_MAX 1e15

/* The option table, ended by a row whose name is NULL. */
extern const struct option options[];

/* Further spellings, in option_aliases.c; both tables end with a row whose word is NULL. */
struct option_alias {
    const char *word; /* name in other projects */
    const char *name; /* our name; a word may have several, for different commands */
    /* NULL: the word takes the option's value; otherwise it is a flag that sets this value */
    const char *value;
};
extern const struct option_alias option_aliases[];
struct option_foreign {
    const char *word;
    const char *remedy; /* reason why there is no such option, and advice */
    const char *same;   /* values, "a|b", that ask for what is done anyway; "*": any; NULL: none */
};
extern const struct option_foreign options_foreign[];
/* Other names for the values of a choice: word is the value, name the option, value our value. */
extern const struct option_alias choice_aliases[];

struct path_list;

/* The meaning of a word that names an option. */
struct option_match {
    const struct option *o; /* option; NULL: the command has no such option */
    /* option of other projects by that name if o is NULL, or NULL */
    const struct option_foreign *foreign;
    const char *value; /* value as in struct option_alias */
    char word[64];     /* the user's spelling, for messages */
};

/* Return the option with this name or Hugging Face spelling of any of the commands (bits); NULL: none. */
const struct option *option_named(unsigned command, const char *word);
/* Find word[0..bytes), in which '_' counts as '-'; otherwise return NJ_E_ARG with the commands that have it, or with
 * the nearest name. */
int option_match(const struct command_info *c, const char *word, size_t bytes,
                 struct option_match *out);
/* The run that `nojit plan` plans. */
extern const struct command_info planned_run;
/* Return whether a plan ignores an option of that run: it needs neither data nor an output folder. */
bool option_of_run(const struct command_info *c, const char *word, size_t bytes);
/* Return whether a word of other projects asks, with this value, for what is done anyway, so that it is ignored. NULL:
 * a value that a file leaves unset, which asks for nothing. */
bool option_same(const struct option_match *m, const char *value);
/* Note a refusal, NJ_E_ARG with its sentence, and return 0, so that others are found too. Return other codes as they
 * are. */
int option_refused(struct settings *s, int rc);
/* Set one value; a flag's is true or false, and NULL is true. */
int option_set(const struct option_match *m, const char *value, struct settings *s);

/* Set the defaults of a command; s is zeroed. */
int option_defaults(unsigned command, struct settings *s);
/* Return whether the word takes no value. */
bool option_is_flag(const struct option_match *m);
/* Return 1 or 0 for a word that says true or false, -1 for any other. */
int option_truth(const char *word);
/* Append a copy of path. */
int option_add_path(struct path_list *list, const char *path);

/* Copy the values of all options that have .applied into the engine's options. */
void options_apply(const struct settings *s, struct train_options *t);
/* Return the value of such an option as the engine has it; for a choice, its number. */
double option_applied(const struct option *o, const struct train_options *t);
/* Write that value, or the setting's where there is no .applied, as text with `digits` digits; 0: as few as give the
 * same number. */
const char *option_text(const struct option *o, const struct settings *s,
                        const struct train_options *t, int digits, char *buffer, size_t bytes);

/* Note which options were given that have no effect in combination with the others. */
void options_note_idle(const struct command_info *c, const struct settings *s);

/* Return what all ranks of a run must agree on, a line "name value" for each option of the command; the caller frees
 * it. NULL: out of memory. */
char *options_of_ranks(const char *command, const struct settings *s);

/* Apply a YAML file of options; options that it may not hold are noted by option_refused(). */
int option_file_read(const struct command_info *c, const char *path, struct settings *s);

#endif
