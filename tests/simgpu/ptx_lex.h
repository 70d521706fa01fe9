/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx_lex.h: PTX text as tokens.
 */
#ifndef NOJIT_SIM_PTX_LEX_H
#define NOJIT_SIM_PTX_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,    /* opcode, directive, register, label, variable: dots included */
    TOKEN_INTEGER, /* value; a minus sign is included */
    TOKEN_FLOAT,   /* 0f...: value holds the 32 bits */
    TOKEN_DOUBLE,  /* 0d...: value holds the 64 bits */
    TOKEN_STRING,
    TOKEN_MARK, /* one character */
    TOKEN_BAD
};

struct token {
    enum token_kind kind;
    const char *text;
    size_t length;
    uint64_t value;
    uint32_t line;
};

struct lexer {
    const char *at, *end;
    uint32_t line;
    struct token token; /* the one at hand */
};

void lexer_start(struct lexer *lexer, const char *text, size_t bytes);
void lexer_next(struct lexer *lexer);

bool token_is(const struct token *token, const char *text);

#endif
