/* SPDX-License-Identifier: Apache-2.0
 *
 * builtins.h: filters, tests, methods and functions that jinja2 and Python have.
 */
#ifndef NOJIT_TRAINER_TEMPLATE_BUILTINS_H
#define NOJIT_TRAINER_TEMPLATE_BUILTINS_H

#include "template/value.h"

/* Finds a filter, a test or a global function. */
bool builtin_find(enum builtin_use use, const char *name, const struct builtin **out);
/* Whether jinja2 has it and this interpreter does not. */
bool builtin_left_out(enum builtin_use use, const char *name);
/* Puts arguments in their places, by their names too, and runs it. */
int builtin_call(struct run *r, const struct builtin *b, const struct arguments *a,
                 struct value *out);
const struct builtin *builtin_among(const struct builtin *table, size_t count, const char *name,
                                    size_t bytes);

/* Filters of texts (filters_text.c), of lists (filters_list.c), those that call filters and tests
 * (filters_select.c), and those for HTML and addresses (filters_web.c). Each returns its table. */
const struct builtin *filters_text(size_t *count);
const struct builtin *filters_list(size_t *count);
const struct builtin *filters_select(size_t *count);
const struct builtin *filters_web(size_t *count);
const struct builtin *tests_all(size_t *count);
const struct builtin *functions_all(size_t *count);
/* Methods of texts, and of the rest. */
const struct builtin *methods_text(size_t *count);
const struct builtin *methods_split(size_t *count);
const struct builtin *methods_of(enum value_kind kind, size_t *count);
/* Whether Python has this attribute and this interpreter does not. */
bool method_left_out(enum value_kind kind, const char *name);

/* ---- arguments, once they are in their places ---- */

/* Fails unless the argument is a string. */
int argument_text(struct run *r, const struct value *v, const char *name);
/* Reads a whole number; `otherwise` where it was not given, or is none. */
int argument_whole(struct run *r, const struct value *v, const char *name, int64_t otherwise,
                   int64_t *out);
static inline bool argument_truth(const struct value *v, bool otherwise)
{
    return value_given(v) ? value_truth(v) : otherwise;
}

/* ---- operators.c ---- */

int operate(struct run *r, int op, const struct value *a, const struct value *b, struct value *out);
/* Formats as `text % arguments`. */
int format_percent(struct run *r, const struct value *text, const struct value *arguments,
                   struct value *out);
/* a.name, of the keys of a dict, too, and a[b], as the sandbox of jinja2 lets them be; UNDEFINED: there is none. */
int get_attribute(struct run *r, const struct value *a, const char *name, size_t bytes, bool keys,
                  struct value *out);
int get_item(struct run *r, const struct value *a, const struct value *key, struct value *out);
int get_slice(struct run *r, const struct value *a, const struct value *from,
              const struct value *to, const struct value *step, struct value *out);
/* Follows a path such as "function.name" or 0, as filters have it. */
int get_path(struct run *r, const struct value *a, const struct value *path, struct value *out);

#endif
