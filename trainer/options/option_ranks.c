/* SPDX-License-Identifier: Apache-2.0
 *
 * option_ranks.c: the options that the ranks of a run compare.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "options/options.h"

static void put_words(FILE *to, const struct path_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        fprintf(to, " %s", list->path[i]);
}

static void put_value(FILE *to, const struct option *o, const struct settings *s)
{
    char buffer[64];
    const char *text = option_text(o, s, NULL, 0, buffer, sizeof buffer);
    const struct path_list *list = (const void *)((const char *)s + o->offset);
    const size_t given = o->kind == OPT_LIST ? list->count : text[0] != '\0';
    if (o->ranks == RANKS_GIVEN)
        fprintf(to, " of %zu path%s", given, plural((long long)given));
    else if (o->kind == OPT_LIST)
        put_words(to, list);
    else
        fprintf(to, " %s", text);
}

char *options_of_ranks(const char *command, const struct settings *s)
{
    char *text = NULL;
    size_t bytes = 0;
    const struct command_info *c = commands;
    while (c->name != NULL && strcmp(c->name, command) != 0)
        c++;
    FILE *to = open_memstream(&text, &bytes);
    if (to == NULL)
        return NULL;
    fprintf(to, "command %s\n", command);
    for (const struct option *o = options; o->name != NULL; o++)
        if ((o->commands & c->bit) && o->ranks != RANKS_FREE) {
            fprintf(to, "%s", o->name);
            put_value(to, o, s);
            fprintf(to, "\n");
        }
    const int failed = ferror(to);
    if (fclose(to) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}
