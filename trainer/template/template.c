/* SPDX-License-Identifier: Apache-2.0
 *
 * template.c: see template.h.
 */
#include "template/template.h"

#include "base/utf8.h"
#include "io/error.h"
#include "template/builtins.h"
#include "template/evaluate.h"
#include "template/syntax.h"

#include <stdlib.h>

enum {
    TEMPLATE_MEMORY_MOST = 256 << 20,
    RUN_MEMORY_MOST = 512 << 20,
    OUTPUT_MOST = 256 << 20,
    STEPS_MOST = 50 * 1000 * 1000
};

/* ---- parsing ---- */

static int check_utf8(const char *name, const char *text, size_t bytes)
{
    uint32_t cp;
    int line = 1;
    for (size_t at = 0; at < bytes;) {
        at += utf8_next((const unsigned char *)text + at, bytes - at, &cp);
        line += cp == '\n';
        if (cp == NOT_UTF8)
            return fail(NJ_E_FORMAT, "%s:%d: not UTF-8; convert it with iconv", name, line);
    }
    return 0;
}

static int parse_text(struct template *t, const char *text, size_t bytes)
{
    struct tokens tokens;
    int rc = lex(t, text, bytes, &tokens);
    if (rc == 0)
        rc = parse_statements(t, &tokens);
    free(tokens.at);
    return rc;
}

int template_parse(const char *name, const char *text, size_t bytes, struct template **out)
{
    struct template *t = calloc(1, sizeof *t);
    int rc = check_utf8(name, text, bytes);
    *out = NULL;
    if (!t)
        return fail(NJ_E_NOMEM, "%s: out of memory for the template", name);
    t->arena.most = TEMPLATE_MEMORY_MOST;
    t->name = name;
    const char *copy = arena_copy(&t->arena, name, strlen(name));
    if (rc == 0 && !copy)
        rc = syntax_no_memory(t);
    t->name = copy ? copy : name;
    if (rc == 0)
        rc = parse_text(t, text, bytes);
    if (rc != 0)
        template_free(t);
    else
        *out = t;
    return rc;
}

void template_free(struct template *t)
{
    if (!t)
        return;
    arena_free(&t->arena);
    free(t->names);
    free(t);
}

bool template_mentions(const struct template *t, const char *word)
{
    return syntax_find_name(t, word, strlen(word)) != NULL;
}

bool template_marks_generation(const struct template *t)
{
    return t->marks_generation;
}

/* ---- running ---- */

static int value_of_json(struct run *r, json_t *json, struct value *out);

static int list_of_json(struct run *r, json_t *json, struct value *out)
{
    struct list *list;
    size_t i;
    json_t *item;
    int rc = list_make(r, json_array_size(json), &list);
    json_array_foreach(json, i, item)
    {
        struct value v;
        if (rc == 0)
            rc = value_of_json(r, item, &v);
        if (rc == 0)
            rc = list_add(r, list, v);
    }
    *out = value_list(VALUE_LIST, list);
    return rc;
}

/* Make a dict of an object, whose keys differ, so they are not compared. */
static int dict_of_json(struct run *r, json_t *json, struct value *out)
{
    struct dict *d;
    int rc = dict_make(r, json_object_size(json), &d);
    void *at = json_object_iter(json);
    for (; at && rc == 0; at = json_object_iter_next(json, at)) {
        struct pair *p = &d->at[d->count];
        const char *key = json_object_iter_key(at);
        p->key = value_text(key, json_object_iter_key_len(at));
        rc = value_of_json(r, json_object_iter_value(at), &p->value);
        d->count++;
    }
    *out = (struct value){.kind = VALUE_DICT, .dict = d};
    return rc;
}

static int nested_of_json(struct run *r, json_t *json, struct value *out)
{
    TRY(run_enter(r));
    const int rc = json_is_array(json) ? list_of_json(r, json, out) : dict_of_json(r, json, out);
    run_leave(r);
    return rc;
}

static int value_of_json(struct run *r, json_t *json, struct value *out)
{
    switch (json_typeof(json)) {
    case JSON_STRING:
        *out = value_text(json_string_value(json), json_string_length(json));
        return 0;
    case JSON_INTEGER:
        *out = value_int(json_integer_value(json));
        return 0;
    case JSON_REAL:
        *out = value_float(json_real_value(json));
        return 0;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = value_bool(json_is_true(json));
        return 0;
    case JSON_NULL:
        *out = VALUE_NOTHING;
        return 0;
    default:
        return nested_of_json(r, json, out);
    }
}

/* Set `self`, which has the blocks of a template; here there are none. */
static int set_self(struct run *r)
{
    struct value self = {.kind = VALUE_NAMESPACE};
    const char *name = syntax_find_name(r->template, "self", 4);
    const int rc = name ? dict_make(r, 0, &self.dict) : 0;
    return rc != 0 || !name ? rc : scope_set(r, r->scope, name, &self);
}

static int set_functions(struct run *r)
{
    size_t count;
    const struct builtin *table = functions_all(&count);
    for (size_t i = 0; i < count; i++) {
        const char *name = syntax_find_name(r->template, table[i].name, strlen(table[i].name));
        const struct value v = {.kind = VALUE_FUNCTION, .function = &table[i]};
        if (name)
            TRY(scope_set(r, r->scope, name, &v));
    }
    return 0;
}

/* Set the variables that the template names; no others are made. */
static int set_variables(struct run *r, json_t *variables)
{
    int rc = 0;
    void *at = json_object_iter(variables);
    for (; at && rc == 0; at = json_object_iter_next(variables, at)) {
        struct value v;
        const char *name =
            syntax_find_name(r->template, json_object_iter_key(at), json_object_iter_key_len(at));
        if (!name)
            continue;
        rc = value_of_json(r, json_object_iter_value(at), &v);
        if (rc == 0)
            rc = scope_set(r, r->scope, name, &v);
    }
    return rc;
}

int template_render(const struct template *t, json_t *variables, struct template_text *out)
{
    struct run r = {.template = t,
                    .arena = {.most = RUN_MEMORY_MOST},
                    .out = out,
                    .out_most = OUTPUT_MOST,
                    .line = 1,
                    .steps = STEPS_MOST,
                    .call = call_value,
                    .find = builtin_find};
    out->bytes = out->spans = 0;
    out->spans_unknown = false;
    int rc = scope_make(&r, NULL, &r.scope);
    if (rc == 0)
        rc = set_self(&r);
    if (rc == 0)
        rc = set_functions(&r);
    if (rc == 0)
        rc = set_variables(&r, variables);
    if (rc == 0)
        rc = execute(&r, &t->body);
    arena_free(&r.arena);
    return rc;
}

void template_text_free(struct template_text *out)
{
    free(out->text);
    free(out->span);
    *out = (struct template_text){0};
}
