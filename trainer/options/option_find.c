/* SPDX-License-Identifier: Apache-2.0
 *
 * option_find.c: names of options as users and other projects spell them, and near misses.
 */
#include "options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/edit_distance.h"
#include "io/error.h"
#include "options/settings.h"

const struct option *option_named(unsigned command, const char *word)
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
    int least = n < 5 ? 2 : n < 8 ? 3 : 4; /* short words match too much */
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

static bool is_end_of(const char *word, const char *whole)
{
    const size_t n = strlen(word), all = strlen(whole);
    return n >= 3 && n < all && strcmp(whole + all - n, word) == 0;
}

/* Return the nearest of some words. Exchanged letters, as in hlep, count two, which words of three letters or more may
 * have. */
const char *word_near(const char *word, const char *const *known, int count)
{
    const char *best = NULL;
    int least = strlen(word) < 3 ? 1 : 3;
    for (int i = 0; i < count; i++) {
        const int d = is_end_of(word, known[i]) ? 1 : edit_distance(word, known[i]);
        if (d < least) {
            least = d;
            best = known[i];
        }
    }
    return best;
}

const char *command_near(const char *word)
{
    const char *known[COMMANDS + 1] = {"help"};
    int count = 1;
    for (const struct command_info *c = commands; c->name != NULL; c++)
        known[count++] = c->name;
    return word_near(word, known, count);
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

/* List the commands that have this option, "`nojit eval`, `nojit plan`"; "" if there is none. */
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

/* Return whether `value` is one of "a|b", as a word in any case or as the same number. */
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

bool option_same(const struct option_match *m, const char *value)
{
    const struct option_foreign *f = m->foreign;
    if (f == NULL || value == NULL)
        return f != NULL;
    return f->same != NULL && (strcmp(f->same, "*") == 0 || is_among(f->same, value));
}

int option_refused(struct settings *s, int rc)
{
    if (rc != NJ_E_ARG)
        return rc;
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
    *out = (struct option_match){.o = NULL};
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
        if (strcmp(name, f->word) == 0) {
            out->foreign = f;
            return fail(NJ_E_ARG, "--%s: %s", out->word, f->remedy);
        }
    if (owners(name, others, sizeof others)[0] != '\0')
        return fail(NJ_E_ARG, "no option --%s here; it belongs to %s", out->word, others);
    const char *near = option_near(c->bit, name);
    return near != NULL
               ? fail(NJ_E_ARG, "unknown option --%s; did you mean --%s?", out->word, near)
               : fail(NJ_E_ARG, "unknown option --%s; see `nojit %s --help`", out->word, c->name);
}

const struct command_info planned_run = {.bit = CMD_DISTILL, .name = "distill"};

bool option_of_run(const struct command_info *c, const char *word, size_t bytes)
{
    struct option_match m;
    return c->bit == CMD_PLAN && option_match(c, word, bytes, &m) != 0 &&
           option_match(&planned_run, word, bytes, &m) == 0;
}
