/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx_operand.c: the operands of one instruction, read as its row of the opcode table spells them.
 * Where a text has several rows (mov.b32 moves, packs and unpacks), the first that fits is taken.
 */
#include "ptx_parse.h"

#include <limits.h>
#include <string.h>

static int wrong(struct parser *parser, const char *what)
{
    const struct token *token = &parser->lexer.token;
    return parse_bad(parser, "\"%.*s\" is no %s", (int)token->length, token->text, what);
}

int parse_mark(struct parser *parser, const char *mark)
{
    if (!token_is(&parser->lexer.token, mark))
        return parse_bad(parser, "\"%.*s\" stands where \"%s\" should",
                         (int)parser->lexer.token.length, parser->lexer.token.text, mark);
    lexer_next(&parser->lexer);
    return 0;
}

/* The place of a constant, which is added unless it is there. */
static int constant_place(struct parser *parser, enum constant_kind kind, char class,
                          uint64_t value, sim_place *place)
{
    struct sim_entry *entry = parser->entry;
    for (uint32_t i = 0; i < entry->constant_count; i++) {
        const struct constant *c = &entry->constants[i];
        if (c->kind == kind && c->class == class && c->value == value) {
            *place = c->at + 1;
            return 0;
        }
    }
    if (parse_grow(parser, &entry->constants, entry->constant_count, sizeof *entry->constants))
        return -1;
    entry->constants[entry->constant_count++] =
        (struct constant){kind, class, value, entry->constant_bytes};
    *place = entry->constant_bytes + 1;
    entry->constant_bytes += class_bytes(class);
    return 0;
}

static int literal_place(struct parser *parser, char class, sim_place *place)
{
    const struct token *token = &parser->lexer.token;
    uint64_t value = token->value;
    if ((token->kind == TOKEN_FLOAT && class != 'r') ||
        (token->kind == TOKEN_DOUBLE && class != 'l'))
        return wrong(parser, "literal of this operand's size");
    if (class == 'p')
        value = value ? UINT32_MAX : 0;
    else if (class != 'l')
        value &= (UINT64_C(1) << (8 * class_lane_bytes(class))) - 1;
    lexer_next(&parser->lexer);
    return constant_place(parser, CONSTANT_LITERAL, class, value, place);
}

static const struct {
    const char *name;
    int special; /* register of the warp, or -1 */
    enum constant_kind kind;
    uint64_t value;
} special_names[] = {
    {"%tid.x", SPECIAL_TID_X, 0, 0},     {"%tid.y", SPECIAL_TID_Y, 0, 0},
    {"%tid.z", SPECIAL_TID_Z, 0, 0},     {"%laneid", SPECIAL_LANEID, 0, 0},
    {"%ctaid.x", -1, CONSTANT_CTAID, 0}, {"%nctaid.x", -1, CONSTANT_NCTAID, 0},
    {"%ctaid.y", -1, CONSTANT_CTAID, 1}, {"%nctaid.y", -1, CONSTANT_NCTAID, 1},
    {"%ctaid.z", -1, CONSTANT_CTAID, 2}, {"%nctaid.z", -1, CONSTANT_NCTAID, 2},
    {"%ntid.x", -1, CONSTANT_NTID, 0},   {"%ntid.y", -1, CONSTANT_NTID, 1},
    {"%ntid.z", -1, CONSTANT_NTID, 2},   {"%cluster_ctarank", -1, CONSTANT_RANK, 0},
};

/* Returns 1 if the token names no special register. */
static int special_place(struct parser *parser, sim_place *place)
{
    for (size_t i = 0; i < sizeof special_names / sizeof *special_names; i++) {
        if (!token_is(&parser->lexer.token, special_names[i].name))
            continue;
        lexer_next(&parser->lexer);
        if (special_names[i].special >= 0) {
            *place = 2 * (sim_place)special_names[i].special;
            return 0;
        }
        return constant_place(parser, special_names[i].kind, 'r', special_names[i].value, place);
    }
    return 1;
}

/* A register of that class, as result or source. */
static int register_place(struct parser *parser, char class, sim_place *place)
{
    uint32_t index = 0;
    const struct symbol *symbol = parse_symbol(parser, &parser->lexer.token, &index);
    if (!symbol || symbol->kind > SYMBOL_REGISTERS)
        return wrong(parser, "register");
    if (symbol->class != class)
        return wrong(parser, "register of this operand's size");
    *place = 2 * (symbol->first + index);
    lexer_next(&parser->lexer);
    return 0;
}

