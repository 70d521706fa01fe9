/* SPDX-License-Identifier: Apache-2.0
 *
 * option_set.c: values of options, from text into struct settings.
 */
#include "options/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/error.h"
#include "options/settings.h"

bool option_is_flag(const struct option_match *m)
{
    return m->o->kind == OPT_FLAG || m->value != NULL;
}

const char *option_word(const struct option *o)
{
    const char *bar = o->kind == OPT_INT ? strchr(o->value_name, '|') : NULL;
    return bar != NULL ? bar + 1 : NULL;
}

/* Return the bytes of a unit, "GB" or "GiB" in any case; 0: it is none. */
static double unit_bytes(const char *word)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"B", 1},      {"KB", 1e3},      {"MB", 1e6},      {"GB", 1e9},    {"TB", 1e12},
                 {"KiB", 1024}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 0x1p40}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcasecmp(word, units[i].name) == 0)
            return units[i].bytes;
    return 0;
}

/* Read a number, which a unit may follow if the option has one. *end is the place where it ends. */
static double read_number(const struct option *o, const char *value, char **end)
{
    const double x = strtod(value, end);
    const double bytes = o->unit > 0 && *end != value ? unit_bytes(*end + strspn(*end, " ")) : 0;
    if (bytes == 0)
        return x;
    *end += strlen(*end);
    return o->kind == OPT_INT ? floor(x * bytes / o->unit) : x * bytes / o->unit;
}

static int parse_number(const struct option *o, const char *word, const char *value, void *field)
{
    char *end = NULL;
    errno = 0;
    const double x = read_number(o, value, &end);
    const bool whole = o->kind == OPT_INT;
    const char *instead = option_word(o);
    if ((instead != NULL && strcmp(value, instead) == 0) ||
        (o->zero != NULL && strcmp(value, o->zero) == 0)) {
        *(int64_t *)field = 0;
        return 0;
    }
    if (o->unit > 0 && end != value && *end != '\0')
        return fail(NJ_E_ARG,
                    "--%s %s: a size is a number, alone or before B, KB, MB, GB, TB, KiB, MiB, GiB "
                    "or TiB",
                    word, value);
    if (end == value || *end != '\0' || errno != 0 || !isfinite(x) || (whole && x != floor(x)))
        return fail(NJ_E_ARG, "--%s %s: not a %s", word, value, whole ? "whole number" : "number");
    if (x < o->min && o->max >= OPTION_COUNT_MAX)
        return fail(NJ_E_ARG, "--%s %s: must be %.10g or more", word, value, o->min);
    if (x < o->min || x > o->max)
        return fail(NJ_E_ARG, "--%s %s: must lie between %.10g and %.10g", word, value, o->min,
                    o->max);
    /* A run computes with floats: as floats, 1e-46 is 0, which stands for never, and 0.99999999999 is 1. */
    const float kept = (float)x;
    if (!whole && ((x != 0 && kept == 0) || (x < o->max && (double)kept >= o->max)))
        return fail(NJ_E_ARG,
                    "--%s %s: rounds to %.9g in float32; give that value or one that float32 can "
                    "represent",
                    word, value, (double)kept);
    if (whole)
        *(int64_t *)field = (int64_t)x;
    else
        *(double *)field = x;
    return 0;
}

/* Return 1 or 0 for the words of YAML 1.1 and Python, otherwise -1. */
int option_truth(const char *word)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (int i = 0; i < 6; i++)
        if (strcasecmp(word, words[i]) == 0)
            return i % 2;
    return -1;
}

/* Return our name for a value that others call `value`. */
static const char *alias_of(const struct option *o, const char *value)
{
    for (const struct option_alias *a = choice_aliases; a->word != NULL; a++)
        if (strcmp(a->name, o->name) == 0 && strcmp(a->word, value) == 0)
            return a->value;
    return NULL;
}

/* Return our spelling of a value; all words for true, and all for false, are equivalent. */
static const char *our_value(const struct option *o, const char *value)
{
    const int truth = option_truth(value);
    const char *plain = truth < 0 ? value : truth ? "true" : "false";
    const char *ours = alias_of(o, plain);
    return ours != NULL ? ours : o->kind == OPT_CHOICE ? plain : value;
}

static int parse_choice(const struct option *o, const char *word, const char *value, int *field)
{
    const char *said = value;
    const char *p = o->value_name;
    value = our_value(o, value);
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

int option_add_path(struct path_list *list, const char *path)
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

/* Return whether a value is a share of all steps: transformers 5 reads --warmup_steps below 1 so, which is our
 * --warmup-ratio. */
static bool is_share_of_steps(const struct option *o, const char *value)
{
    char *end;
    const double x = strtod(value, &end);
    return o->offset == offsetof(struct settings, warmup_steps) && end != value && *end == '\0' &&
           x > 0 && x < 1;
}

static int set_share_of_steps(const char *word, const char *value, struct settings *s)
{
    s->warmup_steps = 0;
    return parse_number(option_named(CMD_TRAIN, "warmup-ratio"), word, value, &s->warmup_ratio);
}

/* Set the value of an option; word: the user's name for it. */
static int set_value(const struct option *o, const char *word, const char *value,
                     struct settings *s)
{
    void *field = (char *)s + o->offset;
    switch (o->kind) {
    case OPT_FLAG:
        *(bool *)field = value == NULL || option_truth(value) == 1;
        return 0;
    case OPT_INT:
    case OPT_REAL:
        return is_share_of_steps(o, value) ? set_share_of_steps(word, value, s)
                                           : parse_number(o, word, value, field);
    case OPT_TEXT:
        *(const char **)field = our_value(o, value);
        return 0;
    case OPT_LIST:
        return option_add_path(field, value);
    case OPT_CHOICE:
        return parse_choice(o, word, value, field);
    }
    return NJ_E_ARG;
}

/* Switch off a flag that stands for a choice: if that choice was made in a file, the default is restored. */
static int unset_choice(const struct option_match *m, struct settings *s)
{
    int *field = (int *)(void *)((char *)s + m->o->offset);
    int chosen;
    const int rc = parse_choice(m->o, m->word, m->value, &chosen);
    if (rc != 0 || *field != chosen)
        return rc;
    return parse_choice(m->o, m->word, m->o->initial, field);
}

int option_set(const struct option_match *m, const char *value, struct settings *s)
{
    s->given[m->o - options] = true;
    if (!option_is_flag(m))
        return set_value(m->o, m->word, value, s);
    const int on = value == NULL ? 1 : option_truth(value);
    if (on < 0)
        return fail(NJ_E_ARG, "--%s %s: a flag; true or false, or no value", m->word, value);
    if (m->o->kind == OPT_FLAG)
        return set_value(m->o, m->word, value, s);
    return on ? set_value(m->o, m->word, m->value, s) : unset_choice(m, s);
}

int option_defaults(unsigned command, struct settings *s)
{
    memset(s, 0, sizeof *s);
    for (const struct option *o = options; o->name != NULL; o++) {
        if (!(o->commands & command) || o->initial == NULL)
            continue;
        TRY(set_value(o, o->name, o->initial, s));
    }
    return 0;
}
