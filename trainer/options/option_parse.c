/* SPDX-License-Identifier: Apache-2.0
 *
 * option_parse.c: a command line, by the table of options.
 */
#include "options/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/error.h"
#include "options/settings.h"

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
    const size_t n = strlen(word);
    int least = n < 5 ? 2 : n < 8 ? 3 : 4; /* a short word is near to too many */
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

/* Whether `value` is one of "a|b", as a word of any case or as the same number. */
static bool is_among(const char *list, const char *value)
{
    char *end;
    const double x = strtod(value, &end);
    const bool number = end != value && *end == '\0';
    for (size_t n; *list != '\0'; list += n + (list[n] == '|')) {
        n = strcspn(list, "|");
        if (strlen(value) == n && strncasecmp(list, value, n) == 0)
            return true;
        if (number && strtod(list, &end) == x && end == list + n)
            return true;
    }
    return false;
}

bool option_same(const struct command_info *c, const char *word, size_t bytes, const char *value)
{
    char name[64];
    struct option_match m;
    if (bytes >= sizeof name)
        return false;
    for (size_t k = 0; k < bytes; k++)
        name[k] = word[k] == '_' ? '-' : word[k];
    name[bytes] = '\0';
    for (const struct option_foreign *f = options_foreign; f->word != NULL; f++)
        if (strcmp(name, f->word) == 0 && !option_find(c->bit, name, &m))
            return value == NULL ||
                   (f->same != NULL && (strcmp(f->same, "*") == 0 || is_among(f->same, value)));
    return false;
}

