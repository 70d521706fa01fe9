/* SPDX-License-Identifier: Apache-2.0
 *
 * builtins.c: see builtins.h: the tables, by use.
 */
#include "template/builtins.h"

bool builtin_find(enum builtin_use use, const char *name, const struct builtin **out)
{
    static const struct {
        enum builtin_use use;
        const struct builtin *(*table)(size_t *count);
    } tables[] = {{BUILTIN_FILTER, filters_text},   {BUILTIN_FILTER, filters_list},
                  {BUILTIN_FILTER, filters_select}, {BUILTIN_FILTER, filters_web},
                  {BUILTIN_TEST, tests_all},        {BUILTIN_FUNCTION, functions_all}};
    *out = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && !*out; i++) {
        size_t count;
        const struct builtin *table = tables[i].table(&count);
        if (tables[i].use == use)
            *out = builtin_among(table, count, name, strlen(name));
    }
    return *out != NULL;
}

bool builtin_left_out(enum builtin_use use, const char *name)
{
    static const char *const filters[] = {"pprint", "random", "striptags", "urlize", "wordwrap"};
    for (size_t i = 0; use == BUILTIN_FILTER && i < sizeof filters / sizeof *filters; i++)
        if (strcmp(name, filters[i]) == 0)
            return true;
    return false;
}
