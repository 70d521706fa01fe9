/* SPDX-License-Identifier: Apache-2.0
 *
 * option_parse.c: a command line, by the table of options.
 */
#include "options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/error.h"
#include "io/notes.h"
#include "options/settings.h"

/* Return the number of arguments from argv[i] on before the next option. */
static int values_at(int argc, char **argv, int i)
{
    int n = 0;
    while (i + n < argc && strncmp(argv[i + n], "--", 2) != 0)
        n++;
    return n;
}

/* Parse an option that the command lacks; return as parse_option() does. */
static int parse_foreign(const struct option_match *m, int argc, char **argv, int i, size_t n)
{
    const char *word = argv[i] + 2;
    const int values = word[n] == '=' ? 0 : values_at(argc, argv, i + 1);
    const char *value = word[n] == '=' ? word + n + 1 : values > 0 ? argv[i + 1] : "true";
    return values <= 1 && option_same(m, value) ? 1 + values : NJ_E_ARG;
}

/* Parse one option and its values, starting at argv[i]; return how many arguments it took, or a negative code. */
static int parse_option(const struct command_info *c, int argc, char **argv, int i,
                        struct settings *s)
{
    struct option_match m;
    const char *word = argv[i] + 2;
    const size_t n = strcspn(word, "=");
    int rc = option_match(c, word, n, &m);
    if (rc != 0)
        return parse_foreign(&m, argc, argv, i, n);
    if (word[n] == '=') {
        rc = option_set(&m, word + n + 1, s);
        return rc != 0 ? rc : 1;
    }
    if (option_is_flag(&m)) {
        const bool given = i + 1 < argc && option_truth(argv[i + 1]) >= 0;
        rc = option_set(&m, given ? argv[i + 1] : NULL, s);
        return rc != 0 ? rc : 1 + given;
    }
    int used = 1;
    while (i + used < argc && (used == 1 || m.o->kind == OPT_LIST)) {
        const char *value = argv[i + used];
        if (strncmp(value, "--", 2) == 0)
            break;
        rc = option_set(&m, value, s);
        if (rc != 0)
            return rc;
        used++;
    }
    if (used == 1)
        return fail(NJ_E_ARG, "--%s needs a value (%s)", m.word, m.o->value_name);
    return used;
}

/* Options of a run that a plan does not need, as the command line has them. */
struct passed {
    char names[512];
    size_t used;
};

/* Ignore one of them, once its value is checked; return as parse_option() does. */
static int pass_option(int argc, char **argv, int i, struct passed *p)
{
    struct settings unused = {0};
    int used = option_defaults(planned_run.bit, &unused);
    if (!used)
        used = parse_option(&planned_run, argc, argv, i, &unused);
    settings_free(&unused);
    if (used > 0 && p->used < sizeof p->names)
        p->used += (size_t)snprintf(p->names + p->used, sizeof p->names - p->used, "%s%.*s",
                                    p->used > 0 ? ", " : "", (int)strcspn(argv[i], "="), argv[i]);
    return used;
}

/* Apply the --config files, which come before the command line, whatever the order. A mistake in an option is left to
 * the parser proper. */
static int apply_files(const struct command_info *c, int argc, char **argv, struct settings *s)
{
    struct option_match m;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i] + 2;
        const size_t n = strncmp(argv[i], "--", 2) == 0 ? strcspn(word, "=") : 0;
        if (n == 0 || option_match(c, word, n, &m) != 0 ||
            m.o->offset != offsetof(struct settings, config))
            continue;
        if (word[n] == '=')
            TRY(option_refused(s, option_file_read(c, word + n + 1, s)));
        else if (i + 1 < argc)
            TRY(option_refused(s, option_file_read(c, argv[i + 1], s)));
    }
    return 0;
}

/* Return whether --help is among the arguments. No value starts with two dashes, so it is not a value. */
static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0)
            return true;
    return false;
}

int settings_parse(const struct command_info *c, int argc, char **argv, struct settings *s)
{
    struct passed passed = {.used = 0};
    int rc = option_defaults(c->bit, s);
    s->argc = argc;
    s->argv = argv;
    if (asks_for_help(argc, argv))
        return 1;
    if (rc == 0)
        rc = apply_files(c, argc, argv, s);
    for (int i = 0; i < argc && rc == 0;) {
        int used = 1;
        if (strcmp(argv[i], "-h") == 0)
            return 1;
        if (strncmp(argv[i], "--", 2) == 0)
            used = option_of_run(c, argv[i] + 2, strcspn(argv[i] + 2, "="))
                       ? pass_option(argc, argv, i, &passed)
                       : parse_option(c, argc, argv, i, s);
        else if (c->words != NULL)
            used = option_add_path(&s->words, argv[i]) ? NJ_E_NOMEM : 1;
        else
            used = fail(NJ_E_ARG,
                        "unexpected argument '%s'; options start with --, see `nojit %s --help`",
                        argv[i], c->name);
        if (used < 0) {
            rc = option_refused(s, used);
            used = 1 + values_at(argc, argv, i + 1);
        }
        i += used;
    }
    if (passed.used > 0)
        note("ignored, since a plan does not need them: %s", passed.names);
    if (rc == 0 && s->refused_count > 0)
        rc = fail(NJ_E_ARG, "%s", s->refused[s->refused_count - 1]);
    return rc;
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
