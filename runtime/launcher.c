/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher.c: the sentences of launchers that refuse: the values of a call, and the name of a missing variant.
 */
#include "launcher.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct sentence {
    char text[1024];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct sentence *s, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int n = vsnprintf(s->text + s->used, sizeof s->text - s->used, format, values);
    va_end(values);
    if (n > 0)
        s->used += (size_t)n;
    if (s->used >= sizeof s->text)
        s->used = sizeof s->text - 1;
}

static const char *type_name(enum nj_dtype T)
{
    return T == NJ_LP ? "lp" : T == NJ_F32 ? "f32" : "unknown";
}

static void add_number(struct sentence *s, const struct nj_number *n, const void *args)
{
    const char *at = (const char *)args + n->offset;
    int32_t narrow;
    int64_t wide;
    float real;
    add(s, ", %s=", n->name);
    if (n->type == NJ_NUMBER_F32)
        add(s, "%g", (double)*(float *)memcpy(&real, at, sizeof real));
    else if (n->type == NJ_NUMBER_I64)
        add(s, "%lld", (long long)*(int64_t *)memcpy(&wide, at, sizeof wide));
    else
        add(s, "%d", *(int32_t *)memcpy(&narrow, at, sizeof narrow));
}

int nj_call_refuse(const struct nj_call *call, const char *condition)
{
    struct sentence s = {.used = 0};
    add(&s, "T=%s", type_name(call->T));
    for (int i = 0; i < NJ_AXES_MAX && call->op->axes[i]; i++)
        add(&s, ", %s=%d", call->op->axes[i], call->axes[i]);
    for (int i = 0; call->args && i < call->op->number_count; i++)
        add_number(&s, &call->op->numbers[i], call->args);
    return nj_refuse(call->stream, call->op->name, condition, s.text);
}

int nj_call_no_kernel(const struct nj_call *call)
{
    struct sentence s = {.used = 0};
    add(&s, "%s.%s", call->op->name, type_name(call->T));
    for (int i = 0; i < NJ_AXES_MAX && call->op->axes[i]; i++) {
        add(&s, ".");
        for (const char *c = call->op->axes[i]; *c; c++)
            add(&s, "%c", *c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        add(&s, "%d", call->axes[i]);
    }
    return nj_no_kernel(call->stream, s.text);
}
