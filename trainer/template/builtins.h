/* SPDX-License-Identifier: Apache-2.0
 *
 * builtins.h: filters, tests, methods and functions of jinja2 and Python.
 */
#ifndef NOJIT_TRAINER_TEMPLATE_BUILTINS_H
#define NOJIT_TRAINER_TEMPLATE_BUILTINS_H

#include "template/value.h"

/* Find a filter, a test or a global function. */
bool builtin_find(enum builtin_use use, const char *name, const struct builtin **out);
/* Return whether jinja2 has it and this interpreter does not. */
bool builtin_left_out(enum builtin_use use, const char *name);
/* Match arguments to parameters, by position and by name, and run the builtin. */
int builtin_call(struct run *r, const struct builtin *b, const struct arguments *a,
                 struct value *out);
const struct builtin *builtin_among(const struct builtin *table, size_t count, const char *name,
                                    size_t bytes);

/* Return the tables of filters: for texts (filters_text.c), for lists (filters_list.c), those
 * that call filters and tests (filters_select.c), and those for HTML and URLs (filters_web.c). */
const struct builtin *filters_text(size_t *count);
const struct builtin *filters_list(size_t *count);
const struct builtin *filters_select(size_t *count);
const struct builtin *filters_web(size_t *count);
const struct builtin *tests_all(size_t *count);
const struct builtin *functions_all(size_t *count);
/* Return the tables of methods: of texts, and of other values. */
const struct builtin *methods_text(size_t *count);
const struct builtin *methods_split(size_t *count);
const struct builtin *methods_of(enum value_kind kind, size_t *count);
/* Return whether Python has this attribute and this interpreter does not. */
bool method_left_out(enum value_kind kind, const char *name);

/* ---- arguments, once they are in their places ---- */

/* Fail unless the argument is a string. */
int argument_text(struct run *r, const struct value *v, const char *name);
/* Read a whole number; `otherwise` if it was not given, or is None. */
int argument_whole(struct run *r, const struct value *v, const char *name, int64_t otherwise,
                   int64_t *out);
static inline bool argument_truth(const struct value *v, bool otherwise)
{
    return value_given(v) ? value_truth(v) : otherwise;
}

/* ---- operators.c ---- */

int operate(struct run *r, int op, const struct value *a, const struct value *b, struct value *out);
/* Format as `text % arguments` does. */
int format_percent(struct run *r, const struct value *text, const struct value *arguments,
                   struct value *out);
/* Get a.name, also from the keys of a dict if `keys`, and a[b], as far as the sandbox of jinja2
 * allows; UNDEFINED: there is none. */
int get_attribute(struct run *r, const struct value *a, const char *name, size_t bytes, bool keys,
                  struct value *out);
int get_item(struct run *r, const struct value *a, const struct value *key, struct value *out);
int get_slice(struct run *r, const struct value *a, const struct value *from,
              const struct value *to, const struct value *step, struct value *out);
/* Follow a path such as "function.name" or 0, as filters take it. */
int get_path(struct run *r, const struct value *a, const struct value *path, struct value *out);

#endif
