/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h: a row of the option table (options.def), and who else reads it: names (option_find.c), values
 * (option_set.c), the parsers (option_file.c, option_parse.c), the engine's options and the texts of receipts and
 * checkpoints (option_value.c), what ranks compare (option_ranks.c), help, completion.
 */
#ifndef NOJIT_TRAINER_OPTIONS_H
#define NOJIT_TRAINER_OPTIONS_H

#include <stddef.h>

#include "engine/engine.h"
#include "options/settings.h"

enum option_kind { OPT_FLAG, OPT_INT, OPT_REAL, OPT_TEXT, OPT_LIST, OPT_CHOICE };

/* What a resumed run may do with an option of `distill` and `train`. */
enum option_resume {
    RESUME_UNSAID,
    RESUME_SAME,      /* stored in settings.txt; a different value is refused */
    RESUME_ROLLOUTS,  /* the same, of a run with --on-policy */
    RESUME_SAID,      /* stored in progress.txt; a change is reported */
    RESUME_OTHERWISE, /* a hash, state.bin or another option decides */
    RESUME_FREE,      /* no effect on results beyond rounding */
};

/* How far an option may differ between the processes that share a run. */
enum option_ranks {
    RANKS_SAME,  /* not at all */
    RANKS_GIVEN, /* it names files, which each host may call otherwise: all ranks give as many */
    RANKS_FREE,  /* only rank 0's has an effect on what others see */
};

/* A number in struct train_options: its type, and where. */
struct engine_field {
    enum engine_type { ENGINE_NONE, ENGINE_INT, ENGINE_INT64, ENGINE_FLOAT, ENGINE_DOUBLE } type;
    size_t offset;
};

struct option {
    const char *name;  /* without dashes; '_' in what the user writes counts as '-' */
    const char *alias; /* Hugging Face spelling, or NULL */
    enum option_kind kind;
    unsigned commands; /* bits of enum command */
    size_t offset;     /* in struct settings */
    const char *group;
    const char
        *value_name; /* "DIR"; for OPT_CHOICE the choices, "a|b|c", in the order of their enum */
    const char *initial; /* default as text, or NULL */
    const char *zero;    /* what trainers of other projects write for 0 of an OPT_INT, or NULL */
    double min, max;     /* inclusive bounds of OPT_INT and OPT_REAL */
    double unit;         /* bytes of 1, where a value may have a unit ("24GB"); 0: none may */
    enum option_resume resume;
    enum option_ranks ranks;
    struct engine_field applied; /* then it is in the receipt's `applied`, too */
    const char *help;
};

/* The word that an OPT_INT takes, too, kept as 0: "auto" where its value_name is "N|auto"; NULL: none. */
const char *option_word(const struct option *o);

/* Bound of counts that have none of their own. */
#define OPTION_COUNT_MAX 1e15

/* Ended by a row whose name is NULL. */
extern const struct option options[];

/* Further spellings, in option_aliases.c; both tables end with a row whose word is NULL. */
struct option_alias {
    const char *word;  /* what trainers of other projects call it */
    const char *name;  /* ours; a word may have several, for different commands */
    const char *value; /* NULL: the word takes the option's value; else it is a flag that sets this
                          value */
};
extern const struct option_alias option_aliases[];
struct option_foreign {
    const char *word;
    const char *remedy; /* why there is no such option, and what to do */
    const char *same;   /* values that ask for what is done anyway, "a|b"; "*": any; NULL: none */
};
extern const struct option_foreign options_foreign[];
/* Other names of a choice's values: word is the value, name the option, value ours. */
extern const struct option_alias choice_aliases[];

struct path_list;

/* What a word that names an option stands for. */
struct option_match {
    const struct option *o;               /* NULL: none of the command's */
    const struct option_foreign *foreign; /* then what other projects have by that name, or NULL */
    const char *value;                    /* as in struct option_alias */
    char word[64];                        /* as the user spelt it, for messages */
};

/* The option with this name or Hugging Face spelling of any of the commands (bits); NULL: none. */
const struct option *option_named(unsigned command, const char *word);
/* Finds word[0..bytes), in which '_' counts as '-'; NJ_E_ARG with the commands that have it, or with
 * the near miss. */
int option_match(const struct command_info *c, const char *word, size_t bytes,
                 struct option_match *out);
/* The run that `nojit plan` plans. */
extern const struct command_info planned_run;
/* Whether a plan passes over an option of that run: it needs neither data nor an output folder. */
bool option_of_run(const struct command_info *c, const char *word, size_t bytes);
/* Whether a word of other projects asks, with this value, for what is done anyway: then it is passed over.
 * NULL: a value that a file leaves unset, which asks for nothing. */
bool option_same(const struct option_match *m, const char *value);
/* Notes a refusal, NJ_E_ARG with its sentence, so that others are found too: returns 0. Other codes stay. */
int option_refused(struct settings *s, int rc);
/* Sets one value; a flag's is true or false, and NULL is true. */
int option_set(const struct option_match *m, const char *value, struct settings *s);

/* Sets the defaults of a command; s is zeroed. */
int option_defaults(unsigned command, struct settings *s);
/* Whether the word takes no value. */
bool option_is_flag(const struct option_match *m);
/* 1 or 0 for a word that says true or false, -1 for any other. */
int option_truth(const char *word);
/* Appends a copy of path. */
int option_add_path(struct path_list *list, const char *path);

/* Puts the values of all options that have .applied where the engine has them. */
void options_apply(const struct settings *s, struct train_options *t);
/* The value of such an option as the engine has it; of a choice, its number. */
double option_applied(const struct option *o, const struct train_options *t);
/* That, or the setting's where there is no .applied, as text of so many digits; 0: as few as give the same number. */
const char *option_text(const struct option *o, const struct settings *s,
                        const struct train_options *t, int digits, char *buffer, size_t bytes);

/* Notes which options were given that have no effect beside the others. */
void options_note_idle(const struct command_info *c, const struct settings *s);

/* Returns what all ranks of a run must agree on, a line "name value" for each option of the command; to be freed. NULL:
 * there is no memory. */
char *options_of_ranks(const char *command, const struct settings *s);

/* Applies a YAML file of options; those that it may not hold are noted by option_refused(). */
int option_file_read(const struct command_info *c, const char *path, struct settings *s);

#endif
