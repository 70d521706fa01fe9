/* SPDX-License-Identifier: Apache-2.0
 *
 * parser.c: see syntax.h: functions shared by the parts of the parser.
 */
#include "template/syntax.h"

#include "io/error.h"

static bool token_is(const struct parser *p, enum token_kind kind, const char *text)
{
    return p->token->kind == kind && value_is_text(&p->token->value, text);
}

bool parser_is(const struct parser *p, const char *operator)
{
    return p->token->kind == TOKEN_OPERATOR && p->token->value.bytes == strlen(operator) &&
           memcmp(p->token->value.text, operator, p->token->value.bytes) == 0;
}

bool parser_is_name(const struct parser *p, const char *name)
{
    return token_is(p, TOKEN_NAME, name);
}

bool parser_skip(struct parser *p, const char *operator)
{
    const bool is = parser_is(p, operator);
    p->token += is;
    return is;
}

bool parser_skip_name(struct parser *p, const char *name)
{
    const bool is = parser_is_name(p, name);
    p->token += is;
    return is;
}

int parser_unexpected(const struct parser *p, const char *wanted)
{
    static const char *const ends[] = {[TOKEN_END] = "the end of the template",
                                       [TOKEN_TEXT] = "text",
                                       [TOKEN_BLOCK_BEGIN] = "{%",
                                       [TOKEN_BLOCK_END] = "%}",
                                       [TOKEN_OUTPUT_BEGIN] = "{{",
                                       [TOKEN_OUTPUT_END] = "}}"};
    const struct token *t = p->token;
    if (t->kind < sizeof ends / sizeof *ends)
        return syntax_fail(p->template, t->line, "%s where %s must come", ends[t->kind], wanted);
    if (t->kind == TOKEN_INT || t->kind == TOKEN_FLOAT)
        return syntax_fail(p->template, t->line, "a number where %s must come", wanted);
    return syntax_fail(p->template, t->line, "'%.*s' where %s must come",
                       (int)(t->value.bytes > 40 ? 40 : t->value.bytes), t->value.text, wanted);
}

int parser_expect(struct parser *p, const char *operator)
{
    char wanted[16] = "'";
    strncat(strncat(wanted, operator, 8), "'", 2);
    return parser_skip(p, operator) ? 0 : parser_unexpected(p, wanted);
}

int parser_enter(struct parser *p)
{
    enum { DEPTH_MOST = 200 };
    if (p->depth == DEPTH_MOST)
        return syntax_fail(p->template, p->token->line,
                           "the template is nested beyond the limit of %d levels", DEPTH_MOST);
    p->depth++;
    return 0;
}

int parser_name(struct parser *p, const char **out)
{
    if (p->token->kind != TOKEN_NAME)
        return parser_unexpected(p, "a name");
    *out = syntax_name(p->template, p->token->value.text, p->token->value.bytes);
    p->token++;
    return *out ? 0 : syntax_no_memory(p->template);
}

/* ---- nodes ---- */

int parser_node(struct parser *p, enum node_kind kind, struct node **out)
{
    *out = arena_zero(&p->template->arena, sizeof **out);
    if (!*out)
        return syntax_no_memory(p->template);
    (*out)->kind = kind;
    (*out)->line = p->token->line;
    return 0;
}

int parser_add(struct parser *p, struct nodes *list, struct node *n)
{
    if (list->count == list->capacity) {
        const size_t grown = 2 * list->capacity + 4;
        struct node **more = arena_take(&p->template->arena, grown * sizeof *more);
        if (!more)
            return syntax_no_memory(p->template);
        if (list->count > 0)
            memcpy(more, list->at, list->count * sizeof *more);
        list->at = more;
        list->capacity = grown;
    }
    list->at[list->count++] = n;
    return 0;
}
