/* SPDX-License-Identifier: Apache-2.0
 *
 * value.h: Python's values as templates use them, and the state of one run. All memory of a run
 * is one arena; texts are there, in the template or in the input JSON, and are never changed.
 */
#ifndef NOJIT_TRAINER_VALUE_H
#define NOJIT_TRAINER_VALUE_H

#include "template/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct node;
struct run;

enum value_kind {
    VALUE_ABSENT, /* an argument that was not given */
    VALUE_UNDEFINED,
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_STRING,
    VALUE_LIST,
    VALUE_TUPLE,
    VALUE_ITERATOR, /* a generator or a view; a list whose items are consumed once */
    VALUE_DICT,
    VALUE_NAMESPACE,
    VALUE_FUNCTION,
    VALUE_METHOD,
    VALUE_MACRO,
    VALUE_LOOP,
    VALUE_CYCLER,
    VALUE_JOINER
};

struct value {
    enum value_kind kind;
    bool markup;  /* whether it is a string of safe HTML, so that strings added to it are escaped */
    size_t bytes; /* size of text */
    union {
        const char *text; /* a string; UNDEFINED: the name of the undefined value */
        int64_t whole;    /* integer value, and that of BOOL: 0 or 1 */
        double real;
        struct list *list;
        struct dict *dict; /* dict, also of NAMESPACE */
        const struct builtin *function;
        struct method *method;
        struct macro *macro;
        struct loop *loop;
        struct cycler *cycler;
    };
};

struct list {
    struct value *at;
    size_t count, capacity;
    bool view;  /* ITERATOR: whether it can be iterated again, as dict.items() */
    bool group; /* TUPLE: whether it is of groupby, whose items are called grouper and list, too */
};

struct pair {
    struct value key, value;
};

struct dict {
    struct pair *at;
    size_t count, capacity;
};

struct arguments {
    const struct value *at;
    size_t count;
    const struct pair *named; /* named arguments; keys are strings */
    size_t named_count;
};

/* Filter, test, method or global function. The value that it is applied to is its first
 * argument. */
struct builtin {
    const char *name;
    int (*run)(struct run *r, const struct arguments *a, struct value *out);
    const char *parameters; /* parameter names, separated by blanks; NULL: reads `named` itself */
    size_t required;        /* number of required parameters */
};

struct method {
    struct value self;
    const struct builtin *function;
};

struct cycler { /* also a joiner, which is at its start or not */
    const struct value *at;
    size_t count, next;
};

struct binding {
    const char *name; /* interned name, so names are compared by address */
    struct value value;
};

struct scope {
    struct scope *parent;
    struct binding *at;
    size_t count, capacity;
};

struct macro {
    const struct node *node;
    struct scope *scope; /* scope in which it was defined */
};

struct loop {
    struct list *items;
    size_t at; /* index of the current item */
    int depth;
    const struct node *node;
    struct scope *scope; /* scope around the loop */
    struct value changed;
};

/* Control flow that a statement has requested. */
enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE };

enum builtin_use { BUILTIN_FILTER, BUILTIN_TEST, BUILTIN_FUNCTION };

struct run {
    const struct template *template;
    struct arena arena;
    struct template_text *out; /* output; a capture is the text appended since its start */
    size_t captures;           /* number of open captures, whose text is not output yet */
    size_t out_most;
    struct scope *scope;
    enum flow flow;
    int line, depth;
    int64_t steps; /* number of steps left */
    /* Function that calls a value, set by the evaluator, which is a layer above its users. */
    int (*call)(struct run *r, const struct value *callee, const struct arguments *a,
                struct value *out);
    /* builtin_find(), for filters that call others. */
    bool (*find)(enum builtin_use use, const char *name, const struct builtin **out);
};

/* ---- failures and limits ---- */

