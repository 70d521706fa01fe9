/* SPDX-License-Identifier: Apache-2.0
 *
 * evaluate.h: running a template's tree. Scopes (scope.c), expressions, statements, calls: each uses those before it.
 */
#ifndef NOJIT_TRAINER_TEMPLATE_EVALUATE_H
#define NOJIT_TRAINER_TEMPLATE_EVALUATE_H

#include "template/syntax.h"
#include "template/value.h"

int scope_make(struct run *r, struct scope *parent, struct scope **out);
int scope_set(struct run *r, struct scope *s, const char *name, const struct value *v);
/* Returns the value of a name in this scope or those around it; NULL: there is none. */
const struct value *scope_find(const struct scope *s, const char *name);
/* Assigns to a name, an attribute of a namespace, or names in a tuple. */
int scope_assign(struct run *r, const struct node *target, const struct value *v);

int evaluate(struct run *r, const struct node *n, struct value *out);
/* Applies the filters of a block to its text. */
int evaluate_filters(struct run *r, const struct node *n, const struct value *piped,
                     struct value *out);
/* Evaluates arguments. more: a further one by name, or NULL. */
int evaluate_arguments(struct run *r, const struct nodes *items, const struct pair *more,
                       struct arguments *out);

int execute(struct run *r, const struct nodes *body);
/* Runs the loop over these items; depth: of recursive calls. */
int execute_loop(struct run *r, const struct node *n, struct scope *around, struct list *items,
                 int depth);

int call_value(struct run *r, const struct value *callee, const struct arguments *a,
               struct value *out);

#endif