/* Byte of shared memory at which a variable lies. */
static uint32_t shared_at(struct parser *parser, const struct symbol *symbol)
{
    return symbol->kind == SYMBOL_SHARED ? symbol->first : (uint32_t)parser->entry->dynamic_at;
}

static bool is_shared(const struct symbol *symbol)
{
    return symbol && (symbol->kind == SYMBOL_SHARED || symbol->kind == SYMBOL_DYNAMIC);
}

static int source_place(struct parser *parser, char class, sim_place *place)
{
    const struct token *token = &parser->lexer.token;
    uint32_t index;
    if (token->kind == TOKEN_INTEGER || token->kind == TOKEN_FLOAT || token->kind == TOKEN_DOUBLE)
        return literal_place(parser, class, place);
    if (class == 'r') {
        const int rc = special_place(parser, place);
        if (rc <= 0)
            return rc;
    }
    const struct symbol *symbol = parse_symbol(parser, token, &index);
    if (is_shared(symbol) && class != 'p' && class != 'h') {
        lexer_next(&parser->lexer);
        return constant_place(parser, CONSTANT_LITERAL, class, shared_at(parser, symbol), place);
    }
    if (symbol && symbol->kind == SYMBOL_PARAM && class == 'l') {
        lexer_next(&parser->lexer);
        return constant_place(parser, CONSTANT_LITERAL, class,
                              PARAM_WINDOW + parser->entry->params[symbol->first].offset, place);
    }
    return register_place(parser, class, place);
}

static int read_integer(struct parser *parser, int64_t base, int32_t *integer)
{
    const struct token *token = &parser->lexer.token;
    const int64_t value = base + (int64_t)token->value;
    if (token->kind != TOKEN_INTEGER || value < INT32_MIN || value > INT32_MAX)
        return wrong(parser, "integer of 32 bits");
    *integer = (int32_t)value;
    lexer_next(&parser->lexer);
    return 0;
}

/* + integer, if there is one. */
static int read_offset(struct parser *parser, uint32_t base, int32_t *integer)
{
    *integer = (int32_t)base;
    if (!token_is(&parser->lexer.token, "+"))
        return 0;
    lexer_next(&parser->lexer);
    return read_integer(parser, base, integer);
}

/* The literal 0, for an address that is a variable's alone. */
static int zero_place(struct parser *parser, sim_place *place)
{
    return constant_place(parser, CONSTANT_LITERAL, 'r', 0, place);
}

static int address(struct parser *parser, char space, sim_place *place, int32_t *integer)
{
    uint32_t index = 0, base = 0;
    if (parse_mark(parser, "["))
        return -1;
    const struct symbol *symbol = parse_symbol(parser, &parser->lexer.token, &index);
    if (space == 'S' && is_shared(symbol)) {
        base = shared_at(parser, symbol);
        lexer_next(&parser->lexer);
        if (zero_place(parser, place))
            return -1;
    } else if (register_place(parser, space == 'G' ? 'l' : 'r', place)) {
        return -1;
    }
    return read_offset(parser, base, integer) || parse_mark(parser, "]") ? -1 : 0;
}

/* A parameter is a constant of the launch; class says how many bytes are read. */
static int param_address(struct parser *parser, char class, sim_place *place)
{
    uint32_t index = 0;
    int32_t offset;
    if (parse_mark(parser, "["))
        return -1;
    const struct symbol *symbol = parse_symbol(parser, &parser->lexer.token, &index);
    if (!symbol || symbol->kind != SYMBOL_PARAM)
        return wrong(parser, "parameter");
    const struct param *param = &parser->entry->params[symbol->first];
    lexer_next(&parser->lexer);
    if (read_offset(parser, 0, &offset))
        return -1;
    const uint32_t bytes = class_lane_bytes(class);
    if (offset < 0 || (size_t)offset + bytes > param->bytes || (uint32_t)offset % bytes)
        return parse_bad(parser, "%u bytes at byte %d of a parameter of %zu bytes", bytes, offset,
                         param->bytes);
    if (constant_place(parser, CONSTANT_PARAM, class, param->offset + (uint32_t)offset, place))
        return -1;
    return parse_mark(parser, "]");
}

static int read_label(struct parser *parser)
{
    const struct token *token = &parser->lexer.token;
    if (token->kind != TOKEN_WORD)
        return wrong(parser, "label");
    if (parse_grow(parser, &parser->jumps, parser->jump_count, sizeof *parser->jumps))
        return -1;
    parser->jumps[parser->jump_count++] =
        (struct label){token->text, token->length, parser->entry->code_count, token->line};
    lexer_next(&parser->lexer);
    return 0;
}

