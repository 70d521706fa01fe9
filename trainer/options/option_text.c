/* SPDX-License-Identifier: Apache-2.0
 *
 * option_text.c: the values of options as text, for receipts and for those who go on from them.
 */
#include "options/options.h"

#include <stdio.h>
#include <string.h>

#include "options/settings.h"

static const char *choice_name(const struct option *o, int value, char *buffer, size_t bytes)
{
    const char *p = o->value_name;
    for (; value > 0; value--)
        p += strcspn(p, "|") + 1;
    snprintf(buffer, bytes, "%.*s", (int)strcspn(p, "|"), p);
    return buffer;
}

static const char *value_text(const struct option *o, const void *field, char *buffer, size_t bytes)
{
    switch (o->kind) {
    case OPT_FLAG:
        return *(const bool *)field ? "true" : "false";
    case OPT_INT:
        if (option_or_auto(o) && *(const int64_t *)field == 0)
            return "auto";
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
                    void (*visit)(void *user, const struct setting *setting), void *user)
{
    char buffer[128];
    for (const struct option *o = options; o->name != NULL; o++) {
        const void *field = (const char *)s + o->offset;
        if (!(o->commands & c->bit))
            continue;
        const struct path_list *list = field;
        const char *text = value_text(o, field, buffer, sizeof buffer);
        struct setting setting = {.name = o->name, .value = &text, .count = 1};
        if (o->kind == OPT_PATHS)
            setting = (struct setting){o->name, list->path, list->count, true};
        visit(user, &setting);
    }
}
