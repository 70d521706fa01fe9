/* SPDX-License-Identifier: Apache-2.0
 *
 * syntax.h: a template as a tree. Nodes, names and texts are in the template's arena.
 */
#ifndef NOJIT_TRAINER_TEMPLATE_SYNTAX_H
#define NOJIT_TRAINER_TEMPLATE_SYNTAX_H

#include "template/value.h"

enum node_kind {
    /* expressions */
    NODE_CONSTANT,
    NODE_NAME,
    NODE_LIST,
    NODE_TUPLE,
    NODE_DICT, /* items: key, value, key, value */
    NODE_UNARY,
    NODE_NOT,
    NODE_AND,
    NODE_OR,
    NODE_BINARY,
    NODE_CONCAT,
    NODE_COMPARE,   /* a, then items: NODE_OPERAND */
    NODE_CONDITION, /* b if a else c */
    NODE_ATTRIBUTE,
    NODE_ITEM,  /* a[b] */
    NODE_SLICE, /* a[b:c:items[0]] */
    NODE_CALL,
    NODE_FILTER, /* a NULL: for a filter block */
    NODE_TEST,
    EXPRESSIONS,
    /* parts of expressions */
    NODE_OPERAND = EXPRESSIONS,
    NODE_NAMED,  /* a named argument */
    NODE_SPREAD, /* *a */
    NODE_SPREAD_ALL /* **a */,
    /* statements */
    STATEMENTS,
    NODE_TEXT = STATEMENTS,
    NODE_OUTPUT,
    NODE_IF,
    NODE_FOR,       /* for a in b if c */
    NODE_SET,       /* a = b */
    NODE_SET_BLOCK, /* a, filter b */
    NODE_MACRO,     /* items: parameters, of which the last have defaults in `other` */
    NODE_CALL_BLOCK,
    NODE_FILTER_BLOCK,
    NODE_WITH, /* items: name, value, name, value */
    NODE_BREAK,
    NODE_CONTINUE,
    NODE_GENERATION,
    NODE_SCOPE, /* a body with its own scope */
    NODES
};

enum operation {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOOR_DIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOT_IN
};

struct nodes {
    struct node **at;
    size_t count, capacity;
};

struct node {
    enum node_kind kind;
    int line;
    enum operation op;
    bool flag;            /* FOR: recursive; TEST: negated */
    bool varargs, kwargs; /* MACRO: whether it reads them */
    const char *name;     /* interned name of a variable, attribute, argument, filter, ... */
    struct value value;
    struct node *a, *b, *c;
    struct nodes items, body, other;
    const struct builtin *function; /* code of a filter or test; NULL: the name is unknown */
};

struct template
{
    const char *name;
    struct arena arena;
    struct nodes body;
    const char **names; /* hash table of interned names; free slots are NULL */
    size_t name_count, name_capacity;
    bool marks_generation;
};

enum token_kind {
    TOKEN_END,
    TOKEN_TEXT,
    TOKEN_BLOCK_BEGIN,
    TOKEN_BLOCK_END,
    TOKEN_OUTPUT_BEGIN,
    TOKEN_OUTPUT_END,
    TOKEN_NAME,
    TOKEN_STRING,
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_OPERATOR
};

struct token {
    enum token_kind kind;
    int line;
    struct value value; /* a text, or the value of a number */
};

struct tokens {
    struct token *at;
    size_t count, capacity;
};

/* Record a sentence with the line, and return NJ_E_FORMAT. */
int syntax_fail(const struct template *t, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int syntax_no_memory(const struct template *t);
/* Return the interned copy of a name; NULL if memory runs out. */
const char *syntax_name(struct template *t, const char *text, size_t bytes);
/* Return that copy; NULL: the template has no such name. */
const char *syntax_find_name(const struct template *t, const char *text, size_t bytes);

/* Split a template into tokens. The caller frees them with free(tokens->at), in each case. */
int lex(struct template *t, const char *text, size_t bytes, struct tokens *tokens);

/* Reader of tokens, shared by the parsers of expressions and of statements. */
struct parser {
    struct template *template;
    const struct token *token; /* current token */
    int depth;
    /* number of enclosing branches, in which names of filters and tests are looked up when they
     * are used */
    int soft;
    int loops;                  /* number of loops around a statement, within its macro */
    bool varargs, kwargs;       /* whether they were read in this macro */
    const struct node *unknown; /* first unknown filter or test outside such branches */
    /* parse_expression() and parse_items(), for the functions that they call. */
    int (*expression)(struct parser *p, struct node **out);
    int (*items)(struct parser *p, bool conditions, bool empty, struct node **out);
};

bool parser_is(const struct parser *p, const char *operator);
bool parser_is_name(const struct parser *p, const char *name);
bool parser_skip(struct parser *p, const char *operator);
bool parser_skip_name(struct parser *p, const char *name);
int parser_expect(struct parser *p, const char *operator);
/* Fail at the current token, which is not the wanted one. */
int parser_unexpected(const struct parser *p, const char *wanted);
/* Go one level deeper, up to the limit; each success needs a p->depth--. */
int parser_enter(struct parser *p);
/* Take the name at the current token; NULL: there is none, or memory has run out. */
int parser_name(struct parser *p, const char **out);
int parser_node(struct parser *p, enum node_kind kind, struct node **out);
int parser_add(struct parser *p, struct nodes *list, struct node *n);

/* Parse a value with its sign, attributes, items, calls, filters and tests. */
int parse_operand(struct parser *p, struct node **out);
/* Parse filters, from the first `|` on, or from a name. */
int parse_filters(struct parser *p, struct node *a, bool at_name, struct node **out);
int parse_call(struct parser *p, struct node *a, struct node **out);
int parse_expression(struct parser *p, struct node **out);
/* Parse an expression or, with commas, a tuple. conditions: `a if b` is allowed; empty: the
 * expression may be missing. */
int parse_items(struct parser *p, bool conditions, bool empty, struct node **out);

/* Parse tokens into t->body. */
int parse_statements(struct template *t, const struct tokens *tokens);

#endif
