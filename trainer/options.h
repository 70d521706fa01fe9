/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h: a row of the option table, shared by the parser (options.c) and the help (help.c).
 */
#ifndef NOJIT_TRAINER_OPTIONS_H
#define NOJIT_TRAINER_OPTIONS_H

#include <stddef.h>

enum option_kind { OPT_FLAG, OPT_INT, OPT_REAL, OPT_TEXT, OPT_PATHS, OPT_CHOICE };

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
    double min, max;     /* inclusive bounds of OPT_INT and OPT_REAL */
    const char *help;
};

/* Ended by a row whose name is NULL. */
extern const struct option options[];

#endif
