/* SPDX-License-Identifier: Apache-2.0
 *
 * option_text.c: the values of options as text, for receipts and for those who go on from them.
 */
#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "settings.h"

static const char *choice_name(const struct option *o, int value, char *buffer, size_t bytes)
{
    const char *p = o->value_name;
    for (; value > 0; value--)
        p += strcspn(p, "|") + 1;
    snprintf(buffer, bytes, "%.*s", (int)strcspn(p, "|"), p);
    return buffer;
}

/* The words with a space between each two; NULL without memory. */
static char *list_text(const struct path_list *list)
{
    size_t bytes = 1, used = 0;
    for (size_t i = 0; i < list->count; i++)
        bytes += strlen(list->path[i]) + 1;
    char *joined = calloc(bytes, 1);
    for (size_t i = 0; i < list->count && joined != NULL; i++)
        used += (size_t)snprintf(joined + used, bytes - used, "%s%s", i ? " " : "", list->path[i]);
    return joined;
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
                    void (*visit)(void *user, const char *name, const char *value), void *user)
{
    char buffer[128];
    for (const struct option *o = options; o->name != NULL; o++) {
        const void *field = (const char *)s + o->offset;
        if (!(o->commands & c->bit))
            continue;
        char *list = o->kind == OPT_PATHS ? list_text(field) : NULL;
        visit(user, o->name, list != NULL ? list : value_text(o, field, buffer, sizeof buffer));
        free(list);
    }
}