int option_refused(struct settings *s, int err)
{
    if (err != NJ_E_ARG)
        return err;
    char **grown = realloc(s->refused, (s->refused_count + 1) * sizeof *grown);
    if (grown == NULL)
        return fail(NJ_E_NOMEM, "out of memory while reading the options");
    s->refused = grown;
    grown[s->refused_count] = strdup(fail_text());
    if (grown[s->refused_count] == NULL)
        return fail(NJ_E_NOMEM, "out of memory while reading the options");
    s->refused_count++;
    return 0;
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

/* Whether the option, or this spelling of it, needs no value. */
static bool is_flag(const struct option_match *m)
{
    return m->o->kind == OPT_FLAG || m->value != NULL;
}

bool option_or_auto(const struct option *o)
{
    return o->kind == OPT_INT && strstr(o->value_name, "|auto") != NULL;
}

static int parse_number(const struct option *o, const char *word, const char *value, void *field)
{
    char *end = NULL;
    errno = 0;
    const double x = strtod(value, &end);
    const bool whole = o->kind == OPT_INT;
    if (option_or_auto(o) && strcmp(value, "auto") == 0) {
        *(int64_t *)field = 0;
        return 0;
    }
    if (end == value || *end != '\0' || errno != 0 || !isfinite(x) || (whole && x != floor(x)))
        return fail(NJ_E_ARG, "--%s %s: not a %s", word, value, whole ? "whole number" : "number");
    if (x < o->min && o->max >= OPTION_COUNT_MAX)
        return fail(NJ_E_ARG, "--%s %s: must be %.10g or more", word, value, o->min);
    if (x < o->min || x > o->max)
        return fail(NJ_E_ARG, "--%s %s: must lie between %.10g and %.10g", word, value, o->min,
                    o->max);
    /* A run computes with floats: there 1e-46 is 0, which stands for never, and 0.99999999999 is 1. */
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

/* What we call a value that others call `value`. */
static const char *our_value(const struct option *o, const char *value)
{
    for (const struct option_alias *a = choice_aliases; a->word != NULL; a++)
        if (strcmp(a->name, o->name) == 0 && strcmp(a->word, value) == 0)
            return a->value;
    return value;
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

/* transformers 5 reads --warmup_steps below 1 as a share of all steps: ours is --warmup-ratio. */
static bool is_share_of_steps(const struct option *o, const char *value)
{
    char *end;
    const double x = strtod(value, &end);
    return o->offset == offsetof(struct settings, warmup_steps) && end != value && *end == '\0' &&
           x > 0 && x < 1;
}

static int set_share_of_steps(const char *word, const char *value, struct settings *s)
{
    const struct option *o = options;
    while (strcmp(o->name, "warmup-ratio") != 0)
        o++;
    s->warmup_steps = 0;
    return parse_number(o, word, value, &s->warmup_ratio);
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
        return is_share_of_steps(o, value) ? set_share_of_steps(word, value, s)
                                           : parse_number(o, word, value, field);
    case OPT_TEXT:
        *(const char **)field = our_value(o, value);
        return 0;
    case OPT_LIST:
        return add_path(field, value);
    case OPT_CHOICE:
        return parse_choice(o, word, value, field);
    }
    return NJ_E_ARG;
}

/* A flag that stands for a choice is off: where that choice was made, in a file, the default is back. */
static int unset_choice(const struct option_match *m, struct settings *s)
{
    int *field = (int *)(void *)((char *)s + m->o->offset);
    int chosen;
    const int err = parse_choice(m->o, m->word, m->value, &chosen);
    if (err || *field != chosen)
        return err;
    return parse_choice(m->o, m->word, m->o->initial, field);
}

int option_set(const struct option_match *m, const char *value, struct settings *s)
{
    if (!is_flag(m))
        return set_value(m->o, m->word, value, s);
    const int on = value == NULL ? 1 : truth(value);
    if (on < 0)
        return fail(NJ_E_ARG, "--%s %s: a flag; true or false, or no value", m->word, value);
    if (m->o->kind == OPT_FLAG)
        return set_value(m->o, m->word, value, s);
    return on ? set_value(m->o, m->word, m->value, s) : unset_choice(m, s);
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

/* How many arguments from argv[i] on no option begins with. */
static int values_at(int argc, char **argv, int i)
{
    int n = 0;
    while (i + n < argc && strncmp(argv[i + n], "--", 2) != 0)
        n++;
    return n;
}

/* An option that the command lacks; returns as parse_option() does. */
static int parse_foreign(const struct command_info *c, int argc, char **argv, int i, size_t n)
{
    const char *word = argv[i] + 2;
    const int values = word[n] == '=' ? 0 : values_at(argc, argv, i + 1);
    const char *value = word[n] == '=' ? word + n + 1 : values > 0 ? argv[i + 1] : "true";
    return values <= 1 && option_same(c, word, n, value) ? 1 + values : NJ_E_ARG;
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
        return parse_foreign(c, argc, argv, i, n);
    if (word[n] == '=') {
        err = option_set(&m, word + n + 1, s);
        return err ? err : 1;
    }
    if (is_flag(&m)) {
        const bool given = i + 1 < argc && truth(argv[i + 1]) >= 0;
        err = option_set(&m, given ? argv[i + 1] : NULL, s);
        return err ? err : 1 + given;
    }
    int used = 1;
    while (i + used < argc && (used == 1 || m.o->kind == OPT_LIST)) {
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
        if (n == 0 || option_match(c, word, n, &m) != 0 ||
            m.o->offset != offsetof(struct settings, config))
            continue;
        if (word[n] == '=')
            err = option_refused(s, option_file_read(c, word + n + 1, s));
        else if (i + 1 < argc)
            err = option_refused(s, option_file_read(c, argv[i + 1], s));
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
    s->argc = argc;
    s->argv = argv;
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
            used = add_path(&s->words, argv[i]) ? NJ_E_NOMEM : 1;
        else
            used = fail(NJ_E_ARG,
                        "unexpected argument '%s'; options start with --, see `nojit %s --help`",
                        argv[i], c->name);
        if (used < 0) {
            err = option_refused(s, used);
            used = 1 + values_at(argc, argv, i + 1);
        }
        i += used;
    }
    if (!err && s->refused_count > 0)
        err = fail(NJ_E_ARG, "%s", s->refused[s->refused_count - 1]);
    return err;
}

void settings_free(struct settings *s)
{
    for (const struct option *o = options; o->name != NULL; o++) {
        struct path_list *list = (void *)((char *)s + o->offset);
        if (o->kind == OPT_LIST) {
            free(list->path);
            *list = (struct path_list){0};
        }
    }
    free(s->words.path);
    for (size_t i = 0; i < s->kept_count; i++)
        free(s->kept[i]);
    free(s->kept);
    for (size_t i = 0; i < s->refused_count; i++)
        free(s->refused[i]);
    free(s->refused);
}
