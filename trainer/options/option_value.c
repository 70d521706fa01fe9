/* SPDX-License-Identifier: Apache-2.0
 *
 * option_value.c: option values as engine fields and as text for receipts and checkpoints.
 */
#include "options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/settings.h"

/* ---- as numbers ---- */

static double setting_number(const struct option *o, const struct settings *s)
{
    const void *field = (const char *)s + o->offset;
    switch (o->kind) {
    case OPT_FLAG:
        return *(const bool *)field;
    case OPT_INT:
        return (double)*(const int64_t *)field;
    case OPT_REAL:
        return *(const double *)field;
    case OPT_CHOICE:
        return *(const int *)field;
    case OPT_TEXT:
    case OPT_LIST:
        break;
    }
    return 0;
}

void options_apply(const struct settings *s, struct train_options *t)
{
    for (const struct option *o = options; o->name != NULL; o++) {
        void *field = (char *)t + o->applied.offset;
        const double x = setting_number(o, s);
        switch (o->applied.type) {
        case ENGINE_NONE:
            break;
        case ENGINE_INT:
            *(int *)field = (int)x;
            break;
        case ENGINE_INT64:
            *(int64_t *)field = (int64_t)x;
            break;
        case ENGINE_FLOAT:
            *(float *)field = (float)x;
            break;
        case ENGINE_DOUBLE:
            *(double *)field = x;
            break;
        }
    }
}

double option_applied(const struct option *o, const struct train_options *t)
{
    const void *field = (const char *)t + o->applied.offset;
    switch (o->applied.type) {
    case ENGINE_INT:
        return *(const int *)field;
    case ENGINE_INT64:
        return (double)*(const int64_t *)field;
    case ENGINE_FLOAT:
        return (double)*(const float *)field;
    case ENGINE_DOUBLE:
        return *(const double *)field;
    case ENGINE_NONE:
        break;
    }
    return 0;
}

/* ---- as text ---- */

static const char *choice_name(const struct option *o, int value, char *buffer, size_t bytes)
{
    const char *p = o->value_name;
    for (; value > 0; value--)
        p += strcspn(p, "|") + 1;
    snprintf(buffer, bytes, "%.*s", (int)strcspn(p, "|"), p);
    return buffer;
}

static const char *real_text(double x, int digits, char *buffer, size_t bytes)
{
    enum { ENOUGH = 15, ALWAYS = 17 };
    snprintf(buffer, bytes, "%.*g", digits > 0 ? digits : ENOUGH, x);
    if (digits == 0 && strtod(buffer, NULL) != x)
        snprintf(buffer, bytes, "%.*g", ALWAYS, x);
    return buffer;
}

static const char *number_text(const struct option *o, double x, int digits, char *buffer,
                               size_t bytes)
{
    if (o->kind == OPT_FLAG)
        return x != 0 ? "true" : "false";
    if (o->kind == OPT_CHOICE)
        return choice_name(o, (int)x, buffer, bytes);
    if (option_word(o) != NULL && x == 0)
        return option_word(o);
    if (o->kind == OPT_INT)
        digits = 17; /* enough digits for a whole number */
    return real_text(x, digits, buffer, bytes);
}

const char *option_text(const struct option *o, const struct settings *s,
                        const struct train_options *t, int digits, char *buffer, size_t bytes)
{
    if (o->kind == OPT_LIST)
        return "";
    if (o->kind == OPT_TEXT) {
        const char *text = *(const char *const *)(const void *)((const char *)s + o->offset);
        return text != NULL ? text : "";
    }
    const bool applied = t != NULL && o->applied.type != ENGINE_NONE;
    return number_text(o, applied ? option_applied(o, t) : setting_number(o, s), digits, buffer,
                       bytes);
}

const char *settings_choice(const char *name, int value, char *buffer, size_t bytes)
{
    return choice_name(option_named(~0u, name), value, buffer, bytes);
}

bool settings_given(const struct settings *s, const char *name)
{
    for (int i = 0; i < OPTION_ROWS; i++)
        if (s->given[i] && strcmp(options[i].name, name) == 0)
            return true;
    return false;
}

void settings_visit(const struct command_info *c, const struct settings *s,
                    void (*visit)(void *user, const struct setting *setting), void *user)
{
    char buffer[128];
    for (const struct option *o = options; o->name != NULL; o++) {
        const void *field = (const char *)s + o->offset;
        if (!(o->commands & c->bit))
            continue;
        const struct path_list *list = field;
        const char *text = option_text(o, s, NULL, 0, buffer, sizeof buffer);
        struct setting setting = {.name = o->name, .value = &text, .count = 1};
        if (o->kind == OPT_LIST)
            setting = (struct setting){o->name, list->path, list->count, true};
        visit(user, &setting);
    }
}
