/* SPDX-License-Identifier: Apache-2.0
 *
 * arguments.c: matches arguments of builtins to their parameters.
 */
#include "template/builtins.h"

#include "io/error.h"

enum { PARAMETERS_MOST = 8 };

const struct builtin *builtin_among(const struct builtin *table, size_t count, const char *name,
                                    size_t bytes)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(table[i].name) == bytes && memcmp(table[i].name, name, bytes) == 0)
            return &table[i];
    return NULL;
}

/* Return the position of a parameter; -1: there is none of this name. */
static int place_of(const char *parameters, const struct value *name)
{
    int place = 0;
    for (const char *p = parameters; *p; place++) {
        const size_t n = strcspn(p, " ");
        if (n == name->bytes && memcmp(p, name->text, n) == 0)
            return place;
        p += n + (p[n] == ' ');
    }
    return -1;
}

static size_t count_parameters(const char *parameters)
{
    size_t count = *parameters != '\0';
    for (const char *p = parameters; *p; p++)
        count += *p == ' ';
    return count;
}

static int put_named(struct run *r, const struct builtin *b, const struct arguments *a,
                     struct value *slots)
{
    for (size_t i = 0; i < a->named_count; i++) {
        const struct value *name = &a->named[i].key;
        const int place = place_of(b->parameters, name);
        if (place < 0 || value_given(&slots[place]))
            return run_fail(r, "%s() %s %.*s", b->name,
                            place < 0 ? "has no argument" : "is given twice its argument",
                            (int)(name->bytes > 64 ? 64 : name->bytes), name->text);
        slots[place] = a->named[i].value;
    }
    return 0;
}

int builtin_call(struct run *r, const struct builtin *b, const struct arguments *a,
                 struct value *out)
{
    struct value slots[PARAMETERS_MOST] = {0};
    if (!b->parameters)
        return b->run(r, a, out);
    const size_t count = count_parameters(b->parameters);
    if (a->count > count)
        return run_fail(r, "%s() takes at most %zu arguments, it has %zu", b->name, count,
                        a->count);
    for (size_t i = 0; i < a->count; i++)
        slots[i] = a->at[i];
    TRY(put_named(r, b, a, slots));
    for (size_t i = 0; i < b->required; i++)
        if (!value_given(&slots[i]))
            return run_fail(r,
                            "%s() needs %zu argument%s, counting the value that it is applied to",
                            b->name, b->required, b->required == 1 ? "" : "s");
    const struct arguments placed = {.at = slots, .count = count};
    return b->run(r, &placed, out);
}

int argument_text(struct run *r, const struct value *v, const char *name)
{
    return v->kind == VALUE_STRING ? 0 : run_type_error(r, name, v);
}

int argument_whole(struct run *r, const struct value *v, const char *name, int64_t otherwise,
                   int64_t *out)
{
    *out = otherwise;
    if (v->kind == VALUE_ABSENT || v->kind == VALUE_NONE)
        return 0;
    if (!value_is_whole(v))
        return run_type_error(r, name, v);
    *out = v->whole;
    return 0;
}
