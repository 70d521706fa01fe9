/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx_lex.c: PTX text as tokens. A word takes the dots and double colons that opcodes hold; the colon
 * of a label stands alone.
 */
#include "ptx_lex.h"

#include <ctype.h>
#include <string.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

/* Characters at `at` that go on with a word: 0, 1, or 2 for "::". */
static int word_part(const char *at, const char *end)
{
    if (at < end && is_word(*at))
        return 1;
    return end - at > 2 && at[0] == ':' && at[1] == ':' && is_word(at[2]) ? 2 : 0;
}

static void skip_space(struct lexer *lexer)
{
    while (lexer->at < lexer->end) {
        const char *at = lexer->at;
        if (*at == '\n') {
            lexer->line++;
            lexer->at++;
        } else if (isspace((unsigned char)*at)) {
            lexer->at++;
        } else if (lexer->end - at > 1 && at[0] == '/' && at[1] == '/') {
            const char *stop = memchr(at, '\n', (size_t)(lexer->end - at));
            lexer->at = stop ? stop : lexer->end;
        } else if (lexer->end - at > 1 && at[0] == '/' && at[1] == '*') {
            for (at += 2; at < lexer->end && !(at[-1] == '*' && at[0] == '/'); at++)
                lexer->line += *at == '\n';
            lexer->at = at < lexer->end ? at + 1 : at;
        } else {
            return;
        }
    }
}

static unsigned digit(char c)
{
    return isdigit((unsigned char)c) ? (unsigned)(c - '0')
                                     : (unsigned)(tolower((unsigned char)c) - 'a') + 10;
}

/* The digits of base at *at; stops after the last. */
static uint64_t digits(const char **at, const char *end, unsigned base)
{
    uint64_t value = 0;
    for (; *at < end && isxdigit((unsigned char)**at) && digit(**at) < base; (*at)++)
        value = value * base + digit(**at);
    return value;
}

static void lex_number(struct lexer *lexer, const char *at)
{
    struct token *token = &lexer->token;
    const bool minus = *at == '-';
    at += minus;
    const char second = lexer->end - at > 1 && *at == '0' ? at[1] : 0;
    token->kind = TOKEN_INTEGER;
    if (second == 'f' || second == 'F' || second == 'd' || second == 'D') {
        const bool is_float = second == 'f' || second == 'F';
        token->kind = is_float ? TOKEN_FLOAT : TOKEN_DOUBLE;
        at += 2;
        const char *first = at;
        token->value = digits(&at, lexer->end, 16);
        if (minus || at - first != (is_float ? 8 : 16))
            token->kind = TOKEN_BAD;
    } else if (second == 'x' || second == 'X') {
        at += 2;
        token->value = digits(&at, lexer->end, 16);
    } else {
        token->value = digits(&at, lexer->end, 10);
    }
    if (minus)
        token->value = -token->value;
    if (at < lexer->end && *at == 'U')
        at++;
    for (; at < lexer->end && is_word(*at); at++)
        token->kind = TOKEN_BAD;
    lexer->at = at;
}

void lexer_next(struct lexer *lexer)
{
    skip_space(lexer);
    struct token *token = &lexer->token;
    const char *first = lexer->at;
    *token = (struct token){.kind = TOKEN_END, .text = first, .line = lexer->line};
    if (first == lexer->end)
        return;
    const char next = lexer->end - first > 1 ? first[1] : 0;
    if (isdigit((unsigned char)*first) || (*first == '-' && isdigit((unsigned char)next))) {
        lex_number(lexer, first);
    } else if (is_word(*first)) {
        token->kind = TOKEN_WORD;
        for (int part = 1; part; part = word_part(lexer->at, lexer->end))
            lexer->at += part;
    } else if (*first == '"') {
        const char *stop = memchr(first + 1, '"', (size_t)(lexer->end - first - 1));
        token->kind = stop ? TOKEN_STRING : TOKEN_BAD;
        lexer->at = stop ? stop + 1 : lexer->end;
    } else {
        token->kind = TOKEN_MARK;
        lexer->at++;
    }
    token->length = (size_t)(lexer->at - first);
}

void lexer_start(struct lexer *lexer, const char *text, size_t bytes)
{
    *lexer = (struct lexer){.at = text, .end = text + bytes, .line = 1};
    lexer_next(lexer);
}

bool token_is(const struct token *token, const char *text)
{
    return (token->kind == TOKEN_WORD || token->kind == TOKEN_MARK) &&
           token->length == strlen(text) && memcmp(token->text, text, token->length) == 0;
}
