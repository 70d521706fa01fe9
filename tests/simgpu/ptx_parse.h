/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx_parse.h: what the two halves of the parser share: ptx_parse.c reads directives and
 * statements, ptx_operand.c the operands of an instruction.
 */
#ifndef NOJIT_SIM_PTX_PARSE_H
#define NOJIT_SIM_PTX_PARSE_H

#include "ptx.h"
#include "ptx_lex.h"

struct symbol {
    const char *name;
    size_t length;
    enum { SYMBOL_REGISTER, SYMBOL_REGISTERS, SYMBOL_SHARED, SYMBOL_DYNAMIC, SYMBOL_PARAM } kind;
    char class;     /* class of registers */
    uint32_t first; /* number of the (first) register, byte of shared memory, index of the param */
    uint32_t count; /* SYMBOL_REGISTERS: name is followed by a number below this */
};

struct label {
    const char *name;
    size_t length;
    uint32_t at; /* its place, or the instruction that jumps there */
    uint32_t line;
};

struct parser {
    struct lexer lexer;
    struct sim_module *module;
    struct sim_entry *entry; /* being read, or NULL */
    struct symbol *symbols;  /* the innermost last */
    uint32_t symbol_count;
    char *classes; /* classes of the registers */
    uint32_t class_count;
    struct label *labels, *jumps;
    uint32_t label_count, jump_count;
    uint32_t dynamic_align, params_at;
    bool has_code; /* this entry's shared variables are laid out */
    struct sim_fault *fault;
};

/* Fills the fault with a sentence about the line at hand. Returns -1. */
int parse_bad(struct parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes room for one more; returns -1 without memory. */
int parse_grow(struct parser *parser, void *array, uint32_t count, size_t bytes);

/* The symbol of that name; *index is the number behind it, for SYMBOL_REGISTERS. */
const struct symbol *parse_symbol(const struct parser *parser, const struct token *name,
                                  uint32_t *index);

/* Reads the operands of an instruction whose text stands before the token at hand, up to the
 * semicolon, and fills in its opcode. */
int parse_operands(struct parser *parser, struct insn *insn, const struct token *text);

/* Reads a register of class p. */
int parse_guard(struct parser *parser, struct insn *insn);

/* A mark that must stand here. */
int parse_mark(struct parser *parser, const char *mark);

#endif