/* Record the sentence, with the template's name and line; return NJ_E_FORMAT. */
int run_fail(const struct run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fail because memory has run out: the machine's, or the limit's. */
int run_no_memory(const struct run *r);
/* Fail because a value of this kind does not support the operation. */
int run_type_error(const struct run *r, const char *what, const struct value *v);
/* Spend steps for work on this many bytes or items. */
int run_spend(struct run *r, size_t amount);
/* Go one level deeper, up to the limit. Each success needs a run_leave(). */
int run_enter(struct run *r);
static inline void run_leave(struct run *r)
{
    r->depth--;
}
/* Append to the output. */
int run_write(struct run *r, const char *text, size_t bytes);
/* Begin a capture at the end of the output; run_captured() removes its text from there and
 * returns it as a value, if writing it has succeeded (rc 0). Return rc, or an error of its own. */
size_t run_capture(struct run *r);
int run_captured(struct run *r, size_t from, int rc, struct value *out);

/* ---- making values ---- */

static inline struct value value_text(const char *text, size_t bytes)
{
    return (struct value){.kind = VALUE_STRING, .bytes = bytes, .text = text};
}
static inline struct value value_c_text(const char *text)
{
    return value_text(text, strlen(text));
}
static inline struct value value_int(int64_t whole)
{
    return (struct value){.kind = VALUE_INT, .whole = whole};
}
static inline struct value value_bool(bool truth)
{
    return (struct value){.kind = VALUE_BOOL, .whole = truth};
}
static inline struct value value_float(double real)
{
    return (struct value){.kind = VALUE_FLOAT, .real = real};
}
static inline struct value value_undefined(const char *name, size_t bytes)
{
    return (struct value){.kind = VALUE_UNDEFINED, .bytes = bytes, .text = name};
}
static inline struct value value_list(enum value_kind kind, struct list *list)
{
    return (struct value){.kind = kind, .list = list};
}
#define VALUE_NOTHING ((struct value){.kind = VALUE_NONE})

int list_make(struct run *r, size_t capacity, struct list **out);
int list_add(struct run *r, struct list *list, struct value v);
int dict_make(struct run *r, size_t capacity, struct dict **out);
/* Set a key, which must be hashable. */
int dict_set(struct run *r, struct dict *d, const struct value *key, const struct value *v);
/* Return the value of a key; NULL: there is none. */
struct value *dict_find(struct run *r, const struct dict *d, const struct value *key);
struct value *dict_find_text(const struct dict *d, const char *key, size_t bytes);
/* Copy text into the run's memory as a string. */
int text_make(struct run *r, const char *text, size_t bytes, struct value *out);

/* ---- queries ---- */

static inline bool value_is_number(const struct value *v)
{
    return v->kind == VALUE_BOOL || v->kind == VALUE_INT || v->kind == VALUE_FLOAT;
}
static inline bool value_is_whole(const struct value *v)
{
    return v->kind == VALUE_BOOL || v->kind == VALUE_INT;
}
static inline bool value_given(const struct value *v)
{
    return v->kind != VALUE_ABSENT;
}
static inline double value_real(const struct value *v)
{
    return v->kind == VALUE_FLOAT ? v->real : (double)v->whole;
}
bool value_is_text(const struct value *v, const char *text);
/* Return the name of the value's Python type. */
const char *value_type(const struct value *v);
bool value_truth(const struct value *v);
bool value_equal(struct run *r, const struct value *a, const struct value *b);
/* Set *out to -1, 0 or 1; fail if Python does not order the values. */
int value_order(struct run *r, const struct value *a, const struct value *b, int *out);
bool value_same(const struct value *a, const struct value *b);
bool value_callable(const struct value *v);
/* Make a list of the items that a loop over the value would visit; fail if it cannot be
 * iterated. */
int value_items(struct run *r, const struct value *v, struct list **out);
/* Return the length as len() does. */
int value_length(struct run *r, const struct value *v, size_t *out);
/* Evaluate `item in v`. */
int value_contains(struct run *r, const struct value *v, const struct value *item, bool *out);

#endif