/* [map, {column, row}] */
static int tile_address(struct parser *parser, sim_place *place)
{
    if (parse_mark(parser, "[") || register_place(parser, 'l', &place[0]) ||
        parse_mark(parser, ",") || parse_mark(parser, "{") ||
        source_place(parser, 'r', &place[1]) || parse_mark(parser, ",") ||
        source_place(parser, 'r', &place[2]) || parse_mark(parser, "}"))
        return -1;
    return parse_mark(parser, "]");
}

/* So many results of 32 bits, which go to the entry's wide operands. */
static int wide_results(struct parser *parser, struct insn *insn, uint32_t count)
{
    struct sim_entry *entry = parser->entry;
    insn->target = entry->wide_count;
    for (uint32_t i = 0; i < count; i++) {
        if (i && parse_mark(parser, ","))
            return -1;
        if (parse_grow(parser, &entry->wide, entry->wide_count, sizeof *entry->wide) ||
            register_place(parser, 'r', &entry->wide[entry->wide_count]))
            return -1;
        entry->wide_count++;
    }
    return 0;
}

/* The integer that the row asks for. */
static int fixed_integer(struct parser *parser, char digit)
{
    const struct token *token = &parser->lexer.token;
    if (token->kind != TOKEN_INTEGER || token->value != (uint64_t)(digit - '0'))
        return wrong(parser,
                     digit == '0' ? "0, the one that is known" : "1, the one that is known");
    lexer_next(&parser->lexer);
    return 0;
}

/* Operands as a row spells them, up to the semicolon. */
static int read_row(struct parser *parser, struct insn *insn, const struct sim_opcode *row)
{
    uint32_t places = 0, integers = 0;
    bool result = strchr(row->operands, '=') != NULL, apart = false;
    for (const char *c = row->operands; *c; c++) {
        if (*c == '=' || *c == '+') {
            result = *c == '+';
            continue;
        }
        const bool closes = *c == '}' || *c == '|';
        if (apart && !closes && parse_mark(parser, ","))
            return -1;
        apart = *c != '{' && *c != '|';
        sim_place *place = &insn->o[places];
        int rc;
        if (strchr("{}|_", *c))
            rc = parse_mark(parser, (char[]){*c, 0});
        else if (*c == '0' || *c == '1')
            rc = fixed_integer(parser, *c);
        else if (c[1] == '*')
            rc = wide_results(parser, insn, operand_count(&c));
        else if (*c == 'T')
            places += 3, rc = tile_address(parser, place);
        else if (*c == 'i')
            rc = read_integer(parser, 0, &insn->integer[integers++]);
        else if (*c == 'L')
            rc = read_label(parser);
        else if (*c == 'G' || *c == 'S')
            places++, rc = address(parser, *c, place, &insn->integer[integers++]);
        else if (*c == 'P' || *c == 'Q')
            places++, rc = param_address(parser, *c == 'P' ? 'r' : 'l', place);
        else
            places++,
                rc = result ? register_place(parser, *c, place) : source_place(parser, *c, place);
        if (rc)
            return -1;
    }
    return parse_mark(parser, ";");
}

int parse_guard(struct parser *parser, struct insn *insn)
{
    insn->guarded = true;
    if (token_is(&parser->lexer.token, "!")) {
        insn->guard_inverted = true;
        lexer_next(&parser->lexer);
    }
    return register_place(parser, 'p', &insn->guard);
}

int parse_operands(struct parser *parser, struct insn *insn, const struct token *text)
{
    const struct lexer start = parser->lexer;
    const uint32_t jumps = parser->jump_count, wide = parser->entry->wide_count;
    size_t from = 0;
    const struct sim_opcode *row;
    int rc = 1;
    while (rc && (row = sim_opcode_find(text->text, text->length, &from))) {
        parser->lexer = start;
        parser->jump_count = jumps;
        parser->entry->wide_count = wide;
        insn->opcode = row;
        rc = read_row(parser, insn, row);
        if (rc && parser->fault->kind == SIM_NO_MEMORY)
            return -1;
    }
    if (rc == 1)
        return parse_bad(parser, "opcode %.*s is not known to the machine",
                         (int)strcspn(text->text, " \t\r\n;"), text->text);
    if (!rc && insn->guarded && (insn->opcode->how & GUARD) == GUARD_REFUSED)
        return parse_bad(parser, "opcode %s under a predicate is not known to the machine",
                         insn->opcode->text);
    return rc;
}
