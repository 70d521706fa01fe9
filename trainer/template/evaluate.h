/* SPDX-License-Identifier: Apache-2.0
 *
 * evaluate.h: execution of a template's tree: scopes (scope.c), expressions, statements, calls;
 * each uses those before it.
 */
#ifndef NOJIT_TRAINER_TEMPLATE_EVALUATE_H
#define NOJIT_TRAINER_TEMPLATE_EVALUATE_H

#include "template/syntax.h"
#include "template/value.h"

int scope_make(struct run *r, struct scope *parent, struct scope **out);
int scope_set(struct run *r, struct scope *s, const char *name, const struct value *v);
/* Return the value of a name in this scope or those around it; NULL: there is none. */
const struct value *scope_find(const struct scope *s, const char *name);
/* Assign to a name, an attribute of a namespace, or names in a tuple. */
int scope_assign(struct run *r, const struct node *target, const struct value *v);

int evaluate(struct run *r, const struct node *n, struct value *out);
/* Apply the filters of a block to its text. */
int evaluate_filters(struct run *r, const struct node *n, const struct value *piped,
                     struct value *out);
/* Evaluate arguments. more: an additional named argument, or NULL. */
int evaluate_arguments(struct run *r, const struct nodes *items, const struct pair *more,
                       struct arguments *out);

int execute(struct run *r, const struct nodes *body);
/* Run the loop over these items; depth: number of nested recursive calls. */
int execute_loop(struct run *r, const struct node *n, struct scope *around, struct list *items,
                 int depth);

int call_value(struct run *r, const struct value *callee, const struct arguments *a,
               struct value *out);

#endif
